//! Makes summaries with a model. This module makes the requests, several if the sources don't fit into the model's
//! window, and checks the answer.
//!
//! All quoted text is in an envelope, so that the model can't mistake it for an instruction. An answer that is too long
//! is cut at the end of a sentence. If [`judge`] rejects an answer, the model is asked once more, and the request
//! states the fault. If the second answer is rejected too, the caller chooses sentences instead.
//!
//! The prompts are files in `prompts/`.

use super::quality::{Verdict, judge, sentences};
use super::{Source, cite};
use crate::tuning::summaries::WORDS_OF_TEN_TOKENS;
use tiro_base::envelope;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::{Level, Role};
use tiro_llm::{Reply, Request, Turn};

/// The maximum number of parts into which sources are divided. Each part needs a request, and more requests would take
/// too long and cost too much. Arbitrary.
const MOST_PARTS: usize = 16;

/// The maximum number of tokens of a prompt, not counting the material that it quotes.
pub(super) const INSTRUCTION: usize = 400;

/// For each token of an answer's limit, at most this many bytes of the answer are read. An answer with more bytes is
/// too long in any script, so the rest isn't counted. Even in Hindi, a token has only about eight bytes.
const LONGEST: usize = 12;

/// For each token of an answer's limit, the second request quotes at most this many bytes of the rejected answer. This
/// is about the length of an answer that uses all its tokens.
pub const SHOWN_AGAIN: usize = 6;

/// The maximum number of bytes of the list of faults in an answer. Arbitrary: room for a few sentences.
const WRONG: usize = 600;

/// An accepted summary that a model wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenSummary {
    /// The text.
    pub text: String,
    /// The ordinals of the sources from which the summary's sentences come, ascending.
    pub cited: Vec<i64>,
    /// The quality according to the checks, from 0 to 1.
    pub quality: f64,
    /// Whether the answer was too long, so that its last sentences were left out.
    pub is_cut: bool,
    /// Whether only names and numbers could be checked, because the answer is in another language than the sources.
    pub is_partial: bool,
}

/// A description of the wanted summary.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The level of detail.
    pub level: Level,
    /// The maximum number of tokens of the summary.
    pub max_tokens: usize,
    /// The topic to concentrate on; empty for everything.
    pub focus: &'a str,
    /// The summary of the messages before the sources, if the new summary continues one.
    pub previous: Option<&'a str>,
    /// The model's window, which is the number of tokens that a request and its answer may have together.
    pub window: usize,
    /// The key that is used to make the marks of envelopes.
    pub secret: &'a [u8; 32],
}

