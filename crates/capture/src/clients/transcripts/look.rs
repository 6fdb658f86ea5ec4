//! Looks at a transcript to find the directories that occur in it.
//!
//! A look searches the bytes of the whole file for a few names of JSON members, without parsing the lines. So a look
//! takes as long as reading the file, even if lines are very long or damaged. It finds too much, because a name can
//! also occur in an argument of a tool call. So a look only shows which transcripts are worth reading for a project.
//! Reading them then shows which of their entries belong to the project.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};

/// The number of bytes that are searched at once.
const PART: usize = 1 << 20;

/// The longest value that is read, in bytes. A longer value is not a path. A longer command is ignored.
const LONGEST: usize = 64 * 1024;

/// The maximum number of directories that are noted for a session, and of folders of files. Arbitrary: more than people
/// and agents visit.
const MOST: usize = 2048;

/// The number of bytes before an argument of a call that are searched for the name of the tool.
const BEFORE: usize = 160;

/// The names that are searched for. The first name is that of the working directory.
const WANTED: [&str; 13] = [
    "\"cwd",
    "\"directories",
    "\"projectHash",
    "\"command",
    "\"cmd",
    "\"file_path",
    "\"notebook_path",
    "\"absolute_path",
    "\"path",
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
];
const CWD: usize = 0;
const DIRECTORIES: usize = 1;
const HASH: usize = 2;
const COMMANDS: [usize; 2] = [3, 4];
const FIRST_PATCH: usize = 9;

/// If a command contains none of these texts, it changes no files.
const WRITES: [&str; 8] = [">", "sed", "tee", "cp ", "mv ", "rm ", "touch", "git"];

static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let builder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(WANTED);
    builder.expect("the names are few and short")
});

/// The result of a look at a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The working directories, in the order in which they first occur.
    pub directories: Vec<String>,
    /// The folders of files that a call may have changed. A relative path is relative to one of the directories.
    pub folders: BTreeSet<String>,
    /// The hash by which Gemini CLI names the directory of the session.
    pub hash: Option<String>,
    /// Whether some directories or folders were not noted because there were too many.
    pub is_partial: bool,
    /// The number of bytes that were searched. If the file has grown, the next look begins there.
    pub looked: u64,
}

impl Look {
    /// Looks at the rest of a transcript. `reader` begins at the byte [`Look::looked`].
    ///
    /// # Errors
    ///
    /// If reading fails.
    pub fn take(&mut self, reader: &mut impl Read) -> std::io::Result<()> {
        let mut buffer: Vec<u8> = Vec::with_capacity(PART + LONGEST);
        let (mut begins, mut is_over) = (self.looked, false);
        // The folders of all files that are named. The directory of Gemini CLI's hash may be one of them or a folder
        // above them.
        let mut named = BTreeSet::new();
        while !is_over {
            let before = buffer.len();
            buffer.resize(before + PART, 0);
            let read = fill(reader, &mut buffer[before..])?;
            buffer.truncate(before + read);
            is_over = read < PART;
            // An unfinished line is searched again by the next look.
            let line = buffer.iter().rposition(|byte| *byte == b'\n').map(|end| begins + end as u64 + 1);
            self.looked = line.unwrap_or(self.looked).max(self.looked);
            // The bytes before an argument of a call are kept, because they may contain the name of the tool.
            let done = self.search(&buffer, is_over, &mut named).saturating_sub(BEFORE);
            begins += done as u64;
            buffer.drain(..done);
        }
        self.unhash(&named);
        Ok(())
    }

    /// Returns the first working directory. Stops reading when it is found.
    pub fn first_directory(reader: &mut impl Read) -> Option<String> {
        let (mut look, mut buffer) = (Look::default(), Vec::with_capacity(PART));
        loop {
            let before = buffer.len();
            // The directory is usually in the first lines.
            buffer.resize(before + if before == 0 { PART / 16 } else { PART }, 0);
            let read = fill(reader, &mut buffer[before..]).ok()?;
            let is_over = before + read < buffer.len();
            buffer.truncate(before + read);
            let done = look.search(&buffer, is_over, &mut BTreeSet::new());
            if is_over || !look.directories.is_empty() {
                return look.directories.into_iter().next();
            }
            buffer.drain(..done.saturating_sub(BEFORE));
        }
    }

