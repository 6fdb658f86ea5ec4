//! The `unsafe` code of the encoder: the call of `gemm`, the product of integers on processors with AVX-512 VNNI,
//! and the settings of the allocator.
//!
//! The functions take slices. Before any unsafe operation they check lengths and strides, in release builds too.
//! Nothing else belongs in this file.

/// Makes glibc's allocator return freed memory to the system. A long-running process should call this before it
/// starts any thread.
///
/// By default, glibc has up to eight arenas per processor, and none of them ever shrinks. Also, glibc returns only
/// blocks above a threshold, and raises this threshold, up to 32 MB, whenever a larger block is freed. After thousands
/// of calls, a server held 10 to 15 MB of memory for this reason. With these settings, there are two arenas, and blocks
/// of 256 KiB or more are always returned. With other allocators, this function does nothing.
///
/// See <https://man7.org/linux/man-pages/man3/mallopt.3.html>.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;
        /// The values for `M_ARENA_MAX`, `M_MMAP_THRESHOLD` and `M_TRIM_THRESHOLD` of `malloc.h`. If either threshold
        /// is set, glibc no longer changes the two thresholds itself.
        const SETTINGS: [(c_int, c_int); 3] = [(-8, 2), (-3, 256 * 1024), (-1, 256 * 1024)];
        #[expect(
            unsafe_code,
            reason = "the only other interface of the allocator is variables that it reads before `main`"
        )]
        // SAFETY: glibc declares `mallopt` like this. It accepts any two numbers and returns 0 for invalid ones.
        unsafe {
            unsafe extern "C" {
                fn mallopt(parameter: c_int, value: c_int) -> c_int;
            }
            for (parameter, value) in SETTINGS {
                mallopt(parameter, value);
            }
        }
    }
}

/// The layout of a matrix in a slice: `rows` rows of `columns` numbers. The rows begin `stride` apart.
#[derive(Clone, Copy)]
pub struct Shape {
    /// How many rows.
    pub rows: usize,
    /// How many numbers a row has.
    pub columns: usize,
    /// How many numbers lie between the beginnings of two rows.
    pub stride: usize,
}

impl Shape {
    /// Returns the length of the slice that the matrix needs; panics if its rows overlap.
    fn span(self) -> usize {
        assert!(self.stride >= self.columns, "rows do not overlap");
        if self.rows == 0 { 0 } else { (self.rows - 1) * self.stride + self.columns }
    }
}

/// Whether a product overwrites its destination or is added to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The product replaces it.
    Overwrite,
    /// The product is added to it.
    AddTo,
}

/// The layout of the right factor of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// It has `depth` rows.
    Plain,
    /// The matrix is transposed: it has `depth` columns.
    Transposed,
}

