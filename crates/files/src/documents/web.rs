//! Extracts the text of web pages.

use html2text::config;

use super::{Extracted, Fault, Note, Text};
use tiro_base::encoding;

/// The width at which lines are broken. Arbitrary.
const WIDTH: usize = 120;

/// Returns the text of a page, with its headings, lists and tables as plain text. Scripts and styles are left out.
pub(super) fn text(bytes: &[u8]) -> Result<Extracted, Fault> {
    let page_text = encoding::text(bytes.to_vec()).map_err(|_| Fault::Malformed)?;
    let page = config::plain().link_footnotes(false).allow_width_overflow();
    let read = page.string_from_read(page_text.text.as_bytes(), WIDTH).map_err(|_| Fault::Malformed)?;
    let mut text = Text::default();
    text.push(&read)?;
    Ok(Extracted { text: text.0, notes: page_text.from.map(Note::Converted).into_iter().collect() })
}
