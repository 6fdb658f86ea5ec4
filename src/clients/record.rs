//! Applying a plan and taking it back.
//!
//! Before anything is written, `changes.json` says what was there and what will be. So a process that dies between
//! the two leaves a record of something that never happened, which [`remove`] sees by the bytes, and never a change
//! without a record. A file that still has the bytes we wrote gets its former bytes back; from one that was changed
//! since, only our entries are taken.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Change, Client, Finding, GitPlace, Keep, claude_code, git_hook, without};
use crate::error::{Context, Error, Kind, Result, quoted};
use crate::file::user_file::{self, Bytes, State};
use crate::private;

/// The largest record that is read, in bytes. Arbitrary: it holds the former text of a few files of 4 MiB at most.
const LARGEST: u64 = 256 << 20;

const FILE: &str = "changes.json";
const LOCK: &str = "changes.lock";

/// How long to wait for another process that is at work.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came of applying a plan.
#[derive(Debug, Default, Serialize)]
pub struct Applied {
    /// The files that are now as planned.
    pub written: Vec<PathBuf>,
    /// What could not be written.
    pub findings: Vec<Finding>,
}

/// What came of taking back.
#[derive(Debug, Default, Serialize)]
pub struct Removed {
    /// Files that are as they were before us, or gone as they were.
    pub restored: Vec<PathBuf>,
    /// Files that somebody changed since: only our entries are gone.
    pub edited: Vec<PathBuf>,
    /// Files that nothing was recorded of: what is ours beyond doubt is gone.
    pub swept: Vec<PathBuf>,
    /// Files that were left as they are; what they need is still recorded.
    pub findings: Vec<Finding>,
    /// Hooks of other repositories, which stay.
    pub kept: Vec<PathBuf>,
    /// What stays on purpose, and what could not be known, in words.
    pub notes: Vec<String>,
    /// Every file that was recorded, where it is now.
    #[serde(skip)]
    pub(super) recorded: Vec<PathBuf>,
}

#[derive(Default, Serialize, Deserialize)]
struct Record {
    files: Vec<Recorded>,
}

#[derive(Serialize, Deserialize)]
struct Recorded {
    client: Client,
    #[serde(with = "crate::file::as_text")]
    path: PathBuf,
    before: Option<State>,
    /// What may stand there from us, oldest first; more than one only while something is being written.
    wrote: Vec<State>,
    /// Directories that were made for it, outermost first.
    made: Vec<PathBuf>,
}

/// Writes `changes`, after recording in `dir` what is there. A file that cannot be written does not keep the others
/// from it.
///
/// # Errors
///
/// [`Kind::Io`] if the record cannot be kept; then nothing was written. [`Kind::Busy`] if somebody else is at it.
pub fn apply(changes: &[Change], dir: &Path) -> Result<Applied> {
    let mut applied = Applied::default();
    if changes.is_empty() {
        return Ok(applied);
    }
    private::create_dir(dir)?;
    let _lock = lock(dir)?;
    let mut record = load(dir)?;
    for change in changes {
        note(&mut record, change);
    }
    keep(dir, &record)?;
    for change in changes {
        match write(change) {
            Ok(()) => {
                let file = record.files.iter_mut().find(|file| file.path == change.path);
                file.expect("noted above").wrote = vec![change.after.clone()];
                applied.written.push(change.path.clone());
            }
            Err(error) => applied.findings.push(Finding::new(change.client, &change.path, &error)),
        }
    }
    keep(dir, &record)?;
    Ok(applied)
}