/// Computes `out = scale · left · right` (or adds it to `out`) on the calling thread.
///
/// `left` is `m × depth` and `out` is `m × n`; both are stored row by row. `right` is `depth × n`, or `n × depth`
/// when transposed. Panics if the shapes don't match each other or their slices.
#[expect(clippy::too_many_arguments, reason = "a product has three matrices with three shapes")]
pub fn product(
    out: &mut [f32],
    out_shape: Shape,
    before: Before,
    left: &[f32],
    left_shape: Shape,
    right: &[f32],
    right_shape: Shape,
    order: Right,
    scale: f32,
) {
    let (m, n, depth) = (out_shape.rows, out_shape.columns, left_shape.columns);
    let (right_depth, right_n, depth_step, n_step) = match order {
        Right::Plain => (right_shape.rows, right_shape.columns, right_shape.stride, 1),
        Right::Transposed => (right_shape.columns, right_shape.rows, 1, right_shape.stride),
    };
    assert!(left_shape.rows == m && right_n == n && right_depth == depth, "the shapes fit each other");
    assert!(out.len() >= out_shape.span(), "the destination is long enough");
    assert!(left.len() >= left_shape.span(), "the left factor is long enough");
    assert!(right.len() >= right_shape.span(), "the right factor is long enough");
    // The kernels of gemm prefer destinations that are stored by columns, so this computes the transposed product.
    #[expect(unsafe_code, reason = "gemm takes pointers and strides")]
    // SAFETY: the asserts above ensure that each of the three slices covers every element that its shape and stride
    // reach. `out` is borrowed mutably, so it overlaps neither factor. All strides fit `isize` because the slices
    // exist.
    unsafe {
        gemm::gemm(
            n,
            m,
            depth,
            out.as_mut_ptr(),
            out_shape.stride as isize,
            1,
            before == Before::AddTo,
            right.as_ptr(),
            depth_step as isize,
            n_step as isize,
            left.as_ptr(),
            left_shape.stride as isize,
            1,
            1.0,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Returns whether [`integer_product`] can be called on this processor.
pub fn has_integer_product() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// The left factor of [`integer_product`]: rows of integers, each with a scale.
pub struct Rows<'a> {
    /// The numbers, row by row.
    pub values: &'a [i16],
    /// The scale of each row.
    pub scales: &'a [f32],
}

/// The right factor of [`integer_product`]: columns of integers, each with a scale.
///
/// The columns are divided into panels of [`PANEL`] columns. Within a panel, the inputs are taken in pairs: for each
/// pair, every column has two adjacent numbers.
pub struct Columns<'a> {
    /// The numbers, panel by panel.
    pub values: &'a [i16],
    /// The scale of each column.
    pub scales: &'a [f32],
}

/// The number of columns of a panel. With this number, a block of a panel takes half of the L1 cache.
pub const PANEL: usize = 32;
/// The number of products that are summed as integers before the sum is converted to a float.
pub const BLOCK: usize = 384;
/// The largest magnitude of a value in a row. With this limit and [`LARGEST_IN_COLUMNS`], no sum of [`BLOCK`] products
/// overflows.
///
/// Rounding activations costs more accuracy than rounding weights, so activations get more bits.
pub const LARGEST_IN_ROWS: i16 = 4095;
/// The largest magnitude of a value in a column; see [`LARGEST_IN_ROWS`].
pub const LARGEST_IN_COLUMNS: i16 = 1365;
const _: () = assert!(BLOCK as i64 * LARGEST_IN_ROWS as i64 * LARGEST_IN_COLUMNS as i64 <= i32::MAX as i64);

/// Computes `out = left · right + bias`. The result is exact, except for rounding of the scales and of one sum per
/// block.
///
/// `out` has a row for each row of `left` and a column for each column of `right`. Panics if the shapes don't match
/// each other or their slices, or if [`has_integer_product`] is false.
pub fn integer_product<const DEPTH: usize>(out: &mut [f32], bias: &[f32], left: &Rows, right: &Columns) {
    assert!(has_integer_product(), "the processor has the instructions");
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(
            unsafe_code,
            reason = "whether the processor has the instructions is known only at run time"
        )]
        // SAFETY: the assertion above ensures that the processor has the instructions.
        unsafe {
            vnni::product::<DEPTH>(out, bias, left, right)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (out, bias, left, right);
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    use std::arch::x86_64::*;

    use super::{BLOCK, Columns, PANEL, Rows};

    /// How many sums fit in a register.
    const LANES: usize = 16;
    const REGISTERS: usize = PANEL / LANES;
    /// How many rows are multiplied together. The sums of this many rows take 24 of the 32 registers.
    const TILE: usize = 12;
    /// How many pairs of inputs are multiplied while one cache line of the next weights is fetched.
    const PAIRS_PER_LINE: usize = 8;
    /// How many weights fit in one cache line.
    const LINE: usize = 32;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub fn product<const DEPTH: usize>(out: &mut [f32], bias: &[f32], left: &Rows, right: &Columns) {
        const { assert!(DEPTH.is_multiple_of(BLOCK), "blocks are whole") };
        let (rows, columns) = (left.scales.len(), right.scales.len());
        assert!(columns.is_multiple_of(PANEL), "panels are whole");
        assert!(bias.len() == columns && out.len() == rows * columns, "the destination fits");
        assert!(
            left.values.len() == rows * DEPTH && right.values.len() == DEPTH * columns,
            "the factors fit"
        );
        // A block of a panel stays in the L1 cache for all rows, while the next block is fetched.
        let mut blocks = right.values.chunks_exact(BLOCK * PANEL).enumerate().peekable();
        while let Some((i, weights)) = blocks.next() {
            let (column, block) = (i / (DEPTH / BLOCK) * PANEL, i % (DEPTH / BLOCK));
            let (bias, scales) = (&bias[column..][..PANEL], &right.scales[column..][..PANEL]);
            let next = blocks.peek().map_or(weights, |(_, next)| next);
            let parts = next.chunks_exact(BLOCK / 2 / PAIRS_PER_LINE * LINE).cycle();
            for (row, next) in (0..rows).step_by(TILE).zip(parts) {
                let tile = Tile {
                    out: &mut out[row * columns + column..],
                    columns,
                    bias: (block == 0).then_some(bias),
                    values: &left.values[row * DEPTH + block * BLOCK..],
                    row_scales: &left.scales[row..],
                    weights,
                    scales,
                    next,
                };
                match rows - row {
                    1 => multiply::<1, DEPTH>(tile),
                    2 => multiply::<2, DEPTH>(tile),
                    3 => multiply::<3, DEPTH>(tile),
                    4 => multiply::<4, DEPTH>(tile),
                    5 => multiply::<5, DEPTH>(tile),
                    6 => multiply::<6, DEPTH>(tile),
                    7 => multiply::<7, DEPTH>(tile),
                    8 => multiply::<8, DEPTH>(tile),
                    9 => multiply::<9, DEPTH>(tile),
                    10 => multiply::<10, DEPTH>(tile),
                    11 => multiply::<11, DEPTH>(tile),
                    _ => multiply::<TILE, DEPTH>(tile),
                }
            }
        }
    }

    /// The operands of one call of [`multiply`]: some rows and one panel, both within one block of the depth.
    struct Tile<'a> {
        out: &'a mut [f32],
        columns: usize,
        /// The values to which the products are added; if `None`, the products are added to the values in `out`.
        bias: Option<&'a [f32]>,
        values: &'a [i16],
        row_scales: &'a [f32],
        weights: &'a [i16],
        scales: &'a [f32],
        /// The weights for a later call, which this call fetches into the cache.
        next: &'a [i16],
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn multiply<const ROWS: usize, const DEPTH: usize>(tile: Tile) {
        let Tile { out, columns, bias, values, row_scales, weights, scales, next } = tile;
        assert!(out.len() >= (ROWS - 1) * columns + PANEL && values.len() >= (ROWS - 1) * DEPTH + BLOCK);
        assert!(weights.len() == BLOCK * PANEL && scales.len() == PANEL && row_scales.len() >= ROWS);
        assert!(
            bias.is_none_or(|bias| bias.len() == PANEL) && next.len() >= BLOCK / 2 / PAIRS_PER_LINE * LINE
        );
        let mut sums = [[_mm512_setzero_si512(); REGISTERS]; ROWS];
        for pair in 0..BLOCK / 2 {
            #[expect(unsafe_code, reason = "registers are loaded by pointer")]
            // SAFETY: `pair < BLOCK / 2`. So each load of 2 · PANEL weights ends within `weights`, which has BLOCK
            // · PANEL. Each load of two values of a row ends within the BLOCK values that the row has, as asserted.
            // The fetched line lies within `next`. No load needs alignment.
            let (weights, values): ([__m512i; REGISTERS], [i32; ROWS]) = unsafe {
                if pair % PAIRS_PER_LINE == 0 {
                    _mm_prefetch::<_MM_HINT_T1>(next.as_ptr().add(pair / PAIRS_PER_LINE * LINE).cast());
                }
                let weights = weights.as_ptr().add(pair * 2 * PANEL);
                let values = values.as_ptr().add(pair * 2);
                (
                    std::array::from_fn(|i| _mm512_loadu_si512(weights.add(i * 2 * LANES).cast())),
                    std::array::from_fn(|row| values.add(row * DEPTH).cast::<i32>().read_unaligned()),
                )
            };
            for (sums, value) in sums.iter_mut().zip(values) {
                let value = _mm512_set1_epi32(value);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    add_products(sum, value, weights);
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            let row_scale = _mm512_set1_ps(row_scales[row]);
            for (i, sum) in sums.into_iter().enumerate() {
                #[expect(unsafe_code, reason = "registers are loaded and stored by pointer")]
                // SAFETY: `i < REGISTERS`, so the 16 floats from `i * LANES` on lie within the PANEL floats that
                // `scales`, `bias` and each row of `out` have, as asserted. No load or store needs alignment.
                unsafe {
                    let out = out.as_mut_ptr().add(row * columns + i * LANES);
                    let before =
                        _mm512_loadu_ps(bias.map_or(out.cast_const(), |bias| bias.as_ptr().add(i * LANES)));
                    let scale = _mm512_mul_ps(row_scale, _mm512_loadu_ps(scales.as_ptr().add(i * LANES)));
                    _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, before));
                }
            }
        }
    }

    /// Multiplies each pair of numbers in `left` by the pair at the same place in `right`, and adds both products
    /// to the sum at that place.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn add_products(sums: &mut __m512i, left: __m512i, right: __m512i) {
        #[expect(unsafe_code, reason = "LLVM makes two instructions of the intrinsic, at half the speed")]
        // SAFETY: the instruction reads and writes only these registers, and the processor has it.
        unsafe {
            std::arch::asm!(
                "vpdpwssd {0}, {1}, {2}",
                inout(zmm_reg) *sums,
                in(zmm_reg) left,
                in(zmm_reg) right,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_definition() {
        for (m, n, depth) in [(1, 1, 1), (1, 48, 384), (7, 48, 384), (5, 9, 32), (33, 33, 32), (70, 32, 70)] {
            let left: Vec<f32> = (0..m * (depth + 3)).map(|i| (i % 17) as f32 - 8.0).collect();
            let right: Vec<f32> =
                (0..(depth * (n + 2)).max(n * (depth + 2))).map(|i| (i % 13) as f32 - 6.0).collect();
            for order in [Right::Plain, Right::Transposed] {
                let (right_shape, at): (Shape, &dyn Fn(usize, usize) -> usize) = match order {
                    Right::Plain => {
                        (Shape { rows: depth, columns: n, stride: n + 2 }, &|k, j| k * (n + 2) + j)
                    }
                    Right::Transposed => {
                        (Shape { rows: n, columns: depth, stride: depth + 2 }, &|k, j| j * (depth + 2) + k)
                    }
                };
                let mut out = vec![1.0; m * (n + 1)];
                product(
                    &mut out,
                    Shape { rows: m, columns: n, stride: n + 1 },
                    Before::AddTo,
                    &left,
                    Shape { rows: m, columns: depth, stride: depth + 3 },
                    &right,
                    right_shape,
                    order,
                    0.5,
                );
                for i in 0..m {
                    for j in 0..n {
                        let sum: f32 = (0..depth).map(|k| left[i * (depth + 3) + k] * right[at(k, j)]).sum();
                        assert_eq!(out[i * (n + 1) + j], 1.0 + 0.5 * sum, "{m}x{n}x{depth} at {i},{j}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the destination is long enough")]
    fn a_short_destination_is_refused() {
        let shape = Shape { rows: 2, columns: 2, stride: 2 };
        product(
            &mut [0.0; 3],
            shape,
            Before::Overwrite,
            &[0.0; 4],
            shape,
            &[0.0; 4],
            shape,
            Right::Plain,
            1.0,
        );
    }

    #[test]
    fn integer_products_agree_with_the_definition() {
        if !has_integer_product() {
            return eprintln!("skipped: no AVX-512 VNNI");
        }
        const DEPTH: usize = 2 * BLOCK;
        let columns = 3 * PANEL;
        let number = |i: usize, largest: i16| {
            ((i * 7919 % (2 * largest as usize + 1)) as i32 - i32::from(largest)) as i16
        };
        let weights: Vec<i16> = (0..DEPTH * columns).map(|i| number(i, LARGEST_IN_COLUMNS)).collect();
        let scales: Vec<f32> = (0..columns).map(|i| (1 + i % 3) as f32 / 4096.0).collect();
        let bias: Vec<f32> = (0..columns).map(|i| i as f32).collect();
        for rows in 1..=25 {
            let values: Vec<i16> = (0..rows * DEPTH).map(|i| number(i * 31, LARGEST_IN_ROWS)).collect();
            let row_scales: Vec<f32> = (0..rows).map(|i| (1 + i) as f32 / 4096.0).collect();
            let mut out = vec![f32::NAN; rows * columns];
            let left = Rows { values: &values, scales: &row_scales };
            integer_product::<DEPTH>(&mut out, &bias, &left, &Columns { values: &weights, scales: &scales });
            for (i, &found) in out.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let weight = |k: usize| {
                    let panel = &weights[column / PANEL * PANEL * DEPTH..];
                    f64::from(panel[k / 2 * 2 * PANEL + column % PANEL * 2 + k % 2])
                };
                let sum: f64 = (0..DEPTH).map(|k| f64::from(values[row * DEPTH + k]) * weight(k)).sum();
                let expected = sum * f64::from(row_scales[row] * scales[column]) + f64::from(bias[column]);
                assert!(
                    (f64::from(found) - expected).abs() <= 1e-3 + expected.abs() * 1e-6,
                    "{found} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_largest_sum_does_not_overflow() {
        if !has_integer_product() {
            return eprintln!("skipped: no AVX-512 VNNI");
        }
        let (values, weights) = ([LARGEST_IN_ROWS; BLOCK], [-LARGEST_IN_COLUMNS; BLOCK * PANEL]);
        let mut out = [0.0; PANEL];
        let left = Rows { values: &values, scales: &[1.0] };
        integer_product::<BLOCK>(
            &mut out,
            &[0.0; PANEL],
            &left,
            &Columns { values: &weights, scales: &[1.0; PANEL] },
        );
        assert_eq!(
            out,
            [-(BLOCK as f32) * f32::from(LARGEST_IN_ROWS) * f32::from(LARGEST_IN_COLUMNS); PANEL]
        );
    }
}
