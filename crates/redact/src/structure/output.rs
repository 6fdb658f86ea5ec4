//! Finds the secret that a command printed. An example is the line below `op read …` in a terminal or in the record of
//! an agent's tools.

use std::ops::Range;

use super::{is_secret, line_end, members};
use crate::edges::is_word;
use crate::shape::{bare, is_hash, is_shaped, is_spoken, is_stated};

/// The maximum number of bytes of a line before the command, and of a line after it.
const LINE: usize = 400;

/// Commands that print the variable or the file that they name. All other commands in the table of rules print only
/// secrets.
const NAMED: &[&[u8]] = &[
    b"printenv ",
    b"echo $",
    b"echo \"$",
    b"echo %",
    b"cat ",
    b"terraform output",
    b"tofu output",
    b"config:get ",
    b"cut -d= -f2",
    b"secrets get ",
];

/// Returns the secret that the command at `hit` printed.
pub(crate) fn printed(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let before = text[..hit.start].iter().rev().take(LINE).position(|b| *b == b'\n');
    let start = before.map(|length| hit.start - length).or((hit.start < LINE).then_some(0))?;
    let line = start..line_end(text, hit.end, LINE).unwrap_or(text.len().min(hit.end + LINE));
    let command = &text[hit.clone()];
    if GENERAL.contains(&command) {
        return general(text, start, line.end, hit);
    }
    let named = NAMED.iter().any(|name| command.starts_with(name));
    if named && !names_secret(&text[hit.start..line.end]) {
        return None;
    }
    // A decoder prints any text, so its output must look like a secret.
    let decodes =
        command.starts_with(b"base64") && !text[line.clone()].windows(6).any(|word| word == b"secret");
    let is_secret =
        |value: &[u8]| if decodes { is_spoken(value) } else { is_stated(value) || is_wordy(value) };
    let prompt = prompt(&text[start..hit.start]);
    if prompt.is_none()
        && let Some(value) = recorded(text, hit.end..line.end)
    {
        return is_secret(&text[value.clone()]).then_some(value);
    }
    let prompt = prompt?;
    let value = below(text, line.end)?;
    let found = &text[value.clone()];
    (is_secret(found) && (prompt || is_shaped(found))).then_some(value)
}

/// Words in commands that may print a secret, and in lines that end with a colon and may precede a secret.
const GENERAL: &[&[u8]] = &[b"token", b"password", b"Password", b"secret", b"Secret", b"urandom"];

/// Returns the value below the line from `start` to `end`, which has one of the words [`GENERAL`] at `hit`. The words
/// [`GENERAL`] are ordinary, so the value must be alone on its line and look like a secret.
fn general(text: &[u8], start: usize, end: usize, hit: &Range<usize>) -> Option<Range<usize>> {
    let line = text[start..end].trim_ascii_end();
    let told = line.ends_with(b":") && line.contains(&b' ') && end - hit.end > 1;
    let value = below(text, end)?;
    // A line that begins with `#` is more often a comment than a command of an administrator.
    let lead = &text[start..hit.start];
    if !told && (lead.trim_ascii_start().starts_with(b"#") || prompt(lead) != Some(true)) {
        return None;
    }
    let found = &text[value.clone()];
    (is_spoken(found) || !told && is_hash(found) && found.len() >= 24).then_some(value)
}

/// Returns whether `command` names a variable, a file or a field that is a secret.
fn names_secret(command: &[u8]) -> bool {
    let command = &command[..command.len().min(160)];
    command
        .split(|b| !(is_word(*b) || b"-.".contains(b)))
        .any(|word| is_secret(word) || word.rsplitn(2, |b| *b == b'.').last().is_some_and(is_secret))
        || command.windows(13).any(|path| path == b"/run/secrets/")
}

