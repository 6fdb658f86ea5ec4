//! Passes references from hooks to the next call. A reference says which transcript has grown, and never contains text
//! of the transcript.
//!
//! A hook must end within a tenth of a second and must not wait, so it opens no database. It writes a small file that
//! names a transcript or a repository. The next call for that project, in any process, follows the reference. Each
//! session has one file, and its latest reference replaces the earlier one, so the number of files is bounded.
//!
//! The folder of a project also contains the pointer, which is the line that Tiro shows at the start of a session. It
//! contains the sessions that clients run now ([`running`]), and, while capture is paused, a mark.
//!
//! The folder of a repository is named after the id in the repository, so that a pause stays in force when the
//! repository is moved. Before the repository has an id, the folder is named after its path. If a mark or the list of
//! pauses can't be read, capture counts as paused. The reason is that skipped text can still be imported later, but
//! text that was stored against the user's will can't be taken back.
//!
//! A process takes a reference by renaming its file, and removes the file when the session is stored. If the process
//! dies in between, another process follows the renamed file again. Nothing is stored twice.

pub mod capture;
mod folder;
pub mod running;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use tiro_base::error::{Context, Kind, Result, quoted};
use tiro_base::memory::Millis;
use tiro_git::{Repository, identity};
use tiro_store::tuning::TRUSTED;

use folder::Folder;

/// How long Tiro keeps trying to read a transcript that a hook reported, in milliseconds: a week.
const GIVEN_UP: Millis = 7 * 24 * 60 * 60 * 1000;

/// The maximum number of pauses that are kept separately. If there are more, the closest pauses are joined. The file
/// could contain twice as many.
const MOST_PAUSES: usize = 1000;

const TAKEN: &str = ".taken";
const WAITING: &str = ".json";
/// The number of hexadecimal digits of the hash in a reference's file name. A suffix follows the hash.
const STEM: usize = 16;
/// If the recorded beginning of a pause lies more than this many milliseconds in the future, the clock was wrong when
/// the pause began. Arbitrary: a day.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;
const PAUSED: &str = "paused";
const PAUSES: &str = "pauses";

/// A transcript or a repository that has grown since it was last read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The word for the client whose hook wrote the reference, such as `claude-code` or `git`.
    pub client: String,
    /// The client's name for the event that ran the hook.
    pub event: String,
    /// Identifies the session, see [`key`]; empty for a reference from git.
    #[serde(default)]
    pub session: String,
    /// The path of the transcript.
    #[serde(default, with = "tiro_base::file::as_optional_text")]
    pub transcript: Option<PathBuf>,
    /// A commit that was made with a detached `HEAD`. Later, there may be no branch or tag that leads to this commit.
    #[serde(default)]
    pub commit: Option<String>,
    /// The working directory.
    #[serde(with = "tiro_base::file::as_text")]
    pub directory: PathBuf,
    /// When the hook ran.
    pub at: Millis,
    /// The reason why the reference could not be followed the last time.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// Returns a hash of a client's session id. The id itself is not used, because it could be anything, even a secret.
pub fn key(session: &str) -> String {
    blake3::hash(session.as_bytes()).to_hex()[..32].to_owned()
}

/// A reference that this process is following.
#[derive(Debug)]
pub struct Taken {
    /// The reference.
    pub reference: Reference,
    folder: Arc<Folder>,
    name: String,
}

/// The folder of one project, with its references and marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// The folder of all spools.
    root: PathBuf,
    folder: PathBuf,
    /// The folder that the project used before its repository had an id.
    former: Option<PathBuf>,
}

/// The beginning and the end of a pause.
type Pause = (Millis, Millis);

impl Spool {
    /// Returns the spool of the project whose canonical path is `place`. Creates nothing.
    pub fn of(data_dir: &Path, place: &Path) -> Spool {
        let root = data_dir.join("spool");
        let named = |key: &[u8]| root.join(&blake3::hash(key).to_hex()[..16]);
        let by_place = named(place.as_os_str().as_encoded_bytes());
        match identity::read(place).ok().flatten() {
            Some(id) => {
                let folder = named(format!("id:{id}").as_bytes());
                Spool { root, folder, former: Some(by_place) }
            }
            None => Spool { root, folder: by_place, former: None },
        }
    }

    /// Returns the spool of the project that `repository` belongs to. If `repository` is `None`, returns the spool of the
    /// project in the directory `root`.
    pub fn of_project(data_dir: &Path, root: &Path, repository: Option<&Repository>) -> Spool {
        let place = repository.map_or_else(
            || {
                // If the repository can't be read, its id may still be readable. So its spool is found by its git
                // directory.
                let dot_git = root.join(".git");
                let is_kept = identity::read(&dot_git).is_ok_and(|id| id.is_some());
                if is_kept { dot_git } else { root.to_owned() }
            },
            Repository::common_dir,
        );
        Spool::of(data_dir, &place)
    }

    /// Returns the spool for all projects together. It contains no references, only marks.
    pub fn everywhere(data_dir: &Path) -> Spool {
        Spool { root: data_dir.join("spool"), folder: data_dir.join("spool"), former: None }
    }

