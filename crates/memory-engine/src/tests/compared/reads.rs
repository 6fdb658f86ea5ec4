//! Everything that is read of both engines after each step.

use std::collections::{BTreeMap, BTreeSet};

use super::steps::{SESSIONS, Side, WORDS, World};
use super::{Reads, shown};
use tiro_base::error::Result;
use tiro_base::filter::{Expiry, Filter, Stash};
use tiro_base::memory::{Content, Group, Kind, Memory, MemoryKey, Millis};
use tiro_base::scope::Scope;
use tiro_conformance::fixture::{SPACE, by_meaning, by_words, name};
use tiro_conformance::threads::thread;
use tiro_store::*;

/// Adds the answer of each method under its name.
macro_rules! read {
    ($reads:ident, $side:ident, $scope:expr, $($name:ident($($argument:expr),*);)+) => {
        $($reads.insert(stringify!($name($($argument),*)).to_owned(), shown($side.place.store.$name($scope $(, $argument)*).await));)+
    };
}

impl Side {
    /// Reads whatever can be read.
    pub async fn reads(&self, world: &World) -> Reads {
        let mut reads = Reads::new();
        self.read_memories(&mut reads, world).await;
        self.read_searches(&mut reads, world).await;
        self.read_commits(&mut reads, world).await;
        self.read_rest(&mut reads, world).await;
        for session in SESSIONS {
            let mut of_session = Reads::new();
            self.read_session(&mut of_session, session, world).await;
            reads.extend(of_session.into_iter().map(|(name, read)| (format!("{session}: {name}"), read)));
        }
        reads
    }

    async fn read_memories(&self, reads: &mut Reads, world: &World) {
        let (store, scope) = (&self.place.store, &self.place.scope);
        for (number, filter) in filters(world).into_iter().enumerate() {
            for sessions in [None, Some("s"), Some("u")] {
                let scope = sessions.map_or_else(|| scope.clone(), |session| self.place.only(&[session]));
                let listed = store.list(&scope, &filter, None, 99).await;
                let listed = listed.map(|all| all.into_iter().map(without_key).collect::<Vec<_>>());
                reads.insert(format!("list by {number} of {sessions:?}"), shown(listed));
            }
        }
        let keys = self.keys(world).await;
        for key in &keys {
            let id = self.names(&[*key]).await;
            for (what, found) in [
                ("references", store.references(scope, *key).await),
                ("refers to", store.refers_to(scope, *key).await),
                ("supersedes", store.supersedes(scope, *key).await),
            ] {
                let names = self.names(&found.unwrap_or_default()).await;
                reads.insert(format!("{what} of {id:?}"), format!("{names:?}"));
            }
        }
        let chunks = store.chunks_of(scope, keys.clone()).await;
        let chunks = chunks.map(|all| {
            all.iter().map(|(_, chunk)| (chunk.start, chunk.end, chunk.tokens)).collect::<Vec<_>>()
        });
        reads.insert("chunks".into(), shown(chunks));
        let checked = store.checked_texts(scope, keys.clone()).await;
        let checked = checked
            .map(|all| all.into_iter().map(|(_, text, is_damaged)| (text, is_damaged)).collect::<Vec<_>>());
        reads.insert("checked texts".into(), shown(checked));
        let beside = store.beside(scope, keys.clone(), None).await.map(|(beside, _)| beside);
        reads.insert(
            "beside".into(),
            shown(beside.map(|all| all.into_iter().map(without_key).collect::<Vec<_>>())),
        );
        let query = ReplacementQuery { memories: keys, with_statements: true, ..ReplacementQuery::default() };
        let replacements = store.replacements(scope, query).await.unwrap_or_default();
        let places: Vec<_> = replacements.places.iter().map(placed).collect();
        reads.insert("places of what holds".into(), format!("{places:?}"));
        let superseded = replacements.superseded;
        let mut replaced = Vec::new();
        for one in superseded {
            let memory = self.names(&[one.memory]).await;
            replaced.push((
                memory,
                one.statement,
                one.words,
                one.by,
                one.by_time,
                one.by_ordinal,
                one.by_statement,
            ));
        }
        reads.insert("superseded".into(), format!("{replaced:?}"));
        let mut stated = Vec::new();
        for one in replacements.statements {
            let memory = self.names(&[one.memory]).await;
            stated.push((memory, one.number, one.value, one.time, one.subject.is_some()));
        }
        reads.insert("statements".into(), format!("{stated:?}"));
        // Under an operation that was undone, SQLite still counts extracts that were removed later.
        let operations = store.operations(scope, 99).await.map(|mut all| {
            all.iter_mut().filter(|operation| operation.undone).for_each(|operation| operation.memories = 0);
            all
        });
        reads.insert("operations".into(), shown(operations));
        let all = Selection::Ids(world.ids.clone());
        read!(reads, self, scope,
            selected(&all, Reach::Living);
            selected(&all, Reach::Forgotten);
            undoable(None);
            forgotten_with(vec!["maple".to_owned()], 2);
        );
    }

