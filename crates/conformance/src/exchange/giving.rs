//! Promises about the changes that a peer gets.

use super::peer::{LATER, all, everything, for_peer, forgotten_at, incoming, marked_at, taken};
use crate::fixture::{Answered, Fixture, commit, embedded, fact, message, note};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Visibility};
use tiro_store::decide::exchange;
use tiro_store::*;

/// Returns the ids of the changes, in order.
fn ids(changes: &[Change]) -> Vec<MemoryId> {
    changes.iter().map(|change| change.id.clone()).collect()
}

impl Fixture {
    /// Returns all changes for a peer.
    async fn given(&self, wanted: &WantedChanges) -> Vec<Change> {
        all(self.store.as_ref(), &self.scope, None, wanted).await
    }

    /// Returns the texts of all memories that a peer gets, in order.
    async fn given_texts(&self, wanted: &WantedChanges) -> Vec<String> {
        let contents = self.given(wanted).await.into_iter().filter_map(|change| change.content);
        contents.map(|content| content.memory.text).collect()
    }
}

pub async fn a_change_has_all_of_a_living_memory(fixture: Fixture) {
    let said = fixture.put(message("s", "maple")).await;
    let mut decided = embedded(note("larch"), [1.0, 0.0, 0.0, 0.0]);
    decided.draft.references = vec![said.clone()];
    decided.draft.title = Some("A title".into());
    let decided = fixture.put(decided).await;
    let mut later = note("oak");
    later.draft.supersedes = vec![decided.clone()];
    let later = fixture.put(later).await;
    fixture.put(commit('a', "one", 10)).await;
    let changes = fixture.given(&everything()).await;
    let content =
        |text: &str| changes.iter().filter_map(|it| it.content.clone()).find(|it| it.memory.text == text);
    let (maple, larch) = (content("maple").unwrap(), content("larch").unwrap());
    assert_eq!(maple.memory.session.map(|session| session.to_string()), Some("s".into()));
    assert_eq!((larch.memory.title.as_deref(), larch.references), (Some("A title"), vec![said]));
    assert_eq!((larch.superseded_by, content("oak").unwrap().supersedes), (vec![later], vec![decided]));
    let embedding = larch.chunks[0].embedding.clone().map(|(_, vector)| vector);
    assert_eq!(embedding, Some(vec![1.0, 0.0, 0.0, 0.0]));
    let one = content("one").unwrap();
    assert_eq!(one.commit.map(|commit| commit.sha), Some("a".repeat(40)));
}

pub async fn a_replacement_is_given_past_a_forgotten_one(fixture: Fixture) {
    let (first, second, third) = (note("maple"), note("willow"), note("larch"));
    let ids = [&first, &second, &third].map(|memory| memory.id.clone());
    fixture.put(first).await;
    for (mut newer, older) in [(second, &ids[0]), (third, &ids[1])] {
        newer.draft.supersedes = vec![older.clone()];
        fixture.put(newer).await;
    }
    // Its text never reaches a peer that asks only now.
    fixture.forget(&[&ids[1]], "f1").await;
    let changes = fixture.given(&everything()).await;
    let content = |id: &MemoryId| changes.iter().find(|it| it.id == *id).and_then(|it| it.content.clone());
    let (maple, larch) = (content(&ids[0]).unwrap(), content(&ids[2]).unwrap());
    assert!(larch.supersedes.contains(&ids[0]), "{:?}", larch.supersedes);
    assert!(maple.superseded_by.contains(&ids[2]), "{:?}", maple.superseded_by);
}

pub async fn a_forgotten_memory_is_given_without_its_text(fixture: Fixture) {
    let [forgotten, purged, living] = ["maple", "willow", "larch"].map(note);
    let ids = [&forgotten, &purged, &living].map(|memory| memory.id.clone());
    fixture.save(vec![forgotten, purged, living]).await;
    fixture.forget(&[&ids[0]], "f1").await;
    fixture.forget(&[&ids[1]], "f2").await;
    fixture.store.purge(&fixture.scope, "f2", 6).await.answered();
    let changes = fixture.given(&everything()).await;
    let find = |id: &MemoryId| changes.iter().find(|change| change.id == *id).expect("it is given");
    assert!(find(&ids[0]).state.is_forgotten && !find(&ids[0]).state.is_purged);
    assert!(find(&ids[1]).state.is_purged);
    assert!(find(&ids[0]).content.is_none() && find(&ids[1]).content.is_none());
    assert!(find(&ids[2]).content.is_some());
}

