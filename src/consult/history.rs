//! The earlier exchanges of a thread: which of them a prompt repeats, and what stands in place of the others.
//!
//! Exchanges are repeated word for word as long as they fit. If they don't fit, the oldest are replaced by a summary that
//! quotes them. They stay in the project's memory, where the assistant can search them.

use crate::inline::{FORGOTTEN, quote};
use crate::memory::{Level, Role};
use crate::store::Exchange;
use crate::summarize::{self, Source};
use crate::thread::{Block, BlockText, ContentHash, Part};
use crate::tokens;
use crate::tuning::consult::{OTHERS_TOKENS, SHORTENED_SHARE, SHORTENED_TOKENS};

/// The maximum number of tokens around the text of an opening.
const FRAME_TOKENS: usize = 80;

/// Returns the blocks that a new epoch takes over: everything that is not about files or about a single call.
pub(crate) fn kept(blocks: &[Block]) -> Vec<Block> {
    let stays = |block: &&Block| matches!(block.part, Part::Opening | Part::Question | Part::Answer);
    blocks.iter().filter(stays).cloned().collect()
}

/// Returns the tokens of `blocks` that are not about files.
pub(crate) fn tokens_of(blocks: &[Block]) -> usize {
    blocks.iter().filter(|block| block.path.is_none()).map(|block| block.tokens as usize).sum()
}

/// Returns `blocks` with the oldest turns replaced by a summary, so that they take at least `over` tokens less, if that is
/// possible. Also returns how many turns were replaced.
pub(crate) fn shortened(blocks: &[Block], over: usize, key: &[u8; 32]) -> (Vec<Block>, usize) {
    let mut turns: Vec<u32> = blocks.iter().map(|block| block.turn).collect();
    turns.dedup();
    let (mut freed, mut replaced) = (0, 0_usize);
    let most =
        |freed: usize| ((freed as f64 * SHORTENED_SHARE) as usize).max(SHORTENED_TOKENS) + FRAME_TOKENS;
    for turn in &turns {
        if freed >= over + most(freed) {
            break;
        }
        freed += blocks
            .iter()
            .filter(|block| block.turn == *turn)
            .map(|block| block.tokens as usize)
            .sum::<usize>();
        replaced += 1;
    }
    let Some(&last) = replaced.checked_sub(1).and_then(|at| turns.get(at)) else {
        return (blocks.to_vec(), 0);
    };
    let (old, rest): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(|block| block.turn <= last);
    let texts: Vec<(Role, &str)> = old
        .iter()
        .filter_map(|block| {
            let role = match block.part {
                Part::Question => Role::User,
                Part::Answer => Role::Assistant,
                _ => return None,
            };
            Some((role, text(block)))
        })
        .collect();
    let sources: Vec<Source> =
        texts.iter().enumerate().map(|(at, (role, text))| source(at, *role, text)).collect();
    let length = ((freed as f64 * SHORTENED_SHARE) as usize).max(SHORTENED_TOKENS);
    let summary = summarize::extract(&sources, Level::Detailed, length, "", &tokens::count).text;
    let said = format!(
        "[the first {replaced} turns of this thread did not fit any more; this summary quotes them, and \
         search_project_memory finds them whole]\n{}",
        quote(key, "earlier", "turns", &summary)
    );
    let mut blocks = vec![opening(last, said)];
    blocks.extend(rest.into_iter().cloned());
    (blocks, replaced)
}

/// Returns the block that tells an assistant what others said in the session, in short.
pub(crate) fn others(turn: u32, exchanges: &[Exchange], key: &[u8; 32]) -> Option<Block> {
    let share = OTHERS_TOKENS / exchanges.len().max(1);
    let mut said = String::new();
    for exchange in exchanges {
        let asked = in_short(Role::User, &exchange.question, share / 4);
        let answered = in_short(Role::Assistant, &exchange.answer, share - share / 4);
        said += &quote(key, "asked", &exchange.assistant, &asked);
        said += &quote(key, "answered", &exchange.assistant, &answered);
    }
    let line = "[other assistants were asked in this session; in short]\n";
    (!said.is_empty()).then(|| opening(turn, format!("{line}{said}")))
}

/// Returns an opening with its tokens.
fn opening(turn: u32, text: String) -> Block {
    let tokens = u32::try_from(tokens::count(&text) + 2).unwrap_or(u32::MAX);
    let hash = ContentHash::of(text.as_bytes());
    Block { turn, part: Part::Opening, path: None, tokens, text: BlockText::Blob(hash, Some(text)) }
}

/// Returns `text` if it has at most `most` tokens, otherwise whole sentences of it.
pub(crate) fn in_short(role: Role, text: &str, most: usize) -> String {
    if tokens::truncate(text, most).len() == text.len() {
        return text.trim().to_owned();
    }
    let summary =
        summarize::extract(&[source(0, role, text)], Level::Detailed, most, "", &tokens::count).text;
    match summary.is_empty() {
        true => format!("{}…", tokens::truncate(text, most.saturating_sub(1)).trim_end()),
        false => summary,
    }
}

fn source(at: usize, role: Role, text: &str) -> Source<'_> {
    Source { ordinal: at as i64, speaker: "", role, time: 0, text, corrected: &[] }
}

fn text(block: &Block) -> &str {
    match &block.text {
        BlockText::Message(_, text) => text.as_deref().unwrap_or(FORGOTTEN),
        BlockText::Blob(_, text) => text.as_deref().unwrap_or_default(),
    }
}
