//! Memories of real projects, made as a user makes them: a suite, a repository with its sessions, or a copy of a data
//! directory.
//!
//! A repository is cloned, and nothing is written into the original. Its SpecStory sessions are all files that any commit
//! had in `.specstory/history`, each in its longest version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use crate::calls::{self, LONG, path_text};
use crate::client::{Era, Place, Server, Tiro};
use crate::suite::{self, Message, Query};
use crate::week::questions::{Case, Commit, Session, cases};

/// Where memories come from.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Input {
    /// Directory with messages.jsonl, and with queries.jsonl if there are questions
    #[arg(long)]
    suite: Option<PathBuf>,
    /// Repository to clone and to import with its sessions; may be bare
    #[arg(long)]
    repository: Option<PathBuf>,
    /// File with messages, to import with the repository [default: messages.jsonl in it]
    #[arg(long)]
    messages: Option<PathBuf>,
    /// Import only the newest commits, this many
    #[arg(long)]
    commits: Option<usize>,
    /// Data directory of a user, which is copied; needs --project
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Directory of the project in --data-dir
    #[arg(long)]
    project: Option<PathBuf>,
    /// Only these conversations of the suite
    #[arg(long)]
    only: Vec<String>,
    /// Directory to keep what is imported in, for the next run with the same input
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// A memory, as `tiro export` prints it.
#[derive(Clone, Debug, Deserialize)]
pub struct Exported {
    /// The id in the source, such as that of a commit.
    #[serde(default)]
    pub source_id: Option<String>,
    /// The kind, such as `message`.
    pub kind: String,
    /// How the memory came about, such as `derived`.
    pub provenance: String,
    /// The session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// `user`, `assistant` or `tool`.
    #[serde(default)]
    pub role: Option<String>,
    /// Who spoke.
    #[serde(default)]
    pub speaker: Option<String>,
    /// The time, as RFC 3339.
    pub time: String,
    /// The text.
    pub text: String,
}

/// The messages and the questions of a suite that belong to one memory.
pub type Part = (Vec<Message>, Vec<Query>);

/// A question, with its answer if that is known.
pub type Asked = (String, Option<String>);

/// The memory of one project, with a server.
pub struct Imported {
    /// Where it is.
    pub place: Place,
    /// A server for it.
    pub server: Server,
    /// All memories, oldest first, so the messages of a session are in their order.
    pub memories: Vec<Exported>,
    /// The questions that the suite has about it.
    queries: Vec<Query>,
    /// What was done, and how many seconds each step took.
    pub took: Vec<(&'static str, f64)>,
    _root: Option<TempDir>,
}

impl Input {
    /// Returns the names of the memories to make, each with the part of the suite that belongs to it.
    pub fn parts(&self) -> Result<BTreeMap<String, Part>> {
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        let Some(folder) = &self.suite else {
            let named = self.repository.as_ref().or(self.project.as_ref());
            let named = named.context("name --suite, --repository, or --data-dir with --project")?;
            return Ok(BTreeMap::from([(file_name(named), Default::default())]));
        };
        for message in suite::read_lines::<Message>(&folder.join("messages.jsonl"))? {
            parts.entry(message.project.clone()).or_default().0.push(message);
        }
        let queries = folder.join("queries.jsonl");
        if queries.exists() {
            for query in suite::read_lines::<Query>(&queries)? {
                parts.entry(query.project.clone()).or_default().1.push(query);
            }
        }
        parts.retain(|name, _| self.only.is_empty() || self.only.contains(name));
        Ok(parts)
    }

    /// Makes the memory `name` of one of [`Input::parts`], and embeds it.
    pub fn import(&self, name: &str, part: &Part, tiro: &Tiro) -> Result<Imported> {
        let kept = self.keep.as_ref().map(|folder| folder.join(name));
        let root = match &kept {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("making a temporary directory")?),
        };
        let folder = root.as_ref().map_or(kept.as_deref(), |root| Some(root.path()));
        let folder = std::path::absolute(folder.context("one of the two is set")?)?;
        // The last step of an import writes this file.
        let done = folder.join("imported");
        let mut place = Place::create(&folder)?;
        let mut took = Vec::new();
        let mut timed = |what, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let started = Instant::now();
            work()?;
            took.push((what, started.elapsed().as_secs_f64()));
            Ok(())
        };
        if self.suite.is_some() && !done.exists() {
            timed("saving", &mut || {
                let mut server = tiro.serve(&place, Era::Session)?;
                calls::save_messages(&mut server, &part.0)?;
                server.close().map(drop)
            })?;
        } else if let Some(repository) = self.repository.as_ref().filter(|_| !done.exists()) {
            timed("cloning", &mut || clone(repository, &place.project))?;
            timed("importing commits", &mut || self.import_commits(tiro, &place))?;
            timed("importing sessions", &mut || self.import_sessions(tiro, &place, repository))?;
        } else if self.suite.is_none() && self.repository.is_none() {
            let data_dir = self.data_dir.as_ref().context("--project needs --data-dir")?;
            copy(data_dir, &place.data_dir)?;
            place.project =
                std::path::absolute(self.project.as_ref().context("--data-dir needs --project")?)?;
        }
        timed("embedding", &mut || calls::index(tiro, &place))?;
        let mut server = tiro.serve(&place, Era::Session)?;
        calls::settle(tiro, &place, &mut server)?;
        let memories = export(tiro, &place)?;
        std::fs::write(&done, "").with_context(|| format!("writing `{}`", done.display()))?;
        ensure!(!memories.is_empty(), "nothing was imported from `{name}`");
        Ok(Imported { place, server, memories, queries: part.1.clone(), took, _root: root })
    }

    fn import_commits(&self, tiro: &Tiro, place: &Place) -> Result<()> {
        let limit = self.commits.map(|count| count.to_string());
        let mut arguments = vec!["import", "git", "--project", path_text(&place.project)?];
        if let Some(limit) = &limit {
            arguments.extend(["--limit", limit]);
        }
        tiro.run(place, &arguments, LONG).map(drop)
    }

    fn import_sessions(&self, tiro: &Tiro, place: &Place, repository: &Path) -> Result<()> {
        let project = path_text(&place.project)?;
        if write_sessions(&place.project)? > 0 {
            tiro.run(place, &["import", "specstory", "--project", project], LONG)?;
        }
        let beside = repository.join("messages.jsonl");
        if let Some(messages) = self.messages.as_ref().or(beside.exists().then_some(&beside)) {
            let messages = std::path::absolute(messages)?;
            tiro.run(place, &["import", "--project", project, path_text(&messages)?], LONG)?;
        }
        Ok(())
    }
}

