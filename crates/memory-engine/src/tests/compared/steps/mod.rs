//! The random calls: how they are drawn, and how one is made on an engine.

mod make;

use proptest::prelude::*;

use tiro_base::memory::{FileWrite, MemoryId, Millis, Role, Work};
use tiro_conformance::fixture::{commit, conversation, embedded, fact, message_at, note, sha, tool_call};
use tiro_conformance::threads::{thread, turn};
use tiro_store::PreparedMemory;

pub use make::Side;

/// The names of sessions. The last is an alias, once a session is described.
pub const SESSIONS: [&str; 3] = ["s", "t", "u"];

/// The words of texts, of which searches look for the first.
pub const WORDS: [&str; 5] = ["maple", "willow", "larches", "running", "relational"];

/// The directions of embeddings.
const VECTORS: [[f32; 4]; 3] = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0]];

/// A random call. Numbers choose among what there is.
#[derive(Clone, Debug)]
pub enum Step {
    Say { session: u8, text: u8, is_long_answer: bool, vector: Option<u8> },
    Note { text: u8, topic: u8, vector: Option<u8> },
    Fact { session: u8, source: u8 },
    Commit { digit: u8, parent: u8 },
    ToolCall { session: u8, text: u8 },
    Replace { text: u8, older: u8 },
    Mark { which: u8, marked: bool, importance: Option<u8> },
    Forget(Vec<u8>),
    ForgetSession(u8),
    ForgetTopic(u8),
    Retire(u8),
    Undo(Option<u8>),
    Purge(u8),
    ForgetForGood(u8),
    Embed(u8),
    Describe { session: u8, aliased: bool },
    Close { session: u8, last: u8 },
    Summarise { session: u8, first: u8, more: u8, level: u8 },
    SummariseSession(u8),
    SummariseQuarter(u8),
    WorkOff,
    Enqueue { session: u8, last: u8, by_user: bool },
    Take,
    Finish(u8),
    Fail(u8),
    Lease { name: u8, holder: u8 },
    Release { name: u8, holder: u8 },
    Cache(u8),
    Cached(u8),
    Expire,
    Stash { which: u8, cause: u8, expires: Option<u8>, given: Option<u8> },
    Unstash { which: u8, keep: bool },
    ExpireStash(u8),
    Assemble(u8),
    Turn { session: u8, assistant: u8, file: Option<u8>, begins: bool },
    Reset { session: u8, assistant: u8, whole: bool },
    State { which: u8, value: u8, same: bool },
    RemoveExtracts(u8),
    Link { commit: u8, session: u8, sure: u8 },
    ReplaceCommit { old: u8, by: u8 },
    RenameAuthor { commit: u8, author: u8 },
    Attempt { session: u8, model: u8 },
}

