//! Stores that exchange their memories become equal, in whatever order the exchange goes, even if parts of it are lost or
//! repeated.
//!
//! The first store is a server with two readers; each of the others is the store of one of them. All change memories at
//! random. In the end, each exchanges everything with the server, and then they are compared.
//!
//! A commit that both readers import has one id, and belongs to each of them: what the other one forgets stays.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::peer::{all, everything, for_peer, taken};
use crate::fixture::{Answered, commit, note};
use crate::subject::project;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Scope, TenantId};
use tiro_store::decide::exchange::id_beside;
use tiro_store::*;

/// The stores of a run, and what has to live as long as they do.
pub type Stores = (Vec<Arc<dyn Store>>, Box<dyn Any>);

/// A step of a history. Places are numbers of stores.
#[derive(Clone, Debug)]
enum Step {
    /// Stores a note that only this store makes, or a commit that several may make.
    Put(usize, u8, bool),
    Mark(usize, u8, bool, Option<u8>),
    Forget(usize, u8),
    Undo(usize),
    Purge(usize, u8),
    /// A client and the server exchange a page: in which direction, and whether it is lost on the way.
    Exchange(usize, bool, bool),
    /// A page comes again.
    Repeat(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let store = 0..3_usize;
    let client = 1..3_usize;
    prop_oneof![
        4 => (store.clone(), 0..6_u8, any::<bool>()).prop_map(|(at, n, is_commit)| Step::Put(at, n, is_commit)),
        3 => (store.clone(), any::<u8>(), any::<bool>(), proptest::option::of(0..3_u8))
            .prop_map(|(at, n, marked, importance)| Step::Mark(at, n, marked, importance)),
        3 => (store.clone(), any::<u8>()).prop_map(|(at, n)| Step::Forget(at, n)),
        2 => store.clone().prop_map(Step::Undo),
        1 => (store, any::<u8>()).prop_map(|(at, n)| Step::Purge(at, n)),
        7 => (client, any::<bool>(), proptest::bool::weighted(0.2))
            .prop_map(|(client, is_up, is_lost)| Step::Exchange(client, is_up, is_lost)),
        1 => any::<u8>().prop_map(Step::Repeat),
    ]
}

/// A page on its way: between which client and the server, in which direction, and the changes.
#[derive(Clone)]
struct Page {
    client: usize,
    is_up: bool,
    changes: Vec<Incoming>,
}

/// What a store has of a memory.
#[derive(Clone, Debug, PartialEq)]
struct Had {
    is_commit: bool,
    state: ExchangedState,
}

/// What a store has, by the ids under which the memories travel. Several people may have the same commit.
type Content = BTreeMap<(MemoryId, AuthorId), Had>;

/// A run of a history.
struct Run {
    stores: Vec<Arc<dyn Store>>,
    /// How far each client has read, up and down.
    cursors: BTreeMap<(usize, bool), i64>,
    pages: Vec<Page>,
    operations: usize,
}

/// Returns the name by which the server knows the user of a client.
fn name(client: usize) -> AuthorId {
    AuthorId::new(["team", "ana", "bob"][client])
}

/// Returns the scope in which a user works in the user's own store. The first store is the server's.
fn scope(store: usize) -> Scope {
    Scope::own(TenantId::new(["team", "ines", "bob"][store]), project())
}

/// Returns the scope in which the server works for a client.
fn served(client: usize) -> Scope {
    scope(0).read_by(name(client))
}

impl Run {
    async fn step(&mut self, step: &Step) {
        self.operations += 1;
        let operation = format!("f{:04}", self.operations);
        match *step {
            Step::Put(at, n, is_commit) => {
                let memory = match is_commit {
                    true => commit(char::from(b'a' + n), &format!("commit {n}"), 10),
                    false => note(&format!("note {n} of store {at}")),
                };
                self.stores[at].save(&scope(at), vec![memory], 1).await.answered();
            }
            Step::Mark(at, n, marked, importance) => {
                let importance = importance.map(|importance| f64::from(importance) / 2.0);
                if let Some(id) = self.nth(at, n).await {
                    self.stores[at].mark(&scope(at), &[id], marked, importance).await.answered();
                }
            }
            Step::Forget(at, n) | Step::Purge(at, n) => {
                let Some(id) = self.nth(at, n).await else { return };
                let (store, scope) = (&self.stores[at], scope(at));
                store.forget(&scope, &Selection::Ids(vec![id]), &operation, 5).await.answered();
                if matches!(step, Step::Purge(..)) {
                    store.purge(&scope, &operation, 6).await.answered();
                }
            }
            Step::Undo(at) => drop(self.stores[at].undo(&scope(at), None, i64::MAX).await),
            Step::Exchange(client, is_up, is_lost) => {
                let after = self.cursors.get(&(client, is_up)).copied().unwrap_or(0);
                let (page, next) = self.page(client, is_up, after, 3).await;
                self.cursors.insert((client, is_up), next);
                if !is_lost {
                    self.merge(&page).await;
                    self.pages.push(page);
                }
            }
            Step::Repeat(n) => {
                if let Some(page) = self.pages.get(usize::from(n) % self.pages.len().max(1)) {
                    self.merge(&page.clone()).await;
                }
            }
        }
    }

