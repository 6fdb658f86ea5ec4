//! Summaries by a model: what it is asked, in parts where its window is too small, and whether its answer will do.
//!
//! Everything quoted stands in an envelope, so that it can't pass for an instruction. An answer that is empty, too long,
//! of something else, or without most of the names, decisions and numbers it could have, is asked for once more with
//! what it lacks. Then the model has failed, and the caller chooses sentences instead.
//!
//! The words of the prompts are files under `prompts/`.

use super::quality::{missing, quality};
use super::{Source, Summary, cite, extract};
use crate::envelope;
use crate::error::{Error, Kind, Result};
use crate::llm::{Reply, Request, Turn};
use crate::memory::{Level, Role};

/// The least quality that will do.
pub const LEAST_QUALITY: f64 = 0.8;

/// The least that sentences chosen for a brief are taken to have, however few fit. Arbitrary; it keeps out what says next to
/// nothing.
pub(super) const LEAST_CHOSEN: f64 = 0.5;

/// Requests for parts at most: more would neither end in time nor cost little.
const MOST_PARTS: usize = 16;

/// Tokens of an instruction without its material. From above.
pub(super) const INSTRUCTION: usize = 400;

/// Words that a model writes for ten tokens. Arbitrary; it decides how often an answer is too long.
const WORDS_OF_TEN_TOKENS: usize = 6;

/// Bytes that an answer has for each token it may have: one that is longer is too long whatever its script, and isn't
/// counted. A word of Hindi has some eight; spaces in a row have more and are no summary.
const LONGEST: usize = 12;

/// Bytes of an answer that a model is shown again, for each token it may have: as much as was asked for.
pub const SHOWN_AGAIN: usize = 6;

/// Bytes of what an answer lacks. Arbitrary: room for twenty names.
const LACKING: usize = 600;

/// What a summary is to be.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// How much it says.
    pub level: Level,
    /// Its tokens at most.
    pub max_tokens: usize,
    /// What it is to be about; empty for everything.
    pub focus: &'a str,
    /// The summary so far, of which the sources are the continuation.
    pub previous: Option<&'a str>,
    /// Tokens of a request and its answer together that the model takes.
    pub window: usize,
    /// Keys the marks of what is quoted.
    pub secret: &'a [u8; 32],
}

/// Returns what the model is asked first: a request for each part. Several parts are merged by one request more.
///
/// Errors with [`Kind::Limit`] where that would be too many.
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
        let message = format!("the range takes more than {MOST_PARTS} requests of the model's size");
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

