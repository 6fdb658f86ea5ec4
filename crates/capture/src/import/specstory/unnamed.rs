//! Finds the files that calls may have changed whose paths an export leaves out.
//!
//! Old exports of Cursor show neither the path nor the text of a new file, some of Copilot show the text alone. The file is
//! mostly named nearby: in what the assistant says or runs, or by a call that read it.

use std::collections::{BTreeSet, HashSet};

use crate::import::evidence::WrittenFile;
use crate::import::messages::Said;
use tiro_base::memory::Role;

/// The tools that write whole files.
const WRITERS: [&str; 5] = ["write", "create_file", "edit_file", "write_file", "write_to_file"];

/// The tools of which the command is read for names of files.
const SHELLS: [&str; 2] = ["run_terminal_cmd", "run_in_terminal"];

/// The maximum numbers of files that are kept for one call: for one whose text is known, and for one that made new files.
const MOST_FILES: usize = 8;
const MOST_NEW_FILES: usize = 32;

/// The maximum number of bytes of a name or a path.
const LONGEST_NAME: usize = 500;

/// Finds the likely files of the calls that changed a file without a path.
///
/// A call whose text is known changed one of the files that its session named so far, or that its answer names. Which one
/// it was shows later, by the lines. If nothing but the call is known, it made a new file: one that its answer names, and
/// no call before. Of several such calls in one answer, the first gets all these files.
pub(super) fn add(said: &mut [Said]) {
    // The files that calls named, the last one last, and their names without folders.
    let (mut known, mut names_of_known): (Vec<String>, HashSet<String>) = Default::default();
    let mut from = 0;
    while from < said.len() {
        let is_user = |said: &Said| said.role == Role::User;
        let to = said[from + 1..].iter().position(is_user).map_or(said.len(), |at| from + 1 + at);
        let names: BTreeSet<String> = said[from..to].iter().filter_map(own_text).flat_map(names).collect();
        let mut is_first = true;
        for said in &mut said[from..to] {
            let unnamed = said.written.iter().position(|written| written.path.is_empty());
            let (lines, likely): (_, Vec<String>) = if let Some(at) = unnamed {
                let lines = said.written.remove(at).lines;
                let most = if lines.is_empty() { 0 } else { MOST_FILES };
                (lines, known.iter().rev().chain(&names).take(most).cloned().collect())
            } else if is_first && is_new(said) {
                is_first = false;
                let is_other = |name: &&String| !names_of_known.contains(last(name));
                (Vec::new(), names.iter().filter(is_other).take(MOST_NEW_FILES).cloned().collect())
            } else {
                for path in touched(said) {
                    names_of_known.insert(last(&path).to_owned());
                    if !known.iter().rev().take(MOST_FILES).any(|recent| *recent == path) {
                        known.push(path);
                    }
                }
                continue;
            };
            said.likely = likely.into_iter().map(|path| WrittenFile { path, lines: lines.clone() }).collect();
        }
        from = to;
    }
}

/// Returns whether a call wrote a file of which nothing is known.
fn is_new(said: &Said) -> bool {
    let is_writer = said.speaker.as_deref().is_some_and(|name| WRITERS.contains(&name));
    said.role == Role::Tool && is_writer && said.written.is_empty()
}

/// Returns the files that a call names: those that it changed, or the one that it read.
fn touched(said: &Said) -> Vec<String> {
    let written = said.written.iter().map(|written| written.path.clone());
    if said.role != Role::Tool {
        return Vec::new();
    }
    // `Read file: a.rs`, or `Reading [](file:///w/a.rs#1-1), lines 1 to 81`.
    let read = said.text.lines().take(2).find_map(|line| {
        let path = line.split_once("Read file: ").map(|(_, path)| path);
        let link = || line.split_once("](file://").and_then(|(_, rest)| rest.split([')', '#']).next());
        path.or_else(link).map(|path| path.trim().to_owned())
    });
    written.chain(read).filter(|path| !path.is_empty() && path.len() <= LONGEST_NAME).collect()
}

/// Returns what the assistant says or runs, without what programs print.
fn own_text(said: &Said) -> Option<&str> {
    let is_shell = said.speaker.as_deref().is_some_and(|name| SHELLS.contains(&name));
    match said.role {
        Role::Assistant => Some(&said.text),
        Role::Tool if is_shell => said.text.split("```").nth(1),
        _ => None,
    }
}

/// Returns the words of a text that may be names of files.
fn names(text: &str) -> impl Iterator<Item = String> {
    let is_between = |c: char| c.is_whitespace() || "`'\"*()[]{}<>,;:|=".contains(c);
    let words = text.split(is_between).map(|word| word.trim_end_matches(['.', '!', '?']));
    let named = words.filter(|word| {
        let has_mark = word.contains(['.', '/']) || word.ends_with("file");
        has_mark && word.len() > 3 && word.len() <= LONGEST_NAME && !word.ends_with('/')
    });
    named.map(str::to_owned)
}

/// Returns a name of a file without its folders.
pub(super) fn last(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// Returns whether a path ends with a name of a file, with or without folders.
pub(super) fn is_end(path: &str, name: &str) -> bool {
    let name = name.trim_start_matches("./");
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_path_gets_the_names_in_its_answer() {
        let said = |role, speaker: Option<&str>, text: &str| Said {
            speaker: speaker.map(str::to_owned),
            ..Said::new(role, text.to_owned())
        };
        let mut all = [
            said(Role::User, None, "dockerize it, see notes.md"),
            said(Role::Tool, Some("read_file"), "read_file\nRead file: /w/old.py"),
            said(Role::Assistant, None, "### **nginx.conf:** as in old.py, e.g. e.g."),
            said(Role::Tool, Some("write"), "write"),
            said(Role::Tool, Some("write"), "write"),
            said(
                Role::Tool,
                Some("run_terminal_cmd"),
                "run_terminal_cmd\n```bash\nchmod +x scripts/run.sh\n```\n```\nother.sh\n```",
            ),
            said(Role::Assistant, None, "1. **Dockerfile** - for the image."),
            said(Role::User, None, "now settings.py"),
            said(Role::Assistant, None, "settings.py is well."),
        ];
        add(&mut all);
        let likely = |said: &Said| said.likely.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        assert_eq!(likely(&all[3]), ["Dockerfile", "nginx.conf", "scripts/run.sh"]);
        assert!(all.iter().enumerate().all(|(at, said)| at == 3 || said.likely.is_empty()));
    }

    #[test]
    fn a_text_without_a_path_is_of_a_file_that_was_named() {
        let said = |speaker: Option<&str>, text: &str, written: &[u32]| {
            let role = if speaker.is_some() { Role::Tool } else { Role::Assistant };
            let file = WrittenFile { path: String::new(), lines: written.to_vec() };
            let written = if written.is_empty() { vec![] } else { vec![file] };
            Said { speaker: speaker.map(str::to_owned), written, ..Said::new(role, text.to_owned()) }
        };
        let mut all = [
            said(
                Some("copilot_readFile"),
                "copilot_readFile • Reading [](file:///w/lib/a.ex#1-9), lines 1 to 9",
                &[],
            ),
            said(Some("copilot_replaceString"), "copilot_replaceString", &[7, 9]),
            said(None, "router.ex has the route.", &[]),
        ];
        add(&mut all);
        let file = |path: &str| WrittenFile { path: path.to_owned(), lines: vec![7, 9] };
        assert_eq!(all[1].likely, [file("/w/lib/a.ex"), file("router.ex")]);
        assert_eq!(all[1].written, []);
    }
}