    /// Returns the id of a living memory of a store.
    async fn nth(&self, at: usize, n: u8) -> Option<MemoryId> {
        let living = self.stores[at].list(&scope(at), &Filter::default(), None, 100).await.answered();
        let count = living.len().max(1);
        living.into_iter().nth(usize::from(n) % count).map(|memory| memory.id)
    }

    /// Returns the changes of a client for the server, or of the server for a client, and the next cursor.
    async fn page(&self, client: usize, is_up: bool, after: i64, limit: usize) -> (Page, i64) {
        let page = match is_up {
            true => {
                let (store, name) = (&self.stores[client], name(client));
                store.changes(&scope(client), Some(&name), &for_peer("server"), after, limit).await
            }
            false => {
                let peer = for_peer(&format!("client {client}"));
                self.stores[0].changes(&served(client), None, &peer, after, limit).await
            }
        };
        let page = page.answered();
        let changes = page.changes.into_iter().map(taken).collect();
        (Page { client, is_up, changes }, page.next)
    }

    async fn merge(&self, Page { client, is_up, changes }: &Page) {
        let (client, changes) = (*client, changes.clone());
        let rights = MergeRights::ALL;
        let merged = match is_up {
            true => {
                let peer = format!("client {client}");
                self.stores[0].merge_changes(&served(client), None, &peer, rights, changes, 5).await
            }
            false => {
                let (store, name) = (&self.stores[client], name(client));
                store.merge_changes(&scope(client), Some(&name), "server", rights, changes, 5).await
            }
        };
        let outcomes = merged.answered();
        assert!(!outcomes.contains(&MergeOutcome::Refused), "{outcomes:?}");
        assert!(!outcomes.contains(&MergeOutcome::Conflict), "{outcomes:?}");
    }

    /// Exchanges everything between the clients and the server until nothing changes any more.
    async fn exchange_all(&self) {
        for _ in 0..3 {
            for client in 1..self.stores.len() {
                for is_up in [true, false] {
                    let mut after = 0;
                    loop {
                        let (page, next) = self.page(client, is_up, after, 100).await;
                        let count = page.changes.len();
                        self.merge(&page).await;
                        if count < 100 {
                            break;
                        }
                        after = next;
                    }
                }
            }
        }
    }

    /// Returns what a store has.
    async fn content(&self, at: usize) -> Content {
        let name = (at > 0).then(|| name(at));
        let changes = all(self.stores[at].as_ref(), &scope(at), name.as_ref(), &everything()).await;
        let had = |change: Change| {
            let Change { id, kind, author, state, .. } = change;
            ((id, author), Had { is_commit: kind == Kind::Commit, state })
        };
        changes.into_iter().map(had).collect()
    }

    /// Returns the texts of a store's living memories except those of `without`.
    async fn texts(&self, at: usize, without: &BTreeSet<MemoryId>) -> BTreeSet<String> {
        let living = self.stores[at].list(&scope(at), &Filter::default(), None, 1000).await.answered();
        let listed = living.into_iter().filter(|memory| !without.contains(&memory.id));
        listed.map(|memory| memory.text).collect()
    }

