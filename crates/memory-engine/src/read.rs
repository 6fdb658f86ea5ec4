//! Reads memories: by key, by id, by their places, and what they refer to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{State, Stored};
use super::view::View;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ActivityRow, Before, ChunkKey, ChunkRange, Neighbour, QUARTER_HOUR, ShownMemory};

/// The most sessions that are named as having led to a commit.
const MOST_BEHIND: usize = 5;

impl MemoryStore {
    /// Does as [`ReadMemories::memories`](tiro_store::ReadMemories::memories).
    pub(crate) async fn memories(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<Memory>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            Ok(keys.into_iter().filter_map(|key| Some(state.shown(key, view.get(key)?))).collect())
        })
    }

    /// Does as [`ReadMemories::memory`](tiro_store::ReadMemories::memory).
    pub(crate) async fn memory(&self, scope: &Scope, id: &MemoryId) -> Result<Option<Memory>> {
        self.read(scope, |state| {
            Ok(state.living(scope).by_id(id).map(|(key, memory)| state.shown(key, memory)))
        })
    }

    /// Does as [`ReadMemories::texts`](tiro_store::ReadMemories::texts).
    pub(crate) async fn texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<(MemoryKey, String)>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            Ok(keys.into_iter().filter_map(|key| Some((key, view.get(key)?.text.clone()))).collect())
        })
    }

    /// Does as [`ReadMemories::checked_texts`](tiro_store::ReadMemories::checked_texts).
    pub(crate) async fn checked_texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<(MemoryKey, String, bool)>> {
        let texts = self.texts(scope, keys).await?;
        Ok(texts.into_iter().map(|(key, text)| (key, text, false)).collect())
    }

    /// Does as [`ReadMemories::surroundings`](tiro_store::ReadMemories::surroundings).
    pub(crate) async fn surroundings(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
        before: usize,
        after: usize,
    ) -> Result<Vec<Memory>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let Some(session) = state.session_of(&scope.tenant, session) else { return Ok(Vec::new()) };
            let messages = state.messages(session).into_iter().filter(|(.., memory)| view.admits(memory));
            let (earlier, later): (Vec<_>, Vec<_>) = messages.partition(|(_, place, _)| *place < ordinal);
            let earlier = earlier[earlier.len().saturating_sub(before)..].iter();
            let around = earlier.chain(later.iter().take(after + 1));
            Ok(around.map(|(key, _, memory)| state.shown(*key, memory)).collect())
        })
    }

    /// Does as [`ReadMemories::beside`](tiro_store::ReadMemories::beside).
    pub(crate) async fn beside(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
        before: Option<Before>,
    ) -> Result<(Vec<Memory>, Vec<Memory>)> {
        let mut earlier = match before.clone() {
            Some(Before { session, ordinal, most }) => {
                self.surroundings(scope, &session, ordinal, most, 0).await?
            }
            None => Vec::new(),
        };
        earlier.retain(|memory| memory.ordinal < before.as_ref().map(|before| before.ordinal));
        self.read(scope, |state| {
            let view = state.living(scope);
            let places: BTreeSet<_> = keys
                .iter()
                .filter_map(|key| state.memories.get(key))
                .filter_map(|memory| memory.session.zip(memory.ordinal))
                .flat_map(|(session, ordinal)| [(session, ordinal - 1), (session, ordinal + 1)])
                .collect();
            let is_beside = |memory: &Stored| {
                memory.session.zip(memory.ordinal).is_some_and(|place| places.contains(&place))
            };
            let beside = view.all().filter(|(_, memory)| is_beside(memory));
            Ok((beside.map(|(key, memory)| state.shown(key, memory)).collect(), earlier))
        })
    }

    /// Does as [`ReadMemories::list`](tiro_store::ReadMemories::list).
    pub(crate) async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        self.read(scope, |state| {
            let view = state.living(scope).narrowed(filter);
            let listed = view.all().rev().filter(|(key, _)| after.is_none_or(|after| *key < after));
            Ok(listed.take(limit).map(|(key, memory)| state.shown(key, memory)).collect())
        })
    }

    /// Does as [`ReadMemories::ids_beginning`](tiro_store::ReadMemories::ids_beginning).
    pub(crate) async fn ids_beginning(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> Result<Vec<MemoryId>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let mut ids: Vec<MemoryId> = view
                .all()
                .filter(|(_, memory)| memory.id.as_str().starts_with(beginning))
                .map(|(_, memory)| memory.id.clone())
                .collect();
            ids.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            ids.truncate(limit);
            Ok(ids)
        })
    }

    /// Does as [`ReadMemories::latest`](tiro_store::ReadMemories::latest).
    pub(crate) async fn latest(&self, scope: &Scope, filter: &Filter, limit: usize) -> Result<Vec<Memory>> {
        self.read(scope, |state| {
            let view = state.living(scope).narrowed(filter);
            let mut all: Vec<_> = view.all().collect();
            all.sort_by_key(|(key, memory)| Reverse((memory.time, *key)));
            Ok(all.into_iter().take(limit).map(|(key, memory)| state.shown(key, memory)).collect())
        })
    }

    /// Does as [`ReadSessions::activity`](tiro_store::ReadSessions::activity).
    pub(crate) async fn activity(&self, scope: &Scope, filter: &Filter) -> Result<Vec<ActivityRow>> {
        self.read(scope, |state| {
            let view = state.living(scope).narrowed(filter);
            let mut rows: BTreeMap<(SessionId, Millis), ActivityRow> = BTreeMap::new();
            for (_, memory) in view.all().filter(|(_, memory)| memory.kind == Kind::Message) {
                let Some(session) = state.name_of(memory) else { continue };
                let row = rows.entry((session.clone(), memory.time / QUARTER_HOUR)).or_insert(ActivityRow {
                    session,
                    first: memory.time,
                    last: memory.time,
                    messages: 0,
                    tokens: 0,
                });
                (row.first, row.last) = (row.first.min(memory.time), row.last.max(memory.time));
                row.messages += 1;
                row.tokens += memory.tokens;
            }
            Ok(rows.into_values().collect())
        })
    }

    /// Does as [`ReadMemories::shown`](tiro_store::ReadMemories::shown).
    pub(crate) async fn shown(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, ChunkKey)>,
    ) -> Result<Vec<ShownMemory>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let shown = found.into_iter().enumerate().filter_map(|(place, (key, chunk))| {
                let memory = view.get(key)?;
                let piece = state.chunks.get(&chunk).filter(|piece| piece.memory == key)?;
                let is_commit = memory.kind == Kind::Commit;
                let behind = if is_commit { state.behind(&view, key) } else { Vec::new() };
                let (conversations, confidences) = behind.into_iter().unzip();
                let is_summary = matches!(memory.kind, Kind::Conversation | Kind::Summary);
                let session = memory.session.filter(|_| is_summary).and_then(|it| state.sessions.get(&it));
                let summary = session
                    .and_then(|session| session.conversation.as_ref())
                    .filter(|summary| state.memories.get(&summary.memory).is_some_and(Stored::is_living));
                Some(ShownMemory {
                    place,
                    memory: state.shown(key, memory),
                    chunk: ChunkRange {
                        key: chunk,
                        start: piece.start,
                        end: piece.end,
                        tokens: piece.tokens,
                    },
                    commit_ids: if is_commit { memory.shas.iter().cloned().collect() } else { Vec::new() },
                    conversations,
                    confidences,
                    covered: summary.map(|summary| summary.last),
                })
            });
            Ok(shown.collect())
        })
    }

    /// Does as [`ReadCommits::commit_named`](tiro_store::ReadCommits::commit_named).
    pub(crate) async fn commit_named(
        &self,
        scope: &Scope,
        prefix: &str,
    ) -> Result<Option<(MemoryKey, ChunkKey)>> {
        self.read(scope, |state| Ok(state.commit_named(scope, prefix)))
    }

    /// Does as [`ReadCommits::known_commits`](tiro_store::ReadCommits::known_commits).
    pub(crate) async fn known_commits(&self, scope: &Scope) -> Result<Vec<String>> {
        self.read(scope, |state| {
            let shas = state.owned(&scope.tenant).flat_map(|(_, memory)| &memory.shas);
            Ok(shas.cloned().collect::<BTreeSet<String>>().into_iter().collect())
        })
    }

    /// Does as [`ReadMemories::references`](tiro_store::ReadMemories::references).
    pub(crate) async fn references(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let Some(own) = state.memories.get(&memory) else { return Ok(Vec::new()) };
            let is_related =
                |other: &Stored| own.references.contains(&other.id) || other.references.contains(&own.id);
            let view = state.living(scope);
            Ok(view.all().filter(|(_, other)| is_related(other)).map(|(key, _)| key).collect())
        })
    }

    /// Does as [`ReadMemories::refers_to`](tiro_store::ReadMemories::refers_to).
    pub(crate) async fn refers_to(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let Some(own) = state.memories.get(&memory) else { return Ok(Vec::new()) };
            let view = state.living(scope);
            Ok(view
                .all()
                .filter(|(_, other)| own.references.contains(&other.id))
                .map(|(key, _)| key)
                .collect())
        })
    }

    /// Does as [`ReadMemories::supersedes`](tiro_store::ReadMemories::supersedes).
    pub(crate) async fn supersedes(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let earlier = view.all().map(|(key, _)| key).filter(|key| state.later(*key).contains(&memory));
            Ok(earlier.collect())
        })
    }

    /// Does as [`ReadForgotten::is_purged`](tiro_store::ReadForgotten::is_purged).
    pub(crate) async fn is_purged(&self, scope: &Scope, id: &MemoryId) -> Result<bool> {
        self.read(scope, |state| Ok(state.purged.contains(&(scope.tenant.clone(), id.clone()))))
    }

    /// Does as [`ReadCommits::sessions_behind`](tiro_store::ReadCommits::sessions_behind).
    pub(crate) async fn sessions_behind(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> Result<Vec<Vec<(SessionId, f64)>>> {
        self.read(scope, |state| {
            let living = state.living(scope);
            Ok(commits.iter().map(|commit| state.behind(&living, *commit)).collect())
        })
    }
}

