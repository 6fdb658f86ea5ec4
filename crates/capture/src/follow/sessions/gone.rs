//! Proves that directories which no longer exist were work trees of a project.
//!
//! A session in such a directory may have made commits that are in the repository, or written lines that the
//! repository's commits change. Otherwise nothing is proven, because a session in the wrong project is worse than a
//! missing session.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::clients::Client;
use crate::clients::transcripts::{Line, Lines, Listed, Trees};
use crate::follow::reading;
use crate::import::transcript::{About, Transcript, TranscriptEntry};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_git::{KnownCommit, Repository, Sha, Stop};
use tiro_intake::ReadIntake;
use tiro_store::CommitRow;

/// The maximum number of bytes of sessions that are read for one directory. The second limit applies to all directories
/// together.
const READ: u64 = 64 << 20;
const READ_OF_ALL: u64 = 256 << 20;

/// The number of commits that are compared with the lines that the sessions of one directory wrote.
const COMPARED: usize = 200;

/// The number of different lines of a session that must occur in commits, in the same files. Arbitrary: more than one
/// or two, because so few lines can be equal by chance.
const LINES: usize = 3;

/// If a commit contains a line, the commit's date may be this much earlier than the time when the line was written: a
/// day, because clocks differ.
const EARLIER: Millis = 24 * 60 * 60 * 1000;

/// The actions of the sessions in a directory.
#[derive(Default)]
struct Done {
    /// The abbreviated ids of the commits that the sessions made.
    commits: HashSet<String>,
    /// The hashes of the lines that the sessions wrote, keyed by the absolute path of the file.
    lines: BTreeMap<PathBuf, HashSet<u32>>,
    since: Option<Millis>,
}

/// Returns the roots of those directories in `gone` that were work trees of the project. `gone` contains the sessions
/// of each directory. Records the results in `trees`.
pub(super) async fn proven(
    (intake, repository): (Option<&dyn ReadIntake>, Option<&Repository>),
    (client, now): (Client, Millis),
    gone: &BTreeMap<String, Vec<&Listed>>,
    trees: &mut Trees,
) -> Result<Vec<PathBuf>> {
    let Some(repository) = repository.filter(|_| !gone.is_empty()) else { return Ok(Vec::new()) };
    let project = intake.map_or("", |intake| intake.project().as_str());
    let commits = match intake {
        Some(intake) => intake.known_commits().await?,
        None => Vec::new(),
    };
    let (mut history, mut left, mut proven) = (None, READ_OF_ALL, Vec::new());
    for (directory, sessions) in gone {
        let known = known(repository, commits.len(), sessions);
        if left == 0 || trees.is_unproven(directory, project, &known) {
            continue;
        }
        let done = done(client, directory, sessions, &mut left);
        let mut root = None;
        if let Some(intake) = intake.filter(|_| !done.lines.is_empty()) {
            let from = done.since.unwrap_or(now).saturating_sub(EARLIER);
            let rows = intake.commits_made(from, Millis::MAX, COMPARED * 10).await?;
            root = by_lines(repository, &done, rows);
        }
        if root.is_none() && !done.commits.is_empty() {
            let history = history.get_or_insert_with(|| all_commits(repository, &commits));
            root = made(history, &done).then(|| PathBuf::from(directory));
        }
        match root {
            Some(root) => {
                trees.add(std::slice::from_ref(&root), project);
                proven.push(root);
            }
            None => trees.add_unproven(directory, project, &known),
        }
    }
    Ok(proven)
}

/// Returns a text that describes the state of knowledge about a directory. It changes when a new check could have
/// another result.
fn known(repository: &Repository, commits: usize, sessions: &[&Listed]) -> String {
    let bytes: u64 = sessions.iter().map(|each| each.stamp.bytes).sum();
    let heads = blake3::hash(repository.heads_stamp().as_bytes()).to_hex();
    format!("{} {bytes} {commits} {}", sessions.len(), &heads[..16])
}

