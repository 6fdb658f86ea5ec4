//! Finds the files that a tool call changed and the commits that it made. Commits are linked to sessions by these
//! facts. These functions are pure.
//!
//! Only hashes of a change's lines are kept. They are enough to find the lines in a commit, and to notice that the
//! lines were reverted before the commit.

use super::fields::Fields;
use super::gist::{self, Arguments, Shape};
use super::shell;
use tiro_git::line_hash;

/// The maximum number of hashes that are kept of a change: 4 KB of them. The smallest hashes are kept, so that the samples
/// of two texts overlap as much as the texts do.
pub const MOST_LINES: usize = 1024;

/// The number of bytes at the beginning of a text that are split into lines and hashed. Arbitrary.
const MOST_BYTES: usize = 1 << 20;

/// The maximum number of changed files that are kept for one call.
const MOST_FILES: usize = 64;

/// A file that a tool call changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// The path, as the call names it.
    pub path: String,
    /// Hashes of the lines that were added and removed, sorted. Empty if the call doesn't contain these lines.
    pub lines: Vec<u32>,
}

/// Returns the files that a call changes. If `shape` is an edit, these are the edited files; otherwise, they are the
/// files that the call's command line writes.
pub(super) fn written(arguments: &Arguments<'_>, files: &[String], shape: Shape) -> Vec<WrittenFile> {
    let fields = fields(arguments);
    if shape != Shape::Edit {
        let command = command(arguments).filter(|line| !line.contains("<private>")).unwrap_or_default();
        return by_command(&command);
    }
    if let Some(patch) = gist::patch(arguments, &fields) {
        return patched(&patch);
    }
    let Some(path) = files.first() else { return Vec::new() };
    // The lines of a notebook can't be compared with a commit, because the file stores them as JSON strings.
    let lines = if path.ends_with(".ipynb") { Vec::new() } else { changed(&fields) };
    vec![WrittenFile { path: path.clone(), lines }]
}

fn fields<'a>(arguments: &'a Arguments<'_>) -> Fields<'a> {
    match arguments {
        Arguments::Json(raw) => Fields::of(raw),
        Arguments::Text(text) => Fields::parse(text).unwrap_or_default(),
    }
}

/// Returns the hashes of the lines in which the old and the new text of an edit differ.
fn changed(fields: &Fields<'_>) -> Vec<u32> {
    let edits = fields.items("edits");
    let edits: Vec<Fields<'_>> = edits.into_iter().map(Fields::of).collect();
    let all = if edits.is_empty() { std::slice::from_ref(fields) } else { &edits };
    let mut hashes = Vec::new();
    for edit in all {
        let text = |names: &[&str]| names.iter().find_map(|name| edit.text(name));
        let old = text(&gist::OLD).unwrap_or_default();
        let new = text(&gist::NEW).or_else(|| text(&["content", "file_text"])).unwrap_or_default();
        hashes.extend(difference(&old, &new));
    }
    sample(hashes)
}

/// Returns the hashes of the lines that only one of two texts contains.
fn difference(old: &str, new: &str) -> Vec<u32> {
    let lines = |text: &str| -> Vec<String> {
        text[..text.floor_char_boundary(MOST_BYTES)].lines().map(|line| line.trim().to_owned()).collect()
    };
    let (old, new) = (lines(old), lines(new));
    let others = |one: &[String], other: &[String]| -> Vec<String> {
        let other: std::collections::HashSet<&String> = other.iter().collect();
        one.iter().filter(|line| !other.contains(line)).cloned().collect()
    };
    let removed = others(&old, &new).into_iter().filter_map(|line| line_hash(false, &line));
    let added = others(&new, &old).into_iter().filter_map(|line| line_hash(true, &line));
    removed.chain(added).collect()
}

fn sample(mut hashes: Vec<u32>) -> Vec<u32> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(MOST_LINES);
    hashes
}

/// Returns the files that a patch changes, each with the hashes of its changed lines.
fn patched(patch: &str) -> Vec<WrittenFile> {
    let mut all: Vec<WrittenFile> = Vec::new();
    for line in patch[..patch.floor_char_boundary(MOST_BYTES)].lines() {
        let heads = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
        if let Some(path) = heads.iter().find_map(|head| line.strip_prefix(head)) {
            if all.len() == MOST_FILES {
                break;
            }
            all.push(WrittenFile { path: path.trim().to_owned(), lines: Vec::new() });
        } else if let Some(file) = all.last_mut() {
            let hash = match line.split_at_checked(1) {
                Some(("+", line)) if !line.starts_with("++ ") => line_hash(true, line),
                Some(("-", line)) if !line.starts_with("-- ") => line_hash(false, line),
                _ => None,
            };
            file.lines.extend(hash);
        }
    }
    all.into_iter().map(|file| WrittenFile { lines: sample(file.lines), ..file }).collect()
}

