//! Finds the files that a tool call of an export changed, and the lines of the changes.
//!
//! Exports of Cursor and Codex show an edit as a diff, those of Copilot the old and the new text, or the call in JSON.
//! Others name only the file, and some not even that.

use std::collections::{BTreeSet, HashMap};

use super::blocks::{RESULT, json};
use super::unnamed;
use crate::import::evidence::{MOST_LINES, WrittenFile};
use crate::import::fields::Fields;
use tiro_git::line_hash;

/// The maximum number of changed files that are kept for one call.
const MOST_FILES: usize = 64;

/// A path of this many bytes or more is none.
const LONGEST_PATH: usize = 1024;

/// The most places in which the repository may have been.
const MOST_ROOTS: usize = 16;

/// The words before the path of an edited file. The path ends at the end of the line, or at the character given.
const NAMED: [(&str, char); 6] = [
    ("Edit file: ", '\n'),
    ("**Update: `", '`'),
    ("**Add: `", '`'),
    ("**Create: `", '`'),
    ("- filePath: `", '`'),
    ("- file_path: `", '`'),
];

/// The labels of old and new texts, each with whether the text is new.
const TEXTS: [(&str, bool); 5] = [
    ("- newString:", true),
    ("- oldString:", false),
    ("- content:", true),
    ("- new_string:", true),
    ("- old_string:", false),
];

/// The character references of exports. An ampersand comes last, so that nothing is replaced twice.
const REFERENCES: [(&str, &str); 8] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&#96;", "`"),
    ("&amp;", "&"),
];

/// The fields of JSON with the path of an edited file, and those with the new text of an edit.
const PATHS: [&str; 3] = ["file_path", "filePath", "path"];
const NEW: [&str; 3] = ["textEditContent", "content", "newString"];

/// What the tool answers about a file that it changed: the beginning of the line, and the words before and after the path.
/// In exports of Claude Code of old versions, only the answer names the file.
const UPDATED: [(&str, &str, &str); 6] = [
    ("The file ", "", " has been updated"),
    ("The file ", "", " has been created"),
    ("The file ", "", " was written"),
    ("File created successfully at: ", "", " (file state"),
    ("File created successfully at: ", "", ""),
    ("Applied ", " to ", ":"),
];

/// The words before the answer of a tool, after the text of a new file: in old versions, and in later ones.
const ANSWERS: [&str; 2] = [RESULT, "\n```text\n"];

/// The words before the numbered lines around an edit.
const NUMBERED: &str = "cat -n";

/// How many of these lines before and after an edit were there before.
const AROUND: usize = 4;

/// Returns the files that an edit changed. `call` is the text of the call's block. If a call in JSON
/// has a text without the path of its file, the path is empty.
pub(super) fn written(call: &str) -> Vec<WrittenFile> {
    let mut files: Vec<(String, BTreeSet<u32>)> = Vec::new();
    let mut text: Option<bool> = None;
    let mut fence: Option<(String, Form)> = None;
    let mut early: BTreeSet<u32> = BTreeSet::new();
    for line in call.lines() {
        if let Some((open, form)) = &fence {
            if line.trim_end() == open {
                fence = None;
                text = None;
                continue;
            }
            let changed = match form {
                Form::Diff => match line.as_bytes().first() {
                    Some(b'+') => Some((true, &line[1..])),
                    Some(b'-') => Some((false, &line[1..])),
                    _ => None,
                },
                Form::Text(is_new) => Some((*is_new, line)),
                Form::Other => None,
            };
            let Some((is_new, line)) = changed else { continue };
            match files.last_mut() {
                Some((_, lines)) => lines.extend(hashes(is_new, line)),
                None => early.extend(hashes(is_new, line)),
            }
            continue;
        }
        if line.starts_with("```") {
            let marks = line.chars().take_while(|c| *c == '`').collect::<String>();
            let form = match (&line[marks.len()..], text) {
                ("diff", _) => Form::Diff,
                (_, Some(is_new)) => Form::Text(is_new),
                _ => Form::Other,
            };
            fence = Some((marks, form));
            continue;
        }
        text = TEXTS.iter().find(|(label, _)| line.starts_with(label)).map(|(_, is_new)| *is_new).or(text);
        let path = named(line).filter(|path| files.last().is_none_or(|(last, _)| last != path));
        if let Some(path) = path.filter(|_| files.len() < MOST_FILES) {
            files.push((path.to_owned(), std::mem::take(&mut early)));
        }
    }
    if files.is_empty() {
        files.extend(updated(call).map(|path| (path.to_owned(), answered(call))));
    }
    if files.is_empty() {
        files.extend(in_json(call));
    }
    let written = |(path, lines): (String, BTreeSet<u32>)| WrittenFile {
        path,
        lines: lines.into_iter().take(MOST_LINES).collect(),
    };
    files.into_iter().map(written).collect()
}

