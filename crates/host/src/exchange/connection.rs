//! A project's connection with a server, in files of the data directory that only the user can read.
//!
//! `connections/PROJECT.json` says which server, which project of it, and under which names. `PROJECT.key` has the key
//! alone. `PROJECT.progress.json` says how far the exchange has come; only the process that has the lease writes it. A
//! progress belongs to one connection, by the id of its device, so that a new connection begins anew. The process that
//! waits for changes of the server locks `PROJECT.waits`, which is empty.
//!
//! None of these files is in a backup: two machines with the same device id would not get each other's changes.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};
use tiro_base::memory::Millis;
use tiro_base::private;
use tiro_base::scope::ProjectId;
use tiro_llm::Key;
use tiro_sync::remote::Wanted;

/// The folder in the data directory.
const FOLDER: &str = "connections";

/// The version of the files' format.
const VERSION: u32 = 1;

/// A project's connection with a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The version of the file's format.
    version: u32,
    /// The address of the server.
    pub server: String,
    /// The user's name on the server.
    pub user: String,
    /// The id of this machine for the server. Each connection has a new one.
    pub device: String,
    /// The id of the project on the server.
    pub project: String,
    /// The name of the project on the server.
    pub name: String,
    /// Whether memories that are private on the server are exchanged, too.
    pub is_private: bool,
    /// When it was made.
    pub made_at: Millis,
}

/// How far the exchange has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The device of the connection.
    device: String,
    /// Everything up to this number of our store was sent.
    pub sent: i64,
    /// Everything up to this number of the server's store was received.
    pub received: i64,
    /// How many pages were counted ([`End::before`](tiro_sync::page::End)).
    pages: u64,
    /// How often one of the two stores turned out to be another one, or an older copy. Each time, this machine takes the name of
    /// a new device, so that each side also gives what had come from the other one.
    renewals: u32,
    /// Whether this exchange began with the first change.
    #[serde(skip)]
    pub has_begun_anew: bool,
    /// What both numbers depend on.
    pub ground: Ground,
    /// Whether the server lets machines wait for changes.
    pub can_wait: bool,
    /// When the last exchange was complete.
    pub complete_at: Option<Millis>,
    /// The failures since then.
    pub failing: Option<Failing>,
    /// The memories that the server did not take, in all exchanges of this connection.
    pub refused: u64,
}

/// What the numbers of a progress depend on. If it changes, the exchange begins anew: nothing is lost, and what is known
/// already changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ground {
    /// The id of the server's memory.
    pub server: String,
    /// The id of our own memory.
    pub own: String,
    /// The kinds of memories that are shared.
    pub kinds: Vec<String>,
    /// Whether the user may share memories.
    pub may_write: bool,
    /// The version of Tiro, if something was received that it doesn't understand.
    pub puzzled: Option<String>,
}

/// Exchanges that failed one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failing {
    /// Since when.
    pub since: Millis,
    /// How often.
    pub count: u32,
    /// When the next try by itself is made.
    pub next: Millis,
    /// Whether it may pass without anybody doing anything.
    pub is_passing: bool,
    /// What went wrong last.
    pub why: String,
    /// What to do about it, if anything can be done.
    pub hint: Option<String>,
}

impl Connection {
    /// Returns a connection in this version's format.
    pub fn new(server: String, user: String, device: String, made_at: Millis) -> Connection {
        Connection {
            version: VERSION,
            server,
            user,
            device,
            project: String::new(),
            name: String::new(),
            is_private: false,
            made_at,
        }
    }
}

impl Progress {
    /// Begins anew if what the numbers depend on is no longer `ground`, or if something was received that only another
    /// version than `version` may understand.
    pub fn stand_on(&mut self, ground: Ground, version: &str) {
        let puzzled = self.ground.puzzled.clone().filter(|then| then == version);
        let ground = Ground { puzzled, ..ground };
        let stores = |ground: &Ground| (ground.server.clone(), ground.own.clone());
        if self.ground != Ground::default() && stores(&self.ground) != stores(&ground) {
            self.renew();
        }
        if self.ground != ground {
            (self.sent, self.received, self.ground) = (0, 0, ground);
        }
        self.has_begun_anew = (self.sent, self.received) == (0, 0);
    }

    /// Begins anew, as a new device.
    fn renew(&mut self) {
        (self.sent, self.received, self.pages, self.has_begun_anew) = (0, 0, 0, true);
        self.renewals = self.renewals.saturating_add(1);
    }

    /// Counts an exchanged page. `before` is how many the server had counted before it, and `counts` whether it counts this
    /// one. If the server has counted fewer than it told this machine, it was replaced by an older copy, and has lost
    /// what came later: begins anew, and returns true.
    pub fn count(&mut self, before: Option<u64>, counts: bool) -> bool {
        let Some(before) = before else { return false };
        let is_older = before < self.pages;
        match is_older {
            true => self.renew(),
            false => self.pages = before.saturating_add(u64::from(counts)),
        }
        is_older
    }

