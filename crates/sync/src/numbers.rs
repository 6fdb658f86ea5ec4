//! Vectors as text: base64 of numbers with 16 bits, the lowest byte first.
//!
//! A vector of a text has length 1, so that 16 bits are enough: the cosine of two vectors changes by less than 0.001.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use half::f16;

/// The most numbers of a vector. Arbitrary: models have at most 4,096.
const MOST: usize = 8192;

/// How far the length of a vector may be from 1. Arbitrary: rounding to 16 bits changes it by less than 0.001.
const TOLERANCE: f32 = 0.02;

/// Returns the text of a vector.
pub(crate) fn write(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()).collect();
    STANDARD_NO_PAD.encode(bytes)
}

/// Reads a vector. Returns `None` unless its numbers are finite and its length is 1.
pub(crate) fn read(text: &str) -> Option<Vec<f32>> {
    if text.is_empty() || text.len() > MOST * 3 {
        return None;
    }
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > MOST {
        return None;
    }
    let vector: Vec<f32> = pairs.iter().map(|pair| f16::from_le_bytes(*pair).to_f32()).collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    // A number that isn't finite makes the length so, too.
    (length.is_finite() && (length - 1.0).abs() <= TOLERANCE).then_some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_keeps_its_direction() {
        let raw: Vec<f32> = (0..384).map(|place| ((place * 37 % 101) as f32 - 50.0) / 50.0).collect();
        let length = raw.iter().map(|number| number * number).sum::<f32>().sqrt();
        let vector: Vec<f32> = raw.iter().map(|number| number / length).collect();
        let again = read(&write(&vector)).unwrap();
        let cosine: f32 = vector.iter().zip(&again).map(|(a, b)| a * b).sum();
        assert!((cosine - 1.0).abs() < 0.001, "{cosine}");
    }

    #[test]
    fn what_is_no_vector_of_length_one_is_refused() {
        for vector in [&[][..], &[0.0, 0.0], &[1.0, 1.0], &[f32::NAN, 1.0], &[f32::INFINITY], &[0.5]] {
            assert_eq!(read(&write(vector)), None, "{vector:?}");
        }
        assert_eq!(read(&write(&[0.6, -0.8])).map(|vector| vector.len()), Some(2));
        for text in ["", "A", "AA", "AAAA AAAA", "not base64!", "ADw=", "ADwA"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"A".repeat(4 * MOST)), None);
    }
}
