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

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Kind, Result};
use crate::git::identity;
use crate::memory::Millis;

/// The longest file that is read, in bytes: a reference is two paths and a few words.
const LIMIT: u64 = 64 * 1024;

/// Pauses that are remembered one by one; where there are more, the closest become one. Half of what fits a file.
const MOST_PAUSES: usize = 1000;

const TAKEN: &str = "taken";
const WAITING: &str = "json";
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
    pub transcript: Option<PathBuf>,
    /// The commit that was made while no branch was checked out: no reference may lead to it later.
    #[serde(default)]
    pub commit: Option<String>,
    /// The directory it happened in.
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
    file: PathBuf,
}

/// The references and marks of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    folder: PathBuf,
    /// Where things were left before the repository had an id.
    former: Option<PathBuf>,
}

/// When capture was paused: from when, until when.
type Pause = (Millis, Millis);

impl Spool {
    /// Returns the spool of the project at `place`, the canonical path that it is known by; nothing is created.
    pub fn of(data_dir: &Path, place: &Path) -> Spool {
        let named = |key: &[u8]| data_dir.join("spool").join(&blake3::hash(key).to_hex()[..16]);
        let by_place = named(place.as_os_str().as_encoded_bytes());
        match identity::read(place).ok().flatten() {
            Some(id) => Spool { folder: named(format!("id:{id}").as_bytes()), former: Some(by_place) },
            None => Spool { folder: by_place, former: None },
        }
    }

    /// Returns what holds for all projects: it has no references, but a mark.
    pub fn everywhere(data_dir: &Path) -> Spool {
        Spool { folder: data_dir.join("spool"), former: None }
    }

    /// Leaves a reference, in place of an earlier one to the same session.
    ///
    /// It appears whole or not at all, but is not forced to disk: the next hook of the session would leave it again.
    pub fn leave(&self, reference: &Reference) -> Result<()> {
        let session = format!("{}\0{}", reference.client, reference.session);
        let name = blake3::hash(session.as_bytes()).to_hex();
        let bytes = serde_json::to_vec(reference).expect("a reference is plain values");
        self.put(&format!("{}.{WAITING}", &name[..16]), &bytes)
    }

    /// Takes every reference that waits, oldest first; files that are none are removed.
    pub fn take(&self) -> Vec<Taken> {
        let mut found = Vec::new();
        for path in self.references() {
            let extension = path.extension().and_then(|extension| extension.to_str());
            let file = match extension {
                Some(WAITING) => path.with_extension(TAKEN),
                _ => path.clone(),
            };
            // What was taken and not finished is replaced by what came later.
            if file != path && fs::rename(&path, &file).is_err() {
                continue;
            }
            match read(&file).and_then(|text| serde_json::from_str(&text).ok()) {
                Some(reference) => found.push(Taken { reference, file }),
                None => drop(fs::remove_file(&file)),
            }
        }
        found.sort_by(|one, other| (one.reference.at, &one.file).cmp(&(other.reference.at, &other.file)));
        found.dedup_by(|one, other| one.file == other.file);
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
        let reference =
            |path: PathBuf| serde_json::from_str::<Reference>(&read(&path)?).ok().and_then(|it| it.trouble);
        let mut troubles: Vec<String> = self.references().into_iter().filter_map(reference).collect();
        troubles.sort();
        troubles
    }

