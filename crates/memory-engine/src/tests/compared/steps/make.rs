//! Makes a random call on an engine.

use super::super::shown;
use super::{SESSIONS, Step, VECTORS, WORDS, World, assistant_name, session_name};
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Identity, Kind, Level, MemoryKey, Millis, Provenance};
use tiro_conformance::fixture::{Fixture, HOUR, SPACE, conversation, name, prepared, quarter};
use tiro_conformance::subject::Engine;
use tiro_conformance::threads::{thread, turn, with_file};
use tiro_store::*;

/// An engine while a history is made on it.
pub struct Side {
    pub place: Fixture,
    /// The entries that were taken from the queue.
    taken: Vec<QueueKey>,
}

impl Side {
    pub fn new(engine: impl Engine + 'static) -> Side {
        Side { place: Fixture::new(Box::new(engine)), taken: Vec::new() }
    }

    /// Makes a call; returns the answer in words that are the same for all engines.
    pub async fn make(&mut self, step: &Step, world: &World) -> String {
        self.place.store.clock().set(world.now.max(1));
        if let Some(memory) = world.memory(step) {
            let receipt = self.place.store.save(&self.place.scope, vec![memory], world.now).await;
            return shown(receipt.map(|receipt| (receipt.outcomes, receipt.pending)));
        }
        match self.forget(step, world).await {
            Some(answer) => answer,
            None => match self.derive(step, world).await {
                Some(answer) => answer,
                None => self.share(step, world).await,
            },
        }
    }

    async fn forget(&self, step: &Step, world: &World) -> Option<String> {
        let (store, scope, now) = (&self.place.store, &self.place.scope, world.now);
        let operation = format!("f{}", world.operations);
        let earlier = |number: u8| format!("f{}", usize::from(number) % world.operations.max(1));
        Some(match step {
            Step::Forget(which) => {
                let ids = which.iter().flat_map(|which| world.id(*which)).collect();
                shown(store.forget(scope, &Selection::Ids(ids), &operation, now).await)
            }
            Step::ForgetSession(session) => {
                let selection = Selection::Session(name(session_name(*session)));
                shown(store.forget(scope, &selection, &operation, now).await)
            }
            Step::ForgetTopic(topic) => {
                let filter = Filter { topic: Some(format!("topic {}", topic % 3)), ..Filter::default() };
                let selection = Selection::Matching(filter);
                let first = shown(store.selected(scope, &selection, Reach::Forgotten).await);
                first + &shown(store.forget(scope, &selection, &operation, now).await)
            }
            Step::Retire(session) => {
                shown(store.retire(scope, &name(session_name(*session)), &operation, now).await)
            }
            Step::Undo(which) => shown(store.undo(scope, which.map(earlier).as_deref(), now).await),
            Step::Purge(which) => shown(store.purge(scope, &earlier(*which), now).await),
            Step::ForgetForGood(which) => {
                let selection = Selection::Ids(world.id(*which));
                shown(store.forget_for_good(scope, &selection, &operation, now).await)
            }
            Step::Mark { which, marked, importance } => {
                let importance = importance.map(|importance| f64::from(importance % 4) / 4.0);
                shown(store.mark(scope, &world.id(*which), *marked, importance).await)
            }
            Step::RemoveExtracts(session) => {
                shown(store.remove_extracts(scope, &name(session_name(*session)), 9).await)
            }
            _ => return None,
        })
    }

