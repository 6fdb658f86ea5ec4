//! Formats counts, numbers and lists for people and models.

use std::fmt::Display;

use crate::error::quoted;

/// Returns a count with its noun, singular or plural: `1 memory`, `2 memories`.
pub fn counted<N: Copy + PartialEq + From<u8> + Display>(count: N, one: &str, several: &str) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { several })
}

/// Returns a number with commas between its thousands: `1,204`.
pub fn thousands(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().map_or(0_u64, |number| number).to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Lists the first few of `items`, and says how many more there are.
pub fn some(items: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text =
        items.iter().take(SHOWN).map(|item| format!("`{}`", quoted(item))).collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN {
        text += &format!(" and {} more", items.len() - SHOWN);
    }
    text
}
/// Returns `count` as a number of bytes for people: `1 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{} kB", count / 1_000),
        _ => format!("{} MB", count / 1_000_000),
    }
}
