//! Links each commit to the sessions that led to it, and each replaced commit to its replacement. The result doesn't
//! depend on whether the commit or the session was imported first.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::follow::in_time::in_time;
use crate::import::correlate::{
    Call, Change, ChangedLines, Commit, Evidence, Here, Replaced, SECOND, Seen, replaced, same_change,
};
use crate::sources::Sources;
use crate::tuning::{AMENDED_WITHIN, HORIZON, INHERITED};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_git::{Action, Reach, Reflog, Repository, Sha};
use tiro_intake::{Intake, ReadIntake};
use tiro_redact::Redactor;
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{CallRow, CommitLinks, CommitRow, SessionKey, WriteRow};

/// The number of commits that one transaction links.
const BATCH: usize = 500;

/// The maximum number of commits that are compared at once. Most projects make fewer in years.
const MOST_COMMITS: usize = 200_000;

/// The least time that git is given, even if a call has less time left. Git takes a hundredth of this time for the few
/// commits that a call imports.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// The name of an import cursor, and the current version of the linking rules. The cursor contains the version of the
/// rules that made all stored links.
const RULES: (&str, &str) = ("links", "3");

/// The value of that cursor if some links could not be made yet.
const UNFINISHED: &str = "unfinished";

/// The times of the first and the last of the imported commits and entries.
#[derive(Debug, Default)]
pub struct Span(Option<(Millis, Millis)>);

impl Span {
    /// Extends the span to include `time`.
    pub fn widen(&mut self, time: Millis) {
        let (from, until) = self.0.unwrap_or((time, time));
        self.0 = Some((from.min(time), until.max(time)));
    }
}

/// Links the commits that may be affected by the import of the entries and commits in `span`. If no call waits, and
/// earlier links were made by other rules or are incomplete, links all commits again.
///
/// `patience` is the time that git may take. `None` means that no call waits. Returns how many of these commits are now
/// linked to a session.
pub async fn link_span(
    (sources, intake): (&Sources, &dyn Intake),
    work_trees: &WorkTrees,
    span: &Span,
    patience: Option<Duration>,
) -> Result<usize> {
    let is_due = is_due(intake).await?;
    let mut span = span.0;
    let all = is_due && patience.is_none();
    if all {
        let first = intake.first_evidence().await?;
        span = first.map(|first| (span.map_or(first, |span| span.0.min(first)), Millis::MAX / 2)).or(span);
    }
    let linked = match span {
        Some((from, until)) => link((sources, intake), work_trees, from - SECOND, until, patience).await?,
        None => Some(0),
    };
    let rules = match linked {
        Some(_) if all => Some(RULES.1),
        None => Some(UNFINISHED),
        Some(_) => None,
    };
    // If git failed, the links are recorded as unfinished, so that a later round makes them.
    let known = intake.cursor(RULES.0).await?;
    if let Some(rules) = rules.filter(|rules| known.as_deref() != Some(rules)) {
        intake.keep_cursor(RULES.0, rules).await?;
    }
    Ok(linked.unwrap_or_default())
}

/// Returns whether all commits must be linked again, because their links were made by other rules or are incomplete.
pub async fn is_due(intake: &dyn ReadIntake) -> Result<bool> {
    Ok(intake.cursor(RULES.0).await?.as_deref() != Some(RULES.1))
}

/// Returns whether some links could not be made yet, because git took too long.
pub async fn is_unfinished(intake: &dyn ReadIntake) -> Result<bool> {
    Ok(intake.cursor(RULES.0).await?.as_deref() == Some(UNFINISHED))
}

/// If a replaced commit is checked out again, removes the record that it was replaced. `patience` is the time that git
/// may take. Returns whether git could tell in this time which replaced commits are checked out.
pub async fn take_back(sources: &Sources, intake: &dyn Intake, patience: Duration) -> Result<bool> {
    let replaced = intake.replaced_commits().await?;
    let Some(repository) = sources.repository.clone().filter(|_| !replaced.is_empty()) else {
        return Ok(true);
    };
    let until = Instant::now() + patience;
    let ask = move |_: &_| {
        let Some(head) = repository.head().ok().and_then(|head| head.commit) else { return Vec::new() };
        let known = replaced.into_iter().filter_map(|(row, sha)| Some((row, sha.parse::<Sha>().ok()?)));
        let (rows, shas): (Vec<MemoryKey>, Vec<Sha>) = known.unzip();
        let reached = repository.reached(&[head], &shas, Some(until));
        let current = rows.into_iter().zip(reached).filter(|(_, reach)| *reach == Reach::Yes);
        current.map(|(row, _)| row).collect()
    };
    let Some(current) = in_time(Some(until), ask).await else { return Ok(false) };
    let is_told = Instant::now() < until;
    if !current.is_empty() {
        intake.replace_commits(current, None, Vec::new()).await?;
    }
    Ok(is_told)
}