/// Returns the strategy that draws histories.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (n, of) = (any::<u8>(), proptest::option::of(any::<u8>()));
    let memories = prop_oneof![
        6 => (n, n, prop::bool::weighted(0.2), of.clone()).prop_map(|(session, text, is_long_answer, vector)| {
            Step::Say { session, text, is_long_answer, vector }
        }),
        3 => (n, n, of.clone()).prop_map(|(text, topic, vector)| Step::Note { text, topic, vector }),
        2 => (n, n).prop_map(|(session, source)| Step::Fact { session, source }),
        2 => (n, n).prop_map(|(digit, parent)| Step::Commit { digit, parent }),
        1 => (n, n).prop_map(|(session, text)| Step::ToolCall { session, text }),
        1 => (n, n).prop_map(|(text, older)| Step::Replace { text, older }),
        1 => (n, any::<bool>(), of.clone()).prop_map(|(which, marked, importance)| {
            Step::Mark { which, marked, importance }
        }),
        1 => n.prop_map(Step::Embed),
        1 => (n, any::<bool>()).prop_map(|(session, aliased)| Step::Describe { session, aliased }),
        1 => (n, n, any::<bool>()).prop_map(|(which, value, same)| Step::State { which, value, same }),
        1 => n.prop_map(Step::RemoveExtracts),
        1 => (n, n, n).prop_map(|(commit, session, sure)| Step::Link { commit, session, sure }),
        1 => (n, n).prop_map(|(old, by)| Step::ReplaceCommit { old, by }),
        1 => (n, n).prop_map(|(commit, author)| Step::RenameAuthor { commit, author }),
    ];
    let forgetting = prop_oneof![
        4 => prop::collection::vec(n, 1..4).prop_map(Step::Forget),
        1 => n.prop_map(Step::ForgetSession),
        1 => n.prop_map(Step::ForgetTopic),
        1 => n.prop_map(Step::Retire),
        4 => of.clone().prop_map(Step::Undo),
        1 => n.prop_map(Step::Purge),
        1 => n.prop_map(Step::ForgetForGood),
    ];
    let made = prop_oneof![
        2 => (n, n).prop_map(|(session, last)| Step::Close { session, last }),
        4 => (n, n, n, n).prop_map(|(session, first, more, level)| {
            Step::Summarise { session, first, more, level }
        }),
        2 => n.prop_map(Step::SummariseSession),
        1 => n.prop_map(Step::SummariseQuarter),
        1 => Just(Step::WorkOff),
        3 => (n, n, n).prop_map(|(session, assistant, file)| {
            let (file, begins) = (Some(file).filter(|file| file % 3 > 0), file % 5 == 0);
            Step::Turn { session, assistant, file, begins }
        }),
        1 => (n, n, any::<bool>()).prop_map(|(session, assistant, whole)| Step::Reset { session, assistant, whole }),
    ];
    let shared = prop_oneof![
        2 => (n, n, any::<bool>()).prop_map(|(session, last, by_user)| Step::Enqueue { session, last, by_user }),
        2 => Just(Step::Take),
        1 => n.prop_map(Step::Finish),
        1 => n.prop_map(Step::Fail),
        1 => (n, n).prop_map(|(name, holder)| Step::Lease { name, holder }),
        1 => (n, n).prop_map(|(name, holder)| Step::Release { name, holder }),
        1 => n.prop_map(Step::Cache),
        1 => n.prop_map(Step::Cached),
        1 => Just(Step::Expire),
        3 => (n, n, of.clone(), of).prop_map(|(which, cause, expires, given)| {
            Step::Stash { which, cause, expires, given }
        }),
        1 => (n, any::<bool>()).prop_map(|(which, keep)| Step::Unstash { which, keep }),
        1 => n.prop_map(Step::ExpireStash),
        1 => n.prop_map(Step::Assemble),
        1 => (n, n).prop_map(|(session, model)| Step::Attempt { session, model }),
    ];
    prop::collection::vec(prop_oneof![5 => memories, 3 => forgetting, 3 => made, 3 => shared], 1..40)
}

/// What is known of a history, the same for all engines.
pub struct World {
    /// The memories that were stored, also those that are gone.
    pub ids: Vec<MemoryId>,
    /// How many operations were named.
    pub operations: usize,
    /// The time of the next call.
    pub now: Millis,
    /// Whether nothing was removed or forgotten yet.
    pub is_whole: bool,
}

impl World {
    /// Returns what is known before the first call.
    pub fn new() -> World {
        World { ids: Vec::new(), operations: 0, now: 1000, is_whole: true }
    }

    fn id(&self, which: u8) -> Vec<MemoryId> {
        self.ids.get(usize::from(which) % self.ids.len().max(1)).cloned().into_iter().collect()
    }

