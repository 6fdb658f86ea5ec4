//! Makes the answer that shows a page of hits. The answer stays within its budget as text, and also as JSON if the
//! caller reads data.
//!
//! A page shows hits in the order of the ranking until one doesn't fit. The cursor names this hit, so no hit is
//! skipped. If a hit doesn't fit even as the only hit on a page, it is shortened. The number of hits that fit is first
//! estimated from the sum of their tokens. Then the tokens of the whole answer are counted.

pub mod from_memory;
mod hit;
pub mod sentences;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::common;
use crate::common::beginning;
use crate::common::tool::Answer;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::counted;
use tiro_host::caller::Form;
use tiro_host::summaries::messages;
use tiro_recall::retrieve::pair;
use tiro_recall::tuning::ranking::{BESIDE_COMMITS, NOTICES};

pub use self::hit::{Behind, BehindMessage, Frame, Hit, OfProject, Ranking, ScoreParts, SupersededBy};

/// A hit is not shown if fewer than this many tokens of its text would fit. Arbitrary: about a short sentence.
const LEAST_TEXT: usize = 12;

/// The maximum number of tokens of the line that says how much of its budget an answer takes.
const SPENT_TOKENS: usize = 12;

/// The number of hits that the text shows if no hit answers the query. Arbitrary: enough to see what is near.
const NEAREST: usize = 3;

/// The answer of the call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The hits, best first; a conversation comes before the commit that it led to.
    pub hits: Vec<Hit>,
    /// `all`, or the names of the sessions that were searched.
    pub covered: Vec<String>,
    /// The tokens of this answer (o200k): of its text, or of its JSON if the caller reads that and it has more.
    pub tokens_used: usize,
    /// Whether hits of this page did not fit the budget.
    pub truncated: bool,
    /// How many hits did not fit; the next page begins with them.
    pub dropped: usize,
    /// How many chunks have no embedding yet; only keywords find them.
    pub pending: usize,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Remarks about what the answer lacks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// How many milliseconds each stage of the search took, if the configuration asks for it.
    pub timings: Option<HashMap<&'static str, f64>>,
    /// What was searched, if no hit answers the query. The text then shows only the beginnings of the nearest hits.
    #[serde(skip)]
    pub searched: Option<String>,
    /// Whether the text mentions `pending`.
    #[serde(skip)]
    pub says_pending: bool,
    /// The answer as text.
    #[serde(skip)]
    pub rendered: String,
}

/// The parts from which an answer is made.
pub struct Page {
    /// The hits of the page, best first.
    pub hits: Vec<Hit>,
    /// The number of hits of the ranking on this page, including hits that were removed after they were found.
    pub length: usize,
    /// The answer without hits.
    pub output: Output,
    /// The number of hits of the ranking that come before the page.
    pub offset: usize,
    /// Whether there are hits after the page.
    pub has_more: bool,
    /// The maximum number of tokens of the text. It also limits the JSON if the caller reads it.
    pub max_tokens: usize,
    /// The forms in which the caller reads the answer.
    pub form: Form,
    /// The secret of the installation.
    pub secret: [u8; 32],
}

/// Returns the answer with as many of the page's first hits as fit.
///
/// The first count loads the tokenizer's dictionary, which blocks the thread.
pub fn fit(mut page: Page) -> Output {
    bound_names_and_notices(&mut page.output, page.max_tokens);
    let mut count = estimate(&mut page);
    loop {
        let output = answer(&page, count);
        if output.tokens_used <= page.max_tokens {
            return output;
        }
        match count {
            0 => return without_hits(page),
            1 => {
                // The only remaining hit is shortened. It is left out if even the shortened hit doesn't fit.
                if let Some(output) = shortened(&mut page) {
                    return output;
                }
                count = 0;
            }
            _ => count -= 1,
        }
    }
}

