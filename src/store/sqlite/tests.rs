//! What is made of messages is true of them or gone, also after the store was closed and opened again.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::memory::{Draft, Identity, Kind as MemoryKind, Level, MemoryId, MemoryKey, Provenance, Role};
use crate::scope::{OwnerId, SessionId, Sessions};
use crate::store::*;

const HOUR: i64 = 3_600_000;

/// A store in a folder of its own.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    scope: Scope,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiro.db");
        let project = ProjectId::from_random([7; 8]);
        let scope = Scope::project(OwnerId::new("ines"), project.clone());
        let store = Store::open(&path, Flavour::Project, project).unwrap();
        Place { _folder: folder, path, scope, store }
    }

    fn reopened(self) -> Place {
        let Place { _folder, path, scope, store } = self;
        drop(store);
        let store = Store::open(&path, Flavour::Project, scope.project.clone()).unwrap();
        Place { _folder, path, scope, store }
    }

    async fn save(&self, memories: Vec<PreparedMemory>) -> Receipt {
        self.store.save(&self.scope, memories, 1, |_| {}).await.unwrap()
    }

    /// Saves messages named by their texts, a token each.
    async fn say(&self, session: &str, texts: &[&str]) -> Vec<MemoryId> {
        let said = self.save(texts.iter().map(|text| message(session, text)).collect()).await;
        said.outcomes.into_iter().map(|(id, _)| id).collect()
    }

    async fn rows(&self, session: &str) -> Vec<MessageRow> {
        self.store.session_messages(&self.scope, &name(session), 0).await.unwrap()
    }

    /// Returns what would be stored as a summary of the living messages of the range, whose text they are.
    async fn draft(&self, session: &str, first: i64, last: i64) -> Summary {
        let rows = self.rows(session).await;
        let rows: Vec<_> = rows.into_iter().filter(|row| (first..=last).contains(&row.ordinal)).collect();
        let texts = self.store.texts(&self.scope, rows.iter().map(|row| row.seq).collect()).await.unwrap();
        let text = texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" | ");
        Summary {
            session: name(session),
            segment: None,
            level: Level::Standard,
            first,
            last,
            messages: rows.len() as i64,
            tokens: rows.len() as i64,
            text,
            provider: "extractive".into(),
            model: String::new(),
            quality: 1.0,
            provenance: Provenance::UserSaid,
            cited: rows.iter().map(|row| row.ordinal).collect(),
            source_hash: source_hash(rows.iter().map(|row| &row.id)),
        }
    }

    async fn summarise(&self, session: &str, first: i64, last: i64) -> Saved {
        let draft = self.draft(session, first, last).await;
        self.store.save_summary(&self.scope, draft, 1).await.unwrap()
    }

    async fn summaries(&self, session: &str) -> Vec<Summary> {
        let rows = self.store.summaries(&self.scope, &name(session), None).await.unwrap();
        rows.into_iter().map(|row| row.summary).collect()
    }

    async fn forget(&self, ids: &[&MemoryId], operation: &str) -> Forgotten {
        let ids = ids.iter().map(|id| (*id).clone()).collect();
        self.store.forget(&self.scope, &Selection::Ids(ids), operation, 5).await.unwrap()
    }

    async fn version(&self, sessions: &[&str]) -> Version {
        let sessions = Sessions::Only(sessions.iter().map(|session| name(session)).collect());
        self.store.source_version(&Scope { sessions, ..self.scope.clone() }).await.unwrap()
    }

    async fn stand_for(&self, session: &str, text: &str, last: i64) -> Saved {
        let rows = self.rows(session).await;
        let hash = source_hash(rows.iter().filter(|row| row.ordinal <= last).map(|row| &row.id));
        let memory = conversation(session, text);
        self.store.save_conversation(&self.scope, memory, last, hash, 1).await.unwrap()
    }

    async fn found(&self, word: &str) -> usize {
        let groups = crate::filter::Filter::default().groups();
        let filter = crate::filter::Filter::default();
        self.store.lexical(&self.scope, &filter, &groups, vec![word.to_owned()], 10).await.unwrap().0.len()
    }
}

fn name(session: &str) -> SessionId {
    SessionId::parse(session).unwrap()
}

