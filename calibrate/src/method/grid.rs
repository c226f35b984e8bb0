//! Which batch sizes to measure.

use crate::method::stats::median;

/// 1, 2, 3, 4, 6, 8, 12, … up to `largest`, which is always in, and both sides of each edge.
#[must_use]
pub fn grid(largest: u32, edges: &[u32]) -> Vec<u32> {
    let mut sizes = vec![1, largest];
    let mut power = 2_u32;
    while power <= largest {
        sizes.push(power);
        sizes.push(power.saturating_add(power / 2));
        power = power.saturating_mul(2);
        if power == u32::MAX {
            break;
        }
    }
    for edge in edges {
        sizes.push(*edge);
        sizes.push(edge.saturating_add(1));
    }
    sizes.retain(|n| (1..=largest).contains(n));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Sizes that would tell most: the middles of the gaps beside every size whose time is off the
/// line through its neighbours by more than `tolerance`, relative.
#[must_use]
pub fn refine(points: &[(u32, f64)], tolerance: f64) -> Vec<u32> {
    let mut more = Vec::new();
    for three in points.windows(3) {
        let [a, b, c] = three else { continue };
        let share = f64::from(b.0 - a.0) / f64::from(c.0 - a.0);
        let line = a.1 + (c.1 - a.1) * share;
        if ((line - b.1) / b.1).abs() > tolerance {
            more.extend([u32::midpoint(a.0, b.0), u32::midpoint(b.0, c.0)]);
        }
    }
    more.sort_unstable();
    more.dedup();
    more.retain(|n| points.iter().all(|p| p.0 != *n));
    more
}

/// The median and the largest difference between two sweeps, relative, over sizes of both.
#[must_use]
pub fn repeatability(first: &[(u32, f64)], second: &[(u32, f64)]) -> Option<(f64, f64)> {
    let gaps: Vec<f64> = first
        .iter()
        .filter_map(|(n, a)| {
            let (_, b) = second.iter().find(|(m, _)| m == n)?;
            Some(2.0 * (a - b).abs() / (a + b))
        })
        .collect();
    let worst = gaps.iter().copied().reduce(f64::max)?;
    Some((median(&gaps), worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_edges() {
        assert_eq!(grid(16, &[]), [1, 2, 3, 4, 6, 8, 12, 16]);
        assert_eq!(grid(10, &[5, 10, 64]), [1, 2, 3, 4, 5, 6, 8, 10]);
        assert_eq!(grid(1, &[]), [1]);
    }

    #[test]
    fn a_step_is_closed_in_upon() {
        assert!(refine(&[(1, 1.0), (2, 2.0), (4, 4.0)], 0.03).is_empty());
        assert_eq!(refine(&[(8, 10.0), (16, 10.0), (32, 20.0)], 0.03), [12, 24]);
        assert!(refine(&[(8, 10.0), (9, 20.0), (10, 20.0)], 0.03).is_empty());
    }

    #[test]
    fn two_sweeps() {
        let (middle, worst) =
            repeatability(&[(1, 99.0), (2, 100.0)], &[(1, 101.0), (2, 100.0)]).unwrap();
        assert!((middle - 0.01).abs() < 1e-12 && (worst - 0.02).abs() < 1e-12);
        assert_eq!(repeatability(&[(1, 1.0)], &[(2, 1.0)]), None);
    }
}
