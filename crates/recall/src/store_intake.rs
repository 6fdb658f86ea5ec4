//! Implements the interface through which the side with a user's files uses a store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::remember;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::{ProjectId, Scope, SessionId, Sessions};
use tiro_intake::{Intake, Prompt, ReadIntake};
use tiro_store::clock::Clock;
use tiro_store::{
    AuthorRow, CallRow, ChunkRange, CommitLinks, CommitRow, GraphRow, Origin, PreparedMemory, ReadStore,
    Receipt, Renamed, SessionRow, Sizes, StashCause, Stashing, Store, WriteRow,
};

/// At most this many messages after a compaction are looked up in the store, until one is found. Arbitrary: usually the
/// first one is found, because only messages that were left out are missing.
const LOOKED_FOR: usize = 20;

/// A prompt without a session is compared with the messages of at most this many sessions. Arbitrary.
const COMPARED: usize = 20_000;

/// The part of a store that a scope may use. If the store can only be read, this type implements only [`ReadIntake`].
pub struct StoreIntake<S: ?Sized> {
    store: Arc<S>,
    scope: Scope,
    clock: Arc<Clock>,
}

impl<S: ?Sized> StoreIntake<S> {
    /// Returns the part of `store` that `scope` may use. Data is stored with the time of `clock`.
    pub fn new(store: Arc<S>, scope: Scope, clock: Arc<Clock>) -> StoreIntake<S> {
        StoreIntake { store, scope, clock }
    }
}

impl StoreIntake<dyn Store> {
    fn store(&self) -> (&dyn Store, &Scope) {
        (self.store.as_ref(), &self.scope)
    }

