//! Records a turn of a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::read::is_in_prompt;
use crate::MemoryStore;
use crate::state::{Blob, Piece, PieceText, State, ThreadData, Turn};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::memory::{LONGEST_TEXT, MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId, Sessions, TenantId};
use tiro_base::thread::{BlockText, ContentHash, Part, Spent, ThreadName};
use tiro_store::decide::retention;
use tiro_store::{Outcome, Recorded, SessionKey, TurnRecord};

/// The level of compression by which the size of a text is measured: that of SQLite's engine.
const LEVEL: u32 = 4;

/// The largest number of tokens and of millionths that is stored, so that sums stay numbers.
const LARGEST: u64 = 1 << 40;

impl MemoryStore {
    /// Does as [`WriteThreads::record_turn`](tiro_store::WriteThreads::record_turn).
    pub(crate) async fn record_turn(
        &self,
        scope: &Scope,
        name: &ThreadName,
        turn: TurnRecord,
    ) -> Result<Recorded> {
        let texts = texts(&turn)?;
        self.write(scope, |state| state.record_turn(scope, name, turn, texts))
    }
}

/// Returns the texts of a turn by hash. Errors if a text has another hash.
fn texts(turn: &TurnRecord) -> Result<BTreeMap<ContentHash, String>> {
    let of_blocks = turn.blocks.iter().filter_map(|block| match &block.text {
        BlockText::Blob(hash, Some(text)) => Some((*hash, text)),
        _ => None,
    });
    let all = of_blocks.chain(turn.blobs.iter().map(|(hash, text)| (*hash, text)));
    let texts: BTreeMap<ContentHash, String> =
        all.filter(|(_, text)| text.len() <= LONGEST_TEXT).map(|(hash, text)| (hash, text.clone())).collect();
    match texts.iter().all(|(hash, text)| ContentHash::of(text.as_bytes()) == *hash) {
        true => Ok(texts),
        false => Err(Error::new(Kind::Store, "a text of a turn was given a wrong hash")),
    }
}

/// Returns the size of the compressed text: by this the room for texts is measured.
fn packed_size(text: &str) -> i64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    let written = encoder.write_all(text.as_bytes());
    written.and_then(|()| encoder.finish()).map_or(text.len(), |body| body.len()) as i64
}

impl State {
    fn record_turn(
        &mut self,
        scope: &Scope,
        name: &ThreadName,
        mut turn: TurnRecord,
        texts: BTreeMap<ContentHash, String>,
    ) -> Result<Recorded> {
        let stored = self.find_thread(scope, name);
        let before = stored.and_then(|number| self.threads.get(&number)).map(|thread| thread.epoch);
        self.continues(stored, &turn)?;
        let session_name = self.stored_name(scope, &name.session)?;
        for memory in &mut turn.memories {
            if memory.draft.session.as_ref() == Some(&name.session) {
                memory.draft.session = Some(session_name.clone());
            }
        }
        // The session was found in the scope, which may name it by an alias.
        let whole = Scope { sessions: Sessions::All, ..scope.clone() };
        let receipt = self.save(&whole, &turn.memories, turn.time)?;
        let is_taken = |(id, outcome): &&(MemoryId, Outcome)| {
            *outcome == Outcome::Conflict && (*id == turn.question || *id == turn.answer)
        };
        if let Some((id, _)) = receipt.outcomes.iter().find(is_taken) {
            return Err(Error::bad_input(format!(
                "another message is stored under the id `{id}` of the turn"
            )));
        }
        let session = self.required_session(&whole, &session_name)?;
        let row = self.turn(&scope.tenant, &turn)?;
        let number = stored.unwrap_or_else(|| self.number());
        let has_texts = !texts.is_empty();
        self.put_texts(&scope.tenant, &turn, texts);
        let pieces = self.pieces(&scope.tenant, &turn);
        let begins = before.is_some_and(|epoch| epoch < turn.epoch);
        let new = || new_thread(session, &name.assistant);
        let blobs: BTreeSet<ContentHash> =
            self.blobs.keys().filter(|(owner, _)| *owner == scope.tenant).map(|(_, hash)| *hash).collect();
        let thread = self.threads.entry(number).or_insert_with(new);
        thread.append(&turn, row, pieces, begins, &blobs);
        thread.is_not_ahead()?;
        self.remove_unneeded_texts();
        let (evicted, evicted_bytes) = match has_texts {
            true => self.make_room(&scope.tenant, number, turn.max_blob_bytes),
            false => (0, 0),
        };
        Ok(Recorded { turn: turn.expected_turns + 1, receipt, evicted, evicted_bytes })
    }

