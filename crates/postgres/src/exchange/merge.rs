//! Merges what changed in another store, in one transaction, with one statement for each table.

use std::collections::{HashMap, HashSet};

use super::ids;
use super::known::{self, At, Known, Lookup};
use super::settle::{Remembered, Settled};
use crate::error::Result;
use crate::forget::{SelectedRow, merged};
use crate::superseded;
use crate::transactions::Transaction;
use crate::write::{Batch, NewMemory, Wanted};
use tiro_base::memory::{Kind, MemoryId, Millis};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange::{self, Verdict};
use tiro_store::{
    ExchangedState, Incoming, IncomingMemory, MergeOutcome, MergeRights, Outcome, PreparedMemory,
};

/// The peer whose changes are merged.
#[derive(Clone, Copy)]
pub(super) struct Peer<'p> {
    /// The peer's name for the reader.
    pub name: Option<&'p AuthorId>,
    pub id: &'p str,
    pub rights: MergeRights,
}

/// A change, and what is done with it.
struct Planned<'m> {
    incoming: &'m Incoming,
    /// The name of its author here.
    author: AuthorId,
    known: Option<Known>,
    verdict: Verdict,
    /// The memory, once it is here.
    row: Option<SelectedRow>,
    /// The memory to store, and its part.
    new: Option<(i64, PreparedMemory)>,
}

/// A merge that is under way.
struct Merging<'m> {
    tx: &'m Transaction,
    scope: &'m Scope,
    peer: Peer<'m>,
    now: Millis,
}

/// Merges changes. Returns what became of each, and whether memories are left to be purged.
pub(super) async fn merge(
    tx: &Transaction,
    scope: &Scope,
    peer: Peer<'_>,
    incoming: &[Incoming],
    now: Millis,
) -> Result<(Vec<MergeOutcome>, bool)> {
    if let Some(name) = peer.name {
        while ids::assign(tx, name, ids::AT_ONCE).await? == ids::AT_ONCE {}
    }
    let merging = Merging { tx, scope, peer, now };
    let (mut outcomes, mut is_purging) = (Vec::with_capacity(incoming.len()), false);
    let mut left: Vec<&Incoming> = incoming.iter().collect();
    while !left.is_empty() {
        // What an earlier change of the same memory or commit did must be known to the later one.
        let mut names = HashSet::new();
        let mut is_known = |name: &'_ str| !names.insert(name.to_owned());
        let same = left
            .iter()
            .position(|each| is_known(each.id.as_str()) || each.commit().is_some_and(&mut is_known));
        let later = left.split_off(same.unwrap_or(left.len()));
        is_purging |= merging.run(&left, &mut outcomes).await?;
        left = later;
    }
    Ok((outcomes, is_purging))
}

impl<'m> Merging<'m> {
    /// Merges changes of different memories. Returns whether memories are left to be purged.
    async fn run(&self, incoming: &[&Incoming], outcomes: &mut Vec<MergeOutcome>) -> Result<bool> {
        let lookup = Lookup::of(self.tx, incoming).await?;
        let mut planned: Vec<Option<Planned<'_>>> =
            incoming.iter().map(|each| self.plan(&lookup, each)).collect();
        outcomes.extend(planned.iter().map(|planned| match planned {
            Some(planned) => planned.verdict.outcome,
            None => MergeOutcome::Refused,
        }));
        let is_merged = |planned: &Planned<'_>| planned.verdict.outcome != MergeOutcome::Conflict;
        let mut planned: Vec<Planned<'_>> =
            planned.drain(..).flatten().filter(|planned| is_merged(planned)).collect();
        let local = self.local(&planned).await?;
        self.store(&lookup, &local, &mut planned).await?;
        self.complete(&local, &planned).await?;
        let (settled, remembered) = self.states(&lookup, &planned).await?;
        remembered.insert(self.tx).await?;
        if settled.seq.is_empty() {
            return Ok(false);
        }
        settled.mark(self.tx).await?;
        let states: HashMap<(i64, i64), ExchangedState> = settled
            .owner
            .iter()
            .copied()
            .zip(settled.seq.iter().copied())
            .zip(settled.state.iter().copied())
            .collect();
        let is_purging = merged::settle(self.tx, self.scope, &states, self.now).await?;
        settled.number(self.tx).await?;
        Ok(is_purging)
    }

