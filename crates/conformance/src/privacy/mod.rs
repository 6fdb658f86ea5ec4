//! Promises about what an author keeps private from the others of a tenant.

mod hidden;
mod reads;

pub use self::hidden::*;
use self::reads::{Asked, reads};
use super::fixture::*;
use super::threads::{hash, record, thread, turn, with_file};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::filter::Filter;
use tiro_base::memory::{FileWrite, Kind, Level, MemoryId, MemoryKey, Work};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::*;

/// The name of a private session.
const PRIVATE: &str = "auth";

/// Returns the scopes of two authors of the tenant.
fn authors(fixture: &Fixture) -> [Scope; 2] {
    ["petra", "jonas"].map(|author| fixture.scope.read_by(AuthorId::new(author)))
}

/// Returns the memory with the visibility.
fn seen_by(visibility: Visibility, mut memory: PreparedMemory) -> PreparedMemory {
    memory.draft.visibility = Some(visibility);
    memory
}

/// Returns the memory, as private.
fn private(memory: PreparedMemory) -> PreparedMemory {
    seen_by(Visibility::Private, memory)
}

/// Returns the memory, as shared.
fn shared(memory: PreparedMemory) -> PreparedMemory {
    seen_by(Visibility::Project, memory)
}

/// Stores what every kind of read shows: all of it with the visibility, except the commit.
async fn keep_everything(fixture: &Fixture, commit: MemoryKey, visibility: Visibility) -> Asked {
    let (store, scope, session) = (&fixture.store, &fixture.scope, name(PRIVATE));
    let origin = Origin {
        title: Some("Jam".into()),
        aliases: vec!["alias".into()],
        visibility: Some(visibility),
        ..Origin::default()
    };
    store.describe_session(scope, &session, origin).await.answered();
    let mut said = seen_by(visibility, embedded(message(PRIVATE, "quince one"), [1.0, 0.0, 0.0, 0.0]));
    said.draft.topic = Some("jam".into());
    said.draft.source_id = Some("client-7".into());
    said.draft.head_sha = Some(sha('b'));
    said.draft.branch = Some("side".into());
    let id = fixture.put(said).await;
    let work = Work {
        writes: vec![FileWrite { path: "a.rs".into(), ..FileWrite::default() }],
        commits: Some(vec!["aaaaaaa".into()]),
        ..Work::default()
    };
    let others = vec![
        seen_by(visibility, tool_call(PRIVATE, "quince two", work, 5)),
        seen_by(visibility, message(PRIVATE, "medlar")),
        seen_by(visibility, message(PRIVATE, "quince gone")),
        seen_by(visibility, note("quince note")),
    ];
    let ids: Vec<MemoryId> = fixture.save(others).await.outcomes.into_iter().map(|(id, _)| id).collect();
    fixture.put(fact(PRIVATE, "a quince fact", &[&id])).await;
    let mut newer = note("quince renewed");
    newer.draft.supersedes = vec![ids[3].clone()];
    newer.draft.references = vec![id.clone()];
    fixture.put(newer).await;
    let kept = fixture.store.mark(scope, std::slice::from_ref(&id), true, Some(0.9)).await.answered();
    assert_eq!(kept, std::slice::from_ref(&id), "the author marks it");
    fixture.forget(&[&ids[1]], "p1").await;
    let gone = Selection::Ids(vec![ids[2].clone()]);
    store.forget_for_good(scope, &gone, "p2", 5).await.answered();
    fixture.close_segments(PRIVATE, &[(0, 0, 1)]).await;
    let summary = fixture.summarise(PRIVATE, 0, 1).await;
    let Saved::Made(summary) = summary else { panic!("{summary:?}") };
    fixture.summarise_session(PRIVATE, "of quinces", 1).await;
    store.postpone_conversation(scope, &session, 50).await.answered();
    let key = fixture.key(&id).await;
    let chunk = store.chunks_of(scope, vec![key]).await.answered()[0].1.key;
    keep_work(fixture, commit, &id, key).await;
    Asked { id, key, chunk, summary, purged: ids[2].clone(), commit }
}

