//! Finds the transcripts that clients wrote for a project.

mod lines;
mod thin;
mod unpacked;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{Client, Places};

pub use self::lines::{Line, Lines, around, forked_from, is_file, open};
pub use self::unpacked::{End, Stamp, is_copy, is_named_transcript, modified, plain, stamp};

/// How many bytes of a transcript are searched for the working directory of its session. The number is large
/// because the first lines can be whole prompts.
const SEARCHED: u64 = 4 * 1024 * 1024;

/// The most bytes that are read from a file that contains a path.
const PATH: u64 = 4096;

/// How many levels of nested folders are searched for transcripts.
const DEPTH: usize = 5;

/// A transcript of a session in the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub path: PathBuf,
    /// The current length of the transcript, in bytes.
    pub bytes: u64,
}

/// Returns the transcripts of `client` whose sessions ran in one of `roots`, sorted by path. A session in a directory
/// above a root counts too if its transcript mentions the root.
///
/// `roots` are the canonical roots of the project's work trees. Unreadable files are skipped.
pub fn of_project(places: &Places, client: Client, roots: &[PathBuf]) -> Vec<Found> {
    let mut files = Vec::new();
    match client {
        Client::ClaudeCode => {
            // The folder is named after the path of the directory, with a dash in place of every special character.
            let prefixes: Vec<String> = roots.iter().map(|root| dashed(root)).collect();
            let above: Vec<String> =
                roots.iter().flat_map(|root| root.ancestors().skip(1)).map(dashed).collect();
            for folder in folders(&places.claude_code.join("projects")) {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if prefixes.iter().any(|prefix| name.starts_with(prefix)) || above.contains(&name) {
                    collect(&folder, DEPTH, &mut files);
                }
            }
        }
        Client::Codex => {
            collect(&places.codex.join("sessions"), DEPTH, &mut files);
            collect(&places.codex.join("archived_sessions"), DEPTH, &mut files);
        }
        Client::Gemini => {
            for folder in folders(&places.gemini.join("tmp")) {
                let is_ours = match project_root(&folder) {
                    Some(root) => is_within(&root, roots) || is_above(&root, roots),
                    None => is_hash_of(&folder, roots),
                };
                if is_ours {
                    collect(&folder.join("chats"), DEPTH, &mut files);
                }
            }
        }
        Client::Git => {}
    }
    files.sort();
    let is_here = |path: &PathBuf| match directory_of(client, path) {
        Some(at) => is_within(&at, roots) || (is_above(&at, roots) && names(path, roots)),
        None => client == Client::Gemini,
    };
    files
        .into_iter()
        .filter(is_here)
        .filter_map(|path| Some(Found { bytes: fs::metadata(&path).ok()?.len(), path }))
        .collect()
}

/// Returns the first working directory of the session of a transcript, if it is known.
pub fn directory_of(client: Client, path: &Path) -> Option<PathBuf> {
    match client {
        Client::Gemini => path.ancestors().take(DEPTH).find_map(project_root),
        _ => held_in(path),
    }
}

/// Returns whether `client` named the transcript's folder by the hash of one of the roots. Old versions of Gemini CLI
/// name folders in this way, and record the directory nowhere else.
pub fn is_named_after(client: Client, path: &Path, roots: &[PathBuf]) -> bool {
    client == Client::Gemini && path.ancestors().skip(1).take(DEPTH).any(|folder| is_hash_of(folder, roots))
}

/// Returns the directory to which a folder of Gemini CLI belongs.
fn project_root(folder: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    open(&folder.join(".project_root")).ok()?.take(PATH).read_to_string(&mut text).ok()?;
    Some(PathBuf::from(text.trim()))
}

fn held_in(path: &Path) -> Option<PathBuf> {
    let lines = BufReader::new(open(path).ok()?.take(SEARCHED)).lines();
    for line in lines.map_while(Result::ok) {
        // Parsing is slow, and most lines mention no directory.
        if !line.contains("\"cwd\"") {
            continue;
        }
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let cwd = value["cwd"].as_str().or_else(|| value["payload"]["cwd"].as_str());
        if let Some(cwd) = cwd {
            return Some(PathBuf::from(cwd));
        }
    }
    None
}

fn is_within(directory: &Path, roots: &[PathBuf]) -> bool {
    let canonical = directory.canonicalize();
    let directory = canonical.as_deref().unwrap_or(directory);
    roots.iter().any(|root| directory.starts_with(root))
}

/// Returns whether one of the roots is below `directory`.
fn is_above(directory: &Path, roots: &[PathBuf]) -> bool {
    let canonical = directory.canonicalize();
    let directory = canonical.as_deref().unwrap_or(directory);
    roots.iter().any(|root| root != directory && root.starts_with(directory))
}