    /// Returns the name of this machine for the server. The server's changes have its name here, too.
    pub fn device(&self) -> String {
        match self.renewals {
            0 => self.device.clone(),
            count => format!("{}x{count}", self.device),
        }
    }

    /// Returns what is asked of the server over `connection`.
    pub fn wanted<'a>(&self, connection: &'a Connection) -> Wanted<'a> {
        Wanted {
            project: &connection.project,
            device: self.device(),
            private: connection.is_private,
            pages: self.pages,
        }
    }
}

/// Returns the projects that have a connection, in the order of their ids.
///
/// Errors with [`Kind::Store`] if the folder can't be read.
pub fn projects(data_dir: &Path) -> Result<Vec<ProjectId>> {
    let folder = data_dir.join(FOLDER);
    let cannot = || format!("cannot read `{}`", quoted(folder.display()));
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(Kind::Store, cannot),
    };
    let mut projects = Vec::new();
    for entry in entries {
        let name = entry.context(Kind::Store, cannot)?.file_name();
        projects.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(ProjectId::parse));
    }
    projects.sort();
    Ok(projects)
}

/// The right of this process to wait for changes of a project's server. It ends when this value is dropped.
#[derive(Debug)]
pub struct Waiting {
    _lock: File,
}

/// The files of a project's connection.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    project: String,
}

impl Place {
    /// Returns the files of `project` in the data directory. Nothing is read yet.
    pub fn of(data_dir: &Path, project: &ProjectId) -> Place {
        Place { folder: data_dir.join(FOLDER), project: project.as_str().to_owned() }
    }

    /// Returns the connection, or `None` if there is none.
    ///
    /// Errors with [`Kind::Store`] if the file can't be read, or was written by a later version.
    pub fn connection(&self) -> Result<Option<Connection>> {
        let Some(connection) = read::<Connection>(&self.file("json"))? else { return Ok(None) };
        match connection.version > VERSION {
            true => {
                Err(Error::new(Kind::Store, "the connection with the server is of a later version of Tiro")
                    .hint("upgrade Tiro, or connect again with `tiro connect`"))
            }
            false => Ok(Some(connection)),
        }
    }

    /// Returns the key of the connection.
    ///
    /// Errors with [`Kind::BadInput`] if the file is missing, or if others can read it.
    pub fn key(&self) -> Result<String> {
        let key = config::key(&Key::File(self.file("key")))?;
        key.ok_or_else(|| Error::bad_input("the connection has no key").hint("run `tiro connect` again"))
    }

    /// Stores a connection and its key, in place of an earlier one.
    pub fn store(&self, connection: &Connection, key: &str) -> Result<()> {
        private::create_dir(&self.folder)?;
        // A process that reads between the two writes has a connection with another key, which the server refuses.
        write(&self.file("key"), format!("{key}\n").into_bytes())?;
        write(&self.file("json"), serde_json::to_vec_pretty(connection).expect("a connection is JSON"))
    }

    /// Removes the connection with its key and its progress. Returns whether there was one.
    pub fn remove(&self) -> Result<bool> {
        let was_there = self.file("json").symlink_metadata().is_ok();
        for part in ["json", "key", "progress.json", "waits"] {
            user_file::delete(&self.file(part))?;
        }
        Ok(was_there)
    }

    /// Returns how far the exchange over `connection` has come. An unreadable file counts as none, so that the exchange
    /// begins anew.
    pub fn progress(&self, connection: &Connection) -> Progress {
        let progress = read::<Progress>(&self.file("progress.json")).ok().flatten();
        let own = progress.filter(|progress| progress.device == connection.device);
        own.unwrap_or_else(|| Progress { device: connection.device.clone(), ..Progress::default() })
    }

    /// Stores how far the exchange has come. The caller has the lease.
    pub fn keep(&self, progress: &Progress) -> Result<()> {
        write(&self.file("progress.json"), serde_json::to_vec_pretty(progress).expect("a progress is JSON"))
    }

