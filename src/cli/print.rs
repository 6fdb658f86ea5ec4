//! Prints answers, errors, usage and logs in such a way that stored text can't control the terminal.
//!
//! Control characters and characters that hide text are written as escapes. In JSON, these escapes are JSON's own.
//! Errors, usage messages and log lines are also redacted, and each is written as one line. A
//! [`terminal`](super::terminal) page needs no further escaping, because the only terminal codes in it come from its
//! styles.
//!
//! With `--json`, an error is one line of JSON on stderr: an object with `error` and an optional `hint`. Stdout then
//! stays empty, so that a program can't mistake an error for an answer.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::error::{ContextKind, ContextValue};
use serde::Serialize;
use serde_json::json;

use super::flags;
use super::programs;
use super::terminal::{Page, Screen, Span, Style};
use tiro_base::envelope;
use tiro_base::error::{Context, Error, Kind, Result, cleaned, quoted};

/// The width in columns that is assumed for a terminal that doesn't report its width.
const USUAL_WIDTH: usize = 80;

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal unless NO_COLOR or CLICOLOR=0 is set, and elsewhere if CLICOLOR_FORCE is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Applies this choice to all further output.
    pub fn choose(self) {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

/// The form in which answers are printed.
#[derive(Clone, Copy)]
pub struct Out {
    /// As JSON instead of text.
    pub json: bool,
}

impl Out {
    /// Prints an answer as JSON, or as `text`. Envelopes in `text` are removed, because only models need them.
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

    /// Prints an answer as JSON, or as the page that `page` makes for the screen.
    pub fn view(self, answer: &impl Serialize, page: impl FnOnce(Screen) -> Page) -> Result<ExitCode> {
        match self.json {
            true => {
                self.line(&serde_json::to_string_pretty(answer).expect("answers are plain values"))?;
            }
            false => show(&page(screen()).render())?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a line. A closed pipe is not an error.
    pub fn line(self, line: &str) -> Result<()> {
        let line = if self.json { envelope::in_json(line) } else { envelope::escape(line) };
        written(writeln!(io::stdout(), "{line}"))
    }
}

/// Prints `text`, in the pager if stdout is a terminal with fewer rows.
fn show(text: &str) -> Result<()> {
    let stdout = io::stdout();
    let rows = terminal_size::terminal_size_of(&stdout)
        .filter(|_| stdout.is_terminal() && io::stdin().is_terminal());
    let is_long =
        rows.is_some_and(|(_, terminal_size::Height(rows))| text.lines().count() >= usize::from(rows));
    if is_long && programs::page(text) {
        return Ok(());
    }
    written(write!(io::stdout(), "{text}"))
}

fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context(Kind::Io, || "cannot print".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns whether stdout is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether stdout shows colours.
pub fn is_coloured() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Returns the screen of stdout.
fn screen() -> Screen {
    let stdout = io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = terminal_size::terminal_size_of(&stdout);
        size.map_or(USUAL_WIDTH, |(terminal_size::Width(width), _)| usize::from(width))
    });
    Screen { width, colour: is_coloured() }
}

/// Prints a piece of an arriving answer on stdout, with control characters escaped. A closed pipe is not an error.
pub fn piece(text: &str) {
    let _ = write!(io::stdout(), "{}", envelope::escape(text)).and_then(|()| io::stdout().flush());
}

/// Prints `text` on stderr, with control characters escaped.
pub fn aside(text: &str) {
    let _ = write!(io::stderr(), "{}", envelope::escape(text)).and_then(|()| io::stderr().flush());
}

/// Prints `text` on stderr like [`aside`]. On a terminal, lines are wrapped to its width, and headings are coloured:
/// lines at the margin that don't end a sentence.
pub fn explain(text: &str) {
    let stderr = io::stderr();
    let size = terminal_size::terminal_size_of(&stderr).filter(|_| stderr.is_terminal());
    let width = size.map(|(terminal_size::Width(width), _)| usize::from(width));
    let mut page = Page::new(Screen { width, colour: AutoStream::choice(&stderr) != ColorChoice::Never }, 0);
    for line in text.lines() {
        let is_heading = !line.starts_with(' ') && !line.ends_with(['.', ':']);
        match line.strip_prefix("  ").and_then(|item| item.split_once(' ')) {
            _ if is_heading => page.line(0, [Span::new(Style::Strong, line)]),
            Some((verb, rest)) if !verb.is_empty() => {
                page.line(2, [Span::new(Style::Name, verb), Span::new(Style::Plain, format!(" {rest}"))])
            }
            _ => page.text(0, Style::Plain, line),
        }
    }
    let _ = write!(io::stderr(), "{}", page.render()).and_then(|()| io::stderr().flush());
}

/// Prints an error of `command` and its hint as text or JSON. Names of arguments become flags, and names of tools
/// become subcommands.
pub fn failure(error: &Error, command: Option<&clap::Command>, out: Out) {
    error.log();
    let translated = |text: &str| command.map_or(text.to_owned(), |command| flags::named(command, text));
    failed(&translated(&error.to_string()), error.way_out().map(translated).as_deref(), out);
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
    // Long errors are wrapped by the terminal and not here, so that they can be copied as one line.
    let screen = Screen { width: None, colour: AutoStream::choice(&io::stderr()) != ColorChoice::Never };
    let mut page = Page::new(screen, 0);
    let lines = [("error:", Style::Warning, Some(error)), ("hint:", Style::Strong, hint)];
    for (word, style, text) in lines {
        // An error may have several lines. `error:` or `hint:` is put only before the first line.
        let mut lines = text.into_iter().flat_map(str::lines);
        if let Some(first) = lines.next() {
            page.line(0, [Span::new(style, word), Span::new(Style::Plain, format!(" {first}"))]);
        }
        lines.for_each(|line| page.line(0, [Span::new(Style::Plain, line)]));
    }
    let _ = write!(io::stderr(), "{}", page.render()).and_then(|()| io::stderr().flush());
}

/// Prints help or an error of usage, and returns clap's exit code.
///
/// clap's messages repeat the arguments, which may contain a secret. So the arguments are quoted and redacted as in
/// other errors.
pub fn usage(mut error: clap::Error, out: Out) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        // A closed pipe is not an error.
        let _ = error.print();
        return code;
    }
    let typed = [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    for kind in typed {
        let Some(ContextValue::String(value)) = error.get(kind) else { continue };
        let shown = quoted(value);
        if shown != *value {
            error.insert(kind, ContextValue::String(shown));
            // clap's suggestion would repeat the argument.
            error.remove(ContextKind::Suggested);
        }
    }
    let lines: Vec<String> = error.render().to_string().lines().map(cleaned).collect();
    if out.json {
        // clap's text has three kinds of paragraphs: the error, suggestions, and the usage.
        let mut parts = lines.split(String::is_empty).map(|part| part.join("\n"));
        let message = parts.next().unwrap_or_default();
        let hint = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        failed(message, Some(hint.as_str()).filter(|hint| !hint.is_empty()), out);
        return code;
    }
    lines.iter().for_each(|line| aside(&format!("{line}\n")));
    code
}

/// Starts logging to stderr. Each event that `filter` admits becomes one redacted line.
pub fn log(filter: &str) {
    // The libraries for MCP and for providers log whole requests, which contain texts of memories.
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{filter},rmcp=off,{}", tiro_llm::QUIET))
        .unwrap_or_else(|_| "warn".into());
    // Tests call this function several times in one process. Only the first subscriber is kept.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(false)
        .without_time()
        .try_init();
}

/// Writes each event of the log as one redacted line. Each event arrives in a single call of `write`.
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