/// Returns whether a transcript mentions one of the roots, or a path below one.
fn names(path: &Path, roots: &[PathBuf]) -> bool {
    let needles: Vec<String> =
        roots.iter().filter_map(|root| Some(serde_json::json!(root.to_str()?).to_string())).collect();
    // This removes the quotes around the JSON string.
    let needles: Vec<&str> = needles.iter().map(|needle| &needle[1..needle.len() - 1]).collect();
    let Ok(file) = open(path) else { return false };
    let mut reader = BufReader::new(file);
    let mut part = Vec::new();
    loop {
        part.clear();
        // A line may be too long to keep in memory, so it is searched in parts. A path that is cut in two by this
        // appears elsewhere in the transcript, too.
        match reader.by_ref().take(SEARCHED).read_until(b'\n', &mut part) {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&part);
        let ends = |rest: &str| rest.starts_with(['/', '"', '\\', ' ', ';', '&']);
        let is_named =
            |needle: &&str| text.match_indices(needle).any(|(at, _)| ends(&text[at + needle.len()..]));
        if needles.iter().any(is_named) {
            return true;
        }
    }
}

/// Returns whether an old version of Gemini CLI named the folder by the hash of one of the roots.
fn is_hash_of(folder: &Path, roots: &[PathBuf]) -> bool {
    use sha2::{Digest, Sha256};
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let hex = |root: &PathBuf| -> String {
        Sha256::digest(root.as_os_str().as_encoded_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    roots.iter().any(|root| hex(root) == name)
}

fn dashed(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect()
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(&path, depth - 1, found),
            Ok(kind) if kind.is_file() => {
                found.extend(is_named_transcript(&path).then_some(path));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it runs `mkfifo`")]
    fn only_regular_files_are_opened_and_none_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe.jsonl"), folder.path().join("link.jsonl"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // It is a link to a generated file. Reading that file never ends, or blocks until the kernel logs
        // something.
        let made_up = if Path::new("/proc/kmsg").exists() { "/proc/kmsg" } else { "/dev/zero" };
        std::os::unix::fs::symlink(made_up, &link).unwrap();
        fs::create_dir(folder.path().join("folder.jsonl")).unwrap();
        let (sender, answer) = std::sync::mpsc::channel();
        let places =
            [pipe, link, folder.path().join("folder.jsonl"), "/dev/zero".into(), "/proc/self/status".into()];
        std::thread::spawn(move || {
            for place in places {
                let errors = [Lines::open(&place, 0).map(drop), around(&place, 0, 1).map(drop)];
                sender.send((place.clone(), is_file(&place), errors, held_in(&place))).unwrap();
            }
        });
        for _ in 0..5 {
            let (place, is_file, errors, held_in) =
                answer.recv_timeout(std::time::Duration::from_secs(20)).expect("nothing is waited for");
            assert!(!is_file && held_in.is_none(), "{place:?}");
            for error in errors {
                assert_eq!(error.unwrap_err().kind(), Kind::BadInput, "{place:?}");
            }
        }
    }

    #[test]
    fn sessions_of_other_directories_are_not_found() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let root = home.join("work/my.app");
        fs::create_dir_all(root.join("src")).unwrap();
        let places = Places {
            home: home.clone(),
            claude_code: home.join(".claude"),
            codex: home.join(".codex"),
            gemini: home.join(".gemini"),
        };
        let put = |path: PathBuf, text: String| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let line = |cwd: &Path| format!("{{\"type\":\"x\"}}\n{{\"cwd\":{:?}}}\n", cwd.to_str().unwrap());
        let folder = home.join(".claude/projects").join(dashed(&root));
        put(folder.join("a.jsonl"), line(&root.join("src")));
        put(folder.join("a/subagents/agent-1.jsonl"), line(&root));
        put(
            home.join(".claude/projects").join(dashed(&root) + "-2").join("b.jsonl"),
            line(&home.join("work/my.app-2")),
        );
        put(
            home.join(".codex/sessions/2026/01/02/rollout-1.jsonl"),
            format!("{{\"payload\":{{\"cwd\":{root:?}}}}}\n"),
        );
        put(
            home.join(".codex/sessions/2026/01/02/rollout-2.jsonl"),
            "{\"payload\":{\"cwd\":\"/other\"}}\n".into(),
        );
        put(home.join(".gemini/tmp/my-app/.project_root"), root.to_str().unwrap().into());
        put(home.join(".gemini/tmp/my-app/chats/session-1.jsonl"), "{}\n".into());
        put(home.join(".gemini/tmp/other/.project_root"), "/other".into());
        put(home.join(".gemini/tmp/other/chats/session-2.jsonl"), "{}\n".into());
        let found = |client| -> Vec<String> {
            let found = of_project(&places, client, std::slice::from_ref(&root));
            found.iter().map(|each| each.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(found(Client::ClaudeCode), ["agent-1.jsonl", "a.jsonl"]);
        assert_eq!(found(Client::Codex), ["rollout-1.jsonl"]);
        assert_eq!(found(Client::Gemini), ["session-1.jsonl"]);
    }
}
