//! Finds keys whose last bytes are a checksum of the other bytes.

use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::edges::{is_word, starts_word};

/// Returns the run of bytes that begins at `start` and for which `kind` is true. Returns `None` if the length of the
/// run is outside of `length` (the minimum and the maximum), or if a byte of a word is directly before or after the
/// run.
fn alone(text: &[u8], start: usize, length: [usize; 2], kind: impl Fn(u8) -> bool) -> Option<Range<usize>> {
    if !starts_word(text, start) {
        return None;
    }
    let run = text[start..].iter().take(length[1] + 1).take_while(|b| kind(**b)).count();
    let whole = (length[0]..=length[1]).contains(&run) && !text.get(start + run).is_some_and(|b| is_word(*b));
    whole.then_some(start..start + run)
}

/// Returns the NATS seed that begins at `start`. A seed is the base32 of a prefix, 32 bytes, and the CRC-16 of both.
pub(crate) fn nats_seed(text: &[u8], start: usize) -> Option<Range<usize>> {
    let seed = alone(text, start, [58, 58], |b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b))?;
    let mut bytes = Vec::with_capacity(36);
    let (mut bits, mut held) = (0u32, 0);
    for &byte in &text[seed.clone()] {
        bits = bits << 5 | u32::from(if byte.is_ascii_uppercase() { byte - b'A' } else { byte - b'2' + 26 });
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    (crc16(&bytes[..34]).to_le_bytes() == bytes[34..36]).then_some(seed)
}

/// Returns the CRC-16/XMODEM of `bytes`.
pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc >> 15 == 1 { 0x1021 } else { 0 })
    })
}

/// Returns the wallet key that begins at `start`. A wallet key is base58, and its last four decoded bytes are a
/// checksum: the first bytes of the hash of the other bytes.
pub(crate) fn wallet_key(text: &[u8], start: usize) -> Option<Range<usize>> {
    let key = alone(text, start, [51, 58], |b| {
        b.is_ascii_alphanumeric() && !matches!(b, b'0' | b'I' | b'O' | b'l')
    })?;
    let bytes = base58(&text[key.clone()])?;
    let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    (Sha256::digest(Sha256::digest(body))[..4] == *checksum).then_some(key)
}

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

fn base58(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text {
        let mut carry = BASE58.iter().position(|b| b == byte)?;
        for place in bytes.iter_mut().rev() {
            carry += usize::from(*place) * 58;
            *place = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.insert(0, carry as u8);
        }
    }
    Some(bytes)
}
