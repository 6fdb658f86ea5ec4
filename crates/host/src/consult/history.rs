//! Decides which earlier exchanges of a thread a prompt repeats, and makes a summary that replaces the others.
//!
//! Exchanges are repeated word for word as long as they fit. If they don't fit, a summary that quotes the oldest
//! exchanges replaces them. The replaced exchanges stay in the project's memory, where the assistant can search them.

use super::notes;
use crate::tuning::{OTHERS_TOKENS, SHORTENED_SHARE, SHORTENED_TOKENS};
use tiro_base::memory::{Level, Role};
use tiro_base::thread::{Block, Part};
use tiro_digest::summarize::{self, NO_SENTENCE, Source};
use tiro_inline::{quote, text};
use tiro_store::Exchange;
use tiro_text::tokens;

/// The maximum number of tokens of an opening in addition to the text that it quotes.
const FRAME_TOKENS: usize = 80;

/// Returns the blocks that a new epoch takes over. These are all blocks that are not about files or about a single
/// call.
pub fn kept(blocks: &[Block]) -> Vec<Block> {
    let stays = |block: &&Block| matches!(block.part, Part::Opening | Part::Question | Part::Answer);
    blocks.iter().filter(stays).cloned().collect()
}

/// Returns the number of tokens of those `blocks` that are not about files.
pub fn tokens_of(blocks: &[Block]) -> usize {
    blocks.iter().filter(|block| block.path.is_none()).map(|block| block.tokens as usize).sum()
}

/// Returns `blocks` with the oldest turns replaced by a summary. The result has at least `over` fewer tokens, if this
/// is possible. Also returns the number of the last replaced turn, or `None` if no turn was replaced.
pub fn shortened(blocks: &[Block], over: usize, key: &[u8; 32]) -> (Vec<Block>, Option<u32>) {
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
    let earlier: Vec<String> = old.iter().filter_map(|block| quoted(block)).collect();
    let earlier = in_short(Role::User, &earlier.join("\n"), most(freed) / 2);
    let sources: Vec<Source> = old.into_iter().filter_map(said).collect();
    let room = most(freed) - tokens::count(&earlier);
    let later = sentences(&sources, room);
    let summary = [earlier, later].join("\n");
    let summary = summary.trim_start();
    let said = format!(
        "[turns 1 to {last} of this thread did not fit any more; this summary quotes them, and \
         search_project_memory finds them whole]\n{}",
        quote(key, "earlier", "turns", summary)
    );
    let mut blocks = vec![notes::block(last, Part::Opening, said)];
    blocks.extend(rest.into_iter().cloned());
    (blocks, Some(last))
}

/// Returns the block as a source, with the number of its turn. Returns `None` if the block is neither a question nor an
/// answer.
fn said(block: &Block) -> Option<Source<'_>> {
    match block.part {
        Part::Question => Some(source(block.turn, Role::User, text(block))),
        Part::Answer => Some(source(block.turn, Role::Assistant, text(block))),
        _ => None,
    }
}

/// Returns the text that an opening quotes, without its frames. Returns `None` if the block is not an opening.
fn quoted(block: &Block) -> Option<String> {
    let is_frame = |line: &&str| line.starts_with('[') && line.ends_with(']');
    let lines = || text(block).lines().filter(|line| !is_frame(line)).collect::<Vec<_>>();
    (block.part == Part::Opening).then(|| lines().join("\n"))
}

/// Returns a block with a short version of what other assistants said in the session.
pub fn others(turn: u32, exchanges: &[Exchange], key: &[u8; 32]) -> Option<Block> {
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

/// Returns `text` if it has at most `most` tokens, otherwise only some whole sentences of it.
pub fn in_short(role: Role, text: &str, most: usize) -> String {
    if tokens::truncate(text, most).len() == text.len() {
        return text.trim().to_owned();
    }
    sentences(&[source(0, role, text)], most)
}

/// Returns whole sentences of `sources` with at most `most` tokens. If no sentence can be quoted, as in code, returns
/// the beginnings of the sources.
fn sentences(sources: &[Source], most: usize) -> String {
    let summary = summarize::extract(sources, Level::Detailed, most, "", &tokens::count).text;
    if !summary.is_empty() && !summary.starts_with(NO_SENTENCE) {
        return summary;
    }
    let share = (most / sources.len().max(1)).saturating_sub(1);
    let begin = |source: &Source| match tokens::truncate(source.text, share) {
        whole if whole.len() == source.text.len() => whole.to_owned(),
        part => format!("{}…", part.trim_end()),
    };
    sources.iter().map(begin).filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

fn source(turn: u32, role: Role, text: &str) -> Source<'_> {
    Source { ordinal: i64::from(turn), speaker: "", role, time: 0, text, corrected: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{Kind, MemoryId};
    use tiro_base::thread::BlockText;

    fn exchange(turn: u32, about: &str) -> [Block; 2] {
        let block = |part, text: String| {
            let id = MemoryId::derive(Kind::Message, None, &text);
            let tokens = tokens::count(&text) as u32;
            Block { turn, part, path: None, tokens, text: BlockText::Message(id, Some(text)) }
        };
        let more: String =
            (0..30).map(|at| format!("Case {turn}.{at} of the {about} fills slowly. ")).collect();
        let asked = format!("How large must the {about} be?");
        let answered = format!("We decided that the {about} must be {turn}40 litres large. {more}");
        [block(Part::Question, asked), block(Part::Answer, answered)]
    }

    #[test]
    fn a_second_summary_keeps_what_the_first_one_quotes_and_counts_all_turns() {
        let names = ["cistern", "barrel", "kettle", "funnel", "basin", "bucket", "trough", "flask", "ladle"];
        let turns: Vec<Block> = (1..).zip(names).flat_map(|(turn, name)| exchange(turn, name)).collect();
        let key = &[7; 32];
        let (first, before) = shortened(&turns, 300, key);
        assert!(before < Some(5) && tokens_of(&first) + 300 <= tokens_of(&turns), "{before:?}");
        let (second, last) = shortened(&first, 600, key);
        assert!(last > before && tokens_of(&second) + 600 <= tokens_of(&first), "{last:?}");
        let summary = text(&second[0]);
        assert!(summary.starts_with(&format!("[turns 1 to {} of this thread", last.unwrap())), "{summary}");
        for (turn, name) in (1..=last.unwrap()).zip(names) {
            assert!(summary.contains(&format!("#{turn} user: How large must the {name} be?")), "{summary}");
        }
        assert_eq!(summary.matches("[earlier turns").count(), 1, "{summary}");
    }
}