/// Returns the hashes of a line of an edit. The file may have a character reference itself, which only some versions
/// escaped once more.
fn hashes(is_new: bool, line: &str) -> impl Iterator<Item = u32> + use<> {
    let lines = [Some(line.to_owned()), unescaped(line)].into_iter().flatten();
    lines.filter_map(move |line| line_hash(is_new, &line))
}

/// Returns the file of an edit whose arguments and result are JSON, and the lines of its new text.
fn in_json(call: &str) -> Option<(String, BTreeSet<u32>)> {
    let block = |label| json(call, label).and_then(|json| Fields::parse(json).ok()).unwrap_or_default();
    let (asked, result) = (block("Parameters:"), block("Result:"));
    result.filled(NEW[0])?;
    let path = PATHS.iter().find_map(|name| asked.filled(name)).unwrap_or_default();
    if path.len() >= LONGEST_PATH {
        return None;
    }
    let texts: Vec<_> = NEW.iter().filter_map(|name| result.filled(name)).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.starts_with("```") && !line.starts_with("&#96;&#96;&#96;"));
    Some((path.into_owned(), lines.flat_map(|line| hashes(true, line)).collect()))
}

/// Returns a text of a call without the character references that exports have for characters of Markdown and HTML; `None`
/// if it has none.
pub(super) fn unescaped(text: &str) -> Option<String> {
    text.contains('&').then(|| {
        REFERENCES.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
    })
}

/// What a fenced block has.
enum Form {
    Diff,
    /// Old or new lines; `true` for new ones.
    Text(bool),
    Other,
}

/// Returns the path that a line of a call names.
fn named(line: &str) -> Option<&str> {
    NAMED.iter().find_map(|(words, end)| {
        let (_, rest) = line.split_once(words)?;
        let path = rest.split(*end).next()?.trim_end_matches("</summary>").trim();
        (!path.is_empty() && path.len() < LONGEST_PATH).then_some(path)
    })
}

/// Returns the path that the answer of a tool names.
fn updated(call: &str) -> Option<&str> {
    let answer = apart(call).map_or(call, |(_, answer)| answer);
    answer.lines().find_map(|line| {
        UPDATED.iter().find_map(|(begins, before, after)| {
            let (_, rest) = line.strip_prefix(begins)?.split_once(before)?;
            let (path, _) = rest.rsplit_once(after)?;
            Some(path.trim()).filter(|path| !path.is_empty() && path.len() < LONGEST_PATH)
        })
    })
}

/// Divides a call of Claude Code from the answer of the tool.
fn apart(call: &str) -> Option<(&str, &str)> {
    ANSWERS.iter().find_map(|label| call.rsplit_once(label))
}

/// Returns the lines of a new file, which stand before the answer of the tool, or the lines of an edit among the numbered
/// lines of the answer. These may have some that were there before.
fn answered(call: &str) -> BTreeSet<u32> {
    let Some((asked, answer)) = apart(call) else { return BTreeSet::new() };
    if answer.contains(NUMBERED) {
        let text = |line| -> Option<&str> {
            let (number, text) = str::split_once(line, '→')?;
            number.trim().bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
        };
        let lines: Vec<&str> = answer.lines().filter_map(text).collect();
        let edited = lines.get(AROUND..lines.len().saturating_sub(AROUND)).unwrap_or_default();
        return edited.iter().flat_map(|line| hashes(true, line)).collect();
    }
    let fenced = asked.split_once("\n```").and_then(|(_, block)| block.rsplit_once("\n```"));
    let text = fenced.map(|(text, _)| text).unwrap_or_default();
    text.lines().skip(1).flat_map(|line| hashes(true, &line.replace("\\```", "```"))).collect()
}

/// The paths of the files in the repository, by the paths that exports name. An export has the paths of the machine on
/// which the session ran, such as `/Users/ada/work/crane/src/lib.rs`.
pub struct Places {
    files: BTreeSet<String>,
    /// The files by the last parts of their paths.
    by_name: HashMap<String, Vec<String>>,
    /// The roots of the repository on those machines.
    roots: Vec<String>,
}