/// Returns the first requests to the model, one for each part of the sources. If there are several, [`by_model`] sends
/// one more request, which merges their answers.
///
/// Errors with [`Kind::Limit`] if the window is too small or there are too many parts.
pub fn requests(
    sources: &[Source<'_>],
    wish: &Wish<'_>,
    count: &dyn Fn(&str) -> usize,
) -> Result<Vec<Request>> {
    let before = wish.previous.map_or(0, |previous| count(previous) + 64);
    let room = wish.window.saturating_sub(2 * INSTRUCTION + 2 * output(wish) + before);
    if room < 2 * INSTRUCTION {
        return Err(Error::new(Kind::Limit, "the model's window is too small for a summary of this length"));
    }
    let parts = parts(sources, room, count);
    if parts.len() > MOST_PARTS {
        let message = format!("the range is too long: this model needs more than {MOST_PARTS} requests");
        return Err(Error::new(Kind::Limit, message).hint("name a shorter range"));
    }
    let whole = parts.len() == 1;
    let asks = parts.iter().map(|part| {
        let material = envelope::wrap(wish.secret, part);
        match wish.previous {
            Some(_) if whole => request(include_str!("prompts/update.md"), &material, wish),
            _ => request(include_str!("prompts/summarize.md"), &material, wish),
        }
    });
    Ok(asks.collect())
}

/// Asks a model for the summary of `sources`, in as many requests as needed. `ask` sends one request and waits for its
/// answer.
///
/// Errors if [`requests`] or `ask` does, and with [`Kind::Provider`] if both answers are rejected.
pub async fn by_model<A, W>(
    sources: &[Source<'_>],
    wish: &Wish<'_>,
    count: &(dyn Fn(&str) -> usize + Sync),
    mut ask: A,
) -> Result<WrittenSummary>
where
    A: FnMut(Request) -> W,
    W: Future<Output = Result<Reply>>,
{
    let mut asks = requests(sources, wish, &|text| count(text))?;
    if asks.len() > 1 {
        let mut texts: Vec<String> = wish.previous.map(str::to_owned).into_iter().collect();
        for part in asks {
            let answer = ask(part).await?.text;
            texts.push(cut(answer.trim(), SHOWN_AGAIN * wish.max_tokens).to_owned());
        }
        let material = envelope::wrap(wish.secret, &texts.join("\n\n"));
        asks = vec![request(include_str!("prompts/merge.md"), &material, wish)];
    }
    let last = asks.pop().expect("there is a request for each part");
    // The previous summary counts as a source too.
    let previous = wish.previous.map(|text| Source {
        ordinal: -1,
        speaker: "",
        role: Role::Assistant,
        time: 0,
        text,
        corrected: &[],
    });
    let all: Vec<Source<'_>> = previous.into_iter().chain(sources.iter().copied()).collect();
    let written = until_good(last, wish, count, &|text| judge(text, &all), ask).await?;
    Ok(WrittenSummary { cited: cite(&written.text, sources), ..written })
}

/// Requests a text that `judge` accepts. If the first answer is rejected, asks once more and states the fault.
///
/// Errors if `ask` does, and with [`Kind::Provider`] if the second answer is rejected too.
pub(super) async fn until_good<A, W>(
    mut last: Request,
    wish: &Wish<'_>,
    count: &(dyn Fn(&str) -> usize + Sync),
    judge: &(dyn Fn(&str) -> Verdict + Sync),
    mut ask: A,
) -> Result<WrittenSummary>
where
    A: FnMut(Request) -> W,
    W: Future<Output = Result<Reply>>,
{
    let mut fault = String::new();
    for _ in 0..2 {
        let answer = ask(last.clone()).await?;
        let all = answer.text.trim();
        let text = whole(all, answer.is_cut, wish.max_tokens, count);
        let wrong;
        (fault, wrong) = if all.is_empty() {
            ("is empty".to_owned(), String::new())
        } else if text.is_empty() {
            (format!("has no sentence that ends within {} tokens", wish.max_tokens), String::new())
        } else {
            let verdict = judge(text);
            if verdict.accepts() {
                let Verdict { quality, is_partial, .. } = verdict;
                let (text, is_cut) = (text.to_owned(), text.len() < all.len());
                return Ok(WrittenSummary { text, cited: Vec::new(), quality, is_cut, is_partial });
            }
            (verdict.fault.to_owned(), verdict.wrong.join("; "))
        };
        let wrong = envelope::escape(cut(&wrong, WRONG));
        let wrong = if wrong.is_empty() { String::new() } else { format!(": {wrong}") };
        let again = fill(include_str!("prompts/again.md"), wish, &[("fault", &fault), ("wrong", &wrong)]);
        let text = cut(all, SHOWN_AGAIN * wish.max_tokens).to_owned();
        last.turns.push(Turn::Assistant { text, calls: Vec::new(), kept: None });
        last.turns.push(Turn::user(again));
    }
    Err(Error::new(Kind::Provider, format!("the model's answer {fault}")))
}

/// Returns as many whole sentences from the beginning of `text` as fit into `max_tokens`. If all of `text` fits,
/// returns all of it, unless the provider cut it off.
fn whole<'a>(
    text: &'a str,
    is_cut_off: bool,
    max_tokens: usize,
    count: &(dyn Fn(&str) -> usize + Sync),
) -> &'a str {
    let read = cut(text, LONGEST * max_tokens);
    let is_whole = read.len() == text.len() && !is_cut_off;
    if is_whole && count(text) <= max_tokens {
        return text;
    }
    let mut fitting = "";
    for sentence in sentences(read) {
        let end = sentence.as_ptr().addr() - read.as_ptr().addr() + sentence.len();
        let part = &read[..end];
        let is_last = end == read.trim_end().len() && !is_whole;
        if (is_last && !part.ends_with(['.', '!', '?', '。', '！', '？'])) || count(part) > max_tokens {
            break;
        }
        fitting = part;
    }
    fitting
}

