//! What hooks leave for the next call: references to what grew, never text.
//!
//! A hook has a tenth of a second and must not wait for anybody, so it opens no database. It leaves a small file that
//! names a transcript or a repository; the next call of any process of that project follows it. One file stands for one
//! session, the latest reference replacing the one before, so that what waits is bounded. Beside the references of a
//! project lie its pointer, the line that a session begins with, and a mark while capture is paused.
//!
//! A repository's folder is named after the id that it keeps, so that a pause lasts when it is moved; until it has one,
//! after its path. A mark or a list of pauses that can't be read counts as a pause: what is kept out can still be
//! imported, what was stored against somebody's will can't be unread.
//!
//! A reference is taken by renaming it and removed once what it names is stored; where a process dies in between, the
//! next one finds the renamed file and follows it again, which stores nothing twice.

pub mod capture;
mod folder;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Context, Kind, Result, quoted};
use crate::git::identity;
use crate::memory::Millis;

use folder::Folder;

/// Pauses that are remembered one by one; where there are more, the closest become one. Half of what fits a file.
const MOST_PAUSES: usize = 1000;

const TAKEN: &str = ".taken";
const WAITING: &str = ".json";
/// Characters of a name before that.
const STEM: usize = 16;
const PAUSED: &str = "paused";
const PAUSES: &str = "pauses";

/// Something that grew since it was last read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The program whose hook left it: `claude-code`, `codex`, `gemini` or `git`.
    pub client: String,
    /// The hook that left it, by the client's own name.
    pub event: String,
    /// What tells sessions apart, see [`key`]; empty for git.
    #[serde(default)]
    pub session: String,
    /// Where the session is written down.
    #[serde(default, with = "crate::file::as_optional_text")]
    pub transcript: Option<PathBuf>,
    /// The commit that was made while no branch was checked out: no reference may lead to it later.
    #[serde(default)]
    pub commit: Option<String>,
    /// The directory it happened in.
    #[serde(with = "crate::file::as_text")]
    pub directory: PathBuf,
    /// When.
    pub at: Millis,
    /// Why it could not be followed the last time.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// Returns what stands for a client's id of a session: a client may call it anything, a secret included.
pub fn key(session: &str) -> String {
    blake3::hash(session.as_bytes()).to_hex()[..32].to_owned()
}

/// A reference that this process follows.
#[derive(Debug)]
pub struct Taken {
    /// What it refers to.
    pub reference: Reference,
    folder: Arc<Folder>,
    name: String,
}

/// The references and marks of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// The folder of all spools.
    root: PathBuf,
    folder: PathBuf,
    /// Where things were left before the repository had an id.
    former: Option<PathBuf>,
}

/// When capture was paused: from when, until when.
type Pause = (Millis, Millis);

impl Spool {
    /// Returns the spool of the project at `place`, the canonical path that it is known by; nothing is created.
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

    /// Returns what holds for all projects: it has no references, but a mark.
    pub fn everywhere(data_dir: &Path) -> Spool {
        Spool { root: data_dir.join("spool"), folder: data_dir.join("spool"), former: None }
    }

    /// Leaves a reference, in place of an earlier one to the same session.
    ///
    /// It appears whole or not at all, but is not forced to disk: the next hook of the session would leave it again.
    pub fn leave(&self, reference: &Reference) -> Result<()> {
        let session = format!("{}\0{}", reference.client, reference.session);
        let name = blake3::hash(session.as_bytes()).to_hex();
        let bytes = serde_json::to_vec(reference).expect("a reference is plain values");
        self.put(&format!("{}{WAITING}", &name[..STEM]), &bytes)
    }

