//! Extracts the text of PDF documents, page by page.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{Document, PlainTextOutput, output_doc_page};

use super::{Extracted, Fault, Note, Text};

/// Returns the text of a document.
pub(super) fn text(bytes: &[u8]) -> Result<Extracted, Fault> {
    let mut document = Document::load_mem(bytes).map_err(|_| Fault::Malformed)?;
    if document.is_encrypted() {
        // Most encrypted documents only restrict printing, and open with an empty password.
        document.decrypt("").map_err(|_| Fault::Encrypted)?;
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let mut text = Text::default();
    let (mut empty, mut unreadable) = (0, 0);
    for page in &pages {
        // The parser panics at unknown fonts. Other pages may not have such fonts, so they are still read.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut text = String::new();
            output_doc_page(&document, &mut PlainTextOutput::new(&mut text), *page).map(|()| text)
        }));
        match read {
            Ok(Ok(read)) if read.trim().is_empty() => empty += 1,
            Ok(Ok(read)) => {
                text.begin(&format!("page {page}"))?;
                push_lines(&mut text, &read)?;
            }
            _ => unreadable += 1,
        }
    }
    if empty + unreadable == pages.len() {
        return Err(if unreadable > 0 { Fault::Malformed } else { Fault::NoText });
    }
    let mut notes = vec![Note::Pages(pages.len())];
    notes.extend((unreadable > 0).then_some(Note::PagesLeftOut(unreadable)));
    notes.extend((empty > 0).then_some(Note::EmptyPages(empty)));
    Ok(Extracted { text: text.0, notes })
}

/// Adds the lines of a page, without the empty lines that the parser puts between lines.
fn push_lines(text: &mut Text, page: &str) -> Result<(), Fault> {
    let lines = page.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.into_iter().try_for_each(|line| text.push(line).and_then(|()| text.push("\n")))
}
