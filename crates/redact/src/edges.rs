//! Judges the bytes that precede and follow a token.

/// Returns whether `byte` is an ASCII letter, digit or `_`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether a token may begin at `at`: at the beginning of the text, after a byte that doesn't belong to a
/// word, or after an escape such as `\n`.
pub(super) fn starts_word(text: &[u8], at: usize) -> bool {
    if at == 0 || !is_word(text[at - 1]) {
        return true;
    }
    let back = |n: usize| at.checked_sub(n).map_or(0, |place| text[place]);
    let hex = |n: usize| (1..=n).all(|place| back(place).is_ascii_hexdigit());
    let escaped = back(2) == b'\\' && b"nrtbfv0".contains(&back(1));
    let percent = back(3) == b'%' && hex(2);
    let unicode =
        back(6) == b'\\' && back(5) == b'u' && hex(4) || back(4) == b'\\' && back(3) == b'x' && hex(2);
    let colour = back(1) == b'm' && {
        let parameters =
            text[..at - 1].iter().rev().take(8).take_while(|b| b.is_ascii_digit() || **b == b';');
        back(2 + parameters.count()) == b'['
    };
    escaped || percent || unicode || colour
}

/// Returns whether a part of a name begins at `start`: after a byte that is neither letter nor digit, at a capital
/// that doesn't follow a capital, or where a token may begin.
pub(super) fn begins_part(text: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).map(|at| text[at]) else { return true };
    !before.is_ascii_alphanumeric()
        || text[start].is_ascii_uppercase() && !before.is_ascii_uppercase()
        || starts_word(text, start)
}
