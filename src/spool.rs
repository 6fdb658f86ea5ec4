//! What hooks leave for the next call: references to what grew, never text.
//!
//! A hook has a tenth of a second and must not wait for anybody, so it opens no database. It leaves a small file that
//! names a transcript or a repository; the next call of any process of that project follows it. One file stands for one
//! session, the latest reference replacing the one before, so that what waits is bounded. Beside the references of a
//! project lie its pointer, the line that a session begins with, and a mark while capture is paused.
//!
//! A reference is taken by renaming it and removed once what it names is stored; where a process dies in between, the
//! next one finds the renamed file and follows it again, which stores nothing twice.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Kind, Result};
use crate::memory::Millis;

/// The longest file that is read, in bytes: a reference is two paths and a few words.
const LIMIT: u64 = 64 * 1024;

const TAKEN: &str = "taken";
const WAITING: &str = "json";

/// Something that grew since it was last read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The program whose hook left it: `claude-code`, `codex`, `gemini` or `git`.
    pub client: String,
    /// The hook that left it, by the client's own name.
    pub event: String,
    /// The client's id of the session; empty for git.
    #[serde(default)]
    pub session: String,
    /// Where the session is written down.
    pub transcript: Option<PathBuf>,
    /// The directory it happened in.
    pub directory: PathBuf,
    /// When.
    pub at: Millis,
}

/// A reference that this process follows.
#[derive(Debug)]
pub struct Taken {
    /// What it refers to.
    pub reference: Reference,
    file: PathBuf,
}

/// The references and marks of one project.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
}

impl Spool {
    /// Returns the spool of the project at `place`, the canonical path that it is known by; nothing is created.
    pub fn of(data_dir: &Path, place: &Path) -> Spool {
        let name = blake3::hash(place.as_os_str().as_encoded_bytes()).to_hex();
        Spool { folder: data_dir.join("spool").join(&name[..16]) }
    }

    /// Returns what holds for all projects: it has no references, but a mark.
    pub fn everywhere(data_dir: &Path) -> Spool {
        Spool { folder: data_dir.join("spool") }
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
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found = Vec::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let extension = path.extension().and_then(|extension| extension.to_str());
            let file = match extension {
                Some(WAITING) => path.with_extension(TAKEN),
                Some(TAKEN) => path.clone(),
                _ => continue,
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
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        let is_reference = |name: &str| name.ends_with(WAITING) || name.ends_with(TAKEN);
        entries
            .filter(|entry| entry.as_ref().is_ok_and(|e| e.file_name().to_str().is_some_and(is_reference)))
            .count()
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
        self.folder.join("paused").exists()
    }

    /// Pauses capture from `now` on, or lets it go on; `false` where it was so already.
    pub fn set_paused(&self, paused: bool, now: Millis) -> Result<bool> {
        if paused == self.is_paused() {
            return Ok(false);
        }
        if paused {
            return self.put("paused", now.to_string().as_bytes()).map(|()| true);
        }
        let mut pauses = read(&self.folder.join("pauses")).unwrap_or_default();
        // Where the clock was set back meanwhile, all that lies between counts.
        let since = self.paused_since().unwrap_or(0);
        pauses += &format!("{} {}\n", since.min(now), since.max(now));
        self.put("pauses", pauses.as_bytes())?;
        fs::remove_file(self.folder.join("paused"))
            .context(Kind::Io, || format!("cannot change `{}`", self.folder.display()))?;
        Ok(true)
    }

    /// Returns when capture was paused, from when until when, the pause that still lasts included: what was said then
    /// stands in transcripts and is never remembered.
    pub fn pauses(&self) -> Vec<(Millis, Millis)> {
        let over = read(&self.folder.join("pauses")).unwrap_or_default();
        let pause = |line: &str| {
            let (from, until) = line.split_once(' ')?;
            Some((from.parse().ok()?, until.parse().ok()?))
        };
        let lasting = self.is_paused().then(|| (self.paused_since().unwrap_or(0), Millis::MAX));
        over.lines().filter_map(pause).chain(lasting).collect()
    }

    fn paused_since(&self) -> Option<Millis> {
        read(&self.folder.join("paused"))?.trim().parse().ok()
    }

    /// Writes a file that appears whole or not at all.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let failed = || format!("cannot write to `{}`", self.folder.display());
        crate::store::create_private_dir(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).context(Kind::Io, failed)?;
        file.write_all(bytes).context(Kind::Io, failed)?;
        file.persist(self.folder.join(name)).map_err(|error| error.error).context(Kind::Io, failed)?;
        Ok(())
    }
}

impl Taken {
    /// Removes the reference: what it names is stored.
    pub fn done(self) {
        // Where it can't be removed it is followed once more, and nothing is stored twice.
        drop(fs::remove_file(&self.file));
    }
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
            directory: "/repo".into(),
            at,
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
}