/// Returns an estimate of how many hits fit, from the sum of their costs. The messages that are shown with commits get
/// only a share of the budget. Messages that exceed the share are left out.
fn estimate(page: &mut Page) -> usize {
    let count = messages::count;
    let empty = answer(page, 0);
    let is_data = page.form == Form::Both;
    let json = |hit: &Hit| match is_data {
        true => count(&serde_json::to_string(hit).expect("a hit is JSON")) + 1,
        false => count(&hit.excerpt()),
    };
    let around = count(&partial::line(&empty.notices)) + count(&empty.footer(page.max_tokens));
    let text_frame = envelope::OVERHEAD_TOKENS + around + SPENT_TOKENS;
    let mut used = (text_frame, if is_data { Answer::data_cost(&empty) } else { 0 });
    let mut beside = page.max_tokens / BESIDE_COMMITS;
    for (place, hit) in page.hits.iter_mut().enumerate() {
        if hit.behind.as_ref().is_some_and(|behind| behind.said.is_some()) {
            let with = json(hit);
            let said = hit.behind.as_mut().and_then(|behind| behind.said.take());
            let cost = with.saturating_sub(json(hit));
            if cost <= beside {
                beside -= cost;
                hit.behind.iter_mut().for_each(|behind| behind.said.clone_from(&said));
            }
        }
        hit.tokens = count(&hit.excerpt());
        let text = match (empty.searched.is_some(), place < NEAREST) {
            (false, _) => hit.tokens,
            (true, true) => count(&hit.line()),
            (true, false) => 0,
        };
        used = (used.0 + text, used.1 + if is_data { json(hit) } else { 0 });
        if used.0.max(used.1) > page.max_tokens {
            // At least one hit is tried.
            return place.max(1);
        }
    }
    page.hits.len()
}

/// Returns the answer with only the first hit. The hit's text and optional parts are cut until the answer fits. Returns
/// `None` if fewer than [`LEAST_TEXT`] tokens of text would be left.
fn shortened(page: &mut Page) -> Option<Output> {
    let whole = page.hits[0].clone();
    loop {
        page.hits[0].shorten(String::new());
        let alone = answer(page, 1).tokens_used;
        let room = page.max_tokens.saturating_sub(alone);
        if room < LEAST_TEXT.min(messages::count(&whole.text)) {
            if !page.hits[0].shrink() {
                return None;
            }
            continue;
        }
        let mut text = beginning(&whole.text, room);
        while !text.is_empty() {
            page.hits[0].shorten(text.to_owned());
            page.hits[0].is_part |= text.len() < whole.text.len();
            page.hits[0].tokens = messages::count(&page.hits[0].excerpt());
            let output = answer(page, 1);
            if output.tokens_used <= page.max_tokens {
                return Some(output);
            }
            // The text may cost more tokens in JSON than alone, so it is shortened in proportion to its cost in the
            // answer.
            let (tokens, cost) = (messages::count(text), output.tokens_used.saturating_sub(alone).max(1));
            text = beginning(text, (tokens * room / cost).min(tokens.saturating_sub(1)));
        }
        if !page.hits[0].shrink() {
            return None;
        }
    }
}