    async fn derive(&self, step: &Step, world: &World) -> Option<String> {
        let (place, store, scope) = (&self.place, &self.place.store, &self.place.scope);
        Some(match *step {
            Step::Embed(vector) => {
                let waiting = store.pending_chunks(scope, None, 2).await.ok()?;
                let vector = VECTORS[usize::from(vector) % VECTORS.len()].to_vec();
                let embeddings = waiting.into_iter().map(|chunk| (chunk, vector.clone())).collect();
                shown(store.save_embeddings(scope, SPACE, embeddings).await)
            }
            Step::Describe { session, aliased } => {
                let aliases = if aliased { vec!["u".to_owned()] } else { Vec::new() };
                let title = Some(format!("The {session}")).filter(|_| session % 2 > 0);
                let client = Some("a client".to_owned()).filter(|_| session % 3 > 0);
                let origin = Origin { title, client, aliases, ..Origin::default() };
                // The alias names no session of its own.
                let name = name(SESSIONS[usize::from(session) % 2]);
                shown(store.describe_session(scope, &name, origin).await)
            }
            Step::Close { session, last } => {
                // A segment ends with the session at the latest.
                let end = place.rows(session_name(session)).await.last().map_or(-1, |row| row.ordinal);
                let (first, last) = (0, i64::from(last % 6).min(end));
                let number = store.segments(scope, &name(session_name(session))).await.ok()?.len() as i64;
                let segment = SegmentRow { number, first, last, messages: 0, tokens: 0 };
                shown(store.add_segments(scope, &name(session_name(session)), vec![segment]).await)
            }
            Step::Summarise { session, first, more, level } => {
                let first = i64::from(first % 5);
                let draft = place.draft(session_name(session), first, first + i64::from(more % 4)).await;
                let level = Level::ALL[usize::from(level) % Level::ALL.len()];
                shown(store.save_summary(scope, Summary { level, ..draft }, world.now).await)
            }
            Step::SummariseSession(session) => {
                // By an alias, SQLite stores the memory in a new session that is called so.
                let session = session % 2;
                let rows = place.rows(session_name(session)).await;
                let last = rows.last()?.ordinal;
                let hash = source_hash(rows.iter().map(|row| &row.id));
                let memory = conversation(session_name(session), &format!("of {} messages", rows.len()));
                shown(store.save_conversation(scope, memory, last, hash, world.now).await)
            }
            Step::SummariseQuarter(session) => {
                let session = name(session_name(session));
                let row = store.conversation(scope, &session).await.ok()??;
                shown(store.save_quarter(scope, quarter("a quarter", &[row.id]), world.now).await)
            }
            Step::WorkOff => {
                let grown = store.grown_sessions(scope, 1).await.ok()?.pop();
                let session = grown.as_ref().map(|grown: &GrownSession| grown.session.clone());
                if let Some(grown) = grown {
                    store.worked_off(scope, grown).await.ok()?;
                }
                format!("{session:?}")
            }
            Step::Turn { .. } => self.turn(step, world).await,
            Step::Reset { session, assistant, whole } => {
                let name = thread(session_name(session), assistant_name(assistant));
                let what = if whole { Reset::Thread } else { Reset::Files };
                shown(store.reset_thread(scope, &name, what).await)
            }
            Step::State { which, value, same } => self.state(which, value, same, world).await?,
            Step::Link { commit, session, sure } => {
                let commit = self.key(world, commit).await?;
                let behind = store.behind(scope, vec![name(session_name(session))], 0).await.ok()?;
                let links = behind.iter().map(|row| (row.key, f64::from(sure % 4) / 4.0)).collect();
                shown(store.link_commits(scope, vec![(commit, links)]).await)
            }
            Step::ReplaceCommit { old, by } => {
                let (old, by) = (self.key(world, old).await?, self.key(world, by).await?);
                shown(store.replace_commits(scope, vec![old], None, vec![(old, by)]).await)
            }
            Step::RenameAuthor { commit, author } => {
                let commits = store.commit_authors(scope, None, 99).await.ok()?;
                let key = commits.get(usize::from(commit) % commits.len().max(1))?.key;
                let chunks = store.chunks_of(scope, vec![key]).await.ok()?;
                let tokens = chunks.iter().map(|(_, chunk)| (chunk.key, i64::from(author))).collect();
                let author = WORDS[usize::from(author) % WORDS.len()].to_owned();
                let indexed = Some(format!("{author} committed"));
                let renamed = Renamed { key, author: Some(author), indexed, tokens };
                shown(store.rename_authors(scope, vec![renamed]).await)
            }
            _ => return None,
        })
    }

    async fn key(&self, world: &World, which: u8) -> Option<MemoryKey> {
        let keys = self.place.store.keys_of(&self.place.scope, world.id(which)).await.ok()?;
        keys.into_iter().flatten().next()
    }

    async fn state(&self, which: u8, value: u8, same: bool, world: &World) -> Option<String> {
        let (store, scope) = (&self.place.store, &self.place.scope);
        let memory = self.key(world, which).await?;
        let statement = Statement {
            memory,
            number: i64::from(value % 2),
            start: 0,
            end: 3,
            voice: "user".into(),
            value: format!("{}", value % 3),
            words: "quota".into(),
            time: world.now,
            subject: None,
        };
        let keys = store.keys_of(scope, world.ids.clone()).await.ok()?;
        let memories = keys.into_iter().flatten().collect();
        let query = ReplacementQuery { memories, with_statements: true, ..ReplacementQuery::default() };
        let known = store.replacements(scope, query).await.ok()?.statements;
        let same_as = known.first().filter(|_| same).map(|other| (other.memory, other.number));
        Some(shown(store.add_statements(scope, vec![NewStatement { statement, same_as }], None).await))
    }

