//! Asks the user on the terminal.

use std::io::{BufRead, IsTerminal, Read};

use crate::cli::print;
use tiro_base::error::{Context, Error, Kind, Result};

/// Asks a yes-or-no question on the terminal. An empty answer means `default`. Errors if there is no terminal.
pub fn confirmed(question: &str, default: bool) -> Result<bool> {
    let answer = answer(&format!("{question} {}", if default { "[Y/n]" } else { "[y/N]" }))?;
    Ok(if answer.is_empty() { default } else { matches!(answer.as_str(), "y" | "yes") })
}

/// Asks on the terminal and returns the answer in lower case. The end of the input counts as `no`.
pub fn answer(question: &str) -> Result<String> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::bad_input("no terminal to ask on")
            .hint("pass `--yes`, or `--dry-run` to see what would be written"));
    }
    print::aside(&format!("{question} "));
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer).unwrap_or_default() {
        0 => Ok("no".into()),
        _ => Ok(answer.trim().to_lowercase()),
    }
}

/// The longest secret that is read, in bytes. Arbitrary.
const LONGEST_SECRET: u64 = 4096;

/// Reads a secret: a line of stdin. On a terminal, asks for it, and shows nothing of what is typed.
pub fn secret(question: &str) -> Result<String> {
    let stdin = std::io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal {
        print::aside(&format!("{question} "));
    }
    let mut line = String::new();
    let read = {
        let _silent = is_terminal.then(Silent::begin);
        stdin.lock().take(LONGEST_SECRET).read_line(&mut line)
    };
    if is_terminal {
        print::aside("\n");
    }
    read.context(Kind::Io, || "cannot read the secret".to_owned())?;
    Ok(line.trim().to_owned())
}

/// The terminal shows nothing of what is typed until this value is dropped.
#[cfg(unix)]
struct Silent(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Silent {
    fn begin() -> Silent {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(&stdin, OptionalActions::Flush, &silent);
        }
        Silent(before)
    }
}

#[cfg(unix)]
impl Drop for Silent {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, before);
        }
    }
}

/// Elsewhere, the terminal shows what is typed.
#[cfg(not(unix))]
struct Silent;

#[cfg(not(unix))]
impl Silent {
    fn begin() -> Silent {
        Silent
    }
}