/// Asks a model for the summary of `sources`, in as many requests as that takes; `ask` sends one and waits.
///
/// Errors with what `ask` failed with, and with [`Kind::Provider`] where the answer won't do.
pub async fn by_model<A, W>(
    sources: &[Source<'_>],
    wish: &Wish<'_>,
    count: &(dyn Fn(&str) -> usize + Sync),
    mut ask: A,
) -> Result<Summary>
where
    A: FnMut(Request) -> W,
    W: Future<Output = Result<Reply>>,
{
    let mut asks = requests(sources, wish, &|text| count(text))?;
    if asks.len() > 1 {
        let mut told: Vec<String> = wish.previous.map(str::to_owned).into_iter().collect();
        for part in asks {
            let answer = ask(part).await?.text;
            told.push(cut(answer.trim(), SHOWN_AGAIN * wish.max_tokens).to_owned());
        }
        let material = envelope::wrap(wish.secret, &told.join("\n\n"));
        asks = vec![request(include_str!("prompts/merge.md"), &material, wish)];
    }
    let last = asks.pop().expect("there is a request for each part");
    // What was known before is a source too.
    let known =
        wish.previous.map(|text| Source { ordinal: -1, speaker: "", role: Role::Assistant, time: 0, text });
    let all: Vec<Source<'_>> = known.into_iter().chain(sources.iter().copied()).collect();
    let least = LEAST_QUALITY * within_reach(&all, wish, count);
    let judge = |text: &str| quality(text, &all, wish.max_tokens);
    let lacking = |text: &str| missing(text, &all, wish.max_tokens);
    let text = until_good(last, wish, count, (&judge, least), &lacking, ask).await?;
    Ok(Summary { cited: cite(&text, sources), text, unread: 0 })
}

/// Asks for a text of at least some quality, and once more with what the answer lacks.
///
/// Errors with what `ask` failed with, and with [`Kind::Provider`] where the answer won't do.
pub(super) async fn until_good<A, W>(
    mut last: Request,
    wish: &Wish<'_>,
    count: &(dyn Fn(&str) -> usize + Sync),
    (judge, least): (&(dyn Fn(&str) -> f64 + Sync), f64),
    lacking: &(dyn Fn(&str) -> Vec<String> + Sync),
    mut ask: A,
) -> Result<String>
where
    A: FnMut(Request) -> W,
    W: Future<Output = Result<Reply>>,
{
    let mut fault = String::new();
    for _ in 0..2 {
        let answer = ask(last.clone()).await?.text;
        let text = answer.trim();
        // Weighing takes as long as the text is.
        let is_endless = text.len() > LONGEST * wish.max_tokens;
        let tokens = if is_endless { text.len() / 4 } else { count(text) };
        fault = match () {
            () if text.is_empty() => "answer is empty".into(),
            () if is_endless => format!("answer has some {tokens} tokens, not {}", wish.max_tokens),
            () if tokens > wish.max_tokens => format!("answer has {tokens} tokens, not {}", wish.max_tokens),
            () => match judge(text) {
                good if good < least => {
                    format!("answer keeps {good:.2} of the names, decisions and numbers it could")
                }
                _ => return Ok(text.to_owned()),
            },
        };
        let text = cut(text, SHOWN_AGAIN * wish.max_tokens);
        let lacks = lacking(text).join(", ");
        let missing = envelope::escape(cut(&lacks, LACKING));
        let again = fill(
            include_str!("prompts/again.md"),
            wish,
            &[("fault", fault.as_str()), ("missing", &*missing)],
        );
        last.turns.push(Turn::Assistant { text: text.to_owned(), calls: Vec::new() });
        last.turns.push(Turn::User(again));
    }
    Err(Error::new(Kind::Provider, format!("the model's {fault}")))
}

/// Returns the quality that the length of the wish allows.
///
/// The best attainable is counted in pieces of sentences, of which two or three whole ones in a brief's room never reach
/// all: a brief is measured against the sentences that would stand in its place.
fn within_reach(sources: &[Source<'_>], wish: &Wish<'_>, count: &dyn Fn(&str) -> usize) -> f64 {
    if wish.level != Level::Brief {
        return 1.0;
    }
    let chosen = extract(sources, wish.level, wish.max_tokens, wish.focus, count);
    quality(&chosen.text, sources, wish.max_tokens).clamp(LEAST_CHOSEN, 1.0)
}

/// Tokens of an answer at most, with some to spare so that it isn't cut.
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
        turns: vec![Turn::User(text.trim().to_owned())],
        max_output: output(wish),
        ..Request::default()
    }
}

/// Returns the prompt with what stands for each name in braces. It is read once: nothing in what is put in is a place to fill.
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
        let place = values
            .iter()
            .find_map(|(name, value)| Some((value, after.strip_prefix(name)?.strip_prefix('}')?)));
        let (value, after) = place.unwrap_or((&"{", after));
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled + rest
}

