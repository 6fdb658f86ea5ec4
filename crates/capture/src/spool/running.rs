//! Records which session a client runs now, for the servers that the client started.
//!
//! The hooks and servers of a client have the process of this client among their ancestors. A hook writes the session
//! under each of the hook's nearest ancestors. A server looks for the session under its own ancestors, first under the
//! process that started it. A process is identified by its number and its start time, because numbers are used again.
//!
//! The number of files is fixed, so nothing has to be removed. If two processes share a file, the later hook overwrites
//! the file, and the server of the other process finds no session.

use serde::{Deserialize, Serialize};

use super::Spool;
use super::folder::Folder;
use tiro_base::error::Result;
use tiro_base::memory::Millis;

/// The number of ancestors of a hook that are recorded: the client, and programs between the client and the hook, such
/// as a shell.
const RECORDED: usize = 3;

/// The number of ancestors of a server that are looked up: the process that started the server, and the parent of that
/// process.
const LOOKED_UP: usize = 2;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    id: u32,
    /// The time when the process began, in a unit of the system; 0 if unknown.
    began: u64,
}

/// A session that a client runs now.
#[derive(Debug, Serialize, Deserialize)]
struct Running {
    client: String,
    process: Process,
    session: String,
    at: Millis,
}

/// Returns the processes that this process descends from, the nearest first.
pub fn ancestors() -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = parent();
    while let Some(id) = next.filter(|id| *id > 1 && found.len() < RECORDED) {
        let (began, parent) = about(id).unwrap_or((0, None));
        found.push(Process { id, began });
        next = parent;
    }
    found
}

#[cfg(unix)]
fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent() -> Option<u32> {
    None
}

/// Returns the time when a process began, and its parent. Returns `None` on systems without `/proc`.
fn about(id: u32) -> Option<(u64, Option<u32>)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program is in brackets and may contain any characters.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(19)?.parse().ok()?, fields.get(1)?.parse().ok()))
}

impl Spool {
    /// Records that `client` runs `session`, for the servers that descend from one of `processes`.
    pub fn set_running(&self, client: &str, session: &str, processes: &[Process], at: Millis) -> Result<()> {
        // The nearest process is written last, so that it is kept if two processes share a file.
        for process in processes.iter().rev() {
            let running = Running {
                client: client.to_owned(),
                process: process.clone(),
                session: session.to_owned(),
                at,
            };
            let bytes = serde_json::to_vec(&running).expect("it is plain values");
            self.put(&file_of(client, process), &bytes)?;
        }
        Ok(())
    }

    /// Returns the session that `client` runs. `processes` are the ancestors of this server, the nearest first. Other
    /// clients may also descend from the second ancestor, so a session that was recorded for it counts only if it was
    /// recorded after `since`.
    pub fn running(&self, client: &str, processes: &[Process], since: Millis) -> Option<String> {
        let folder = Folder::open(&self.root, &self.folder).ok()?;
        let found = processes.iter().take(LOOKED_UP).enumerate().find_map(|(place, process)| {
            let running: Running = serde_json::from_str(&folder.read(&file_of(client, process))?).ok()?;
            let is_own = running.client == client && running.process == *process;
            (is_own && (place == 0 || running.at >= since)).then_some(running.session)
        });
        found.filter(|session| !session.is_empty())
    }
}

/// Returns the name of the file for a process. There are 256 such names for each client.
fn file_of(client: &str, process: &Process) -> String {
    let name = format!("{client} {} {}", process.id, process.began);
    format!("running-{}", &blake3::hash(name.as_bytes()).to_hex()[..2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32) -> Process {
        Process { id, began: u64::from(id) * 10 }
    }

    #[test]
    fn a_server_finds_the_session_of_the_client_that_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::of(folder.path(), &folder.path().join("project"));
        let (client, shell, terminal) = (process(30), process(20), process(10));
        spool.set_running("codex", "here", &[client.clone(), shell.clone(), terminal.clone()], 5).unwrap();
        let running = |processes: &[Process], since| spool.running("codex", processes, since);
        assert_eq!(running(&[client.clone(), shell.clone()], 9).as_deref(), Some("here"));
        // Something between the client and the server started the server.
        assert_eq!(running(&[process(40), client.clone()], 5).as_deref(), Some("here"));
        // Another client in the same shell: a record from before it began belongs to an earlier client.
        assert_eq!(running(&[process(31), shell.clone()], 6), None);
        assert_eq!(running(&[process(31), process(21), terminal], 0), None, "too far away");
        // The number of a process is used again.
        assert_eq!(running(&[Process { id: 30, began: 7 }], 0), None);
        assert_eq!(spool.running("gemini", std::slice::from_ref(&client), 0), None);
        spool.set_running("codex", "resumed", std::slice::from_ref(&client), 8).unwrap();
        assert_eq!(running(&[client], 9).as_deref(), Some("resumed"));
    }

    #[test]
    fn the_nearest_process_is_kept_if_two_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::of(folder.path(), &folder.path().join("project"));
        let client = process(1);
        let shares = |id: &u32| file_of("codex", &process(*id)) == file_of("codex", &client);
        let shell = process((2..).find(shares).unwrap());
        spool.set_running("codex", "here", &[client.clone(), shell], 5).unwrap();
        assert_eq!(spool.running("codex", &[client], 0).as_deref(), Some("here"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_ancestors_that_began_before_it() {
        let ancestors = ancestors();
        assert!(!ancestors.is_empty() && ancestors.iter().all(|each| each.began > 0), "{ancestors:?}");
        assert!(ancestors.windows(2).all(|pair| pair[1].began <= pair[0].began), "{ancestors:?}");
    }
}
