//! Emoji and other pictures, which the tokenizer of the index reads as separators of words.
//!
//! So the hash of each picture is stored in the index as an additional word, as the exact form of an identifier is.

/// Returns the pictures of `text`, in order. Of a picture that consists of several characters, returns each picture
/// among them, without its variant or colour of skin.
pub fn signs(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| is_sign(*c))
}

/// Returns whether `c` is in one of the blocks of pictures: Miscellaneous Technical, Enclosed Alphanumerics, Geometric
/// Shapes to Dingbats, arrows with stars, and the pictographs of the supplementary plane
/// ([Unicode blocks](https://www.unicode.org/Public/UCD/latest/ucd/Blocks.txt)).
fn is_sign(c: char) -> bool {
    let is_picture = matches!(u32::from(c),
        0x2190..=0x21ff | 0x2300..=0x23ff | 0x25a0..=0x27bf | 0x2b00..=0x2bff | 0x1f000..=0x1faff);
    let is_skin = matches!(u32::from(c), 0x1f3fb..=0x1f3ff);
    is_picture && !is_skin && !c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_without_their_variants() {
        let found = |text: &str| signs(text).collect::<String>();
        assert_eq!(found("⚠\u{fe0f} never, ⚠ 👍\u{1f3fd}"), "⚠⚠👍");
        assert_eq!(found("👩\u{200d}🚀 → ✓"), "👩🚀→✓");
        assert_eq!(found("plain größe 书 ½ λ ─│ — «»"), "");
    }
}