/// Stores statements, links, stash, threads and bookkeeping.
async fn keep_work(fixture: &Fixture, commit: MemoryKey, id: &MemoryId, key: MemoryKey) {
    let (store, scope, session) = (&fixture.store, &fixture.scope, name(PRIVATE));
    let statement = Statement {
        memory: key,
        number: 0,
        start: 0,
        end: 6,
        voice: "petra".into(),
        value: "one".into(),
        words: "quince".into(),
        time: 10,
        subject: None,
    };
    let new = NewStatement { statement, same_as: None };
    store.add_statements(scope, vec![new], Some((session.clone(), 1))).await.answered();
    let links = vec![(commit, vec![(fixture.session_key(PRIVATE).await, 0.9)])];
    store.link_commits(scope, links).await.answered();
    let stashing = Stashing {
        named: vec![id.clone()],
        given: Vec::new(),
        cause: StashCause::Call,
        expires_at: Some(20),
        is_protected: None,
        topic: Some("jam".into()),
    };
    store.stash(scope, stashing, 7).await.answered();
    let wanted = Wanted {
        session: session.clone(),
        level: Level::Brief,
        first: 0,
        last: 1,
        provider: "local".into(),
        asked_by: AskedBy::User,
    };
    store.enqueue(scope, wanted, 0, 1).await.answered();
    let attempt = Attempt {
        session,
        level: Level::Brief,
        first: 0,
        last: 1,
        provider: "local".into(),
        model: "model".into(),
        input_tokens: 7,
        output_tokens: 1,
        cost_micros: 1,
        took_ms: 1,
        quality: None,
        error: None,
        at: 1,
    };
    store.attempt(scope, attempt).await.answered();
    let thread = thread(PRIVATE, "sage");
    record(fixture, &thread, with_file(turn(&thread, 1), "a.rs", "a text of quince")).await;
    store.note_token_counts(scope, &[(hash("a text of quince"), 4)]).await.answered();
    store.cache_embeddings(scope, vec![([7; 32], vec![1.0])]).await.answered();
    store.set_import_cursor(scope, "file:/private/7", "12", 1).await.answered();
    store.cache(scope, [9; 32], "quince".into(), 50, HOUR, 1000).await.answered();
}

/// Reads that say nothing of what is private, whoever reads: of commits, of what is not there, and of sums.
const SILENT: &[&str] = &[
    "came_from_peers",
    "commit_authors",
    "commit_graph",
    "commit_named",
    "commits_before",
    "commits_made",
    "commits_without_summary",
    "derived_without_chunk",
    "due_conversations",
    "is_empty",
    "known_commits",
    "left_sessions",
    "newest",
    "quarter_is_retired",
    "refers_to",
    "replaced_commits",
    "stand_ins",
    "superseded",
    "supersedes",
];

pub async fn what_is_private_is_read_by_its_author_only(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = jonas.clone();
    let commit = fixture.put(commit('a', "a shared commit", 100)).await;
    fixture.say("open", &["a shared message"]).await;
    let unknown = MemoryId::derive(Kind::Message, None, "unknown");
    let before = Asked {
        id: unknown.clone(),
        key: MemoryKey::NOT_STORED,
        chunk: ChunkKey::default(),
        summary: unknown.clone(),
        purged: unknown,
        commit: fixture.key(&commit).await,
    };
    let [of_petra, of_jonas] =
        [reads(&fixture, &petra, &before).await, reads(&fixture, &jonas, &before).await];
    fixture.scope = petra.clone();
    let asked = keep_everything(&fixture, before.commit, Visibility::Private).await;
    let now = reads(&fixture, &jonas, &asked).await;
    for (name, read) in &now {
        assert_eq!(read, &of_jonas[name], "another reads `{name}` otherwise than before");
    }
    let own = reads(&fixture, &petra, &asked).await;
    let unread: Vec<&str> =
        own.iter().filter(|(name, read)| of_petra[*name] == **read).map(|(name, _)| *name).collect();
    let missing: Vec<&&str> = unread.iter().filter(|name| !SILENT.contains(name)).collect();
    assert!(missing.is_empty(), "its author doesn't see it in {missing:?}");
    let fixture = fixture.reopened();
    let now = reads(&fixture, &jonas, &asked).await;
    for (name, read) in &now {
        assert_eq!(read, &of_jonas[name], "another reads `{name}` otherwise after reopening");
    }
}

