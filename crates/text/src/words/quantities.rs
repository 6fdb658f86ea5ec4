//! Quantities such as `8MB`, which are also written `8 MB`.

/// The maximum number of letters of a unit, as `mbps` has.
const LONGEST_UNIT: usize = 4;

/// Returns the number and the unit of `word` if it consists of digits and a few letters after them.
pub fn quantity(word: &str) -> Option<(&str, &str)> {
    let (number, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit())?);
    let is_unit = unit.chars().all(char::is_alphabetic) && unit.chars().nth(LONGEST_UNIT).is_none();
    (!number.is_empty() && is_unit).then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_digits_before_its_unit() {
        assert_eq!(quantity("8MB"), Some(("8", "MB")));
        assert_eq!(quantity("250µs"), Some(("250", "µs")));
        for word in ["8", "MB", "x86", "8MB2", "3letters", ""] {
            assert_eq!(quantity(word), None, "{word}");
        }
    }
}