/// The project's work trees, and the records of their reflogs about commits.
pub struct WorkTrees {
    /// The root of the work tree from which the call came. If there is no repository, the directory of the call.
    pub root: PathBuf,
    /// The reflog of each work tree. The key is the canonical root of the work tree.
    pub reflogs: HashMap<PathBuf, Reflog>,
    /// Former roots of the project, from before it was moved, and of removed work trees. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
    /// The time, place and branch at which each commit was first made.
    made: HashMap<Sha, Made>,
    /// Commits that a pull brought from another repository.
    pulled: HashSet<Sha>,
}

/// The time and place at which a commit was first made.
struct Made {
    here: Here,
    branch: Option<String>,
    action: Action,
}

impl WorkTrees {
    /// Reads the reflogs of the project.
    pub fn of(sources: &Sources) -> WorkTrees {
        let repository = sources.repository.as_deref();
        let reflogs = repository.map(Repository::reflogs).unwrap_or_default();
        let (mut made, mut pulled): (HashMap<Sha, Made>, _) = (HashMap::new(), HashSet::new());
        let mut all: Vec<_> =
            reflogs.iter().flat_map(|(root, log)| log.moves.iter().map(move |each| (each, root))).collect();
        all.sort_by_key(|(each, root)| (each.time, *root));
        for (each, root) in all {
            if each.action.makes() {
                made.entry(each.to).or_insert_with(|| Made {
                    here: Here { time: each.time, worktree: root.to_string_lossy().into_owned() },
                    branch: each.branch.clone(),
                    action: each.action,
                });
            } else if each.action == Action::Pull {
                pulled.insert(each.to);
            }
        }
        pulled.retain(|sha| !made.contains_key(sha));
        let gone = repository.map(Repository::gone_work_trees).unwrap_or_default();
        let formerly = sources.formerly.iter().cloned().chain(gone).collect();
        WorkTrees { root: sources.root.clone(), reflogs, formerly, made, pulled }
    }

    /// Returns the branch on which the commit was made, if a reflog shows it.
    pub fn branch(&self, sha: &Sha) -> Option<&str> {
        self.made.get(sha)?.branch.as_deref()
    }

    /// Returns the roots of the work trees.
    pub fn roots(&self) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = self.reflogs.keys().cloned().chain([self.root.clone()]).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// Returns the roots of the work trees, and the former roots of the project.
    pub fn roots_and_former(&self) -> Vec<PathBuf> {
        self.roots().into_iter().chain(self.formerly.iter().cloned()).collect()
    }

    /// Returns the path of `file` relative to the root of its work tree, together with this root. A relative `file` is
    /// resolved against `directory`. Returns `None` for a file outside all work trees.
    pub fn relative(&self, file: &str, directory: Option<&str>) -> Option<(String, PathBuf)> {
        let path = Path::new(file);
        let path = match directory {
            Some(directory) if path.is_relative() => Path::new(directory).join(path),
            _ => path.to_owned(),
        };
        let (root, relative) = match path.is_absolute() {
            // A session may change files in a work tree other than the one it runs in.
            true => {
                let roots = self.roots().into_iter().filter(|root| path.starts_with(root));
                if let Some(root) = roots.max_by_key(|root| root.as_os_str().len()) {
                    (root.clone(), path.strip_prefix(&root).ok()?.to_owned())
                } else if let Some(former) = self.former(&path) {
                    (self.root.clone(), path.strip_prefix(former).ok()?.to_owned())
                } else {
                    // The call may name the file through a link to the work tree.
                    let real = path.parent()?.canonicalize().ok()?;
                    let root = self.work_tree(real.to_str()?)?;
                    (root.clone(), real.join(path.file_name()?).strip_prefix(&root).ok()?.to_owned())
                }
            }
            false => (self.root.clone(), path),
        };
        let is_plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let text = relative.to_str()?.replace('\\', "/");
        (is_plain && !text.is_empty() && !text.contains('\n')).then_some((text, root))
    }

    /// Returns the root of the work tree that contains `directory`.
    pub fn work_tree(&self, directory: &str) -> Option<PathBuf> {
        let directory = Path::new(directory);
        let canonical = directory.canonicalize();
        let directory = canonical.as_deref().unwrap_or(directory);
        let roots = self.roots().into_iter().filter(|root| directory.starts_with(root));
        let root = roots.max_by_key(|root| root.as_os_str().len());
        root.or_else(|| self.former(directory).map(|_| self.root.clone()))
    }

