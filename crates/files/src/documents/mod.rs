//! Extracts the text of documents: PDF files, office documents, web pages and notebooks.
//!
//! The parsers of such formats are large, and a document may be made to crash them, to run forever or to fill the
//! memory. So this process never parses a document itself. For each document, it starts its own program as a second
//! process with an empty environment (`process.rs`). The second process first gives up the rights to open files and to
//! use much memory and time (`confinement.rs`). After that, the second process reads the document from stdin and writes
//! the text to stdout (`child.rs`). If the second process fails in any way, the document is refused, in bounded time.
//! Extracted texts are kept in memory for later calls (`kept.rs`).
//!
//! Layout, formulas, images and hidden data are not extracted. Notes say what is missing from the text.

mod child;
mod confinement;
mod kept;
mod notebook;
mod office;
mod pdf;
mod process;
mod web;
mod workbook;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use child::{attempt, serve};
pub use confinement::{Confinement, confine};
pub use process::Extractor;

use tiro_base::encoding::Encoding;
use tiro_base::humanize::{self, counted};
use tiro_base::memory::words;

/// The maximum time for extracting the text of a document. The maximum applies both to the processor time and to the
/// elapsed time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The maximum address space of the parsing process, in bytes.
const MEMORY: u64 = 1 << 30;

/// The longest text, in bytes. No model has a context for a longer text.
const LONGEST: usize = 8_000_000;

words! {
    /// The format of a document.
    Kind {
        /// Portable Document Format.
        Pdf = "pdf",
        /// A text of Word.
        Docx = "docx",
        /// Slides of PowerPoint.
        Pptx = "pptx",
        /// A workbook of Excel.
        Xlsx = "xlsx",
        /// A text of LibreOffice.
        Odt = "odt",
        /// A web page.
        Html = "html",
        /// A Jupyter notebook.
        Notebook = "ipynb",
    }
}

impl Kind {
    /// Returns the format of the file called `name`, by its extension.
    pub(super) fn of_name(name: &str) -> Option<Kind> {
        match name.rsplit_once('.')?.1.to_lowercase().as_str() {
            "htm" | "xhtml" => Some(Kind::Html),
            "docm" => Some(Kind::Docx),
            "pptm" => Some(Kind::Pptx),
            "xlsm" => Some(Kind::Xlsx),
            extension => Kind::parse(extension),
        }
    }

    /// Returns whether files of this format are text themselves, so that people may want to see the source.
    pub(super) fn is_source(self) -> bool {
        matches!(self, Kind::Html | Kind::Notebook)
    }

    /// Returns its name with an article.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Kind::Pdf => "a PDF document",
            Kind::Docx => "a Word document",
            Kind::Pptx => "a PowerPoint presentation",
            Kind::Xlsx => "an Excel workbook",
            Kind::Odt => "an OpenDocument text",
            Kind::Html => "a web page",
            Kind::Notebook => "a notebook",
        }
    }
}

/// The reason why the text of a document could not be extracted. `Display` completes "is a PDF document …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// It does not follow the format.
    Malformed,
    /// A password is needed.
    Encrypted,
    /// It has no text.
    NoText,
    /// The text of the document is longer than the maximum.
    TooLong,
    /// It took too long.
    TimedOut,
    /// The parser crashed, or needed more memory than it gets.
    Crashed,
    /// The program could not be started as a second process.
    NotStarted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Malformed => "that is damaged or of an unknown variant",
            Fault::Encrypted => "that is encrypted",
            Fault::NoText => "without text",
            Fault::TooLong => "with more than 8 MB of text",
            Fault::TimedOut => "whose text could not be extracted within 20 s",
            Fault::Crashed => {
                "whose text could not be extracted: the parser crashed or needed more than 1 GB"
            }
            Fault::NotStarted => {
                "whose text could not be extracted: the process that parses it cannot be started"
            }
        })
    }
}

/// A note about an extracted text, for example about missing parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// The text was in this encoding and was converted to UTF-8.
    Converted(Encoding),
    /// How many bytes of damaged UTF-8 were replaced by `U+FFFD`.
    Replaced(usize),
    /// The pages of the document.
    Pages(usize),
    /// The pages whose text could not be extracted.
    PagesLeftOut(usize),
    /// The pages without text, such as scanned ones.
    EmptyPages(usize),
    /// The slides of the presentation.
    Slides(usize),
    /// The sheets of the workbook.
    Sheets(usize),
    /// Images that the text does not show.
    ImagesLeftOut(usize),
    /// Speaker notes that the text does not show.
    SpeakerNotesLeftOut,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = |count: usize, one: &str, several: &str| {
            let are = if count == 1 { "is" } else { "are" };
            format!("{} {are} left out", counted(count as u64, one, several))
        };
        f.write_str(&match *self {
            Note::Converted(encoding) => format!("converted from {encoding}"),
            Note::Replaced(count) => {
                let are =
                    if count == 1 { "byte that is not UTF-8 is" } else { "bytes that are not UTF-8 are" };
                format!("{} {are} shown as U+FFFD", humanize::thousands(count as u64))
            }
            Note::Pages(count) => counted(count as u64, "page", "pages"),
            Note::PagesLeftOut(count) => left_out(count, "unreadable page", "unreadable pages"),
            Note::EmptyPages(count) => counted(count as u64, "page without text", "pages without text"),
            Note::Slides(count) => counted(count as u64, "slide", "slides"),
            Note::Sheets(count) => counted(count as u64, "sheet", "sheets"),
            Note::ImagesLeftOut(count) => left_out(count, "image", "images"),
            Note::SpeakerNotesLeftOut => "the speaker notes are left out".to_owned(),
        })
    }
}

/// The text of a document, with notes about missing parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extracted {
    /// The text.
    pub text: String,
    /// The notes about the text.
    pub notes: Vec<Note>,
}

/// The line of JSON that the parsing process writes before the text. The line has the length of the text in bytes, and
/// the notes.
type Header = Result<(usize, Vec<Note>), Fault>;

/// A text of limited length.
#[derive(Default)]
struct Text(String);

impl Text {
    fn push(&mut self, text: &str) -> Result<(), Fault> {
        if self.0.len() + text.len() > LONGEST {
            return Err(Fault::TooLong);
        }
        self.0.push_str(text);
        Ok(())
    }

    /// Begins a part such as a page.
    fn begin(&mut self, title: &str) -> Result<(), Fault> {
        let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.0.truncate(self.0.trim_end().len());
        let gap = if self.0.is_empty() { "" } else { "\n\n" };
        self.push(&format!("{gap}--- {title} ---\n"))
    }

    /// Removes `last` if the text ends with it.
    fn drop_last(&mut self, last: char) {
        if self.0.ends_with(last) {
            self.0.pop();
        }
    }
}