/// Takes back everything that is recorded in `dir`, the last first. Doing it again, also after a crash, is harmless.
///
/// # Errors
///
/// [`Kind::Io`] if the record cannot be read or kept. [`Kind::Busy`] if somebody else is at it.
pub(super) fn remove(dir: &Path, repositories: &[GitPlace], spared: &Keep) -> Result<Removed> {
    let mut removed = Removed::default();
    if !dir.join(FILE).exists() {
        removed.notes.push(format!(
            "Nothing is recorded in `{}`: what stood in the place of our entries, and which other repositories have our \
             hook, can't be known.",
            quoted(dir.display())
        ));
        return Ok(removed);
    }
    let _lock = lock(dir)?;
    let mut record = load(dir)?;
    let mut left = Vec::new();
    while let Some(mut file) = record.files.pop() {
        let found = find(&mut file, dir, repositories);
        if spared.keeps(file.client, &file.path) && found.is_ok() {
            removed.recorded.push(file.path.clone());
            if file.client == Client::Git {
                removed.kept.push(file.path.clone());
            }
            left.push(file);
            continue;
        }
        let taken_back = found.and_then(|()| take_back(&file));
        removed.recorded.push(file.path.clone());
        match taken_back {
            Ok(TakenBack::Whole) => removed.restored.push(file.path),
            Ok(TakenBack::OurEntries) => removed.edited.push(file.path),
            Ok(TakenBack::Needed) => removed.notes.push(claude_code::needed(&file.path)),
            Ok(TakenBack::Nothing) => {}
            Err(error) => {
                removed.findings.push(Finding::new(file.client, &file.path, &error));
                left.push(file);
                continue;
            }
        }
        for made in file.made.iter().rev() {
            // One that somebody put something into stays.
            let _ = fs::remove_dir(made);
        }
    }
    left.reverse();
    match left.is_empty() {
        false => keep(dir, &Record { files: left })?,
        true => {
            user_file::delete(&dir.join(FILE))?;
            user_file::delete(&dir.join(LOCK))?;
            let _ = fs::remove_dir(dir);
        }
    }
    Ok(removed)
}