fn prepared(draft: Draft, key: &str) -> PreparedMemory {
    let end = draft.text.len();
    let chunk = PreparedChunk { start: 0, end, tokens: 1, embedding: None };
    let id = MemoryId::derive(draft.kind, draft.session.as_ref(), key);
    PreparedMemory { id, draft, tokens: 1, chunks: vec![chunk] }
}

fn message(session: &str, text: &str) -> PreparedMemory {
    let mut draft = Draft::new(MemoryKind::Message, Provenance::UserSaid, text, 10);
    draft.session = Some(name(session));
    draft.role = Some(Role::User);
    draft.identity = Identity::Named(text.into());
    prepared(draft, text)
}

fn conversation(session: &str, text: &str) -> PreparedMemory {
    let mut draft = Draft::new(MemoryKind::Conversation, Provenance::Derived, text, 10);
    draft.session = Some(name(session));
    let mut memory = prepared(draft, text);
    memory.chunks[0].embedding = Some(("space".into(), vec![0.1; 4]));
    memory
}

fn fact(session: &str, text: &str, sources: &[&MemoryId]) -> PreparedMemory {
    let mut draft = Draft::new(MemoryKind::Fact, Provenance::Derived, text, 10);
    draft.session = Some(name(session));
    draft.references = sources.iter().map(|id| (*id).clone()).collect();
    PreparedMemory { chunks: Vec::new(), ..prepared(draft, text) }
}

#[tokio::test]
async fn what_sums_up_a_quarter_is_never_without_what_it_is_made_of() {
    let place = Place::new();
    let mut stands: Vec<MemoryId> = Vec::new();
    for session in ["s", "t"] {
        place.say(session, &[session]).await;
        let Saved::Made(id) = place.stand_for(session, session, 0).await else { panic!() };
        stands.push(id);
    }
    let quarter = |text: &str, sources: &[MemoryId]| {
        let mut draft = Draft::new(MemoryKind::Summary, Provenance::Derived, text, 10);
        draft.topic = Some("quarter 2024-Q1".into());
        draft.references = sources.to_vec();
        prepared(draft, text)
    };
    let save = async |memory| place.store.save_quarter(&place.scope, memory, 1).await.unwrap();
    assert_eq!(save(quarter("papaya", &stands)).await, Outcome::Stored);
    assert_eq!(save(quarter("guava", &stands)).await, Outcome::Stored);
    assert_eq!((place.found("papaya").await, place.found("guava").await), (0, 1));
    let said = place.rows("t").await.remove(0).id;
    place.forget(&[&said], "f1").await;
    assert_eq!(place.found("guava").await, 0, "it left with what stands for a conversation of it");
    // As if it had been read before that was forgotten.
    assert_eq!(save(quarter("lychee", &stands)).await, Outcome::Forgotten);
    assert_eq!(
        (place.found("lychee").await, save(quarter("lychee", &stands[..1])).await),
        (0, Outcome::Stored)
    );
}

#[tokio::test]
async fn a_summary_leaves_with_the_first_of_its_messages_and_the_others_stay() {
    let place = Place::new();
    let said = place.say("s", &["one", "two", "three", "four"]).await;
    let Saved::Made(first) = place.summarise("s", 0, 1).await else { panic!() };
    let Saved::Made(second) = place.summarise("s", 2, 3).await else { panic!() };
    let place = place.reopened();
    assert_eq!(place.summaries("s").await.len(), 2);
    place.forget(&[&said[1]], "f1").await;
    let place = place.reopened();
    let left = place.store.summaries(&place.scope, &name("s"), None).await.unwrap();
    assert_eq!(left.iter().map(|row| &row.id).collect::<Vec<_>>(), [&second]);
    assert_eq!(place.store.summary(&place.scope, &first).await.unwrap(), None);
    place.summarise("s", 0, 1).await;
    assert_eq!(place.summaries("s").await[0].text, "one");
    // What came back isn't in a summary of the rest.
    place.store.undo(&place.scope, None, 6).await.unwrap();
    assert_eq!(place.summaries("s").await.len(), 1);
    assert!(matches!(place.summarise("s", 0, 1).await, Saved::Made(id) if id == first));
    assert_eq!(place.summaries("s").await[0].text, "one | two");
}

