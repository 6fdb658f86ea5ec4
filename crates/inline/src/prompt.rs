//! Makes the turns of a prompt from the blocks of a thread.

use super::frame::Frame;
use tiro_base::thread::{Block, BlockText, Part};

/// The text in place of a forgotten message.
const FORGOTTEN: &str = "[this message was removed at the user's request]";

/// The line before the instructions, if other text comes before the instructions in the same turn.
pub const INSTRUCTIONS: &str = "[instructions]\n";

/// The text of one side in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The caller's text: files, notes and instructions.
    Caller(String),
    /// What the assistant answered.
    Assistant(String),
}

/// Returns the text of a block in the form in which the assistant sees it. The result is empty if the text was removed
/// to save space.
pub fn text(block: &Block) -> &str {
    match &block.text {
        BlockText::Message(_, text) => text.as_deref().unwrap_or(FORGOTTEN),
        BlockText::Blob(_, text) => text.as_deref().unwrap_or_default(),
    }
}

/// Returns the turns made from `blocks`, in order. The same blocks always give the same bytes, and additional blocks
/// only add text at the end. A block whose text was removed to save space is left out: the caller begins a new epoch in
/// this case.
pub fn said<'b>(blocks: impl IntoIterator<Item = &'b Block>, key: &[u8; 32]) -> Vec<Said> {
    let mut turns: Vec<Said> = Vec::new();
    for block in blocks {
        let text = text(block);
        if block.part == Part::Answer {
            turns.push(Said::Assistant(text.to_owned()));
            continue;
        }
        if !matches!(turns.last(), Some(Said::Caller(_))) {
            turns.push(Said::Caller(String::new()));
        }
        let Some(Said::Caller(sent)) = turns.last_mut() else { continue };
        let frame = block.path.as_deref().and_then(|path| Frame::of(block.part, path, text));
        match frame {
            Some(frame) => sent.push_str(&frame.render(key)),
            None if block.part == Part::Question => {
                if !sent.is_empty() {
                    sent.push_str(INSTRUCTIONS);
                }
                sent.push_str(text);
            }
            None => {
                sent.push_str(text);
                if !text.ends_with('\n') {
                    sent.push('\n');
                }
            }
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{Kind, MemoryId};
    use tiro_base::thread::ContentHash;

    fn blob(turn: u32, part: Part, path: Option<&str>, text: &str) -> Block {
        let hash = ContentHash::of(text.as_bytes());
        Block {
            turn,
            part,
            path: path.map(str::to_owned),
            tokens: 1,
            text: BlockText::Blob(hash, Some(text.into())),
        }
    }

    fn message(turn: u32, part: Part, text: Option<&str>) -> Block {
        let id = MemoryId::derive(Kind::Message, None, "1");
        Block { turn, part, path: None, tokens: 1, text: BlockText::Message(id, text.map(str::to_owned)) }
    }

    #[test]
    fn a_later_prompt_begins_with_the_earlier_one() {
        let blocks = [
            blob(1, Part::Opening, None, "[note: this thread is new]"),
            blob(1, Part::File, Some("a.rs"), "fn a() {}\n"),
            message(1, Part::Question, Some("What does a do?")),
            message(1, Part::Answer, Some("Nothing.")),
            message(2, Part::Question, None),
            message(2, Part::Answer, Some("It is gone.")),
            blob(3, Part::Removal, Some("a.rs"), "it no longer exists"),
            message(3, Part::Question, Some("And now?")),
        ];
        let turns = said(&blocks, &[7; 32]);
        let shown: Vec<String> = turns.iter().map(|said| words(said).to_owned()).collect();
        let file = Frame::File { path: "a.rs", text: "fn a() {}\n" }.render(&[7; 32]);
        let removal = Frame::Removal { path: "a.rs", why: "it no longer exists" }.render(&[7; 32]);
        assert_eq!(
            shown,
            [
                format!("[note: this thread is new]\n{file}[instructions]\nWhat does a do?"),
                "Nothing.".to_owned(),
                FORGOTTEN.to_owned(),
                "It is gone.".to_owned(),
                format!("{removal}[instructions]\nAnd now?"),
            ]
        );
        for end in 0..blocks.len() {
            let earlier = said(&blocks[..end], &[7; 32]);
            let whole = format!("{:?}", turns.iter().map(words).collect::<String>());
            let part = format!("{:?}", earlier.iter().map(words).collect::<String>());
            assert!(whole.starts_with(part.trim_end_matches('"')));
        }
    }

    fn words(said: &Said) -> &str {
        match said {
            Said::Caller(text) | Said::Assistant(text) => text,
        }
    }
}
