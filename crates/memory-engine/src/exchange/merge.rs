//! Merges what changed in another store.

use crate::state::{Absent, ActKind, State, Stored};
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange::{self, KnownState, Verdict};
use tiro_store::{
    ExchangedState, Incoming, IncomingMemory, MergeOutcome, MergeRights, Outcome, Reach, SessionKey,
};

/// The most ordinals that a message may skip.
const WIDEST_GAP: i64 = 1_000_000;

/// The peer whose changes are merged.
#[derive(Clone, Copy)]
pub(super) struct Peer<'p> {
    /// The peer's name for the reader.
    pub name: Option<&'p AuthorId>,
    pub id: &'p str,
    pub rights: MergeRights,
}

/// Where a known memory is.
enum At {
    Here(MemoryKey),
    /// Only its state is known: whether it is private, and its id.
    Absent(bool, MemoryId),
}

impl State {
    /// Merges a change. Returns what became of it.
    pub(super) fn merge(
        &mut self,
        scope: &Scope,
        peer: Peer<'_>,
        incoming: &Incoming,
        now: Millis,
    ) -> Result<MergeOutcome> {
        self.assign(scope, peer.name);
        let author = match peer.name {
            Some(name) => exchange::kept_author(name, &scope.reader, &incoming.author),
            None => incoming.author.clone(),
        };
        let known = self.find(scope, incoming, &author, peer.id);
        let is_own = match &known {
            Some((.., is_own)) => Some(*is_own),
            None => exchange::is_own(scope, &author, incoming.visibility),
        };
        let Some(is_own) = is_own else { return Ok(MergeOutcome::Refused) };
        let (known_state, at) = known.map_or((None, None), |(state, at, _)| (Some(state), Some(at)));
        let content = incoming.content.as_deref();
        let verdict = exchange::verdict(known_state, &incoming.state, content.is_some(), is_own, peer.rights);
        let Verdict { outcome, state, is_stored, is_of_peer } = verdict;
        if outcome == MergeOutcome::Conflict {
            return Ok(outcome);
        }
        let mut key = match &at {
            Some(At::Here(key)) => Some(*key),
            _ => None,
        };
        if let Some(content) = content {
            match key {
                Some(key) if known_state.is_some_and(|known| known.is_by_author) => {
                    self.complete(scope, key, content)
                }
                Some(_) => {}
                None if is_stored => key = self.store(scope, peer, incoming, content, &author, now)?,
                None => {}
            }
        }
        let by = Some(peer.id.to_owned()).filter(|_| is_of_peer);
        match (state, key) {
            (Some(state), Some(key)) => self.settle(scope, key, &state, by, now),
            (Some(state), None) => {
                let (is_private, id) = match at {
                    Some(At::Absent(is_private, id)) => (is_private, id),
                    _ => {
                        let is_private = incoming.visibility == Visibility::Private;
                        (is_private, self.free_id(scope, is_private, (incoming, &author)))
                    }
                };
                let is_renamed =
                    peer.name.is_some() && author == scope.reader && incoming.kind != Kind::Commit;
                let travelling =
                    Some(incoming.id.clone()).filter(|travelling| is_renamed || *travelling != id);
                if state.is_purged {
                    self.purged.insert((scope.tenant.clone(), id.clone()));
                }
                let changed = self.number();
                let absent = Absent { kind: incoming.kind, author, state, changed, by, travelling };
                self.absent.insert((scope.tenant.clone(), is_private, id), absent);
            }
            (None, _) => {}
        }
        Ok(outcome)
    }

    /// Gives exchange ids to the reader's own memories, also to those that are not here.
    fn assign(&mut self, scope: &Scope, name: Option<&AuthorId>) {
        let Some(name) = name else { return };
        let own = self.memories.values_mut().filter(|memory| {
            memory.owner == scope.tenant && memory.author == scope.reader && memory.kind != Kind::Commit
        });
        for memory in own {
            let id = || exchange::exchange_id(name, memory.kind, &memory.id);
            memory.exchanged.id.get_or_insert_with(id);
        }
        let own = self.absent.iter_mut().filter(|((owner, ..), absent)| {
            *owner == scope.tenant && absent.author == scope.reader && absent.kind != Kind::Commit
        });
        for ((.., id), absent) in own {
            absent.travelling.get_or_insert_with(|| exchange::exchange_id(name, absent.kind, id));
        }
    }

