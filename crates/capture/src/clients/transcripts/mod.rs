//! Finds the transcripts of the clients, and the directories that occur in them.
//!
//! The content of a transcript decides to which project it belongs. If the client recorded no directory in the
//! transcript, the name of its folder decides: Claude Code names a folder after the directory of the session, and
//! Gemini CLI after a hash of the directory.

mod database;
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

pub use self::database::path_of as of_database;
pub use self::every::{Listed, of_client};
pub use self::lines::{Line, Lines, around, forked_from, is_file, open};
pub use self::look::{Look, is_hash_of};
pub use self::looks::Looks;
pub use self::trees::Trees;
pub use self::unpacked::{End, Stamp, is_copy, modified, plain, stamp};

/// The folder in the data directory that contains the results of looking at transcripts.
const FOLDER: &str = "looks";

/// The number of bytes of a transcript that are searched for the working directory of its session. The number is large
/// because the first lines can be whole prompts with pictures.
const SEARCHED: u64 = 256 << 20;

/// The number of folders above a transcript that may name its directory.
const ABOVE: usize = 6;

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
    let agent = client.agent()?;
    path.ancestors().take(ABOVE).find_map(|folder| agent.recorded_directory(folder))
}

/// Returns whether `client` named the transcript's folder after one of `roots`. Ask this only if the transcript
/// contains no directory. `hash` is the hash of a directory that the transcript contains instead.
pub fn is_named_after(client: Client, path: &Path, hash: Option<&str>, roots: &[PathBuf]) -> bool {
    let Some(agent) = client.agent() else { return false };
    let folders = path.ancestors().skip(1).take(ABOVE).filter_map(|folder| folder.file_name()?.to_str());
    folders.chain(hash).any(|name| roots.iter().any(|root| agent.is_named_after(name, root)))
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
}