    /// Decides what is done with a change. Returns `None` if the change is of something private of others.
    fn plan<'i>(&self, lookup: &Lookup, incoming: &'i Incoming) -> Option<Planned<'i>> {
        let author = match self.peer.name {
            Some(name) => exchange::kept_author(name, &self.scope.reader, &incoming.author),
            None => incoming.author.clone(),
        };
        let known = lookup.find(self.tx, self.scope, (incoming, &author), self.peer.id);
        let is_own = match &known {
            Some(known) => known.is_own,
            None => exchange::is_own(self.scope, &author, incoming.visibility)?,
        };
        let state = known.as_ref().map(|known| known.state);
        let has_content = incoming.content.is_some();
        let verdict = exchange::verdict(state, &incoming.state, has_content, is_own, self.peer.rights);
        let row = match &known {
            Some(Known { at: At::Here(row), .. }) => Some(row.clone()),
            _ => None,
        };
        Some(Planned { incoming, author, known, verdict, row, new: None })
    }

    /// Returns the ids that memories have here to which the contents refer, by the ids under which they travel.
    async fn local(&self, planned: &[Planned<'_>]) -> Result<HashMap<MemoryId, MemoryId>> {
        if self.peer.name.is_none() {
            return Ok(HashMap::new());
        }
        let contents = planned.iter().filter_map(|planned| planned.incoming.content.as_deref());
        let ids = contents.flat_map(|content| {
            let draft = &content.memory.draft;
            draft.references.iter().chain(&draft.supersedes).chain(&content.superseded_by)
        });
        let ids: Vec<&str> = ids.map(MemoryId::as_str).collect();
        ids::local(self.tx, &ids).await
    }

    /// Stores the memories that are not here.
    async fn store(
        &self,
        lookup: &Lookup,
        local: &HashMap<MemoryId, MemoryId>,
        planned: &mut [Planned<'_>],
    ) -> Result<()> {
        let (mut owners, mut absent) = (Vec::new(), Vec::new());
        for each in planned.iter_mut().filter(|each| each.verdict.is_stored && each.row.is_none()) {
            if let Some(Known { at: At::Absent(owner, id), .. }) = &each.known {
                owners.push(*owner);
                absent.push(id.clone());
            }
            let Some(content) = each.incoming.content.as_deref() else { continue };
            let (owner, mut memory) = (self.part(each).await?, self.prepared(each, content, local));
            memory.id = lookup.free(owner, each.incoming, &each.author);
            each.new = Some((owner, memory));
        }
        self.tx
            .execute(
                "DELETE FROM absent a USING unnest($1::bigint[], $2::text[]) AS u (owner, id)
                 WHERE a.owner = u.owner AND a.id = u.id AND NOT a.is_purged",
                &[&owners, &absent],
            )
            .await?;
        let new =
            || planned.iter().filter_map(|each| each.new.as_ref().map(|(owner, new)| (each, *owner, new)));
        let (owners, ids): (Vec<i64>, Vec<String>) =
            new().map(|(_, owner, memory)| (owner, memory.id.as_str().to_owned())).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let memories = new().map(|(_, _, memory)| memory);
        let mut batch = Batch::open(self.tx, self.scope, memories, self.now).await?;
        let mut stored = HashSet::new();
        for (each, owner, memory) in new() {
            let ordinal = each.incoming.content.as_ref().and_then(|content| content.ordinal);
            let place = ordinal.map_or(Wanted::Next, Wanted::At);
            // The memory comes although its sources may be forgotten or missing here.
            let new =
                NewMemory { memory, place, is_forgotten: true, is_marked: each.incoming.state.is_marked };
            if batch.add(self.tx, self.scope, new).await? == Outcome::Stored {
                stored.insert((owner, memory.id.clone()));
            }
        }
        batch.close(self.tx).await?;
        let rows = known::rows(self.tx, &owners, &ids).await?;
        let (mut owners, mut seqs, mut travelling) = (Vec::new(), Vec::new(), Vec::new());
        for each in planned.iter_mut() {
            let Some((owner, memory)) = &each.new else { continue };
            let place = (*owner, memory.id.clone());
            each.row = rows.get(&place).filter(|_| stored.contains(&place)).cloned();
            let is_other = self.is_renamed(each) || memory.id != each.incoming.id;
            if let Some(row) = each.row.as_ref().filter(|_| is_other) {
                owners.push(row.owner);
                seqs.push(row.seq);
                travelling.push(each.incoming.id.as_str().to_owned());
            }
        }
        ids::set(self.tx, &owners, &seqs, &travelling).await
    }

    /// Returns the part in which a new memory, or the state of one that is not here, is stored.
    async fn part(&self, planned: &Planned<'_>) -> Result<i64> {
        match planned.incoming.visibility {
            Visibility::Private => self.tx.private_part(self.scope, planned.author.as_str()).await,
            Visibility::Project | Visibility::Tenant => Ok(self.tx.seen.shared),
        }
    }

    /// Returns the memory as it is stored here, except for its id.
    fn prepared(
        &self,
        planned: &Planned<'_>,
        content: &IncomingMemory,
        local: &HashMap<MemoryId, MemoryId>,
    ) -> PreparedMemory {
        let mut memory = content.memory.clone();
        let draft = &mut memory.draft;
        draft.author = Some(planned.author.clone());
        draft.importance = planned.incoming.state.importance;
        draft.visibility = Some(match planned.incoming.visibility {
            Visibility::Private => Visibility::Private,
            Visibility::Project | Visibility::Tenant => self.scope.project.shared(),
        });
        if let (Some(name), true) = (self.peer.name, planned.author == self.scope.reader) {
            draft.session = draft.session.take().map(|session| exchange::kept_session(name, &session));
        }
        draft.references = draft.references.iter().map(|id| local.get(id).unwrap_or(id).clone()).collect();
        draft.supersedes = Vec::new();
        memory
    }

    /// Returns whether the memory has another id than in its author's store.
    fn is_renamed(&self, planned: &Planned<'_>) -> bool {
        let is_own = planned.author == self.scope.reader;
        self.peer.name.is_some() && is_own && planned.incoming.kind != Kind::Commit
    }

    /// Adds what memories may lack of the contents that came: what they replace.
    async fn complete(&self, local: &HashMap<MemoryId, MemoryId>, planned: &[Planned<'_>]) -> Result<()> {
        // What somebody else says of a memory that is here changes nothing about it.
        let is_by_author =
            |each: &&Planned<'_>| each.known.as_ref().is_none_or(|known| known.state.is_by_author);
        let here = planned.iter().filter(is_by_author);
        let here = here.filter_map(|each| Some((each.row.as_ref()?, each.incoming.content.as_deref()?)));
        let here: Vec<(&SelectedRow, &IncomingMemory)> = here.collect();
        let local = |id: &MemoryId| local.get(id).unwrap_or(id).as_str().to_owned();
        let ids: Vec<String> = here
            .iter()
            .flat_map(|(_, content)| content.memory.draft.supersedes.iter().chain(&content.superseded_by))
            .map(local)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        // The private part of an author may have been made only now.
        let mut parts = self.tx.seen.parts.clone();
        parts.extend(here.iter().map(|(row, _)| row.owner));
        // Later rows replace earlier ones in the map: a private memory comes before a shared one.
        let sql = "SELECT id, owner, seq FROM memories WHERE owner = ANY ($1) AND id = ANY ($2) ORDER BY owner <> $3";
        let rows = self.tx.rows(sql, &[&parts, &ids, &self.tx.seen.shared]).await?;
        let rows: HashMap<String, (i64, i64)> =
            rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        for (row, content) in here {
            let own = (row.owner, row.seq);
            for older in content.memory.draft.supersedes.iter().filter_map(|id| rows.get(&local(id))) {
                superseded::link(self.tx, *older, own).await?;
            }
            for newer in content.superseded_by.iter().filter_map(|id| rows.get(&local(id))) {
                superseded::link(self.tx, own, *newer).await?;
            }
        }
        Ok(())
    }

    /// Returns the states to write: of memories that are here, and of others.
    async fn states(&self, lookup: &Lookup, planned: &[Planned<'_>]) -> Result<(Settled, Remembered)> {
        let (mut settled, mut remembered) = (Settled::default(), Remembered::default());
        for each in planned {
            let Some(state) = each.verdict.state else { continue };
            let by = Some(self.peer.id.to_owned()).filter(|_| each.verdict.is_of_peer);
            if let Some(row) = &each.row {
                settled.owner.push(row.owner);
                settled.seq.push(row.seq);
                settled.state.push(state);
                settled.by.push(by);
                continue;
            }
            let (owner, id) = match &each.known {
                Some(Known { at: At::Absent(owner, id), .. }) => (*owner, id.clone()),
                _ => {
                    let owner = self.part(each).await?;
                    (owner, lookup.free(owner, each.incoming, &each.author).as_str().to_owned())
                }
            };
            let travelling = each.incoming.id.as_str();
            let is_other = self.is_renamed(each) || travelling != id;
            remembered.travelling.push(Some(travelling.to_owned()).filter(|_| is_other));
            remembered.owner.push(owner);
            remembered.id.push(id);
            remembered.kind.push(each.incoming.kind);
            remembered.author.push(each.author.as_str().to_owned());
            remembered.state.push(state);
            remembered.by.push(by);
        }
        Ok((settled, remembered))
    }
}
