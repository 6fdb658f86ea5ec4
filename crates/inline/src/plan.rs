//! Makes the plan of a turn. The plan says which files are sent, and in which form.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diff::changes;
use super::frame::framed;
use crate::tuning::STALE_SHARE;
use tiro_base::thread::{Block, ContentHash, FilePlace, LedgerEntry, Part, Stat, Thread};
use tiro_text::tokens;

/// A file that the thread knows or that the call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    pub path: String,
    /// Whether the file gets its place before other new files.
    pub is_first: bool,
    /// What is known of it.
    pub state: FileState,
}

/// The state of a file when a turn is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file is unchanged since the ledger was written, so it was not read.
    Unchanged,
    /// The file was read.
    Read {
        /// See [`LedgerEntry::stat`].
        stat: Option<Stat>,
        /// See [`LedgerEntry::raw`].
        raw: ContentHash,
        /// See [`LedgerEntry::sent`].
        sent: ContentHash,
        /// The tokens of the whole redacted text.
        tokens: u32,
        /// The whole redacted text. `None` if the text was not kept because it is large.
        text: Option<Arc<str>>,
        /// The copy that the assistant has, if the file is inline and the copy is still stored.
        before: Option<Arc<str>>,
    },
    /// The file can't be read any more, for this reason.
    Gone(String),
}

/// The room in the window. All numbers are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The context window.
    pub window: usize,
    /// The tokens that are kept free for the answer.
    pub answer: usize,
    /// The tokens that are kept free for later turns when places are given out.
    pub growth: usize,
    /// The user's limit on the tokens of inline files when places are given out.
    pub inline: usize,
    /// The tokens that this call needs for the system prompt, functions, instructions and notes.
    pub fixed: usize,
    /// The tokens of the earlier exchanges.
    pub history: usize,
}

impl Room {
    /// Returns the maximum number of tokens of all files with which the prompt fits.
    fn most(&self) -> Option<usize> {
        self.window.checked_sub(self.answer + self.fixed + self.history)
    }

    /// Returns the maximum number of tokens of inline files when places are given out.
    fn offered(&self) -> usize {
        self.most().unwrap_or(0).saturating_sub(self.growth).min(self.inline)
    }
}

/// A text that is sent about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The path of the file.
    pub path: String,
    /// [`Part::File`], [`Part::Change`] or [`Part::Removal`].
    pub part: Part,
    /// The text to send. `None` if the whole text must be sent but was not read; its hash is in the ledger.
    pub text: Option<Arc<str>>,
    /// An upper bound of the number of tokens, including the frame.
    pub tokens: usize,
}

/// A file whose place changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its path.
    pub path: String,
    /// Its new place.
    pub to: FilePlace,
}

/// The reason why a new epoch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Outdated copies and diffs took more than their share of the window.
    Outdated,
    /// The prompt would not fit otherwise.
    Full,
    /// Stored copies were removed to save space.
    Evicted,
}

/// The plan of a turn: the texts that it sends, and the changes of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The texts that are sent, by path.
    pub sendings: Vec<Sending>,
    /// The inline files that the assistant already has, by path.
    pub unchanged: Vec<String>,
    /// The files that are searched instead of sent, by path.
    pub overflow: Vec<String>,
    /// The files that changed their place, by path.
    pub moved: Vec<Moved>,
    /// The reason why a new epoch begins, if one begins. In a new epoch, all inline files are sent whole.
    pub new_epoch: Option<Why>,
    /// Whether the places are fixed from now on.
    pub is_fixed: bool,
    /// The entries of the ledger that are new or changed; in a new epoch, all entries.
    pub entries: Vec<LedgerEntry>,
    /// How many tokens the sent files take.
    pub appended: usize,
    /// How many tokens all inline files would take if each were sent whole.
    pub whole: usize,
}

/// The prompt doesn't fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The prompt would fit if the earlier exchanges took this many tokens less.
    History(usize),
    /// The prompt doesn't fit even without any file. The number says by how many tokens it is too long.
    Everything(usize),
}

/// A file with its place in this turn.
struct File<'a> {
    path: &'a str,
    state: &'a FileState,
    entry: LedgerEntry,
    /// The ledger's entry before this turn.
    known: Option<&'a LedgerEntry>,
    /// The tokens of the whole text with its frame. For a file that overflowed before this turn already, 0, because
    /// such a file is not sent.
    whole: usize,
    /// See [`Seen::is_first`].
    is_first: bool,
}

