//! Everything that can be read, asked about what an author keeps private.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::PRIVATE;
use crate::fixture::{Fixture, HOUR, SPACE, by_meaning, by_words, name, sha};
use crate::threads::{hash, thread};
use tiro_base::error::Error;
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::{MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::*;

/// Names of what is private, which a reader may have learned elsewhere.
#[derive(Clone)]
pub struct Asked {
    /// A private message.
    pub id: MemoryId,
    /// Its key.
    pub key: MemoryKey,
    /// Its chunk.
    pub chunk: ChunkKey,
    /// A summary of a private session.
    pub summary: MemoryId,
    /// A private memory that is purged.
    pub purged: MemoryId,
    /// A commit, which is shared.
    pub commit: MemoryKey,
}

/// What was read, by the name of the method.
pub type Reads = BTreeMap<&'static str, String>;

/// Returns an answer in words: of an error only its kind.
fn shown<T: Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// Returns the answers of all methods that read, each asked in a way that would show what is private.
pub async fn reads(fixture: &Fixture, scope: &Scope, asked: &Asked) -> Reads {
    let mut reads = Reads::new();
    of_memories(fixture, scope, asked, &mut reads).await;
    of_searches(fixture, scope, asked, &mut reads).await;
    of_sessions(fixture, scope, asked, &mut reads).await;
    of_commits(fixture, scope, asked, &mut reads).await;
    of_work(fixture, scope, asked, &mut reads).await;
    reads
}

/// Adds the answer of a method.
macro_rules! add {
    ($reads:ident, $store:ident.$method:ident($($argument:expr),* $(,)?)) => {
        $reads.insert(stringify!($method), shown($store.$method($($argument),*).await));
    };
}

async fn of_memories(fixture: &Fixture, scope: &Scope, asked: &Asked, reads: &mut Reads) {
    let (store, all) = (&fixture.store, Filter::default());
    let (keys, session) = (vec![asked.key], name(PRIVATE));
    add!(reads, store.memory(scope, &asked.id));
    add!(reads, store.memories(scope, keys.clone()));
    add!(reads, store.keys_of(scope, vec![asked.id.clone()]));
    add!(reads, store.list(scope, &all, None, 100));
    add!(reads, store.shown(scope, vec![(asked.key, asked.chunk)]));
    add!(reads, store.texts(scope, keys.clone()));
    add!(reads, store.checked_texts(scope, keys.clone()));
    add!(reads, store.surroundings(scope, &session, 0, 5, 5));
    let before = Before { session: session.clone(), ordinal: 2, most: 5 };
    add!(reads, store.beside(scope, keys.clone(), Some(before)));
    add!(reads, store.came_from_peers(scope, keys.clone()));
    add!(reads, store.references(scope, asked.key));
    add!(reads, store.refers_to(scope, asked.key));
    add!(reads, store.supersedes(scope, asked.key));
    add!(reads, store.pending(scope));
    add!(reads, store.pending_chunks(scope, None, 100));
    add!(reads, store.derived_without_chunk(scope, 100));
    add!(reads, store.cached_embeddings(scope, vec![[7; 32]]));
    add!(reads, store.chunks_of(scope, keys.clone()));
    add!(reads, store.noted(scope, &session));
    add!(reads, store.stashed(scope, keys));
    add!(reads, store.list_stash(scope, &all, None, 100));
    let page = StashPage { filter: all, offset: 0, groups: 10, ids: 10 };
    add!(reads, store.stash_contents(scope, page));
    add!(reads, store.expiring_stash(scope, 100 * HOUR, i64::MIN));
    add!(reads, store.newest(scope));
}

async fn of_searches(fixture: &Fixture, scope: &Scope, asked: &Asked, reads: &mut Reads) {
    let (store, all) = (&fixture.store, Filter::default());
    let near = [1.0, 0.0, 0.0, 0.0];
    let stash = Filter { stash: Some(Stash::Only), ..Filter::default() };
    let topical = Filter { topic: Some("jam".into()), ..Filter::default() };
    let named = CandidateQuery { commits: vec![sha('a')[..10].to_owned()], ..CandidateQuery::default() };
    let weights = Some(Vocabulary { documents: 10, counts: vec![1] });
    for (what, query) in [
        ("candidates by words", by_words(&all, &["quince"], 10)),
        ("candidates by weighed words", CandidateQuery { weights, ..by_words(&all, &["quince"], 10) }),
        ("candidates by meaning", by_meaning(&all, SPACE, &near, 10)),
        ("candidates in the stash", by_meaning(&stash, SPACE, &near, 10)),
        ("candidates of a topic", by_meaning(&topical, SPACE, &near, 10)),
        ("candidates by name", named),
    ] {
        let found = store.candidates(scope, query).await.map(|found| {
            // How common a word is, the readers of a store share.
            let words = shown(found.words.map(|(words, _)| words));
            let cosines: Vec<String> = found.cosines.into_iter().map(shown).collect();
            let (near, named, places) = (shown(found.near), shown(found.named), shown(found.places));
            (words, near, named, cosines, places, found.pending)
        });
        reads.insert(what, shown(found));
    }
    let query = ReplacementQuery {
        commits: vec![asked.commit],
        memories: vec![asked.key],
        with_statements: true,
        texts: vec![asked.key],
        with_holding: true,
    };
    add!(reads, store.replacements(scope, query));
    add!(reads, store.undoable(scope, None));
    let undoable = store.undoable(scope, Some("p1")).await;
    reads.insert("undoable by name", shown(undoable));
    add!(reads, store.operations(scope, 10));
    let reach = Reach::Forgotten;
    add!(reads, store.selected(scope, &Selection::Ids(vec![asked.id.clone()]), reach));
    let of_session = store.selected(scope, &Selection::Session(name(PRIVATE)), reach).await;
    reads.insert("selected by session", shown(of_session));
    add!(reads, store.forgotten_with(scope, vec!["medlar".into()], 10));
    add!(reads, store.forgotten_at(scope, &name(PRIVATE), 2));
    add!(reads, store.is_purged(scope, &asked.purged));
}

async fn of_sessions(fixture: &Fixture, scope: &Scope, asked: &Asked, reads: &mut Reads) {
    let store = &fixture.store;
    let session: SessionId = name(PRIVATE);
    add!(reads, store.sessions(scope, 0, 100));
    add!(reads, store.session_stands(scope, &session));
    add!(reads, store.about_sessions(scope, vec![session.clone(), name("alias")]));
    add!(reads, store.sessions_called(scope, "aut", 10));
    add!(reads, store.session_messages(scope, &session, 0));
    let query = ContextQuery {
        recent: 10,
        whole: 10_000,
        look_back: 10,
        texts: 100,
        importance: 0.0,
        important: 10,
        facts: 10,
    };
    add!(reads, store.context_parts(scope, &session, query));
    let by_alias = store.session_messages(scope, &name("alias"), 0).await;
    reads.insert("session_messages by alias", shown(by_alias));
    add!(reads, store.known_elsewhere(scope, &name("other"), vec!["client-7".into()]));
    add!(reads, store.grown_sessions(scope, 100));
    add!(reads, store.left_sessions(scope, 100 * HOUR));
    add!(reads, store.segments(scope, &session));
    add!(reads, store.summaries(scope, &session, None));
    add!(reads, store.summary(scope, &asked.summary));
    add!(reads, store.conversation(scope, &session));
    add!(reads, store.due_conversations(scope, 100 * HOUR, 10));
    add!(reads, store.quarter_is_retired(scope, "quarter 2024-Q1"));
    add!(reads, store.summary_counts(scope));
    add!(reads, store.summarised_segments(scope));
    let only = Scope { sessions: tiro_base::scope::Sessions::Only(vec![session]), ..scope.clone() };
    let listed = store.list(&only, &Filter::default(), None, 100).await;
    reads.insert("list of the session", shown(listed));
}

async fn of_commits(fixture: &Fixture, scope: &Scope, asked: &Asked, reads: &mut Reads) {
    let store = &fixture.store;
    let session = name(PRIVATE);
    add!(reads, store.commit_named(scope, &sha('a')[..10]));
    add!(reads, store.known_commits(scope));
    add!(reads, store.commits_of(scope, &session));
    add!(reads, store.sessions_behind(scope, vec![asked.commit]));
    add!(reads, store.behind(scope, vec![session.clone()], 100));
    add!(reads, store.linked_commits(scope, &session, None, 100, 10));
    add!(reads, store.commits_without_summary(scope, 10));
    add!(reads, store.commits_before(scope, vec![("main".into(), 1000)]));
    add!(reads, store.commits_made(scope, (0, None), 1000, 10));
    add!(reads, store.links_of(scope, vec![asked.commit]));
    add!(reads, store.replaced_commits(scope));
    add!(reads, store.first_evidence(scope));
    add!(reads, store.file_writes(scope, 0, 100 * HOUR));
    add!(reads, store.writes_of(scope, vec!["a.rs".into()], 100 * HOUR, 10));
    add!(reads, store.commit_calls(scope, 0, 100 * HOUR));
    add!(reads, store.commit_graph(scope));
    add!(reads, store.commit_authors(scope, None, 10));
}

async fn of_work(fixture: &Fixture, scope: &Scope, _: &Asked, reads: &mut Reads) {
    let (store, name) = (&fixture.store, thread(PRIVATE, "sage"));
    add!(reads, store.is_queue_due(scope, 100 * HOUR));
    add!(reads, store.queue_counts(scope));
    add!(reads, store.paces(scope, "local".into(), "model".into(), 10));
    let read = store.thread(scope, &name).await;
    reads.insert("thread", shown(read));
    add!(reads, store.copies(scope, &name, vec!["a.rs".into()]));
    add!(reads, store.turn_by_call(scope, &name, "call 1"));
    add!(reads, store.turns(scope, &name, 10));
    add!(reads, store.threads(scope, None));
    let others = thread(PRIVATE, "other");
    add!(reads, store.other_exchanges(scope, &others, 10));
    add!(reads, store.token_counts(scope, &[hash("a text of quince")]));
    add!(reads, store.import_cursor(scope, "file:/private/7"));
    add!(reads, store.has_import_cursor(scope, "/7"));
    add!(reads, store.cached(scope, [9; 32], 100));
    add!(reads, store.expired(scope, 100 * HOUR, 0));
    add!(reads, store.sizes(scope));
    add!(reads, store.is_empty(scope));
    let stats = store.stats(scope, 100).await;
    reads.insert("stats", shown(stats.map(|stats| Stats { file_bytes: 0, ..stats })));
}