/// Judges `lead`, the text before a command on its line. Returns `Some(true)` for a prompt or the name of a tool,
/// `Some(false)` if there is no text, and `None` for any other text.
fn prompt(lead: &[u8]) -> Option<bool> {
    let lead = lead.trim_ascii();
    if lead.is_empty() {
        return Some(false);
    }
    let signs = ["$ ", "# ", "> ", "% ", "❯ ", "➜ ", "λ ", "» ", "+ "];
    let with_space = [lead, b" "].concat();
    let near = &with_space[..with_space.len().min(100)];
    let prompted = signs.iter().any(|sign| {
        near.windows(sign.len()).position(|it| it == sign.as_bytes()).is_some_and(|at| {
            at == 0 || near[..at].iter().all(|b| is_word(*b) || b"@:~-./\\[]() ".contains(b) || !b.is_ascii())
        })
    });
    let tools: [&[u8]; 8] =
        [b"Bash: ", b"[Bash: ", b"Shell: ", b"bash: ", b"[bash: ", b"shell: ", b"exec: ", b"$("];
    let call = ["Bash(", "Shell(", "exec(", "Run("]
        .iter()
        .any(|tool| lead.windows(tool.len()).any(|it| it == tool.as_bytes()));
    (prompted || call || tools.iter().any(|tool| with_space.starts_with(tool))).then_some(true)
}

/// Returns the value on the line after the command whose line ends at `end`. Lines that only begin the output, such as
/// fences, `ok:` and blank lines, are skipped.
fn below(text: &[u8], end: usize) -> Option<Range<usize>> {
    let mut at = end;
    for _ in 0..4 {
        let start = at + 1;
        let end = line_end(text, start.min(text.len()), LINE)?;
        let mut line = text.get(start..end)?.trim_ascii();
        for lead in ["⎿", "|", "│"] {
            line = line.strip_prefix(lead.as_bytes()).unwrap_or(line).trim_ascii();
        }
        let label = line
            .strip_suffix(b":")
            .is_some_and(|label| label.len() < 16 && label.iter().all(u8::is_ascii_alphabetic));
        if line.is_empty() || line.starts_with(b"```") || label {
            at = end;
            continue;
        }
        if line == b"{" {
            let region = start..text.len().min(start + 4 * LINE);
            return members::value(text, &region);
        }
        if line.contains(&b' ') {
            // A value such as in `password: "…"` is found by its name.
            return None;
        }
        let from = start + text[start..end].windows(line.len()).position(|it| it == line)?;
        let mut value = bare(text, from..from + line.len());
        // A shell shows `%` after output that doesn't end its line.
        if text[value.clone()].ends_with(b"%") {
            value.end -= 1;
        }
        return Some(value);
    }
    None
}

/// Returns the output that is recorded after a command in JSON, as in `"command": "…", "output": "…"`. The command
/// ends within `rest`.
fn recorded(text: &[u8], rest: Range<usize>) -> Option<Range<usize>> {
    let quote = text[rest.clone()].windows(2).position(|pair| pair[0] == b'"' && b",}".contains(&pair[1]))?;
    let after = rest.start + quote + 1;
    let reach = &text[after..text.len().min(after + 160)];
    let label =
        ["\"output\"", "\"stdout\"", "\"result\"", "\"content\"", "\"text\"", "\"aggregated_output\""]
            .iter()
            .filter_map(|label| {
                Some(reach.windows(label.len()).position(|it| it == label.as_bytes())? + label.len())
            })
            .min()?;
    let signs = reach[label..].iter().take_while(|b| b": \n\"".contains(b)).count();
    let start = after + label + signs;
    let run = text[start..].iter().take(256).position(|b| b"\"\\\n ".contains(b))?;
    Some(start..start + run)
}

/// Returns whether `value` is a passphrase that consists only of words, such as `correct-horse-battery`.
fn is_wordy(value: &[u8]) -> bool {
    let words =
        value.split(|b| *b == b'-').filter(|word| word.len() > 2 && word.iter().all(u8::is_ascii_alphabetic));
    words.count() >= 3 && value.iter().all(|b| b.is_ascii_alphabetic() || *b == b'-')
}
