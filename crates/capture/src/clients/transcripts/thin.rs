//! Shortens a line that is too long to keep in memory: a line of JSON with pictures or pasted files.
//!
//! While the line is read, each long string is replaced by its beginning and its size. So the other texts of the line
//! are kept, and the line is still JSON. If the line ends too early, it can be completed, so that the part before the
//! end is still read.

/// The number of bytes that are kept of a long string.
const OF_STRING: usize = 64 * 1024;

/// The number of bytes of a long string that show whether it is prose. Encoded data has no spaces.
const LOOKED_AT: usize = 1024;

/// The deepest nesting of a line that can be completed. Arbitrary.
const DEEPEST: usize = 4096;

/// The kept part of a line that is read in pieces.
pub(super) struct Thin {
    kept: Vec<u8>,
    /// The most bytes that are kept.
    most: usize,
    in_string: bool,
    /// Whether the last byte was a backslash that begins an escape.
    is_escape: bool,
    /// The position in `kept` at which the current string begins, and the length of the string.
    begins: usize,
    length: usize,
}

impl Thin {
    /// Returns an empty line. Of the bytes that are added to the line, at most `most` are kept.
    pub(super) fn new(most: usize) -> Thin {
        Thin { kept: Vec::new(), most, in_string: false, is_escape: false, begins: 0, length: 0 }
    }

    /// Adds the next piece of the line.
    pub(super) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            if self.kept.len() >= self.most {
                return;
            }
            match (self.in_string, *byte) {
                (true, b'"') if !self.is_escape => {
                    self.end_string();
                    self.kept.push(b'"');
                    self.in_string = false;
                }
                (true, byte) => {
                    self.is_escape = byte == b'\\' && !self.is_escape;
                    if self.length < OF_STRING {
                        self.kept.push(byte);
                    }
                    self.length += 1;
                }
                (false, byte) => {
                    self.kept.push(byte);
                    if byte == b'"' {
                        (self.in_string, self.begins, self.length) = (true, self.kept.len(), 0);
                    }
                }
            }
        }
    }

    /// Returns a line that begins with `kept` and keeps nothing more.
    pub(super) fn start(kept: Vec<u8>) -> Thin {
        Thin { kept, ..Thin::new(0) }
    }

    /// Returns the part that was kept so far.
    pub(super) fn kept(&self) -> &Vec<u8> {
        &self.kept
    }

    /// Returns the kept part. It is JSON if the line was JSON and complete.
    pub(super) fn into_kept(self) -> Vec<u8> {
        self.kept
    }

    /// Ends a string. If the string was too long, shortens it and adds its size.
    fn end_string(&mut self) {
        if self.length <= OF_STRING {
            return;
        }
        let text = &self.kept[self.begins..];
        let is_prose = text[..LOOKED_AT].contains(&b' ');
        let end = if is_prose { undivided(text) } else { 0 };
        self.kept.truncate(self.begins + end);
        self.kept.extend(format!("[… {} bytes]", self.length - end).as_bytes());
    }
}

/// Returns how many bytes of a string can be kept so that the cut divides no escape and no character.
fn undivided(text: &[u8]) -> usize {
    let mut end = 0;
    while end < text.len() {
        let next = match (text[end], text.get(end + 1)) {
            (b'\\', Some(b'u')) => end + 6,
            (b'\\', _) => end + 2,
            _ => end + 1,
        };
        if next > text.len() {
            break;
        }
        end = next;
    }
    // If a character is divided, it begins in the last three bytes.
    let last = text[..end].iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
    if std::str::from_utf8(&text[last..end]).is_ok() { end } else { last }
}

/// Returns whether `text` is one whole JSON object or array. Only brackets and quotation marks are checked.
pub(super) fn is_whole(text: &[u8]) -> bool {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii();
    matches!(text.first(), Some(b'{' | b'[')) && Brackets::of(text).whole == Some(text.len())
}

