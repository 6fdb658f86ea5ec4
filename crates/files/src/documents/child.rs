//! The process that parses a document: it gives up rights, reads the document from stdin, and writes the text.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use super::{Extracted, Fault, Header, Kind, notebook, office, pdf, web, workbook};

/// The rights that a process which parses documents gave up, and what it could still do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// What holds.
    pub confinement: Confinement,
    /// What was tried, and the error code of the operating system; `None` if it was possible.
    pub refused: BTreeMap<String, Option<i32>>,
}

impl Tried {
    /// Returns what was possible.
    pub fn possible(&self) -> Vec<&str> {
        self.refused.iter().filter(|(_, code)| code.is_none()).map(|(what, _)| what.as_str()).collect()
    }
}

/// Tries what a hostile document could make the parser do, after `confinement`.
pub fn attempt(confinement: Confinement) -> Tried {
    // Errors without a code of the operating system are refusals of the standard library.
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

/// Reads a document from `input` and writes its text to `output`: first a line of JSON with the length of the text in
/// bytes and the notes, or with the fault; then the text.
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
    // The beginning of the files that Office writes for documents with a password.
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
