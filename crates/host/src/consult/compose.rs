//! Puts a prompt together: plans which files are sent, and makes the blocks of a turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::look::{FileReader, Looked};
use super::receipt::Receipt;
use super::{Question, history, notes};
use crate::project::OpenProject;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::humanize::thousands;
use tiro_base::parallel::beside;
use tiro_base::thread::{Block, BlockText, ContentHash, FilePlace, LedgerEntry, Part, Thread};
use tiro_files::FoundFile;
use tiro_inline::{FileState, Full, INSTRUCTIONS, Plan, Room, Said, Seen, Sending, Why, plan};
use tiro_text::tokens;

/// A plan that fits into the window, and the earlier exchanges of the prompt if it begins a new epoch.
pub(super) struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The earlier exchanges, without content that belonged only to single calls.
    pub history: Vec<Block>,
}

/// Plans the turn. If the prompt doesn't fit, first the history is shortened, and then files are moved out of the
/// prompt.
pub(super) fn planned(
    thread: &Thread,
    seen: &[Seen],
    mut room: Room,
    key: &[u8; 32],
    receipt: &mut Receipt,
) -> Result<Planned> {
    let is_evicted = thread.blocks.iter().any(|block| matches!(block.text, BlockText::Blob(_, None)));
    let forced = is_evicted.then_some(Why::Evicted);
    let mut history = history::kept(&thread.blocks);
    let mut full = match plan(thread, seen, room, forced, false) {
        Ok(plan) => return Ok(Planned { plan, history }),
        Err(full) => full,
    };
    let before = room.window - room.answer.min(room.window);
    let mut replaced = None;
    let mut planned = None;
    while let Full::History(over) | Full::Everything(over) = full
        && !history.is_empty()
    {
        let (shorter, last) = history::shortened(&history, over + room.growth, key);
        let now = history::tokens_of(&shorter);
        if last.is_none() || now >= history::tokens_of(&history) {
            break;
        }
        (history, room.history, replaced) = (shorter, now, last);
        full = match plan(thread, seen, room, Some(Why::Full), true) {
            Ok(fits) => {
                planned = Some(fits);
                break;
            }
            Err(full) => full,
        };
    }
    if let Some(plan) = planned.or_else(|| plan(thread, seen, room, Some(Why::Full), true).ok()) {
        receipt.notices.extend(replaced.map(|last| {
            format!(
                "the thread did not fit the window any more, so its turns 1 to {last} are shown to the assistant as a \
                 summary; they stay in the project's memory"
            )
        }));
        return Ok(Planned { plan, history });
    }
    let (fixed, history) = (thousands(room.fixed as u64), thousands(room.history as u64));
    Err(Error::new(
        Kind::Limit,
        format!(
            "the window is full: instructions, notes and system prompt need {fixed} tokens and the earlier turns {history}, \
             but a prompt may have {} of the {} tokens of the window",
            thousands(before as u64),
            thousands(room.window as u64)
        ),
    )
    .hint("shorten `instructions` or attach long text as a file; or begin a new `session_id`; or reset this thread with reset_session"))
}

/// Returns the blocks that are sent for files. If only the changes of a file are sent, its whole copy is also returned.
pub(super) async fn file_blocks(
    reader: &Arc<FileReader>,
    project: &OpenProject,
    question: &Question,
    looked: &Looked,
    plan: &mut Plan,
    turn: u32,
) -> Result<(Vec<Block>, Vec<(ContentHash, String)>)> {
    let missing: Vec<String> =
        plan.sendings.iter().filter(|sent| sent.text.is_none()).map(|sent| sent.path.clone()).collect();
    let mut stored = match missing.is_empty() {
        true => HashMap::new(),
        false => match project.store.copies(&project.scope, &question.name, missing).await {
            // A thread that begins has no copies yet.
            Err(error) if error.kind() == Kind::NotFound => HashMap::new(),
            copies => copies?,
        },
    };
    let (mut blocks, mut copies) = (Vec::new(), Vec::new());
    for Sending { path, part, text, tokens } in &plan.sendings {
        let text = match text {
            Some(text) => text.to_string(),
            None => {
                let found = looked.found.get(path);
                let entry = plan.entries.iter_mut().find(|entry| entry.path == *path);
                whole(reader, found, entry, stored.remove(path)).await?
            }
        };
        if *part == Part::Change
            && let Some(FileState::Read { sent, text: Some(whole), .. }) =
                looked.seen.iter().find(|seen| seen.path == *path).map(|seen| &seen.state)
        {
            copies.push((*sent, whole.to_string()));
        }
        let hash = ContentHash::of(text.as_bytes());
        let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
        let text = BlockText::Blob(hash, Some(text));
        blocks.push(Block { turn, part: *part, path: Some(path.clone()), tokens, text });
    }
    Ok((blocks, copies))
}

