//! Printing: nothing that came from outside commands the terminal, whatever is printed and wherever it goes.
//!
//! Answers, errors, usage and logs leave through here. Control characters and characters that hide text are written out, in
//! JSON as JSON writes them; errors, usage and logs lose their secrets as well, and each is one line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use serde::Serialize;

use super::flags;
use crate::envelope;
use crate::error::{Context, Error, Kind, Result, cleaned, quoted};

/// How answers are printed.
#[derive(Clone, Copy)]
pub struct Out {
    /// As JSON rather than in words.
    pub json: bool,
}

impl Out {
    /// Prints an answer: as JSON, or in words.
    pub fn answer(self, answer: &impl Serialize, text: &str) -> Result<ExitCode> {
        let line = match self.json {
            true => serde_json::to_string_pretty(answer).expect("answers are plain values"),
            false => text.to_owned(),
        };
        self.line(&line)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a line; a reader that went away is no error.
    pub fn line(self, line: &str) -> Result<()> {
        let line = if self.json { envelope::in_json(line) } else { envelope::escape(line) };
        match writeln!(io::stdout(), "{line}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context(Kind::Io, || "cannot print".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Shows `text` on stderr, as it stands but for what would command the terminal.
pub fn aside(text: &str) {
    let _ = write!(io::stderr(), "{}", envelope::escape(text)).and_then(|()| io::stderr().flush());
}

/// Prints what went wrong with `command` and what to try, in the words of the command line.
pub fn failure(error: &Error, command: Option<&clap::Command>) {
    error.log();
    let told = |text: &str| command.map_or(text.to_owned(), |command| flags::named(command, text));
    aside(&format!("error: {}\n", told(&error.to_string())));
    if let Some(hint) = error.way_out() {
        aside(&format!("hint: {}\n", told(hint)));
    }
}

/// Prints help, or what is wrong with the usage, and returns the exit code that clap has for it.
///
/// clap repeats what was typed, which may be a secret in a wrong place: it is quoted as in any other error.
pub fn usage(mut error: clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        // A reader that went away is no error.
        let _ = error.print();
        return code;
    }
    let typed = [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    for kind in typed {
        let Some(ContextValue::String(value)) = error.get(kind) else { continue };
        let shown = quoted(value);
        if shown != *value {
            error.insert(kind, ContextValue::String(shown));
            // It says how to pass what was typed as a value, and repeats it.
            error.remove(ContextKind::Suggested);
        }
    }
    for line in error.render().to_string().lines() {
        aside(&format!("{}\n", cleaned(line)));
    }
    code
}

/// Logs to stderr what `filter` lets through, an event a line, without secrets.
pub fn log(filter: &str) {
    // The protocol library logs whole requests, and with them the text of memories; so do those that ask models.
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{filter},rmcp=off,{}", crate::llm::QUIET))
        .unwrap_or_else(|_| "warn".into());
    // A second subscriber in one process, as in tests, is no error.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(false)
        .without_time()
        .try_init();
}

/// Writes each event of the log, which comes in one piece, as one clean line.
struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        writeln!(io::stderr(), "{}", cleaned(String::from_utf8_lossy(event).trim_end()))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
