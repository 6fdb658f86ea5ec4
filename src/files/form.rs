//! Whether a file is text, a document, or neither.

use std::io::Read;
use std::path::Path;

use super::documents::Kind;
use super::names;
use super::policy::Opened;
use super::refusal::Refusal;
use super::{Form, Limits};

/// How many bytes of a file are looked at.
const LOOKED_AT: usize = 8 * 1024;

/// The largest share of bytes that are not UTF-8 in a file that is taken for text, as one in so many. Arbitrary: in text
/// of European languages, about one byte in twenty is an accented letter.
const ODD: usize = 4;

/// Returns what kind of file it is. Of a file of text, only the beginning is read. Web pages and notebooks are documents
/// only if they were named, because in a folder they are source code.
///
/// # Errors
///
/// [`Refusal::TooLarge`], [`Refusal::Binary`] and the refusals of reading.
pub(super) fn of(opened: &Opened, path: &Path, is_named: bool, limits: &Limits) -> Result<Form, Refusal> {
    let size = opened.stat.size;
    let within = |most: u64| if size > most { Err(Refusal::TooLarge(most)) } else { Ok(()) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(kind) = Kind::of_name(&name).filter(|kind| is_named || !kind.is_source()) {
        return within(limits.document_bytes).map(|()| Form::Document(kind));
    }
    if names::is_binary(&name) {
        return Err(Refusal::Binary);
    }
    within(limits.file_bytes)?;
    let mut start = Vec::new();
    let read = (&opened.file).take(LOOKED_AT as u64).read_to_end(&mut start);
    read.map_err(|error| Refusal::of(&error))?;
    match is_text(&start) {
        true => Ok(Form::Text),
        false => Err(Refusal::Binary),
    }
}

/// Returns how a file is read that was read before under this name.
pub(super) fn of_name(path: &Path, is_named: bool) -> Form {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = Kind::of_name(&name).filter(|kind| is_named || !kind.is_source());
    kind.map_or(Form::Text, Form::Document)
}

/// Returns whether a file that begins with `start` is text in some encoding.
fn is_text(start: &[u8]) -> bool {
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let odd: usize = start.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    !start.contains(&0) && odd * ODD <= start.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_data() {
        for (start, expected) in [
            (&b""[..], true),
            (b"plain", true),
            ("naïve 日本語".as_bytes(), true),
            (b"na\xefve caf\xe9 in Latin-1", true),
            (b"\xff\xfeh\0i\0", true),
            (b"\x7fELF\x02\x01\x01\0", false),
            (b"\x89\x90\xff\xfa\x93abc", false),
        ] {
            assert_eq!(is_text(start), expected, "{start:?}");
        }
    }
}
