//! Applies a plan and records the former contents, so that the plan can be undone.
//!
//! Before a file is written, its former and its new content are recorded in `changes.json`. If a process dies in
//! between, the record has a change that was not made, and [`remove`] recognises this by the bytes of the file. There
//! is never a change without a record. A file that still has the bytes that we wrote gets its former bytes back. If a
//! file was changed after we wrote it, only our entries are removed from it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Change, Client, Finding, GitPlace, Keep, git_hook, without};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot, Target};
use tiro_base::private;

/// The largest record that is read, in bytes. Arbitrary: far more than the former texts of a few files, each of which
/// has at most 4 MiB.
const LARGEST: u64 = 256 << 20;

const FILE: &str = "changes.json";
const LOCK: &str = "changes.lock";

/// The longest time to wait for another process to release the record.
const PATIENCE: Duration = Duration::from_secs(2);

/// The result of applying a plan.
#[derive(Debug, Default, Serialize)]
pub struct Applied {
    /// The files that now have the planned content.
    pub written: Vec<PathBuf>,
    /// The files that could not be written, and why.
    pub findings: Vec<Finding>,
}

/// The result of removing Tiro's entries.
#[derive(Debug, Default, Serialize)]
pub struct Removed {
    /// Files that have their former content again, or were deleted because they did not exist before.
    pub restored: Vec<PathBuf>,
    /// Files that were changed after we wrote them. Only our entries were removed from these files.
    pub edited: Vec<PathBuf>,
    /// Files without a record. The entries that are certainly ours were removed from these files.
    pub swept: Vec<PathBuf>,
    /// The files that could not be restored. They were not changed, and their records stay.
    pub findings: Vec<Finding>,
    /// Hooks of other repositories, which were kept.
    pub kept: Vec<PathBuf>,
    /// Notes for the user about what stays on purpose and what is unknown.
    pub notes: Vec<String>,
    /// The current paths of all files in the record.
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
    #[serde(with = "tiro_base::file::as_text")]
    path: PathBuf,
    before: Option<FileSnapshot>,
    /// The contents that we wrote, oldest first. The list has more than one entry only while the file is being written.
    wrote: Vec<FileSnapshot>,
    /// Directories that were created for the file, outermost first.
    made: Vec<PathBuf>,
}

/// Records the current contents in `dir`, then writes `changes`. If one file can't be written, the others are still
/// written.
///
/// # Errors
///
/// [`Kind::Io`] if the record can't be written. In this case nothing is changed. [`Kind::Busy`] if another process is
/// using the record.
pub fn apply(changes: &[Change], dir: &Path) -> Result<Applied> {
    let mut applied = Applied::default();
    if changes.is_empty() {
        return Ok(applied);
    }
    private::create_dir(dir)?;
    let _lock = lock(dir)?;
    let mut record = load(dir)?;
    // Nothing is recorded of a change that came too late, so that the former content of its file stays recorded.
    let mut timely = Vec::new();
    for change in changes {
        match target(change) {
            Ok(_) => timely.push(change),
            Err(error) => applied.findings.push(Finding::new(change.client, &change.path, &error)),
        }
    }
    timely.iter().for_each(|change| note(&mut record, change));
    write_record(dir, &record)?;
    for change in timely {
        match write(change) {
            Ok(()) => {
                let file = record.files.iter_mut().find(|file| file.path == change.path);
                file.expect("noted above").wrote = vec![change.after.clone()];
                applied.written.push(change.path.clone());
            }
            Err(error) => applied.findings.push(Finding::new(change.client, &change.path, &error)),
        }
    }
    write_record(dir, &record)?;
    Ok(applied)
}

