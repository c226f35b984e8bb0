//! The outline of a set of cells of a grid.

use std::collections::BTreeMap;

/// A corner of the grid.
type Corner = (usize, usize);

/// Closed loops along the edges between cells inside and cells outside, corners only; the
/// inside is on the left. Loops touch, but never cross, where cells meet at a corner.
#[expect(clippy::cast_precision_loss, reason = "a handful of cells")]
pub(super) fn outline(
    columns: usize,
    rows: usize,
    inside: &dyn Fn(usize, usize) -> bool,
) -> Vec<Vec<(f64, f64)>> {
    let mut next = edges(columns, rows, inside);
    let mut loops = Vec::new();
    while let Some((&start, _)) = next.iter().find(|(_, ends)| !ends.is_empty()) {
        let mut corners = vec![start];
        let mut at = start;
        while let Some(to) = next.get_mut(&at).and_then(|ends| leave(ends, &corners)) {
            if to == start {
                break;
            }
            corners.push(to);
            at = to;
        }
        next.retain(|_, ends| !ends.is_empty());
        loops.push(turns(&corners).iter().map(|c| (c.0 as f64, c.1 as f64)).collect());
    }
    loops
}

/// Edges by their first corner.
fn edges(
    columns: usize,
    rows: usize,
    inside: &dyn Fn(usize, usize) -> bool,
) -> BTreeMap<Corner, Vec<Corner>> {
    let is = |i: Option<usize>, j: Option<usize>| match (i, j) {
        (Some(i), Some(j)) => i < columns && j < rows && inside(i, j),
        _ => false,
    };
    let mut next: BTreeMap<Corner, Vec<Corner>> = BTreeMap::new();
    for i in 0..columns {
        for j in (0..rows).filter(|j| inside(i, *j)) {
            let sides = [
                (is(Some(i), j.checked_sub(1)), (i, j), (i + 1, j)),
                (is(Some(i + 1), Some(j)), (i + 1, j), (i + 1, j + 1)),
                (is(Some(i), Some(j + 1)), (i + 1, j + 1), (i, j + 1)),
                (is(i.checked_sub(1), Some(j)), (i, j + 1), (i, j)),
            ];
            for (_, from, to) in sides.into_iter().filter(|s| !s.0) {
                next.entry(from).or_default().push(to);
            }
        }
    }
    next
}

/// Takes the next edge; of two, the one that turns left, which stays with the same cell.
fn leave(ends: &mut Vec<Corner>, corners: &[Corner]) -> Option<Corner> {
    let left = match corners {
        [.., before, at] => {
            // A left turn of direction (dx, dy) is (-dy, dx).
            let to = ((at.0 + before.1).checked_sub(at.1), (at.1 + at.0).checked_sub(before.0));
            ends.iter().position(|end| (Some(end.0), Some(end.1)) == to)
        }
        _ => None,
    };
    if ends.is_empty() { None } else { Some(ends.swap_remove(left.unwrap_or(0))) }
}

/// Corners where the loop turns.
fn turns(corners: &[Corner]) -> Vec<Corner> {
    let n = corners.len();
    let straight = |i: usize| {
        let (a, b, c) = (corners[(i + n - 1) % n], corners[i], corners[(i + 1) % n]);
        (a.0 == b.0 && b.0 == c.0) || (a.1 == b.1 && b.1 == c.1)
    };
    (0..n).filter(|i| !straight(*i)).map(|i| corners[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(rows: &[&str]) -> Vec<Vec<(f64, f64)>> {
        let grid: Vec<Vec<bool>> =
            rows.iter().rev().map(|r| r.chars().map(|c| c == '#').collect()).collect();
        outline(grid[0].len(), grid.len(), &|i, j| grid[j][i])
    }

    #[test]
    fn outlines_follow_the_edges() {
        assert_eq!(
            loops(&["##", "##"]),
            vec![vec![(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]]
        );
        assert_eq!(loops(&["..", ".."]), Vec::<Vec<_>>::new());
        assert_eq!(loops(&["#.", "##"])[0].len(), 6);
        // A ring has an outer and an inner loop; two cells that touch at a corner are two loops.
        assert_eq!(loops(&["###", "#.#", "###"]).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(loops(&["#.", ".#"]).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(loops(&[".#", "#."]).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    }
}