    /// Returns the former root that contains `path`.
    fn former(&self, path: &Path) -> Option<&PathBuf> {
        let roots = self.formerly.iter().filter(|root| path.starts_with(root));
        roots.max_by_key(|root| root.as_os_str().len())
    }

    /// Returns the redacted names of the committers in the reflogs. They are the people who commit in this clone.
    fn ours(&self, redactor: &Redactor) -> HashSet<String> {
        let moves = self.reflogs.values().flat_map(|log| &log.moves);
        let names: HashSet<&str> =
            moves.map(|each| each.committer.as_str()).filter(|name| !name.is_empty()).collect();
        names.into_iter().map(|name| redactor.redact(name).text.into_owned()).collect()
    }

    fn is_committed_here(&self, row: &CommitRow) -> bool {
        let made = row.shas.iter().filter_map(|sha| self.made.get(&sha.parse().ok()?));
        made.into_iter().any(|made| matches!(made.action, Action::Commit | Action::Amend))
    }

    fn commit(&self, row: CommitRow) -> Commit {
        let shas: Vec<Sha> = row.shas.iter().filter_map(|sha| sha.parse().ok()).collect();
        let made = shas.iter().filter_map(|sha| self.made.get(sha)).min_by_key(|made| made.here.time);
        // A rebase copies an older change, so its time doesn't show when the change was made. After a commit or an
        // amendment, the commit can contain all changes up to that time.
        let until = made
            .filter(|made| matches!(made.action, Action::Commit | Action::Amend))
            .map_or(row.time, |made| made.here.time.max(row.time));
        Commit {
            key: row.key,
            time: row.time,
            until,
            author: row.author,
            message: row.message,
            files: row.files,
            here: made.map(|made| made.here.clone()),
            is_pulled: made.is_none() && shas.iter().any(|sha| self.pulled.contains(sha)),
            shas: row.shas,
            parents: row.parents,
        }
    }

    /// Returns pairs of commits in which the second was made by amending the first.
    fn amended(&self) -> HashSet<(String, String)> {
        let moves = self.reflogs.values().flat_map(|log| &log.moves);
        let amended = moves.filter(|each| each.action == Action::Amend);
        amended.filter_map(|each| Some((each.from?.to_string(), each.to.to_string()))).collect()
    }
}

/// Links the commits made between `from` and `until`, and those made up to [`HORIZON`] after `until`, because an entry
/// may lead to a later commit.
///
/// Returns how many of these commits are now linked to a session. Returns `None` if git took too long or can't be read.
/// In this case the links stay the same.
async fn link(
    (sources, intake): (&Sources, &dyn Intake),
    work_trees: &WorkTrees,
    from: Millis,
    until: Millis,
    patience: Option<Duration>,
) -> Result<Option<usize>> {
    if sources.trouble.is_some() {
        return Ok(None);
    }
    let (from, until) = (from.saturating_sub(AMENDED_WITHIN), until.saturating_add(HORIZON));
    let begin = from.saturating_sub(HORIZON);
    let commits = intake.commits_made(begin, until, MOST_COMMITS).await?;
    let mut ours = work_trees.ours(&sources.redactor);
    // If a commit was made here, its author works here, even if the committer has a different name.
    let committed = commits.iter().filter(|row| work_trees.is_committed_here(row));
    ours.extend(committed.filter_map(|row| row.author.clone()));
    let commits: Vec<Commit> = commits.into_iter().map(|row| work_trees.commit(row)).collect();
    let todo: Vec<usize> = (0..commits.len()).filter(|&at| commits[at].time >= from).collect();
    if todo.is_empty() {
        return Ok(Some(0));
    }
    let until = until.saturating_add(AMENDED_WITHIN);
    let (writes, calls) = intake.work_between(begin, until).await?;
    let (changes, calls) = (writes.into_iter().map(change).collect(), calls.into_iter().map(call).collect());
    let evidence = Arc::new(Evidence::new(commits, changes, calls, ours));

    let (lines, replaced) = match sources.repository.clone() {
        None => Default::default(),
        Some(repository) => {
            let (evidence, todo, amended) = (Arc::clone(&evidence), todo.clone(), work_trees.amended());
            let until = patience.map(|patience| Instant::now() + patience.max(LEAST_PATIENCE));
            let ask = move |_: &_| read_from_git(&repository, &evidence, &todo, &amended, until);
            match in_time(until, ask).await.flatten() {
                Some(read) => read,
                None => return Ok(None),
            }
        }
    };
    let mut links: HashMap<usize, Vec<(SessionKey, f64)>> = HashMap::new();
    for &at in &todo {
        links.insert(at, evidence.behind(at, &lines));
    }
    let key = |at: usize| evidence.commits[at].key;
    let elsewhere: Vec<usize> =
        replaced.iter().map(|each| each.old).filter(|old| !links.contains_key(old)).collect();
    let known = intake.links_of(elsewhere.iter().map(|old| key(*old)).collect()).await?;
    let known: HashMap<usize, _> =
        elsewhere.into_iter().zip(known.into_iter().map(|(_, links)| links)).collect();
    for Replaced { old, by } in same_change(&evidence).iter().chain(&replaced) {
        let from = links.get(old).or_else(|| known.get(old)).cloned().unwrap_or_default();
        if let Some(own) = links.get_mut(by) {
            inherit(own, &from);
        }
    }
    let linked = links.values().filter(|sessions| !sessions.is_empty()).count();
    let mut rows: Vec<CommitLinks> = links.into_iter().map(|(at, links)| (key(at), links)).collect();
    rows.sort_by_key(|(key, _)| *key);
    for batch in rows.chunks(BATCH) {
        intake.link_commits(batch.to_vec()).await?;
    }
    if sources.repository.is_some() {
        let replaced = replaced.iter().map(|each| (key(each.old), key(each.by))).collect();
        let among = evidence.commits.iter().map(|commit| commit.key).collect();
        intake.replace_commits(todo.iter().map(|at| key(*at)).collect(), Some(among), replaced).await?;
    }
    Ok(Some(linked))
}

