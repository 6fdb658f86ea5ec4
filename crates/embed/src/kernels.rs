//! The loops of the encoder except the matrix products, written so that the compiler vectorises them.
//!
//! Each loop is compiled three times, for AVX-512, AVX2 and the baseline, and one of the three versions is chosen at
//! run time. Sums always have sixteen lanes, and operations are fused only where the code says so. So the loops give
//! exactly the same results on every machine. `exp2` and `erf` are polynomials, since the standard library's scalar
//! functions would take longer than the matrix products. (The loops are slow on processors from before 2013, which have
//! no fused operations.)

use multiversion::multiversion;

/// How many sums run in parallel: as many as an AVX-512 register has floats.
const LANES: usize = 16;

/// Widens half floats, given as bits, to floats. Infinities and NaNs would become finite numbers, but no weight is
/// infinite or NaN.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn widen(halves: &[u16], out: &mut [f32]) {
    // The shift and the mask move the sign and the other bits to their places in a float. The multiplication changes
    // the bias of the exponent from 15 to 127, which also makes subnormal numbers right.
    for (out, &half) in out.iter_mut().zip(halves) {
        let bits = ((i32::from(half as i16) << 13) as u32) & 0x8fff_e000;
        *out = f32::from_bits(bits) * f32::from_bits((127 + 112) << 23);
    }
}

/// Widens a panel of integers to rows of floats that begin `stride` apart. For every two inputs, the panel has
/// a pair of integers per column; `scales` has the scale of each column.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn widen_panel(values: &[i16], scales: &[f32], out: &mut [f32], stride: usize) {
    let columns = scales.len();
    for (pairs, out) in values.chunks_exact(2 * columns).zip(out.chunks_mut(2 * stride)) {
        let (first, second) = out.split_at_mut(stride);
        let (pairs, _) = pairs.as_chunks::<2>();
        for (((pair, scale), first), second) in pairs.iter().zip(scales).zip(first).zip(second) {
            *first = f32::from(pair[0]) * scale;
            *second = f32::from(pair[1]) * scale;
        }
    }
}

/// Rounds each row of `x` to integers of magnitude at most `largest`. Writes to `scales`, for each row, the factor
/// that turns its integers back into floats.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn round_rows(x: &[f32], width: usize, largest: i16, values: &mut [i16], scales: &mut [f32]) {
    /// If this number is added to a float, the low bits of the sum are the float rounded to an integer.
    const ROUND: f32 = 12_582_912.0;
    for ((row, values), scale) in x.chunks_exact(width).zip(values.chunks_exact_mut(width)).zip(scales) {
        let mut lanes = [0.0; LANES];
        for part in row.chunks_exact(LANES) {
            for (lane, x) in lanes.iter_mut().zip(part) {
                let magnitude = x.abs();
                *lane = if magnitude > *lane { magnitude } else { *lane };
            }
        }
        // The lower bound is for rows of zeros: it keeps the inverse of the scale finite.
        let highest = fold(lanes, |a, b| if b > a { b } else { a }).max(1e-30);
        let inverse = f32::from(largest) / highest;
        *scale = highest / f32::from(largest);
        for (value, x) in values.iter_mut().zip(row) {
            *value = (x * inverse + ROUND).to_bits() as i16;
        }
    }
}

/// Normalises each row of `x` to mean 0 and variance 1, then scales and shifts it.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn layer_norm(x: &mut [f32], scale: &[f32], shift: &[f32]) {
    let width = scale.len();
    for row in x.chunks_exact_mut(width) {
        norm_row(row, scale, shift);
    }
}

/// Adds `update` to `x`, then normalises each row as [`layer_norm`] does.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn add_and_norm(x: &mut [f32], update: &[f32], scale: &[f32], shift: &[f32]) {
    let width = scale.len();
    for (row, update) in x.chunks_exact_mut(width).zip(update.chunks_exact(width)) {
        for (x, update) in row.iter_mut().zip(update) {
            *x += update;
        }
        norm_row(row, scale, shift);
    }
}

#[inline(always)]
fn norm_row(row: &mut [f32], scale: &[f32], shift: &[f32]) {
    /// The value that the model was trained with. The value is negligible compared with any real variance.
    const EPSILON: f32 = 1e-12;
    let width = row.len() as f32;
    let mut lanes = [0.0; LANES];
    for part in row.chunks_exact(LANES) {
        for (lane, x) in lanes.iter_mut().zip(part) {
            *lane += x;
        }
    }
    let mean = fold(lanes, |a, b| a + b) / width;
    let mut lanes = [0.0; LANES];
    for part in row.chunks_exact(LANES) {
        for (lane, x) in lanes.iter_mut().zip(part) {
            *lane += (x - mean) * (x - mean);
        }
    }
    let inverse = 1.0 / (fold(lanes, |a, b| a + b) / width + EPSILON).sqrt();
    for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
        *x = (*x - mean) * inverse * scale + shift;
    }
}