/// Plans a turn of `thread`. `files` are all files of the thread and of the call, by path, each once. If `forced` is
/// given, a new epoch begins in any case. If `may_move` is true, inline files may overflow if the prompt doesn't fit
/// otherwise. If `may_move` is false, the error says how much shorter the history has to be.
pub fn plan(
    thread: &Thread,
    files: &[Seen],
    room: Room,
    forced: Option<Why>,
    may_move: bool,
) -> Result<Plan, Full> {
    let Some(most) = room.most() else {
        return Err(Full::Everything(room.answer + room.fixed + room.history - room.window));
    };
    let known: BTreeMap<&str, &LedgerEntry> =
        thread.ledger.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let mut placed: Vec<File> =
        files.iter().filter_map(|seen| File::of(seen, known.get(seen.path.as_str()).copied())).collect();
    let sent = Sent::of(&thread.blocks);
    let is_fixed = place_new(&mut placed, thread, &sent, room.offered(), forced.is_some());
    if forced.is_none() {
        let plan = next_turn(&placed, &sent, is_fixed);
        let total = sent.tokens + plan.appended;
        let outdated = total.saturating_sub(plan.whole);
        if total <= most && outdated as f64 <= room.window as f64 * STALE_SHARE {
            return Ok(plan);
        }
        let why = if total > most { Why::Full } else { Why::Outdated };
        return new_epoch(placed, thread, room, most, why, is_fixed, may_move);
    }
    new_epoch(placed, thread, room, most, forced.unwrap_or(Why::Full), is_fixed, may_move)
}

impl<'a> File<'a> {
    /// Returns the file with its place before this turn. A new file overflows until it gets a place. Returns `None` for
    /// a file that is gone and not in the thread.
    fn of(seen: &'a Seen, known: Option<&'a LedgerEntry>) -> Option<File<'a>> {
        let mut entry = match (&seen.state, known) {
            (FileState::Unchanged | FileState::Gone(_), None) => return None,
            (FileState::Unchanged, Some(known)) => known.clone(),
            (FileState::Gone(_), Some(known)) => LedgerEntry { is_removed: true, ..known.clone() },
            (FileState::Read { stat, raw, sent, tokens, .. }, _) => LedgerEntry {
                path: seen.path.clone(),
                place: known.map_or(FilePlace::Overflow, |known| known.place),
                stat: *stat,
                raw: *raw,
                sent: *sent,
                tokens: *tokens,
                is_removed: false,
            },
        };
        if entry.is_removed && entry.place == FilePlace::Overflow {
            entry.tokens = 0;
        }
        // A file that was searched before is no longer sent, so its length doesn't matter.
        let is_searched = known.is_some() && entry.place == FilePlace::Overflow;
        let whole = if is_searched { 0 } else { framed(&seen.path, entry.tokens as usize) };
        Some(File { path: &seen.path, state: &seen.state, entry, known, whole, is_first: seen.is_first })
    }

    fn is_inline(&self) -> bool {
        self.entry.place == FilePlace::Inline
    }

    fn exists(&self) -> bool {
        !self.entry.is_removed
    }

    /// Returns the text that must be sent about the file if the current epoch continues. Returns `None` if the
    /// assistant's copy is current.
    fn sending(&self, sent: &Sent<'_>) -> Option<Sending> {
        let send = |part, text: Option<Arc<str>>, tokens| {
            Some(Sending { path: self.path.to_owned(), part, text, tokens })
        };
        match self.state {
            FileState::Unchanged => None,
            FileState::Gone(_) if self.known.is_some_and(|known| known.is_removed) => None,
            FileState::Gone(why) => {
                let why: Arc<str> = why.as_str().into();
                let tokens = framed(self.path, tokens::count(&why));
                send(Part::Removal, Some(why), tokens)
            }
            FileState::Read { sent: now, text, before, .. } => {
                let has_copy =
                    self.known.is_some_and(|known| known.place == FilePlace::Inline && !known.is_removed);
                if has_copy && self.known.is_some_and(|known| known.sent == *now) {
                    return None;
                }
                let both = before.as_ref().filter(|_| has_copy).zip(text.as_ref());
                let diff = both.map(|(before, text)| (changes(before, text), text.len()));
                if let Some((diff, _)) = diff.filter(|(diff, whole)| diff.len() < *whole) {
                    let tokens = framed(self.path, tokens::count(&diff));
                    let earlier = sent.changes.get(self.path).copied().unwrap_or(0);
                    if tokens + earlier < self.whole {
                        return send(Part::Change, Some(diff.into()), tokens);
                    }
                }
                send(Part::File, text.clone(), self.whole)
            }
        }
    }
}

/// A summary of the epoch's blocks that are about files.
struct Sent<'a> {
    /// The tokens of all blocks that are about files.
    tokens: usize,
    /// The tokens of each file's diffs since it was last sent whole.
    changes: BTreeMap<&'a str, usize>,
}

