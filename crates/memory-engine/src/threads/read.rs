//! Reads threads and their turns, and keeps counts of tokens.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::MemoryStore;
use crate::state::{Piece, PieceText, State, Stored, ThreadData, Turn};
use tiro_base::error::Result;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::{Block, BlockText, ContentHash, FilePlace, LedgerEntry, Spent, Thread, ThreadName};
use tiro_store::tuning::TOKEN_COUNTS;
use tiro_store::{Exchange, ThreadRow, TurnRow};

/// How many counts of tokens are kept, those of all owners together.
const KEPT: usize = if cfg!(test) { 1_000 } else { TOKEN_COUNTS as usize };

impl MemoryStore {
    /// Does as [`ReadThreads::thread`](tiro_store::ReadThreads::thread).
    pub(crate) async fn thread(&self, scope: &Scope, name: &ThreadName) -> Result<Option<Thread>> {
        self.read(scope, |state| {
            let Some(thread) = state.thread_of(scope, name) else { return Ok(None) };
            Ok(Some(Thread {
                epoch: thread.epoch,
                turns: thread.turns,
                is_fixed: thread.is_fixed,
                window: thread.window,
                rules: thread.rules,
                context: thread.context.clone(),
                blocks: thread.blocks.iter().filter_map(|block| state.block(scope, block)).collect(),
                ledger: thread.ledger.values().cloned().collect(),
                updated: Some(thread.updated),
            }))
        })
    }

    /// Does as [`ReadThreads::copies`](tiro_store::ReadThreads::copies).
    pub(crate) async fn copies(
        &self,
        scope: &Scope,
        name: &ThreadName,
        paths: Vec<String>,
    ) -> Result<HashMap<String, String>> {
        self.read(scope, |state| {
            let number = state.required_thread(scope, name)?;
            let Some(thread) = state.threads.get(&number) else { return Ok(HashMap::new()) };
            let copy = |path: String| {
                let entry = thread.ledger.get(&path).filter(|entry| is_in_prompt(entry))?;
                let text = state.blob(scope, entry.sent)?.text.clone()?;
                Some((path, text))
            };
            Ok(paths.into_iter().filter_map(copy).collect())
        })
    }

    /// Does as [`ReadThreads::turn_by_call`](tiro_store::ReadThreads::turn_by_call).
    pub(crate) async fn turn_by_call(
        &self,
        scope: &Scope,
        name: &ThreadName,
        call_id: &str,
    ) -> Result<Option<TurnRow>> {
        self.read(scope, |state| {
            let turns = state.thread_of(scope, name).into_iter().flat_map(|thread| &thread.history);
            let turn = { turns }.find(|turn| turn.call_id == call_id);
            Ok(turn.map(|turn| state.turn_row(turn)))
        })
    }

    /// Does as [`ReadThreads::turns`](tiro_store::ReadThreads::turns).
    pub(crate) async fn turns(&self, scope: &Scope, name: &ThreadName, limit: usize) -> Result<Vec<TurnRow>> {
        self.read(scope, |state| {
            let turns =
                state.thread_of(scope, name).into_iter().flat_map(|thread| thread.history.iter().rev());
            Ok(turns.take(limit).map(|turn| state.turn_row(turn)).collect())
        })
    }

    /// Does as [`ReadThreads::threads`](tiro_store::ReadThreads::threads).
    pub(crate) async fn threads(&self, scope: &Scope, session: Option<&SessionId>) -> Result<Vec<ThreadRow>> {
        self.read(scope, |state| {
            let sessions = match session {
                Some(session) => Some(state.find_session(scope, session).into_iter().collect()),
                None => state.named_in(scope),
            };
            let row = |thread: &ThreadData| {
                let session = state.sessions.get(&thread.session)?;
                let is_wanted = session.owner == scope.tenant
                    && sessions.as_ref().is_none_or(|sessions| sessions.contains(&thread.session));
                let name = ThreadName { session: session.name.clone(), assistant: thread.assistant.clone() };
                is_wanted.then(|| thread_row(thread, name))
            };
            let mut rows: Vec<ThreadRow> = state.threads.values().filter_map(row).collect();
            rows.sort_by_key(|row| (Reverse(row.last), row.name.clone()));
            Ok(rows)
        })
    }