/// Applies the Gaussian error linear unit, x·Φ(x), in its exact (erf) form.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn gelu(x: &mut [f32]) {
    for x in x {
        *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Replaces each score by a weight, 2^(score − highest score of the row). Writes to `factors`, for each row, the number
/// by which the weights must be multiplied so that their sum is 1. Rows have `width` scores and begin `stride` apart.
/// The stride is a multiple of the number of lanes. The numbers between two rows are overwritten.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn softmax(scores: &mut [f32], width: usize, stride: usize, factors: &mut [f32]) {
    for (row, factor) in scores.chunks_exact_mut(stride).zip(factors) {
        row[width..].fill(f32::MIN);
        let (parts, _) = row.as_chunks_mut::<LANES>();
        let mut lanes = [f32::MIN; LANES];
        for part in parts.iter() {
            for (lane, &x) in lanes.iter_mut().zip(part) {
                *lane = if x > *lane { x } else { *lane };
            }
        }
        let highest = fold(lanes, |a, b| if b > a { b } else { a });
        // The numbers beyond the width become weights of 2⁻¹²⁵, which don't change the sum.
        let mut lanes = [0.0; LANES];
        for part in parts {
            for (lane, x) in lanes.iter_mut().zip(part) {
                *x = exp2(*x - highest);
                *lane += *x;
            }
        }
        *factor = 1.0 / fold(lanes, |a, b| a + b);
    }
}

/// Multiplies each row by its factor in `factors`. Rows have `columns` numbers and begin `stride` apart.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn scale_rows(x: &mut [f32], columns: usize, stride: usize, factors: &[f32]) {
    for (row, factor) in x.chunks_mut(stride).zip(factors) {
        for x in &mut row[..columns] {
            *x *= factor;
        }
    }
}

/// Returns the stride that [`softmax`] needs for rows of `width` numbers.
pub fn stride(width: usize) -> usize {
    width.next_multiple_of(LANES)
}

/// Combines the lanes pairwise, in four dependent steps instead of sixteen.
#[inline(always)]
fn fold(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low = combine(*low, *high);
        }
        half /= 2;
    }
    lanes[0]
}

/// Returns 2 to the power of `x`, accurate to about one unit in the last place; `x` must not be positive.
///
/// Splits `x` into an integer and a rest in [−½, ½]. A minimax polynomial (relative error 7.5e-8) computes 2 to the
/// power of the rest. The result is scaled by 2 to the power of the integer. For `x` below −125 the result is 2⁻¹²⁵.
#[inline(always)]
fn exp2(x: f32) -> f32 {
    /// If this number is added to a float, the low bits of the sum are the float rounded to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > -125.0 { x } else { -125.0 };
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    let p = 1.327_646_5e-3_f32;
    let p = p.mul_add(r, 9.675_541e-3);
    let p = p.mul_add(r, 5.550_713_5e-2);
    let p = p.mul_add(r, 2.402_212e-1);
    let p = p.mul_add(r, 6.931_469_4e-1);
    let p = p.mul_add(r, 1.0);
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

/// Returns the error function of `x`, accurate to 5e-7. The result is the ratio of two polynomials, the same
/// two that Eigen uses.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = if x > 4.0 { 4.0 } else { x };
    let x = if x < -4.0 { -4.0 } else { x };
    let s = x * x;
    let p = -2.726_142_3e-10_f32;
    let p = p.mul_add(s, 2.770_681_4e-8);
    let p = p.mul_add(s, -2.101_024e-6);
    let p = p.mul_add(s, -5.692_506_5e-5);
    let p = p.mul_add(s, -7.349_906_3e-4);
    let p = p.mul_add(s, -2.954_6e-3);
    let p = p.mul_add(s, -1.609_603_3e-2);
    let q = -1.456_607_2e-5_f32;
    let q = q.mul_add(s, -2.133_740_5e-4);
    let q = q.mul_add(s, -1.682_827e-3);
    let q = q.mul_add(s, -7.373_329e-3);
    let q = q.mul_add(s, -1.426_474e-2);
    x * p / q
}

