//! How a page of hits becomes an answer that keeps its budget as text and as JSON.
//!
//! A page is a beginning of the ranking: the first hit that has no room ends it, and the cursor names that hit, so none is
//! skipped unseen. A hit that has no room even on a page of its own is shown shortened. What is estimated hit by hit is
//! counted as a whole before it is answered.

mod hit;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope;
use crate::humanize::counted;
use crate::retrieve::pair;
use crate::summaries::messages;
use crate::tools::common::beginning::beginning;
use crate::tools::common::tool::Answer;
use crate::tuning::ranking::{BESIDE_COMMITS, NOTICES};

pub use self::hit::{Behind, Frame, Hit, Said, ScoreParts};

/// The least of a text that is worth showing, in tokens. Arbitrary: about a short sentence.
const LEAST_TEXT: usize = 12;

/// What the call answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How to take what is quoted.
    pub caution: &'static str,
    /// What was found, best first.
    pub hits: Vec<Hit>,
    /// Which sessions were searched: all, or their names.
    pub covered: Vec<String>,
    /// Tokens of this answer (o200k), of its text or its JSON, whichever is more.
    pub tokens_used: usize,
    /// Whether hits of this page did not fit the budget.
    pub truncated: bool,
    /// How many did not fit; `next_cursor` begins with them.
    pub dropped: usize,
    /// Pieces of text that are found by words only so far.
    pub pending: usize,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// What the answer is missing.
    pub notices: Vec<String>,
    /// Milliseconds by stage, where asked for.
    pub timings: Option<HashMap<&'static str, f64>>,
    /// Whether the text says how many pieces are found by words only.
    #[serde(skip)]
    pub(crate) says_pending: bool,
    /// The answer as text.
    #[serde(skip)]
    pub(crate) rendered: String,
}

/// What an answer is made of.
pub struct Page {
    /// The hits of the page, best first.
    pub hits: Vec<Hit>,
    /// How many hits of the ranking it was made of.
    pub length: usize,
    /// The answer without hits.
    pub output: Output,
    /// How many hits stand before the page.
    pub offset: usize,
    /// Whether there are hits after it.
    pub has_more: bool,
    /// Tokens that neither text nor JSON may pass.
    pub max_tokens: usize,
    /// The secret of the installation.
    pub secret: [u8; 32],
}

/// Returns the answer that shows as much of the beginning of the page as fits.
///
/// Counting loads the tokenizer's dictionary the first time, which blocks.
pub fn fit(mut page: Page) -> Output {
    bound(&mut page.output, page.max_tokens);
    let mut count = estimate(&mut page);
    loop {
        let output = answer(&page, count);
        if output.tokens_used <= page.max_tokens {
            return output;
        }
        match count {
            0 => return bare(page),
            1 => {
                // Alone it is shortened, or left to a larger budget.
                if let Some(output) = shortened(&mut page) {
                    return output;
                }
                count = 0;
            }
            _ => count -= 1,
        }
    }
}

/// Returns how many of the hits fit by what each of them costs alone, and leaves out messages beside commits that don't.
fn estimate(page: &mut Page) -> usize {
    let count = messages::count;
    let empty = answer(page, 0);
    let json = |hit: &Hit| count(&serde_json::to_string(hit).expect("a hit is JSON")) + 1;
    let text_frame = envelope::OVERHEAD_TOKENS + count(&empty.footer());
    let mut used = (text_frame, empty.data_tokens());
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
        used = (used.0 + hit.tokens, used.1 + json(hit));
        if used.0.max(used.1) > page.max_tokens {
            // At least one is tried.
            return place.max(1);
        }
    }
    page.hits.len()
}

