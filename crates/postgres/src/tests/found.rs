//! A search by words finds what SQLite's engine finds, in the same order and with the same scores.

use crate::tests::engine::Postgres;
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Provenance, Role};
use tiro_base::scope::{Scope, SessionId, TenantId};
use tiro_conformance::fixture::{Answered, prepared};
use tiro_conformance::subject::{OWNER, project};
use tiro_sqlite::SqliteStore;
use tiro_store::{CandidateQuery, Flavour, PreparedMemory, ReadMemories, Search, Vocabulary, WriteMemories};
use tiro_text::words::query;

/// The words of the texts, the common ones first.
const WORDS: [&str; 40] = [
    "the",
    "cache",
    "server",
    "answers",
    "request",
    "memory",
    "error",
    "color",
    "set",
    "file",
    "lantern",
    "maple",
    "quince",
    "release",
    "token",
    "parser",
    "walks",
    "running",
    "NO_COLOR",
    "std::env::vars",
    "HttpClient",
    "no",
    "Sicherung",
    "Sicherungen",
    "wurde",
    "der",
    "Datenbank",
    "schnell",
    "retry-after",
    "8MB",
    "缓存",
    "缓存命中",
    "backups",
    "backup",
    "encoded",
    "up-to-date",
    "ship",
    "plum",
    "glass",
    "oak",
];

const QUESTIONS: [&str; 12] = [
    "where does the cache answer",
    "how is NO_COLOR set",
    "std::env::vars in the parser",
    "Wie schnell ist die Sicherung der Datenbank?",
    "quince",
    "backup",
    "缓存命中",
    "retry-after of the HttpClient",
    "which release is up-to-date with 8MB",
    "maple lantern plum glass oak ship",
    "running server walks",
    "8 May 2023",
];

/// Returns `count` memories whose texts are always the same.
fn memories(count: u64) -> Vec<PreparedMemory> {
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let memory = |number: u64| {
        let words = 3 + next(30);
        // Small numbers are more likely, so some words are common.
        let word = |_| WORDS[(next(40).min(next(40))) as usize];
        let text = format!("{number} {}", (0..words).map(word).collect::<Vec<_>>().join(" "));
        let kind = [
            Kind::Message,
            Kind::Message,
            Kind::Message,
            Kind::Decision,
            Kind::Conversation,
            Kind::CodeBlock,
        ];
        let kind = kind[(number % 6) as usize];
        let mut draft = Draft::new(kind, Provenance::UserSaid, text.as_str(), 1_683_554_160_000);
        draft.topic = (number.is_multiple_of(5)).then(|| "glass".to_owned());
        draft.speaker = (number.is_multiple_of(7)).then(|| "Maple".to_owned());
        if kind == Kind::Message {
            draft.session = SessionId::parse(&format!("s{}", number % 4));
            draft.role = Some(if number.is_multiple_of(2) { Role::User } else { Role::Assistant });
        }
        draft.identity = Identity::Named(text.clone());
        let mut memory = prepared(draft, &text);
        memory.tokens = if number.is_multiple_of(11) { 5_000 } else { 50 };
        memory
    };
    (0..count).map(memory).collect()
}

/// Returns what the store finds: ids, scores, and whether each is a long answer. And how common the words are.
async fn found(
    store: &(impl Search + ReadMemories),
    scope: &Scope,
    query: CandidateQuery,
) -> (Vec<(MemoryId, f64, bool)>, Vocabulary) {
    let (words, vocabulary) = store.candidates(scope, query).await.answered().words.answered();
    let mut found = Vec::new();
    for each in words {
        let memory = store.memories(scope, vec![each.memory]).await.answered().remove(0);
        found.push((memory.id, each.score, each.is_answer));
    }
    (found, vocabulary)
}

/// Compares the two engines with `count` memories.
async fn compare(postgres: &Postgres, count: u64) {
    let scope = Scope::own(TenantId::new(OWNER), project());
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project()).unwrap();
    let postgres = postgres.store();
    for some in memories(count).chunks(500) {
        sqlite.save(&scope, some.to_vec(), 1).await.answered();
        postgres.save(&scope, some.to_vec(), 1).await.answered();
    }
    let glass = Filter { topic: Some("glass".to_owned()), ..Filter::default() };
    let mut hits = 0;
    for filter in [Filter::default(), glass] {
        for question in QUESTIONS {
            let question = query::read(question);
            let terms: Vec<_> = question.terms.into_iter().chain(question.identifiers).collect();
            let weights =
                Vocabulary { documents: 9_000, counts: (0..terms.len() as i64).map(|n| 7 * n).collect() };
            for weights in [None, Some(weights).filter(|_| count < 5_000)] {
                let (filter, terms, groups) = (filter.clone(), terms.clone(), filter.groups());
                let query =
                    CandidateQuery { filter, groups, terms, weights, limit: 30, ..CandidateQuery::default() };
                let (theirs, their_counts) = found(&sqlite, &scope, query.clone()).await;
                let (ours, our_counts) = found(&postgres, &scope, query.clone()).await;
                assert_eq!(our_counts, their_counts, "{:?}", query.terms);
                let is_same = |(ours, theirs): (&(MemoryId, f64, bool), &(MemoryId, f64, bool))| {
                    (ours.1 - theirs.1).abs() < 1e-9 && ours.2 == theirs.2
                };
                let ids = |found: &[(MemoryId, f64, bool)]| {
                    let mut ids: Vec<MemoryId> = found.iter().map(|(id, ..)| id.clone()).collect();
                    ids.sort();
                    ids
                };
                assert!(
                    ours.len() == theirs.len()
                        && ours.iter().zip(&theirs).all(is_same)
                        && ids(&ours) == ids(&theirs),
                    "{:?}\n{ours:?}\n{theirs:?}",
                    query.terms
                );
                hits += ours.len();
            }
        }
    }
    assert!(hits > 500, "{hits}");
}

#[tokio::test]
async fn a_search_of_a_small_store_finds_what_sqlite_finds() {
    if let Some(postgres) = Postgres::new() {
        compare(&postgres, 400).await;
    }
}

/// A large store is searched in tiers.
#[tokio::test]
#[ignore = "takes a minute"]
async fn a_search_of_a_large_store_finds_what_sqlite_finds() {
    if let Some(postgres) = Postgres::new() {
        compare(&postgres, 6_000).await;
    }
}