pub async fn what_is_private_is_changed_by_its_author_only(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.clone();
    let id = fixture.put(private(message(PRIVATE, "quince"))).await;
    let note = fixture.put(private(note("medlar"))).await;
    fixture.scope = jonas;
    let ids = Selection::Ids(vec![id.clone(), note.clone()]);
    let selections = [ids, Selection::Session(name(PRIVATE)), Selection::Matching(Filter::default())];
    for (number, selection) in selections.iter().enumerate() {
        let operation = format!("j{number}");
        let (store, scope) = (&fixture.store, &fixture.scope);
        let forgotten = store.forget(scope, selection, &operation, 5).await.answered();
        assert_eq!(forgotten, Forgotten::default());
        let purged = store.forget_for_good(scope, selection, &format!("{operation}p"), 5).await.answered();
        assert_eq!(purged, Forgotten::default());
    }
    let (store, scope) = (&fixture.store, &fixture.scope);
    let known = [id.clone(), note.clone()];
    assert!(store.mark(scope, &known, true, None).await.answered().is_empty());
    assert!(store.unstash(scope, &known, false).await.answered().is_empty());
    let stashing = Stashing {
        named: vec![id.clone()],
        given: Vec::new(),
        cause: StashCause::Call,
        expires_at: None,
        is_protected: None,
        topic: None,
    };
    let refused = store.stash(scope, stashing, 1).await.expect_err("it is stashed");
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    fixture.scope = petra;
    assert!(fixture.living(&id).await.is_some_and(|memory| !memory.marked), "nothing changed");
    assert_eq!(fixture.forget(&[&id], "p1").await.ids, std::slice::from_ref(&id));
    assert!(fixture.living(&id).await.is_none());
    let [_, jonas] = authors(&fixture);
    let undone = fixture.store.undo(&jonas, None, 6).await.expect_err("another undoes it");
    assert_eq!(undone.kind(), ErrorKind::NotFound);
    assert_eq!(fixture.undo().await.ids, std::slice::from_ref(&id));
    assert!(fixture.living(&id).await.is_some());
}

pub async fn what_comes_from_something_private_is_private(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.clone();
    let source = fixture.put(private(message(PRIVATE, "quince"))).await;
    let mut derived = note("it follows");
    derived.draft.references = vec![source.clone()];
    let derived = fixture.put(derived).await;
    let in_session = fixture.put(fact(PRIVATE, "a fact", &[])).await;
    let said = fixture.put(message(PRIVATE, "medlar")).await;
    for id in [&source, &derived, &in_session, &said] {
        let memory = fixture.living(id).await.expect("its author sees it");
        assert_eq!((memory.visibility, memory.author.as_str()), (Visibility::Private, "petra"));
        assert!(fixture.store.memory(&jonas, id).await.answered().is_none());
    }
}

pub async fn a_shared_decision_keeps_its_private_source_unknown(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.clone();
    let source = fixture.put(private(message(PRIVATE, "quince"))).await;
    let mut decision = shared(fact(PRIVATE, "we make jam", &[&source]));
    decision.draft.kind = Kind::Decision;
    let decision = fixture.put(decision).await;
    let memory = fixture.living(&decision).await.expect("its author sees it");
    assert_eq!(memory.visibility, Visibility::Project);
    let references = fixture.store.references(&fixture.scope, memory.key).await.answered();
    assert_eq!(references.len(), 1, "its author sees the source");
    fixture.scope = jonas;
    let memory = fixture.living(&decision).await.expect("it is shared");
    assert_eq!(
        (memory.text.as_str(), memory.session, memory.author.as_str()),
        ("we make jam", None, "petra")
    );
    let (store, scope) = (&fixture.store, &fixture.scope);
    assert!(store.references(scope, memory.key).await.answered().is_empty());
    assert!(store.memory(scope, &source).await.answered().is_none());
    assert!(store.sessions(scope, 0, 10).await.answered().is_empty());
    assert_eq!(fixture.forget(&[&decision], "j1").await, Forgotten::default(), "only its author forgets it");
    fixture.scope = petra;
    assert_eq!(fixture.forget(&[&source], "p1").await.ids.len(), 2, "it goes with its source");
    assert!(fixture.living(&decision).await.is_none());
}