    /// Errors if the turn doesn't continue the stored thread.
    fn continues(&self, stored: Option<i64>, turn: &TurnRecord) -> Result<()> {
        let thread = stored.and_then(|number| self.threads.get(&number));
        let (epoch, turns) = thread.map_or((0, 0), |thread| (thread.epoch, thread.turns));
        let is_next = turn.epoch == epoch && epoch > 0 || Some(turn.epoch) == epoch.checked_add(1);
        if turns != turn.expected_turns || !is_next {
            return Err(Error::new(Kind::Busy, "another call changed the thread since the prompt was made")
                .hint("call again; the prompt is then made from the thread as it is now"));
        }
        let mut history = thread.into_iter().flat_map(|thread| &thread.history);
        match history.any(|known| known.call_id == turn.call_id) {
            true => {
                Err(Error::bad_input(format!("the call `{}` was recorded already", quoted(&turn.call_id)))
                    .hint("use another `call_id` for another question"))
            }
            false => Ok(()),
        }
    }

    /// Returns the name under which the session is stored, or is to be stored.
    fn stored_name(&self, scope: &Scope, name: &SessionId) -> Result<SessionId> {
        if let Some((_, session)) = self.session(scope, name) {
            return Ok(session.name.clone());
        }
        match &scope.sessions {
            Sessions::Only(ids) if !ids.contains(name) => {
                Err(Error::not_found(format!("no session `{}`", quoted(name)))
                    .hint("`list_sessions` lists this project's sessions"))
            }
            _ => Ok(name.clone()),
        }
    }

    /// Returns the turn to store. Errors if its question or its answer isn't living.
    fn turn(&self, owner: &TenantId, turn: &TurnRecord) -> Result<Turn> {
        let living = |id: &MemoryId| -> Result<MemoryKey> {
            let key = self.key_of(owner, id);
            key.filter(|key| self.memories.get(key).is_some_and(|memory| memory.is_living())).ok_or_else(
                || Error::not_found(format!("the message `{id}` of the turn is not stored, or is forgotten")),
            )
        };
        let Spent { prompt, appended, whole, input, cached, output, micros } = turn.spent;
        let [prompt, appended, whole, input, cached, output, micros] =
            [prompt, appended, whole, input, cached, output, micros].map(|count| count.min(LARGEST));
        Ok(Turn {
            number: turn.expected_turns + 1,
            epoch: turn.epoch,
            call_id: turn.call_id.clone(),
            question: Some(living(&turn.question)?),
            answer: Some(living(&turn.answer)?),
            model: turn.model.clone(),
            time: turn.time,
            spent: Spent { prompt, appended, whole, input, cached, output, micros },
            receipt: Some(turn.receipt.clone()).filter(|text| text.len() <= TurnRecord::LONGEST_RECEIPT),
        })
    }

    /// Stores the texts of a turn, as far as they are not stored. A text that a block names without passing it has a
    /// place too.
    fn put_texts(&mut self, owner: &TenantId, turn: &TurnRecord, texts: BTreeMap<ContentHash, String>) {
        let named = turn.blocks.iter().filter_map(|block| match block.text {
            BlockText::Blob(hash, _) => Some(hash),
            BlockText::Message(..) => None,
        });
        for hash in named.chain(texts.keys().copied()).collect::<Vec<_>>() {
            let number = self.number();
            let new = Blob { number, text: None, bytes: 0 };
            self.blobs.entry((owner.clone(), hash)).or_insert(new);
        }
        for (hash, text) in texts {
            let blob = self.blobs.get_mut(&(owner.clone(), hash));
            if let Some(blob) = blob.filter(|blob| blob.text.is_none()) {
                (blob.bytes, blob.text) = (packed_size(&text), Some(text));
            }
        }
    }

    /// Returns the blocks to store. A message that was purged since the prompt was made is left out.
    fn pieces(&self, owner: &TenantId, turn: &TurnRecord) -> Vec<Piece> {
        let piece = |block: &tiro_base::thread::Block| {
            let text = match &block.text {
                BlockText::Message(id, _) => PieceText::Message(self.key_of(owner, id)?),
                BlockText::Blob(hash, _) => PieceText::Blob(*hash),
            };
            let tiro_base::thread::Block { turn, part, path, tokens, .. } = block;
            Some(Piece { turn: *turn, part: *part, path: path.clone(), tokens: *tokens, text })
        };
        turn.blocks.iter().filter_map(piece).collect()
    }