impl State {
    /// Returns the commit as [`ReadCommits::commit_named`](tiro_store::ReadCommits::commit_named) does.
    pub fn commit_named(&self, scope: &Scope, prefix: &str) -> Option<(MemoryKey, ChunkKey)> {
        let prefix = prefix.to_ascii_lowercase();
        let view = self.living(scope);
        let is_named = |memory: &Stored| memory.shas.iter().any(|sha| sha.starts_with(&prefix));
        let named: Vec<MemoryKey> =
            view.all().filter(|(_, memory)| is_named(memory)).map(|(key, _)| key).collect();
        let [only] = named[..] else { return None };
        self.chunks_of(only).next().map(|(chunk, _)| (only, chunk))
    }

    /// Returns what ranking needs of the living memories of the scope among `keys`, each once, ordered by key.
    pub fn places(&self, scope: &Scope, keys: BTreeSet<MemoryKey>) -> Vec<Neighbour> {
        let view = self.living(scope);
        keys.into_iter().filter_map(|key| Some(self.neighbour(key, view.get(key)?))).collect()
    }

    /// Returns what ranking needs of a memory.
    fn neighbour(&self, key: MemoryKey, memory: &Stored) -> Neighbour {
        let hash = blake3::hash(memory.text.as_bytes());
        let sources = memory.references.iter().filter(|_| memory.is_extract());
        Neighbour {
            key,
            id: memory.id.clone(),
            kind: memory.kind,
            session: memory.session,
            ordinal: memory.ordinal,
            role: memory.role,
            speaker: memory.speaker.clone(),
            tokens: memory.tokens,
            time: memory.time,
            marked: memory.marked,
            importance: memory.importance,
            text_hash: hash.as_bytes().first_chunk().copied().unwrap_or_default(),
            taken_from: sources.filter_map(|id| self.key_of(&memory.owner, id)).next(),
        }
    }