    async fn read_searches(&self, reads: &mut Reads, world: &World) {
        let (store, scope) = (&self.place.store, &self.place.scope);
        let within = Filter { stash: Some(Stash::Only), ..Filter::default() };
        for filter in [Filter::default(), within] {
            let (all, notes) = (filter.groups(), vec![Group::Note]);
            for (word, groups) in WORDS.iter().flat_map(|word| [(word, &all), (word, &notes)]) {
                let query = by_words(&filter, &[*word], 99);
                let query = CandidateQuery { groups: groups.clone(), ..query };
                let candidates = async |query| {
                    let found = store.candidates(scope, query).await.expect("the scope is of the store");
                    (found.words.unwrap_or_default().0, found.places.unwrap_or_default())
                };
                let (found, places) = candidates(query.clone()).await;
                let weights = Some(Vocabulary { documents: 50, counts: vec![3] });
                let (as_other, more) = candidates(CandidateQuery { weights, ..query }).await;
                let places: Vec<Neighbour> = places.into_iter().chain(more).collect();
                let mut words = Vec::new();
                // SQLite doesn't index a message again if the messages between it and a new one are forgotten.
                let compared =
                    |one: &&LexicalCandidate| !world.has_forgotten() || one.group != Group::Message;
                // SQLite returns long answers also where no messages are asked for.
                let is_asked_for = |one: &&LexicalCandidate| groups.contains(&one.group);
                for one in found.iter().chain(&as_other).filter(compared).filter(is_asked_for) {
                    let score = if world.is_whole { format!("{:.6}", one.score) } else { String::new() };
                    let place = places.iter().find(|place| place.key == one.memory).map(placed);
                    let name = self.names(&[one.memory]).await;
                    words.push((name, one.group, one.is_answer, score, format!("{place:?}")));
                }
                words.sort();
                reads.insert(
                    format!("lexical of {word} in {groups:?} of {:?}", filter.stash),
                    format!("{words:?}"),
                );
            }
            for groups in [filter.groups(), vec![Group::Note]] {
                let query = by_meaning(&filter, SPACE, &[1.0, 0.0, 0.0, 0.0], 99);
                let query = CandidateQuery { groups: groups.clone(), ..query };
                let found = store.candidates(scope, query).await.expect("the scope is of the store");
                let near = found.near.unwrap_or_default();
                let mut names = self.names(&near.iter().map(|one| one.memory).collect::<Vec<_>>()).await;
                names.sort();
                let cosines = found.cosines.into_iter().flat_map(Result::unwrap_or_default);
                let mut cosines: Vec<String> = cosines.map(|(_, cosine)| format!("{cosine:.3}")).collect();
                cosines.sort();
                reads.insert(
                    format!("dense of {groups:?} in {:?}", filter.stash),
                    format!("{names:?} {cosines:?}"),
                );
            }
        }
        let pending = store.pending_chunks(scope, None, 99).await.unwrap_or_default();
        let pending: Vec<_> =
            pending.into_iter().map(|it| (it.memory, it.text, it.session, it.time)).collect();
        reads.insert("pending chunks".into(), format!("{pending:?}"));
        let code = store.pending_chunks(scope, Some(Content::Code), 99).await;
        reads.insert("pending code".into(), shown(code.map(|all| all.len())));
    }