#[tokio::test]
async fn a_session_forgotten_or_grown_while_it_is_summarised_gets_no_summary_of_it() {
    let place = Place::new();
    let said = place.say("s", &["one", "two"]).await;
    let (late, ahead) = (place.draft("s", 0, 1).await, place.draft("s", 0, 5).await);
    let save = |summary: Summary| place.store.save_summary(&place.scope, summary, 1);
    place.say("s", &["three"]).await;
    assert_eq!(save(ahead).await.unwrap(), Saved::SourcesChanged, "the range has one more now");
    place.forget(&[&said[0], &said[1]], "f1").await;
    assert_eq!(save(late.clone()).await.unwrap(), Saved::SourcesChanged);
    place.store.purge(&place.scope, "f1", 6).await.unwrap();
    assert_eq!(save(late).await.unwrap(), Saved::SourcesChanged);
    assert!(place.reopened().summaries("s").await.is_empty());
}

#[tokio::test]
async fn of_two_processes_that_summarise_the_same_one_makes_it_and_a_model_makes_the_next_version() {
    let place = Place::new();
    place.say("s", &["one", "two"]).await;
    let other = Store::open(&place.path, Flavour::Project, place.scope.project.clone()).unwrap();
    let draft = place.draft("s", 0, 1).await;
    let (one, two) = tokio::join!(
        place.store.save_summary(&place.scope, draft.clone(), 1),
        other.save_summary(&place.scope, draft.clone(), 1)
    );
    let outcomes = [one.unwrap(), two.unwrap()];
    assert!(outcomes.iter().any(|saved| matches!(saved, Saved::Made(_))), "{outcomes:?}");
    assert!(outcomes.iter().any(|saved| matches!(saved, Saved::AlreadyMade(_))), "{outcomes:?}");
    let by_model = Summary { provider: "local".into(), text: "better".into(), ..draft };
    place.store.save_summary(&place.scope, by_model, 2).await.unwrap();
    let place = place.reopened();
    let newest = place.store.summaries(&place.scope, &name("s"), None).await.unwrap();
    assert_eq!((newest.len(), newest[0].version, newest[0].summary.text.as_str()), (1, 2, "better"));
    assert_eq!(newest[0].summary.cited, [0, 1]);
}

#[tokio::test]
async fn segments_follow_one_another_and_count_what_is_not_forgotten() {
    let place = Place::new();
    let said = place.say("s", &["one", "two", "three", "four", "five"]).await;
    place.forget(&[&said[2]], "f1").await;
    let segment = |number, first, last| SegmentRow { number, first, last, messages: 0, tokens: 0 };
    let add = |segments| {
        let (store, scope) = (place.store.clone(), place.scope.clone());
        async move { store.add_segments(&scope, &name("s"), segments).await.unwrap() }
    };
    add(vec![segment(0, 0, 1)]).await;
    // The message between them is forgotten now, and will be in the second when it comes back.
    add(vec![segment(0, 0, 4), segment(1, 3, 4)]).await;
    add(vec![segment(3, 9, 12)]).await;
    let counted = async |place: &Place| {
        let rows = place.store.segments(&place.scope, &name("s")).await.unwrap();
        rows.iter().map(|row| (row.first, row.last, row.messages, row.tokens)).collect::<Vec<_>>()
    };
    assert_eq!(counted(&place).await, [(0, 1, 2, 2), (2, 4, 2, 2)]);
    place.store.undo(&place.scope, None, 6).await.unwrap();
    place.forget(&[&said[0]], "f2").await;
    let place = place.reopened();
    assert_eq!(counted(&place).await, [(0, 1, 1, 1), (2, 4, 3, 3)]);
}

/// The next message took the place of the last one that was purged, inside a range that was summarised.
#[tokio::test]
async fn the_place_of_a_purged_message_is_not_given_again() {
    let place = Place::new();
    let said = place.say("s", &["one", "two"]).await;
    place.forget(&[&said[1]], "f1").await;
    place.summarise("s", 0, 1).await;
    place.store.purge(&place.scope, "f1", 6).await.unwrap();
    let place = place.reopened();
    place.say("s", &["three"]).await;
    let ordinals: Vec<i64> = place.rows("s").await.iter().map(|row| row.ordinal).collect();
    assert_eq!(ordinals, [0, 2]);
    assert_eq!(place.summaries("s").await[0].text, "one");
}

/// A summary whose range reached beyond the end of its session was taken for one of what was said next.
#[tokio::test]
async fn a_summary_ends_with_its_session() {
    let place = Place::new();
    place.say("s", &["one"]).await;
    place.summarise("s", 0, 7).await;
    place.say("s", &["two"]).await;
    let summaries = place.summaries("s").await;
    assert_eq!((summaries[0].first, summaries[0].last, summaries[0].text.as_str()), (0, 0, "one"));
}

