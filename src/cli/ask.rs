//! Asks the user on the terminal.

use std::io::{BufRead, IsTerminal};

use crate::cli::print;
use tiro_base::error::{Error, Result};

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