    async fn read_commits(&self, reads: &mut Reads, world: &World) {
        let (store, scope) = (&self.place.store, &self.place.scope);
        let made = store.commits_made(scope, (0, None), Millis::MAX, 99).await.unwrap_or_default();
        let keys: Vec<MemoryKey> = made.iter().map(|row| row.key).collect();
        let rows: Vec<_> =
            made.into_iter().map(|row| (row.time, row.shas, row.parents, row.files, row.message)).collect();
        reads.insert("commits made".into(), format!("{rows:?}"));
        let names = self.names(&keys).await;
        let behind = store.sessions_behind(scope, keys.clone()).await;
        reads.insert(format!("sessions behind {names:?}"), shown(behind));
        let authors = store.commit_authors(scope, None, 99).await.unwrap_or_default();
        let authors: Vec<_> = authors.into_iter().map(|row| (row.sha, row.author)).collect();
        reads.insert("commit authors".into(), format!("{authors:?}"));
        let query = ReplacementQuery { commits: keys.clone(), ..ReplacementQuery::default() };
        let replacements = store.replacements(scope, query).await.unwrap_or_default();
        let stand_ins = replacements.stand_ins.into_iter().flat_map(|(old, (by, _))| [old, by]);
        let stand_ins: Vec<MemoryKey> = stand_ins.collect();
        reads.insert("stand-ins".into(), format!("{:?}", self.names(&stand_ins).await));
        let replaced = store.replaced_commits(scope).await.unwrap_or_default();
        let replaced: BTreeSet<String> = replaced.into_iter().map(|(_, sha)| sha).collect();
        reads.insert("replaced commits".into(), format!("{replaced:?}"));
        let bare = store.commits_without_summary(scope, 99).await.unwrap_or_default();
        reads.insert("commits without summary".into(), format!("{:?}", self.names(&bare).await));
        let known: Result<BTreeSet<String>> =
            store.known_commits(scope).await.map(|all| all.into_iter().collect());
        reads.insert("known commits".into(), shown(known));
        let writes = store.file_writes(scope, 0, Millis::MAX).await.unwrap_or_default();
        let writes: Vec<_> = writes.into_iter().map(|row| (row.time, row.path)).collect();
        reads.insert("file writes".into(), format!("{writes:?}"));
        let calls = store.commit_calls(scope, 0, Millis::MAX).await.unwrap_or_default();
        let calls: Vec<_> = calls.into_iter().map(|row| (row.began, row.ended, row.sha)).collect();
        reads.insert("commit calls".into(), format!("{calls:?}"));
        let places = vec![("main".to_owned(), world.now)];
        read!(reads, self, scope, first_evidence(); commits_before(places.clone()););
    }

    async fn read_rest(&self, reads: &mut Reads, world: &World) {
        let (store, scope, now) = (&self.place.store, &self.place.scope, world.now);
        let page = StashPage { filter: Filter::default(), offset: 0, groups: 9, ids: 9 };
        let names = || SESSIONS.map(name).to_vec();
        let all = &Filter::default();
        read!(reads, self, scope,
            sessions(0, 99);
            about_sessions(names());
            sizes();
            is_empty();
            summary_counts();
            queue_counts();
            is_queue_due(now);
            paces("lab".to_owned(), "m1".to_owned(), 3);
            is_leased("work 1");
            newest();
            due_conversations(now, 9);
            cache_stats();
            expired(now, now - 50);
            left_sessions(now - 100);
            pending();
            stash_contents(page.clone());
            expiring_stash(now, Millis::MIN);
            threads(None);
            quarter_is_retired("quarter 2024-Q1");
            growth();
            check();
        );
        let stashed = store.list_stash(scope, all, None, 99).await;
        let stashed = stashed.map(|rows| {
            let words = |row: StashedMemory| StashedMemory { key: MemoryKey::default(), ..row };
            rows.into_iter().map(words).collect::<Vec<_>>()
        });
        reads.insert("stash".into(), shown(stashed));
        let stats = store.stats(scope, now).await.map(|stats| Stats { file_bytes: 0, ..stats });
        reads.insert("stats".into(), shown(stats));
        let grown = store.grown_sessions(scope, 99).await.unwrap_or_default();
        let grown: Vec<_> = grown.into_iter().map(|grown| grown.session).collect();
        reads.insert("grown".into(), format!("{grown:?}"));
        let segments = store.summarised_segments(scope).await.unwrap_or_default();
        let segments: Vec<_> = segments.into_iter().map(|row| (row.segment, row.summaries)).collect();
        reads.insert("summarised segments".into(), format!("{segments:?}"));
        for session in SESSIONS {
            let scope = self.place.only(&[session]);
            // Of a scope that names a session by its alias, SQLite lists no session.
            if session != "u" {
                let listed = store.sessions(&scope, 0, 9).await;
                reads.insert(format!("sessions of {session}"), shown(listed));
            }
            reads.insert(format!("threads of {session}"), shown(store.threads(&scope, None).await));
        }
    }

