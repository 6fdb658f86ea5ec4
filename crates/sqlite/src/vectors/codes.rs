//! The arithmetic of vectors: dot products of int8 codes in two planes, and of half-precision floats.
//!
//! The loops are compiled for several instruction sets. The best set that the machine supports is chosen at run time. A
//! product of codes is a sum of integers, so it is the same on every machine and in every order of summing.
//!
//! A code plus 128 is stored as a byte. Each byte of a row is split into two 4-bit halves. One plane has the high
//! halves, and another plane has the low halves, four in each 16-bit word. The two planes together take as much memory
//! as whole bytes. The high plane alone gives an upper bound of a product: a low half is 7.5 plus a *remainder*, and
//! the remainders contribute little. By the Cauchy–Schwarz inequality, the remainders of a row contribute at most their
//! length times the length of the query. As a cosine, this contribution is 0.11. But if the signs of the remainders are
//! random, the remainders contribute more than six standard deviations in only one row of a billion. As a cosine with
//! 384 dimensions, six standard deviations are .035. So the bound allows for six standard deviations. With the
//! Cauchy–Schwarz bound, four to sixteen times as many rows would have to be scored. If the remainders are longer than
//! random ones, as in vectors with few distinct values, their signs may depend on the signs of the vector. In this
//! case, the Cauchy–Schwarz bound is used.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use multiversion::multiversion;

/// The number of halves of codes in a word of a plane.
const HALVES: usize = 4;

/// The mean square of a remainder, if each of the sixteen possible remainders is equally likely.
const MEAN_SQUARE: f64 = 21.25;

/// The number of standard deviations that the bound allows for the sum of the remainders.
const DEVIATIONS: f64 = 6.0;

/// Returns a vector in its stored form: little-endian half-precision floats.
pub fn encode_f16(vector: &[f32]) -> Vec<u8> {
    let mut halves = vec![f16::ZERO; vector.len()];
    halves.convert_from_f32_slice(vector);
    halves.into_iter().flat_map(f16::to_le_bytes).collect()
}

/// Returns the vector that [`encode_f16`] encoded, or `None` if the number of bytes is odd.
pub fn decode_f16(bytes: &[u8]) -> Option<Vec<f32>> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let halves: Vec<f16> = pairs.iter().map(|&pair| f16::from_le_bytes(pair)).collect();
    let mut vector = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut vector);
    Some(vector)
}

/// The codes of some rows.
#[derive(Debug)]
pub(super) struct Codes {
    dimensions: usize,
    /// The number of words of a plane in each row. Half `h` of word `w` belongs to dimension `h * words + w`.
    words: usize,
    high: Vec<u16>,
    low: Vec<u16>,
    /// For each row, the factor that turns its codes into values.
    scales: Vec<f32>,
    /// The largest squared length of the remainders of any row that is or was in this block. The length is multiplied
    /// by four, so that it is an integer.
    remainder: u32,
}

