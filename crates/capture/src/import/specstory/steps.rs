//! Reads the steps of a message of the assistant: texts, and calls of tools.

use super::blocks::{RESULT, attribute};
use super::edits;
use crate::import::evidence::{WrittenFile, by_command, commits};
use crate::import::gist;
use tiro_base::memory::Role;

/// What old versions write before the path of a file that the assistant read.
const READ: &str = "Read file: ";

/// The names of the tools that read such a file, and that ran a command.
const READER: &str = "read_file";
const SHELL: &str = "run_terminal_cmd";

/// What exports write before the name of a tool.
const CALL: &str = "Tool use: **";

/// The maximum number of bytes of a tool's name.
const LONGEST_TOOL: usize = 100;

/// Parts of the names of tools that run commands, and of those that only read.
const SHELLS: [&str; 5] = ["terminal", "shell", "bash", "exec_command", "run_command"];
const READERS: [&str; 8] = ["read", "grep", "search", "list", "glob", "fetch", "lint", "todo"];

/// A step of a message.
pub(super) struct Step {
    /// Whose it is.
    pub role: Role,
    /// The name of the tool, if it is a call.
    pub speaker: Option<String>,
    /// What was said, or the call with an excerpt of its output.
    pub text: String,
    /// What the call changed.
    pub work: Work,
}

impl Step {
    /// Returns what somebody said.
    pub fn said(role: Role, text: String) -> Step {
        Step { role, speaker: None, text, work: Work::default() }
    }

    /// Reads a call that is no block, such as `Tool use: **run_terminal_cmd**` before the command and its output.
    fn call(part: &str) -> Option<Step> {
        let (line, output) = part.split_once('\n').unwrap_or((part, ""));
        Some(Step::of(tool(line)?, output))
    }

    /// Returns the call of a tool. `output` is the rest of the export's text about it.
    fn of(name: &str, output: &str) -> Step {
        let has = |words: &[&str]| words.iter().any(|word| name.to_lowercase().contains(word));
        let work = match (has(&SHELLS), has(&READERS)) {
            (true, _) => ran(output),
            (false, true) => Work::default(),
            (false, false) => (edits::written(output), None),
        };
        let text = format!("{name}\n{}", gist::excerpt(output.trim(), gist::EXCERPT));
        Step { role: Role::Tool, speaker: Some(name.to_owned()), text, work }
    }

    /// Reads a command that the oldest versions show without a name: a block of it, and a block of its output.
    fn command(part: &str) -> Option<Step> {
        let (_, rest) = part.strip_prefix("```bash\n")?.split_once("\n```")?;
        let output = rest.trim_start().strip_prefix("```\n")?;
        let (_, after) = output.split_once("\n```").unwrap_or_default();
        after.trim().is_empty().then(|| Step::of(SHELL, part))
    }
}

/// Returns the name of the tool in a line such as `Tool use: **write**`. Some versions write what the call is for, or a path,
/// after the name.
fn tool(line: &str) -> Option<&str> {
    let (name, _) = line.trim().strip_prefix(CALL)?.split_once("**")?;
    (!name.is_empty() && name.len() <= LONGEST_TOOL).then_some(name)
}

/// Divides a text before a block from the line at its end that names the tool of the block.
pub(super) fn labelled(text: &str) -> (&str, Option<String>) {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    match tool(line) {
        Some(name) => (text.trim_end().strip_suffix(line).unwrap_or(text), Some(name.to_owned())),
        None => (text, None),
    }
}

/// The files that a call changed, and the ids of the commits that it made; `None` if it made no commit.
pub(super) type Work = (Vec<WrittenFile>, Option<Vec<String>>);

/// The kinds of tools in the attribute `data-tool-type` that neither change files nor make commits.
const READING: [&str; 3] = ["read", "search", "task"];

/// Returns what a call changed.
pub(super) fn work(call: &str) -> Work {
    let kind = attribute(call, "data-tool-type").unwrap_or_default();
    if READING.contains(&kind.as_str()) {
        return Work::default();
    }
    if kind == "shell" {
        return ran(call);
    }
    (edits::written(call), None)
}

/// Returns what a command changed. The command is in the first fenced block, and its output in the second; or it is marked
/// as code, and its output follows a label or is in the first fenced block.
fn ran(call: &str) -> Work {
    let outputs = [RESULT, "\nError:\n", "\n```text\n"];
    let end = outputs.iter().filter_map(|output| call.find(output)).min().unwrap_or(call.len());
    let asked = &call[..end];
    let code = asked.find('`').map_or("", |at| &asked[at..]);
    let commands = match code.strip_prefix("```") {
        Some(block) => {
            block.split("```").next().and_then(|block| block.split_once('\n')).map(|(_, command)| command)
        }
        None => code.split('`').nth(1),
    };
    let commands = commands.unwrap_or_default();
    (by_command(commands), commits(commands, call))
}

/// Returns the steps of an assistant: texts, calls, and the files that were read. A line `---` between two texts is a part
/// of the answer; nothing between two such lines is a step that the export leaves out.
pub(super) fn steps(text: &str) -> Vec<Step> {
    let (mut parts, mut is_code) = (vec![String::new()], false);
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        match line.trim_end() == "---" && !is_code {
            true => parts.push(String::new()),
            false => parts.last_mut().into_iter().for_each(|part| part.push_str(line)),
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for part in parts {
        let part = part.trim();
        // Some versions write this where something is missing.
        let part = if ["undefined", "Read file: undefined"].contains(&part) { "" } else { part };
        if let Some(call) = Step::call(part).or_else(|| Step::command(part)) {
            steps.push(call);
            goes_on = false;
            continue;
        }
        let is_reading = !part.is_empty() && part.lines().all(|line| line.starts_with(READ));
        let (role, speaker) = match is_reading {
            true => (Role::Tool, Some(READER.to_owned())),
            false => (Role::Assistant, None),
        };
        let joint = if is_reading { "\n" } else { "\n\n---\n\n" };
        let is_same =
            |last: &&mut Step| last.role == role && (goes_on || is_reading) && last.speaker == speaker;
        match steps.last_mut().filter(is_same) {
            Some(last) if !part.is_empty() => {
                last.text.push_str(joint);
                last.text.push_str(part);
            }
            _ if !part.is_empty() => steps.push(Step { speaker, ..Step::said(role, part.to_owned()) }),
            _ => {}
        }
        goes_on = !part.is_empty();
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a command used to be read as the command.
    #[test]
    fn a_command_writes_files_and_its_output_does_not() {
        let paths = |call: &str| -> Vec<String> { ran(call).0.into_iter().map(|file| file.path).collect() };
        let inline = |command: &str, output: &str| {
            format!("<summary>Bash</summary>\n`{command}`\n\n```text\n{output}\n```\n")
        };
        assert!(paths(&inline("git status", "renamed: a.rs -> src/b.rs\ncat > c.rs")).is_empty());
        assert_eq!(paths(&inline("echo x > src/a.rs", "rm b.rs")), ["src/a.rs"]);
        let fenced = "<summary>Bash</summary>\n```bash\ncat > src/a.rs <<'EOF'\nfn tighten_by_quarter() {}\nEOF\n```\n\n```\nrm b.rs\n```\n";
        let (written, _) = ran(fenced);
        assert_eq!((written[0].path.as_str(), written[0].lines.len(), written.len()), ("src/a.rs", 1, 1));
    }
}