/// The first messages of two authors' sessions of one name have the same id.
pub async fn each_author_forgets_what_is_derived_from_their_own(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    let mut sources = Vec::new();
    for scope in [&petra, &jonas] {
        fixture.scope = scope.clone();
        sources.push(fixture.put(private(message(PRIVATE, "quince"))).await);
    }
    assert_eq!(sources[0], sources[1]);
    fixture.scope = petra.clone();
    let own = fixture.put(private(fact(PRIVATE, "a fact", &[&sources[0]]))).await;
    let decision = fixture.put(shared(fact(PRIVATE, "we make jam", &[&sources[0]]))).await;
    fixture.scope = jonas;
    assert_eq!(fixture.forget(&[&sources[1]], "j1").await.ids, [sources[1].clone()]);
    fixture.store.purge(&fixture.scope, "j1", 6).await.answered();
    fixture.scope = petra;
    for id in [&sources[0], &own, &decision] {
        assert!(fixture.living(id).await.is_some(), "{id}");
    }
    assert_eq!(fixture.forget(&[&sources[0]], "p1").await.ids.len(), 3);
}

pub async fn authors_have_sessions_of_one_name(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    let mut texts = Vec::new();
    for (scope, text) in [(&petra, "quince"), (&jonas, "medlar")] {
        fixture.scope = scope.clone();
        fixture.put(private(message(PRIVATE, text))).await;
    }
    fixture.scope = fixture.scope.read_by(AuthorId::new("sara"));
    fixture.say(PRIVATE, &["damson"]).await;
    let sara = fixture.scope.clone();
    for scope in [petra, jonas, sara] {
        fixture.scope = scope;
        fixture.summarise(PRIVATE, 0, 0).await;
        let rows = fixture.rows(PRIVATE).await;
        assert_eq!(rows.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [0]);
        texts.extend(fixture.summaries(PRIVATE).await.into_iter().map(|row| row.summary.text));
    }
    assert_eq!(texts, ["quince", "medlar", "damson"]);
}

pub async fn what_is_made_of_a_shared_memory_goes_with_it(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = jonas.clone();
    let source = fixture.say("open", &["quince"]).await.remove(0);
    fixture.scope = petra.clone();
    let own = fixture.put(private(fact("open", "what petra makes of it", &[&source]))).await;
    fixture.scope = jonas.clone();
    assert_eq!(fixture.forget(&[&source], "j1").await.ids, std::slice::from_ref(&source));
    assert!(fixture.store.memory(&petra, &own).await.answered().is_none());
    assert_eq!(fixture.undo().await.ids, std::slice::from_ref(&source));
    assert!(fixture.store.memory(&petra, &own).await.answered().is_some());
    let purged = Selection::Ids(vec![source.clone()]);
    let purged = fixture.store.forget_for_good(&jonas, &purged, "j2", 9).await.answered();
    assert_eq!(purged.ids, [source]);
    assert!(fixture.store.is_purged(&petra, &own).await.answered());
    assert!(!fixture.store.is_purged(&jonas, &own).await.answered());
}

pub async fn a_shared_memory_is_forgotten_by_its_author_or_the_tenant(mut fixture: Fixture) {
    let tenant = fixture.scope.clone();
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.clone();
    let said = fixture.say("open", &["quince", "medlar"]).await;
    fixture.scope = jonas;
    fixture.say("open", &["damson"]).await;
    assert_eq!(fixture.forget(&[&said[0]], "j1").await, Forgotten::default());
    assert_eq!(fixture.forget_session("open", "j2").await.ids.len(), 1, "only what he said");
    fixture.scope = petra;
    assert_eq!(fixture.forget(&[&said[0]], "p1").await.ids, said[..1]);
    fixture.scope = tenant;
    assert_eq!(fixture.forget(&[&said[1]], "t1").await.ids, said[1..]);
}

pub async fn a_backup_leaves_out_what_others_keep_private(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    for (scope, text) in [(&petra, "quince"), (&jonas, "medlar")] {
        fixture.scope = scope.clone();
        fixture.put(private(message(PRIVATE, text))).await;
    }
    fixture.say("open", &["damson"]).await;
    let target = fixture.engine.folder().join("copy.db");
    fixture.store.back_up(&jonas, &target).await.answered();
    let copy = fixture.engine.open_copy(&target);
    let texts = async |scope: &Scope| {
        let found = copy.list(scope, &Filter::default(), None, 10).await.answered();
        let mut texts: Vec<String> = found.into_iter().map(|memory| memory.text).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&petra).await, ["damson"]);
    assert_eq!(texts(&jonas).await, ["damson", "medlar"]);
}