/// Returns the limit of tokens for the answer to a request. It is higher than the limit of the summary, so that the
/// provider doesn't cut off a summary that is slightly too long.
pub(super) fn output(wish: &Wish<'_>) -> usize {
    wish.max_tokens + wish.max_tokens / 4 + 16
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

pub(super) fn request(prompt: &str, material: &str, wish: &Wish<'_>) -> Request {
    let previous = wish.previous.map(|previous| envelope::wrap(wish.secret, previous)).unwrap_or_default();
    let text = fill(prompt, wish, &[("material", material), ("previous", &previous)]);
    Request {
        system: include_str!("prompts/system.md").trim().to_owned(),
        turns: vec![Turn::user(text.trim())],
        max_output: output(wish),
        ..Request::default()
    }
}

/// Returns the prompt with each name in braces replaced by its value. Names within values are not replaced.
fn fill(prompt: &str, wish: &Wish<'_>, more: &[(&str, &str)]) -> String {
    let shape = match wish.level {
        Level::Brief => "in one or two sentences that say what came of it",
        Level::Standard => "in one paragraph with the main points",
        Level::Detailed => "in several short paragraphs, by topic, that also say how it came about",
    };
    let focus = match wish.focus.is_empty() {
        true => String::new(),
        false => format!(" What matters is: {}.", envelope::escape(wish.focus)),
    };
    let words = (wish.max_tokens * WORDS_OF_TEN_TOKENS / 10).max(8).to_string();
    let values = [&[("shape", shape), ("words", &words), ("focus", &focus)], more].concat();
    let mut filled = String::new();
    let mut rest = prompt;
    while let Some((before, after)) = rest.split_once('{') {
        let found = values
            .iter()
            .find_map(|(name, value)| Some((value, after.strip_prefix(name)?.strip_prefix('}')?)));
        let (value, after) = found.unwrap_or((&"{", after));
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled + rest
}

/// Returns the sources, in order, as texts of at most `room` tokens each. A longer source is divided. The lines of a
/// source are [quoted](envelope::quoted), so none of them can be mistaken for another message.
fn parts(sources: &[Source<'_>], room: usize, count: &dyn Fn(&str) -> usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for source in sources {
        let line = format!("#{} {}: ", source.ordinal, envelope::name(source.speaker));
        let mut rest = source.text;
        while !rest.is_empty() {
            // The piece is halved until it fits. It starts with 8 bytes for each of the `room` tokens, so that the
            // total time stays linear in the length of the source.
            let mut end = rest.floor_char_boundary(room.saturating_mul(8).min(rest.len()));
            while count(&rest[..end]) + 32 > room {
                end = rest.floor_char_boundary(end / 2);
            }
            let piece = &rest[..end.max(rest.chars().next().map_or(1, char::len_utf8))];
            rest = &rest[piece.len()..];
            let piece = envelope::quoted(piece);
            let tokens = count(&piece) + count(&line) + 2;
            if used + tokens > room && used > 0 {
                parts.push(String::new());
                used = 0;
            }
            used += tokens;
            let part = parts.last_mut().expect("there is one from the start");
            *part += &line;
            *part += piece.trim_start_matches(' ');
            part.push('\n');
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use tiro_text::tokens;

    const SOURCE: &str =
        "We decided on SQLite 3.50 because Postgres needs a server. Mira tests Windows by Friday.";
    const GOOD: &str =
        "They decided on SQLite 3.50, since Postgres needs a server; Mira tests Windows by Friday.";

    fn count(text: &str) -> usize {
        tokens::count(text)
    }

    /// Asks a model that gives `answers`, one after the other. Returns the result and the requests that the model got.
    fn asked(
        sources: &[Source<'_>],
        window: usize,
        answers: &[&str],
    ) -> (Result<WrittenSummary>, Vec<Request>) {
        let asked = RefCell::new(Vec::new());
        let wish = Wish {
            level: Level::Standard,
            max_tokens: 60,
            focus: "",
            previous: None,
            window,
            secret: &[7; 32],
        };
        let ask = |request: Request| {
            let place = asked.borrow().len();
            asked.borrow_mut().push(request);
            let text = answers.get(place).map(|text| (*text).to_owned());
            let none = || Error::new(Kind::Provider, "no more answers");
            std::future::ready(text.ok_or_else(none).map(|text| Reply { text, ..Reply::default() }))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let made = runtime.block_on(by_model(sources, &wish, &count, ask));
        (made, asked.into_inner())
    }

    fn source(ordinal: i64, text: &str) -> Source<'_> {
        Source { ordinal, speaker: "Ana", role: Role::User, time: 0, text, corrected: &[] }
    }

    #[test]
    fn a_good_answer_is_taken_and_cites_its_sources() {
        let (made, asked) = asked(&[source(4, "Hello!"), source(5, SOURCE)], 8000, &[GOOD]);
        let made = made.unwrap();
        assert_eq!((made.text.as_str(), &made.cited[..]), (GOOD, &[5][..]));
        assert_eq!(asked.len(), 1);
        let Turn::User { text, .. } = &asked[0].turns[0] else { panic!("{:?}", asked[0].turns) };
        let data = text.find("[data ").unwrap();
        assert!(text.find(SOURCE).unwrap() > data && text.find("[/data ").unwrap() > data);
    }

    #[test]
    fn a_rejected_answer_is_requested_once_more_with_what_is_wrong() {
        let named = "They decided on SQLite 3.50, since Oracle needs a server; Mira tests Windows by Friday.";
        let open = GOOD.trim_end_matches('.');
        for (bad, why) in [
            ("", "is empty"),
            ("They had a nice talk about gardening in Provence.", "says"),
            (named, "has a name that the messages don't have: Oracle."),
            (open, "ends within a sentence"),
        ] {
            let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[bad, GOOD]);
            assert_eq!(made.unwrap().text, GOOD);
            let Some(Turn::User { text: again, .. }) = requests[1].turns.last() else {
                panic!("{requests:?}")
            };
            assert!(again.contains(why) && again.contains("Write the summary again"), "{again}");
            let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[bad, bad, GOOD]);
            let error = made.unwrap_err();
            assert_eq!((error.kind(), requests.len()), (Kind::Provider, 2));
            assert!(!error.to_string().contains("Oracle"), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_cut_at_the_end_of_a_sentence() {
        let more = "Postgres needs a server, and they decided on SQLite because of it.";
        let long = format!("{GOOD} {more} {more} {more}");
        let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[&long]);
        let made = made.unwrap();
        assert!(made.is_cut && made.text.starts_with(GOOD) && made.text.ends_with("it."), "{made:?}");
        assert!(count(&made.text) <= 60 && requests.len() == 1, "{}", made.text);
        let endless = "SQLite 3.50 because Postgres needs a server and ".repeat(40);
        let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[&endless, GOOD]);
        assert_eq!((made.unwrap().text.as_str(), requests.len()), (GOOD, 2));
    }

    #[test]
    fn braces_in_quoted_text_are_not_filled() {
        let wish = Wish {
            level: Level::Standard,
            max_tokens: 60,
            focus: "{material}{previous}{words}{nothing}",
            previous: Some("the {material} so far, {focus}"),
            window: 8000,
            secret: &[7; 32],
        };
        let requests = requests(&[source(0, "said of {focus} and {shape} {")], &wish, &count).unwrap();
        let Turn::User { text, .. } = &requests[0].turns[0] else { panic!("{requests:?}") };
        for (part, times) in [
            ("What matters is: {material}{previous}{words}{nothing}.", 1),
            ("the {material} so far, {focus}", 1),
            ("said of {focus} and {shape} {", 1),
            ("[data ", 2),
        ] {
            assert_eq!(text.matches(part).count(), times, "{part} in {text}");
        }
    }

    #[test]
    fn of_an_endless_answer_only_the_beginning_is_read() {
        let endless = GOOD.replace('.', ",").repeat(40_000);
        // Reading all of the answer would take minutes.
        let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[&endless, &endless]);
        let error = made.unwrap_err();
        assert!(error.to_string().contains("within 60 tokens"), "{error}");
        let Turn::Assistant { text, .. } = &requests[1].turns[1] else { panic!("{:?}", requests[1]) };
        assert!(text.len() <= SHOWN_AGAIN * 60, "{}", text.len());
    }

    #[test]
    fn a_range_larger_than_the_window_is_summarised_in_parts_and_merged() {
        let long = format!("{SOURCE} {}", "The cache of shard nine is cold again today. ".repeat(400));
        let (made, requests) = asked(&[source(0, &long)], 3000, &[GOOD, "Cold.", "Cold.", GOOD, GOOD]);
        assert_eq!(made.unwrap().text, GOOD);
        assert!(requests.len() > 2);
        for request in &requests {
            let Turn::User { text, .. } = &request.turns[0] else { panic!("{request:?}") };
            assert!(count(text) + count(&request.system) + request.max_output <= 3000);
        }
        let endless = "The cache of shard nine is cold again today. ".repeat(40_000);
        let (made, requests) = asked(&[source(0, &endless)], 3000, &[]);
        assert_eq!((made.unwrap_err().kind(), requests.len()), (Kind::Limit, 0));
    }
}