    /// Asserts that a client has what the server has. If somebody else sent the commit of the client's user first, each of
    /// the two has their own, and only the marks are the same.
    async fn assert_equal(&self, client: usize) {
        let (mut has, mut served) = (self.content(client).await, self.content(0).await);
        let (user, mut apart) = (name(client), BTreeSet::new());
        for ((id, _), own) in has.iter().filter(|((_, author), own)| own.is_commit && *author == user) {
            let is_anothers = |(other, author): &(MemoryId, AuthorId)| other == id && *author != user;
            let others = served.iter().filter(|(key, _)| is_anothers(key));
            for (_, other) in others.filter(|(_, other)| !other.state.is_purged) {
                let marks = |had: &Had| (had.state.is_marked, had.state.importance, had.state.marked_at);
                let are_living = own.state.is_living() && other.state.is_living();
                assert!(!are_living || marks(own) == marks(other), "{own:?} {other:?}");
                // The server has the commit under another id if this user purged it first.
                apart.extend([id.clone(), id_beside(Kind::Commit, id)]);
            }
        }
        // Nobody is told that a memory was forgotten or purged which wasn't here.
        let left = |one: &Content, other: &Content| {
            let counts = |(key, had): &(&(MemoryId, AuthorId), &Had)| {
                let is_told = had.state.is_living() || (other.contains_key(*key) && !had.state.is_purged);
                is_told && !apart.contains(&key.0)
            };
            one.iter().filter(counts).map(|(key, had)| (key.clone(), had.clone())).collect::<Content>()
        };
        (has, served) = (left(&has, &served), left(&served, &has));
        assert_eq!(has, served, "states of client {client}");
        let texts = (self.texts(client, &apart).await, self.texts(0, &apart).await);
        assert_eq!(texts.0, texts.1, "texts of client {client}");
    }
}

async fn become_equal(stores: Vec<Arc<dyn Store>>, steps: Vec<Step>) {
    let mut run = Run { stores, cursors: BTreeMap::new(), pages: Vec::new(), operations: 0 };
    for step in &steps {
        run.step(step).await;
    }
    run.exchange_all().await;
    for client in 1..run.stores.len() {
        run.assert_equal(client).await;
    }
    for (at, store) in run.stores.iter().enumerate() {
        let check = store.check(&scope(at)).await.answered();
        assert!(check.is_sound(), "{check:?}");
        let before = run.content(at).await;
        run.exchange_all().await;
        assert_eq!(run.content(at).await, before, "there is nothing left to exchange");
    }
}

/// Draws histories until one leaves stores that differ, and returns the message of its panic as an error.
fn histories(config: Config, stores: &dyn Fn() -> Stores) -> Result<(), String> {
    let mut runner = TestRunner::new(Config { source_file: Some(file!()), ..config });
    let kept = runner.run(&prop::collection::vec(step(), 1..40), |steps| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (stores, _kept) = stores();
        let run = catch_unwind(AssertUnwindSafe(|| runtime.block_on(become_equal(stores, steps))));
        run.map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            TestCaseError::fail(text.unwrap_or_default())
        })
    });
    kept.map_err(|failure| format!("{failure}"))
}

/// Returns histories that once left stores that differ.
fn kept() -> Vec<Vec<Step>> {
    use Step::{Exchange, Forget, Mark, Purge, Put};
    vec![
        // Somebody sends a commit that somebody else purged on the server, and the news of the purge come twice.
        vec![Put(0, 2, true), Purge(0, 0), Put(1, 2, true), Put(0, 3, false), Exchange(1, true, false)],
        // A purged commit was marked, and somebody else has the same commit.
        vec![Put(0, 3, true), Put(2, 3, true), Mark(0, 0, true, None), Purge(0, 0)],
        // The server purged somebody's commit, and remembers that somebody else forgot the same one.
        vec![Put(1, 3, true), Forget(1, 0), Put(2, 3, true), Exchange(2, true, false), Purge(0, 0)],
        // Somebody sends a mark together with a purge.
        vec![
            Put(2, 0, false),
            Exchange(2, true, false),
            Put(0, 0, false),
            Mark(2, 0, false, Some(0)),
            Purge(2, 0),
        ],
        // The server purged a commit and has it from somebody else when the mark of the first one arrives.
        vec![
            Put(0, 5, true),
            Exchange(2, false, false),
            Purge(0, 0),
            Mark(2, 0, true, None),
            Put(1, 5, true),
        ],
        // The news that a commit is purged come together with the same commit of somebody else.
        vec![Put(0, 5, true), Exchange(2, false, false), Purge(0, 0), Put(1, 5, true)],
        // Somebody purges a note, and the news that the server has forgotten it come after that.
        vec![
            Put(0, 0, false),
            Put(1, 0, false),
            Exchange(1, true, false),
            Forget(0, 50),
            Purge(1, 0),
            Exchange(1, false, false),
            Put(0, 0, false),
        ],
    ]
}

/// Asserts that stores become equal after any history. The function returns a server's store and those of two clients.
pub fn stores_become_equal(cases: u32, stores: &dyn Fn() -> Stores) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for steps in kept() {
        let (stores, _kept) = stores();
        runtime.block_on(become_equal(stores, steps));
    }
    /// The number of cases that proptest draws unless `PROPTEST_CASES` says another one.
    const USUAL: u32 = 256;
    let asked = Config::default().cases;
    let cases = if asked == USUAL { cases } else { asked };
    if let Err(message) = histories(Config::with_cases(cases), stores) {
        panic!("{message}");
    }
}

/// Asserts that some history leaves stores that differ, one of which has a fault.
pub fn stores_with_a_fault_differ(stores: &dyn Fn() -> Stores) {
    // Failing histories of a broken store are not recorded as regressions.
    let config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::with_cases(200) };
    histories(config, stores).expect_err("the fault goes unseen");
}