impl Codes {
    pub(super) fn with_capacity(rows: usize, dimensions: usize) -> Codes {
        let words = dimensions.div_ceil(HALVES);
        Codes {
            dimensions,
            words,
            high: Vec::with_capacity(rows * words),
            low: Vec::with_capacity(rows * words),
            scales: Vec::with_capacity(rows),
            remainder: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(super) fn push(&mut self, vector: &[f32]) {
        self.high.resize(self.high.len() + self.words, 0);
        self.low.resize(self.low.len() + self.words, 0);
        self.scales.push(0.0);
        self.set(self.len() - 1, vector);
    }

    pub(super) fn pop(&mut self) {
        self.scales.pop();
        self.high.truncate(self.len() * self.words);
        self.low.truncate(self.len() * self.words);
    }

    pub(super) fn set(&mut self, row: usize, vector: &[f32]) {
        let mut codes = vec![128; self.words * HALVES];
        self.scales[row] = quantize(vector, f32::from(i8::MAX), &mut codes, |code| (code as i16 + 128) as u8);
        let remainder =
            codes[..vector.len()].iter().map(|code| (2 * u32::from(code & 15)).abs_diff(15).pow(2)).sum();
        self.remainder = self.remainder.max(remainder);
        let words = self.words_of(row);
        for (place, (high, low)) in self.high[words.clone()].iter_mut().zip(&mut self.low[words]).enumerate()
        {
            (*high, *low) = (0, 0);
            for half in 0..HALVES {
                let code = u16::from(codes[half * self.words + place]);
                *high |= (code >> 4) << (4 * half);
                *low |= (code & 15) << (4 * half);
            }
        }
    }

    pub(super) fn copy_from(&mut self, row: usize, from: &Codes, from_row: usize) {
        let (words, from_words) = (self.words_of(row), from.words_of(from_row));
        self.high[words.clone()].copy_from_slice(&from.high[from_words.clone()]);
        self.low[words].copy_from_slice(&from.low[from_words]);
        self.scales[row] = from.scales[from_row];
        self.remainder = self.remainder.max(from.remainder);
    }

    pub(super) fn copy_within(&mut self, row: usize, from_row: usize) {
        let from_words = self.words_of(from_row);
        self.high.copy_within(from_words.clone(), row * self.words);
        self.low.copy_within(from_words, row * self.words);
        self.scales[row] = self.scales[from_row];
    }

    /// Writes to `bounds` an upper bound of the [score](Codes::score) of each row.
    pub(super) fn bound(&self, query: &Query, bounds: &mut [f32]) {
        let by_chance = 4.0 * MEAN_SQUARE * self.dimensions as f64;
        let share = match f64::from(self.remainder) < 1.4 * by_chance {
            true => (DEVIATIONS / (self.dimensions as f64).sqrt()).min(1.0),
            false => 1.0,
        };
        // The part of the bound that is the same for every row, rounded up.
        let remainders = share * (f64::from(self.remainder) * query.square).sqrt();
        let rest = ((remainders + 15.0 * f64::from(query.sum)) / 2.0).floor() as i32 + 1 - 128 * query.sum;
        match query.codes.as_slice().try_into() {
            Ok(fixed) => bound_384(&self.high, &self.scales, fixed, rest, query.scale, bounds),
            Err(_) => bound_any(&self.high, &self.scales, &query.codes, rest, query.scale, bounds),
        }
    }

    /// Returns the approximate dot product of the query with a row.
    pub(super) fn score(&self, row: usize, query: &Query) -> f32 {
        let (high, low) = (&self.high[self.words_of(row)], &self.low[self.words_of(row)]);
        let sum = match (high.try_into(), low.try_into(), query.codes.as_slice().try_into()) {
            (Ok(high), Ok(low), Ok(query)) => whole_384(high, low, query),
            _ => 16 * sum_any(high, &query.codes) + sum_any(low, &query.codes),
        };
        (sum - 128 * query.sum) as f32 * self.scales[row] * query.scale
    }

    fn words_of(&self, row: usize) -> Range<usize> {
        row * self.words..(row + 1) * self.words
    }
}

/// A query as integers of up to 15 bits. Integers of 15 bits take no more time than integers of 8 bits, and lose no
/// relevant precision.
pub(super) struct Query {
    /// One code for each dimension of a row, padded with zeros after the last dimension.
    codes: Vec<i16>,
    scale: f32,
    sum: i32,
    /// The sum of the squares of the codes.
    square: f64,
}

impl Query {
    pub(super) fn new(query: &[f32]) -> Query {
        let mut codes = vec![0; query.len().next_multiple_of(HALVES)];
        // A sum of products with bytes must fit in 32 bits.
        let largest = f32::from(i16::MAX).min((i32::MAX / 256) as f32 / codes.len().max(1) as f32);
        let scale = quantize(query, largest.floor(), &mut codes, |code| code as i16);
        let sum = codes.iter().map(|&code| i32::from(code)).sum();
        let square = codes.iter().map(|&code| f64::from(code).powi(2)).sum();
        Query { codes, scale, sum, square }
    }
}

/// Fills `codes` with `vector`, divided by the scale that maps its largest value to `largest`. Returns this scale.
///
/// A vector that is zero or not finite becomes zeros.
fn quantize<T>(vector: &[f32], largest: f32, codes: &mut [T], code: impl Fn(f32) -> T) -> f32 {
    let span = vector
        .iter()
        .fold(0.0, |span: f32, value| if value.is_nan() { f32::INFINITY } else { span.max(value.abs()) });
    let (scale, factor) = if span.is_normal() { (span / largest, largest / span) } else { (0.0, 0.0) };
    for (slot, value) in codes.iter_mut().zip(vector) {
        *slot = code((value * factor).round());
    }
    scale
}

/// Like `bound_any`, but only for the default model's 384 dimensions, and in a quarter of the time.
///
/// The compiler unrolls the loop over a row of known length. Reading alternately at four places uses the memory better:
/// with 100,000 rows, it is a sixth faster than reading at one place.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2", "aarch64+neon"))]
fn bound_384(high: &[u16], scales: &[f32], query: &[i16; 384], rest: i32, scale: f32, bounds: &mut [f32]) {
    let (rows, _) = high.as_chunks::<96>();
    let quarter = rows.len() / 4;
    for place in 0..quarter {
        for row in [place, quarter + place, 2 * quarter + place, 3 * quarter + place] {
            bounds[row] = (16 * sum_384(&rows[row], query) + rest) as f32 * scales[row] * scale;
        }
    }
    for row in 4 * quarter..rows.len() {
        bounds[row] = (16 * sum_384(&rows[row], query) + rest) as f32 * scales[row] * scale;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2", "aarch64+neon"))]
fn bound_any(high: &[u16], scales: &[f32], query: &[i16], rest: i32, scale: f32, bounds: &mut [f32]) {
    for ((row, row_scale), bound) in high.chunks_exact(query.len() / HALVES).zip(scales).zip(bounds) {
        *bound = (16 * sum_any(row, query) + rest) as f32 * row_scale * scale;
    }
}

/// Returns the sum of the products of a row's bytes with the query.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2", "aarch64+neon"))]
fn whole_384(high: &[u16; 96], low: &[u16; 96], query: &[i16; 384]) -> i32 {
    16 * sum_384(high, query) + sum_384(low, query)
}

/// Returns the sum of the products of a row's halves with the query.
///
/// Each 4-bit half is multiplied as a 16-bit integer, which is the width of the word that contains it. So no number
/// must be widened, and one instruction adds pairs of products.
#[inline(always)]
fn sum_384(words: &[u16; 96], query: &[i16; 384]) -> i32 {
    let mut sum = 0;
    for place in 0..96 {
        for half in 0..HALVES {
            let value = (words[place] >> (4 * half) & 15) as i16;
            sum += i32::from(value) * i32::from(query[96 * half + place]);
        }
    }
    sum
}

#[inline(always)]
fn sum_any(words: &[u16], query: &[i16]) -> i32 {
    let mut sum = 0;
    for (half, query) in query.chunks_exact(words.len()).enumerate() {
        for (word, &code) in words.iter().zip(query) {
            sum += i32::from((word >> (4 * half) & 15) as i16) * i32::from(code);
        }
    }
    sum
}

/// Returns the dot product, summed in the same order on every machine.
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
