//! Extracts the text of Word documents, PowerPoint presentations and OpenDocument texts. All these documents are
//! archives of XML files.
//!
//! The XML is read as a stream. Entities that a document defines are not expanded, so they can't multiply.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, Read};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use zip::ZipArchive;

use super::{Extracted, Fault, Note, Text};

/// The size of the largest file that is read from an archive, in bytes. Arbitrary: the XML of a text is about ten times
/// as long as the text, so this is enough for about 25 MB of text.
const LARGEST: u64 = 256 << 20;

/// The maximum number of files of a kind that are read from an archive. Arbitrary.
const MOST: usize = 10_000;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The elements of a format that have text, and the elements that have none.
struct Format {
    /// Elements whose characters are text.
    text: &'static [&'static str],
    /// Elements after which a line ends.
    paragraphs: &'static [&'static str],
    /// Elements that are left out with everything in them.
    hidden: &'static [&'static str],
}

/// The elements of Word and PowerPoint. `Fallback` is hidden because it repeats a text for old programs, and `pPr` and
/// `tabLst` are hidden because a `tab` in them is a position, not a tab character.
const OFFICE: Format = Format { text: &["t"], paragraphs: &["p"], hidden: &["Fallback", "pPr", "tabLst"] };

const OPEN_DOCUMENT: Format = Format {
    text: &["p", "h"],
    paragraphs: &["p", "h"],
    hidden: &["annotation", "automatic-styles", "tracked-changes"],
};

/// Returns the text of a Word document, with its footnotes and endnotes.
pub(super) fn docx(bytes: &[u8]) -> Result<Extracted, Fault> {
    let mut archive = open(bytes)?;
    let mut text = Text::default();
    part(&mut archive, "word/document.xml", &OFFICE, &mut text)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if archive.index_for_name(notes).is_some() {
            part(&mut archive, notes, &OFFICE, &mut text)?;
        }
    }
    Ok(Extracted { notes: images(&archive, "word/media/"), text: text.0 })
}

/// Returns the text of a presentation, slide by slide.
pub(super) fn pptx(bytes: &[u8]) -> Result<Extracted, Fault> {
    let mut archive = open(bytes)?;
    let number = |name: &str| -> Option<usize> {
        name.strip_prefix("ppt/slides/slide")?.strip_suffix(".xml")?.parse().ok()
    };
    let mut slides: Vec<usize> = names(&archive).filter_map(|name| number(&name)).take(MOST).collect();
    slides.sort_unstable();
    let mut text = Text::default();
    for slide in &slides {
        text.begin(&format!("slide {slide}"))?;
        part(&mut archive, &format!("ppt/slides/slide{slide}.xml"), &OFFICE, &mut text)?;
    }
    let mut notes = vec![Note::Slides(slides.len())];
    notes.extend(images(&archive, "ppt/media/"));
    let has_notes = names(&archive).any(|name| name.starts_with("ppt/notesSlides/"));
    notes.extend(has_notes.then_some(Note::SpeakerNotesLeftOut));
    match slides.is_empty() {
        true => Err(Fault::Malformed),
        false => Ok(Extracted { text: text.0, notes }),
    }
}

/// Returns the text of an OpenDocument text.
pub(super) fn odt(bytes: &[u8]) -> Result<Extracted, Fault> {
    let mut archive = open(bytes)?;
    let mut text = Text::default();
    part(&mut archive, "content.xml", &OPEN_DOCUMENT, &mut text)?;
    Ok(Extracted { notes: images(&archive, "Pictures/"), text: text.0 })
}

fn open(bytes: &[u8]) -> Result<Archive<'_>, Fault> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|_| Fault::Malformed)
}

/// Returns the valid file names of the archive.
fn names<'a>(archive: &'a Archive<'_>) -> impl Iterator<Item = Cow<'a, str>> {
    archive.file_names().flatten()
}

fn images(archive: &Archive<'_>, folder: &str) -> Vec<Note> {
    let images = names(archive).filter(|name| name.starts_with(folder) && !name.ends_with('/')).count();
    (images > 0).then_some(Note::ImagesLeftOut(images)).into_iter().collect()
}

/// Adds the text of one file of the archive.
fn part(archive: &mut Archive<'_>, name: &str, format: &Format, text: &mut Text) -> Result<(), Fault> {
    let file = archive.by_name(name).map_err(|_| Fault::Malformed)?;
    let mut limited = file.take(LARGEST);
    read(BufReader::new(&mut limited), format, text)?;
    match limited.limit() {
        0 => Err(Fault::TooLong),
        _ => Ok(()),
    }
}

fn read(source: impl BufRead, format: &Format, text: &mut Text) -> Result<(), Fault> {
    let mut reader = Reader::from_reader(source);
    let mut buffer = Vec::new();
    // How many elements with text are open, and how many hidden elements are open.
    let (mut texts, mut hidden) = (0_usize, 0_usize);
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(|_| Fault::Malformed)?;
        match event {
            Event::Eof => return Ok(()),
            Event::Start(start) => {
                let name = start.local_name().into_inner();
                if hidden > 0 || format.hidden.contains(&name) {
                    hidden += 1;
                    continue;
                }
                texts += usize::from(format.text.contains(&name));
                mark(&start, text)?;
            }
            Event::Empty(start) if hidden == 0 => {
                let name = start.local_name().into_inner();
                mark(&start, text)?;
                if format.paragraphs.contains(&name) {
                    text.push("\n")?;
                }
            }
            Event::End(_) if hidden > 0 => hidden -= 1,
            Event::End(end) => {
                let name = end.local_name().into_inner();
                texts = texts.saturating_sub(usize::from(format.text.contains(&name)));
                close(name, format, text)?;
            }
            Event::Text(characters) if texts > 0 && hidden == 0 => {
                text.push(&characters.xml_content(XmlVersion::Implicit1_0))?;
            }
            Event::CData(characters) if texts > 0 && hidden == 0 => {
                text.push(&characters.xml_content(XmlVersion::Implicit1_0))?;
            }
            Event::GeneralRef(reference) if texts > 0 && hidden == 0 => {
                let named = match &*reference.xml_content(XmlVersion::Implicit1_0) {
                    "amp" => Some('&'),
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "apos" => Some('\''),
                    "quot" => Some('"'),
                    _ => reference.resolve_char_ref().map_err(|_| Fault::Malformed)?,
                };
                if let Some(character) = named {
                    text.push(character.encode_utf8(&mut [0; 4]))?;
                }
            }
            _ => {}
        }
    }
}

/// Adds the spaces, tabs and line feeds that the beginning of an element stands for.
fn mark(start: &BytesStart<'_>, text: &mut Text) -> Result<(), Fault> {
    match start.local_name().into_inner() {
        "tab" => text.push("\t"),
        "br" | "cr" | "line-break" => text.push("\n"),
        "noBreakHyphen" => text.push("-"),
        "s" => {
            let count = start.try_get_attribute("text:c").ok().flatten();
            let count = count.and_then(|count| count.value.parse::<usize>().ok()).unwrap_or(1);
            text.push(&" ".repeat(count.min(1000)))
        }
        _ => Ok(()),
    }
}

/// Adds the separators that the end of an element stands for. The cells of a row of a table become one line.
fn close(name: &str, format: &Format, text: &mut Text) -> Result<(), Fault> {
    match name {
        "tc" | "table-cell" => {
            text.drop_last('\n');
            text.push("\t")
        }
        "tr" | "table-row" => {
            text.drop_last('\t');
            text.push("\n")
        }
        name if format.paragraphs.contains(&name) => text.push("\n"),
        _ => Ok(()),
    }
}