    /// Returns the files of the references.
    fn references(&self) -> Vec<PathBuf> {
        let entries = self.folders().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let reference = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.ok().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))?;
            let path = entry.path();
            matches!(path.extension()?.to_str()?, WAITING | TAKEN).then_some(path)
        };
        entries.filter_map(reference).collect()
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.folder), self.former.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Returns why nothing can be left here, or `None` where it can; leaves nothing.
    pub fn trouble(&self) -> Option<String> {
        let probe = match self.folder.symlink_metadata() {
            Err(_) => return None,
            Ok(_) => fs::read_dir(&self.folder)
                .map(drop)
                .and_then(|()| tempfile::tempfile_in(&self.folder).map(drop)),
        };
        probe.err().map(|error| format!("`{}` can't be used: {error}", self.folder.display()))
    }

    /// Returns the pointer that was left last.
    pub fn pointer(&self) -> Option<String> {
        read(&self.folder.join("pointer"))
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
        self.folders().any(|folder| is_there(&folder.join(PAUSED)) || over(folder).is_none())
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
        for folder in self.folders() {
            // Of pauses that can't be read nothing is known but that they are over.
            pauses.extend(over(folder).unwrap_or_else(|| vec![(0, now)]));
            if is_there(&folder.join(PAUSED)) {
                // Where the clock was set back meanwhile, all that lies between counts.
                let since = paused_since(folder);
                pauses.push((since.min(now), since.max(now)));
            }
        }
        self.put(PAUSES, listed(pauses).as_bytes())?;
        let former = self.former.iter().map(|folder| folder.join(PAUSES));
        for file in self.folders().map(|folder| folder.join(PAUSED)).chain(former) {
            if is_there(&file) {
                fs::remove_file(&file).context(Kind::Io, || format!("cannot remove `{}`", file.display()))?;
            }
        }
        Ok(true)
    }

    /// Returns when capture was paused, from when until when, the pause that still lasts included: what was said then
    /// stands in transcripts and is never remembered.
    pub fn pauses(&self) -> Vec<(Millis, Millis)> {
        let mut pauses = Vec::new();
        for folder in self.folders() {
            pauses.extend(over(folder).unwrap_or_else(|| vec![(0, Millis::MAX)]));
            if is_there(&folder.join(PAUSED)) {
                pauses.push((paused_since(folder), Millis::MAX));
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

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        crate::store::create_private_dir(&self.folder)?;
        put(&self.folder, name, bytes)
    }
}

impl Taken {
    /// Removes the reference: what it names is stored.
    pub fn done(self) {
        // Where it can't be removed it is followed once more, and nothing is stored twice.
        drop(fs::remove_file(&self.file));
    }

    /// Lets the reference wait on and notes why.
    pub fn keep(mut self, trouble: String) {
        self.reference.trouble = Some(trouble);
        let (Some(folder), Some(name)) = (self.file.parent(), self.file.file_name()) else { return };
        let bytes = serde_json::to_vec(&self.reference).expect("a reference is plain values");
        // Where that can't be written it waits all the same.
        drop(put(folder, &name.to_string_lossy(), &bytes));
    }
}

/// Returns the pauses of `folder` that are over, or `None` where they can't be read.
fn over(folder: &Path) -> Option<Vec<Pause>> {
    let path = folder.join(PAUSES);
    if !is_there(&path) {
        return Some(Vec::new());
    }
    let pause = |line: &str| {
        let (from, until) = line.split_once(' ')?;
        Some((from.parse().ok()?, until.parse().ok()?))
    };
    read(&path)?.lines().map(pause).collect()
}

fn paused_since(folder: &Path) -> Millis {
    read(&folder.join(PAUSED)).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
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

/// Whether something is there, or may be.
fn is_there(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    !matches!(path.symlink_metadata(), Err(error) if matches!(error.kind(), NotFound | NotADirectory))
}

/// Writes a file that appears whole or not at all.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write to `{}`", folder.display());
    let mut file = tempfile::NamedTempFile::new_in(folder).context(Kind::Io, failed)?;
    file.write_all(bytes).context(Kind::Io, failed)?;
    file.persist(folder.join(name)).map_err(|error| error.error).context(Kind::Io, failed)?;
    Ok(())
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::symlink_metadata(path).ok().is_some_and(|file| file.is_file() && file.len() <= LIMIT);
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> (tempfile::TempDir, Spool) {
        let data = tempfile::tempdir().unwrap();
        let spool = Spool::of(data.path(), Path::new("/repo/.git"));
        (data, spool)
    }

    fn reference(session: &str, at: Millis) -> Reference {
        Reference {
            client: "codex".into(),
            event: "Stop".into(),
            session: session.into(),
            transcript: Some("/tmp/t.jsonl".into()),
            commit: None,
            directory: "/repo".into(),
            at,
            trouble: None,
        }
    }

    #[test]
    fn a_session_has_one_reference_and_the_latest_counts() {
        let (_data, spool) = spool();
        assert!(spool.is_empty() && spool.take().is_empty());
        for (session, at) in [("b", 2), ("a", 1), ("b", 3)] {
            spool.leave(&reference(session, at)).unwrap();
        }
        assert_eq!(spool.waiting(), 2);
        let taken = spool.take();
        assert_eq!(taken.iter().map(|each| each.reference.at).collect::<Vec<_>>(), [1, 3]);
        taken.into_iter().for_each(Taken::done);
        assert!(spool.is_empty());
    }

    #[test]
    fn what_a_dying_process_had_taken_is_found_again() {
        let (_data, spool) = spool();
        spool.leave(&reference("a", 1)).unwrap();
        drop(spool.take());
        assert_eq!(spool.take().len(), 1);
        spool.leave(&reference("a", 2)).unwrap();
        let again = spool.take();
        assert_eq!(again.iter().map(|each| each.reference.at).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_file_that_is_no_reference_is_removed() {
        let (_data, spool) = spool();
        spool.leave(&reference("a", 1)).unwrap();
        fs::write(spool.folder.join("0.json"), "{\"client\":").unwrap();
        assert_eq!(spool.take().len(), 1);
        assert!(!spool.folder.join("0.taken").exists());
    }

    #[test]
    fn a_spool_that_cannot_be_used_says_so() {
        let (data, spool) = spool();
        assert_eq!(spool.trouble(), None);
        spool.leave(&reference("a", 1)).unwrap();
        assert_eq!(spool.trouble(), None);
        let other = Spool::of(data.path(), Path::new("/other"));
        fs::write(&other.folder, "a file in its place").unwrap();
        assert!(other.trouble().unwrap().contains("can't be used"));
    }

    #[test]
    fn the_pointer_is_kept() {
        let (_data, spool) = spool();
        assert_eq!(spool.pointer(), None);
        spool.set_pointer("12 commits").unwrap();
        assert_eq!(spool.pointer().as_deref(), Some("12 commits"));
    }

    #[test]
    fn pauses_are_remembered_after_they_end() {
        let (_data, spool) = spool();
        assert!(spool.set_paused(true, 10).unwrap());
        assert!(!spool.set_paused(true, 20).unwrap());
        assert_eq!((spool.is_paused(), spool.pauses()), (true, vec![(10, Millis::MAX)]));
        assert!(spool.set_paused(false, 30).unwrap());
        assert!(!spool.set_paused(false, 40).unwrap());
        spool.set_paused(true, 50).unwrap();
        assert_eq!(spool.pauses(), [(10, 30), (50, Millis::MAX)]);
        // The clock is set back.
        spool.set_paused(false, 45).unwrap();
        assert_eq!(spool.pauses(), [(10, 30), (45, 50)]);
    }

    #[test]
    fn a_pause_outlasts_a_move_and_the_first_id() {
        let data = tempfile::tempdir().unwrap();
        let place = data.path().join("one.git");
        fs::create_dir(&place).unwrap();
        Spool::of(data.path(), &place).leave(&reference("a", 1)).unwrap();
        Spool::of(data.path(), &place).set_paused(true, 5).unwrap();
        identity::write(&place, "project-id-1").unwrap();
        let known = Spool::of(data.path(), &place);
        assert!(known.is_paused() && known.waiting() == 1);
        assert!(known.set_paused(false, 9).unwrap() && known.set_paused(true, 20).unwrap());

        let elsewhere = data.path().join("other.git");
        fs::rename(&place, &elsewhere).unwrap();
        let moved = Spool::of(data.path(), &elsewhere);
        assert_eq!((moved.is_paused(), moved.pauses()), (true, vec![(5, 9), (20, Millis::MAX)]));
        // A repository that takes another's place takes no pause over.
        fs::create_dir(&place).unwrap();
        assert!(!Spool::of(data.path(), &place).is_paused());
        // One that gets another id does.
        identity::replace(&elsewhere, "project-id-2").unwrap();
        let linked = Spool::of(data.path(), &elsewhere);
        linked.inherit(&moved).unwrap();
        assert_eq!((linked.is_paused(), linked.pauses()), (true, vec![(5, 9), (20, Millis::MAX)]));
    }

    #[test]
    fn pauses_that_cannot_be_read_keep_everything_out() {
        let (_data, spool) = spool();
        spool.set_paused(true, 10).unwrap();
        spool.set_paused(false, 20).unwrap();
        for damage in ["10 20\n".repeat(LIMIT as usize), "10 20\nten twenty\n".to_owned()] {
            fs::write(spool.folder.join(PAUSES), damage).unwrap();
            assert!(spool.is_paused());
            assert_eq!(spool.pauses(), [(0, Millis::MAX)]);
        }
        assert!(spool.set_paused(false, 30).unwrap());
        assert_eq!((spool.is_paused(), spool.pauses()), (false, vec![(0, 30)]));
    }

    #[test]
    fn many_pauses_stay_few_lines_and_none_is_lost() {
        let (_data, spool) = spool();
        let pauses: Vec<Pause> = (0..5000).map(|n| (n * 100, n * 100 + 10 + n % 7)).collect();
        spool.put(PAUSES, listed(pauses.clone()).as_bytes()).unwrap();
        let kept = spool.pauses();
        assert_eq!(kept.len(), MOST_PAUSES);
        assert!(pauses.iter().all(|(from, until)| kept.iter().any(|it| it.0 <= *from && *until <= it.1)));
        assert_eq!(listed(vec![(5, 9), (1, 5), (20, 30)]), "1 9\n20 30\n");
    }

    #[test]
    fn only_files_are_references() {
        let (_data, spool) = spool();
        spool.leave(&reference("a", 1)).unwrap();
        spool.take().into_iter().for_each(Taken::done);
        fs::create_dir(spool.folder.join("x.json")).unwrap();
        assert!(spool.is_empty() && spool.take().is_empty());
        assert!(spool.folder.join("x.json").is_dir());
    }

    #[test]
    fn a_reference_that_is_kept_says_why() {
        let (_data, spool) = spool();
        spool.leave(&reference("a", 1)).unwrap();
        spool.take().into_iter().for_each(|taken| taken.keep("locked away".into()));
        assert_eq!((spool.waiting(), spool.troubles()), (1, vec!["locked away".to_owned()]));
        assert_eq!(spool.take().len(), 1);
    }
}