/// Undoes everything that is recorded in `dir`, the last change first. The call can be repeated, even after a crash.
///
/// # Errors
///
/// [`Kind::Io`] if the record can't be read or written. [`Kind::Busy`] if another process is using the record.
pub(super) fn remove(dir: &Path, repositories: &[GitPlace], keep: &Keep) -> Result<Removed> {
    let mut removed = Removed::default();
    if !dir.join(FILE).exists() {
        removed.notes.push(format!(
            "`{}` has no record, so the former values of our entries, and the other repositories with our \
             hook, are unknown.",
            quoted(dir.display())
        ));
        return Ok(removed);
    }
    let _lock = lock(dir)?;
    let mut record = load(dir)?;
    let mut left = Vec::new();
    while let Some(mut file) = record.files.pop() {
        let found = find(&mut file, dir, repositories);
        if keep.keeps(file.client, &file.path) && found.is_ok() {
            removed.recorded.push(file.path.clone());
            if file.client == Client::Git {
                removed.kept.push(file.path.clone());
            }
            left.push(file);
            continue;
        }
        let undone = found.and_then(|()| undo(&file));
        removed.recorded.push(file.path.clone());
        match undone {
            Ok(Undone::Whole) => removed.restored.push(file.path),
            Ok(Undone::OurEntries) => removed.edited.push(file.path),
            Ok(Undone::Needed) => removed.notes.push(needed(&file.path)),
            Ok(Undone::Nothing) => {}
            Err(error) => {
                removed.findings.push(Finding::new(file.client, &file.path, &error));
                left.push(file);
                continue;
            }
        }
        for made in file.made.iter().rev() {
            // This fails if the user put something into the directory, which then stays.
            let _ = fs::remove_dir(made);
        }
    }
    left.reverse();
    match left.is_empty() {
        false => write_record(dir, &Record { files: left })?,
        true => {
            user_file::delete(&dir.join(FILE))?;
            user_file::delete(&dir.join(LOCK))?;
            let _ = fs::remove_dir(dir);
        }
    }
    Ok(removed)
}