    /// Writes a reference. It replaces an earlier reference of the same session.
    ///
    /// The file is written atomically. It is not synced to disk, because the next hook of the session would write it
    /// again.
    pub fn leave(&self, reference: &Reference) -> Result<()> {
        let session = format!("{}\0{}", reference.client, reference.session);
        let name = blake3::hash(session.as_bytes()).to_hex();
        let bytes = serde_json::to_vec(reference).expect("a reference is plain values");
        self.put(&format!("{}{WAITING}", &name[..STEM]), &bytes)
    }

    /// Takes all references, the oldest first. Invalid files are removed.
    pub fn take(&self) -> Vec<Taken> {
        let mut found: Vec<Taken> = Vec::new();
        for (folder, name) in self.references() {
            let taken = match name.strip_suffix(WAITING) {
                Some(stem) => format!("{stem}{TAKEN}"),
                None => name.clone(),
            };
            // If a reference was taken but not finished, and a newer reference for the session exists, the newer one
            // replaces it.
            if taken != name && folder.rename(&name, &taken).is_err() {
                continue;
            }
            match folder.read(&taken).and_then(|text| serde_json::from_str(&text).ok()) {
                Some(reference) => found.push(Taken { reference, folder, name: taken }),
                None => drop(folder.remove(&taken)),
            }
        }
        found.sort_by(|one, other| (one.reference.at, &one.name).cmp(&(other.reference.at, &other.name)));
        found.dedup_by(|one, other| one.name == other.name && Arc::ptr_eq(&one.folder, &other.folder));
        found
    }

    /// Returns whether there are no references.
    pub fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Returns the number of references.
    pub fn waiting(&self) -> usize {
        self.references().len()
    }

    /// Returns the reasons why references could not be followed.
    pub fn troubles(&self) -> Vec<String> {
        let trouble = |(folder, name): (Arc<Folder>, String)| {
            serde_json::from_str::<Reference>(&folder.read(&name)?).ok().and_then(|it| it.trouble)
        };
        let mut troubles: Vec<String> = self.references().into_iter().filter_map(trouble).collect();
        troubles.sort();
        troubles
    }