    /// Notes the directories and folders that occur in `bytes`. Returns the position at which the next search must
    /// begin.
    fn search(&mut self, bytes: &[u8], is_over: bool, named: &mut BTreeSet<String>) -> usize {
        let mut from = 0;
        for found in SEARCH.find_iter(bytes) {
            let (at, end, which) = (found.start(), found.end(), found.pattern().as_usize());
            let is_cut = bytes.len() - at < LONGEST && !is_over;
            let rest = &bytes[end..bytes.len().min(end + LONGEST)];
            let values = match which {
                FIRST_PATCH.. => patched(rest),
                _ => values(rest),
            };
            let values = match values {
                Ok(values) => values,
                // The rest of the value is not read yet.
                Err(Unfinished) if is_cut => return at,
                Err(Unfinished) => continue,
            };
            from = end;
            match which {
                CWD | DIRECTORIES => values.into_iter().for_each(|value| self.add_directory(value)),
                HASH => self.hash = values.into_iter().next().or(self.hash.take()),
                _ if COMMANDS.contains(&which) => {
                    values.iter().for_each(|command| self.add_command(command));
                }
                _ => {
                    let is_read = which < FIRST_PATCH && is_of_reading(&bytes[at.saturating_sub(BEFORE)..at]);
                    for folder in values.iter().filter_map(|path| folder_of(path)) {
                        if named.len() < MOST {
                            named.insert(folder.to_owned());
                        }
                        if !is_read {
                            self.add_folder(folder);
                        }
                    }
                }
            }
        }
        // The end of `bytes` may cut a name in two.
        let longest = WANTED.iter().map(|name| name.len()).max().unwrap_or_default();
        if is_over { bytes.len() } else { from.max(bytes.len().saturating_sub(longest)) }
    }

    fn add_directory(&mut self, directory: String) {
        if directory.is_empty() || self.directories.contains(&directory) {
            return;
        }
        match self.directories.len() < MOST {
            true => self.directories.push(directory),
            false => self.is_partial = true,
        }
    }

    fn add_folder(&mut self, folder: &str) {
        if self.folders.len() < MOST {
            self.folders.insert(folder.to_owned());
        } else if !self.folders.contains(folder) {
            self.is_partial = true;
        }
    }

    /// Notes the folders of the absolute paths in a command that may change files.
    fn add_command(&mut self, command: &str) {
        if !WRITES.iter().any(|word| command.contains(word)) {
            return;
        }
        let is_border = |c: char| c.is_whitespace() || "><;&|\"'()=`".contains(c);
        let words = command.split(is_border).filter(|word| word.starts_with('/'));
        for folder in words.take(64).filter(|word| !word.starts_with("/dev/")).filter_map(folder_of) {
            self.add_folder(folder);
        }
    }

    /// Finds the directory that has the noted hash. This succeeds only if files in the directory are named.
    fn unhash(&mut self, named: &BTreeSet<String>) {
        let Some(hash) = self.hash.as_deref().filter(|_| self.directories.is_empty()) else { return };
        let above = named.iter().flat_map(|folder| Path::new(folder).ancestors());
        let above: BTreeSet<&Path> = above.filter(|folder| folder.is_absolute()).collect();
        let directory = above.into_iter().find(|folder| is_hash_of(hash, folder));
        self.directories.extend(directory.and_then(Path::to_str).map(str::to_owned));
    }
}

/// Returns whether `hash` is the name that Gemini CLI gives to `directory`.
pub fn is_hash_of(hash: &str, directory: &Path) -> bool {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(directory.as_os_str().as_encoded_bytes());
    hash.len() == 64 && digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == hash
}

