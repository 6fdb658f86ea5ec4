//! Lists all transcripts of a client.
//!
//! Links to transcripts and to folders are followed, so a file may be reached by several paths. The file is listed only
//! once. A folder is entered only once, so links that form a circle do no harm.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::unpacked::{is_copy, plain};
use crate::clients::{Client, Places};

/// The maximum depth of nested folders that are searched for transcripts. Arbitrary: twice the depth that the clients
/// use.
const DEPTH: usize = 10;

/// Identifies the state of a file, so that a change is noticed without reading the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The length in bytes.
    pub bytes: u64,
    /// The time of the last change, in nanoseconds since 1970.
    pub modified: u64,
    /// Numbers that stay the same while the file grows or is renamed.
    pub file: (u64, u64),
}

/// A transcript that was found and not opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The path of the transcript. If several paths lead to it, a path without links is preferred.
    pub path: PathBuf,
    /// The state of the file.
    pub stamp: Stamp,
}

/// All transcripts of a client.
#[derive(Debug, Default)]
pub struct Listing {
    /// The transcripts, sorted by path.
    pub files: Vec<Listed>,
    /// Paths that have the name of a transcript but lead to no file, such as broken links.
    pub unreadable: Vec<PathBuf>,
    /// Folders that were not searched, because they can't be read or are nested too deeply.
    pub folders: Vec<PathBuf>,
}

/// Lists the transcripts of `client`.
pub fn of_client(places: &Places, client: Client) -> Listing {
    let mut walk = Walk::new(client);
    match client {
        Client::ClaudeCode => walk.enter(&places.claude_code.join("projects"), DEPTH),
        Client::Codex => {
            walk.enter(&places.codex.join("sessions"), DEPTH);
            walk.enter(&places.codex.join("archived_sessions"), DEPTH);
        }
        Client::Gemini => {
            let entries = fs::read_dir(places.gemini.join("tmp")).into_iter().flatten().flatten();
            let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path().join("chats")).collect();
            folders.sort();
            folders.iter().for_each(|folder| walk.enter(folder, DEPTH));
        }
        Client::Git | Client::Mcp(_) => {}
    }
    walk.follow_links();
    walk.listing.files.sort_by(|one, other| one.path.cmp(&other.path));
    walk.listing
}

/// Returns whether `path` has a name that `client` gives to transcripts.
fn is_named_as_one(client: Client, path: &Path) -> bool {
    let plain = plain(path);
    match plain.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => true,
        // Claude Code uses `.json` files for other data.
        Some("json") => client != Client::ClaudeCode,
        _ => false,
    }
}

struct Walk {
    client: Client,
    listing: Listing,
    /// Links that are followed at the end, each with the number of levels that may still be entered.
    links: Vec<(PathBuf, usize)>,
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    fn new(client: Client) -> Walk {
        Walk { client, listing: Listing::default(), links: Vec::new(), seen: HashSet::new() }
    }

    fn enter(&mut self, folder: &Path, depth: usize) {
        let Ok(metadata) = fs::metadata(folder) else { return };
        if !metadata.is_dir() || !self.seen.insert(identity(folder, &metadata)) {
            return;
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) if depth > 0 => entries,
            _ => return self.listing.folders.push(folder.to_owned()),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.links.push((path, depth)),
                Ok(kind) if kind.is_dir() => self.enter(&path, depth - 1),
                _ => self.add(path),
            }
        }
    }

    /// Follows the links. This happens after everything that can be reached without links was listed.
    fn follow_links(&mut self) {
        while !self.links.is_empty() {
            let mut links = std::mem::take(&mut self.links);
            links.sort();
            for (path, depth) in links {
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => self.enter(&path, depth - 1),
                    _ => self.add(path),
                }
            }
        }
    }

    fn add(&mut self, path: PathBuf) {
        // While a client compresses a transcript, both the plain and the compressed file exist. The compressed one is
        // skipped.
        if !is_named_as_one(self.client, &path) || is_copy(&path) {
            return;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                let stamp = stamp(&path, &metadata);
                if self.seen.insert(stamp.file) {
                    self.listing.files.push(Listed { path, stamp });
                }
            }
            _ => self.listing.unreadable.push(path),
        }
    }
}

fn stamp(path: &Path, metadata: &Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    Stamp { bytes: metadata.len(), modified, file: identity(path, metadata) }
}

/// Returns numbers that identify a file or folder, whichever path leads to it.
#[cfg(unix)]
fn identity(_: &Path, metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Returns numbers that identify a file or folder, whichever path leads to it.
#[cfg(not(unix))]
fn identity(path: &Path, _: &Metadata) -> (u64, u64) {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let digest = blake3::hash(real.as_os_str().as_encoded_bytes());
    let number =
        |at: usize| u64::from_le_bytes(digest.as_bytes()[at..at + 8].try_into().expect("eight bytes"));
    (number(0), number(8))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_each_file_is_listed_once() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let places = Places {
            home: home.clone(),
            claude_code: home.join(".claude"),
            codex: home.join(".codex"),
            gemini: home.join(".gemini"),
            config: home.join(".config"),
        };
        let projects = home.join(".claude/projects");
        let put = |path: PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        };
        put(projects.join("z/real.jsonl"));
        put(projects.join("z/subagents/agent-1.jsonl"));
        put(projects.join("z/notes.txt"));
        put(home.join("kept/far.jsonl"));
        symlink("z/real.jsonl", projects.join("a.jsonl")).unwrap();
        symlink(home.join("kept"), projects.join("kept")).unwrap();
        symlink("..", projects.join("z/around")).unwrap();
        symlink("nothing", projects.join("z/lost.jsonl")).unwrap();
        fs::hard_link(projects.join("z/real.jsonl"), projects.join("z/same.jsonl")).unwrap();
        let listing = of_client(&places, Client::ClaudeCode);
        let names: Vec<String> = listing
            .files
            .iter()
            .map(|each| each.path.strip_prefix(&projects).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!((names[0].as_str(), names[2].as_str()), ("kept/far.jsonl", "z/subagents/agent-1.jsonl"));
        assert!(["z/real.jsonl", "z/same.jsonl"].contains(&names[1].as_str()), "{names:?}");
        assert_eq!(listing.unreadable, [projects.join("z/lost.jsonl")]);
        assert!(listing.folders.is_empty());
        let deep = (0..DEPTH + 2).fold(projects.clone(), |path, _| path.join("deep"));
        put(deep.join("x.jsonl"));
        let listing = of_client(&places, Client::ClaudeCode);
        assert_eq!((listing.files.len(), listing.folders.len()), (3, 1));
    }
}
