//! Starts the user's own programs: the pager that shows long output, and the editor.
//!
//! Their commands come from the environment of the user (`Config::pager`, `Config::editor`) and are run by the shell, as
//! git does it.

#![expect(clippy::disallowed_methods, reason = "these programs are the user's own")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tiro_base::error::{Context, Error, Kind, Result};
use tiro_host::config::Config;

/// The pager that is used if the user names none: it ends at once if the text fits the screen, shows colours and leaves
/// the text on the screen.
const USUAL_PAGER: &str = "less -FRX";

/// The editor that is used if the user names none. POSIX systems have it.
const USUAL_EDITOR: &str = "vi";

/// The command of the pager. `None` if there shall be no pager.
static PAGER: OnceLock<Option<String>> = OnceLock::new();

/// Records which pager the user wants. Until then there is none.
pub fn choose_pager(config: &Config) {
    let command = match config.pager.as_deref().map(str::trim) {
        None | Some("less") => Some(USUAL_PAGER.to_owned()),
        Some("" | "cat") => None,
        Some(command) => Some(command.to_owned()),
    };
    let _ = PAGER.set(command.filter(|_| cfg!(unix)));
}

/// Shows `text` in the pager and waits until the user leaves it. Returns false if there is no pager or it can't be
/// started.
pub fn page(text: &str) -> bool {
    let Some(command) = PAGER.get().and_then(Option::as_deref) else { return false };
    let _ignored = without_interrupts();
    let started = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // The user may leave the pager before it has read everything.
        let _ = input.write_all(text.as_bytes());
    }
    // The shell reports with 127 that there is no such program.
    pager.wait().is_ok_and(|status| status.code() != Some(127))
}

/// A text that the user edited.
pub struct Written {
    /// The text.
    pub text: String,
    file: tempfile::NamedTempFile,
}

impl Written {
    /// Keeps the file with the text, and returns its path. Otherwise the file is removed.
    pub fn keep(self) -> Option<PathBuf> {
        self.file.keep().ok().map(|(_, path)| path)
    }
}

/// Opens `text` in the user's editor and returns what was saved.
///
/// # Errors
///
/// [`Kind::Io`] if the editor can't be started, or doesn't end with success; [`Kind::BadInput`] if the saved text is not
/// UTF-8. The text is then still in the file that the error names.
pub fn edit(config: &Config, text: &str) -> Result<Written> {
    let editor = config.editor.as_deref().map(str::trim).filter(|editor| !editor.is_empty());
    let editor = editor.unwrap_or(USUAL_EDITOR);
    // Only the user can read the file. It is a text, so that the editor wraps its lines.
    let file = tempfile::Builder::new().prefix("tiro-").suffix(".md").tempfile();
    let mut file = file.context(Kind::Io, || "cannot create a file for the editor".to_owned())?;
    file.write_all(text.as_bytes())
        .context(Kind::Io, || "cannot write the file for the editor".to_owned())?;
    let _ignored = without_interrupts();
    let status =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(file.path()).status();
    let status = status.context(Kind::Io, || format!("cannot start the editor `{editor}`"))?;
    if !status.success() {
        return Err(Error::new(Kind::Io, format!("the editor `{editor}` failed; nothing was changed"))
            .hint("name your editor in VISUAL or EDITOR"));
    }
    // The editor may have put another file in the place of this one, so the file is read by its path.
    let bytes = std::fs::read(file.path());
    let bytes = bytes.context(Kind::Io, || "cannot read the edited text".to_owned())?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Written { text, file }),
        Err(_) => {
            let kept = file.keep().map(|(_, path)| format!("; it is in `{}`", path.display()));
            let kept = kept.unwrap_or_default();
            Err(Error::bad_input(format!("the edited text is not UTF-8{kept}")).hint("save it as UTF-8"))
        }
    }
}

/// Keeps Ctrl-C from ending this program while another one has the terminal: the pager and the editor use it themselves.
#[cfg(unix)]
fn without_interrupts() -> Option<tokio::signal::unix::Signal> {
    tokio::runtime::Handle::try_current().ok()?;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok()
}

#[cfg(not(unix))]
fn without_interrupts() {}