#[tokio::test]
async fn a_fact_is_forgotten_comes_back_and_is_purged_with_its_source() {
    let place = Place::new();
    let said = place.say("s", &["the durian smells", "two"]).await;
    let fact = |text: &str| fact("s", text, &[&said[0]]);
    let saved = place.save(vec![fact("durian: smells")]).await;
    let id = saved.outcomes[0].0.clone();
    let living = async |place: &Place| place.store.memory(&place.scope, &id).await.unwrap().is_some();
    let forgotten = place.forget(&[&said[0]], "f1").await;
    assert_eq!(forgotten.ids, [said[0].clone(), id.clone()]);
    assert!(!living(&place).await);
    // Found by somebody who had read the message before.
    let late = place.save(vec![fact("durian: fruit")]).await;
    assert_eq!(late.count(Outcome::Forgotten), 1);
    place.store.undo(&place.scope, None, 6).await.unwrap();
    let place = place.reopened();
    assert!(living(&place).await);
    place.forget(&[&said[0]], "f2").await;
    place.store.purge(&place.scope, "f2", 7).await.unwrap();
    let bytes = fs::read(&place.path).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"durian"));
}

/// More than one transaction forgets and brings back is forgotten and comes back as a whole, and what is derived with it.
#[tokio::test]
async fn what_takes_several_transactions_is_one_operation() {
    let place = Place::new();
    let said = place.say("s", &["oak", "ash", "elm", "fir", "yew", "box", "bay", "may"]).await;
    let others = place.say("other", &["ivy"]).await;
    let trees = place.save(vec![fact("s", "trees", &[&said[0], &said[7]])]).await.outcomes.remove(0).0;
    let both = place.save(vec![fact("s", "both", &[&said[1], &others[0]])]).await.outcomes.remove(0).0;
    let selection = Selection::Session(name("s"));
    let forgotten = place.store.forget(&place.scope, &selection, "f1", 5).await.unwrap();
    assert_eq!(forgotten.ids.len(), 10);
    place.forget(&[&others[0]], "f2").await;
    assert_eq!((place.rows("s").await.len(), place.found("fir").await, place.found("ivy").await), (0, 0, 0));
    let place = place.reopened();
    // What is derived from the other session too stays forgotten with it; trying changes nothing.
    let would = place.store.undoable(&place.scope, Some("f1")).await.unwrap();
    assert_eq!((would.ids.len(), place.rows("s").await.len()), (9, 0));
    assert_eq!(place.store.undo(&place.scope, Some("f1"), 6).await.unwrap(), would);
    let living = async |id| place.store.memory(&place.scope, id).await.unwrap().is_some();
    assert_eq!((place.rows("s").await.len(), living(&trees).await, living(&both).await), (8, true, false));
    assert!(place.found("fir").await > 0);
    assert!(place.store.undo(&place.scope, Some("f1"), 7).await.is_err());
}

/// A purge that dies leaves what is left of it forgotten, past undoing, and whoever comes next goes on with it.
#[tokio::test]
async fn a_purge_that_was_interrupted_is_finished() {
    let place = Place::new();
    place.say("s", &["oak", "ash", "elm", "fir"]).await;
    let selection = Selection::Session(name("s"));
    place.store.forget_as(&place.scope, &selection, "f1", forget::Act::Purge, 5).await.unwrap();
    let place = place.reopened();
    assert_eq!(place.found("oak").await, 0);
    assert!(place.store.undo(&place.scope, None, 6).await.is_err());
    assert_eq!(place.store.finish_purges(&place.scope, 5).await.unwrap().ids.len(), 0);
    assert_eq!(place.store.finish_purges(&place.scope, 6).await.unwrap().ids.len(), 4);
    let operations = place.store.operations(&place.scope, 9).await.unwrap();
    assert_eq!((operations[0].kind.as_str(), operations[0].memories), ("purge", 0));
    assert_eq!(place.say("s", &["oak"]).await.len(), 1);
    assert_eq!((place.rows("s").await.len(), place.found("oak").await), (0, 0), "it doesn't come back");
}