pub async fn changes_come_in_the_order_in_which_they_happened(fixture: Fixture) {
    let first = fixture.put(note("maple")).await;
    let second = fixture.put(note("willow")).await;
    assert_eq!(ids(&fixture.given(&everything()).await), [first.clone(), second.clone()]);
    fixture.store.mark(&fixture.scope, std::slice::from_ref(&first), true, Some(0.5)).await.answered();
    let changes = fixture.given(&everything()).await;
    assert_eq!(ids(&changes), [second, first]);
    assert!(changes[1].state.is_marked && changes[1].state.importance == Some(0.5));
    assert!(changes[0].number < changes[1].number && changes[1].state.marked_at > changes[0].state.marked_at);
}

pub async fn a_page_of_changes_goes_on_where_the_last_one_ended(fixture: Fixture) {
    let mut put = Vec::new();
    for text in ["maple", "willow", "larch", "oak", "elm"] {
        put.push(fixture.put(note(text)).await);
    }
    let (mut after, mut given) = (0, Vec::new());
    for _ in 0..9 {
        let page = fixture.store.changes(&fixture.scope, None, &everything(), after, 2).await.answered();
        given.extend(ids(&page.changes));
        after = page.next;
        if page.is_last {
            break;
        }
    }
    assert_eq!(given, put);
    let none = fixture.store.changes(&fixture.scope, None, &everything(), after, 2).await.answered();
    assert_eq!((none.changes.len(), none.next, none.is_last), (0, after, true));
    let last = fixture.put(note("ash")).await;
    let new = fixture.store.changes(&fixture.scope, None, &everything(), after, 2).await.answered();
    assert_eq!(ids(&new.changes), [last]);
}

pub async fn a_page_of_changes_has_no_more_than_the_limit(fixture: Fixture) {
    fixture.save(vec![note("maple"), note("willow"), note("larch")]).await;
    let page = fixture.store.changes(&fixture.scope, None, &everything(), 0, 2).await.answered();
    assert_eq!((page.changes.len(), page.is_last), (2, false));
}

pub async fn kinds_that_a_peer_does_not_want_stay(fixture: Fixture) {
    let said = fixture.put(message("s", "maple")).await;
    let mut decided = note("larch");
    decided.draft.references = vec![said];
    decided.draft.session = Some(crate::fixture::name("s"));
    fixture.put(decided).await;
    let wanted = WantedChanges { kinds: vec![Kind::Decision], ..everything() };
    let changes = fixture.given(&wanted).await;
    assert_eq!(changes.len(), 1);
    let content = changes[0].content.as_ref().unwrap();
    assert_eq!((content.references.len(), &content.memory.session), (0, &None));
    let page = fixture.store.changes(&fixture.scope, None, &wanted, 0, 9).await.answered();
    fixture.put(message("s", "willow")).await;
    let next = fixture.store.changes(&fixture.scope, None, &wanted, page.next, 9).await.answered();
    assert!(next.changes.is_empty() && next.next > page.next, "what isn't wanted is looked at once");
}

pub async fn each_store_makes_summaries_of_its_own(fixture: Fixture) {
    fixture.say("s", &["maple", "willow"]).await;
    fixture.summarise_session("s", "both", 1).await;
    let texts = fixture.given_texts(&everything()).await;
    assert_eq!(texts, ["maple", "willow"]);
}

pub async fn a_private_memory_is_given_to_its_author_alone(fixture: Fixture) {
    let petra = fixture.scope.read_by(AuthorId::new("petra"));
    let mut own = note("maple");
    own.draft.visibility = Some(Visibility::Private);
    fixture.store.save(&petra, vec![own], 1).await.answered();
    let with_private = WantedChanges { with_private: true, ..everything() };
    let store = fixture.store.as_ref();
    assert_eq!(all(store, &petra, None, &with_private).await.len(), 1);
    assert_eq!(all(store, &petra, None, &everything()).await.len(), 0);
    let others = [fixture.scope.clone(), fixture.scope.read_by(AuthorId::new("rolf")), fixture.stranger()];
    for other in &others {
        assert_eq!(all(store, other, None, &with_private).await.len(), 0, "{other:?}");
    }
}

pub async fn what_came_from_a_peer_is_not_given_back(fixture: Fixture) {
    let (ana, larch) = (AuthorId::new("ana"), note("larch"));
    let id = larch.id.clone();
    let come = incoming(larch, &ana, ExchangedState::default());
    let merge = |change: Incoming| {
        let rights = MergeRights::ALL;
        fixture.store.merge_changes(&fixture.scope, None, "laptop", rights, vec![change], 5)
    };
    assert_eq!(merge(come.clone()).await.answered(), [MergeOutcome::Stored]);
    assert_eq!(ids(&fixture.given(&for_peer("laptop")).await), []);
    assert_eq!(ids(&fixture.given(&for_peer("desk")).await), std::slice::from_ref(&id));
    let before = fixture.given(&everything()).await[0].number;
    assert_eq!(merge(come).await.answered(), [MergeOutcome::Known]);
    assert_eq!(fixture.given(&everything()).await[0].number, before, "the same again is no change");
}