    /// Takes every reference that waits, oldest first; files in the place of one that are none are removed.
    pub fn take(&self) -> Vec<Taken> {
        let mut found: Vec<Taken> = Vec::new();
        for (folder, name) in self.references() {
            let taken = match name.strip_suffix(WAITING) {
                Some(stem) => format!("{stem}{TAKEN}"),
                None => name.clone(),
            };
            // What was taken and not finished is replaced by what came later.
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

    /// Whether anything waits.
    pub fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Returns how many references wait.
    pub fn waiting(&self) -> usize {
        self.references().len()
    }

    /// Returns why references could not be followed that wait.
    pub fn troubles(&self) -> Vec<String> {
        let trouble = |(folder, name): (Arc<Folder>, String)| {
            serde_json::from_str::<Reference>(&folder.read(&name)?).ok().and_then(|it| it.trouble)
        };
        let mut troubles: Vec<String> = self.references().into_iter().filter_map(trouble).collect();
        troubles.sort();
        troubles
    }

    /// Returns the files of the references: regular ones that are called as this module calls them.
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

    /// Returns why nothing can be left here, or `None` where it can; leaves nothing.
    pub fn trouble(&self) -> Option<String> {
        let probe = match Folder::open(&self.root, &self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            folder => folder.and_then(|folder| folder.probe()),
        };
        let failed = || format!("`{}` can't be used", quoted(self.folder.display()));
        probe.context(Kind::Io, failed).err().map(|error| error.to_string())
    }

    /// Returns the pointer that was left last.
    pub fn pointer(&self) -> Option<String> {
        Folder::open(&self.root, &self.folder).ok()?.read("pointer")
    }

    /// Leaves the pointer; nothing is written where it is the same.
    pub fn set_pointer(&self, text: &str) -> Result<()> {
        if self.pointer().as_deref() == Some(text) {
            return Ok(());
        }
        self.put("pointer", text.as_bytes())
    }

    /// Whether capture is paused here.
    pub fn is_paused(&self) -> bool {
        self.looked_at().any(|folder| folder.has(PAUSED) || folder.over().is_none())
    }

    /// Pauses capture from `now` on, or lets it go on; `false` where it was so already.
    pub fn set_paused(&self, paused: bool, now: Millis) -> Result<bool> {
        if paused == self.is_paused() {
            return Ok(false);
        }
        if paused {
            return self.put(PAUSED, now.to_string().as_bytes()).map(|()| true);
        }
        let mut pauses = Vec::new();
        for folder in self.looked_at() {
            // Of pauses that can't be read nothing is known but that they are over.
            pauses.extend(folder.over().unwrap_or_else(|| vec![(0, now)]));
            if folder.has(PAUSED) {
                // Where the clock was set back meanwhile, all that lies between counts.
                let since = folder.paused_since();
                pauses.push((since.min(now), since.max(now)));
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

    /// Returns when capture was paused, from when until when, the pause that still lasts included: what was said then
    /// stands in transcripts and is never remembered.
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

    /// Takes over the pauses of `other`, which this one takes the place of.
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

    /// Looks into each folder.
    fn looked_at(&self) -> impl Iterator<Item = Look> {
        self.folders().map(|folder| match Folder::open(&self.root, folder) {
            Ok(folder) => Look::Opened(folder),
            Err(error) if error.kind() == ErrorKind::NotFound => Look::Nothing,
            Err(_) => Look::Closed,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        crate::private::create_dir(&self.root)?;
        let written = Folder::make(&self.root, &self.folder).and_then(|folder| folder.put(name, bytes));
        written.context(Kind::Io, || format!("cannot write to `{}`", quoted(self.folder.display())))
    }
}

/// What a look into a folder came to.
enum Look {
    Opened(Folder),
    Nothing,
    /// It can't be looked into, or something else stands in its place: whatever it may hold counts as held.
    Closed,
}

impl Look {
    /// Whether something is called that, or may be.
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

    /// Returns the pauses that are over, or `None` where they can't be read.
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
    /// Removes the reference: what it names is stored.
    pub fn done(self) {
        // Where it can't be removed it is followed once more, and nothing is stored twice.
        drop(self.folder.remove(&self.name));
    }

    /// Lets the reference wait on and notes why.
    pub fn keep(mut self, trouble: String) {
        self.reference.trouble = Some(trouble);
        let bytes = serde_json::to_vec(&self.reference).expect("a reference is plain values");
        // Where that can't be written it waits all the same.
        drop(self.folder.put(&self.name, &bytes));
    }
}

/// Returns pauses as they are written down: in order, those that touch joined, and not too many.
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
