//! Merges what changed in another store, in one transaction.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Connection, params};

use super::ids;
use super::known::{self, At, Known};
use super::settled::Settled;
use crate::error::Result;
use crate::foreign::WIDEST_GAP;
use crate::forget::merged;
use crate::read::parts::{self, Place};
use crate::superseded;
use crate::write::one::insert_one;
use crate::write::session::OpenSession;
use tiro_base::memory::{Kind, MemoryId, Millis};
use tiro_base::scope::{AuthorId, Scope, SessionId, TenantId, Visibility};
use tiro_store::decide::exchange::{self, Verdict};
use tiro_store::{ExchangedState, Incoming, IncomingMemory, MergeOutcome, MergeRights, Outcome};

/// The peer whose changes are merged.
#[derive(Clone, Copy)]
pub(super) struct Peer<'p> {
    /// The peer's name for the reader.
    pub name: Option<&'p AuthorId>,
    pub id: &'p str,
    pub rights: MergeRights,
}

/// A merge that is under way.
struct Merging<'m> {
    connection: &'m Connection,
    scope: &'m Scope,
    peer: Peer<'m>,
    sessions: BTreeMap<(TenantId, SessionId), OpenSession>,
    settled: Settled,
    now: Millis,
}

/// Merges changes. Returns what became of each, and whether memories are left to be purged.
pub(super) fn merge(
    connection: &Connection,
    scope: &Scope,
    peer: Peer<'_>,
    incoming: &[Incoming],
    now: Millis,
) -> Result<(Vec<MergeOutcome>, bool)> {
    if let Some(name) = peer.name {
        while ids::assign(connection, scope, name, ids::AT_ONCE)? == ids::AT_ONCE {}
    }
    let (sessions, settled) = (BTreeMap::new(), Settled::default());
    let mut merging = Merging { connection, scope, peer, sessions, settled, now };
    let mut outcomes = Vec::with_capacity(incoming.len());
    for each in incoming {
        outcomes.push(merging.one(each)?);
    }
    for session in merging.sessions.values() {
        session.close(connection)?;
    }
    let states: Vec<(i64, ExchangedState)> =
        merging.settled.0.iter().map(|(seq, state, _)| (*seq, *state)).collect();
    let is_purging = merged::settle(connection, scope, &states, now)?;
    merging.number()?;
    Ok((outcomes, is_purging))
}

