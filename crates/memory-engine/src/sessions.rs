//! Sessions: their names, messages, segments and versions.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use super::MemoryStore;
use super::state::{Session, State, Stored};
use super::summaries::of_level;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryKey, Millis, Role};
use tiro_base::scope::{Scope, SessionId, Sessions, TenantId};
use tiro_store::decide::context;
use tiro_store::decide::stale;
use tiro_store::{
    About, ContextParts, ContextQuery, GrownSession, HEADLESS, LeftSession, MessageRow, Origin, SegmentRow,
    SessionKey, SessionRow, SourceState, StashedPlace, Version,
};

/// Whether a text names a session in one way.
type Way<'a> = &'a dyn Fn(SessionKey, &Session) -> bool;

/// How many characters of the user's first message stand for a title.
const OPENING_CHARACTERS: usize = 500;

impl MemoryStore {
    /// Does as [`ReadSessions::session_messages`](tiro_store::ReadSessions::session_messages).
    pub(crate) async fn session_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        from: i64,
    ) -> Result<Vec<MessageRow>> {
        self.read(scope, |state| {
            let Some(session) = state.find_session(scope, session) else { return Ok(Vec::new()) };
            let messages = state.messages(session).into_iter().filter(|(_, ordinal, _)| *ordinal >= from);
            Ok(messages.map(|(key, ordinal, memory)| message_row(key, ordinal, memory)).collect())
        })
    }

    /// Does as [`ReadSummaries::segments`](tiro_store::ReadSummaries::segments).
    pub(crate) async fn segments(&self, scope: &Scope, session: &SessionId) -> Result<Vec<SegmentRow>> {
        self.read(scope, |state| {
            Ok(state.session(scope, session).map(|(_, session)| session.segments.clone()).unwrap_or_default())
        })
    }

    /// Does as [`WriteSummaries::add_segments`](tiro_store::WriteSummaries::add_segments).
    pub(crate) async fn add_segments(
        &self,
        scope: &Scope,
        session: &SessionId,
        segments: Vec<SegmentRow>,
    ) -> Result<()> {
        self.write(scope, |state| {
            let Some((key, session)) = state.session(scope, session) else { return Ok(()) };
            let (next, from) =
                session.segments.last().map_or((0, 0), |last| (last.number + 1, last.last + 1));
            for (number, first, last) in stale::closed(next, from, &segments) {
                let messages = state.messages(key);
                let of: Vec<&Stored> = messages
                    .iter()
                    .filter(|(_, ordinal, _)| (first..=last).contains(ordinal))
                    .map(|(.., memory)| *memory)
                    .collect();
                let tokens = of.iter().map(|memory| memory.tokens).sum();
                let row = SegmentRow { number, first, last, messages: of.len() as i64, tokens };
                if let Some(session) = state.session_mut(Some(key)) {
                    session.segments.push(row);
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadSessions::sessions`](tiro_store::ReadSessions::sessions).
    pub(crate) async fn sessions(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        self.read(scope, |state| {
            let wanted = state.named_in(scope);
            let of_owner = state.sessions.iter().filter(|(key, session)| {
                session.owner == scope.tenant && wanted.as_ref().is_none_or(|wanted| wanted.contains(key))
            });
            let mut rows: Vec<(bool, SessionRow)> = of_owner
                .filter_map(|(key, session)| {
                    let client = session.client.as_deref().unwrap_or_default().to_ascii_lowercase();
                    Some((client.ends_with(HEADLESS), state.session_row(*key, session)?))
                })
                .collect();
            rows.sort_by_key(|(is_headless, row)| (*is_headless, Reverse(row.last), row.id.clone()));
            Ok(rows.into_iter().map(|(_, row)| row).skip(offset).take(limit).collect())
        })
    }

    /// Does as [`ReadSessions::session_stands`](tiro_store::ReadSessions::session_stands).
    pub(crate) async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<(Option<String>, Option<String>)> {
        self.read(scope, |state| {
            let session = state.session(scope, session);
            Ok(session
                .map_or((None, None), |(_, session)| (session.branch.clone(), session.head_sha.clone())))
        })
    }

    /// Does as [`ReadSessions::about_sessions`](tiro_store::ReadSessions::about_sessions).
    pub(crate) async fn about_sessions(&self, scope: &Scope, sessions: Vec<SessionId>) -> Result<Vec<About>> {
        self.read(scope, |state| {
            let about = |name: &SessionId| {
                let Some((key, session)) = state.session(scope, name) else { return About::default() };
                let title = state.title(key).or_else(|| state.opening(key));
                About { title, given: state.given(key), client: session.client.clone() }
            };
            Ok(sessions.iter().map(about).collect())
        })
    }

    /// Does as [`ReadSessions::sessions_called`](tiro_store::ReadSessions::sessions_called).
    pub(crate) async fn sessions_called(
        &self,
        scope: &Scope,
        text: &str,
        limit: usize,
    ) -> Result<Vec<SessionId>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let seen: BTreeSet<SessionKey> = view.all().filter_map(|(_, memory)| memory.session).collect();
            let has_title = |key| {
                let title = state.title(key).or_else(|| state.opening(key));
                title.is_some_and(|title| title.to_ascii_lowercase().contains(&text.to_ascii_lowercase()))
            };
            let alias = state.aliases.get(&(scope.tenant.clone(), text.to_owned())).copied();
            let ways: [Way<'_>; 4] = [
                &|_, session| session.name.as_str() == text,
                &|key, _| alias == Some(key),
                &|_, session| session.name.as_str().starts_with(text),
                &|key, _| has_title(key),
            ];
            for is_called in ways {
                let called = seen.iter().filter_map(|key| Some((*key, state.sessions.get(key)?)));
                let called = called.filter(|(key, session)| is_called(*key, session));
                let mut rows: Vec<SessionRow> =
                    called.filter_map(|(key, session)| state.session_row(key, session)).collect();
                rows.sort_by_key(|row| (Reverse(row.last), row.id.clone()));
                if !rows.is_empty() {
                    return Ok(rows.into_iter().map(|row| row.id).take(limit).collect());
                }
            }
            Ok(Vec::new())
        })
    }

    /// Does as [`WriteSessions::describe_session`](tiro_store::WriteSessions::describe_session).
    pub(crate) async fn describe_session(
        &self,
        scope: &Scope,
        session: &SessionId,
        origin: Origin,
    ) -> Result<()> {
        self.write(scope, |state| {
            let is_private = state.is_private_session(scope, session, origin.visibility);
            let key = state.open_session(&scope.tenant, session, is_private);
            if let Some(session) = state.session_mut(Some(key)) {
                session.client = origin.client.or(session.client.take());
                session.worktree = origin.worktree.or(session.worktree.take());
                session.title = origin.title.or(session.title.take());
            }
            for alias in origin.aliases {
                state.aliases.insert((scope.tenant.clone(), alias), key);
            }
            Ok(())
        })
    }

    /// Does as [`ReadSessions::known_elsewhere`](tiro_store::ReadSessions::known_elsewhere).
    pub(crate) async fn known_elsewhere(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: Vec<String>,
    ) -> Result<HashSet<String>> {
        self.read(scope, |state| {
            let own = state.session_of(&scope.tenant, session);
            let is_elsewhere = |id: &String| {
                state.owned(&scope.tenant).any(|(_, memory)| {
                    let is_it = memory.source_id.as_ref() == Some(id) || memory.repeats.contains(id);
                    is_it && memory.session.is_some() && memory.session != own
                })
            };
            Ok(ids.into_iter().filter(is_elsewhere).collect())
        })
    }

    /// Does as [`ReadSessions::context_parts`](tiro_store::ReadSessions::context_parts).
    pub(crate) async fn context_parts(
        &self,
        scope: &Scope,
        session: &SessionId,
        query: ContextQuery,
    ) -> Result<ContextParts> {
        self.read(scope, |state| {
            let pending = state.waiting(&scope.tenant).count();
            let Some((session, data)) = state.session(scope, session) else {
                return Ok(ContextParts { pending, ..ContextParts::default() });
            };
            let all = state.messages(session);
            let (from, with_texts) = context::read_from(&data.segments, data.noted, &query);
            let read = || all.iter().filter(|(_, ordinal, _)| *ordinal >= from);
            let with_text = read().filter(|(_, ordinal, _)| *ordinal >= with_texts).take(query.texts);
            let is_important = |memory: &Stored| {
                memory.marked || memory.importance.is_some_and(|own| own >= query.importance)
            };
            let important = all.iter().rev().filter(|(.., memory)| is_important(memory));
            let own = || state.memories.iter().filter(|(_, memory)| memory.session == Some(session));
            let is_fact = |memory: &Stored| {
                memory.ordinal.is_none()
                    && memory.is_living()
                    && matches!(memory.kind, Kind::Fact | Kind::Decision)
            };
            let mut facts: Vec<_> = own().filter(|(_, memory)| is_fact(memory)).collect();
            facts.sort_by(|(_, a), (_, b)| b.time.cmp(&a.time).then_with(|| a.id.cmp(&b.id)));
            let stashed = own().filter_map(|(key, memory)| {
                let is_held_out = memory.stashed.as_ref()?.is_held_out;
                Some(StashedPlace { key: *key, ordinal: memory.ordinal, is_held_out })
            });
            Ok(ContextParts {
                noted: data.noted,
                segments: data.segments.clone(),
                summaries: of_level(data, None),
                from,
                messages: read().map(|(key, ordinal, memory)| message_row(*key, *ordinal, memory)).collect(),
                texts: with_text.map(|(key, _, memory)| (*key, memory.text.clone(), false)).collect(),
                tokens: all.iter().map(|(.., memory)| memory.tokens).sum(),
                important: important
                    .take(query.important)
                    .map(|(key, _, memory)| state.shown(*key, memory))
                    .collect(),
                facts: facts
                    .into_iter()
                    .take(query.facts)
                    .map(|(key, memory)| state.shown(*key, memory))
                    .collect(),
                stashed: stashed.collect(),
                pending,
            })
        })
    }

    /// Does as [`ReadSessions::source_state`](tiro_store::ReadSessions::source_state).
    pub(crate) async fn source_state(&self, scope: &Scope) -> Result<SourceState> {
        self.read(scope, |state| {
            let is_empty = state.living(scope).all().next().is_none();
            let Sessions::Only(names) = &scope.sessions else {
                let version = state.versions.get(&scope.tenant).copied().unwrap_or(0);
                return Ok(SourceState { version: Version::from_store(version), is_empty });
            };
            let sessions: BTreeSet<SessionKey> =
                names.iter().filter_map(|name| state.named(&scope.tenant, name)).collect();
            // A sum of the versions could be the same again after a session was removed.
            let mut hasher = blake3::Hasher::new();
            for (key, session) in sessions.iter().filter_map(|key| Some((key, state.sessions.get(key)?))) {
                hasher.update(&key.in_store().to_le_bytes());
                hasher.update(&session.version.to_le_bytes());
            }
            let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
            Ok(SourceState { version: Version::from_store(i64::from_le_bytes(first)), is_empty })
        })
    }

    /// Does as [`ReadSessions::grown_sessions`](tiro_store::ReadSessions::grown_sessions).
    pub(crate) async fn grown_sessions(&self, scope: &Scope, limit: usize) -> Result<Vec<GrownSession>> {
        self.read(scope, |state| {
            let of_owner = state.sessions.iter().filter(|(_, session)| session.owner == scope.tenant);
            let mut grown: Vec<(i64, SessionKey, SessionId)> = of_owner
                .filter_map(|(key, session)| Some((session.grown?, *key, session.name.clone())))
                .filter(|(.., name)| state.find_session(scope, name).is_some())
                .collect();
            grown.sort();
            let row = |(version, _, session)| GrownSession { session, version: Version::from_store(version) };
            Ok(grown.into_iter().take(limit).map(row).collect())
        })
    }

    /// Does as [`WriteSessions::worked_off`](tiro_store::WriteSessions::worked_off).
    pub(crate) async fn worked_off(&self, scope: &Scope, grown: GrownSession) -> Result<()> {
        self.write(scope, |state| {
            let session = state.session_of(&scope.tenant, &grown.session);
            if let Some(session) = state.session_mut(session) {
                session.grown.take_if(|version| *version == grown.version.in_store());
            }
            Ok(())
        })
    }

    /// Does as [`ReadSessions::left_sessions`](tiro_store::ReadSessions::left_sessions).
    pub(crate) async fn left_sessions(&self, scope: &Scope, before: Millis) -> Result<Vec<LeftSession>> {
        self.read(scope, |state| {
            let all = || state.memories.values();
            let linked: BTreeSet<SessionKey> =
                all().flat_map(|memory| &memory.links).map(|(session, _)| *session).collect();
            let parents: BTreeSet<&String> = all().flat_map(|memory| &memory.parents).collect();
            let is_kept = |memory: &Stored| {
                memory.marked || memory.head_sha.as_ref().is_some_and(|head| parents.contains(head))
            };
            let of_owner = state.sessions.iter().filter(|(_, session)| session.owner == scope.tenant);
            let mut left: Vec<LeftSession> = of_owner
                .filter(|(key, _)| !linked.contains(key))
                .filter(|(key, _)| !state.living_in(**key).any(is_kept))
                .filter_map(|(key, session)| state.session_row(*key, session))
                .filter(|row| row.last < before)
                .map(|row| LeftSession { session: row.id, memories: row.memories, last: row.last })
                .collect();
            left.sort_by_key(|left| (left.last, left.session.clone()));
            Ok(left)
        })
    }
}

impl State {
    /// Returns the living memories of a session.
    fn living_in(&self, session: SessionKey) -> impl Iterator<Item = &Stored> {
        self.memories.values().filter(move |memory| memory.session == Some(session) && memory.is_living())
    }

    /// Returns the times at which the owner's sessions with living memories began.
    pub fn beginnings(&self, owner: &TenantId) -> impl Iterator<Item = Millis> {
        let own = self.sessions.iter().filter(|(_, session)| session.owner == *owner);
        own.filter_map(|(key, _)| self.living_in(*key).map(|memory| memory.time).min())
    }

    /// Returns the session with its counts, if it has living memories.
    fn session_row(&self, key: SessionKey, session: &Session) -> Option<SessionRow> {
        Some(SessionRow {
            id: session.name.clone(),
            memories: self.living_in(key).count() as i64,
            tokens: self.living_in(key).map(|memory| memory.tokens).sum(),
            first: self.living_in(key).map(|memory| memory.time).min()?,
            last: self.living_in(key).map(|memory| memory.time).max()?,
            branch: session.branch.clone(),
            head_sha: session.head_sha.clone(),
        })
    }

    /// Returns the title that the client gave the session. Returns the title of the memory that summarises the session
    /// if there is none, or if the topic of this memory is the client's title.
    pub fn title(&self, key: SessionKey) -> Option<String> {
        let given = self.given(key);
        let is_summary = |memory: &&Stored| memory.kind == Kind::Conversation && memory.title.is_some();
        let summary = self.living_in(key).find(is_summary);
        let replaces = |memory: &&Stored| given.is_none() || given == memory.topic;
        summary.filter(replaces).and_then(|memory| memory.title.clone()).or(given)
    }

    /// Returns the title that the client gave the session.
    fn given(&self, key: SessionKey) -> Option<String> {
        let title = self.sessions.get(&key)?.title.as_deref()?.trim_matches(' ');
        (!title.is_empty()).then(|| title.to_owned())
    }

    /// Returns what stands for the title of a session without one: the title or the beginning of the user's first
    /// message.
    fn opening(&self, key: SessionKey) -> Option<String> {
        let of_user = |memory: &&Stored| memory.kind == Kind::Message && memory.role == Some(Role::User);
        let first = self.living_in(key).filter(of_user).min_by_key(|memory| memory.ordinal)?;
        let beginning = || first.text.chars().take(OPENING_CHARACTERS).collect();
        Some(first.title.clone().unwrap_or_else(beginning))
    }

    /// Returns how many sessions of the owner have living memories.
    pub fn living_sessions(&self, owner: &TenantId) -> i64 {
        let of_owner = self.sessions.iter().filter(|(_, session)| session.owner == *owner);
        of_owner.filter(|(key, _)| self.living_in(**key).next().is_some()).count() as i64
    }
}

fn message_row(key: MemoryKey, ordinal: i64, memory: &Stored) -> MessageRow {
    MessageRow {
        key,
        id: memory.id.clone(),
        ordinal,
        author: memory.author.clone(),
        role: memory.role,
        speaker: memory.speaker.clone(),
        time: memory.time,
        tokens: memory.tokens,
        marked: memory.marked,
        importance: memory.importance,
        kind: memory.kind,
        provenance: memory.provenance,
        is_damaged: false,
    }
}