/// Returns the current paths of the hooks that are recorded in `dir`.
///
/// # Errors
///
/// [`Kind::Io`] if the record can't be read.
pub(super) fn hooks(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<PathBuf>> {
    let found = |mut file: Recorded| {
        let is_hook = file.client == Client::Git && find(&mut file, dir, repositories).is_ok();
        is_hook.then_some(file.path).filter(|path| path.exists())
    };
    Ok(load(dir)?.files.into_iter().filter_map(found).collect())
}

/// Returns whether `dir` records a file of a client that is set up without being named, not only hooks of
/// repositories.
pub fn was_applied(dir: &Path) -> bool {
    let recorded = load(dir).map(|record| record.files);
    let is_such = |file: &Recorded| !matches!(file.client, Client::Git | Client::Mcp(_));
    // A record that can't be read may contain such a file.
    recorded.map_or(true, |files| files.iter().any(is_such))
}

/// Returns a finding for each recorded hook whose repository can't be found. Such a repository is no longer at its
/// former path, and is not one of `repositories` either.
///
/// # Errors
///
/// [`Kind::Io`] if the record can't be read.
pub fn lost(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<Finding>> {
    let lost = |mut file: Recorded| {
        let error = find(&mut file, dir, repositories).err()?;
        Some(Finding::new(file.client, &file.path, &error))
    };
    Ok(load(dir)?.files.into_iter().filter_map(lost).collect())
}

/// Updates the path of a hook whose repository was moved.
fn find(file: &mut Recorded, dir: &Path, repositories: &[GitPlace]) -> Result<()> {
    if file.client != Client::Git {
        return Ok(());
    }
    let now = git_hook::current_path(&file.path, repositories).ok_or_else(|| {
        Error::not_found("its repository is gone").hint(format!(
            "if it was moved, run `tiro init --remove` where it is now; if it was deleted and everything else is \
             removed, delete `{}`",
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

/// Adds `change` to the record of its file.
fn note(record: &mut Record, change: &Change) {
    let made = missing_directories(&change.path);
    let Some(file) = record.files.iter_mut().find(|file| file.path == change.path) else {
        let Change { client, path, before, after, .. } = change.clone();
        record.files.push(Recorded { client, path, before, wrote: vec![after], made });
        return;
    };
    file.made.extend(made.into_iter().filter(|dir| !file.made.contains(dir)).collect::<Vec<_>>());
    // A plan that was made before another process wrote the file begins with the former content, too.
    let is_former = change.before == file.before;
    let is_unchanged = is_former || change.before.as_ref().is_some_and(|before| file.wrote.contains(before));
    if !is_unchanged {
        // The file was changed after we wrote it. From now on, its former content is the current content without our
        // entries.
        let former = file.before.take();
        let wrote = file.wrote.last().cloned();
        file.before =
            change.before.as_ref().and_then(|now| ours_removed(change, now, former.as_ref(), wrote.as_ref()));
        file.wrote.clear();
    }
    file.wrote.push(change.after.clone());
}

fn ours_removed(
    change: &Change,
    now: &FileSnapshot,
    former: Option<&FileSnapshot>,
    wrote: Option<&FileSnapshot>,
) -> Option<FileSnapshot> {
    let text = std::str::from_utf8(&now.bytes.0).ok();
    match text.map(|text| {
        without(change.client, &change.path, text, former.and_then(text_of), wrote.and_then(text_of))
    }) {
        Some(Ok(left)) => left.map(|left| FileSnapshot { bytes: Bytes(left.into_bytes()), mode: now.mode }),
        _ => Some(now.clone()),
    }
}

/// Returns the file to be changed. Errors with [`Kind::Busy`] if it no longer has the content that was read.
fn target(change: &Change) -> Result<Target> {
    let target = user_file::look(&change.path)?;
    match target.state == change.before {
        true => Ok(target),
        false => {
            Err(Error::new(Kind::Busy, "the file was changed since it was read")
                .hint("run `tiro init` again"))
        }
    }
}

fn write(change: &Change) -> Result<()> {
    let target = target(change)?;
    if let Some(parent) = target.path.parent() {
        fs::create_dir_all(parent)
            .context(Kind::Io, || format!("cannot make `{}`", quoted(parent.display())))?;
    }
    user_file::replace(&target.path, &change.after)
}

enum Undone {
    Whole,
    OurEntries,
    /// The file is ours, but must stay, because a user has added something to another file of the plugin.
    Needed,
    Nothing,
}

fn undo(file: &Recorded) -> Result<Undone> {
    let target = user_file::look(&file.path)?;
    // If there is no file, the user has deleted it, or it was never written.
    let Some(now) = &target.state else { return Ok(Undone::Nothing) };
    if file.before.as_ref() == Some(now) {
        return Ok(Undone::Nothing);
    }
    if file.client.agent().is_some_and(|agent| agent.is_needed(&file.path)) {
        return Ok(Undone::Needed);
    }
    let wrote = file.wrote.iter().find(|wrote| wrote.bytes == now.bytes);
    if let Some(wrote) = wrote {
        match file.before.clone() {
            // If the user changed only the mode, the file keeps the new mode.
            Some(before) if now.mode == wrote.mode => user_file::replace(&target.path, &before)?,
            Some(before) => user_file::replace(&target.path, &FileSnapshot { mode: now.mode, ..before })?,
            None => user_file::delete(&target.path)?,
        }
        return Ok(Undone::Whole);
    }
    let before = file.before.as_ref().and_then(text_of);
    let text = text_of(now).ok_or_else(|| Error::bad_input("it is no longer UTF-8"))?;
    let wrote = file.wrote.last().and_then(text_of);
    match without(file.client, &file.path, text, before, wrote)? {
        Some(left) if left == text => return Ok(Undone::Nothing),
        Some(left) => {
            user_file::replace(
                &target.path,
                &FileSnapshot { bytes: Bytes(left.into_bytes()), mode: now.mode },
            )?;
        }
        None => user_file::delete(&target.path)?,
    }
    Ok(Undone::OurEntries)
}

/// Returns the note about a file that must stay.
pub(super) fn needed(path: &Path) -> String {
    format!(
        "`{}` stays, because a user added something to the other files of the plugin.",
        quoted(path.display())
    )
}

fn text_of(state: &FileSnapshot) -> Option<&str> {
    std::str::from_utf8(&state.bytes.0).ok()
}

/// Returns the missing directories above `path`, outermost first.
fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

fn load(dir: &Path) -> Result<Record> {
    let path = dir.join(FILE);
    match tiro_base::file::read(&path, tiro_base::file::Links::Followed, LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes).context(Kind::Io, || {
            format!("`{}`, the record of what `tiro init` wrote, is damaged", quoted(path.display()))
        })
        .map_err(|error| {
            error.hint(
                "move it away and keep it, since your former files are in it; then `tiro init --remove` removes the \
                 entries that are certainly Tiro's",
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(error).context(Kind::Io, || format!("cannot read `{}`", quoted(path.display()))),
    }
}

fn write_record(dir: &Path, record: &Record) -> Result<()> {
    let bytes = serde_json::to_vec(record).context(Kind::Io, || "cannot record".to_owned())?;
    user_file::replace(&dir.join(FILE), &FileSnapshot { bytes: Bytes(bytes), mode: 0o600 })
}

/// Locks the record until the returned file is dropped or the process ends. On file systems without locks, it assumes
/// that no other process uses the record.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    private::create(&path)?;
    let file =
        File::create(&path).context(Kind::Io, || format!("cannot write `{}`", quoted(path.display())))?;
    let began = Instant::now();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        // A child process that is being started holds our open files for a moment, including the locked one. So this
        // function waits.
        if began.elapsed() > PATIENCE {
            return Err(Error::new(Kind::Busy, "another `tiro init` is running")
                .hint("run this again when it has finished"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(file)
}
