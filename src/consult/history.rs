//! The earlier exchanges of a thread: which of them a prompt repeats, and what stands in place of the others.
//!
//! Exchanges are repeated word for word as long as they fit. If they don't fit, the oldest are replaced by a summary that
//! quotes them. They stay in the project's memory, where the assistant can search them.

use std::borrow::Cow;

use super::notes;
use crate::inline::{quote, text};
use crate::memory::{Level, Role};
use crate::store::Exchange;
use crate::summarize::{self, Source};
use crate::thread::{Block, Part};
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
/// possible. Also returns the last turn that was replaced; `None` if there is none.
pub(crate) fn shortened(blocks: &[Block], over: usize, key: &[u8; 32]) -> (Vec<Block>, Option<u32>) {
    let mut turns: Vec<u32> = blocks.iter().map(|block| block.turn).collect();
    turns.dedup();
    let most = |freed: usize| ((freed as f64 * SHORTENED_SHARE) as usize).max(SHORTENED_TOKENS);
    let (mut freed, mut last) = (0, None);
    for turn in turns {
        if freed >= over + most(freed) + FRAME_TOKENS {
            break;
        }
        let of_turn = blocks.iter().filter(|block| block.turn == turn);
        freed += of_turn.map(|block| block.tokens as usize).sum::<usize>();
        last = Some(turn);
    }
    let Some(last) = last else { return (blocks.to_vec(), None) };
    let (old, rest): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(|block| block.turn <= last);
    let texts: Vec<(Role, Cow<'_, str>)> = old.into_iter().filter_map(said).collect();
    let sources: Vec<Source> =
        texts.iter().enumerate().map(|(at, (role, text))| source(at, *role, text)).collect();
    let summary = summarize::extract(&sources, Level::Detailed, most(freed), "", &tokens::count).text;
    let said = format!(
        "[turns 1 to {last} of this thread did not fit any more; this summary quotes them, and \
         search_project_memory finds them whole]\n{}",
        quote(key, "earlier", "turns", &summary)
    );
    let mut blocks = vec![notes::block(last, Part::Opening, said)];
    blocks.extend(rest.into_iter().cloned());
    (blocks, Some(last))
}

/// Returns who said a block that a summary replaces, and the text. Of an opening, this is what it quotes.
fn said(block: &Block) -> Option<(Role, Cow<'_, str>)> {
    let text = text(block);
    match block.part {
        Part::Question => Some((Role::User, text.into())),
        Part::Answer => Some((Role::Assistant, text.into())),
        Part::Opening => {
            let is_frame = |line: &&str| line.starts_with('[') && line.ends_with(']');
            let lines: Vec<&str> = text.lines().filter(|line| !is_frame(line)).collect();
            Some((Role::Assistant, lines.join("\n").into()))
        }
        Part::File | Part::Change | Part::Removal | Part::Note => None,
    }
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
    (!said.is_empty()).then(|| notes::block(turn, Part::Opening, format!("{line}{said}")))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Kind, MemoryId};
    use crate::thread::BlockText;

    fn exchange(turn: u32, about: &str) -> [Block; 2] {
        let block = |part, text: String| {
            let id = MemoryId::derive(Kind::Message, None, &text);
            let tokens = tokens::count(&text) as u32;
            Block { turn, part, path: None, tokens, text: BlockText::Message(id, Some(text)) }
        };
        let padding = "It was a quiet afternoon in the office. ".repeat(20);
        let asked = format!("How large must the {about} be? {padding}");
        let answered = format!("We decided that the {about} must be {turn}40 litres large. {padding}");
        [block(Part::Question, asked), block(Part::Answer, answered)]
    }

    #[test]
    fn a_second_summary_keeps_what_the_first_one_quotes_and_counts_all_turns() {
        let names = ["cistern", "barrel", "kettle", "funnel", "basin", "bucket"];
        let turns: Vec<Block> = (1..).zip(names).flat_map(|(turn, name)| exchange(turn, name)).collect();
        let key = &[7; 32];
        let (first, last) = shortened(&turns, 300, key);
        assert_eq!(last, Some(2));
        assert!(tokens_of(&first) + 300 <= tokens_of(&turns));
        let (second, last) = shortened(&first, 600, key);
        assert!(last > Some(3) && tokens_of(&second) + 600 <= tokens_of(&first), "{last:?}");
        let summary = text(&second[0]);
        assert!(summary.starts_with(&format!("[turns 1 to {} of this thread", last.unwrap())), "{summary}");
        for quoted in ["cistern must be 140", "barrel must be 240", "kettle must be 340"] {
            assert!(summary.contains(quoted), "{quoted}: {summary}");
        }
        assert_eq!(summary.matches("[earlier turns").count(), 1, "{summary}");
    }
}
