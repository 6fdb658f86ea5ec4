//! Finds what the user typed in a message of Claude Code, which also has what the client added.

use std::borrow::Cow;

use super::clean::{only_blocks, without_blocks};
use tiro_text::blocks;

/// The names of the tags that make up a message that runs a command.
const COMMANDS: [&str; 6] = [
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "bash-input",
    "local-command-caveat",
];

/// The beginning of the line that the client writes when the user interrupts it.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Returns the part of a user message that the user wrote: the client's additions are removed, and commands are
/// returned as the user typed them. Only a message that consists entirely of tags is a command. Any other message may
/// be about these tags.
pub(super) fn written(text: Cow<'_, str>) -> Cow<'_, str> {
    let blocks = only_blocks(&text, &COMMANDS).unwrap_or_default();
    let inner = |name: &str| blocks.iter().find(|(each, inner)| *each == name && !inner.is_empty());
    if let Some((_, name)) = inner("command-name") {
        let arguments = inner("command-args").map_or("", |(_, arguments)| arguments);
        return Cow::Owned(format!("/{} {arguments}", name.trim_start_matches('/')).trim_end().to_owned());
    }
    if let Some((_, command)) = inner("bash-input") {
        return Cow::Owned(format!("! {command}"));
    }
    let text = without_blocks(text, &blocks::ADDED);
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    if line.starts_with(INTERRUPTED) && line.ends_with(']') {
        return Cow::Owned(text.trim_start()[line.len()..].to_owned());
    }
    text
}
