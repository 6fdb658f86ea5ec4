//! Memories that later ones replaced, and the statements by which they are compared.

use std::collections::BTreeSet;

use super::MemoryStore;
use super::state::{State, Stored};
use super::view::View;
use tiro_base::error::{Error, Result};
use tiro_base::memory::{MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ChunkKey, NewStatement, Statement, SubjectKey, Superseded};

impl MemoryStore {
    /// Does as [`ReadMemories::keys_of`](tiro_store::ReadMemories::keys_of).
    pub(crate) async fn keys_of(&self, scope: &Scope, ids: Vec<MemoryId>) -> Result<Vec<Option<MemoryKey>>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            Ok(ids.iter().map(|id| view.by_id(id).map(|(key, _)| key)).collect())
        })
    }

    /// Does as [`WriteStatements::add_statements`](tiro_store::WriteStatements::add_statements).
    pub(crate) async fn add_statements(
        &self,
        scope: &Scope,
        statements: Vec<NewStatement>,
        noted: Option<(SessionId, i64)>,
    ) -> Result<()> {
        self.write(scope, |state| {
            statements.into_iter().for_each(|new| state.add_statement(scope, new));
            if let Some((name, ordinal)) = noted {
                let session = state.session_of(&scope.tenant, &name);
                if let Some(session) = state.session_mut(session) {
                    session.noted = session.noted.max(ordinal);
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadStatements::noted`](tiro_store::ReadStatements::noted).
    pub(crate) async fn noted(&self, scope: &Scope, session: &SessionId) -> Result<i64> {
        self.read(scope, |state| Ok(state.session(scope, session).map_or(-1, |(_, session)| session.noted)))
    }

    /// Does as [`WriteStatements::remove_extracts`](tiro_store::WriteStatements::remove_extracts).
    pub(crate) async fn remove_extracts(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<usize> {
        self.write(scope, |state| {
            let Some((session, data)) = state.session(scope, session) else { return Ok(0) };
            if data.noted >= 0 {
                return Ok(0);
            }
            let replacing: BTreeSet<MemoryKey> =
                state.memories.values().flat_map(|memory| memory.newer.iter().copied()).collect();
            let is_extract = |(key, memory): &(&MemoryKey, &Stored)| {
                memory.session == Some(session)
                    && memory.is_extract()
                    && !memory.came()
                    && memory.is_living()
                    && memory.ordinal.is_none()
                    && !memory.marked
                    && memory.importance.is_none()
                    && memory.newer.is_empty()
                    && !replacing.contains(key)
            };
            let extracts = state.memories.iter().filter(is_extract).map(|(key, _)| *key);
            let extracts: Vec<MemoryKey> = extracts.take(limit).collect();
            extracts.iter().for_each(|extract| state.remove(*extract));
            Ok(extracts.len())
        })
    }
}

impl State {
    /// Records that `newer` replaces `older`. Unless `is_strict`, those that can't be replaced are skipped.
    pub fn supersede(
        &mut self,
        scope: &Scope,
        newer: &MemoryId,
        older: &[MemoryId],
        is_strict: bool,
    ) -> Result<()> {
        for id in older {
            let by = self.key_of(&scope.tenant, newer);
            let replaced = self.living(scope).by_id(id).map(|(key, _)| key);
            let refusal = match replaced.zip(by) {
                Some((replaced, by)) if self.link(replaced, by) => continue,
                Some(_) => Error::bad_input(format!("`{newer}` can't supersede `{id}`, which supersedes it"))
                    .hint("nothing was stored; forget the one that no longer holds"),
                None => Error::not_found(format!("no memory with id `{id}` to supersede"))
                    .hint("nothing was stored; search for the memory to replace, or leave `supersedes` out"),
            };
            if is_strict {
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Records that `newer` replaces `memory`. Returns false, and does nothing, if `memory` replaces `newer` itself.
    pub fn link(&mut self, memory: MemoryKey, newer: MemoryKey) -> bool {
        if memory == newer || self.later(newer).contains(&memory) {
            return false;
        }
        let Some(replaced) = self.memories.get_mut(&memory) else { return false };
        if replaced.newer.insert(newer) {
            let (owner, session) = (replaced.owner.clone(), replaced.session);
            self.touch(&owner, session);
            self.changed(newer);
        }
        true
    }

    /// Returns the memories that replaced `memory`, directly or through others.
    pub fn later(&self, memory: MemoryKey) -> BTreeSet<MemoryKey> {
        let (mut later, mut rest) = (BTreeSet::new(), vec![memory]);
        while let Some(key) = rest.pop() {
            for newer in self.memories.get(&key).into_iter().flat_map(|memory| &memory.newer) {
                if later.insert(*newer) {
                    rest.push(*newer);
                }
            }
        }
        later
    }

    /// Returns what replaced the memory `key`: once if it was replaced by request, else once for each statement.
    pub fn superseded_by(&self, view: &View<'_>, key: MemoryKey) -> Vec<Superseded> {
        match self.replaced_by_request(view, key) {
            Some(superseded) => vec![superseded],
            None => self.replaced_by_statements(view, key),
        }
    }

    /// Returns the living memory that replaced the whole memory `key`: of several one that nothing replaced, and the
    /// latest.
    fn replaced_by_request(&self, view: &View<'_>, key: MemoryKey) -> Option<Superseded> {
        let living = self.later(key).into_iter().filter_map(|later| Some((later, view.get(later)?)));
        let (by, _) = living.max_by_key(|(later, memory)| (memory.newer.is_empty(), memory.time, *later))?;
        self.superseded(key, by, None)
    }

    /// Returns the statements of the memory `key` that have another value than the latest living statement of their
    /// subject.
    fn replaced_by_statements(&self, view: &View<'_>, key: MemoryKey) -> Vec<Superseded> {
        let mut found = Vec::new();
        for (number, own, is_repeated) in self.own_statements(key) {
            let of_subject = self.statements.iter().filter(|(_, (_, other))| other.subject == own.subject);
            let living = of_subject.filter(|(_, (_, other))| view.get(other.memory).is_some());
            let latest = living.max_by_key(|(number, (_, other))| (other.time, **number));
            let Some((later, (_, latest))) = latest else { continue };
            let is_replaced = latest.value != own.value
                && (latest.time, *later) > (own.time, number)
                && latest.memory != key;
            if is_replaced {
                let superseded = self.superseded(key, latest.memory, Some((latest.start, latest.end)));
                found.extend(superseded.map(|superseded| Superseded {
                    statement: (!is_repeated).then_some((own.start, own.end)),
                    words: Some(own.words.clone()),
                    ..superseded
                }));
            }
        }
        found
    }

    /// Returns the statements of the memory that share their subject, each with its key. For a fact that was extracted
    /// from messages, those of the messages that the fact repeats, marked as such.
    fn own_statements(&self, key: MemoryKey) -> Vec<(SubjectKey, &Statement, bool)> {
        let shared = |memory| {
            self.statements_of(memory).into_iter().filter(|(_, statement)| statement.subject.is_some())
        };
        let mut own: Vec<_> = shared(key).map(|(number, statement)| (number, statement, false)).collect();
        if let Some(fact) = self.memories.get(&key).filter(|memory| memory.is_extract()) {
            let sources = fact.references.iter().filter_map(|id| self.key_of(&fact.owner, id));
            for (number, statement) in sources.flat_map(shared) {
                let source = self.memories.get(&statement.memory).map_or("", |source| source.text.as_str());
                let piece = source.get(statement.start..statement.end);
                if piece.is_some_and(|piece| fact.text.contains(piece)) {
                    own.push((number, statement, true));
                }
            }
        }
        own.sort_by_key(|(_, statement, _)| statement.number);
        own
    }

    /// Returns the statements in a memory, in order, each with its key.
    pub fn statements_of(&self, memory: MemoryKey) -> Vec<(SubjectKey, &Statement)> {
        let of = self.statements.iter().filter(|(_, (_, statement))| statement.memory == memory);
        let mut of: Vec<_> = of.map(|(number, (_, statement))| (*number, statement)).collect();
        of.sort_by_key(|(_, statement)| statement.number);
        of
    }

    /// Says that `by` replaced `memory`, in the statement with these bytes, or as a whole.
    fn superseded(
        &self,
        memory: MemoryKey,
        by: MemoryKey,
        by_statement: Option<(usize, usize)>,
    ) -> Option<Superseded> {
        let newer = self.memories.get(&by)?;
        let at = by_statement.map_or(0, |(start, _)| start);
        let mut chunks: Vec<(bool, usize, ChunkKey)> = self
            .chunks_of(by)
            .map(|(key, chunk)| (!(chunk.start..chunk.end).contains(&at), chunk.place, key))
            .collect();
        chunks.sort_unstable();
        Some(Superseded {
            memory,
            statement: None,
            words: None,
            by: newer.id.clone(),
            by_key: by,
            by_time: newer.time,
            by_session: self.name_of(newer),
            by_ordinal: newer.ordinal,
            by_statement,
            by_chunk: chunks.first().map(|(.., key)| *key),
        })
    }

    /// Stores a statement in a living memory, unless it is stored, with the subject that it shares with another one.
    fn add_statement(&mut self, scope: &Scope, new: NewStatement) {
        let is_private = |key: MemoryKey| self.memories.get(&key).map(|memory| memory.is_private);
        // What is private replaces nothing that is shared, which others would notice.
        let of = is_private(new.statement.memory);
        let same_as = new.same_as.filter(|(memory, _)| is_private(*memory) == of);
        let subject = same_as.and_then(|(memory, number)| {
            let mut all = self.statements.iter_mut();
            let is_it = |statement: &Statement| statement.memory == memory && statement.number == number;
            let (key, (_, other)) = all.find(|(_, (_, statement))| is_it(statement))?;
            Some(*other.subject.get_or_insert(*key))
        });
        let NewStatement { statement, .. } = new;
        let memory = self.memories.get(&statement.memory);
        let is_living = memory.is_some_and(|memory| memory.owner == scope.tenant && memory.is_living());
        let is_known =
            self.statements_of(statement.memory).iter().any(|(_, known)| known.number == statement.number);
        if !is_living || is_known {
            return;
        }
        let key = SubjectKey::from_store(self.number());
        self.statements.insert(key, (scope.tenant.clone(), Statement { subject, ..statement }));
        if subject.is_some() {
            let of_subject = self.statements.values().filter(|(_, statement)| statement.subject == subject);
            let memories = of_subject.map(|(_, statement)| statement.memory).collect();
            let sessions = self.sessions_of(&memories);
            self.touch(&scope.tenant, sessions);
        }
    }
}
