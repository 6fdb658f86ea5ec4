//! The process that parses a document. The process gives up rights, reads the document from stdin, and writes the text.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use super::{Extracted, Fault, Header, Kind, notebook, office, pdf, web, workbook};

/// The result of a test in the parsing process: the rights that it gave up, and the actions that were still possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The confinement of the process.
    pub confinement: Confinement,
    /// Each action that was tried, with the error code of the operating system; `None` if the action was possible.
    pub refused: BTreeMap<String, Option<i32>>,
}

impl Tried {
    /// Returns the actions that were possible.
    pub fn possible(&self) -> Vec<&str> {
        self.refused.iter().filter(|(_, code)| code.is_none()).map(|(what, _)| what.as_str()).collect()
    }
}

/// Tries actions that a hostile document could make the parser do. `confinement` says what already confines this
/// process.
pub fn attempt(confinement: Confinement) -> Tried {
    // Errors without an error code of the operating system come from the standard library, and count as refusals.
    let code = |error: io::Error| error.raw_os_error().unwrap_or_default();
    let mut refused = BTreeMap::new();
    let mut tried = |what: &str, done: io::Result<()>| refused.insert(what.to_owned(), done.err().map(code));
    tried("open a file", std::fs::File::open("/").map(drop));
    tried("open a connection", std::net::UdpSocket::bind(("127.0.0.1", 0)).map(drop));
    tried("start a thread or a process", std::thread::Builder::new().spawn(|| ()).map(drop));
    let most = usize::try_from(super::MEMORY).unwrap_or(usize::MAX);
    let memory = Vec::<u8>::new().try_reserve_exact(most);
    tried("take more memory", memory.map_err(|_| io::ErrorKind::OutOfMemory.into()));
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let more = Some(super::MEMORY * 2);
        let raised = setrlimit(Resource::As, Rlimit { current: more, maximum: more });
        tried("raise its limits", raised.map_err(io::Error::from));
    }
    Tried { confinement, refused }
}

/// Reads a document from `input` and writes its text to `output`. First it writes a line of JSON. If the text was
/// extracted, this line has the length of the text in bytes and the notes, and the text follows. Otherwise the line has
/// the fault.
///
/// # Errors
///
/// The errors of reading and writing.
pub fn serve(kind: Kind, mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let (header, text): (Header, _) = match extract(kind, &bytes) {
        Ok(Extracted { text, notes }) => (Ok((text.len(), notes)), text),
        Err(fault) => (Err(fault), String::new()),
    };
    serde_json::to_writer(&mut output, &header)?;
    output.write_all(b"\n")?;
    output.write_all(text.as_bytes())?;
    output.flush()
}

pub(super) fn extract(kind: Kind, bytes: &[u8]) -> Result<Extracted, Fault> {
    // Files that Office writes for documents with a password begin with these bytes.
    const COMPOUND: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];
    let extracted = match kind {
        Kind::Docx | Kind::Pptx | Kind::Xlsx if bytes.starts_with(COMPOUND) => Err(Fault::Encrypted),
        Kind::Pdf => pdf::text(bytes),
        Kind::Docx => office::docx(bytes),
        Kind::Pptx => office::pptx(bytes),
        Kind::Odt => office::odt(bytes),
        Kind::Xlsx => workbook::text(bytes),
        Kind::Html => web::text(bytes),
        Kind::Notebook => notebook::text(bytes),
    }?;
    match extracted.text.trim().is_empty() {
        true => Err(Fault::NoText),
        false => Ok(extracted),
    }
}