/// Returns the answer with the first hit alone, without what it can do without and cut as short as it takes; `None`
/// where nothing worth it would be left.
fn shortened(page: &mut Page) -> Option<Output> {
    let whole = page.hits[0].clone();
    loop {
        page.hits[0].shorten(String::new());
        let alone = answer(page, 1).tokens_used;
        let room = page.max_tokens.saturating_sub(alone);
        if room < LEAST_TEXT.min(messages::count(&whole.text)) {
            if !page.hits[0].give_way() {
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
            // As JSON a text may cost more than as it is: it is cut by its share of what is too much.
            let (tokens, cost) = (messages::count(text), output.tokens_used.saturating_sub(alone).max(1));
            text = beginning(text, (tokens * room / cost).min(tokens.saturating_sub(1)));
        }
        if !page.hits[0].give_way() {
            return None;
        }
    }
}

/// Returns the answer with the first `count` hits, each commit after the conversation behind it, counted.
fn answer(page: &Page, count: usize) -> Output {
    let mut output = page.output.clone();
    let hits = &page.hits[..count];
    let order = pair::order(hits.len(), |commit| {
        let behind = &hits[commit].conversations;
        let talks = |other: &Hit| other.session_id.as_ref().is_some_and(|session| behind.contains(session));
        hits.iter().enumerate().filter(|(_, other)| talks(other)).map(|(place, _)| place).collect()
    });
    output.hits = order.into_iter().map(|place| hits[place].clone()).collect();
    output.dropped = page.hits.len() - count;
    output.truncated = output.dropped > 0;
    // Where not even one fits, the same cursor would lead to the same answer.
    let goes_on = (output.truncated || page.has_more) && count > 0;
    let next = page.hits.get(count).map_or(page.length, |hit| hit.frame.rank);
    output.next_cursor = goes_on.then(|| (page.offset + next).to_string());
    let body: String = output.hits.iter().map(Hit::excerpt).collect();
    output.rendered = match (count, output.dropped) {
        (0, 0) => "Nothing found.".to_owned(),
        (0, dropped) => {
            let none = match dropped {
                1 => "The one hit doesn't fit".to_owned(),
                count => format!("None of the {count} hits fits"),
            };
            format!("{none} max_tokens; ask again with a larger max_tokens.")
        }
        _ => envelope::wrap(&page.secret, &body),
    };
    output.rendered += &output.footer();
    // The number is part of what is counted: with the budget in its place it is at least as long.
    output.tokens_used = page.max_tokens;
    output.tokens_used = messages::count(&output.rendered).max(output.data_tokens());
    output
}

/// Returns the answer that says no more than it must.
fn bare(mut page: Page) -> Output {
    page.output.notices.clear();
    page.output.covered.clear();
    page.output.timings = None;
    answer(&page, 0)
}

/// Leaves out notices and names of sessions that take more than their share of the budget.
fn bound(output: &mut Output, max_tokens: usize) {
    let share = max_tokens / NOTICES;
    let fits = |lines: &mut Vec<String>, frame: &str| {
        let (mut used, all) = (0, lines.len());
        lines.retain(|line| {
            let json = serde_json::to_string(line).expect("a text is JSON");
            let cost = messages::count(&format!("{frame}{json}\n"));
            used += cost;
            let fits = used <= share;
            used -= if fits { 0 } else { cost };
            fits
        });
        all - lines.len()
    };
    let unsaid = fits(&mut output.notices, "Note: ");
    let unnamed = fits(&mut output.covered, "");
    if unsaid > 0 {
        output.notices.push(format!("{} left out", counted(unsaid, "more notice", "more notices")));
    }
    if unnamed > 0 {
        output.covered.push(counted(unnamed, "session", "sessions"));
    }
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }

    /// Returns the lines that stand below the hits, the most important first.
    fn footer(&self) -> String {
        let mut lines = String::new();
        if self.dropped > 0 && !self.hits.is_empty() {
            lines += &format!("\n{} more did not fit max_tokens.", self.dropped);
        }
        if let Some(cursor) = self.next_cursor.as_ref().filter(|_| !self.hits.is_empty()) {
            lines += &format!("\nMore with cursor `{cursor}`.");
        }
        if self.pending > 0 && self.says_pending {
            let one = "piece has no embedding yet; only keywords find it";
            let several = "pieces have no embedding yet; only keywords find them";
            lines += &format!("\n{}.", counted(self.pending, one, several));
        }
        self.notices.iter().for_each(|notice| lines += &format!("\nNote: {notice}."));
        lines
    }

    /// Returns its tokens as JSON (o200k).
    fn data_tokens(&self) -> usize {
        let fields = Answer::new(String::new(), self).fields;
        messages::count(&serde_json::to_string(&fields).expect("an answer is JSON"))
    }
}