/// Returns the command line that a call runs.
pub(super) fn command(arguments: &Arguments<'_>) -> Option<String> {
    let fields = fields(arguments);
    let raw = ["command", "cmd"].iter().find_map(|name| fields.raw(name));
    if let Some(raw) = raw {
        return gist::command(raw).or_else(|| super::fields::string(raw)).map(|line| line.into_owned());
    }
    let Arguments::Json(raw) = arguments else { return None };
    gist::command(raw).map(|line| line.into_owned())
}

/// Returns the files that a command line writes, as far as its words show them: by redirections, edits in place, moves,
/// copies and removals. If the command line contains the written lines, as in a here-document, their hashes are
/// included.
pub(super) fn by_command(line: &str) -> Vec<WrittenFile> {
    let mut files: Vec<WrittenFile> = Vec::new();
    for command in shell::commands(&line[..line.floor_char_boundary(MOST_BYTES)]) {
        let (name, arguments) = command.name();
        let said = match name {
            "cat" | "tee" => command.reads.as_deref().map(str::to_owned),
            "echo" => Some(arguments.join(" ")),
            _ => None,
        };
        let lines: Vec<u32> =
            said.iter().flat_map(|text| text.lines()).filter_map(|line| line_hash(true, line)).collect();
        let lines = sample(lines);
        let (name, arguments) = match (name, arguments) {
            ("git", [sub, rest @ ..]) if matches!(sub.as_str(), "mv" | "rm") => (sub.as_str(), rest),
            other => other,
        };
        let has =
            |flags: &[&str]| arguments.iter().any(|word| flags.iter().any(|flag| word.starts_with(flag)));
        let in_place = match name {
            "mv" | "cp" | "rm" | "tee" | "touch" | "truncate" => true,
            "sed" => has(&["-i", "--in-place"]),
            "perl" | "ruby" => has(&["-i", "-pi", "-0pi", "-ni"]),
            _ => false,
        };
        let named = arguments.iter().filter(|word| in_place && word.contains(['.', '/']));
        let is_file = |path: &&String| {
            !path.is_empty()
                && !path.starts_with(['-', '$', '&'])
                && !path.starts_with("/dev/")
                && !path.contains('\n')
        };
        for path in command.writes.iter().chain(named).filter(is_file) {
            files.push(WrittenFile { path: path.clone(), lines: lines.clone() });
        }
    }
    files.dedup_by(|one, other| one.path == other.path);
    files.truncate(MOST_FILES);
    files
}

/// If the command line makes commits, returns the abbreviated ids that git printed in `output`. Returns `None` if the
/// command line makes no commit.
///
/// A command that only prints commits, such as `git log`, makes none.
pub(super) fn commits(line: &str, output: &str) -> Option<Vec<String>> {
    let line = &line[..line.floor_char_boundary(MOST_BYTES)];
    if !shell::commands(line).iter().any(makes_commits) {
        return None;
    }
    // Git prints `[main 1a2b3c4] Subject`, `[main (root-commit) 1a2b3c4] Subject` or `[detached HEAD 1a2b3c4] Subject`.
    let printed = output.lines().filter_map(|line| {
        let (head, _) = line.trim_start().strip_prefix('[')?.split_once("] ")?;
        let (_, id) = head.rsplit_once(' ')?;
        let is_id =
            (7..=40).contains(&id.len()) && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| id[..id.len().min(12)].to_owned())
    });
    Some(printed.take(16).collect())
}