    /// Begins to wait for changes of the server. Returns `None` while another process of this machine waits, or if the file
    /// can't be locked. The end of the process ends its wait, too.
    pub fn begin_waiting(&self) -> Option<Waiting> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.file("waits")).ok()?;
        file.try_lock().ok()?;
        Some(Waiting { _lock: file })
    }

    fn file(&self, part: &str) -> PathBuf {
        self.folder.join(format!("{}.{part}", self.project))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let cannot = || format!("cannot read `{}`", quoted(path.display()));
    match std::fs::read(path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes).context(Kind::Store, cannot);
            read.map(Some).map_err(|error| error.hint("connect again with `tiro connect`"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(Kind::Store, cannot),
    }
}

fn write(path: &Path, bytes: Vec<u8>) -> Result<()> {
    user_file::replace(path, &FileSnapshot { bytes: Bytes(bytes), mode: 0o600 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::of(folder.path(), &ProjectId::from_random([7; 8]));
        (folder, place)
    }

    fn connection(device: &str) -> Connection {
        Connection::new("https://memory.test".into(), "ana".into(), device.into(), 5)
    }

    #[test]
    fn a_connection_is_kept_with_its_key_apart_and_private() {
        let (folder, place) = place();
        assert_eq!(place.connection().unwrap(), None);
        assert!(!place.remove().unwrap());
        let key = format!("tiro_{}_{}", "0".repeat(8), "1".repeat(64));
        place.store(&connection("one"), &key).unwrap();
        assert_eq!(
            (place.connection().unwrap(), place.key().unwrap()),
            (Some(connection("one")), key.clone())
        );
        for entry in std::fs::read_dir(folder.path().join(FOLDER)).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(private::openness(&path), None, "{path:?}");
            let has_key = std::fs::read_to_string(&path).unwrap().contains(&key);
            assert_eq!(has_key, path.extension().unwrap() == "key", "{path:?}");
        }
        assert!(place.remove().unwrap());
        assert_eq!(place.connection().unwrap(), None);
        assert!(place.key().is_err());
    }

    #[test]
    fn one_process_waits_until_it_ends_its_wait() {
        let (_folder, place) = place();
        assert!(place.begin_waiting().is_none(), "there is no connection");
        place.store(&connection("one"), "tiro_x").unwrap();
        let waiting = place.begin_waiting().unwrap();
        assert!(place.begin_waiting().is_none());
        drop(waiting);
        assert!(place.begin_waiting().is_some() && place.remove().unwrap());
        assert!(!place.file("waits").exists());
    }

    #[test]
    fn a_progress_belongs_to_its_connection() {
        let (folder, place) = place();
        let first = connection("one");
        place.store(&first, "tiro_x").unwrap();
        let mut progress = place.progress(&first);
        (progress.sent, progress.received) = (10, 20);
        place.keep(&progress).unwrap();
        assert_eq!(place.progress(&first), progress);
        assert_eq!(place.progress(&connection("two")).sent, 0);
        // Damage costs only time.
        let file = folder.path().join(FOLDER).join(format!("{}.progress.json", place.project));
        std::fs::write(file, "{").unwrap();
        assert_eq!(place.progress(&first).received, 0);
    }

    #[test]
    fn numbers_of_another_database_mean_nothing() {
        let ground = || Ground {
            server: "s".into(),
            own: "o".into(),
            kinds: vec!["decision".into()],
            may_write: true,
            puzzled: None,
        };
        let tried = |puzzled: Option<&str>, new: Ground, version: &str| {
            let before = Ground { puzzled: puzzled.map(str::to_owned), ..ground() };
            let mut progress =
                Progress { sent: 10, received: 20, ground: before.clone(), ..Progress::default() };
            progress.stand_on(new, version);
            let anew = progress.has_begun_anew;
            assert_eq!((progress.sent, progress.received), if anew { (0, 0) } else { (10, 20) });
            let stores = |ground: &Ground| (ground.server.clone(), ground.own.clone());
            let is_other = before != Ground::default() && stores(&progress.ground) != stores(&before);
            assert_eq!(progress.device() != Progress::default().device(), is_other);
            anew
        };
        assert!(tried(None, Ground::default(), "1"));
        assert!(!tried(None, ground(), "1"));
        assert!(
            !tried(Some("1"), ground(), "1"),
            "what this version didn't understand, it doesn't understand now"
        );
        assert!(tried(Some("1"), ground(), "2"), "another version may");
        let changes: [fn(&mut Ground); 4] = [
            |it| it.server = "replaced".into(),
            |it| it.own = "moved".into(),
            |it| it.kinds.push("fact".into()),
            |it| it.may_write = false,
        ];
        for change in changes {
            let mut other = ground();
            change(&mut other);
            assert!(tried(None, other, "1"));
        }
    }

    #[test]
    fn an_older_copy_of_a_server_has_counted_fewer_pages() {
        let mut progress = Progress { sent: 10, received: 20, ..Progress::default() };
        assert!(!progress.count(None, true), "this server doesn't count");
        assert!(!progress.count(Some(0), true) && !progress.count(Some(1), true));
        assert!(!progress.count(Some(5), false), "answers were lost on the way");
        assert!(!progress.count(Some(5), true));
        assert_eq!((progress.sent, progress.received, progress.pages), (10, 20, 6));
        assert!(progress.count(Some(5), true), "the last page is lost");
        assert_eq!((progress.sent, progress.received, progress.pages), (0, 0, 0));
        assert!(progress.has_begun_anew && !progress.count(Some(0), false));
        assert_ne!(progress.device(), Progress::default().device(), "what came from the server is sent, too");
    }

    #[test]
    fn a_connection_of_a_later_version_is_not_guessed_at() {
        let (folder, place) = place();
        place.store(&connection("one"), "tiro_x").unwrap();
        let file = folder.path().join(FOLDER).join(format!("{}.json", place.project));
        let text = std::fs::read_to_string(&file).unwrap().replace("\"version\": 1", "\"version\": 2");
        std::fs::write(&file, text).unwrap();
        assert!(place.connection().unwrap_err().to_string().contains("later version"));
        std::fs::write(&file, "{").unwrap();
        assert!(place.connection().unwrap_err().with_hint().contains("tiro connect"));
    }
}