/// Returns the answer with the first `count` hits, and counts its tokens. Hits from a conversation come before the
/// commit that the conversation led to.
fn answer(page: &Page, count: usize) -> Output {
    let mut output = page.output.clone();
    let hits = &page.hits[..count];
    let order = pair::order(hits.len(), |commit| {
        let behind = &hits[commit].conversations;
        let is_from_them =
            |other: &Hit| other.session_id.as_ref().is_some_and(|session| behind.contains(session));
        hits.iter().enumerate().filter(|(_, other)| is_from_them(other)).map(|(place, _)| place).collect()
    });
    output.hits = order.into_iter().map(|place| hits[place].clone()).collect();
    output.dropped = page.hits.len() - count;
    output.truncated = output.dropped > 0;
    // If no hit fits, there is no cursor, because a cursor would lead to the same answer.
    let has_next = (output.truncated || page.has_more) && count > 0;
    let next = page.hits.get(count).map_or(page.length, |hit| hit.frame.rank);
    output.next_cursor = has_next.then(|| (page.offset + next).to_string());
    let body: String = match output.searched {
        None => output.hits.iter().map(Hit::excerpt).collect(),
        Some(_) => output.shown().iter().map(Hit::line).collect(),
    };
    let shown = match (count, output.dropped) {
        (0, 0) => partial::nothing(&output.notices, "Nothing found.").to_owned(),
        (0, dropped) => {
            let none = match dropped {
                1 => "The one hit doesn't fit".to_owned(),
                count => format!("None of the {count} hits fits"),
            };
            format!("{none} max_tokens; ask again with a larger max_tokens.")
        }
        _ => envelope::wrap(&page.secret, &body),
    };
    let shown = partial::line(&output.notices) + &shown;
    // `tokens_used` is part of the counted text. During the count, the field contains the budget, the largest value it
    // can get, so the final number takes no more tokens.
    output.tokens_used = page.max_tokens;
    output.rendered = shown.clone() + &output.footer(page.max_tokens);
    output.tokens_used = Answer::cost(page.form, &output.rendered, &output);
    output.rendered = shown + &output.footer(page.max_tokens);
    output
}

/// Returns the answer without hits, session names and timings. Of the notices, only the one about missing content is
/// kept.
fn without_hits(mut page: Page) -> Output {
    partial::alone(&mut page.output.notices);
    page.output.covered.clear();
    page.output.timings = None;
    answer(&page, 0)
}

/// Leaves out notices and session names that exceed their share of the budget, and adds a line with the number of those
/// left out.
fn bound_names_and_notices(output: &mut Output, max_tokens: usize) {
    let share = max_tokens / NOTICES;
    partial::first(&mut output.notices);
    let fits = |lines: &mut Vec<String>, frame: &str| {
        let (mut used, all) = (0, lines.len());
        lines.retain(|line| {
            let json = serde_json::to_string(line).expect("a text is JSON");
            let cost = messages::count(&format!("{frame}{json}\n"));
            used += cost;
            let fits = used <= share || partial::is(line);
            used -= if fits { 0 } else { cost };
            fits
        });
        all - lines.len()
    };
    let notices_left_out = fits(&mut output.notices, "Note: ");
    let sessions_left_out = fits(&mut output.covered, "");
    if notices_left_out > 0 {
        output.notices.push(format!("{} left out", counted(notices_left_out, "more notice", "more notices")));
    }
    if sessions_left_out > 0 {
        output.covered.push(counted(sessions_left_out, "more session", "more sessions"));
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }

    /// Returns the hits that the text shows: all of them, or only the nearest if no hit answers the query.
    pub fn shown(&self) -> &[Hit] {
        let count = if self.searched.is_some() { NEAREST } else { usize::MAX };
        &self.hits[..self.hits.len().min(count)]
    }

    /// Returns the lines that say what else there is than the shown hits, and how to get it.
    fn further(&self) -> String {
        if let Some(searched) = &self.searched {
            return format!("\nSearched: {searched}. Cursor `0` shows the nearest in full.");
        }
        let mut lines = String::new();
        if self.dropped > 0 {
            lines += &format!("\n{} more did not fit max_tokens.", self.dropped);
        }
        if let Some(cursor) = &self.next_cursor {
            lines += &format!("\nMore with cursor `{cursor}`.");
        }
        lines
    }

    /// Returns the lines below the hits, the most important first.
    fn footer(&self, budget: usize) -> String {
        let mut lines = match self.hits.is_empty() {
            true => String::new(),
            false => common::spent(self.tokens_used, budget),
        };
        if !self.hits.is_empty() {
            lines += &self.further();
        }
        if self.pending > 0 && self.says_pending {
            let one = "piece has no embedding yet; only keywords find it";
            let several = "pieces have no embedding yet; only keywords find them";
            lines += &format!("\n{}.", counted(self.pending, one, several));
        }
        partial::others(&self.notices).for_each(|notice| lines += &format!("\nNote: {notice}."));
        lines
    }
}
