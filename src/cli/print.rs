//! Printing: nothing that came from outside commands the terminal, whatever is printed and wherever it goes.
//!
//! Answers, errors, usage and logs leave through here. Control characters and characters that hide text are written out, in
//! JSON as JSON writes them; errors, usage and logs lose their secrets as well, and each is one line. A page for people
//! ([`terminal`](super::terminal)) is clean already: the only codes in it are those of its own styles.
//!
//! With `--json` an error is JSON too: one line on stderr, an object with `error` and, where there is one, `hint`. Stdout
//! stays empty then, so that nobody takes an error for an answer.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::error::{ContextKind, ContextValue};
use serde::Serialize;
use serde_json::json;

use super::flags;
use super::terminal::{Page, Screen, Span, Style};
use crate::envelope;
use crate::error::{Context, Error, Kind, Result, cleaned, quoted};

/// Columns of a terminal that doesn't say how many it has.
const USUAL_WIDTH: usize = 80;

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set; elsewhere where CLICOLOR_FORCE is.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Lets it hold for all that is printed from now on.
    pub fn choose(self) {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

/// How answers are printed.
#[derive(Clone, Copy)]
pub struct Out {
    /// As JSON rather than in words.
    pub json: bool,
}

impl Out {
    /// Prints an answer: as JSON, or in words, without the envelopes that are for models.
    pub fn answer(self, answer: &impl Serialize, text: &str) -> Result<ExitCode> {
        self.view(answer, |screen| {
            let mut page = Page::new(screen, 0);
            for line in envelope::within(text) {
                match line.strip_prefix("Note: ") {
                    _ if line.trim().is_empty() => page.line(0, []),
                    Some(_) => page.text(0, Style::Plain, &flags::without_tools(line)),
                    None => page.text(0, Style::Plain, line),
                }
            }
            page
        })
    }

    /// Prints an answer: as JSON, or as the page that `page` makes of it for the screen it is shown on.
    pub fn view(self, answer: &impl Serialize, page: impl FnOnce(Screen) -> Page) -> Result<ExitCode> {
        match self.json {
            true => {
                self.line(&serde_json::to_string_pretty(answer).expect("answers are plain values"))?;
            }
            false => written(write!(io::stdout(), "{}", page(screen()).render()))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a line; a reader that went away is no error.
    pub fn line(self, line: &str) -> Result<()> {
        let line = if self.json { envelope::in_json(line) } else { envelope::escape(line) };
        written(writeln!(io::stdout(), "{line}"))
    }
}

fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context(Kind::Io, || "cannot print".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns what stdout is shown on.
fn screen() -> Screen {
    let stdout = io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = terminal_size::terminal_size_of(&stdout);
        size.map_or(USUAL_WIDTH, |(terminal_size::Width(width), _)| usize::from(width))
    });
    Screen { width, colour: AutoStream::choice(&stdout) != ColorChoice::Never }
}

/// Shows `text` on stderr, as it stands but for what would command the terminal.
pub fn aside(text: &str) {
    let _ = write!(io::stderr(), "{}", envelope::escape(text)).and_then(|()| io::stderr().flush());
}

/// Prints what went wrong with `command` and what to try, in the words of the command line, or as JSON.
pub fn failure(error: &Error, command: Option<&clap::Command>, out: Out) {
    error.log();
    let told = |text: &str| command.map_or(text.to_owned(), |command| flags::named(command, text));
    failed(&told(&error.to_string()), error.way_out().map(told).as_deref(), out);
}

/// Prints an error and its hint on stderr.
fn failed(error: &str, hint: Option<&str>, out: Out) {
    if out.json {
        let mut object = json!({ "error": error });
        if let Some(hint) = hint {
            object["hint"] = hint.into();
        }
        let _ = writeln!(io::stderr(), "{}", envelope::in_json(&object.to_string()));
        return;
    }
    // A terminal breaks long lines of errors itself, so that they can be copied whole.
    let screen = Screen { width: None, colour: AutoStream::choice(&io::stderr()) != ColorChoice::Never };
    let mut page = Page::new(screen, 0);
    let lines = [("error:", Style::Warning, Some(error)), ("hint:", Style::Strong, hint)];
    for (word, style, text) in lines {
        // Some errors have several lines; the word stands before the first.
        let mut lines = text.into_iter().flat_map(str::lines);
        if let Some(first) = lines.next() {
            page.line(0, [Span::new(style, word), Span::new(Style::Plain, format!(" {first}"))]);
        }
        lines.for_each(|line| page.line(0, [Span::new(Style::Plain, line)]));
    }
    let _ = write!(io::stderr(), "{}", page.render()).and_then(|()| io::stderr().flush());
}

/// Prints help, or what is wrong with the usage, and returns the exit code that clap has for it.
///
/// clap repeats what was typed, which may be a secret in a wrong place: it is quoted as in any other error.
pub fn usage(mut error: clap::Error, out: Out) -> ExitCode {
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
    let lines: Vec<String> = error.render().to_string().lines().map(cleaned).collect();
    if out.json {
        // What clap says has paragraphs: what is wrong, what might be meant, how it is used.
        let mut parts = lines.split(String::is_empty).map(|part| part.join("\n"));
        let said = parts.next().unwrap_or_default();
        let hint = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        let said = said.strip_prefix("error: ").unwrap_or(&said);
        failed(said, Some(hint.as_str()).filter(|hint| !hint.is_empty()), out);
        return code;
    }
    lines.iter().for_each(|line| aside(&format!("{line}\n")));
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
