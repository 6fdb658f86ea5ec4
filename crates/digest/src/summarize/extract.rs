//! Makes a summary without a model. It consists of whole sentences of the sources.
//!
//! A conversation of a user with an assistant becomes an account of its exchanges (`account.rs`). For any other
//! sources, such as a talk between people or the message of a commit, their most informative sentences are chosen
//! (`talk.rs`). If nothing can be quoted, the summary describes the content instead.

use super::account::account;
use super::account::to_do::open_line;
use super::assisted::is_assisted;
use super::exchanges::exchanges;
use super::reading::Reading;
use super::talk::talk;
use super::{Source, Summary};
use tiro_base::humanize::counted;
use tiro_base::memory::{Level, Role};
use tiro_text::blocks::{self, blocks, without_added};

/// The beginning of a summary that quotes nothing, because the sources contain only code, logs or tool calls.
pub const NO_SENTENCE: &str = "No sentence to quote";

/// Returns a summary of `sources` that quotes whole sentences and whole list items. At [`Level::Brief`] it has at most
/// two of them, otherwise as many as fit into `max_tokens`. `count` returns the number of tokens of a text. Sentences
/// with words of `focus` are preferred.
///
/// The text never has more than `max_tokens` tokens. If not even one sentence fits, the text is empty. The same input
/// always results in the same text.
pub fn extract(
    sources: &[Source<'_>],
    level: Level,
    max_tokens: usize,
    focus: &str,
    count: &dyn Fn(&str) -> usize,
) -> Summary {
    let reading = Reading::of(sources, focus);
    let exchanges = match is_assisted(sources) {
        true => exchanges(&reading, sources),
        false => Vec::new(),
    };
    let mut summary = match exchanges.is_empty() {
        false => account(&reading, &exchanges, sources, level, max_tokens, count),
        true => talk(&reading, sources, level, max_tokens, count),
    };
    if summary.text.is_empty() && reading.sentences.iter().all(|sentence| sentence.is_boilerplate) {
        summary = without_sentences(sources, max_tokens, count);
    }
    summary.unread = reading.unread;
    summary
}

/// The open items of a to-do list may take at most this share of the tokens of a summary. Arbitrary.
const OPEN_SHARE: usize = 3;

/// Like [`extract`], for sources that reach to the end of a conversation: the summary ends with what is open in the
/// to-do list.
pub fn extract_to_the_end(
    sources: &[Source<'_>],
    level: Level,
    max_tokens: usize,
    focus: &str,
    count: &dyn Fn(&str) -> usize,
) -> Summary {
    let open = open_line(sources, max_tokens / OPEN_SHARE, count);
    if let Some((line, ordinal)) = open {
        let mut summary = extract(sources, level, max_tokens.saturating_sub(count(&line)), focus, count);
        if !summary.text.is_empty() && count(&format!("{}{line}", summary.text)) <= max_tokens {
            summary.text += &line;
            summary.cited.push(ordinal);
            summary.cited.sort_unstable();
            summary.cited.dedup();
            return summary;
        }
    }
    extract(sources, level, max_tokens, focus, count)
}

/// Returns a description of sources in which no sentence can be quoted: the numbers of messages, tool calls and blocks
/// of code.
fn without_sentences(sources: &[Source<'_>], max_tokens: usize, count: &dyn Fn(&str) -> usize) -> Summary {
    let said = |source: &&Source<'_>| source.text.contains(char::is_alphanumeric);
    let calls: Vec<&Source<'_>> =
        sources.iter().filter(said).filter(|source| source.role == Role::Tool).collect();
    let messages: Vec<&Source<'_>> =
        sources.iter().filter(said).filter(|source| source.role != Role::Tool).collect();
    if calls.is_empty() && messages.is_empty() {
        return Summary::default();
    }
    let mut tools: Vec<(&str, usize)> = Vec::new();
    for call in &calls {
        let name = call.speaker;
        match tools.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => *times += 1,
            None => tools.push((name, 1)),
        }
    }
    tools.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let mut parts = Vec::new();
    if !calls.is_empty() {
        let named =
            tools.iter().filter(|(name, _)| !matches!(*name, "" | "tool") && name.len() <= 40).take(4);
        let named: Vec<String> = named.map(|(name, times)| format!("{name} {times}")).collect();
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        parts.push(counted(calls.len(), "tool call", "tool calls") + &named);
    }
    if !messages.is_empty() {
        let code = messages
            .iter()
            .flat_map(|source| blocks(&without_added(source.text)))
            .filter(|block| block.kind == blocks::Kind::Code)
            .count();
        let code = if code > 0 {
            format!(" with {}", counted(code, "block of code", "blocks of code"))
        } else {
            String::new()
        };
        parts.push(counted(messages.len(), "message", "messages") + &code);
    }
    let text = format!("{NO_SENTENCE}: {}.", parts.join(" and "));
    match count(&text) <= max_tokens {
        true => Summary {
            text,
            cited: sources.iter().filter(said).map(|source| source.ordinal).collect(),
            unread: 0,
        },
        false => Summary::default(),
    }
}