/// Reports that the end of a value is not among the bytes.
#[derive(Debug, PartialEq, Eq)]
struct Unfinished;

/// Returns the strings in the value of a member. `rest` begins after the member's name, before the closing quote of the
/// name. The member may itself be inside a JSON string, in which quotes are escaped.
fn values(rest: &[u8]) -> Result<Vec<String>, Unfinished> {
    let depth = rest.iter().take_while(|byte| **byte == b'\\').count();
    let quote = |bytes: &[u8]| bytes.get(depth) == Some(&b'"') && bytes[..depth].iter().all(|b| *b == b'\\');
    let mut rest = rest;
    if rest.len() <= depth {
        return Err(Unfinished);
    }
    if !quote(rest) {
        return Ok(Vec::new());
    }
    rest = rest[depth + 1..].trim_ascii_start();
    match rest.first() {
        Some(b':') => rest = rest[1..].trim_ascii_start(),
        Some(_) => return Ok(Vec::new()),
        None => return Err(Unfinished),
    }
    let is_list = rest.first() == Some(&b'[');
    let mut found = Vec::new();
    if is_list {
        rest = rest[1..].trim_ascii_start();
    }
    loop {
        match rest.first() {
            None => return Err(Unfinished),
            Some(b'"' | b'\\') if rest.len() <= depth => return Err(Unfinished),
            Some(b'"' | b'\\') if quote(rest) => {}
            Some(_) => return Ok(found),
        }
        rest = &rest[depth + 1..];
        let end = end_of_string(rest, depth).ok_or(Unfinished)?;
        found.extend(unescaped(&rest[..end], depth));
        rest = rest[end + depth + 1..].trim_ascii_start();
        match rest.first() {
            Some(b',') if is_list => rest = rest[1..].trim_ascii_start(),
            None if is_list => return Err(Unfinished),
            _ => return Ok(found),
        }
    }
}

/// Returns the position of the quote that ends a string, if quotes are escaped by `depth` backslashes.
fn end_of_string(rest: &[u8], depth: usize) -> Option<usize> {
    let mut slashes = 0;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'\\' => slashes += 1,
            // A quote within the string has more backslashes before it.
            b'"' if slashes == depth => return Some(at - depth),
            b'"' if depth == 0 && slashes % 2 == 0 => return Some(at),
            _ => slashes = 0,
        }
    }
    None
}

/// Returns the unescaped text of a string. If `depth` is 1, the string was inside another string.
fn unescaped(raw: &[u8], depth: usize) -> Option<String> {
    let mut text = String::from_utf8_lossy(raw).into_owned();
    for _ in 0..=depth.min(2) {
        if !text.contains('\\') {
            break;
        }
        text = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    }
    Some(text)
}

/// Returns the path that follows a file header in a patch. The patch is inside a JSON string.
fn patched(rest: &[u8]) -> Result<Vec<String>, Unfinished> {
    let is_end = |pair: &[u8]| matches!(pair, [b'"' | b'\n' | b'\r', _] | [b'\\', b'n' | b'r' | b'"']);
    let end = rest.windows(2).position(is_end).ok_or(Unfinished)?;
    let mut raw = &rest[..end];
    while let Some(shorter) = raw.strip_suffix(b"\\") {
        raw = shorter;
    }
    Ok(unescaped(raw, 1).into_iter().collect())
}

/// Returns whether the bytes before an argument name a tool that only reads.
fn is_of_reading(before: &[u8]) -> bool {
    let before = String::from_utf8_lossy(before);
    if before.trim_end_matches([' ', '{']).ends_with("\"file\":") {
        return true;
    }
    let Some((_, tool)) = before.rsplit_once("\"name\":") else { return false };
    let tool = tool.trim_start().trim_start_matches('"').split('"').next().unwrap_or_default();
    let tool = tool.to_ascii_lowercase();
    ["read", "grep", "glob", "search", "list", "view"].iter().any(|word| tool.contains(word)) || tool == "ls"
}