impl Sent<'_> {
    fn of(blocks: &[Block]) -> Sent<'_> {
        let mut sent = Sent { tokens: 0, changes: BTreeMap::new() };
        for block in blocks {
            let Some(path) = &block.path else { continue };
            let tokens = block.tokens as usize;
            sent.tokens += tokens;
            match block.part {
                Part::Change => *sent.changes.entry(path).or_default() += tokens,
                _ => {
                    sent.changes.remove(path.as_str());
                }
            }
        }
        sent
    }
}

/// Gives places to new files. Returns whether the places are fixed from now on.
fn place_new(
    files: &mut [File<'_>],
    thread: &Thread,
    sent: &Sent<'_>,
    offered: usize,
    is_new_epoch: bool,
) -> bool {
    if thread.is_fixed {
        return true;
    }
    let current = |file: &File<'_>| file.known.is_some() && file.is_inline() && file.exists();
    let mut taken: usize = if is_new_epoch {
        files.iter().filter(|file| current(file)).map(|file| file.whole).sum()
    } else {
        let appended = files.iter().filter(|file| current(file)).filter_map(|file| file.sending(sent));
        sent.tokens + appended.map(|sending| sending.tokens).sum::<usize>()
    };
    let mut new: Vec<&mut File<'_>> = files.iter_mut().filter(|file| file.known.is_none()).collect();
    new.sort_by_key(|file| (!file.is_first, file.entry.tokens, file.path));
    let mut is_fixed = false;
    for file in new {
        if taken + file.whole <= offered {
            taken += file.whole;
            file.entry.place = FilePlace::Inline;
        } else {
            is_fixed = true;
        }
    }
    is_fixed
}

/// Returns a plan that continues the current epoch.
fn next_turn(files: &[File<'_>], sent: &Sent<'_>, is_fixed: bool) -> Plan {
    let mut plan = Plan { is_fixed, ..Plan::default() };
    for file in files {
        if file.known != Some(&file.entry) {
            plan.entries.push(file.entry.clone());
        }
        if !file.is_inline() {
            if file.exists() {
                plan.overflow.push(file.path.to_owned());
            }
            continue;
        }
        if file.exists() {
            plan.whole += file.whole;
        }
        match file.sending(sent) {
            Some(sending) => {
                plan.appended += sending.tokens;
                plan.sendings.push(sending);
            }
            None if file.exists() => plan.unchanged.push(file.path.to_owned()),
            None => {}
        }
    }
    plan
}

/// Returns a plan that begins a new epoch, in which every inline file is sent whole. If the files don't fit, the
/// largest ones overflow.
fn new_epoch(
    mut files: Vec<File<'_>>,
    thread: &Thread,
    room: Room,
    most: usize,
    why: Why,
    mut is_fixed: bool,
    may_move: bool,
) -> Result<Plan, Full> {
    let mut moved = Vec::new();
    let is_sent = |file: &File<'_>| file.is_inline() && file.exists();
    let mut total: usize = files.iter().filter(|file| is_sent(file)).map(|file| file.whole).sum();
    let goal = most.saturating_sub(room.growth);
    // Some room must be left. Otherwise the next change would fill the window again, and every turn would begin an
    // epoch.
    let is_tight = why == Why::Full && total > most.saturating_sub(room.growth / 2);
    if total > most || is_tight {
        if !may_move && room.history > 0 {
            return Err(Full::History(total - goal));
        }
        let mut largest: Vec<usize> = (0..files.len()).filter(|&at| is_sent(&files[at])).collect();
        largest.sort_by(|&a, &b| (files[b].whole, files[a].path).cmp(&(files[a].whole, files[b].path)));
        for at in largest {
            if total <= goal {
                break;
            }
            total -= files[at].whole;
            files[at].entry.place = FilePlace::Overflow;
            is_fixed = true;
            if files[at].known.is_some() {
                moved.push(Moved { path: files[at].path.to_owned(), to: FilePlace::Overflow });
            }
        }
        moved.sort_by(|a, b| a.path.cmp(&b.path));
    }
    let is_fixed = is_fixed || thread.is_fixed;
    let mut plan = Plan { is_fixed, moved, new_epoch: Some(why), ..Plan::default() };
    for file in files.iter().filter(|file| file.exists()) {
        plan.entries.push(file.entry.clone());
        if !file.is_inline() {
            plan.overflow.push(file.path.to_owned());
            continue;
        }
        let text = match file.state {
            FileState::Read { text, .. } => text.clone(),
            _ => None,
        };
        plan.whole += file.whole;
        plan.appended += file.whole;
        plan.sendings.push(Sending {
            path: file.path.to_owned(),
            part: Part::File,
            text,
            tokens: file.whole,
        });
    }
    Ok(plan)
}