/// Returns the whole text of a file that was not kept in memory. This is the stored copy if it is still current,
/// otherwise the present content of the file.
async fn whole(
    reader: &Arc<FileReader>,
    found: Option<&FoundFile>,
    entry: Option<&mut LedgerEntry>,
    stored: Option<String>,
) -> Result<String> {
    let is_current =
        |text: &String| entry.as_ref().is_some_and(|entry| entry.sent == ContentHash::of(text.as_bytes()));
    if let Some(text) = stored.filter(is_current) {
        return Ok(text);
    }
    let (Some(found), Some(entry)) = (found, entry) else {
        return Err(Error::new(Kind::Io, "a file of the thread disappeared while it was read")
            .hint("repeat the call"));
    };
    let (reads, file) = (Arc::clone(reader), found.clone());
    let copy = beside(move || reads.copy(&file)).await?.map_err(|why| {
        Error::new(Kind::Io, format!("`{}` {why}", quoted(&found.path))).hint("repeat the call")
    })?;
    let tokens = u32::try_from(tokens::count(&copy.text)).unwrap_or(u32::MAX);
    if tokens > entry.tokens {
        return Err(Error::new(Kind::Busy, format!("`{}` grows while it is read", quoted(&found.path)))
            .hint("repeat the call"));
    }
    (entry.stat, entry.raw, entry.sent, entry.tokens) = (copy.stat, copy.raw, copy.sent, tokens);
    Ok(copy.text)
}

/// Returns the note about files that are searched and not sent, unless the assistant already knows the note. If these
/// files are not the same as before, the note names all of them. Otherwise it names those that changed since the last
/// turn.
pub(super) fn overflow_note(thread: &Thread, plan: &Plan, is_new_epoch: bool) -> Option<Block> {
    let turn = thread.turns + 1;
    if has_other_overflow(thread, plan) || (is_new_epoch && !plan.overflow.is_empty()) {
        // The entries of the plan are newer than those of the ledger.
        let entries = thread.ledger.iter().chain(&plan.entries);
        let tokens: HashMap<&str, u32> = entries.map(|entry| (entry.path.as_str(), entry.tokens)).collect();
        let of = |path: &str| tokens.get(path).copied().unwrap_or_default();
        let files: Vec<(&str, u32)> = plan.overflow.iter().map(|path| (path.as_str(), of(path))).collect();
        return Some(notes::block(turn, Part::Note, notes::overflow(&files)));
    }
    let before: HashMap<&str, ContentHash> =
        thread.ledger.iter().map(|entry| (entry.path.as_str(), entry.sent)).collect();
    let changed = plan.entries.iter().filter(|entry| {
        let known = before.get(entry.path.as_str());
        entry.place == FilePlace::Overflow
            && !entry.is_removed
            && known.is_some_and(|sent| *sent != entry.sent)
    });
    let changed: Vec<&str> = changed.map(|entry| entry.path.as_str()).collect();
    notes::changed(&changed).map(|note| notes::block(turn, Part::Note, note))
}

/// Returns whether the searched files are not the same as in the previous turn.
pub(super) fn has_other_overflow(thread: &Thread, plan: &Plan) -> bool {
    let was = |entry: &&LedgerEntry| entry.place == FilePlace::Overflow && !entry.is_removed;
    let before = thread.ledger.iter().filter(was).map(|entry| entry.path.as_str());
    !before.eq(plan.overflow.iter().map(String::as_str))
}

/// Returns the tokens of the prompt by part.
pub(super) fn parts<'b>(
    prompt: impl IntoIterator<Item = &'b Block>,
    system: usize,
    asked: usize,
    turn: u32,
) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::from([("system".to_owned(), system), ("instructions".to_owned(), asked)]);
    for block in prompt {
        let name = match block.part {
            _ if block.turn < turn => "earlier turns",
            Part::File => "files",
            Part::Change => "changes",
            Part::Removal | Part::Opening | Part::Note => "notes",
            Part::Question | Part::Answer => "earlier turns",
        };
        *parts.entry(name.to_owned()).or_default() += block.tokens as usize;
    }
    parts
}

/// Adds the instructions to the last message of the caller.
pub(super) fn ask(turns: &mut Vec<Said>, instructions: &str) {
    match turns.last_mut() {
        Some(Said::Caller(sent)) => {
            sent.push_str(INSTRUCTIONS);
            sent.push_str(instructions);
        }
        _ => turns.push(Said::Caller(instructions.to_owned())),
    }
}