/// Returns the hooks that are recorded in `dir`, where they are now.
///
/// # Errors
///
/// [`Kind::Io`] if the record cannot be read.
pub(super) fn hooks(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<PathBuf>> {
    let found = |mut file: Recorded| {
        let is_hook = file.client == Client::Git && find(&mut file, dir, repositories).is_ok();
        is_hook.then_some(file.path).filter(|path| path.exists())
    };
    Ok(load(dir)?.files.into_iter().filter_map(found).collect())
}

/// Whether something of a client, and not only hooks of repositories, is recorded in `dir`.
pub fn was_applied(dir: &Path) -> bool {
    let recorded = load(dir).map(|record| record.files);
    // A record that can't be read may hold anything.
    recorded.map_or(true, |files| files.iter().any(|file| file.client != Client::Git))
}

/// Returns what is recorded in `dir` and is nowhere to be found: hooks of repositories that are not where they were and
/// none of `repositories`.
///
/// # Errors
///
/// [`Kind::Io`] if the record cannot be read.
pub fn lost(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<Finding>> {
    let lost = |mut file: Recorded| {
        let error = find(&mut file, dir, repositories).err()?;
        Some(Finding::new(file.client, &file.path, &error))
    };
    Ok(load(dir)?.files.into_iter().filter_map(lost).collect())
}

/// Follows a hook whose repository was moved.
fn find(file: &mut Recorded, dir: &Path, repositories: &[GitPlace]) -> Result<()> {
    if file.client != Client::Git {
        return Ok(());
    }
    let now = git_hook::whereabouts(&file.path, repositories).ok_or_else(|| {
        Error::not_found("its repository is not there any more").hint(format!(
            "run `tiro init --remove` in the repository where it is now; if it is gone for good and all else is taken \
             back, remove `{}`",
            quoted(dir.join(FILE).display())
        ))
    })?;
    if now != file.path {
        let moved = |made: &PathBuf| (file.path.parent() == Some(made)).then(|| now.parent()).flatten();
        file.made = file.made.iter().filter_map(moved).map(Path::to_owned).collect();
        file.path = now;
    }
    Ok(())
}

/// Adds `change` to what is recorded about its file.
fn note(record: &mut Record, change: &Change) {
    let made = missing_directories(&change.path);
    let Some(file) = record.files.iter_mut().find(|file| file.path == change.path) else {
        let Change { client, path, before, after, .. } = change.clone();
        record.files.push(Recorded { client, path, before, wrote: vec![after], made });
        return;
    };
    file.made.extend(made.into_iter().filter(|dir| !file.made.contains(dir)).collect::<Vec<_>>());
    let is_as_we_left_it = change.before.as_ref().is_some_and(|before| file.wrote.contains(before));
    if !is_as_we_left_it {
        // Somebody changed the file since. What comes back is theirs, without our entries from the time before.
        let former = file.before.take();
        file.before = change.before.as_ref().and_then(|now| ours_removed(change, now, former.as_ref()));
        file.wrote.clear();
    }
    file.wrote.push(change.after.clone());
}

fn ours_removed(change: &Change, now: &State, former: Option<&State>) -> Option<State> {
    let text = std::str::from_utf8(&now.bytes.0).ok();
    match text.map(|text| without(change.client, &change.path, text, former.and_then(text_of))) {
        Some(Ok(left)) => left.map(|left| State { bytes: Bytes(left.into_bytes()), mode: now.mode }),
        _ => Some(now.clone()),
    }
}

fn write(change: &Change) -> Result<()> {
    let target = user_file::look(&change.path)?;
    if target.state != change.before {
        return Err(Error::new(Kind::Busy, "it changed while this was decided").hint("run `tiro init` again"));
    }
    if let Some(parent) = target.path.parent() {
        fs::create_dir_all(parent)
            .context(Kind::Io, || format!("cannot make `{}`", quoted(parent.display())))?;
    }
    user_file::replace(&target.path, &change.after)
}

enum TakenBack {
    Whole,
    OurEntries,
    /// It is ours, and somebody needs it.
    Needed,
    Nothing,
}

fn take_back(file: &Recorded) -> Result<TakenBack> {
    let target = user_file::look(&file.path)?;
    // Deleted by somebody, or never written.
    let Some(now) = &target.state else { return Ok(TakenBack::Nothing) };
    if file.before.as_ref() == Some(now) {
        return Ok(TakenBack::Nothing);
    }
    if file.client == Client::ClaudeCode && claude_code::is_needed(&file.path) {
        return Ok(TakenBack::Needed);
    }
    let wrote = file.wrote.iter().find(|wrote| wrote.bytes == now.bytes);
    if let Some(wrote) = wrote {
        match file.before.clone() {
            // Only the mode may have been changed since, and then it stays.
            Some(before) if now.mode == wrote.mode => user_file::replace(&target.path, &before)?,
            Some(before) => user_file::replace(&target.path, &State { mode: now.mode, ..before })?,
            None => user_file::delete(&target.path)?,
        }
        return Ok(TakenBack::Whole);
    }
    let before = file.before.as_ref().and_then(text_of);
    let text = text_of(now).ok_or_else(|| Error::bad_input("it is not UTF-8 any more"))?;
    match without(file.client, &file.path, text, before)? {
        Some(left) if left == text => return Ok(TakenBack::Nothing),
        Some(left) => {
            user_file::replace(&target.path, &State { bytes: Bytes(left.into_bytes()), mode: now.mode })?;
        }
        None => user_file::delete(&target.path)?,
    }
    Ok(TakenBack::OurEntries)
}

fn text_of(state: &State) -> Option<&str> {
    std::str::from_utf8(&state.bytes.0).ok()
}

/// Returns the directories above `path` that are not there yet, outermost first.
fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

fn load(dir: &Path) -> Result<Record> {
    let path = dir.join(FILE);
    match crate::file::read(&path, crate::file::Links::Followed, LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes).context(Kind::Io, || {
            format!("`{}`, the record of what `tiro init` wrote, is damaged", quoted(path.display()))
        })
        .map_err(|error| {
            error.hint(
                "move it away and keep it, since your former files are in it; then `tiro init --remove` takes out what \
                 is Tiro's beyond doubt",
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(error).context(Kind::Io, || format!("cannot read `{}`", quoted(path.display()))),
    }
}

fn keep(dir: &Path, record: &Record) -> Result<()> {
    let bytes = serde_json::to_vec(record).context(Kind::Io, || "cannot record".to_owned())?;
    user_file::replace(&dir.join(FILE), &State { bytes: Bytes(bytes), mode: 0o600 })
}

/// Held while the record and the files are changed; the system lets go of it when the process ends. A file system
/// without locks is trusted to have one user.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    private::create(&path)?;
    let file =
        File::create(&path).context(Kind::Io, || format!("cannot write `{}`", quoted(path.display())))?;
    let began = Instant::now();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        // A program that is being started has our files open for a moment.
        if began.elapsed() > PATIENCE {
            return Err(Error::new(Kind::Busy, "another `tiro init` is at work")
                .hint("run this again when it has ended"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(file)
}