    /// Returns the files of references, which are the regular files whose names have the form that this module writes.
    fn references(&self) -> Vec<(Arc<Folder>, String)> {
        let folders = self.folders().filter_map(|folder| Folder::open(&self.root, folder).ok()).map(Arc::new);
        let is_own = |name: &String| {
            let stem = name.strip_suffix(WAITING).or(name.strip_suffix(TAKEN));
            stem.is_some_and(|stem| stem.len() == STEM && stem.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let named = |folder: Arc<Folder>| {
            let names = folder.names().into_iter().filter(is_own);
            names.map(|name| (Arc::clone(&folder), name)).collect::<Vec<_>>()
        };
        folders.flat_map(named).collect()
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.folder), self.former.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Returns the reason why nothing can be written in the spool, or `None` if writing works. The test file is removed
    /// again.
    pub fn trouble(&self) -> Option<String> {
        let probe = match Folder::open(&self.root, &self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            folder => folder.and_then(|folder| folder.probe()),
        };
        let failed = || format!("`{}` can't be used", quoted(self.folder.display()));
        probe.context(Kind::Io, failed).err().map(|error| error.to_string())
    }

    /// Returns the latest pointer.
    pub fn pointer(&self) -> Option<String> {
        Folder::open(&self.root, &self.folder).ok()?.read("pointer")
    }

    /// Writes the pointer, unless the file already has this text.
    pub fn set_pointer(&self, text: &str) -> Result<()> {
        if self.pointer().as_deref() == Some(text) {
            return Ok(());
        }
        self.put("pointer", text.as_bytes())
    }

    /// Returns whether capture is paused in this spool.
    pub fn is_paused(&self) -> bool {
        self.looked_at().any(|folder| folder.has(PAUSED) || folder.over().is_none())
    }

    /// If `paused` is true, pauses capture from `now` on, otherwise resumes it. Returns `false` if capture was
    /// already in that state.
    pub fn set_paused(&self, paused: bool, now: Millis) -> Result<bool> {
        if paused == self.is_paused() {
            return Ok(false);
        }
        if paused {
            return self.put(PAUSED, now.to_string().as_bytes()).map(|()| true);
        }
        let mut pauses = Vec::new();
        for folder in self.looked_at() {
            // If the list can't be read, the whole time until now counts as paused.
            pauses.extend(folder.over().unwrap_or_else(|| vec![(0, now)]));
            if folder.has(PAUSED) {
                // If the clock was set back during the pause, the whole time between the beginning and now counts as
                // paused. If the clock was far ahead at the beginning, this time could be years. In that case, two
                // other periods count as paused instead: everything until now, and one day from the wrong time on.
                let since = folder.paused_since();
                match since.saturating_sub(now) > FARTHEST {
                    true => pauses.extend([(0, now), (since, since.saturating_add(FARTHEST))]),
                    false => pauses.push((since.min(now), since.max(now))),
                }
            }
        }
        self.put(PAUSES, listed(pauses).as_bytes())?;
        for (path, folder) in self.folders().zip(self.looked_at()) {
            let Look::Opened(folder) = folder else { continue };
            if folder.has(PAUSED) {
                let failed = || format!("cannot remove `{}`", quoted(path.join(PAUSED).display()));
                folder.remove(PAUSED).context(Kind::Io, failed)?;
            }
        }
        Ok(true)
    }

    /// Returns the beginning and the end of every pause, including the current pause. Messages that were written during
    /// a pause are in transcripts, but must not be stored.
    pub fn pauses(&self) -> Vec<(Millis, Millis)> {
        let mut pauses = Vec::new();
        for folder in self.looked_at() {
            pauses.extend(folder.over().unwrap_or_else(|| vec![(0, Millis::MAX)]));
            if folder.has(PAUSED) {
                pauses.push((folder.paused_since(), Millis::MAX));
            }
        }
        pauses
    }

    /// Adds the pauses of `other`, a spool that this spool replaces.
    pub fn inherit(&self, other: &Spool) -> Result<()> {
        if self.folder == other.folder {
            return Ok(());
        }
        let (over, lasting): (Vec<Pause>, Vec<Pause>) =
            other.pauses().into_iter().partition(|(_, until)| *until < Millis::MAX);
        if let Some((since, _)) = lasting.into_iter().min().filter(|_| !self.is_paused()) {
            self.put(PAUSED, since.to_string().as_bytes())?;
        }
        if over.is_empty() {
            return Ok(());
        }
        let own = self.pauses().into_iter().filter(|(_, until)| *until < Millis::MAX);
        self.put(PAUSES, listed(over.into_iter().chain(own).collect()).as_bytes())
    }

    /// Opens each folder of the spool.
    fn looked_at(&self) -> impl Iterator<Item = Look> {
        self.folders().map(|folder| match Folder::open(&self.root, folder) {
            Ok(folder) => Look::Opened(folder),
            Err(error) if error.kind() == ErrorKind::NotFound => Look::Nothing,
            Err(_) => Look::Closed,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        tiro_base::private::create_dir(&self.root)?;
        let written = Folder::make(&self.root, &self.folder).and_then(|folder| folder.put(name, bytes));
        written.context(Kind::Io, || format!("cannot write to `{}`", quoted(self.folder.display())))
    }
}

/// The result of opening a folder.
enum Look {
    Opened(Folder),
    Nothing,
    /// The folder can't be opened, or something else has its name. Such a folder counts as if it contained every mark.
    Closed,
}

impl Look {
    /// Returns whether a file of that name exists. If this can't be determined, returns true.
    fn has(&self, name: &str) -> bool {
        match self {
            Look::Opened(folder) => folder.has(name),
            Look::Nothing => false,
            Look::Closed => true,
        }
    }

    fn read(&self, name: &str) -> Option<String> {
        match self {
            Look::Opened(folder) => folder.read(name),
            Look::Nothing | Look::Closed => None,
        }
    }

    /// Returns the ended pauses, or `None` if they can't be read.
    fn over(&self) -> Option<Vec<Pause>> {
        if !self.has(PAUSES) {
            return Some(Vec::new());
        }
        let pause = |line: &str| {
            let (from, until) = line.split_once(' ')?;
            Some((from.parse().ok()?, until.parse().ok()?))
        };
        self.read(PAUSES)?.lines().map(pause).collect()
    }

    fn paused_since(&self) -> Millis {
        self.read(PAUSED).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

impl Taken {
    /// Returns whether Tiro has tried long enough to read the transcript. If the reference seems to be much older, the
    /// clock may have jumped, and the reference stays.
    pub fn is_given_up(&self, now: Millis) -> bool {
        let age = now.saturating_sub(self.reference.at);
        age > GIVEN_UP && age <= GIVEN_UP + TRUSTED
    }

    /// Removes the reference. Its content must have been stored.
    pub fn done(self) {
        // If the file can't be removed, the reference is followed once more. Nothing is stored twice then.
        drop(self.folder.remove(&self.name));
    }

    /// Keeps the reference for the next call and records why it could not be followed.
    pub fn keep(mut self, trouble: String) {
        self.reference.trouble = Some(trouble);
        let bytes = serde_json::to_vec(&self.reference).expect("a reference is plain values");
        // If recording fails, the reference still stays.
        drop(self.folder.put(&self.name, &bytes));
    }
}

/// Returns the pauses as the text of their file. They are sorted, adjacent pauses are joined, and there are at most
/// [`MOST_PAUSES`] of them.
fn listed(mut pauses: Vec<Pause>) -> String {
    pauses.sort_unstable();
    let mut joined: Vec<Pause> = Vec::new();
    for (from, until) in pauses {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    while joined.len() > MOST_PAUSES {
        let gap = |at: &usize| joined[at + 1].0 - joined[*at].1;
        let closest = (0..joined.len() - 1).min_by_key(gap).expect("there are many");
        joined[closest].1 = joined.remove(closest + 1).1;
    }
    joined.iter().map(|(from, until)| format!("{from} {until}\n")).collect()
}
