//! Links commits to the sessions behind them, whichever came into memory first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::engine::OpenProject;
use crate::error::Result;
use crate::git::{Reflog, Repository};
use crate::import::correlate::{Made, Moment, SECOND, WINDOW, behind};
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::Store;

/// Commits linked by one transaction.
const BATCH: usize = 500;

/// The stretch of time in which something was imported.
#[derive(Debug, Default)]
pub struct Span(Option<(Millis, Millis)>);

impl Span {
    /// Takes `time` in.
    pub fn widen(&mut self, time: Millis) {
        let (from, until) = self.0.unwrap_or((time, time));
        self.0 = Some((from.min(time), until.max(time)));
    }
}

/// Links the commits that what was imported may have led to.
pub async fn link_span(project: &OpenProject, place: &Place, span: &Span) -> Result<usize> {
    let Some((from, until)) = span.0 else { return Ok(0) };
    link(&project.store, &project.scope, from - SECOND, until.saturating_add(WINDOW), &place.made_in).await
}

/// The work trees of the project, and where `HEAD` has been in each.
pub struct Place {
    /// The root of the work tree that the call came from, or the directory.
    pub root: PathBuf,
    /// By the canonical root of each work tree.
    pub reflogs: HashMap<PathBuf, Reflog>,
    /// The work tree a commit was checked out in first, by its id.
    pub made_in: HashMap<String, String>,
}

impl Place {
    /// Reads the project's reflogs.
    pub fn of(project: &OpenProject) -> Place {
        Place::new(&project.root, project.repository.as_deref())
    }

    /// Reads the reflogs of a repository, or of none where `root` is a directory.
    pub fn new(root: &Path, repository: Option<&Repository>) -> Place {
        let reflogs = repository.map(Repository::reflogs).unwrap_or_default();
        let mut made_in = HashMap::new();
        for (root, reflog) in &reflogs {
            for each in &reflog.moves {
                made_in.entry(each.to.to_string()).or_insert_with(|| root.to_string_lossy().into_owned());
            }
        }
        Place { root: root.to_owned(), reflogs, made_in }
    }

    /// Returns the roots of the work trees.
    pub fn roots(&self) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = self.reflogs.keys().cloned().chain([self.root.clone()]).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// Returns a file that was named in `directory`, relative to the root of the work tree; `None` for one outside.
    pub fn relative(&self, file: &str, directory: Option<&str>) -> Option<String> {
        let root =
            directory.and_then(|directory| self.work_tree(directory)).unwrap_or_else(|| self.root.clone());
        let path = Path::new(file);
        let path = match directory {
            Some(directory) if path.is_relative() => Path::new(directory).join(path),
            _ => path.to_owned(),
        };
        let relative = path.strip_prefix(&root).ok()?;
        let is_plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let text = relative.to_str()?.replace('\\', "/");
        (is_plain && !text.is_empty() && !text.contains('\n')).then_some(text)
    }

    /// Returns the root of the work tree that `directory` lies in.
    pub fn work_tree(&self, directory: &str) -> Option<PathBuf> {
        let directory = Path::new(directory);
        let canonical = directory.canonicalize();
        let directory = canonical.as_deref().unwrap_or(directory);
        let roots = self.roots().into_iter().filter(|root| directory.starts_with(root));
        roots.max_by_key(|root| root.as_os_str().len())
    }
}

/// Links every commit made between `from` and `until` to the sessions at work in the two hours before it, and returns
/// how many commits have one.
///
/// `made_in` returns the work tree a commit was made in, by its full id, where that is known.
async fn link(
    store: &Store,
    scope: &Scope,
    from: Millis,
    until: Millis,
    made_in: &HashMap<String, String>,
) -> Result<usize> {
    let mut after = (from - 1, i64::MAX);
    let mut linked = 0;
    loop {
        let commits = store.commits_made(scope, after, until, BATCH).await?;
        let Some(last) = commits.last().map(|commit| (commit.time, commit.seq)) else { return Ok(linked) };
        let moments = store.moments(scope, commits[0].time - WINDOW, last.0 + SECOND).await?;
        let moments: Vec<Moment> = moments
            .into_iter()
            .map(|row| Moment {
                time: row.time,
                session: row.session,
                branch: row.branch,
                worktree: row.worktree,
                files: row.files,
            })
            .collect();
        let links: Vec<(i64, Vec<i64>)> = commits
            .into_iter()
            .map(|commit| {
                let made = Made {
                    time: commit.time,
                    branch: commit.branch,
                    worktree: commit.shas.iter().find_map(|sha| made_in.get(sha)).cloned(),
                    files: commit.files,
                };
                (commit.seq, behind(&made, &moments))
            })
            .collect();
        linked += links.iter().filter(|(_, sessions)| !sessions.is_empty()).count();
        let is_last = links.len() < BATCH;
        store.link_commits(scope, links).await?;
        if is_last {
            return Ok(linked);
        }
        after = last;
    }
}