impl Places {
    /// Finds the roots of the repository on the machines that `paths` are from. `files` are the files of the repository.
    /// A root is what is left of paths if the longest end that is a file of the repository is removed.
    pub fn of<'p>(paths: impl Iterator<Item = &'p str>, files: BTreeSet<String>) -> Places {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for path in paths.collect::<BTreeSet<&str>>() {
            let ends = path.match_indices(['/', '\\']).map(|(at, _)| at);
            let root = ends
                .map(|at| &path[..at])
                .find(|root| !root.is_empty() && files.contains(&path[root.len() + 1..].replace('\\', "/")));
            if let Some(root) = root {
                *counts.entry(root).or_default() += 1;
            }
        }
        // One file may have the same end by chance, but not half as many as those of the real root.
        let most = counts.values().copied().max().unwrap_or_default();
        let likely = counts.into_iter().filter(|(_, count)| 2 * count >= most);
        let mut likely: Vec<(&str, usize)> = likely.collect();
        likely.sort_by_key(|(root, count)| (std::cmp::Reverse(*count), *root));
        likely.truncate(MOST_ROOTS);
        let mut roots: Vec<String> = likely.into_iter().map(|(root, _)| root.to_owned()).collect();
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        let mut by_name: HashMap<String, Vec<String>> = HashMap::new();
        for file in &files {
            by_name.entry(unnamed::last(file).to_owned()).or_default().push(file.clone());
        }
        Places { files, by_name, roots }
    }

    /// Returns the path in the repository; `None` if the path leads to another place.
    pub fn relative(&self, path: &str) -> Option<String> {
        let below =
            self.roots.iter().find_map(|root| path.strip_prefix(root.as_str())?.strip_prefix(['/', '\\']));
        let is_absolute = path.starts_with(['/', '\\', '~'])
            || path.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/");
        let below = below.or_else(|| Some(path.trim_start_matches("./")).filter(|_| !is_absolute))?;
        let below = self.within(below.replace('\\', "/"));
        let is_plain = below.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        (is_plain && (!self.roots.is_empty() || self.files.contains(&below))).then_some(below)
    }

    /// Returns a path below the repository. If the session ran in a folder above the repository, its paths begin with the
    /// names of folders that are not in the repository.
    fn within(&self, path: String) -> String {
        if self.files.contains(&path) {
            return path;
        }
        let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        let mut known = ends.filter(|end| end.contains('/') && self.files.contains(*end));
        known.next().map(str::to_owned).unwrap_or(path)
    }

    /// Returns the file of the repository with a name, with all, some or none of its folders; `None` if there are none or
    /// several.
    pub fn named(&self, name: &str) -> Option<&str> {
        if let Some(file) = self.relative(name).and_then(|path| self.files.get(&path)) {
            return Some(file);
        }
        let all = self.by_name.get(unnamed::last(name)).into_iter().flatten();
        let mut found = all.filter(|file| unnamed::is_end(file, name));
        found.next().filter(|_| found.next().is_none()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(lines: &[(bool, &str)]) -> Vec<u32> {
        let hashes: BTreeSet<u32> =
            lines.iter().filter_map(|(is_new, line)| line_hash(*is_new, line)).collect();
        hashes.into_iter().collect()
    }

    #[test]
    fn edits_are_read_as_diffs_as_texts_and_as_names() {
        let cursor = "<summary>Tool use: **search_replace** • Edit file: /w/a.py</summary>\n\n**Chunk 1**\n\n```diff\n\
            @@ -4,10 +4,11 @@\n  import subprocess\n+ import time&#96;s\n- from typing import List\n```\n\n**Chunk 2**\n```diff\n\
            + another_line\n```\n";
        let lines = [
            (true, "import time`s"),
            (true, "import time&#96;s"),
            (false, "from typing import List"),
            (true, "another_line"),
        ];
        assert_eq!(written(cursor), [WrittenFile { path: "/w/a.py".into(), lines: hashes(&lines) }]);
        let copilot = "**Input:**\n\n- content:\n\n```\nnew_line_one\n```\n- filePath: `/w/b.ex`\n- newString:\n\n```\nnew_line_two\n```\n\n- oldString:\n\n\
            ```\nold_line_one\n```\n- explanation: `x`\n";
        let lines = [(true, "new_line_one"), (true, "new_line_two"), (false, "old_line_one")];
        assert_eq!(written(copilot), [WrittenFile { path: "/w/b.ex".into(), lines: hashes(&lines) }]);
        let codex = "**Update: `docs/a.plist`**\n\n```diff\n@@\n-  <string>one</string>\n```\n**Add: `b.md`**\n```diff\n+a new line\n```\n";
        let files: Vec<_> = written(codex).into_iter().map(|file| (file.path, file.lines)).collect();
        assert_eq!(
            files,
            [
                ("docs/a.plist".to_owned(), hashes(&[(false, "<string>one</string>")])),
                ("b.md".to_owned(), hashes(&[(true, "a new line")]))
            ]
        );
        let claude = "```text\nThe file /w/c.go has been updated successfully.\n```";
        assert_eq!(written(claude), [WrittenFile { path: "/w/c.go".into(), lines: Vec::new() }]);
        let escaped = "Edit file: a.tsx\n```diff\n+ const a = &lt;p title=&quot;x&quot;&gt;it&#x27;s&lt;/p&gt; &amp;&amp; b\n```";
        let lines = [
            "const a = &lt;p title=&quot;x&quot;&gt;it&#x27;s&lt;/p&gt; &amp;&amp; b",
            "const a = <p title=\"x\">it's</p> && b",
        ];
        assert_eq!(written(escaped)[0].lines, hashes(&lines.map(|line| (true, line))));
        assert_eq!(written("nothing\n```diff\n+ unnamed_line\n```"), []);
        let made = "\n```ts\nlet a_line = 1;\n\\```\n```\n\nResult:\n\n```\nFile created successfully at: /w/d.ts\n```\n";
        let lines = hashes(&[(true, "let a_line = 1;"), (true, "```")]);
        assert_eq!(written(made), [WrittenFile { path: "/w/d.ts".into(), lines }]);
        let later = "\n```go\nvar another_line = 1\n```\n\n```text\nFile created successfully at: /w/g.go (file state is current)\n```\n";
        let lines = hashes(&[(true, "var another_line = 1")]);
        assert_eq!(written(later), [WrittenFile { path: "/w/g.go".into(), lines }]);
        let around = |from: usize| -> String {
            (from..from + 4).map(|at| format!("  {at}→was_there_{at}\n")).collect()
        };
        let edited = format!(
            "\nResult:\n\n```\nThe file /w/e.ts has been updated. Here's the result of running `cat -n` on it:\n{}  5→a_new_line\n{}```\n",
            around(1),
            around(6)
        );
        let lines = hashes(&[(true, "a_new_line")]);
        assert_eq!(written(&edited), [WrittenFile { path: "/w/e.ts".into(), lines }]);
        let several =
            "\nResult:\n\n```\nApplied 2 edits to C:\\w\\f.ts:\n1. Replaced \"a\" with \"b\"\n```\n";
        assert_eq!(written(several), [WrittenFile { path: "C:\\w\\f.ts".into(), lines: Vec::new() }]);
        let result =
            r#"{"content": "&#96;&#96;&#96;\nlet other = 1;", "textEditContent": "let paint = \"blue\";\n"}"#;
        let in_json = |asked: &str| {
            written(&format!("{asked}Result:\n\n```json\n{result}\n```\nStatus: **completed**"))
        };
        let lines = hashes(&[(true, "let other = 1;"), (true, "let paint = \"blue\";")]);
        let asked = "Parameters:\n\n```json\n{\"file_path\": \"/w/d.ex\"}\n```\n";
        assert_eq!(in_json(asked), [WrittenFile { path: "/w/d.ex".into(), lines: lines.clone() }]);
        assert_eq!(in_json(""), [WrittenFile { path: String::new(), lines }]);
    }

    #[test]
    fn the_root_of_another_machine_is_found_by_the_files_of_the_repository() {
        let files = ["src/a.rs", "src/b.rs", "README.md"].map(str::to_owned).into();
        let paths = [
            "/Users/ada/crane/src/a.rs",
            "/Users/ada/crane/src/b.rs",
            "/Users/ada/crane/src/new.rs",
            "/Users/ada/other/README.md",
            "C:\\work\\crane\\src\\a.rs",
            "src/a.rs",
        ];
        let places = Places::of(paths.into_iter(), files);
        let found: Vec<_> = paths.iter().map(|path| places.relative(path)).collect();
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(found[..3], [some("src/a.rs"), some("src/b.rs"), some("src/new.rs")]);
        assert_eq!(found[5], some("src/a.rs"));
        assert_eq!(places.relative("/etc/passwd"), None);
        assert_eq!(places.relative("crane/src/a.rs"), some("src/a.rs"));
        assert_eq!(places.relative("crane/README.md"), some("crane/README.md"));
        assert_eq!(
            ["b.rs", "src/b.rs", "./README.md"].map(|name| places.named(name)),
            [Some("src/b.rs"), Some("src/b.rs"), Some("README.md")]
        );
        assert_eq!(["rs", "new.rs", ""].map(|name| places.named(name)), [None; 3]);
        assert_eq!(places.relative("/Users/ada/crane/../x"), None);
    }
}