    /// Returns what is known of the memory of a change, where it is, and whether it is the reader's.
    fn find(
        &self,
        scope: &Scope,
        incoming: &Incoming,
        author: &AuthorId,
        peer: &str,
    ) -> Option<(KnownState, At, bool)> {
        let is_of_peer = |by: &Option<String>| by.as_deref() == Some(peer);
        for is_private in [true, false] {
            let here = self.owned(&scope.tenant).find(|(_, memory)| {
                memory.is_private == is_private
                    && *memory.exchanged.id.as_ref().unwrap_or(&memory.id) == incoming.id
            });
            if let Some((key, memory)) = here {
                let is_same = incoming.content.as_ref().is_none_or(|content| {
                    let text = &content.memory.draft.text;
                    let (own, other) = (exchange::comparable(&memory.text), exchange::comparable(text));
                    !memory.is_living() || own == other || tiro_redact::alike(&own, &other)
                });
                let (state, by) = (memory.exchanged_state(), &memory.exchanged.by);
                let (is_by_author, is_of_peer) = (memory.author == *author, is_of_peer(by));
                let state = KnownState { state, is_here: true, is_by_author, is_same, is_of_peer };
                return Some((state, At::Here(key), is_private || memory.author == scope.reader));
            }
        }
        for is_private in [true, false] {
            let is_same = |memory: &Stored| {
                memory.is_private == is_private
                    && incoming.commit().is_some_and(|sha| memory.shas.contains(sha))
            };
            if self.owned(&scope.tenant).any(|(_, memory)| is_same(memory)) {
                let at = At::Absent(is_private, incoming.id.clone());
                return Some((KnownState::under_another_id(), at, *author == scope.reader));
            }
            let absent = self.absent.iter().find(|((owner, private, id), absent)| {
                *owner == scope.tenant
                    && *private == is_private
                    && *absent.travelling.as_ref().unwrap_or(id) == incoming.id
                    && exchange::counts(&absent.state, &absent.author, author, &scope.reader)
            });
            if let Some(((.., id), absent)) = absent {
                let state = KnownState::absent(absent.state, is_of_peer(&absent.by));
                let at = At::Absent(is_private, id.clone());
                return Some((state, at, is_private || absent.author == scope.reader));
            }
        }
        let is_traced = self.absent.keys().any(|(_, _, id)| *id == incoming.id);
        let is_purged = self.purged.contains(&(scope.tenant.clone(), incoming.id.clone())) && !is_traced;
        let at = || At::Absent(false, incoming.id.clone());
        is_purged.then(|| (KnownState::purged(), at(), *author == scope.reader))
    }

    /// Stores a memory that is not here.
    fn store(
        &mut self,
        scope: &Scope,
        peer: Peer<'_>,
        incoming: &Incoming,
        content: &IncomingMemory,
        author: &AuthorId,
        now: Millis,
    ) -> Result<Option<MemoryKey>> {
        self.absent.retain(|(owner, _, id), absent| {
            let is_it = *absent.travelling.as_ref().unwrap_or(id) == incoming.id && absent.author == *author;
            *owner != scope.tenant || absent.state.is_purged || !is_it
        });
        let is_own = *author == scope.reader;
        let mut memory = content.memory.clone();
        let draft = &mut memory.draft;
        draft.author = Some(author.clone());
        draft.importance = incoming.state.importance;
        draft.visibility = Some(match incoming.visibility {
            Visibility::Private => Visibility::Private,
            Visibility::Project | Visibility::Tenant => scope.project.shared(),
        });
        if let (Some(name), true) = (peer.name, is_own) {
            draft.session = draft.session.take().map(|session| exchange::kept_session(name, &session));
        }
        draft.references = draft.references.iter().map(|id| self.local(scope, id)).collect();
        let (is_private, session) = self.place_of(scope, draft);
        let session = session.map(|name| self.open_session(&scope.tenant, &name, is_private));
        if let (Some(session), Some(ordinal)) = (self.session_mut(session), content.ordinal) {
            let gap = ordinal.checked_sub(session.last + 1);
            if gap.is_some_and(|gap| (1..=WIDEST_GAP).contains(&gap)) {
                session.last = ordinal - 1;
            }
        }
        let place = content.ordinal.filter(|ordinal| self.is_between(session, *ordinal));
        memory.id = self.free_id(scope, is_private, (incoming, author));
        if self.insert(scope, &memory, session, is_private, now)? != Outcome::Stored {
            return Ok(None);
        }
        let Some(key) = self.key_in(&scope.tenant, &memory.id, is_private) else { return Ok(None) };
        if let Some(place) = place {
            self.put_between(key, place);
        }
        let is_renamed = peer.name.is_some() && is_own && incoming.kind != Kind::Commit;
        if let Some(stored) = self.memories.get_mut(&key)
            && (is_renamed || memory.id != incoming.id)
        {
            stored.exchanged.id = Some(incoming.id.clone());
        }
        self.complete(scope, key, content);
        Ok(Some(key))
    }

