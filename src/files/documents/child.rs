//! The process that parses a document: it gives up rights, reads the document from stdin, and writes the text.

use std::io::{self, Read, Write};

use super::{Extracted, Fault, Header, Kind, notebook, office, pdf, web, workbook};

/// Gives up what parsing does not need: more than some memory and time, opening and writing files, starting processes
/// and threads. It cannot be taken back, so it is for a process that only parses.
///
/// On Linux all of this holds. On other Unix systems the memory may stay unlimited. On Windows nothing is given up, and
/// only the time is limited, by the process that waits.
///
/// # Errors
///
/// The errors of the operating system.
pub fn confine() -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let seconds = super::PATIENCE.as_secs();
        let limits = [
            (Resource::Core, 0),
            // What is open stays open. No other file, and no connection, can be opened, not even in place of these.
            (Resource::Nofile, 0),
            (Resource::Fsize, 0),
            (Resource::Nproc, 0),
            (Resource::Cpu, seconds),
            (Resource::As, super::MEMORY),
        ];
        for (resource, most) in limits {
            // A second after the soft limit, the hard one ends a process that ignores the signal.
            let hard = if matches!(resource, Resource::Cpu) { most + 1 } else { most };
            let set = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(hard) });
            if cfg!(target_os = "linux") {
                set?;
            }
        }
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
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
    // What Office stores when a document has a password.
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
