//! Which memories a call sees: those that its scope and its filter admit.

use std::collections::BTreeSet;

use super::state::{Session, Stashed, State, Stored};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::filter::{Expiry, Filter, Stash};
use tiro_base::memory::{Memory, MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId, Sessions, TenantId, Visibility};
use tiro_store::{SessionKey, StashCause};

/// The memories that a scope and a filter admit.
pub struct View<'a> {
    state: &'a State,
    owner: &'a TenantId,
    /// The sessions of the scope; `None` for all.
    sessions: Option<BTreeSet<SessionKey>>,
    filter: Option<&'a Filter>,
    with_forgotten: bool,
}

impl State {
    /// Returns the living memories of the scope.
    pub fn living<'a>(&'a self, scope: &'a Scope) -> View<'a> {
        View { with_forgotten: false, ..self.with_forgotten(scope) }
    }

    /// Returns the memories of the scope, also forgotten ones.
    pub fn with_forgotten<'a>(&'a self, scope: &'a Scope) -> View<'a> {
        let sessions = self.named_in(scope);
        View { state: self, owner: &scope.tenant, sessions, filter: None, with_forgotten: true }
    }

    /// Returns the sessions that the scope names by name or alias; `None` if it has all.
    pub fn named_in(&self, scope: &Scope) -> Option<BTreeSet<SessionKey>> {
        let Sessions::Only(names) = &scope.sessions else { return None };
        Some(names.iter().flat_map(|name| self.all_named(&scope.tenant, name)).collect())
    }

    /// Returns the sessions with this name or alias: at most one of each.
    fn all_named(&self, owner: &TenantId, name: &SessionId) -> impl Iterator<Item = SessionKey> + use<> {
        let alias = self.aliases.get(&(owner.clone(), name.as_str().to_owned())).copied();
        self.session_of(owner, name).into_iter().chain(alias)
    }

    /// Returns the session with this name; if there is none, the one with this alias.
    pub fn named(&self, owner: &TenantId, name: &SessionId) -> Option<SessionKey> {
        self.all_named(owner, name).next()
    }

    /// Returns the session with this name or alias, if the scope has it.
    pub fn find_session(&self, scope: &Scope, name: &SessionId) -> Option<SessionKey> {
        let found = self.named(&scope.tenant, name)?;
        let is_admitted = match &scope.sessions {
            Sessions::All => true,
            Sessions::Only(names) => names.iter().any(|name| self.named(&scope.tenant, name) == Some(found)),
        };
        is_admitted.then_some(found)
    }

    /// Returns the session as [`State::find_session`] does. Errors with `Kind::NotFound` if the scope doesn't have it.
    pub fn required_session(&self, scope: &Scope, name: &SessionId) -> Result<SessionKey> {
        self.find_session(scope, name).ok_or_else(|| {
            Error::not_found(format!("no session `{}`", quoted(name)))
                .hint("`list_sessions` lists this project's sessions")
        })
    }

    /// Returns the data of a session that the scope has, with its key.
    pub fn session(&self, scope: &Scope, name: &SessionId) -> Option<(SessionKey, &Session)> {
        let key = self.find_session(scope, name)?;
        self.sessions.get(&key).map(|session| (key, session))
    }

    /// Returns the living messages of a session, in order.
    pub fn messages(&self, session: SessionKey) -> Vec<(MemoryKey, i64, &Stored)> {
        let of =
            self.memories.iter().filter(|(_, memory)| memory.session == Some(session) && memory.is_living());
        let mut messages: Vec<_> =
            of.filter_map(|(key, memory)| Some((*key, memory.ordinal?, memory))).collect();
        messages.sort_by_key(|(_, ordinal, _)| *ordinal);
        messages
    }

    /// Returns whether a summary covers the memory.
    pub fn is_covered(&self, memory: &Stored) -> bool {
        let session = memory.session.and_then(|session| self.sessions.get(&session));
        session.zip(memory.ordinal).is_some_and(|(session, ordinal)| {
            session.summaries.iter().any(|row| (row.summary.first..=row.summary.last).contains(&ordinal))
        })
    }

    /// Returns whether the memory's time in the stash is not over, and it is not covered if it is there only for lack
    /// of a summary.
    fn is_unexpired(&self, memory: &Stored, stashed: &Stashed, expiry: Expiry) -> bool {
        let is_over =
            stashed.expires_at.is_some_and(|at| at <= expiry.now) || memory.time < expiry.made_before;
        let is_covered = stashed.cause == StashCause::Pruning && self.is_covered(memory);
        (stashed.is_protected || !is_over) && !is_covered
    }