    /// Returns whether a message with this ordinal would be one before others of its session, at a free place.
    fn is_between(&mut self, session: Option<SessionKey>, ordinal: i64) -> bool {
        let last = self.session_mut(session).map_or(-1, |session| session.last);
        let is_at = |memory: &Stored| memory.session == session && memory.ordinal == Some(ordinal);
        (0..=last).contains(&ordinal) && !self.memories.values().any(is_at)
    }

    /// Moves a message from the end of its session to a place before other messages.
    fn put_between(&mut self, key: MemoryKey, ordinal: i64) {
        let Some(memory) = self.memories.get_mut(&key).filter(|memory| memory.ordinal.is_some()) else {
            return;
        };
        memory.ordinal = Some(ordinal);
        let memory = memory.clone();
        if let Some(session) = self.session_mut(memory.session) {
            session.last -= 1;
        }
        self.message_changed(&memory, true);
    }

    /// Adds what a memory may lack of the content that came.
    fn complete(&mut self, scope: &Scope, key: MemoryKey, content: &IncomingMemory) {
        for older in &content.memory.draft.supersedes {
            if let Some(older) = self.key_of(&scope.tenant, &self.local(scope, older)) {
                self.link(older, key);
            }
        }
        for newer in &content.superseded_by {
            if let Some(newer) = self.key_of(&scope.tenant, &self.local(scope, newer)) {
                self.link(key, newer);
            }
        }
    }

    /// Returns the id that the memory which travels under `id` has here.
    fn local(&self, scope: &Scope, id: &MemoryId) -> MemoryId {
        let is_it = |memory: &&Stored| memory.exchanged.id.as_ref() == Some(id);
        let known = self.owned(&scope.tenant).map(|(_, memory)| memory).find(is_it);
        known.map_or_else(|| id.clone(), |memory| memory.id.clone())
    }

    /// Returns the id under which a new memory of `author` is stored: that of the change, unless another memory has it or
    /// had it, or what is derived from a memory of somebody else refers to it.
    fn free_id(
        &self,
        scope: &Scope,
        is_private: bool,
        (Incoming { id, kind, .. }, author): (&Incoming, &AuthorId),
    ) -> MemoryId {
        let refers = |memory: &Stored| {
            memory.is_derived() && memory.author != *author && memory.references.contains(id)
        };
        let is_meant = self.owned(&scope.tenant).any(|(_, memory)| refers(memory));
        let was_purged = self.purged.contains(&(scope.tenant.clone(), id.clone()));
        let absent = self.absent.get(&(scope.tenant.clone(), is_private, id.clone()));
        let was = absent.is_some_and(|absent| absent.travelling.as_ref().is_some_and(|other| other != id));
        match was || was_purged || is_meant || self.key_in(&scope.tenant, id, is_private).is_some() {
            true => exchange::id_beside(*kind, id),
            false => id.clone(),
        }
    }

    /// Gives a memory that is here its state.
    fn settle(
        &mut self,
        scope: &Scope,
        key: MemoryKey,
        state: &ExchangedState,
        by: Option<String>,
        now: Millis,
    ) {
        let Some(memory) = self.memories.get_mut(&key) else { return };
        if (memory.marked, memory.importance) != (state.is_marked, state.importance) {
            memory.importance = state.importance;
            self.set_mark(key, state.is_marked, None);
        }
        let is_living = self.memories.get(&key).is_some_and(|memory| memory.is_living());
        if state.is_purged {
            let number = self.number();
            let name = format!("x{number}");
            let keys = self.with_derived(&scope.tenant, vec![key], Reach::Forgotten);
            let place = self.memories.get(&key).map(|memory| (memory.is_private, memory.id.clone()));
            self.forget_keys(&scope.tenant, &name, ActKind::Purge, &keys, now);
            self.purge(&scope.tenant, &name, now);
            if let Some((is_private, id)) = place
                && let Some(absent) = self.absent.get_mut(&(scope.tenant.clone(), is_private, id))
            {
                (absent.by, absent.state.marked_at) = (by, state.marked_at);
            }
            return;
        }
        if state.is_forgotten && is_living {
            let keys = self.with_derived(&scope.tenant, vec![key], Reach::Living);
            for session in self.sessions_of(&keys.iter().copied().collect()) {
                self.end_retirement(session);
            }
            keys.iter().for_each(|key| self.set_forgotten(*key, Some(now)));
        } else if !state.is_forgotten && !is_living {
            self.set_forgotten(key, None);
        }
        let changed = self.number();
        if let Some(memory) = self.memories.get_mut(&key) {
            let own = &mut memory.exchanged;
            (own.changed, own.by) = (changed, by);
            (own.marked_at, own.forgotten_at) = (state.marked_at, state.forgotten_at);
        }
    }
}