#[tokio::test]
async fn what_stands_for_a_session_is_one_memory_and_leaves_the_indexes_with_what_it_was_made_of() {
    let place = Place::new();
    let said = place.say("s", &["one", "two"]).await;
    let Saved::Made(first) = place.stand_for("s", "cherimoya", 1).await else { panic!() };
    assert_eq!(place.found("cherimoya").await, 1);
    place.say("s", &["three"]).await;
    assert!(matches!(place.stand_for("s", "mangosteen", 2).await, Saved::Made(_)));
    // Another process made it of less, and comes late.
    assert!(matches!(place.stand_for("s", "salak", 1).await, Saved::AlreadyMade(_)));
    let place = place.reopened();
    assert_eq!((place.found("cherimoya").await, place.found("mangosteen").await), (0, 1));
    assert_eq!(place.store.memory(&place.scope, &first).await.unwrap(), None);
    place.forget(&[&said[0]], "f1").await;
    let place = place.reopened();
    assert_eq!(place.found("mangosteen").await, 0);
    assert_eq!(place.store.conversation(&place.scope, &name("s")).await.unwrap(), None);
    let check = place.store.check(&place.scope).await.unwrap();
    assert!(check.is_sound(), "{check:?}");
    // What is brought back isn't in one that was made of the rest.
    assert!(matches!(place.stand_for("s", "rambutan", 2).await, Saved::Made(_)));
    place.store.undo(&place.scope, None, 6).await.unwrap();
    assert_eq!(place.found("rambutan").await, 0);
}

#[tokio::test]
async fn what_is_purged_is_in_no_summary_no_answer_and_no_index() {
    let place = Place::new();
    let said = place.say("s", &["the qwzxv rings", "two"]).await;
    place.summarise("s", 0, 1).await;
    place.stand_for("s", "a qwzxv in short", 1).await;
    place.store.cache(&place.scope, [1; 32], "a qwzxv again".into(), 1, HOUR, 1000).await.unwrap();
    let wanted = Wanted {
        session: name("s"),
        level: Level::Brief,
        first: 0,
        last: 1,
        provider: "local".into(),
        asked_by: AskedBy::User,
    };
    place.store.enqueue(&place.scope, wanted, 1, 1).await.unwrap();
    let forgotten = place.store.forget(&place.scope, &Selection::Session(name("s")), "f1", 5).await.unwrap();
    assert_eq!(forgotten.ids, said, "what stands for the session isn't counted beside it");
    place.store.purge(&place.scope, "f1", 6).await.unwrap();
    assert_eq!(place.store.queue_counts(&place.scope).await.unwrap(), QueueCounts::default());
    let place = place.reopened();
    for file in fs::read_dir(place.path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(5).any(|window| window == b"qwzxv"), "{}", file.display());
    }
}

#[tokio::test]
async fn the_version_of_a_session_is_another_after_each_change_of_it_and_of_no_other() {
    let place = Place::new();
    let said = place.say("s", &["one", "two"]).await;
    place.say("other", &["one"]).await;
    let mut seen = vec![place.version(&["s"]).await];
    let (mut both, other) = (vec![place.version(&["s", "other"]).await], place.version(&["other"]).await);
    for step in 0..6 {
        match step {
            0 => drop(place.say("s", &["three"]).await),
            1 => drop(place.forget(&[&said[0]], "f1").await),
            2 => drop(place.store.undo(&place.scope, None, 6).await.unwrap()),
            3 => drop(place.store.mark(&place.scope, &said, true, None).await.unwrap()),
            4 => drop(place.summarise("s", 0, 1).await),
            _ => {
                let mut waiting = place.store.pending_chunks(&place.scope, 1).await.unwrap();
                let embeddings = vec![(waiting.remove(0), vec![0.5; 4])];
                place.store.save_embeddings(&place.scope, "space", embeddings).await.unwrap();
            }
        }
        seen.push(place.version(&["s"]).await);
        both.push(place.version(&["other", "s"]).await);
        assert_eq!(place.version(&["other"]).await, other, "step {step}");
    }
    for versions in [&mut seen, &mut both] {
        versions.sort_unstable_by_key(|version| version.bytes());
        versions.dedup();
        assert_eq!(versions.len(), 7);
    }
}