/// Reads what the sessions in `directory` did. A session that can't be read is skipped.
fn done(client: Client, directory: &str, sessions: &[&Listed], left: &mut u64) -> Done {
    let mut done = Done::default();
    let mut of_this = READ;
    for session in sessions {
        let most = of_this.min(*left);
        let (Ok(format), Ok(mut lines)) = (reading::format(client), Lines::resume(&session.path, 0, 0, most))
        else {
            continue;
        };
        let mut reader = Transcript::new(format, About::default());
        while let Ok(Some((at, line))) = lines.next_line() {
            let said = match line {
                Line::Whole(bytes) => reader.line(at, bytes),
                Line::Cut(start, bytes) => reader.cut(at, start, bytes),
            };
            said.iter().for_each(|said| done.note(said, directory));
        }
        reader.finish().iter().for_each(|said| done.note(said, directory));
        of_this = of_this.saturating_sub(lines.at());
        *left = left.saturating_sub(lines.at());
    }
    done
}

impl Done {
    fn note(&mut self, said: &TranscriptEntry, directory: &str) {
        let stood = Path::new(said.worktree.as_deref().unwrap_or(directory));
        if stood.starts_with(directory) {
            self.commits.extend(said.commits.iter().flatten().cloned());
        }
        for written in said.written.iter().filter(|written| !written.lines.is_empty()) {
            let path = stood.join(&written.path);
            if !path.exists() {
                self.lines.entry(path).or_default().extend(&written.lines);
                self.since = self.since.into_iter().chain(said.time).min();
            }
        }
    }
}

/// Returns the root of the work tree in which the sessions wrote lines that commits change in the same files.
fn by_lines(repository: &Repository, done: &Done, rows: Vec<CommitRow>) -> Option<PathBuf> {
    let mut reader = repository.reader(&|_| false);
    let mut found: BTreeMap<PathBuf, HashSet<u32>> = BTreeMap::new();
    let roots = |file: &str| -> Vec<(&PathBuf, PathBuf)> {
        let root = |path: &PathBuf| {
            let parts = Path::new(file).components().count();
            path.ends_with(file).then(|| path.ancestors().nth(parts).map(Path::to_owned))?
        };
        done.lines.keys().filter_map(|path| Some((path, root(path)?))).collect()
    };
    let rows = rows.into_iter().filter(|row| row.files.iter().any(|file| !roots(file).is_empty()));
    for row in rows.take(COMPARED) {
        let shas = row.shas.iter().filter_map(|sha| sha.parse::<Sha>().ok());
        let Some(changed) = shas.into_iter().find_map(|sha| reader.changed_lines(&sha).ok()) else {
            continue;
        };
        for (file, lines) in changed {
            for (path, root) in roots(&file) {
                let same = lines.keys().filter(|line| done.lines[path].contains(line));
                found.entry(root).or_default().extend(same);
            }
        }
    }
    let best = found.into_iter().filter(|(_, lines)| lines.len() >= LINES);
    best.max_by_key(|(root, lines)| (lines.len(), root.clone())).map(|(root, _)| root)
}

/// Returns the ids of all commits, sorted: stored commits, commits on branches, and commits in reflogs.
fn all_commits(repository: &Repository, stored: &[String]) -> Vec<String> {
    let mut all: Vec<String> = stored.to_vec();
    all.extend(repository.reflog_commits().iter().map(Sha::to_string));
    let is_known = &mut |sha: &Sha| {
        all.push(sha.to_string());
        true
    };
    // If the history can't be read, its commits prove nothing.
    drop(repository.history(&repository.tips().found, KnownCommit::OnlyItself, &Stop::default(), is_known));
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns whether the sessions made one of the commits in `all`, which is sorted.
fn made(all: &[String], done: &Done) -> bool {
    done.commits.iter().any(|id| {
        let at = all.partition_point(|sha| sha < id);
        all.get(at).is_some_and(|sha| sha.starts_with(id.as_str()))
    })
}