/// Adds the links of a replaced commit to those of the commit that replaces it.
fn inherit(links: &mut Vec<(SessionKey, f64)>, from: &[(SessionKey, f64)]) {
    for &(session, sure) in from {
        let sure = sure * INHERITED;
        match links.iter_mut().find(|(known, _)| *known == session) {
            Some((_, known)) => *known = known.max(sure),
            None if sure >= LEAST_CONFIDENCE => links.push((session, sure)),
            None => {}
        }
    }
    links.sort_by(|(one, sure), (other, surer)| surer.total_cmp(sure).then(one.cmp(other)));
}

/// Reads from git the lines that the commits change, and finds which commits were replaced. Returns `None` if this
/// isn't done by `until`, or if `HEAD` can't be read.
fn read_from_git(
    repository: &Repository,
    evidence: &Evidence,
    todo: &[usize],
    amended: &HashSet<(String, String)>,
    until: Option<Instant>,
) -> Option<(HashMap<usize, ChangedLines>, Vec<Replaced>)> {
    let head = repository.head().ok()?.commit;
    let mut wanted: Vec<usize> = todo.iter().flat_map(|&at| evidence.commits_to_compare(at)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut reader = repository.reader(&|_| false);
    let mut lines = HashMap::new();
    let ids = |at: usize| evidence.commits[at].shas.iter().filter_map(|sha| sha.parse::<Sha>().ok());
    for at in wanted {
        if until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let read = ids(at).find_map(|sha| reader.changed_lines(&sha).ok());
        lines.extend(read.map(|read| (at, read)));
    }

    let all: Vec<(usize, Sha)> =
        (0..evidence.commits.len()).flat_map(|at| ids(at).map(move |sha| (at, sha))).collect();
    let shas: Vec<Sha> = all.iter().map(|(_, sha)| *sha).collect();
    let leading_to = |tips: &[Sha]| -> Option<HashSet<usize>> {
        let reached = repository.reached(tips, &shas, until);
        if reached.contains(&Reach::Unknown) {
            return None;
        }
        let reached = all.iter().zip(reached).filter(|(_, reach)| *reach == Reach::Yes);
        Some(reached.map(|((at, _), _)| *at).collect())
    };
    // If no commit is checked out yet, none can have been replaced.
    let Some(head) = head else { return Some((lines, Vec::new())) };
    let (current, on_branch) = (leading_to(&[head])?, leading_to(&repository.branch_tips())?);
    let are_alike = |one: &Commit, other: &Commit, files: &[String]| {
        let first = |commit: &Commit| commit.shas.iter().find_map(|sha| sha.parse::<Sha>().ok());
        let (Some(one), Some(other)) = (first(one), first(other)) else { return false };
        let blob = |sha: &Sha, path: &String| repository.blob_at(sha, path);
        files.iter().all(
            |path| matches!((blob(&one, path), blob(&other, path)), (Ok(one), Ok(other)) if one == other),
        )
    };
    let seen = Seen { current: &current, on_branch: &on_branch, amended, are_alike: &are_alike };
    Some((lines, replaced(evidence, &seen)))
}

fn change(row: WriteRow) -> Change {
    let WriteRow { session, time, path, worktree, lines, .. } = row;
    Change { session, time, path, worktree, lines }
}

fn call(row: CallRow) -> Call {
    let CallRow { session, began, ended, sha, worktree } = row;
    Call { session, began, ended, sha, worktree }
}