impl Imported {
    /// Returns the messages of each session, in their order.
    pub fn sessions(&self) -> BTreeMap<&str, Vec<&Exported>> {
        let mut sessions: BTreeMap<&str, Vec<&Exported>> = BTreeMap::new();
        for memory in self.memories.iter().filter(|memory| memory.kind == "message") {
            sessions.entry(memory.session_id.as_deref().unwrap_or_default()).or_default().push(memory);
        }
        sessions
    }

    /// Returns the questions of the suite, or questions that are made from commits and sessions.
    pub fn questions(&self, most: usize, seed: u64) -> Result<Vec<Asked>> {
        if self.queries.is_empty() {
            let made = self.cases(most, seed)?;
            return Ok(made.into_iter().map(|case| (case.question, case.answer)).collect());
        }
        let answer = |query: &Query| {
            query
                .answer
                .as_ref()
                .map(|answer| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned))
        };
        Ok(self.queries.iter().map(|query| (query.query.clone(), answer(query))).collect())
    }

    /// Makes questions from the imported commits and sessions.
    pub fn cases(&self, most: usize, seed: u64) -> Result<Vec<Case>> {
        let sessions: Vec<Session> = (self.sessions().into_iter())
            .map(|(name, said)| Session {
                name: name.into(),
                said: said
                    .iter()
                    .map(|each| (each.role.clone().unwrap_or_default(), each.text.clone()))
                    .collect(),
            })
            .collect();
        Ok(cases(&self.commits()?, &sessions, most, seed))
    }

    /// Returns the imported commits with their messages, as git tells them.
    fn commits(&self) -> Result<Vec<Commit>> {
        let mut own: Vec<&str> = (self.memories.iter().filter(|memory| memory.kind == "commit"))
            .filter_map(|memory| memory.source_id.as_deref())
            .collect();
        own.sort_unstable();
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let log = calls::git(&self.place.project, &["log", "--format=%H%x00%P%x00%B%x01", "HEAD"])?;
        let commits = log.split('\u{1}').filter_map(|each| {
            let mut fields = each.trim_start().splitn(3, '\0');
            let (sha, parents, message) = (fields.next()?, fields.next()?, fields.next()?);
            let commit =
                Commit { sha: sha.into(), is_merge: parents.contains(' '), message: message.trim().into() };
            own.binary_search(&sha).is_ok().then_some(commit)
        });
        Ok(commits.collect())
    }
}

/// Clones a repository. If some of its files cannot be checked out, the commits are enough.
fn clone(repository: &Path, project: &Path) -> Result<()> {
    let cloned = calls::clone_repository(repository, project, None);
    match calls::git(project, &["rev-parse", "--verify", "HEAD"]) {
        Ok(_) => Ok(()),
        Err(error) => cloned.and(Err(error)),
    }
}

/// The folder in which SpecStory keeps sessions.
const SPECSTORY: &str = ".specstory/history";

/// Writes the sessions that any commit held into the work tree, and returns how many there are.
fn write_sessions(project: &Path) -> Result<usize> {
    let folder = project.join(SPECSTORY);
    let arguments = ["log", "--all", "-z", "--format=", "--name-only", "--diff-filter=AM", "--", SPECSTORY];
    let listed = calls::git(project, &arguments)?;
    let mut paths: Vec<&str> = listed.split(['\0', '\n']).filter(|path| path.ends_with(".md")).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in &paths {
        let file = project.join(path);
        let versions = calls::git(project, &["log", "--all", "--diff-filter=AM", "--format=%H", "--", path])?;
        // A mirror may lack the largest files.
        let texts =
            versions.lines().filter_map(|sha| calls::git(project, &["show", &format!("{sha}:{path}")]).ok());
        if let Some(longest) = texts.max_by_key(String::len) {
            std::fs::create_dir_all(file.parent().unwrap_or(&folder))?;
            std::fs::write(&file, longest + "\n").with_context(|| format!("writing `{}`", file.display()))?;
        }
    }
    Ok(folder.read_dir().map_or(0, Iterator::count))
}

/// Copies a data directory without its models.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        bail!("no data directory at `{}`", from.display());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.file_name() != "models" {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)
                .with_context(|| format!("copying `{}`", entry.path().display()))?;
        }
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns all memories of the project, oldest first.
pub fn export(tiro: &Tiro, place: &Place) -> Result<Vec<Exported>> {
    let exported = tiro.run(place, &["export", "--project", path_text(&place.project)?], LONG)?;
    let read =
        exported.lines().rev().map(|line| serde_json::from_str(line).context("reading an exported memory"));
    read.collect()
}
