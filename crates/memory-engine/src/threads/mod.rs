//! Threads with assistants: their blocks, their ledger and their turns.

pub mod data;
mod read;
mod record;

use super::MemoryStore;
use super::state::{Blob, PieceText, State, ThreadData, Turn};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_base::thread::{ContentHash, Part, ThreadName};
use tiro_store::{Reset, ResetDone, TurnRow};

impl MemoryStore {
    /// Does as [`WriteThreads::reset_thread`](tiro_store::WriteThreads::reset_thread).
    pub(crate) async fn reset_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        what: Reset,
    ) -> Result<ResetDone> {
        self.write(scope, |state| {
            let number = state.required_thread(scope, name)?;
            let Some(thread) = state.threads.get_mut(&number) else { return Ok(ResetDone::default()) };
            let (files, blocks) = (thread.ledger.len(), thread.blocks.len());
            let done = match what {
                Reset::Thread => ResetDone { files, blocks, turns: thread.history.len() },
                Reset::Files => {
                    let is_of_file =
                        |part| matches!(part, Part::File | Part::Change | Part::Removal | Part::Note);
                    thread.blocks.retain(|block| !is_of_file(block.part));
                    thread.ledger.clear();
                    thread.copies.clear();
                    thread.epoch += 1;
                    thread.is_fixed = false;
                    ResetDone { files, blocks: blocks - thread.blocks.len(), turns: 0 }
                }
            };
            if what == Reset::Thread {
                state.threads.remove(&number);
            }
            state.remove_unneeded_texts();
            Ok(done)
        })
    }
}

impl State {
    /// Returns the number of the thread, whose session may be named by an alias.
    fn find_thread(&self, scope: &Scope, name: &ThreadName) -> Option<i64> {
        let session = self.find_session(scope, &name.session)?;
        let is_it = |thread: &ThreadData| thread.session == session && thread.assistant == name.assistant;
        self.threads.iter().find(|(_, thread)| is_it(thread)).map(|(number, _)| *number)
    }

    fn required_thread(&self, scope: &Scope, name: &ThreadName) -> Result<i64> {
        self.find_thread(scope, name).ok_or_else(|| {
            let (assistant, session) = (quoted(&name.assistant), quoted(&name.session));
            Error::not_found(format!("the session `{session}` has no thread with `{assistant}`"))
                .hint("`describe_session` lists the threads of a session")
        })
    }

    fn thread_of(&self, scope: &Scope, name: &ThreadName) -> Option<&ThreadData> {
        self.threads.get(&self.find_thread(scope, name)?)
    }

    /// Returns the text with this hash.
    fn blob(&self, scope: &Scope, hash: ContentHash) -> Option<&Blob> {
        self.blobs.get(&(scope.tenant.clone(), hash))
    }

    /// Returns the turn as callers see it: with what is living of its messages.
    fn turn_row(&self, turn: &Turn) -> TurnRow {
        let living = |key: Option<MemoryKey>| self.memories.get(&key?).filter(|memory| memory.is_living());
        let (question, answer) = (living(turn.question), living(turn.answer));
        let is_whole = question.is_some() && answer.is_some();
        TurnRow {
            number: turn.number,
            epoch: turn.epoch,
            call_id: turn.call_id.clone(),
            question: question.map(|memory| memory.id.clone()),
            answer: answer.map(|memory| memory.id.clone()),
            answer_text: answer.map(|memory| memory.text.clone()),
            model: turn.model.clone(),
            time: turn.time,
            spent: turn.spent,
            receipt: turn.receipt.clone().filter(|_| is_whole),
        }
    }
}

impl ThreadData {
    /// Returns the hashes of the texts of the blocks from the place `first` on.
    fn hashes(&self, first: usize) -> impl Iterator<Item = ContentHash> {
        self.blocks.iter().skip(first).filter_map(|block| match block.text {
            PieceText::Blob(hash) => Some(hash),
            PieceText::Message(_) => None,
        })
    }
}