    /// Returns the memory as callers see it.
    pub fn shown(&self, key: MemoryKey, stored: &Stored) -> Memory {
        Memory {
            id: stored.id.clone(),
            key,
            kind: stored.kind,
            provenance: stored.provenance,
            author: stored.author.clone(),
            visibility: if stored.is_private { Visibility::Private } else { Visibility::Project },
            text: stored.text.clone(),
            session: self.name_of(stored),
            ordinal: stored.ordinal,
            role: stored.role,
            speaker: stored.speaker.clone(),
            title: stored.title.clone(),
            topic: stored.topic.clone(),
            source_id: stored.source_id.clone(),
            path: stored.path.clone(),
            branch: stored.branch.clone(),
            head_sha: stored.head_sha.clone(),
            time: stored.time,
            importance: stored.importance,
            marked: stored.marked,
            tokens: stored.tokens,
            indexed: stored.indexed.clone(),
            is_damaged: false,
        }
    }

    /// Returns the name of the memory's session.
    pub fn name_of(&self, memory: &Stored) -> Option<SessionId> {
        let session = self.sessions.get(&memory.session?)?;
        (session.owner == memory.owner).then(|| session.name.clone())
    }
}

impl<'a> View<'a> {
    /// Returns the view, narrowed to what the filter admits.
    pub fn narrowed(self, filter: &'a Filter) -> View<'a> {
        View { filter: Some(filter), ..self }
    }

    /// Returns the memory with this key, if it is admitted.
    pub fn get(&self, key: MemoryKey) -> Option<&'a Stored> {
        self.state.memories.get(&key).filter(|memory| self.admits(memory))
    }

    /// Returns the memory with this id, if it is admitted.
    pub fn by_id(&self, id: &MemoryId) -> Option<(MemoryKey, &'a Stored)> {
        let key = self.state.key_of(self.owner, id)?;
        self.get(key).map(|memory| (key, memory))
    }

    /// Returns all admitted memories, in the order of storing.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = (MemoryKey, &'a Stored)> {
        let admitted = self.state.memories.iter().filter(|(_, memory)| self.admits(memory));
        admitted.map(|(key, memory)| (*key, memory))
    }

    /// Returns whether scope and filter admit the memory.
    pub fn admits(&self, memory: &Stored) -> bool {
        let is_in_session = |sessions: &BTreeSet<SessionKey>| {
            memory.session.is_some_and(|session| sessions.contains(&session))
        };
        memory.owner == *self.owner
            && (self.with_forgotten || memory.is_living())
            && self.sessions.as_ref().is_none_or(is_in_session)
            && self.filter.is_none_or(|filter| self.meets(memory, filter))
    }

    fn meets(&self, memory: &Stored, filter: &Filter) -> bool {
        let Filter { kinds, branch, path, topic, source_id, source, stash, since: _, until: _, without } =
            filter;
        let is_of_left_out = |name: &SessionId| {
            memory.session.is_some_and(|own| self.state.all_named(self.owner, name).any(|left| left == own))
        };
        kinds.as_ref().is_none_or(|kinds| kinds.contains(&memory.kind))
            && branch.as_ref().is_none_or(|branch| memory.branch.as_ref() == Some(branch))
            && path.as_ref().is_none_or(|path| is_below(memory, path))
            && source_id.as_ref().is_none_or(|id| has_id(memory, id))
            && source.as_ref().is_none_or(|source| {
                memory.source_id.as_ref() == Some(source) || memory.paths.contains(source)
            })
            && self.is_in_stash(memory, *stash, topic.as_deref())
            && filter.is_within(memory.time)
            && !without.as_ref().is_some_and(is_of_left_out)
    }

    /// Returns whether the memory has the topic, and is in the stash or not, as asked for. Within the stash, the topic
    /// is that under which it was stashed.
    fn is_in_stash(&self, memory: &Stored, stash: Option<Stash>, topic: Option<&str>) -> bool {
        let is_topic = |own: &Option<String>| topic.is_none_or(|topic| own.as_deref() == Some(topic));
        let stashed = memory.stashed.as_ref();
        match stash {
            Some(Stash::Only) => stashed.is_some_and(|stashed| is_topic(&stashed.topic)),
            Some(Stash::Unexpired(expiry)) => stashed.is_some_and(|stashed| {
                is_topic(&stashed.topic) && self.state.is_unexpired(memory, stashed, expiry)
            }),
            Some(Stash::Without) => {
                is_topic(&memory.topic) && !stashed.is_some_and(|stashed| stashed.is_held_out)
            }
            None => is_topic(&memory.topic),
        }
    }
}

/// Returns whether the memory is about the file `path`, or a file in the directory `path`.
fn is_below(memory: &Stored, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let is_in =
        |file: &String| file == path || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    memory.paths.iter().any(is_in)
}

/// Returns whether the client gave the memory this id, or it is the commit with this id. Ten digits name a commit.
fn has_id(memory: &Stored, id: &str) -> bool {
    let is_prefix = (10..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_named = |sha: &String| if is_prefix { sha.starts_with(id) } else { sha == id };
    memory.source_id.as_deref() == Some(id) || memory.shas.iter().any(is_named)
}
