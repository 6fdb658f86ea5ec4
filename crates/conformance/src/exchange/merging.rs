//! Promises about merging what changed in another store.

use super::peer::{LATER, all, alone, everything, for_peer, forgotten_at, incoming, marked_at};
use crate::fixture::{Answered, Fixture, commit, embedded, fact, message, name, note};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Visibility};
use tiro_store::decide::exchange;
use tiro_store::*;

impl Fixture {
    /// Merges changes of a peer that may change everything.
    async fn merge(&self, changes: Vec<Incoming>) -> Vec<MergeOutcome> {
        let merged = self.store.merge_changes(&self.scope, None, "laptop", MergeRights::ALL, changes, LATER);
        merged.await.answered()
    }
}

fn ana() -> AuthorId {
    AuthorId::new("ana")
}

pub async fn a_merged_memory_is_stored_with_all_of_it(fixture: Fixture) {
    let mut said = message("ana/auth", "maple");
    said.draft.time = 77;
    let id = said.id.clone();
    let mut change = incoming(said, &ana(), marked_at(7));
    change.state.importance = Some(0.5);
    change.content.as_mut().unwrap().ordinal = Some(4);
    let larch = embedded(note("larch"), [1.0, 0.0, 0.0, 0.0]);
    let changes = vec![change, incoming(larch, &ana(), ExchangedState::default())];
    assert_eq!(fixture.merge(changes).await, [MergeOutcome::Stored; 2]);
    let memory = fixture.living(&id).await.expect("it is stored");
    assert_eq!((memory.author, memory.time, memory.marked), (ana(), 77, true));
    assert_eq!((memory.importance, memory.ordinal), (Some(0.5), Some(4)));
    let session = memory.session.expect("it has a session");
    let rows = fixture.store.session_messages(&fixture.scope, &session, 0).await.answered();
    assert_eq!(rows[0].author, ana());
    assert_eq!((fixture.found("maple").await, fixture.found("larch").await), (1, 1));
    assert_eq!(fixture.near(&fixture.scope, &Filter::default(), [1.0, 0.0, 0.0, 0.0], 9).await, ["larch"]);
    let state = all(fixture.store.as_ref(), &fixture.scope, None, &everything()).await[0].state;
    assert_eq!(state, ExchangedState { importance: Some(0.5), ..marked_at(7) });
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

pub async fn a_message_that_comes_late_has_its_place(fixture: Fixture) {
    let placed = |text: &str, ordinal: i64| {
        let mut change = incoming(message("ana/auth", text), &ana(), ExchangedState::default());
        change.content.as_mut().unwrap().ordinal = Some(ordinal);
        change
    };
    // The first message was marked before it was sent, so that it comes after the others. The place of another one is
    // taken.
    let changes = vec![placed("larch", 1), placed("birch", 3), placed("maple", 0)];
    assert_eq!(fixture.merge(changes).await, [MergeOutcome::Stored; 3]);
    let changes = vec![placed("cedar", 3), placed("alder", 2)];
    assert_eq!(fixture.merge(changes).await, [MergeOutcome::Stored; 2]);
    let last = incoming(message("ana/auth", "aspen"), &ana(), ExchangedState::default());
    assert_eq!(fixture.merge(vec![last]).await, [MergeOutcome::Stored]);
    let rows = fixture.rows("ana/auth").await;
    assert_eq!(rows.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let texts = fixture.texts(rows.iter().map(|row| row.key).collect()).await;
    assert_eq!(texts, ["maple", "larch", "alder", "birch", "cedar", "aspen"]);
    // Two messages on either side are found with its words.
    assert_eq!((fixture.found("maple").await, fixture.found("alder").await), (3, 5));
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

pub async fn what_came_is_told_from_what_was_stored_here(fixture: Fixture) {
    let own = fixture.put(message("s", "maple")).await;
    let come = incoming(message("ana/auth", "larch"), &ana(), ExchangedState::default());
    let came = come.id.clone();
    assert_eq!(fixture.merge(vec![come]).await, [MergeOutcome::Stored]);
    let (mut keys, mut only) = (Vec::new(), Vec::new());
    for id in [&own, &came] {
        let key = fixture.living(id).await.expect("it is stored").key;
        keys.push(key);
        only.extend((*id == came).then_some(key));
    }
    let found = fixture.store.came_from_peers(&fixture.scope, keys).await.answered();
    assert_eq!(found, only);
    // What the peer extracted from its messages is not removed in order to be extracted again.
    let mut extracted = fact("ana/auth", "of larch", &[&came]);
    extracted.draft.author = Some(ana());
    let extracted = incoming(extracted, &ana(), ExchangedState::default());
    assert_eq!(fixture.merge(vec![extracted]).await, [MergeOutcome::Stored]);
    fixture.put(fact("s", "of maple", &[&own])).await;
    for (session, removed) in [("s", 1), ("ana/auth", 0)] {
        let found = fixture.store.remove_extracts(&fixture.scope, &name(session), 9).await.answered();
        assert_eq!(found, removed, "{session}");
    }
    assert!(fixture.listed(&Filter::default()).await.contains(&"of larch".to_owned()));
}

pub async fn the_later_of_two_marks_holds(fixture: Fixture) {
    let larch = note("larch");
    let id = fixture.put(larch.clone()).await;
    let owner = AuthorId::new(fixture.scope.reader.as_str());
    let unmarked = ExchangedState { is_marked: false, ..marked_at(LATER) };
    let early = alone(&larch, &owner, marked_at(7));
    assert_eq!(fixture.merge(vec![early.clone()]).await, [MergeOutcome::Changed]);
    assert!(fixture.living(&id).await.unwrap().marked);
    assert_eq!(fixture.merge(vec![alone(&larch, &owner, unmarked)]).await, [MergeOutcome::Changed]);
    assert_eq!(fixture.merge(vec![early]).await, [MergeOutcome::Known], "it is older");
    assert!(!fixture.living(&id).await.unwrap().marked);
    // What happens here afterwards is later, although the clock here is behind.
    fixture.store.mark(&fixture.scope, std::slice::from_ref(&id), true, None).await.answered();
    assert_eq!(fixture.merge(vec![alone(&larch, &owner, unmarked)]).await, [MergeOutcome::Known]);
    assert!(fixture.living(&id).await.unwrap().marked);
}

/// PostgreSQL can't store U+0000. What comes back has another character in its place, and is the same memory.
pub async fn a_character_that_a_store_cannot_store_makes_no_other_text(fixture: Fixture) {
    let [mut sent, mut back] = [note("larch"), note("larch")];
    (sent.draft.text, back.draft.text) = ("a\0larch".into(), "a\u{1a}larch".into());
    let id = fixture.put(sent.clone()).await;
    let owner = fixture.scope.reader.clone();
    let marked = incoming(back, &owner, marked_at(LATER));
    assert_eq!(fixture.merge(vec![marked]).await, [MergeOutcome::Changed]);
    assert!(fixture.living(&id).await.unwrap().marked);
    let again = incoming(sent, &owner, marked_at(LATER));
    assert_eq!(fixture.merge(vec![again]).await, [MergeOutcome::Known]);
    let mut made = commit('a', "one", 10);
    made.draft.commit.as_mut().unwrap().files = vec!["a\0b".into()];
    let others =
        vec![incoming(made, &ana(), ExchangedState::default()), incoming(note("oak"), &ana(), marked_at(7))];
    assert_eq!(fixture.merge(others).await, [MergeOutcome::Stored; 2]);
}

pub async fn a_merged_forgetting_forgets_what_is_derived_too(fixture: Fixture) {
    let said = message("s", "maple");
    let id = fixture.put(said.clone()).await;
    let derived = fixture.put(fact("s", "of maple", &[&id])).await;
    let owner = fixture.scope.reader.clone();
    let forgotten = alone(&said, &owner, forgotten_at(LATER));
    assert_eq!(fixture.merge(vec![forgotten]).await, [MergeOutcome::Changed]);
    assert!(fixture.living(&id).await.is_none() && fixture.living(&derived).await.is_none());
    assert_eq!(fixture.found("maple").await, 0);
    let again = fixture.save(vec![said.clone()]).await;
    assert_eq!(again.outcomes[0].1, Outcome::Forgotten);
    let undone = fixture.store.undo(&fixture.scope, None, 9).await;
    assert!(undone.is_err(), "it was not forgotten by an operation here");
    let back = ExchangedState { is_forgotten: false, ..forgotten_at(LATER + 1) };
    assert_eq!(fixture.merge(vec![alone(&said, &owner, back)]).await, [MergeOutcome::Changed]);
    assert!(fixture.living(&id).await.is_some());
    assert_eq!(fixture.found("maple").await, 1);
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

pub async fn a_merged_purge_removes_the_text_and_nothing_brings_it_back(fixture: Fixture) {
    let larch = note("a qwzxv");
    let id = fixture.put(larch.clone()).await;
    fixture.put(note("maple")).await;
    let owner = fixture.scope.reader.clone();
    let purged = ExchangedState { is_purged: true, ..ExchangedState::default() };
    assert_eq!(fixture.merge(vec![alone(&larch, &owner, purged)]).await, [MergeOutcome::Changed]);
    assert!(fixture.living(&id).await.is_none() && !fixture.engine.holds("qwzxv"));
    assert!(fixture.store.is_purged(&fixture.scope, &id).await.answered());
    let living = ExchangedState { is_forgotten: false, ..forgotten_at(LATER + 9) };
    let come = incoming(larch.clone(), &owner, living);
    assert_eq!(fixture.merge(vec![come]).await, [MergeOutcome::Purged]);
    assert_eq!(fixture.save(vec![larch]).await.outcomes[0].1, Outcome::Forgotten);
    assert_eq!(fixture.listed(&Filter::default()).await, ["maple"]);
    let changes = all(fixture.store.as_ref(), &fixture.scope, None, &everything()).await;
    assert!(changes.iter().any(|change| change.id == id && change.state.is_purged));
}

pub async fn a_state_that_comes_first_waits_for_its_memory(fixture: Fixture) {
    let [left, marked] = [note("maple"), note("larch")];
    let owner = fixture.scope.reader.clone();
    let states = vec![alone(&left, &owner, forgotten_at(LATER)), alone(&marked, &owner, marked_at(LATER))];
    assert_eq!(fixture.merge(states).await, [MergeOutcome::Remembered; 2]);
    assert!(fixture.listed(&Filter::default()).await.is_empty());
    assert_eq!(fixture.save(vec![left.clone()]).await.outcomes[0].1, Outcome::Forgotten);
    let contents = vec![
        incoming(left.clone(), &owner, ExchangedState::default()),
        incoming(marked.clone(), &owner, ExchangedState::default()),
    ];
    assert_eq!(fixture.merge(contents).await, [MergeOutcome::Stored; 2]);
    assert!(fixture.living(&left.id).await.is_none());
    assert!(fixture.living(&marked.id).await.expect("it is living").marked);
}

/// Two people who both imported a commit have the same id for it.
pub async fn nobody_else_removes_what_is_ones_own(fixture: Fixture) {
    let name = ana();
    let merge = |changes| {
        let rights = MergeRights::ALL;
        fixture.store.merge_changes(&fixture.scope, Some(&name), "server", rights, changes, LATER)
    };
    let purged = ExchangedState { is_purged: true, ..ExchangedState::default() };
    for (at, state) in [purged, forgotten_at(LATER)].into_iter().enumerate() {
        // It is stored before the change of the other one, and after it.
        let letters = [['a', 'b'], ['c', 'd']][at];
        let [first, later] = letters.map(|letter| commit(letter, "one", 10));
        fixture.put(first.clone()).await;
        let said = message("auth", &format!("maple {at}"));
        fixture.put(said.clone()).await;
        let sent = exchange::exchange_id(&name, Kind::Message, &said.id);
        let by = |id: &MemoryId| Incoming { id: id.clone(), ..alone(&first, &AuthorId::new("ben"), state) };
        let merged = merge(vec![by(&first.id), by(&sent), by(&later.id)]).await.answered();
        assert_eq!(merged, [MergeOutcome::Known; 3]);
        let come = incoming(first.clone(), &AuthorId::new("ben"), state);
        assert_ne!(merge(vec![come]).await.answered(), [MergeOutcome::Changed]);
        assert_eq!(fixture.save(vec![later.clone()]).await.outcomes[0].1, Outcome::Stored);
        for id in [&first.id, &said.id, &later.id] {
            assert!(fixture.living(id).await.is_some(), "{state:?}");
        }
        // The user forgets it on another machine, or an administrator does.
        assert_eq!(merge(vec![alone(&first, &name, state)]).await.answered(), [MergeOutcome::Changed]);
        assert!(fixture.living(&first.id).await.is_none());
    }
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

pub async fn what_others_say_of_a_memory_changes_nothing_of_it(fixture: Fixture) {
    let (older, newer, made) = (note("maple"), note("larch"), commit('a', "one", 10));
    let ids = [&older, &newer, &made].map(|memory| memory.id.clone());
    let own =
        [&older, &newer, &made].map(|memory| incoming(memory.clone(), &ana(), ExchangedState::default()));
    let rights = MergeRights { marks_others: false, forgets_others: false };
    let merge = |by: &'static str, changes| {
        let reader = fixture.scope.read_by(AuthorId::new(by));
        let store = fixture.store.clone();
        async move { store.merge_changes(&reader, None, by, rights, changes, 5).await.answered() }
    };
    assert_eq!(merge("ana", own.to_vec()).await, [MergeOutcome::Stored; 3]);
    let ben = AuthorId::new("ben");
    let mut replaced = incoming(older, &ben, ExchangedState::default());
    replaced.content.as_mut().unwrap().superseded_by = vec![ids[1].clone()];
    let again = incoming(made, &ben, ExchangedState::default());
    assert_eq!(merge("ben", vec![replaced, again]).await, [MergeOutcome::Known; 2]);
    let given = all(fixture.store.as_ref(), &fixture.scope.read_by(ana()), None, &everything()).await;
    for content in given.into_iter().filter_map(|change| change.content) {
        assert!(content.superseded_by.is_empty(), "{content:?}");
    }
}

pub async fn a_purge_counts_for_its_author(fixture: Fixture) {
    let made = commit('a', "one", 10);
    let purged = ExchangedState { is_purged: true, ..ExchangedState::default() };
    let merge = |by: &'static str, state| {
        let reader = fixture.scope.read_by(AuthorId::new(by));
        let change = incoming(made.clone(), &AuthorId::new(by), state);
        let (store, rights) =
            (fixture.store.clone(), MergeRights { marks_others: false, forgets_others: false });
        async move { store.merge_changes(&reader, None, by, rights, vec![change], 5).await.answered() }
    };
    assert_eq!(merge("ben", ExchangedState::default()).await, [MergeOutcome::Stored]);
    assert_eq!(merge("ben", purged).await, [MergeOutcome::Changed]);
    assert_eq!(merge("ben", ExchangedState::default()).await, [MergeOutcome::Purged]);
    assert_eq!(merge("ana", ExchangedState::default()).await, [MergeOutcome::Stored], "ana imported it, too");
    assert_eq!(merge("ana", ExchangedState::default()).await, [MergeOutcome::Known]);
    let living = fixture.store.list(&fixture.scope, &Filter::default(), None, 9).await.answered();
    assert_eq!(living.iter().map(|memory| &memory.author).collect::<Vec<_>>(), [&ana()]);
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

/// Somebody purged a commit, and somebody else has the same one: both come in one page.
pub async fn a_commit_comes_after_the_purge_of_anothers(fixture: Fixture) {
    let reader = fixture.scope.read_by(AuthorId::new("carl"));
    let made = commit('a', "one", 10);
    let by = |author: &'static str| incoming(made.clone(), &AuthorId::new(author), ExchangedState::default());
    let merge =
        |changes| fixture.store.merge_changes(&reader, None, "server", MergeRights::ALL, changes, LATER);
    assert_eq!(merge(vec![by("ben")]).await.answered(), [MergeOutcome::Stored]);
    let purged = ExchangedState { is_purged: true, ..forgotten_at(LATER) };
    let page = vec![alone(&made, &AuthorId::new("ben"), purged), by("ana")];
    assert_eq!(merge(page.clone()).await.answered(), [MergeOutcome::Changed, MergeOutcome::Stored]);
    assert_eq!(merge(page).await.answered(), [MergeOutcome::Known, MergeOutcome::Known]);
    // A mark of the purged one reaches the other one, which the peer may lack: the peer gets it.
    let mark = alone(&made, &AuthorId::new("ben"), marked_at(LATER));
    assert_eq!(merge(vec![mark]).await.answered(), [MergeOutcome::Changed]);
    let given = fixture.store.changes(&reader, None, &for_peer("server"), 0, 9).await.answered();
    let given = given.changes.iter().filter(|change| change.content.is_some());
    assert_eq!(given.map(|change| &change.author).collect::<Vec<_>>(), [&ana()]);
}

/// What is remembered of a memory that its author never sent doesn't hide what somebody else sent under its id.
pub async fn what_is_here_counts_before_what_is_remembered(fixture: Fixture) {
    let reader = fixture.scope.read_by(ana());
    let made = commit('a', "one", 10);
    let private = |change| Incoming { visibility: Visibility::Private, ..change };
    let merge =
        |changes| fixture.store.merge_changes(&reader, None, "laptop", MergeRights::ALL, changes, LATER);
    let left = private(alone(&made, &ana(), forgotten_at(LATER)));
    assert_eq!(merge(vec![left]).await.answered(), [MergeOutcome::Remembered]);
    fixture.put(made.clone()).await;
    assert_eq!(merge(vec![alone(&made, &ana(), marked_at(LATER))]).await.answered(), [MergeOutcome::Changed]);
    let back = incoming(made.clone(), &ana(), marked_at(LATER));
    assert_eq!(merge(vec![back]).await.answered(), [MergeOutcome::Known]);
    assert!(fixture.living(&made.id).await.expect("it is here").marked);
    assert_eq!(fixture.listed(&Filter::default()).await.len(), 1);
}

pub async fn another_text_under_an_id_is_reported_and_not_stored(fixture: Fixture) {
    let larch = note("larch");
    let id = fixture.put(larch.clone()).await;
    let mut other = incoming(larch, &fixture.scope.reader.clone(), forgotten_at(LATER));
    let text = &mut other.content.as_mut().unwrap().memory;
    text.draft.text = "maple".into();
    assert_eq!(fixture.merge(vec![other]).await, [MergeOutcome::Conflict]);
    assert_eq!(fixture.living(&id).await.expect("nothing changed").text, "larch");
    // So is the same commit under another id: a commit has its full id once.
    let made = commit('a', "one", 10);
    let again = || PreparedMemory { id: MemoryId::derive(Kind::Commit, None, "again"), ..made.clone() };
    let [first, other] = [made.clone(), again()].map(|it| incoming(it, &ana(), ExchangedState::default()));
    let merged = fixture.merge(vec![first, other]).await;
    assert_eq!(merged, [MergeOutcome::Stored, MergeOutcome::Conflict]);
    let later = incoming(again(), &ana(), ExchangedState::default());
    assert_eq!(fixture.merge(vec![later]).await, [MergeOutcome::Conflict]);
    assert!(fixture.store.check(&fixture.scope).await.answered().is_sound());
}

pub async fn others_memories_are_changed_only_with_a_right(fixture: Fixture) {
    let larch = note("larch");
    let id = fixture.put(larch.clone()).await;
    let reader = fixture.scope.read_by(ana());
    let owner = fixture.scope.reader.clone();
    let change =
        ExchangedState { is_marked: true, marked_at: marked_at(LATER).marked_at, ..forgotten_at(LATER) };
    let merge =
        |rights, changes| fixture.store.merge_changes(&reader, None, "laptop", rights, changes, LATER);
    let none = MergeRights { marks_others: false, forgets_others: false };
    // The author that is named doesn't count: the store knows the author.
    for author in [&owner, &ana()] {
        let refused = merge(none, vec![alone(&larch, author, change)]).await.answered();
        assert_eq!(refused, [MergeOutcome::Refused]);
    }
    let memory = fixture.living(&id).await.expect("it isn't forgotten");
    assert!(!memory.marked);
    let marks = MergeRights { marks_others: true, forgets_others: false };
    assert_eq!(merge(marks, vec![alone(&larch, &owner, change)]).await.answered(), [MergeOutcome::Refused]);
    assert!(fixture.living(&id).await.expect("it isn't forgotten").marked, "what is allowed was merged");
    let forged = incoming(note("maple"), &owner, ExchangedState::default());
    assert_eq!(merge(none, vec![forged]).await.answered(), [MergeOutcome::Refused]);
    let own = incoming(note("oak"), &ana(), ExchangedState::default());
    assert_eq!(merge(none, vec![own]).await.answered(), [MergeOutcome::Stored]);
}

pub async fn what_a_peer_keeps_private_stays_with_its_author(fixture: Fixture) {
    let reader = fixture.scope.read_by(ana());
    let private = |author: &AuthorId, text: &str| Incoming {
        visibility: Visibility::Private,
        ..incoming(note(text), author, ExchangedState::default())
    };
    let changes = vec![private(&ana(), "maple"), private(&AuthorId::new("rolf"), "larch")];
    let merged = fixture.store.merge_changes(&reader, None, "laptop", MergeRights::ALL, changes, 5);
    assert_eq!(merged.await.answered(), [MergeOutcome::Stored, MergeOutcome::Refused]);
    assert!(fixture.listed(&Filter::default()).await.is_empty());
    let own = fixture.store.list(&reader, &Filter::default(), None, 9).await.answered();
    assert_eq!(own.len(), 1);
}

/// The first private memory of an author makes the author's private part of the store.
pub async fn what_the_first_private_memories_replaced_is_kept(fixture: Fixture) {
    let reader = fixture.scope.read_by(ana());
    let (older, mut newer) = (note("maple"), note("larch"));
    newer.draft.supersedes = vec![older.id.clone()];
    let id = older.id.clone();
    let private = |memory| Incoming {
        visibility: Visibility::Private,
        ..incoming(memory, &ana(), ExchangedState::default())
    };
    let changes = vec![private(older), private(newer)];
    let merged = fixture.store.merge_changes(&reader, None, "laptop", MergeRights::ALL, changes, 5);
    assert_eq!(merged.await.answered(), [MergeOutcome::Stored; 2]);
    let with_private = WantedChanges { with_private: true, ..everything() };
    let given = all(fixture.store.as_ref(), &reader, None, &with_private).await;
    let contents = given.into_iter().filter_map(|change| change.content);
    let replaced: Vec<_> = contents.flat_map(|content| content.supersedes).collect();
    assert_eq!(replaced, [id]);
}

pub async fn an_id_of_somebody_else_is_not_mistaken_for_ones_own(fixture: Fixture) {
    let said = message("auth", "maple");
    let own = fixture.put(said.clone()).await;
    let mut others = message("auth", "maple");
    others.draft.text = "cedar".into();
    others.draft.session = Some(name("team/auth"));
    let merge = |changes| {
        fixture.store.merge_changes(&fixture.scope, Some(&NAME), "server", MergeRights::ALL, changes, 5)
    };
    static NAME: std::sync::LazyLock<AuthorId> = std::sync::LazyLock::new(ana);
    let come = incoming(others, &AuthorId::new("team"), ExchangedState::default());
    assert_eq!(merge(vec![come]).await.answered(), [MergeOutcome::Stored]);
    assert_eq!(fixture.living(&own).await.expect("it stays").text, "maple");
    assert_eq!((fixture.found("maple").await, fixture.found("cedar").await), (1, 1));
    let gone = alone(&said, &AuthorId::new("team"), forgotten_at(LATER));
    assert_eq!(merge(vec![gone]).await.answered(), [MergeOutcome::Changed]);
    assert_eq!((fixture.found("maple").await, fixture.found("cedar").await), (1, 0));
}