#[tokio::test]
async fn a_scope_sees_what_was_made_of_its_own_sessions_only() {
    let place = Place::new();
    place.say("s", &["one", "two"]).await;
    let Saved::Made(id) = place.summarise("s", 0, 1).await else { panic!() };
    let elsewhere = Scope { sessions: Sessions::Only(vec![name("other")]), ..place.scope.clone() };
    let stranger = Scope { owner: OwnerId::new("ana"), ..place.scope.clone() };
    for scope in [&elsewhere, &stranger] {
        let store = &place.store;
        assert!(store.session_messages(scope, &name("s"), 0).await.unwrap().is_empty());
        assert!(store.summaries(scope, &name("s"), None).await.unwrap().is_empty());
        assert_eq!(store.summary(scope, &id).await.unwrap(), None);
        assert!(
            store
                .texts(scope, vec![MemoryKey::from_store(1), MemoryKey::from_store(2)])
                .await
                .unwrap()
                .is_empty()
        );
        let late = store.save_summary(scope, place.draft("s", 0, 1).await, 1).await.unwrap();
        assert_eq!(late, Saved::SourcesChanged);
        assert!(store.grown_sessions(scope, 9).await.unwrap().is_empty());
    }
    place.store.cache(&place.scope, [1; 32], "an answer".into(), 1, HOUR, 1000).await.unwrap();
    assert_eq!(place.store.cached(&stranger, [1; 32], 1).await.unwrap(), None);
}

#[tokio::test]
async fn the_users_requests_come_first_a_dead_holder_loses_its_entry_and_tries_are_bounded() {
    let place = Place::new();
    place.say("s", &["one", "two"]).await;
    let (store, scope) = (&place.store, &place.scope);
    let wanted = |level, asked_by| Wanted {
        session: name("s"),
        level,
        first: 0,
        last: 1,
        provider: "local".into(),
        asked_by,
    };
    const LEASE: i64 = 120_000;
    // The clock of the store is at the date of the call.
    let take = async |holder, now| {
        store.clock().set(now);
        store.next_queued(scope, holder, LEASE, now).await.unwrap()
    };
    let next = async |now| take("p1", now).await;
    store.enqueue(scope, wanted(Level::Brief, AskedBy::Nobody), 0, 0).await.unwrap();
    store.enqueue(scope, wanted(Level::Standard, AskedBy::User), 0, 0).await.unwrap();
    let first = next(1).await.unwrap();
    assert_eq!((first.wanted.level, first.tries), (Level::Standard, 0));
    assert_eq!(next(1).await.unwrap().wanted.level, Level::Brief);
    assert_eq!(next(2).await, None, "both are held");
    // Two minutes later their holder is taken for dead, and what it brings then counts no more.
    let again = take("p2", 200_000).await.unwrap();
    assert_eq!((again.seq, again.tries), (first.seq, 1));
    store.finish(scope, first.seq, "p1", 200_001).await.unwrap();
    assert_eq!(store.queue_counts(scope).await.unwrap().completed, 0);
    store.fail(scope, first.seq, "p2", "no answer", 300_000, 200_002).await.unwrap();
    assert_eq!(take("p2", 250_000).await.unwrap().wanted.level, Level::Brief);
    let mut now = 300_000;
    while let Some(queued) = take("p2", now).await {
        assert!(queued.tries < 5);
        store.fail(scope, queued.seq, "p2", "no answer", now, now).await.unwrap();
        now += 1;
        assert!(now < 300_100, "it is tried for ever");
    }
    assert!(store.queue_counts(scope).await.unwrap().failed >= 1);
    // The user asks once more.
    store.enqueue(scope, wanted(Level::Standard, AskedBy::User), now, now).await.unwrap();
    assert_eq!(next(now).await.unwrap().tries, 0);
    // A clock set back by a year doesn't hold up what was due, nor what was held.
    let year = 365 * 24 * HOUR;
    store.enqueue(scope, wanted(Level::Detailed, AskedBy::User), year, year).await.unwrap();
    assert!(next(5).await.is_some());
}

