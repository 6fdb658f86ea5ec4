//! Vectors as numbers: int8 codes and their dot products, half-precision floats and theirs.
//!
//! The loops are plain ones, compiled for several instruction sets; the best that the machine has is chosen at run time.
//! Products of codes are sums of integers, so every machine and every order gives the same.

use half::f16;
use half::slice::HalfFloatSliceExt;
use multiversion::multiversion;

/// Returns a vector as stored: half-precision floats, little-endian.
pub fn encode_f16(vector: &[f32]) -> Vec<u8> {
    let mut halves = vec![f16::ZERO; vector.len()];
    halves.convert_from_f32_slice(vector);
    halves.into_iter().flat_map(f16::to_le_bytes).collect()
}

/// Returns the vector that [`encode_f16`] stored, or `None` of an odd number of bytes.
pub fn decode_f16(bytes: &[u8]) -> Option<Vec<f32>> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let halves: Vec<f16> = pairs.iter().map(|&pair| f16::from_le_bytes(pair)).collect();
    let mut vector = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut vector);
    Some(vector)
}

/// A query in integers: 16 bits cost no more than 8 and lose nothing that matters.
pub(super) struct Query {
    codes: Vec<i16>,
    scale: f32,
}

impl Query {
    pub(super) fn new(query: &[f32]) -> Query {
        let mut codes = vec![0; query.len()];
        // A sum of products with int8 codes must fit in 32 bits.
        let longest = f32::from(i16::MAX).min((i32::MAX / 128) as f32 / query.len().max(1) as f32);
        let scale = quantize(query, longest.floor(), &mut codes, |code| code as i16);
        Query { codes, scale }
    }
}

/// Fills `codes` with `vector` over the scale that maps its largest value to `largest`, and returns that scale.
///
/// A vector that is zero or not finite becomes zeros.
pub(super) fn quantize<T>(vector: &[f32], largest: f32, codes: &mut [T], code: impl Fn(f32) -> T) -> f32 {
    let span = vector
        .iter()
        .fold(0.0, |span: f32, value| if value.is_nan() { f32::INFINITY } else { span.max(value.abs()) });
    let (scale, factor) = if span.is_normal() { (span / largest, largest / span) } else { (0.0, 0.0) };
    for (slot, value) in codes.iter_mut().zip(vector) {
        *slot = code((value * factor).round());
    }
    scale
}

/// Writes the approximate dot product of the query with each row to `scores`.
pub(super) fn score(codes: &[i8], scales: &[f32], query: &Query, scores: &mut [f32]) {
    match query.codes.as_slice().try_into() {
        Ok(fixed) => score_384(codes, scales, fixed, query.scale, scores),
        Err(_) => score_any(codes, scales, &query.codes, query.scale, scores),
    }
}

/// [`score`] for the default model's dimensions, in half the time.
///
/// The compiler unrolls a row of known length, and four places read at once keep the memory busy (a third faster at
/// 100,000 rows than one; eight gain nothing more).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2", "aarch64+neon"))]
fn score_384(codes: &[i8], scales: &[f32], query: &[i16; 384], query_scale: f32, scores: &mut [f32]) {
    let (rows, _) = codes.as_chunks::<384>();
    let quarter = rows.len() / 4;
    for place in 0..quarter {
        for row in [place, quarter + place, 2 * quarter + place, 3 * quarter + place] {
            scores[row] = sum_384(&rows[row], query) as f32 * scales[row] * query_scale;
        }
    }
    for row in 4 * quarter..rows.len() {
        scores[row] = sum_384(&rows[row], query) as f32 * scales[row] * query_scale;
    }
}

#[inline(always)]
fn sum_384(row: &[i8; 384], query: &[i16; 384]) -> i32 {
    let mut sum = 0;
    for place in 0..384 {
        sum += i32::from(row[place]) * i32::from(query[place]);
    }
    sum
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2", "aarch64+neon"))]
fn score_any(codes: &[i8], scales: &[f32], query: &[i16], query_scale: f32, scores: &mut [f32]) {
    for ((row, scale), score) in codes.chunks_exact(query.len()).zip(scales).zip(scores) {
        let sum: i32 = row.iter().zip(query).map(|(&code, &query)| i32::from(code) * i32::from(query)).sum();
        *score = sum as f32 * scale * query_scale;
    }
}

/// Returns the dot product, summed in an order that no machine changes.
pub(super) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<16>(), right.as_chunks::<16>());
    let mut sums = [0.0; 16];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..16 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}