    /// Removes texts until those of the owner fit into `max_bytes`: first those of the threads that were used longest
    /// ago, last those of `current`. Returns how many, and their size.
    fn make_room(&mut self, owner: &TenantId, current: i64, max_bytes: i64) -> (usize, i64) {
        let mut entries: Vec<(bool, i64, i64, ContentHash, i64)> = Vec::new();
        let mut total = 0;
        for ((of, hash), blob) in self.blobs.iter().filter(|((of, _), _)| of == owner) {
            total += blob.bytes;
            let is_needed = |thread: &ThreadData| {
                let session = self.sessions.get(&thread.session);
                session.is_some_and(|session| session.owner == *of)
                    && (thread.copies.contains(hash) || thread.hashes(0).any(|own| own == *hash))
            };
            let users = || self.threads.iter().filter(|(_, thread)| is_needed(thread));
            let is_current = users().any(|(number, _)| *number == current);
            if let Some(used) = users().map(|(_, thread)| thread.updated).max().filter(|_| blob.bytes > 0) {
                entries.push((is_current, used, blob.number, *hash, blob.bytes));
            }
        }
        entries.sort_unstable();
        let surplus = retention::surplus(total, max_bytes, entries.iter().map(|(.., bytes)| *bytes));
        entries.truncate(surplus);
        for (_, _, _, hash, _) in &entries {
            if let Some(blob) = self.blobs.get_mut(&(owner.clone(), *hash)) {
                (blob.text, blob.bytes) = (None, 0);
            }
        }
        (entries.len(), entries.iter().map(|(.., bytes)| bytes).sum())
    }
}

fn new_thread(session: SessionKey, assistant: &str) -> ThreadData {
    ThreadData {
        session,
        assistant: assistant.to_owned(),
        epoch: 0,
        turns: 0,
        is_fixed: false,
        window: 0,
        rules: 0,
        updated: 0,
        context: Vec::new(),
        blocks: Vec::new(),
        ledger: BTreeMap::new(),
        copies: BTreeSet::new(),
        history: Vec::new(),
    }
}

impl ThreadData {
    /// Adds a turn with its blocks and the changes of the ledger. If it begins an epoch, the blocks before it are
    /// removed. `stored` are the texts that there are.
    fn append(
        &mut self,
        turn: &TurnRecord,
        row: Turn,
        pieces: Vec<Piece>,
        begins: bool,
        stored: &BTreeSet<ContentHash>,
    ) {
        if begins {
            self.blocks.clear();
        }
        self.blocks.extend(pieces);
        self.history.push(row);
        for path in &turn.ledger_removed {
            self.ledger.remove(path);
        }
        for entry in &turn.ledger {
            self.ledger.insert(entry.path.clone(), entry.clone());
        }
        (self.epoch, self.turns) = (turn.epoch, turn.expected_turns + 1);
        (self.is_fixed, self.window, self.rules) = (turn.is_fixed, turn.window, turn.rules);
        (self.updated, self.context) = (turn.time, turn.context.clone());
        if begins || !turn.ledger.is_empty() || !turn.ledger_removed.is_empty() {
            let in_blocks: BTreeSet<ContentHash> = self.hashes(0).collect();
            let inline = self.ledger.values().filter(|entry| is_in_prompt(entry)).map(|entry| entry.sent);
            self.copies = inline.filter(|hash| stored.contains(hash) && !in_blocks.contains(hash)).collect();
        }
    }

    /// Errors if the ledger has an inline file that no block of the epoch has.
    fn is_not_ahead(&self) -> Result<()> {
        let has = |path: &String| {
            self.blocks.iter().any(|block| {
                matches!(block.part, Part::File | Part::Change) && block.path.as_ref() == Some(path)
            })
        };
        match self.ledger.values().filter(|entry| is_in_prompt(entry)).find(|entry| !has(&entry.path)) {
            Some(entry) => Err(Error::bad_input(format!(
                "the ledger has the file `{}` as sent, but no block of the epoch has it",
                quoted(&entry.path)
            ))),
            None => Ok(()),
        }
    }
}
