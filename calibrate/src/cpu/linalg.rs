//! Matrix products by the crate `gemm`, behind checked lengths.
#![allow(unsafe_code, reason = "gemm takes pointers; lengths are checked here")]

use gemm::Parallelism;

/// A matrix inside a slice: element (i, j) is at `i * row + j * col`.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    data: &'a [f32],
    row: usize,
    col: usize,
}

impl<'a> View<'a> {
    /// Rows of `width` elements, one after the other.
    pub(super) fn rows(data: &'a [f32], width: usize) -> Self {
        Self { data, row: width, col: 1 }
    }

    /// Rows and columns swapped.
    pub(super) fn transposed(self) -> Self {
        Self { data: self.data, row: self.col, col: self.row }
    }

    fn holds(&self, rows: usize, cols: usize) -> bool {
        rows == 0 || cols == 0 || (rows - 1) * self.row + (cols - 1) * self.col < self.data.len()
    }
}

/// `out` (m × n, rows `stride` apart) = a (m × k) · b (k × n), plus what is in `out` if `add`.
///
/// # Panics
/// If a matrix is not inside its slice: an error of this crate.
pub(super) fn product(
    (m, k, n): (usize, usize, usize),
    a: View,
    b: View,
    (out, stride): (&mut [f32], usize),
    add: bool,
    threads: usize,
) {
    if m == 0 || n == 0 {
        return;
    }
    let fits = (m - 1) * stride + n <= out.len() && stride >= n;
    assert!(fits && a.holds(m, k) && b.holds(k, n), "a matrix leaves its slice");
    let parallel = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    let (out_row, a_row, a_col) = (stride.cast_signed(), a.row.cast_signed(), a.col.cast_signed());
    let (b_row, b_col) = (b.row.cast_signed(), b.col.cast_signed());
    // SAFETY: by the assertion every element that is read or written is inside its slice, and
    // rows of `out` do not overlap; a slice that is borrowed mutably is not `a` or `b`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_row,
            add,
            a.data.as_ptr(),
            a_col,
            a_row,
            b.data.as_ptr(),
            b_col,
            b_row,
            1.0,
            1.0,
            false,
            false,
            false,
            parallel,
        );
    }
}