    /// Returns the sessions that led to the commit and have memories in the view, the likeliest first. Sessions without
    /// a client in which a parent of the commit was checked out come last, with the lowest confidence.
    pub fn behind(&self, view: &View<'_>, commit: MemoryKey) -> Vec<(SessionId, f64)> {
        let Some(memory) = self.memories.get(&commit) else { return Vec::new() };
        // The order of a session: its place among the links, or how late it was at the parent.
        let mut linked: Vec<_> = memory
            .links
            .iter()
            .enumerate()
            .map(|(place, (session, sure))| (*session, *sure, place as i64, 0))
            .collect();
        let without_client = self.sessions.iter().filter(|(_, session)| session.client.is_none());
        for (key, _) in without_client {
            let of_session = self.memories.values().filter(|other| other.session == Some(*key));
            let at_parent = of_session
                .filter(|other| other.head_sha.as_ref().is_some_and(|head| memory.parents.contains(head)));
            if let Some(latest) = at_parent.map(|other| other.time).max() {
                linked.push((*key, tiro_store::tuning::LEAST_CONFIDENCE, i64::MAX, -latest));
            }
        }
        let is_seen = |session| view.all().any(|(_, other)| other.session == Some(session));
        let mut found: Vec<(i64, i64, SessionId, f64)> = Vec::new();
        for (key, sure, place, latest) in linked.into_iter().filter(|(key, ..)| is_seen(*key)) {
            let Some(session) = self.sessions.get(&key) else { continue };
            match found.iter_mut().find(|(.., name, _)| *name == session.name) {
                Some((first, before, _, surest)) => {
                    (*first, *before) = ((*first).min(place), (*before).min(latest));
                    *surest = surest.max(sure);
                }
                None => found.push((place, latest, session.name.clone(), sure)),
            }
        }
        found.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        found.into_iter().take(MOST_BEHIND).map(|(.., name, sure)| (name, sure)).collect()
    }
}