    /// Returns whether one of `sessions` contains the prompt.
    async fn has_prompt(&self, sessions: &[SessionRow], prompt: &Prompt) -> Result<bool> {
        let (store, scope) = self.store();
        let (from, until) = prompt.between;
        let is_near = |first: Millis, last: Millis| first <= until && from <= last;
        let others = sessions.iter().filter(|row| row.id.as_str() != prompt.session);
        for row in others.filter(|row| is_near(row.first, row.last)) {
            let messages = store.session_messages(scope, &row.id, 0).await?;
            let near =
                messages.into_iter().filter(|it| it.role == Some(Role::User) && is_near(it.time, it.time));
            let texts = store.texts(scope, near.map(|it| it.key).collect()).await?;
            if texts.iter().any(|(_, text)| text.trim() == prompt.text.trim()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl<S: ReadStore + ?Sized> ReadIntake for StoreIntake<S> {
    fn project(&self) -> &ProjectId {
        &self.scope.project
    }

    async fn cursor(&self, source: &str) -> Result<Option<String>> {
        self.store.import_cursor(&self.scope, source).await
    }

    async fn known_commits(&self) -> Result<Vec<String>> {
        self.store.known_commits(&self.scope).await
    }

    async fn commits_made(&self, from: Millis, until: Millis, limit: usize) -> Result<Vec<CommitRow>> {
        self.store.commits_made(&self.scope, (from, None), until, limit).await
    }

    async fn commit_graph(&self) -> Result<Vec<GraphRow>> {
        self.store.commit_graph(&self.scope).await
    }
}

#[async_trait]
impl Intake for StoreIntake<dyn Store> {
    async fn await_turn(&self, patience: Duration) -> Result<()> {
        let (store, scope) = self.store();
        store.await_turn(scope, patience).await
    }

    async fn remember(&self, memories: Vec<PreparedMemory>) -> Result<Receipt> {
        let (store, scope) = self.store();
        let (receipt, _) = remember::save(store, scope, memories, self.clock.now(), &mut |_| {}).await?;
        Ok(receipt)
    }

    async fn describe_session(&self, session: &SessionId, origin: Origin) -> Result<()> {
        let (store, scope) = self.store();
        store.describe_session(scope, session, origin).await
    }

    async fn keep_cursor(&self, source: &str, cursor: &str) -> Result<()> {
        let (store, scope) = self.store();
        store.set_import_cursor(scope, source, cursor, self.clock.now()).await
    }

    async fn has_cursor(&self, end: &str) -> Result<bool> {
        let (store, scope) = self.store();
        store.has_import_cursor(scope, end).await
    }

    async fn stash_compacted(&self, session: &SessionId, rest: &[String]) -> Result<()> {
        let (store, scope) = self.store();
        let scope = Scope { sessions: Sessions::Only(vec![session.clone()]), ..scope.clone() };
        let mut first_after = None;
        for id in rest.iter().take(LOOKED_FOR) {
            let filter = Filter { source_id: Some(id.clone()), ..Filter::default() };
            let found = store.list(&scope, &filter, None, 1).await?;
            first_after = found.first().and_then(|memory| memory.ordinal);
            if first_after.is_some() {
                break;
            }
        }
        let rows = store.session_messages(&scope, session, 0).await?;
        let before = rows.into_iter().filter(|row| first_after.is_none_or(|after| row.ordinal < after));
        let named: Vec<MemoryId> = before.map(|row| row.id).collect();
        if named.is_empty() {
            return Ok(());
        }
        let stashing = Stashing {
            named,
            given: Vec::new(),
            cause: StashCause::Compaction,
            expires_at: None,
            is_protected: None,
            topic: None,
        };
        store.stash(&scope, stashing, self.clock.now()).await.map(drop)
    }

    async fn known_elsewhere(&self, session: &SessionId, ids: Vec<String>) -> Result<HashSet<String>> {
        let (store, scope) = self.store();
        store.known_elsewhere(scope, session, ids).await
    }

    async fn messages_of(&self, session: &SessionId) -> Result<Vec<MemoryId>> {
        let (store, scope) = self.store();
        let rows = store.session_messages(scope, session, 0).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    async fn texts_of(&self, session: &SessionId) -> Result<Vec<(MemoryId, Option<Role>, String)>> {
        let (store, scope) = self.store();
        let rows = store.session_messages(scope, session, 0).await?;
        let keys = rows.iter().map(|row| row.key).collect();
        let mut texts: HashMap<MemoryKey, String> = store.texts(scope, keys).await?.into_iter().collect();
        // A message may have been forgotten since the rows were read.
        Ok(rows.into_iter().filter_map(|row| Some((row.id, row.role, texts.remove(&row.key)?))).collect())
    }

    async fn known_prompts(&self, prompts: Vec<Prompt>) -> Result<Vec<bool>> {
        let (store, scope) = self.store();
        let sessions = store.sessions(scope, 0, COMPARED).await?;
        let mut known = Vec::with_capacity(prompts.len());
        for prompt in &prompts {
            known.push(self.has_prompt(&sessions, prompt).await?);
        }
        Ok(known)
    }

    async fn commits_before(&self, places: Vec<(String, Millis)>) -> Result<Vec<Option<String>>> {
        let (store, scope) = self.store();
        store.commits_before(scope, places).await
    }

    async fn time_of_commit(&self, sha: &str) -> Result<Option<Millis>> {
        let (store, scope) = self.store();
        let Some((key, _)) = store.commit_named(scope, sha).await? else { return Ok(None) };
        Ok(store.memories(scope, vec![key]).await?.first().map(|memory| memory.time))
    }

    async fn commit_authors(&self, before: Option<MemoryKey>, limit: usize) -> Result<Vec<AuthorRow>> {
        let (store, scope) = self.store();
        store.commit_authors(scope, before, limit).await
    }

    async fn memories(&self, keys: Vec<MemoryKey>) -> Result<Vec<(Memory, Vec<ChunkRange>)>> {
        let (store, scope) = self.store();
        let memories = store.memories(scope, keys.clone()).await?;
        let chunks = store.chunks_of(scope, keys).await?;
        let own = |memory: Memory| {
            let own = chunks.iter().filter(|(key, _)| *key == memory.key).map(|(_, chunk)| *chunk).collect();
            (memory, own)
        };
        Ok(memories.into_iter().map(own).collect())
    }

    async fn rename_authors(&self, renamed: Vec<Renamed>) -> Result<()> {
        let (store, scope) = self.store();
        store.rename_authors(scope, renamed).await
    }

    async fn first_evidence(&self) -> Result<Option<Millis>> {
        let (store, scope) = self.store();
        store.first_evidence(scope).await
    }

    async fn work_between(&self, from: Millis, until: Millis) -> Result<(Vec<WriteRow>, Vec<CallRow>)> {
        let (store, scope) = self.store();
        let writes = store.file_writes(scope, from, until).await?;
        Ok((writes, store.commit_calls(scope, from, until).await?))
    }

    async fn links_of(&self, commits: Vec<MemoryKey>) -> Result<Vec<CommitLinks>> {
        let (store, scope) = self.store();
        store.links_of(scope, commits).await
    }

    async fn link_commits(&self, links: Vec<CommitLinks>) -> Result<()> {
        let (store, scope) = self.store();
        store.link_commits(scope, links).await
    }

    async fn replaced_commits(&self) -> Result<Vec<(MemoryKey, String)>> {
        let (store, scope) = self.store();
        store.replaced_commits(scope).await
    }

    async fn replace_commits(
        &self,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()> {
        let (store, scope) = self.store();
        store.replace_commits(scope, commits, among, replaced).await
    }

    async fn add_to_commit_graph(&self, part: GraphRow) -> Result<bool> {
        let (store, scope) = self.store();
        store.add_to_commit_graph(scope, part).await
    }

    async fn sizes(&self) -> Result<Sizes> {
        let (store, scope) = self.store();
        store.sizes(scope).await
    }
}
