//! Finds the transcripts of the clients, and the directories that occur in them.
//!
//! The content of a transcript decides to which project it belongs. If the client recorded no directory in the
//! transcript, the name of its folder decides: Claude Code names a folder after the directory of the session, and
//! Gemini CLI after a hash of the directory.

mod every;
mod lines;
mod look;
mod looks;
mod thin;
mod trees;
mod unpacked;

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Client;

pub use self::every::{Listed, of_client};
pub use self::lines::{Line, Lines, around, forked_from, is_file, open};
pub use self::look::Look;
pub use self::looks::Looks;
pub use self::trees::Trees;
pub use self::unpacked::{End, Stamp, is_copy, modified, plain, stamp};

/// The folder in the data directory that contains the results of looking at transcripts.
const FOLDER: &str = "looks";

/// The number of bytes of a transcript that are searched for the working directory of its session. The number is large
/// because the first lines can be whole prompts with pictures.
const SEARCHED: u64 = 256 << 20;

/// The most bytes that are read from a file that contains a path.
const PATH: u64 = 4096;

/// The number of folders above a chat of Gemini CLI that are searched for the file that names its directory.
const ABOVE: usize = 6;

/// The longest name that Claude Code gives to a folder, in bytes. The hash that follows a longer name is not counted.
const LONGEST_NAME: usize = 200;

/// Returns the first working directory of the session of a transcript, if it is known.
pub fn directory_of(client: Client, path: &Path) -> Option<PathBuf> {
    let reader = || Some(open(path).ok()?.take(SEARCHED));
    match client {
        Client::Gemini => recorded_directory(client, path).or_else(|| {
            let mut look = Look::default();
            look.take(&mut reader()?).ok()?;
            look.directories.into_iter().next().map(PathBuf::from)
        }),
        _ => Look::first_directory(&mut reader()?).map(PathBuf::from),
    }
}

/// Returns the hash of the directory, if the transcript contains it. Only chats of Gemini CLI contain such a hash.
pub fn hash_of(client: Client, path: &Path) -> Option<String> {
    let mut look = Look::default();
    let mut reader = open(path).ok().filter(|_| client == Client::Gemini)?.take(SEARCHED);
    look.take(&mut reader).ok()?;
    look.hash
}

/// Returns the directory that the client recorded beside the transcript. Only Gemini CLI records it.
pub fn recorded_directory(client: Client, path: &Path) -> Option<PathBuf> {
    match client {
        Client::Gemini => path.ancestors().take(ABOVE).find_map(project_root),
        _ => None,
    }
}

/// Returns whether `client` named the transcript's folder after one of `roots`. Ask this only if the transcript
/// contains no directory. `hash` is the hash of a directory that the transcript contains instead.
pub fn is_named_after(client: Client, path: &Path, hash: Option<&str>, roots: &[PathBuf]) -> bool {
    let folders = path.ancestors().skip(1).take(ABOVE).filter_map(|folder| folder.file_name()?.to_str());
    let is_of = |name: &str, root: &PathBuf| match client {
        Client::ClaudeCode => name == dashed(root),
        Client::Gemini => look::is_hash_of(name, root),
        Client::Codex | Client::Git | Client::Mcp(_) => false,
    };
    folders.chain(hash).any(|name| roots.iter().any(|root| is_of(name, root)))
}

/// Returns the directory to which a folder of Gemini CLI belongs.
fn project_root(folder: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    open(&folder.join(".project_root")).ok()?.take(PATH).read_to_string(&mut text).ok()?;
    Some(PathBuf::from(text.trim())).filter(|root| root.is_absolute())
}

/// Returns the name that Claude Code gives to the folder of a directory. Each special character is replaced by a dash.
/// A long name is cut and followed by a hash. Characters are counted as in UTF-16.
fn dashed(path: &Path) -> String {
    let units: Vec<u16> = path.to_string_lossy().encode_utf16().collect();
    let is_plain = |unit: &u16| char::from_u32(u32::from(*unit)).is_some_and(|c| c.is_ascii_alphanumeric());
    let name: String =
        units.iter().map(|unit| if is_plain(unit) { char::from(*unit as u8) } else { '-' }).collect();
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let step = |hash: i32, unit: &u16| hash.wrapping_mul(31).wrapping_add(i32::from(*unit));
    let mut hash = units.iter().fold(0_i32, step).unsigned_abs();
    let mut digits = Vec::new();
    while hash > 0 || digits.is_empty() {
        digits.push(char::from_digit(hash % 36, 36).expect("a digit"));
        hash /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("{}-{digits}", &name[..LONGEST_NAME])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use tiro_base::error::Kind;

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
                sender
                    .send((place.clone(), is_file(&place), errors, directory_of(Client::ClaudeCode, &place)))
                    .unwrap();
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
    fn folders_are_named_as_claude_code_names_them() {
        assert_eq!(dashed(Path::new("/w/my.app")), "-w-my-app");
        assert_eq!(dashed(Path::new("/ty\u{f6}/\u{1f6a2} x")), "-ty-----x");
        let long = PathBuf::from(format!("/{}", "a".repeat(250)));
        let name = dashed(&long);
        assert_eq!(&name[..201], format!("-{}-", "a".repeat(199)));
        assert_eq!(&name[201..], "feo44x");
    }
}
