//! Commits, the sessions that led to them, and the evidence for that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::MemoryStore;
use super::state::{State, Stored};
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Millis, Provenance};
use tiro_base::scope::{Scope, SessionId, TenantId};
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{
    AuthorRow, BehindRow, CallRow, ChunkKey, CommitLinks, CommitRow, GraphRow, LinkedCommit, Renamed,
    SessionKey, WriteRow,
};

/// The longest chain of replacements that is followed from a commit.
const REPLACEMENTS: usize = 8;

/// The most parts of the graph that are kept apart.
const MOST_PARTS: usize = 64;

/// How many characters of the message of a commit are returned.
const MESSAGE_CHARACTERS: usize = 2000;

/// The source of the cursor that says which commits are linked.
const LINKS: &str = "links";

impl MemoryStore {
    /// Does as [`ReadCommits::commits_without_summary`](tiro_store::ReadCommits::commits_without_summary).
    pub(crate) async fn commits_without_summary(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let has_summary = |commit: &Stored| {
                let mut all = state.owned(&scope.tenant);
                all.any(|(_, memory)| memory.is_derived_summary() && memory.references.contains(&commit.id))
            };
            let mut commits: Vec<(MemoryKey, &Stored)> =
                state.commits(&scope.tenant).filter(|(_, commit)| !has_summary(commit)).collect();
            commits.sort_by_key(|(key, commit)| Reverse((commit.time, *key)));
            Ok(commits.into_iter().map(|(key, _)| key).take(limit).collect())
        })
    }

    /// Does as [`ReadCommits::summary_of_commit`](tiro_store::ReadCommits::summary_of_commit).
    pub(crate) async fn summary_of_commit(&self, scope: &Scope, id: &MemoryId) -> Result<Option<MemoryId>> {
        self.read(scope, |state| {
            let summaries = state.owned(&scope.tenant).filter(|(_, memory)| {
                memory.is_derived_summary() && memory.is_living() && memory.references.contains(id)
            });
            Ok(summaries.last().map(|(_, memory)| memory.id.clone()))
        })
    }

    /// Does as [`ReadCommits::commits_before`](tiro_store::ReadCommits::commits_before).
    pub(crate) async fn commits_before(
        &self,
        scope: &Scope,
        places: Vec<(String, Millis)>,
    ) -> Result<Vec<Option<String>>> {
        self.read(scope, |state| {
            let last = |(branch, time): (String, Millis)| {
                let is_there = |commit: &Stored| {
                    commit.time <= time && commit.branch.as_ref().is_none_or(|own| *own == branch)
                };
                let there = state.commits(&scope.tenant).filter(|(_, commit)| is_there(commit));
                there.max_by_key(|(key, commit)| (commit.time, *key))?.1.source_id.clone()
            };
            Ok(places.into_iter().map(last).collect())
        })
    }

    /// Does as [`ReadCommits::commits_made`](tiro_store::ReadCommits::commits_made).
    pub(crate) async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, Option<MemoryKey>),
        until: Millis,
        limit: usize,
    ) -> Result<Vec<CommitRow>> {
        self.read(scope, |state| {
            // A commit of the time `after` comes after no key.
            let is_asked_for = |(key, commit): &(MemoryKey, &Stored)| {
                (commit.time, Some(*key)) > after && commit.time <= until
            };
            let mut commits: Vec<(MemoryKey, &Stored)> =
                state.commits(&scope.tenant).filter(is_asked_for).collect();
            commits.sort_by_key(|(key, commit)| (commit.time, *key));
            let row = |(key, commit): (MemoryKey, &Stored)| CommitRow {
                key,
                time: commit.time,
                shas: commit.shas.iter().cloned().collect(),
                parents: commit.parents.clone(),
                files: commit.paths.iter().cloned().collect(),
                author: commit.speaker.clone(),
                message: commit.text.chars().take(MESSAGE_CHARACTERS).collect(),
            };
            Ok(commits.into_iter().take(limit).map(row).collect())
        })
    }

    /// Does as [`WriteCommits::link_commits`](tiro_store::WriteCommits::link_commits).
    pub(crate) async fn link_commits(&self, scope: &Scope, links: Vec<CommitLinks>) -> Result<()> {
        self.write(scope, |state| {
            for (commit, links) in links {
                let is_own = state.memories.get(&commit).is_some_and(|memory| memory.owner == scope.tenant);
                if is_own {
                    state.link_commit(&scope.tenant, commit, &links);
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadCommits::links_of`](tiro_store::ReadCommits::links_of).
    pub(crate) async fn links_of(&self, scope: &Scope, commits: Vec<MemoryKey>) -> Result<Vec<CommitLinks>> {
        self.read(scope, |state| {
            let links = |key: &MemoryKey| {
                let own = state.memories.get(key).filter(|memory| memory.owner == scope.tenant);
                own.map(|memory| memory.links.clone()).unwrap_or_default()
            };
            Ok(commits.into_iter().map(|key| (key, links(&key))).collect())
        })
    }

    /// Does as [`WriteCommits::replace_commits`](tiro_store::WriteCommits::replace_commits).
    pub(crate) async fn replace_commits(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()> {
        self.write(scope, |state| {
            for commit in commits {
                let Some(id) = state.memories.get(&commit).map(|memory| memory.id.clone()) else { continue };
                for (key, other) in &mut state.memories {
                    let is_meant = among.as_ref().is_none_or(|among| among.contains(key));
                    if is_meant && other.kind == Kind::Commit && other.owner == scope.tenant {
                        other.references.remove(&id);
                    }
                }
            }
            for (old, by) in replaced {
                let is_own = |memory: &&Stored| memory.owner == scope.tenant;
                let id = state.memories.get(&old).filter(is_own).map(|memory| memory.id.clone());
                let by = state.memories.get_mut(&by).filter(|by| by.owner == scope.tenant);
                if let (Some(id), Some(by)) = (id, by) {
                    by.references.insert(id);
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadCommits::replaced_commits`](tiro_store::ReadCommits::replaced_commits).
    pub(crate) async fn replaced_commits(&self, scope: &Scope) -> Result<Vec<(MemoryKey, String)>> {
        self.read(scope, |state| {
            let is_commit = |memory: &&Stored| memory.kind == Kind::Commit;
            let newer = state.owned(&scope.tenant).map(|(_, memory)| memory).filter(is_commit);
            let replaced =
                newer.flat_map(|by| by.references.iter()).filter_map(|id| state.key_of(&scope.tenant, id));
            let with_ids = replaced.flat_map(|key| {
                let old = state.memories.get(&key).filter(is_commit);
                old.into_iter().flat_map(move |old| old.shas.iter().map(move |sha| (key, sha.clone())))
            });
            Ok(with_ids.collect())
        })
    }

    /// Does as [`ReadCommits::first_evidence`](tiro_store::ReadCommits::first_evidence).
    pub(crate) async fn first_evidence(&self, scope: &Scope) -> Result<Option<Millis>> {
        self.read(scope, |state| {
            let times = |(_, memory): (MemoryKey, &Stored)| {
                let times = memory.writes.keys().chain(memory.calls.keys()).map(|(time, _)| *time);
                times.min()
            };
            Ok(state.owned(&scope.tenant).filter_map(times).min())
        })
    }

    /// Does as [`ReadCommits::file_writes`](tiro_store::ReadCommits::file_writes).
    pub(crate) async fn file_writes(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> Result<Vec<WriteRow>> {
        self.read(scope, |state| {
            let mut rows = BTreeMap::new();
            for (key, memory, session) in state.tool_calls(&scope.tenant) {
                for ((time, path), change) in &memory.writes {
                    let row = WriteRow {
                        memory: key,
                        session,
                        time: *time,
                        path: path.clone(),
                        worktree: change.worktree.clone(),
                        branch: change.branch.clone(),
                        lines: change.lines.clone(),
                    };
                    rows.insert((*time, key, path), row);
                }
            }
            Ok(rows.into_values().filter(|row| (from..=until).contains(&row.time)).collect())
        })
    }

    /// Does as [`ReadCommits::writes_of`](tiro_store::ReadCommits::writes_of).
    pub(crate) async fn writes_of(
        &self,
        scope: &Scope,
        paths: Vec<String>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<WriteRow>> {
        let mut all = self.file_writes(scope, Millis::MIN, until).await?;
        all.sort_by(|a, b| (b.time, b.memory, &a.path).cmp(&(a.time, a.memory, &b.path)));
        let mut counts: HashMap<String, usize> = HashMap::new();
        all.retain(|row| {
            let count = counts.entry(row.path.clone()).or_default();
            *count += usize::from(paths.contains(&row.path));
            paths.contains(&row.path) && *count <= limit
        });
        Ok(all)
    }

    /// Does as [`ReadCommits::commit_calls`](tiro_store::ReadCommits::commit_calls).
    pub(crate) async fn commit_calls(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> Result<Vec<CallRow>> {
        self.read(scope, |state| {
            let mut rows = BTreeMap::new();
            for (key, memory, session) in state.tool_calls(&scope.tenant) {
                for ((began, sha), (ended, worktree)) in &memory.calls {
                    let row = CallRow {
                        session,
                        began: *began,
                        ended: *ended,
                        sha: sha.clone(),
                        worktree: worktree.clone(),
                    };
                    rows.insert((*began, key, sha), row);
                }
            }
            Ok(rows.into_values().filter(|row| (from..=until).contains(&row.began)).collect())
        })
    }

    /// Does as [`ReadCommits::commit_graph`](tiro_store::ReadCommits::commit_graph).
    pub(crate) async fn commit_graph(&self, scope: &Scope) -> Result<Vec<GraphRow>> {
        self.read(scope, |state| Ok(state.graph.get(&scope.tenant).cloned().unwrap_or_default()))
    }

    /// Does as [`ReadCommits::commit_authors`](tiro_store::ReadCommits::commit_authors).
    pub(crate) async fn commit_authors(
        &self,
        scope: &Scope,
        before: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<AuthorRow>> {
        self.read(scope, |state| {
            let is_asked_for = |(key, commit): &(MemoryKey, &Stored)| {
                commit.provenance == Provenance::GitCommit && before.is_none_or(|before| *key < before)
            };
            let mut commits: Vec<_> = state.commits(&scope.tenant).filter(is_asked_for).collect();
            commits.reverse();
            let row = |(key, commit): (MemoryKey, &Stored)| {
                Some(AuthorRow { key, sha: commit.source_id.clone()?, author: commit.speaker.clone() })
            };
            Ok(commits.into_iter().filter_map(row).take(limit).collect())
        })
    }

    /// Does as [`WriteCommits::rename_authors`](tiro_store::WriteCommits::rename_authors).
    pub(crate) async fn rename_authors(&self, scope: &Scope, renamed: Vec<Renamed>) -> Result<()> {
        self.write(scope, |state| {
            let mut changed = BTreeSet::new();
            for Renamed { key, author, indexed, tokens } in renamed {
                let memory = state.memories.get_mut(&key);
                let Some(memory) = memory.filter(|memory| memory.owner == scope.tenant && memory.is_living())
                else {
                    continue;
                };
                (memory.speaker, memory.indexed) = (author, indexed);
                for (chunk, tokens) in tokens {
                    if let Some(chunk) = state.chunks.get_mut(&chunk).filter(|chunk| chunk.memory == key) {
                        chunk.tokens = tokens;
                        changed.insert(key);
                    }
                }
            }
            if !changed.is_empty() {
                let sessions = state.sessions_of(&changed);
                state.touch(&scope.tenant, sessions);
            }
            Ok(())
        })
    }

    /// Does as [`WriteCommits::add_to_commit_graph`](tiro_store::WriteCommits::add_to_commit_graph).
    pub(crate) async fn add_to_commit_graph(&self, scope: &Scope, part: GraphRow) -> Result<bool> {
        self.write(scope, |state| {
            let parts = state.graph.entry(scope.tenant.clone()).or_default();
            let same = parts.iter().filter(|known| known.stamp == part.stamp);
            let end = same.map(|known| known.first + known.count).max().unwrap_or(0);
            if part.first != end {
                return Ok(false);
            }
            parts.retain(|known| known.stamp == part.stamp);
            parts.push(part.clone());
            if parts.len() > MOST_PARTS {
                let bytes = parts.iter().flat_map(|part| part.bytes.iter().copied()).collect();
                *parts = vec![GraphRow { first: 0, count: end + part.count, bytes, ..part }];
            }
            Ok(true)
        })
    }

    /// Does as [`ReadCommits::behind`](tiro_store::ReadCommits::behind).
    pub(crate) async fn behind(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
        time: Millis,
    ) -> Result<Vec<BehindRow>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let row = |session: SessionId| {
                let key = state.find_session(scope, &session)?;
                let messages = state.messages(key);
                let seen = || messages.iter().filter(|(.., memory)| view.admits(memory));
                let last_before = seen().rfind(|(.., memory)| memory.time <= time);
                let (_, ordinal, message) = last_before.or_else(|| seen().next())?;
                let title = state.title(key);
                Some(BehindRow { key, session, title, time: message.time, ordinal: *ordinal })
            };
            Ok(sessions.into_iter().filter_map(row).collect())
        })
    }

    /// Does as [`ReadCommits::commits_of`](tiro_store::ReadCommits::commits_of).
    pub(crate) async fn commits_of(&self, scope: &Scope, session: &SessionId) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let Some(session) = state.find_session(scope, session) else { return Ok(Vec::new()) };
            let is_linked = |memory: &Stored| memory.links.iter().any(|(own, _)| *own == session);
            let living = state.owned(&scope.tenant).filter(|(_, memory)| memory.is_living());
            let mut commits: Vec<_> = living.filter(|(_, memory)| is_linked(memory)).collect();
            commits.sort_by_key(|(key, memory)| Reverse((memory.time, *key)));
            Ok(commits.into_iter().map(|(key, _)| key).collect())
        })
    }

    /// Does as [`ReadCommits::linked_commits`](tiro_store::ReadCommits::linked_commits).
    pub(crate) async fn linked_commits(
        &self,
        scope: &Scope,
        session: &SessionId,
        head: Option<String>,
        time: Millis,
        limit: usize,
    ) -> Result<(Vec<LinkedCommit>, usize)> {
        self.read(scope, |state| {
            let Some((key, session)) = state.session(scope, session) else { return Ok((Vec::new(), 0)) };
            let head = head.filter(|_| session.client.is_none());
            let sure = |commit: &Stored| {
                let linked = commit.links.iter().filter(|(own, _)| *own == key).map(|(_, sure)| *sure);
                let is_child = head.as_ref().is_some_and(|head| commit.parents.contains(head));
                linked.chain(is_child.then_some(LEAST_CONFIDENCE)).reduce(f64::max)
            };
            let mut commits: Vec<_> = state
                .commits(&scope.tenant)
                .filter_map(|(key, commit)| Some((key, commit, sure(commit)?)))
                .collect();
            commits.sort_by_key(|(key, commit, _)| (commit.time < time, commit.time.abs_diff(time), *key));
            let row = |(_, commit, confidence): &(MemoryKey, &Stored, f64)| LinkedCommit {
                id: commit.id.clone(),
                sha: commit.source_id.clone(),
                subject: commit.text.lines().next().unwrap_or_default().chars().take(400).collect(),
                time: commit.time,
                confidence: *confidence,
            };
            Ok((commits.iter().take(limit).map(row).collect(), commits.len()))
        })
    }
}

impl State {
    /// Returns those of `commits` that were replaced, each with the last living commit in its chain of replacements, and
    /// the first chunk of that commit.
    pub fn stand_ins(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> Vec<(MemoryKey, (MemoryKey, ChunkKey))> {
        let stand_in = |first: MemoryKey| {
            let (mut at, mut last) = (first, None);
            for _ in 0..REPLACEMENTS {
                let next = self.replacement(&scope.tenant, at).filter(|(by, _)| *by != first);
                let Some((by, chunk)) = next else { break };
                (at, last) = (by, Some((by, chunk)));
            }
            last.map(|last| (first, last))
        };
        commits.into_iter().filter_map(stand_in).collect()
    }

    /// Returns the living commits of the owner.
    pub fn commits(&self, owner: &TenantId) -> impl Iterator<Item = (MemoryKey, &Stored)> {
        self.owned(owner).filter(|(_, memory)| memory.kind == Kind::Commit && memory.is_living())
    }

    /// Returns the living memories of the owner's sessions.
    fn tool_calls(&self, owner: &TenantId) -> impl Iterator<Item = (MemoryKey, &Stored, SessionKey)> {
        let living = self.owned(owner).filter(|(_, memory)| memory.is_living());
        living.filter_map(|(key, memory)| Some((key, memory, memory.session?)))
    }

    /// Replaces the links of a commit. Weak links, and those to sessions of others, are left out.
    pub fn link_commit(&mut self, owner: &TenantId, commit: MemoryKey, links: &[(SessionKey, f64)]) {
        let is_own = |key: &SessionKey| self.sessions.get(key).is_some_and(|session| session.owner == *owner);
        let own: Vec<(SessionKey, f64)> =
            links.iter().filter(|(session, _)| is_own(session)).copied().collect();
        let (strong, weak): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|(_, confidence)| *confidence >= LEAST_CONFIDENCE);
        if !weak.is_empty() {
            // An earlier version made them by time alone, so all commits are linked anew.
            self.cursors.retain(|(_, source), _| source != LINKS);
        }
        if let Some(memory) = self.memories.get_mut(&commit) {
            memory.links = strong;
        }
    }

    /// Returns the latest living commit that replaced a commit, and its first chunk.
    fn replacement(&self, owner: &TenantId, commit: MemoryKey) -> Option<(MemoryKey, ChunkKey)> {
        let old = self.memories.get(&commit).filter(|memory| memory.kind == Kind::Commit)?;
        let newer = self.commits(owner).filter(|(key, by)| *key != commit && by.references.contains(&old.id));
        let (by, _) = newer.max_by_key(|(key, by)| (by.time, *key))?;
        Some((by, self.chunks_of(by).next()?.0))
    }
}