pub async fn a_change_of_what_came_is_given_back(fixture: Fixture) {
    let (ana, larch) = (AuthorId::new("ana"), note("larch"));
    let id = larch.id.clone();
    let come = incoming(larch, &ana, ExchangedState::default());
    let rights = MergeRights::ALL;
    fixture.store.merge_changes(&fixture.scope, None, "laptop", rights, vec![come], 5).await.answered();
    fixture.store.mark(&fixture.scope, std::slice::from_ref(&id), true, None).await.answered();
    let given = fixture.given(&for_peer("laptop")).await;
    assert_eq!((ids(&given), given[0].state.is_marked), (vec![id], true));
    // If the peer lost what it said, it gets that back.
    let merge = |state| {
        let change = Incoming { state, content: None, ..taken(given[0].clone()) };
        fixture.store.merge_changes(&fixture.scope, None, "laptop", rights, vec![change], 5)
    };
    merge(marked_at(LATER)).await.answered();
    assert_eq!(fixture.given(&for_peer("laptop")).await.len(), 0);
    assert_eq!(merge(ExchangedState::default()).await.answered(), [MergeOutcome::Known]);
    assert_eq!(fixture.given(&for_peer("laptop")).await.len(), 1);
}

pub async fn what_was_given_out_under_another_id_is_recognised(fixture: Fixture) {
    let ana = AuthorId::new("ana");
    let said = fixture.put(message("auth", "maple")).await;
    let decided = fixture.put(fact("auth", "of maple", &[&said])).await;
    let made = fixture.put(commit('a', "one", 10)).await;
    let changes = all(fixture.store.as_ref(), &fixture.scope, Some(&ana), &everything()).await;
    let travelling = [(Kind::Message, &said), (Kind::Fact, &decided), (Kind::Commit, &made)]
        .map(|(kind, id)| exchange::exchange_id(&ana, kind, id));
    assert_eq!(ids(&changes), travelling);
    assert!(changes.iter().all(|change| change.author == ana));
    let content = changes[0].content.clone().unwrap();
    assert_eq!(content.memory.session.map(|session| session.to_string()), Some("ana/auth".into()));
    assert_eq!(changes[1].content.as_ref().unwrap().references, [travelling[0].clone()]);
    let back = Incoming { state: forgotten_at(LATER), content: None, ..taken(changes[0].clone()) };
    let merged =
        fixture.store.merge_changes(&fixture.scope, Some(&ana), "server", MergeRights::ALL, vec![back], 5);
    assert_eq!(merged.await.answered(), [MergeOutcome::Changed]);
    assert!(fixture.living(&said).await.is_none() && fixture.living(&made).await.is_some());
    assert!(fixture.living(&decided).await.is_none(), "what is derived from it is forgotten with it");
}

/// Two machines of a person extract the same from a session that both have. The machine on which it was said sends it.
pub async fn what_was_extracted_from_what_came_is_not_sent(fixture: Fixture) {
    let (ana, said) = (AuthorId::new("ana"), message("ana/auth", "maple"));
    let others = message("ben/auth", "willow");
    let come = [incoming(said, &ana, marked_at(7)), incoming(others, &AuthorId::new("ben"), marked_at(7))];
    let merged =
        fixture.store.merge_changes(&fixture.scope, Some(&ana), "server", MergeRights::ALL, come.to_vec(), 5);
    assert_eq!(merged.await.answered(), [MergeOutcome::Stored; 2]);
    let own = fixture.put(message("talk", "larch")).await;
    let listed = fixture.store.list(&fixture.scope, &Filter::default(), None, 9).await.answered();
    let id = |text: &str| listed.iter().find(|memory| memory.text == text).expect("it is here").id.clone();
    let names = [("of maple", id("maple")), ("of willow", id("willow")), ("of larch", own)];
    for (text, source) in &names {
        fixture.put(fact("talk", text, &[source])).await;
    }
    let changes = all(fixture.store.as_ref(), &fixture.scope, Some(&ana), &for_peer("server")).await;
    let given = changes.into_iter().filter_map(|change| change.content).map(|content| content.memory.text);
    assert_eq!(given.collect::<Vec<_>>(), ["larch", "of larch"]);
}