    async fn turn(&self, step: &Step, world: &World) -> String {
        let Step::Turn { session, assistant, file, begins } = *step else { return String::new() };
        let (store, scope) = (&self.place.store, &self.place.scope);
        let name = thread(session_name(session), assistant_name(assistant));
        let known = store.thread(scope, &name).await.ok().flatten().unwrap_or_default();
        let mut turn = turn(&name, known.turns + 1);
        turn.call_id = format!("call {}", world.now);
        (turn.epoch, turn.time, turn.max_blob_bytes) = (known.epoch.max(1), world.now, 400);
        if begins && known.epoch > 0 {
            turn.epoch += 1;
            turn.ledger_removed = known.ledger.iter().map(|entry| entry.path.clone()).collect();
        }
        if let Some(file) = file {
            let text = blake3::hash(&[file % 4]).to_hex().repeat(2);
            turn = with_file(turn, &format!("file {}", file % 2), &text);
        }
        let turn = TurnRecord { is_fixed: begins, ..turn };
        let recorded = store.record_turn(scope, &name, turn).await;
        shown(recorded.map(|done| (done.turn, done.receipt.outcomes, done.evicted, done.evicted_bytes)))
    }

    async fn share(&mut self, step: &Step, world: &World) -> String {
        let (store, scope, now) = (&self.place.store, &self.place.scope, world.now);
        let holder = |number: u8| format!("p{}", number % 2);
        let entry = |number: u8| self.taken.get(usize::from(number) % self.taken.len().max(1)).copied();
        match *step {
            Step::Enqueue { session, last, by_user } => {
                let asked_by = if by_user { AskedBy::User } else { AskedBy::Program };
                let (session, last) = (name(session_name(session)), i64::from(last % 3));
                let (level, provider) = (Level::Brief, "local".to_owned());
                let wanted = Wanted { session, level, first: 0, last, provider, asked_by };
                shown(store.enqueue(scope, wanted, now, now).await)
            }
            Step::Take => {
                let taken = store.next_queued(scope, "p0", HOUR, now).await;
                self.taken.extend(taken.iter().flatten().map(|queued| queued.key));
                shown(taken.map(|queued| queued.map(|queued| (queued.wanted, queued.tries))))
            }
            Step::Finish(number) => match entry(number) {
                Some(entry) => shown(store.finish(scope, entry, &holder(number), now).await),
                None => String::new(),
            },
            Step::Fail(number) => match entry(number) {
                Some(entry) => shown(store.fail(scope, entry, &holder(number), "none", now, now).await),
                None => String::new(),
            },
            Step::Lease { name, holder: by } => {
                shown(store.lease(scope, &format!("work {}", name % 2), &holder(by), 25).await)
            }
            Step::Release { name, holder: by } => {
                shown(store.release(scope, &format!("work {}", name % 2), &holder(by)).await)
            }
            Step::Cache(number) => {
                let body = "x".repeat(usize::from(number));
                shown(store.cache(scope, [number % 4; 32], body, now, 100 + i64::from(number), 400).await)
            }
            Step::Cached(number) => shown(store.cached(scope, [number % 4; 32], now).await),
            Step::Expire => shown(store.remove_expired(scope, now, now - 50).await),
            Step::Stash { which, cause, expires, given } => {
                let mut segment =
                    prepared(Draft::new(Kind::CodeBlock, Provenance::UserSaid, "given", now), "given");
                segment.draft.identity = Identity::Segment;
                let stashing = Stashing {
                    named: world.id(which),
                    given: given.map(|_| segment).into_iter().collect(),
                    cause: StashCause::ALL[usize::from(cause) % 3],
                    expires_at: expires.map(|expires| now + i64::from(expires)),
                    is_protected: Some(which % 8 == 0).filter(|is_protected| *is_protected),
                    topic: Some("shelf".to_owned()).filter(|_| cause % 2 > 0),
                };
                shown(store.stash(scope, stashing, now).await)
            }
            Step::Unstash { which, keep } => shown(store.unstash(scope, &world.id(which), keep).await),
            Step::ExpireStash(weeks) => {
                let now = now + i64::from(weeks % 2) * tuning::GRACE;
                let operation = format!("f{}", world.operations);
                shown(store.expire_stash(scope, (now, Millis::MIN), &operation, 9).await)
            }
            Step::Attempt { session, model } => {
                let attempt = Attempt {
                    session: name(session_name(session)),
                    level: Level::Brief,
                    first: 0,
                    last: 1,
                    provider: "lab".into(),
                    model: format!("m{}", model % 2),
                    input_tokens: i64::from(model),
                    output_tokens: 2,
                    cost_micros: 0,
                    took_ms: 3,
                    quality: None,
                    error: None,
                    at: now - i64::from(model % 64),
                };
                shown(store.attempt(scope, attempt).await)
            }
            Step::Assemble(session) => {
                let rows = self.place.rows(session_name(session)).await;
                let line = |row: &MessageRow| ShownLine {
                    memory: row.key,
                    tokens: 2,
                    heading: row.ordinal / 2,
                    heading_tokens: 3,
                };
                let lines = rows.iter().map(line).collect();
                let session = name(session_name(session));
                shown(store.record_assembly(scope, &session, [world.now as u8; 32], lines).await)
            }
            _ => String::new(),
        }
    }
}