fn folder_of(path: &str) -> Option<&str> {
    Path::new(path).parent()?.to_str().filter(|_| !path.contains('\n'))
}

/// Reads until `buffer` is full or the file ends. Returns how many bytes were read.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut all = 0;
    while all < buffer.len() {
        match reader.read(&mut buffer[all..]) {
            Ok(0) => break,
            Ok(read) => all += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(bytes: &[u8]) -> Look {
        let mut look = Look::default();
        look.take(&mut &bytes[..]).unwrap();
        look
    }

    #[test]
    fn directories_and_folders_are_found_wherever_they_stand() {
        let mut bytes = b"{\"type\":\"progress\",\"data\":\"\xc3\x28\"}\n".to_vec();
        bytes.extend_from_slice(format!("{{\"message\":\"{}\",", "x".repeat(5 * PART + 17)).as_bytes());
        bytes.extend_from_slice(
            b"\"cwd\": \"/w/ty\\u00f6/\\ud83d\\udea2\"}\n{\"cwd\":\"/w/b\",\"x\":\"\\\"cwd\\\":1\"}\n",
        );
        for (call, expected) in [
            (r#"{"name":"Edit","input":{"file_path":"/r/src/a.rs","old_string":"x"}}"#, Some("/r/src")),
            (r#"{"name":"Read","input":{"file_path":"/read/a.rs"}}"#, None),
            (r#"{"name":"apply","arguments":"{\"path\":\"rel/a.rs\"}"}"#, Some("rel")),
            (r#"{"input":"*** Begin Patch\n*** Update File: lib/x.rs\n@@"}"#, Some("lib")),
            (r#"{"arguments":"{\"command\":[\"bash\",\"-c\",\"echo > /s/t.txt\"]}"}"#, Some("/s")),
            (r#"{"name":"Bash","input":{"command":"cat /seen/x"}}"#, None),
        ] {
            let found = look(call.as_bytes()).folders;
            assert_eq!(
                found.iter().map(String::as_str).collect::<Vec<_>>(),
                Vec::from_iter(expected),
                "{call}"
            );
        }
        let found = look(&bytes);
        assert_eq!(found.directories, ["/w/ty\u{f6}/\u{1f6a2}", "/w/b"]);
        assert_eq!(found.looked, bytes.len() as u64);
    }

    /// Parts of any length give the same result as the whole, so a name or a value that is cut in two is found.
    #[test]
    fn a_look_in_parts_finds_the_same() {
        let line = b"{\"cwd\":\"/w/a\"}\n".repeat(3);
        for at in (0..24).step_by(3) {
            let mut bytes = vec![b' '; PART - at];
            bytes.extend_from_slice(&line);
            assert_eq!(look(&bytes).directories, ["/w/a"], "{at}");
        }
        let mut grown = look(&line[..20]);
        assert_eq!((grown.looked, grown.directories.len()), (15, 1));
        grown.take(&mut &line[15..]).unwrap();
        assert_eq!(grown.looked, line.len() as u64);
    }

    #[test]
    fn a_hash_is_explained_by_the_files_that_are_named() {
        let hash = "4a5b8ac50a5b8e3cbb5bd8e2b3f6a0a0c6a6b8d1e5a3c8d7f2b1a0c9d8e7f6a5";
        assert!(!is_hash_of(hash, Path::new("/w/a")));
        let chat = |hash: &str| {
            look(format!(r#"{{"projectHash":"{hash}","x":[{{"name":"read_file","args":{{"absolute_path":"/w/a/src/x.rs"}}}}]}}"#).as_bytes())
        };
        assert!(chat(hash).directories.is_empty());
        use sha2::{Digest, Sha256};
        let hash: String = Sha256::digest(b"/w/a").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(chat(&hash).directories, ["/w/a"]);
    }
}