    /// Returns the memory that a step stores.
    fn memory(&self, step: &Step) -> Option<PreparedMemory> {
        let word = |text: u8| WORDS[usize::from(text) % WORDS.len()];
        let with = |memory, vector: Option<u8>| match vector {
            Some(vector) => embedded(memory, VECTORS[usize::from(vector) % VECTORS.len()]),
            None => memory,
        };
        Some(match *step {
            Step::Say { session, text, is_long_answer, vector } => {
                let said = format!("{} and {} {}", word(text), word(text / 5), text % 16);
                let mut memory = message_at(session_name(session), &said, self.now);
                if is_long_answer {
                    (memory.draft.role, memory.tokens) = (Some(Role::Assistant), 200);
                }
                with(memory, vector)
            }
            Step::Note { text, topic, vector } => {
                let mut memory = note(&format!("{} {} noted", word(text), text % 16));
                memory.draft.topic = Some(format!("topic {}", topic % 3)).filter(|_| topic % 4 > 0);
                memory.draft.branch = Some("main".to_owned()).filter(|_| topic % 2 > 0);
                memory.draft.files = vec![format!("src/{}.rs", topic % 3)];
                memory.draft.source_id = Some(format!("id {}", topic % 5));
                with(memory, vector)
            }
            Step::Fact { session, source } => {
                let sources = self.id(source);
                fact(
                    session_name(session),
                    &format!("a fact {}", source % 8),
                    &sources.iter().collect::<Vec<_>>(),
                )
            }
            Step::Commit { digit, parent } => {
                let hex = |digit: u8| char::from(b"abcdef"[usize::from(digit) % 6]);
                let mut memory = commit(hex(digit), &format!("commit {}\nbody", digit % 6), self.now);
                if let Some(record) = &mut memory.draft.commit {
                    record.parents = vec![sha(hex(parent))];
                    record.files = vec![format!("src/{}.rs", parent % 3)];
                }
                memory
            }
            Step::ToolCall { session, text } => {
                let write = FileWrite { path: format!("src/{}.rs", text % 3), ..FileWrite::default() };
                let commits = Some(vec!["abc".to_owned()]).filter(|_| text % 2 > 0);
                let work = Work { writes: vec![write], commits, ..Work::default() };
                tool_call(session_name(session), &format!("call {}", text % 8), work, self.now)
            }
            Step::Replace { text, older } => {
                let mut memory = note(&format!("instead {}", text % 8));
                memory.draft.supersedes = self.id(older);
                memory
            }
            _ => return None,
        })
    }

    /// Returns whether a memory may have been forgotten.
    pub fn has_forgotten(&self) -> bool {
        self.operations > 0
    }

    /// Notes what a step adds, after it was made on all engines.
    pub fn follow(&mut self, step: &Step) {
        let mut ids: Vec<MemoryId> = self.memory(step).map(|memory| memory.id).into_iter().collect();
        match *step {
            Step::Turn { session, assistant, .. } => {
                let name = thread(session_name(session), assistant_name(assistant));
                ids.extend((1..3).flat_map(|number| turn(&name, number).memories).map(|memory| memory.id));
            }
            Step::SummariseSession(session) => {
                let of = |count| conversation(session_name(session % 2), &format!("of {count} messages")).id;
                ids.extend((1..4).map(of));
            }
            _ => {}
        }
        ids.retain(|id| !self.ids.contains(id));
        self.ids.extend(ids);
        if step.names_operation() {
            self.operations += 1;
        }
        let may_remove =
            matches!(step, Step::SummariseSession(_) | Step::SummariseQuarter(_) | Step::RemoveExtracts(_));
        self.is_whole &= !self.has_forgotten() && !may_remove;
        self.now += 10;
    }
}

impl Step {
    fn names_operation(&self) -> bool {
        matches!(
            self,
            Step::Forget(_)
                | Step::ForgetSession(_)
                | Step::ForgetTopic(_)
                | Step::Retire(_)
                | Step::ForgetForGood(_)
                | Step::ExpireStash(_)
        )
    }
}

fn session_name(session: u8) -> &'static str {
    SESSIONS[usize::from(session) % SESSIONS.len()]
}

fn assistant_name(assistant: u8) -> &'static str {
    ["ada", "bob"][usize::from(assistant) % 2]
}
