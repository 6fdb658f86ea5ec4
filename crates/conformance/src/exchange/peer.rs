//! A peer of a store in promises: what it gets, and what it sends.

use crate::fixture::Answered;
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Work};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange::Stamp;
use tiro_store::*;

/// The time of changes that a peer makes in promises: later than what a store's clock says of its own changes.
pub const LATER: i64 = 4_000_000_000_000;

/// Returns what a peer wants: memories of every kind that aren't private, also those that it sent.
pub fn everything() -> WantedChanges {
    WantedChanges { kinds: Kind::ALL.to_vec(), peer: None, with_private: false }
}

/// Returns what the peer wants, except what it sent.
pub fn for_peer(peer: &str) -> WantedChanges {
    WantedChanges { peer: Some(peer.to_owned()), ..everything() }
}

/// Returns all changes of a store, in pages of up to 100.
pub async fn all(
    store: &dyn Store,
    scope: &Scope,
    name: Option<&AuthorId>,
    wanted: &WantedChanges,
) -> Vec<Change> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = store.changes(scope, name, wanted, after, 100).await.answered();
        all.extend(page.changes);
        after = page.next;
        if page.is_last {
            return all;
        }
    }
}

/// Returns a change that a peer sends: a memory of `author` with a state.
pub fn incoming(mut memory: PreparedMemory, author: &AuthorId, state: ExchangedState) -> Incoming {
    memory.draft.identity = Identity::Known(memory.id.clone());
    let content = IncomingMemory { ordinal: None, superseded_by: Vec::new(), memory };
    Incoming { content: Some(Box::new(content.clone())), ..alone(&content.memory, author, state) }
}

/// Returns a change that a peer sends without the content of the memory.
pub fn alone(memory: &PreparedMemory, author: &AuthorId, state: ExchangedState) -> Incoming {
    Incoming {
        id: memory.id.clone(),
        kind: memory.draft.kind,
        author: author.clone(),
        visibility: Visibility::Project,
        state,
        content: None,
    }
}

/// Returns a state in which the memory is forgotten at a time.
pub fn forgotten_at(time: i64) -> ExchangedState {
    let forgotten_at = Stamp::NEVER.next(time);
    ExchangedState { is_forgotten: true, forgotten_at, ..ExchangedState::default() }
}

/// Returns a state in which the memory is marked at a time.
pub fn marked_at(time: i64) -> ExchangedState {
    let marked_at = Stamp::NEVER.next(time);
    ExchangedState { is_marked: true, marked_at, ..ExchangedState::default() }
}

/// Returns the change that another store gave, as it is merged.
pub fn taken(change: Change) -> Incoming {
    let Change { id, kind, author, visibility, state, content, .. } = change;
    let content = content.map(|content| Box::new(prepared(&id, *content)));
    Incoming { id, kind, author, visibility, state, content }
}

fn prepared(id: &MemoryId, content: ExchangedMemory) -> IncomingMemory {
    let ExchangedMemory { memory, references, supersedes, superseded_by, lead, files, commit, chunks } =
        content;
    let piece = |chunk: ExchangedChunk| PreparedChunk {
        start: chunk.start,
        end: chunk.end,
        tokens: 1,
        embedding: chunk.embedding,
    };
    let draft = Draft {
        lead: lead.and_then(|lead| memory.text.get(..lead)).map(str::to_owned),
        indexed: memory.indexed,
        session: memory.session,
        role: memory.role,
        speaker: memory.speaker,
        title: memory.title,
        topic: memory.topic,
        source_id: memory.source_id,
        path: memory.path,
        files,
        branch: memory.branch,
        head_sha: memory.head_sha,
        references,
        supersedes,
        identity: Identity::Known(id.clone()),
        commit,
        work: Work::default(),
        ..Draft::new(memory.kind, memory.provenance, memory.text, memory.time)
    };
    let chunks = chunks.into_iter().map(piece).collect();
    let prepared = PreparedMemory { id: id.clone(), draft, tokens: memory.tokens, chunks };
    IncomingMemory { memory: prepared, ordinal: memory.ordinal, superseded_by }
}