#[tokio::test]
async fn an_answer_is_kept_for_its_time_and_within_the_bytes_those_used_last_longest() {
    let place = Place::new();
    let (store, scope) = (&place.store, &place.scope);
    let body = |n: u8| n.to_string().repeat(100);
    for n in 1..=3 {
        store.cache(scope, [n; 32], body(n), i64::from(n), HOUR, 300).await.unwrap();
    }
    assert_eq!(store.cached(scope, [1; 32], 10).await.unwrap(), Some(body(1)));
    store.cache(scope, [4; 32], body(4), 11, HOUR, 300).await.unwrap();
    assert_eq!(store.cached(scope, [2; 32], 12).await.unwrap(), None, "it was used least lately");
    assert_eq!(store.cached(scope, [1; 32], 13).await.unwrap(), Some(body(1)));
    store.cache(scope, [5; 32], "x".repeat(301), 14, HOUR, 300).await.unwrap();
    assert_eq!(store.cached(scope, [5; 32], 15).await.unwrap(), None, "it has no room at all");
    // The clock goes back: what expires by the time that was seen does.
    store.cache(scope, [6; 32], body(6), HOUR, 10, 300).await.unwrap();
    store.cache(scope, [7; 32], body(7), HOUR + 20, HOUR, 300).await.unwrap();
    assert_eq!(store.cached(scope, [6; 32], 5).await.unwrap(), None);
    assert_eq!(store.cached(scope, [7; 32], 5).await.unwrap(), Some(body(7)));
    store.cache(scope, [8; 32], body(8), 2 * HOUR, 0, 300).await.unwrap();
    let place = place.reopened();
    assert_eq!(place.store.cached(&place.scope, [7; 32], HOUR + 21).await.unwrap(), Some(body(7)));
    let stats = place.store.cache_stats(&place.scope).await.unwrap();
    assert_eq!((stats.hits, stats.misses), (4, 3));
    assert!(stats.bytes <= 300, "{stats:?}");
}

/// Steps of a random history.
#[derive(Clone, Debug)]
enum Step {
    Say(u8),
    Forget(u8),
    Undo,
    Purge(u8),
    Summarise(u8, u8),
    StandFor,
    Keep,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_u8).prop_map(Step::Say),
        3 => any::<u8>().prop_map(Step::Forget),
        2 => Just(Step::Undo),
        1 => any::<u8>().prop_map(Step::Purge),
        4 => (any::<u8>(), 0..6_u8).prop_map(|(first, more)| Step::Summarise(first, more)),
        2 => Just(Step::StandFor),
        2 => Just(Step::Keep),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_summary_that_is_returned_is_of_the_living_messages_of_its_range(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut place = Place::new();
            let (mut said, mut operations) = (0, 0);
            let mut late: Option<Summary> = None;
            for step in steps {
                let rows = place.rows("s").await;
                match step {
                    Step::Say(count) => for _ in 0..count {
                        place.say("s", &[&format!("w{said}")]).await;
                        said += 1;
                    },
                    Step::Forget(n) | Step::Purge(n) => if let Some(row) = rows.get(usize::from(n) % rows.len().max(1)) {
                        operations += 1;
                        let operation = format!("f{operations:03}");
                        place.forget(&[&row.id], &operation).await;
                        if matches!(step, Step::Purge(_)) {
                            place.store.purge(&place.scope, &operation, 6).await.unwrap();
                        }
                    },
                    Step::Undo => drop(place.store.undo(&place.scope, None, 6).await),
                    Step::Summarise(first, more) => {
                        let first = i64::from(first) % (said + 1);
                        late = Some(place.draft("s", first, first + i64::from(more)).await);
                        place.summarise("s", first, first + i64::from(more)).await;
                    }
                    // One that was begun before what happened since.
                    Step::Keep => if let Some(summary) = late.take() {
                        place.store.save_summary(&place.scope, summary, 1).await.unwrap();
                    },
                    Step::StandFor => if let Some(last) = rows.last() {
                        let text: Vec<String> = place.store
                            .texts(&place.scope, rows.iter().map(|row| row.seq).collect()).await.unwrap()
                            .into_iter().map(|(_, text)| text).collect();
                        place.stand_for("s", &text.join(" | "), last.ordinal).await;
                    },
                    Step::Reopen => place = place.reopened(),
                }
                for summary in place.summaries("s").await {
                    let now = place.draft("s", summary.first, summary.last).await;
                    prop_assert_eq!(&summary.text, &now.text);
                    prop_assert_eq!(summary.messages, now.messages);
                }
                if let Some(row) = place.store.conversation(&place.scope, &name("s")).await.unwrap() {
                    let memory = place.store.memory(&place.scope, &row.id).await.unwrap().expect("it isn't forgotten");
                    prop_assert_eq!(memory.text, place.draft("s", 0, row.last).await.text);
                }
            }
            let check = place.store.check(&place.scope).await.unwrap();
            prop_assert!(check.is_sound(), "{:?}", check);
            Ok(())
        })?;
    }
}