/// Returns the beginning of a JSON text as valid JSON: the text is cut after its last complete value, and the open
/// brackets are closed. If the first value is complete, returns `text` unchanged. Returns `None` if no value is
/// complete.
pub(super) fn completed(text: &[u8]) -> Option<Vec<u8>> {
    let Brackets { complete, open, whole } = Brackets::of(text);
    if whole.is_some() {
        return Some(text.to_vec());
    }
    let mut kept = text[..complete.filter(|at| *at > 1)?].to_vec();
    kept.extend(open.iter().rev());
    Some(kept)
}

/// The positions at which values of a JSON text end.
#[derive(Default)]
struct Brackets {
    /// The end of the first value, if it is complete.
    whole: Option<usize>,
    /// The end of the last complete value.
    complete: Option<usize>,
    /// The closing brackets that are missing after the last complete value.
    open: Vec<u8>,
}

impl Brackets {
    fn of(text: &[u8]) -> Brackets {
        let mut found = Brackets::default();
        // The closing brackets for the values that were opened after the last complete value.
        let mut more = Vec::new();
        let (mut in_string, mut is_escape) = (false, false);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                _ if in_string => {
                    in_string = *byte != b'"' || is_escape;
                    is_escape = *byte == b'\\' && !is_escape;
                }
                b'"' => in_string = true,
                b'{' | b'[' if found.open.len() + more.len() == DEEPEST => return found,
                b'{' => more.push(b'}'),
                b'[' => more.push(b']'),
                b',' => {
                    found.open.append(&mut more);
                    found.complete = Some(at);
                }
                b'}' | b']' => {
                    found.open.append(&mut more);
                    found.open.pop();
                    found.complete = Some(at + 1);
                    if found.open.is_empty() {
                        found.whole = Some(at + 1);
                        return found;
                    }
                }
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thin(pieces: &[&[u8]]) -> String {
        let mut thin = Thin::new(1 << 20);
        pieces.iter().for_each(|piece| thin.push(piece));
        String::from_utf8(thin.into_kept()).unwrap()
    }

    #[test]
    fn long_strings_are_replaced_and_the_others_are_kept() {
        let picture = "A".repeat(OF_STRING + 1);
        let line = format!(r#"{{"a":"say \"hi\"","data":"{picture}","b":[1,"é\\"]}}"#);
        let expected = format!(r#"{{"a":"say \"hi\"","data":"[… {} bytes]","b":[1,"é\\"]}}"#, picture.len());
        assert_eq!(thin(&[line.as_bytes()]), expected);
        let (one, other) = line.as_bytes().split_at(11);
        assert_eq!(thin(&[one, other]), expected);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (end, kept) in [("é", 0), (r"\u00e9", 0), (r"\n", 0), ("zz", 1), (r"\\", 0)] {
            let text = format!("a {}{}", "x".repeat(OF_STRING - 3), end.repeat(9));
            let shown = thin(&[format!("\"{text}\"").as_bytes()]);
            let left = text.len() - (OF_STRING - 1 + kept);
            assert_eq!(shown, format!("\"{}[… {left} bytes]\"", &text[..OF_STRING - 1 + kept]));
            assert!(serde_json::from_str::<String>(&shown).is_ok(), "{end}");
        }
    }

    #[test]
    fn a_text_that_ends_too_early_is_completed() {
        for (text, expected) in [
            (r#"{"a":"x","b":[{"c":"}"},{"d":"#, r#"{"a":"x","b":[{"c":"}"}]}"#),
            (r#"{"a":[1,2"#, r#"{"a":[1]}"#),
            (r#"[{"a":1},{"b":2}"#, r#"[{"a":1},{"b":2}]"#),
        ] {
            assert_eq!(String::from_utf8(completed(text.as_bytes()).unwrap()).unwrap(), expected);
            assert!(!is_whole(text.as_bytes()) && is_whole(expected.as_bytes()));
        }
        assert_eq!(completed(br#"{"a":"x"#), None);
        assert_eq!(completed(b"x"), None);
        assert!(!is_whole(b"{}{}") && !is_whole(b"7") && is_whole(b" {\"a\":\"\\\"}\"} \n"));
    }
}