impl Merging<'_> {
    fn one(&mut self, incoming: &Incoming) -> Result<MergeOutcome> {
        let author = match self.peer.name {
            Some(name) => exchange::kept_author(name, &self.scope.reader, &incoming.author),
            None => incoming.author.clone(),
        };
        let known = (incoming, &author);
        let known = known::find(self.connection, self.scope, known, self.peer.id, &self.settled)?;
        let is_own = match &known {
            Some(known) => Some(known.is_own),
            None => exchange::is_own(self.scope, &author, incoming.visibility),
        };
        let Some(is_own) = is_own else { return Ok(MergeOutcome::Refused) };
        let known_state = known.as_ref().map(|known| known.state);
        let has_content = incoming.content.is_some();
        let verdict = exchange::verdict(known_state, &incoming.state, has_content, is_own, self.peer.rights);
        let Verdict { outcome, state, is_stored, is_of_peer } = verdict;
        if outcome == MergeOutcome::Conflict {
            return Ok(outcome);
        }
        let mut row = match &known {
            Some(Known { at: At::Here(seq), .. }) => Some(*seq),
            _ => None,
        };
        if let Some(content) = incoming.content.as_deref() {
            match row {
                Some(row) if known_state.is_some_and(|known| known.is_by_author) => {
                    self.complete(row, content)?
                }
                Some(_) => {}
                None if is_stored => row = self.store(incoming, content, &author, known.as_ref())?,
                None => {}
            }
        }
        match (state, row) {
            (Some(state), Some(row)) => {
                self.mark(row, &state)?;
                self.settled.set(row, state, is_of_peer);
            }
            (Some(state), None) => self.remember(incoming, &author, known.as_ref(), &state, is_of_peer)?,
            (None, _) => {}
        }
        Ok(outcome)
    }

    /// Stores a memory that is not here. Returns its row.
    fn store(
        &mut self,
        incoming: &Incoming,
        content: &IncomingMemory,
        author: &AuthorId,
        known: Option<&Known>,
    ) -> Result<Option<i64>> {
        let (connection, scope) = (self.connection, self.scope);
        if let Some(Known { at: At::Absent(owner, id), .. }) = known {
            connection
                .prepare_cached("DELETE FROM absent WHERE owner = ?1 AND id = ?2 AND NOT is_purged")?
                .execute((owner, id))?;
        }
        let is_own = *author == scope.reader;
        let mut memory = content.memory.clone();
        let draft = &mut memory.draft;
        draft.author = Some(author.clone());
        draft.importance = incoming.state.importance;
        draft.visibility = Some(match incoming.visibility {
            Visibility::Private => Visibility::Private,
            Visibility::Project | Visibility::Tenant => scope.project.shared(),
        });
        if let Some(name) = self.peer.name {
            let session = draft.session.take();
            draft.session = session.map(|it| if is_own { exchange::kept_session(name, &it) } else { it });
            draft.references = self.local(&draft.references)?;
        }
        draft.supersedes = Vec::new();
        let Place { part, session } = parts::of_draft(connection, scope, draft)?;
        let owner = part.tenant.as_str();
        memory.id = ids::free(connection, owner, (incoming, author))?;
        let session = match session {
            None => None,
            Some(id) => {
                let session = match self.sessions.entry((part.tenant.clone(), id.clone())) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(OpenSession::open(connection, &part, &id)?),
                };
                if let Some(ordinal) = content.ordinal {
                    session.place(connection, ordinal, WIDEST_GAP)?;
                }
                Some(session)
            }
        };
        if insert_one(connection, &part, &memory, session, self.now)? != Outcome::Stored {
            return Ok(None);
        }
        let Some(row) = superseded::row_of(connection, owner, &memory.id)? else { return Ok(None) };
        let is_renamed = self.peer.name.is_some() && is_own && incoming.kind != Kind::Commit;
        if is_renamed || memory.id != incoming.id {
            connection
                .prepare_cached("UPDATE exchange SET exchange_id = ?2 WHERE memory = ?1")?
                .execute((row, incoming.id.as_str()))?;
        }
        self.complete(row, content)?;
        Ok(Some(row))
    }

    /// Adds what a memory in a row may lack of the content that came: what it replaces.
    fn complete(&self, row: i64, content: &IncomingMemory) -> Result<()> {
        let connection = self.connection;
        // If the other memory isn't here yet, the link is added when that memory arrives.
        for older in self.local(&content.memory.draft.supersedes)? {
            if let Some((older, _)) = parts::row_of(connection, self.scope, older.as_str())? {
                superseded::link(connection, older, row)?;
            }
        }
        for newer in self.local(&content.superseded_by)? {
            if let Some((newer, _)) = parts::row_of(connection, self.scope, newer.as_str())? {
                superseded::link(connection, row, newer)?;
            }
        }
        Ok(())
    }

    /// Returns the ids that memories have here which travel under `ids`.
    fn local(&self, ids: &[MemoryId]) -> Result<Vec<MemoryId>> {
        ids.iter().map(|id| ids::local(self.connection, self.scope, id)).collect()
    }

    /// Sets the mark and the importance of the memory in a row.
    fn mark(&self, row: i64, state: &ExchangedState) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE memories SET marked = ?2, importance = ?3
                 WHERE seq = ?1 AND (marked <> ?2 OR importance IS NOT ?3)",
            )?
            .execute(params![row, state.is_marked, state.importance])?;
        Ok(())
    }

    /// Stores the state of a memory that is not here.
    fn remember(
        &self,
        incoming: &Incoming,
        author: &AuthorId,
        known: Option<&Known>,
        state: &ExchangedState,
        is_of_peer: bool,
    ) -> Result<()> {
        let (connection, scope) = (self.connection, self.scope);
        let (owner, id) = match known {
            Some(Known { at: At::Absent(owner, id), .. }) => (owner.clone(), id.clone()),
            _ => {
                let [shared, mine] = parts::both(scope);
                let owner = if incoming.visibility == Visibility::Private { mine } else { shared };
                let id = ids::free(connection, &owner, (incoming, author))?;
                (owner, id.as_str().to_owned())
            }
        };
        let is_renamed = self.peer.name.is_some() && *author == scope.reader && incoming.kind != Kind::Commit;
        let travelling = Some(incoming.id.as_str()).filter(|travelling| is_renamed || *travelling != id);
        let tenant = parts::names(scope.tenant.as_str()).0;
        let author = Some(author.as_str()).filter(|author| *author != tenant);
        let number = next(connection)?;
        connection
            .prepare_cached(
                "INSERT INTO absent (owner, id, kind, author, changed, changed_by, is_marked, importance, marked_at,
                     is_forgotten, forgotten_at, is_purged, exchange_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                 ON CONFLICT DO UPDATE SET changed = ?5, changed_by = ?6, is_marked = ?7, importance = ?8,
                     marked_at = ?9, is_forgotten = ?10, forgotten_at = ?11, is_purged = ?12",
            )?
            .execute(params![
                owner,
                id,
                incoming.kind.as_str(),
                author,
                number,
                Some(self.peer.id).filter(|_| is_of_peer),
                state.is_marked,
                state.importance,
                state.marked_at.number(),
                state.is_forgotten,
                state.forgotten_at.number(),
                state.is_purged,
                travelling,
            ])?;
        if state.is_purged {
            connection
                .prepare_cached("INSERT OR IGNORE INTO purged (owner, id) VALUES (?1, ?2)")?
                .execute((owner, id))?;
        }
        Ok(())
    }

    /// Gives the settled states their stamps and numbers, in order. If a memory is forgotten only because it is derived
    /// from another one, the peer has to learn of it.
    fn number(&self) -> Result<()> {
        for (row, state, is_of_peer) in &self.settled.0 {
            let number = next(self.connection)?;
            let by = Some(self.peer.id).filter(|_| *is_of_peer);
            if state.is_purged {
                self.connection
                    .prepare_cached(
                        "UPDATE absent SET changed = ?2, changed_by = ?3, marked_at = ?4
                         WHERE (owner, id) IN (SELECT owner, id FROM memories WHERE seq = ?1)",
                    )?
                    .execute(params![row, number, by, state.marked_at.number()])?;
                continue;
            }
            self.connection
                .prepare_cached(
                    "UPDATE exchange SET changed = ?2, marked_at = ?4,
                         changed_by = iif((m.tombstoned_at IS NOT NULL) = ?6, ?3, NULL),
                         forgotten_at = iif((m.tombstoned_at IS NOT NULL) = ?6, ?5, forgotten_at)
                     FROM memories m WHERE m.seq = ?1 AND exchange.memory = ?1",
                )?
                .execute(params![
                    row,
                    number,
                    by,
                    state.marked_at.number(),
                    state.forgotten_at.number(),
                    state.is_forgotten
                ])?;
        }
        Ok(())
    }
}

/// Returns the number of a new change.
fn next(connection: &Connection) -> Result<i64> {
    Ok(connection
        .prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'changed' RETURNING value")?
        .query_row([], |row| row.get(0))?)
}