/// Returns the mean of the rows of `x`, which have `width` numbers each, scaled to length 1.
pub fn pool(x: &[f32], width: usize) -> Vec<f32> {
    let mut mean = vec![0.0; width];
    for row in x.chunks_exact(width) {
        for (mean, x) in mean.iter_mut().zip(row) {
            *mean += x;
        }
    }
    // The sum is not divided by the number of rows, because it is scaled to length 1 anyway. The lower bound of the
    // length is the same as in the reference.
    let length = mean.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt().max(1e-12) as f32;
    for mean in &mut mean {
        *mean /= length;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_widens_to_its_value() {
        let halves: Vec<u16> =
            (0..=u16::MAX).filter(|&bits| half::f16::from_bits(bits).is_finite()).collect();
        let mut floats = vec![0.0; halves.len()];
        widen(&halves, &mut floats);
        for (&bits, &float) in halves.iter().zip(&floats) {
            assert_eq!(half::f16::from_bits(bits).to_f32().to_bits(), float.to_bits(), "half {bits:#06x}");
        }
    }

    #[test]
    fn rows_round_to_the_nearest_whole_numbers() {
        let mut x: Vec<f32> = (0..128).map(|i| ((i * 7919) % 1000) as f32 / 100.0 - 5.0).collect();
        x[64..].fill(0.0);
        let (mut values, mut scales) = ([0; 128], [0.0; 2]);
        round_rows(&x, 64, 4095, &mut values, &mut scales);
        assert_eq!(values.iter().map(|value| value.abs()).max(), Some(4095));
        for (i, x) in x.iter().enumerate() {
            let back = f32::from(values[i]) * scales[i / 64];
            assert!((back - x).abs() <= scales[i / 64] * 0.501, "{x} became {back}");
        }
    }

    #[test]
    fn a_panel_widens_to_rows() {
        let mut out = [0.0; 11];
        widen_panel(&[1, 2, 3, 4, 5, 6, 7, 8], &[1.0, 10.0], &mut out, 3);
        assert_eq!(out, [1.0, 30.0, 0.0, 2.0, 40.0, 0.0, 5.0, 70.0, 0.0, 6.0, 80.0]);
    }

    #[test]
    fn exp2_is_exact_to_two_units() {
        for i in 0..=125_000 {
            let x = -(i as f32) / 1000.0;
            let exact = f64::from(x).exp2();
            assert!((f64::from(exp2(x)) - exact).abs() <= exact * 2.4e-7, "exp2({x}) = {}", exp2(x));
        }
        assert!(exp2(-1e30) < 3e-38);
    }

    #[test]
    fn erf_is_exact_to_5e_7() {
        // The expected value is the integral that defines `erf`, computed by Simpson's rule.
        let (mut integral, step) = (0.0, 1e-3);
        let f = |t: f64| (-t * t).exp() * std::f64::consts::FRAC_2_SQRT_PI;
        for i in 0..6000 {
            let t = f64::from(i) * step;
            let x = t as f32;
            assert!((f64::from(erf(x)) - integral).abs() < 5e-7, "erf({x}) = {}, not {integral}", erf(x));
            assert_eq!(erf(-x), -erf(x));
            integral += step / 6.0 * (f(t) + 4.0 * f(t + step / 2.0) + f(t + step));
        }
    }

    #[test]
    fn softmax_sums_to_one_at_every_width() {
        for width in 1..50 {
            let mut scores: Vec<f32> =
                (0..3 * stride(width)).map(|i| ((i * 7919) % 31) as f32 - 15.0).collect();
            let before = scores.clone();
            let mut factors = [0.0; 3];
            softmax(&mut scores, width, stride(width), &mut factors);
            scale_rows(&mut scores, width, stride(width), &factors);
            for (row, before) in scores.chunks(stride(width)).zip(before.chunks(stride(width))) {
                let sum: f64 = before[..width].iter().map(|&x| f64::from(x).exp2()).sum();
                for (&weight, &x) in row.iter().zip(&before[..width]) {
                    assert!((f64::from(weight) - f64::from(x).exp2() / sum).abs() < 1e-6, "width {width}");
                }
            }
        }
    }

    #[test]
    fn layer_norm_gives_mean_and_variance() {
        let mut x: Vec<f32> = (0..384).map(|i| ((i * 31) % 97) as f32).collect();
        layer_norm(&mut x, &[2.0; 384], &[5.0; 384]);
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / 384.0;
        let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / 384.0;
        assert!((mean - 5.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4, "{mean} {variance}");
    }
}