    async fn read_session(&self, reads: &mut Reads, session: &str, world: &World) {
        let (store, scope) = (&self.place.store, &self.place.scope);
        let session = &name(session);
        let messages = store.session_messages(scope, session, 0).await;
        let messages = messages.map(|rows| {
            let words = |row| MessageRow { key: MemoryKey::default(), ..row };
            rows.into_iter().map(words).collect::<Vec<_>>()
        });
        reads.insert("messages".into(), shown(messages));
        let around = store.surroundings(scope, session, 1, 1, 1).await;
        let query = ContextQuery {
            recent: 2,
            look_back: 3,
            texts: 5,
            importance: 0.5,
            important: 9,
            facts: 9,
            whole: 9,
        };
        let parts = store.context_parts(scope, session, query).await.unwrap_or_default();
        let texts: Vec<_> = parts.texts.iter().map(|(_, text, _)| text).collect();
        let ordinals: Vec<_> = parts.messages.iter().map(|row| row.ordinal).collect();
        let stashed: Vec<_> = parts.stashed.iter().map(|place| (place.ordinal, place.is_held_out)).collect();
        let rest = (parts.noted, parts.tokens, parts.from, parts.pending);
        reads.insert("parts".into(), format!("{rest:?} {texts:?} {ordinals:?} {stashed:?}"));
        reads.insert("summaries among the parts".into(), format!("{:?}", parts.summaries));
        let (important, facts) = (Ok(parts.important), Ok(parts.facts));
        for (what, found) in [("around", around), ("important", important), ("facts", facts)] {
            reads.insert(
                what.into(),
                shown(found.map(|all| all.into_iter().map(without_key).collect::<Vec<_>>())),
            );
        }
        let ids = vec!["id 1".to_owned(), "id 2".to_owned()];
        let known: Result<BTreeSet<String>> =
            store.known_elsewhere(scope, session, ids).await.map(|all| all.into_iter().collect());
        reads.insert("known elsewhere".into(), shown(known));
        read!(reads, self, scope,
            segments(session);
            summaries(session, None);
            session_stands(session);
            noted(session);
            forgotten_at(session, 1);
            linked_commits(session, None, world.now, 9);
        );
        // SQLite returns the memory that summarises a session also if it is forgotten itself.
        let conversation = store.conversation(scope, session).await.ok().flatten();
        let is_living = match &conversation {
            Some(row) => store.memory(scope, &row.id).await.is_ok_and(|memory| memory.is_some()),
            None => false,
        };
        reads.insert("conversation".into(), format!("{:?}", conversation.filter(|_| is_living)));
        for text in [session.as_str(), "The"] {
            let mut called = store.sessions_called(scope, text, 9).await.unwrap_or_default();
            // SQLite also counts forgotten memories as the latest of a session.
            if world.has_forgotten() {
                called.sort();
            }
            reads.insert(format!("called {text}"), format!("{called:?}"));
        }
        for assistant in ["ada", "bob"] {
            let name = thread(session.as_str(), assistant);
            let mut of_thread = Reads::new();
            let reads_of_thread = &mut of_thread;
            self.read_thread(reads_of_thread, scope, &name).await;
            reads.extend(of_thread.into_iter().map(|(read, words)| (format!("{assistant}: {read}"), words)));
        }
    }

    async fn read_thread(&self, reads: &mut Reads, scope: &Scope, name: &tiro_base::thread::ThreadName) {
        let copies = self.place.store.copies(scope, name, vec!["file 0".into(), "file 1".into()]).await;
        let copies = copies.map(|copies| copies.into_iter().collect::<BTreeMap<_, _>>());
        reads.insert("copies".into(), shown(copies));
        read!(reads, self, scope,
            thread(name);
            turns(name, 9);
            other_exchanges(name, 9);
        );
    }

    /// Returns the keys of the living memories of the world.
    async fn keys(&self, world: &World) -> Vec<MemoryKey> {
        let keys = self.place.store.keys_of(&self.place.scope, world.ids.clone()).await;
        keys.unwrap_or_default().into_iter().flatten().collect()
    }

    /// Returns the ids of living memories.
    async fn names(&self, keys: &[MemoryKey]) -> Vec<String> {
        let found = self.place.store.memories(&self.place.scope, keys.to_vec()).await.unwrap_or_default();
        found.into_iter().map(|it| it.id.to_string()).collect()
    }
}

/// Returns what both engines say of a place in the same way.
fn placed(place: &Neighbour) -> impl std::fmt::Debug + use<> {
    let Neighbour { id, ordinal, marked, importance, text_hash, session, .. } = place;
    (id.clone(), *ordinal, *marked, *importance, *text_hash, session.is_some())
}

fn without_key(memory: Memory) -> Memory {
    Memory { key: MemoryKey::default(), ..memory }
}

/// Returns filters of all kinds.
fn filters(world: &World) -> Vec<Filter> {
    let all = Filter::default;
    let expiry = Expiry { now: world.now, made_before: world.now - 200 };
    vec![
        all(),
        Filter { kinds: Some(vec![Kind::Message, Kind::Fact]), ..all() },
        Filter { topic: Some("topic 1".into()), ..all() },
        Filter { topic: Some("shelf".into()), stash: Some(Stash::Only), ..all() },
        Filter { stash: Some(Stash::Without), ..all() },
        Filter { stash: Some(Stash::Unexpired(expiry)), ..all() },
        Filter { path: Some("src".into()), ..all() },
        Filter { branch: Some("main".into()), ..all() },
        Filter { source_id: Some("aaaaaaaaaa".into()), ..all() },
        Filter { source: Some("src/1.rs".into()), ..all() },
        Filter { since: Some(world.now - 100), until: Some(world.now - 20), ..all() },
        Filter { without: Some(name("u")), ..all() },
    ]
}