/// Returns whether a command makes commits with git. Another program may run git, as in `timeout 60 git commit`.
fn makes_commits(command: &shell::Command) -> bool {
    const MAKE: [&str; 6] = ["commit", "cherry-pick", "revert", "merge", "rebase", "am"];
    let (name, _) = command.name();
    if matches!(name, "echo" | "printf" | "grep" | "rg" | "cat" | "man") {
        return false;
    }
    let mut words = command.words.iter().skip_while(|word| word.rsplit('/').next() != Some("git")).skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // The word after one of these options is the option's value.
            "-C" | "-c" | "--git-dir" | "--work-tree" => drop(words.next()),
            flag if flag.starts_with('-') => {}
            sub => return MAKE.contains(&sub),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_commits_gives_the_ids_it_printed() {
        let printed = |line: &str, output: &str| commits(line, output);
        let output = "[main 1a2b3c4] Fix it\n 1 file changed, 1 insertion(+)\n";
        assert_eq!(printed("git add -A && git commit -m 'Fix it'", output), Some(vec!["1a2b3c4".to_owned()]));
        assert_eq!(printed("cd x; /usr/bin/git -C . commit -q -m x", ""), Some(vec![]));
        assert_eq!(
            printed("git commit -m x", "[main (root-commit) 1a2b3c4d5] x"),
            Some(vec!["1a2b3c4d5".to_owned()])
        );
        assert_eq!(printed("git commit -m x", "[detached HEAD 1a2b3c4] x"), Some(vec!["1a2b3c4".to_owned()]));
        for line in ["cd x; timeout 60 git -c a=b commit -m 'x; y'", "bash -c 'git commit -m x'"] {
            assert_eq!(printed(line, output), Some(vec!["1a2b3c4".to_owned()]), "{line}");
        }
        for line in [
            "git log --grep commit",
            "cat notes",
            "echo git commit",
            "cat > a <<EOF\ngit commit\nEOF",
            "x 'git commit'",
        ] {
            assert_eq!(printed(line, output), None, "{line}");
        }
        assert_eq!(printed("git commit -m x", "nothing to commit\n[x] y\n[main zzzzzzz] z"), Some(vec![]));
    }

    #[test]
    fn a_command_names_the_files_that_it_writes() {
        let table: [(&str, &[&str]); 13] = [
            ("cargo fmt", &[]),
            ("cat src/a.rs | grep x", &[]),
            ("sed -n 1,5p src/a.rs", &[]),
            ("sed -i s/x/y/ src/a.rs src/b.rs", &["s/x/y/", "src/a.rs", "src/b.rs"]),
            ("echo hi > notes.txt", &["notes.txt"]),
            ("echo hi >>notes.txt 2>&1", &["notes.txt"]),
            ("cd x && git mv a.rs b.rs", &["a.rs", "b.rs"]),
            ("cargo test > /dev/null", &[]),
            ("make | tee out.log", &["out.log"]),
            ("sed -i '$ a fn x() -> usize { 7 }; // a.b' src/a.rs", &["src/a.rs"]),
            ("cat > a.py <<'EOF'\nrm b.py > c.py\nEOF", &["a.py"]),
            ("bash -c 'echo x > a.txt'", &["a.txt"]),
            ("for x in a; do sed -i s/a/b/ $x c.rs; done", &["s/a/b/", "c.rs"]),
        ];
        for (line, expected) in table {
            let paths: Vec<String> = by_command(line).into_iter().map(|file| file.path).collect();
            assert_eq!(paths, expected, "{line}");
        }
    }

    #[test]
    fn lines_written_in_a_command_are_hashed() {
        let lines = |line: &str| by_command(line).remove(0).lines;
        let mut expected =
            vec![line_hash(true, "let new = 2;").unwrap(), line_hash(true, "other words").unwrap()];
        expected.sort_unstable();
        assert_eq!(lines("cat >> a.rs <<EOF\nlet new = 2;\nother words\nEOF\n"), expected);
        assert_eq!(lines("echo 'let new = 2;\nother words' >> a.rs"), expected);
        assert!(lines("sort a.rs > b.rs").is_empty());
    }

    #[test]
    fn an_edit_gives_the_hashes_of_its_changed_lines() {
        let args = |json: &str| serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        let lines = |json: &str| {
            let raw = args(json);
            let files = ["a.rs".to_owned()];
            written(&Arguments::Json(&raw), &files, Shape::Edit).remove(0).lines
        };
        let edit = lines(
            r#"{"file_path": "a.rs", "old_string": "keep this line\nlet old = 1;", "new_string": "keep this line\nlet new = 2;"}"#,
        );
        let mut expected =
            vec![line_hash(false, "let old = 1;").unwrap(), line_hash(true, "  let new=2; ").unwrap()];
        expected.sort_unstable();
        assert_eq!(edit, expected);
        assert!(lines(r#"{"file_path": "a.rs", "old_string": "}", "new_string": "{"}"#).is_empty());
        let patch = "*** Begin Patch\n*** Update File: b.rs\n@@\n-let old = 1;\n+let new = 2;\n*** End Patch";
        let patched = written(&Arguments::Text(patch.into()), &["b.rs".to_owned()], Shape::Edit);
        assert_eq!(patched, [WrittenFile { path: "b.rs".to_owned(), lines: expected }]);
    }
}