    /// Does as [`ReadThreads::other_exchanges`](tiro_store::ReadThreads::other_exchanges).
    pub(crate) async fn other_exchanges(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> Result<Vec<Exchange>> {
        self.read(scope, |state| {
            let Some(session) = state.find_session(scope, &name.session) else { return Ok(Vec::new()) };
            let own = state.thread_of(scope, name).into_iter().flat_map(|thread| &thread.history);
            let last: Option<MemoryKey> = own.map(|turn| turn.answer.max(turn.question)).max().flatten();
            let others = state
                .threads
                .values()
                .filter(|thread| thread.session == session && thread.assistant != name.assistant);
            let turns = others.flat_map(|thread| thread.history.iter().map(|turn| (&thread.assistant, turn)));
            let mut found: Vec<(MemoryKey, Exchange)> = turns
                .filter(|(_, turn)| turn.answer > last)
                .filter_map(|(assistant, turn)| Some((turn.answer?, state.exchange(assistant, turn)?)))
                .collect();
            found.sort_by_key(|(answer, _)| *answer);
            let skipped = found.len().saturating_sub(limit);
            Ok(found.into_iter().skip(skipped).map(|(_, exchange)| exchange).collect())
        })
    }

    /// Does as [`ReadThreads::token_counts`](tiro_store::ReadThreads::token_counts).
    pub(crate) async fn token_counts(
        &self,
        scope: &Scope,
        hashes: &[ContentHash],
    ) -> Result<HashMap<ContentHash, u32>> {
        self.read(scope, |state| {
            let count = |hash: &ContentHash| {
                let (_, tokens) = state.token_counts.get(&(scope.tenant.clone(), *hash))?;
                Some((*hash, *tokens))
            };
            Ok(hashes.iter().filter_map(count).collect())
        })
    }

    /// Does as [`Bookkeeping::note_token_counts`](tiro_store::Bookkeeping::note_token_counts).
    pub(crate) async fn note_token_counts(&self, scope: &Scope, counts: &[(ContentHash, u32)]) -> Result<()> {
        self.write(scope, |state| {
            for (hash, tokens) in counts {
                let new = state.number();
                let count = state.token_counts.entry((scope.tenant.clone(), *hash)).or_insert((new, 0));
                count.1 = *tokens;
            }
            let mut numbers: Vec<i64> = state.token_counts.values().map(|(number, _)| *number).collect();
            numbers.sort_unstable_by_key(|number| Reverse(*number));
            if let Some(too_old) = numbers.get(KEPT) {
                state.token_counts.retain(|_, (number, _)| *number > *too_old);
            }
            Ok(())
        })
    }
}

/// Returns whether the assistant has the file in its prompt.
pub fn is_in_prompt(entry: &LedgerEntry) -> bool {
    entry.place == FilePlace::Inline && !entry.is_removed
}

impl State {
    fn block(&self, scope: &Scope, block: &Piece) -> Option<Block> {
        let text = match block.text {
            PieceText::Message(key) => {
                let memory = self.memories.get(&key)?;
                let text = Some(memory.text.clone()).filter(|_| memory.is_living());
                BlockText::Message(memory.id.clone(), text)
            }
            PieceText::Blob(hash) => {
                BlockText::Blob(hash, self.blob(scope, hash).and_then(|blob| blob.text.clone()))
            }
        };
        let &Piece { turn, part, ref path, tokens, .. } = block;
        Some(Block { turn, part, path: path.clone(), tokens, text })
    }

    fn exchange(&self, assistant: &str, turn: &Turn) -> Option<Exchange> {
        let living = |key: Option<MemoryKey>| -> Option<&Stored> {
            self.memories.get(&key?).filter(|memory| memory.is_living())
        };
        let (question, answer) = (living(turn.question)?, living(turn.answer)?);
        Some(Exchange {
            assistant: assistant.to_owned(),
            time: turn.time,
            question: question.text.clone(),
            answer: answer.text.clone(),
            ids: [question.id.clone(), answer.id.clone()],
        })
    }
}

fn thread_row(thread: &ThreadData, name: ThreadName) -> ThreadRow {
    let files = |place| {
        let of = thread.ledger.values().filter(|entry| !entry.is_removed && entry.place == place);
        of.count() as u32
    };
    let mut spent = Spent::default();
    for turn in &thread.history {
        spent.prompt += turn.spent.prompt;
        spent.appended += turn.spent.appended;
        spent.whole += turn.spent.whole;
        spent.input += turn.spent.input;
        spent.cached += turn.spent.cached;
        spent.output += turn.spent.output;
        spent.micros += turn.spent.micros;
    }
    ThreadRow {
        name,
        epoch: thread.epoch,
        turns: thread.turns,
        is_fixed: thread.is_fixed,
        window: thread.window,
        files_inline: files(FilePlace::Inline),
        files_overflow: files(FilePlace::Overflow),
        tokens: thread.blocks.iter().map(|block| u64::from(block.tokens)).sum(),
        first: thread.history.iter().map(|turn| turn.time).min().unwrap_or(thread.updated),
        last: thread.updated,
        spent,
    }
}