/// Returns the sources as texts that fit the room each, in order; a source that doesn't alone is cut.
fn parts(sources: &[Source<'_>], room: usize, count: &dyn Fn(&str) -> usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for source in sources {
        let line = format!("#{} {}: ", source.ordinal, source.speaker);
        let mut rest = source.text;
        while !rest.is_empty() {
            // A token is a byte at least, and at most 128.
            let mut end = rest.floor_char_boundary(room.saturating_mul(8).min(rest.len()));
            while count(&rest[..end]) + 32 > room {
                end = rest.floor_char_boundary(end / 2);
            }
            let piece = &rest[..end.max(rest.chars().next().map_or(1, char::len_utf8))];
            rest = &rest[piece.len()..];
            let tokens = count(piece) + count(&line) + 2;
            if used + tokens > room && used > 0 {
                parts.push(String::new());
                used = 0;
            }
            used += tokens;
            let part = parts.last_mut().expect("there is one from the start");
            *part += &line;
            *part += piece;
            part.push('\n');
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::tokens;

    const SOURCE: &str =
        "We decided on SQLite 3.50 because Postgres needs a server. Mira tests Windows by Friday.";
    const GOOD: &str =
        "They decided on SQLite 3.50, since Postgres needs a server; Mira tests Windows by Friday.";

    fn count(text: &str) -> usize {
        tokens::count(text)
    }

    /// Asks a model that gives these answers; returns what came of it and what was asked.
    fn asked(sources: &[Source<'_>], window: usize, answers: &[&str]) -> (Result<Summary>, Vec<Request>) {
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
        Source { ordinal, speaker: "Ana", role: Role::User, time: 0, text }
    }

    #[test]
    fn a_good_answer_is_taken_and_cites_its_sources() {
        let (made, asked) = asked(&[source(4, "Hello!"), source(5, SOURCE)], 8000, &[GOOD]);
        let made = made.unwrap();
        assert_eq!((made.text.as_str(), &made.cited[..]), (GOOD, &[5][..]));
        assert_eq!(asked.len(), 1);
        let Turn::User(text) = &asked[0].turns[0] else { panic!("{:?}", asked[0].turns) };
        let data = text.find("[data ").unwrap();
        assert!(text.find(SOURCE).unwrap() > data && text.find("[/data ").unwrap() > data);
    }

    #[test]
    fn a_brief_is_measured_against_the_sentences_that_would_stand_in_its_place() {
        let said = [
            "We decided on SQLite 3.50 because Postgres needs a server that nobody here wants to keep running.",
            "Mira tests the import of Parquet on Windows ARM by Friday, and tells Jonas what broke.",
            "Release 0.9.2 broke the build on FreeBSD, which Lena bisected to the upgrade of OpenSSL to 3.4.",
            "Kafka is out, since Redis 7 does what the queue of Helsinki needs at a tenth of the price.",
            "The meeting in Lisbon moves to 14 May, after the audit by Deloitte and the holidays in Portugal.",
        ];
        let sources: Vec<Source<'_>> =
            said.iter().enumerate().map(|(place, text)| source(place as i64, text)).collect();
        let wish = Wish {
            level: Level::Brief,
            max_tokens: 50,
            focus: "",
            previous: None,
            window: 8000,
            secret: &[7; 32],
        };
        let reach = within_reach(&sources, &wish, &count);
        let written = "They chose SQLite 3.50 over Postgres and Redis 7 over Kafka; Mira tests Parquet on Windows \
            by Friday.";
        let good = quality(written, &sources, wish.max_tokens);
        assert!(good >= LEAST_QUALITY * reach, "{good} of {reach}");
        let bad = quality("They talked about a meeting in Lisbon.", &sources, wish.max_tokens);
        assert!(bad < LEAST_QUALITY * reach, "{bad} of {reach}");
        let standard = Wish { level: Level::Standard, ..wish };
        assert_eq!(within_reach(&sources, &standard, &count), 1.0);
    }

    #[test]
    fn what_will_not_do_is_asked_for_once_more_with_what_it_lacks() {
        let long = GOOD.repeat(9);
        for bad in ["", "They had a nice talk about gardening in Provence.", long.as_str()] {
            let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[bad, GOOD]);
            assert_eq!(made.unwrap().text, GOOD);
            let Some(Turn::User(again)) = requests[1].turns.last() else { panic!("{requests:?}") };
            assert!(again.contains("Write the summary again"), "{again}");
            let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[bad, bad, GOOD]);
            assert_eq!(made.unwrap_err().kind(), Kind::Provider);
            assert_eq!(requests.len(), 2);
        }
    }

    #[test]
    fn nothing_that_is_put_into_a_prompt_is_a_place_to_fill() {
        let wish = Wish {
            level: Level::Standard,
            max_tokens: 60,
            focus: "{material}{previous}{words}{nothing}",
            previous: Some("the {material} so far, {focus}"),
            window: 8000,
            secret: &[7; 32],
        };
        let requests = requests(&[source(0, "said of {focus} and {shape} {")], &wish, &count).unwrap();
        let Turn::User(text) = &requests[0].turns[0] else { panic!("{requests:?}") };
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
    fn an_endless_answer_is_neither_weighed_nor_sent_back_whole() {
        let endless = GOOD.repeat(40_000);
        let began = std::time::Instant::now();
        let (made, requests) = asked(&[source(0, SOURCE)], 8000, &[&endless, &endless]);
        let error = made.unwrap_err();
        assert!(error.to_string().contains("tokens, not 60"), "{error}");
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
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
            let Turn::User(text) = &request.turns[0] else { panic!("{request:?}") };
            assert!(count(text) + count(&request.system) + request.max_output <= 3000);
        }
        let endless = "The cache of shard nine is cold again today. ".repeat(40_000);
        let (made, requests) = asked(&[source(0, &endless)], 3000, &[]);
        assert_eq!((made.unwrap_err().kind(), requests.len()), (Kind::Limit, 0));
    }
}
