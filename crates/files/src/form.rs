//! Finds out whether a file is text, a document, or neither.

use std::io::Read;
use std::path::Path;

use super::documents::Kind;
use super::names;
use super::policy::Opened;
use super::refusal::Refusal;
use super::{Form, Limits};
use tiro_base::encoding;

/// The number of bytes of a file that are examined.
const LOOKED_AT: usize = 8 * 1024;

/// Returns the form of a file. Only the beginning of a text file is read. Web pages and notebooks count as documents
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
    match encoding::may_be_text(&start, start.len() < LOOKED_AT) {
        true => Ok(Form::Text),
        false => Err(Refusal::Binary),
    }
}

/// Returns the form of a file by its name. The file was read before, so it is known to be readable.
pub(super) fn of_name(path: &Path, is_named: bool) -> Form {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = Kind::of_name(&name).filter(|kind| is_named || !kind.is_source());
    kind.map_or(Form::Text, Form::Document)
}
