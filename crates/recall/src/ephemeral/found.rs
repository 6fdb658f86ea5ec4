//! Makes the answer of a search: passages with their lines, as many as fit.

use super::Index;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::counted;
use tiro_text::chunk::Chunk;
use tiro_text::tokens;

/// The maximum number of chunks in a hit. Arbitrary: more would leave no room for other files.
const LARGEST: usize = 6;

/// The number of the best chunks that are examined for each wanted hit. After the last hit was found, further chunks
/// can only extend the hits. Arbitrary.
const LOOKED_AT: usize = 3;

/// A chunk and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    /// The index of the chunk in the list of chunks.
    pub(super) place: usize,
    /// The score.
    pub(super) score: f64,
}

/// A passage that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The name of the source.
    pub source: String,
    /// The numbers of the first and the last line.
    pub lines: (usize, usize),
    /// The items that contain the beginning of the passage, the outermost first.
    pub within: Vec<String>,
    /// The lines with their numbers, as the answer shows them.
    pub text: String,
    /// The score of the best chunk. Scores of different searches cannot be compared.
    pub score: f64,
    /// Whether lines of the passage, or parts of lines, were left out.
    pub is_part: bool,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EphemeralResult {
    /// The hits that fit, best first.
    pub hits: Vec<Hit>,
    /// The number of chunks that have no embedding yet.
    pub pending: usize,
    /// Whether something that was found is missing from the answer: hits, lines of a hit, or everything.
    pub truncated: bool,
    /// The number of hits that did not fit.
    pub dropped: usize,
    /// Notices about what the search could not do. Each is a sentence without a full stop.
    pub notices: Vec<String>,
    /// The answer as the model gets it. It has at most the wanted number of tokens.
    pub text: String,
}

/// A run of neighbouring chunks of a source that were found.
struct Run {
    first: usize,
    last: usize,
    best: Ranked,
}

impl EphemeralResult {
    /// Returns the answer with as many of the best hits as fit into `max_tokens` tokens. If not even the first hit
    /// fits, only its best chunk is shown. If this chunk doesn't fit either, only its first lines are shown.
    pub(super) fn fit(
        index: &Index,
        ranked: Vec<Ranked>,
        pending: usize,
        notices: Vec<String>,
        k: usize,
        max_tokens: usize,
    ) -> EphemeralResult {
        let runs = runs(index, &ranked, k);
        let hits: Vec<Hit> = runs.iter().map(|run| index.hit(run)).collect();
        let mut found = EphemeralResult { hits, pending, notices, ..EphemeralResult::default() };
        let count = found.hits.len();
        // The token counts of hits add up exactly, so the loop below has to leave out only few of them.
        let mut total = envelope::OVERHEAD_TOKENS;
        let fits = found.hits.iter().take_while(|hit| {
            total += tokens::count(&hit.shown());
            total <= max_tokens
        });
        let fitting = fits.count().max(1).min(count);
        found.hits.truncate(fitting);
        let (mut is_whole, mut lacks_notices) = (true, false);
        loop {
            found.dropped = count - found.hits.len();
            found.truncated = found.dropped > 0 || lacks_notices || found.hits.iter().any(|hit| hit.is_part);
            found.text = found.rendered(index);
            if tokens::count(&found.text) <= max_tokens {
                return found;
            }
            if found.hits.len() > 1 {
                found.hits.pop();
            } else if is_whole && runs.first().is_some_and(|run| run.first < run.last) {
                let best = runs[0].best;
                found.hits[0] =
                    Hit { is_part: true, ..index.hit(&Run { first: best.place, last: best.place, best }) };
                is_whole = false;
            } else if found.hits.first().is_some_and(|hit| hit.lines.0 < hit.lines.1) {
                let room = max_tokens
                    .saturating_sub(tokens::count(&found.text) - tokens::count(&found.hits[0].text));
                found.hits[0].shorten(room);
            } else if found.hits.pop().is_none() {
                if found.notices.pop().is_none() {
                    found.text = tokens::truncate(&found.text, max_tokens).to_owned();
                    return found;
                }
                lacks_notices = true;
            }
        }
    }

    fn rendered(&self, index: &Index) -> String {
        let body: String = self.hits.iter().map(Hit::shown).collect();
        let mut text = match (self.hits.len(), self.dropped) {
            (0, 0) if index.sources.is_empty() => {
                "There is nothing to search: no text was attached.".to_owned()
            }
            (0, 0) => partial::nothing(&self.notices, "Nothing found.").to_owned(),
            (0, dropped) => {
                format!(
                    "{} found, but none fits into the room that is left.",
                    counted(dropped, "passage was", "passages were")
                )
            }
            _ => envelope::wrap(&index.secret, &body),
        };
        if self.dropped > 0 && !self.hits.is_empty() {
            text += &format!("\n{} more did not fit; ask for them with a narrower query.", self.dropped);
        }
        partial::others(&self.notices).for_each(|notice| text += &format!("\nNote: {notice}."));
        partial::line(&self.notices) + &text
    }
}

impl Hit {
    /// Returns the hit as an answer shows it: a line with the source and the numbers of the lines, and then the lines.
    fn shown(&self) -> String {
        let within = match self.within.is_empty() {
            true => String::new(),
            false => format!(", in {}", envelope::name(&self.within.join(" > "))),
        };
        let part = if self.is_part { ", in part" } else { "" };
        let (first, last) = self.lines;
        format!("[{}:{first}-{last}{within}{part}]\n{}", envelope::name(&self.source), self.text)
    }

    /// Leaves out the last line, and as many other lines before it as needed for `room` tokens. Keeps at least one
    /// line.
    fn shorten(&mut self, room: usize) {
        let mut total = 0;
        let mut kept = 0;
        for line in self.text.split_inclusive('\n') {
            // A line begins with its number, so the token counts of lines add up exactly.
            total += tokens::count(line);
            if total > room {
                break;
            }
            kept += 1;
        }
        let kept = kept.min(self.lines.1 - self.lines.0).max(1);
        self.lines.1 = self.lines.0 + kept - 1;
        self.text = self.text.split_inclusive('\n').take(kept).collect();
        self.is_part = true;
    }
}

/// Joins neighbouring chunks of the same source to runs, and returns at most `k` runs, the best first.
fn runs(index: &Index, ranked: &[Ranked], k: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &best in ranked.iter().take(k.saturating_mul(LOOKED_AT)) {
        let source = |place: usize| index.pieces[place].source;
        let touches = |run: &Run| {
            source(run.first) == source(best.place)
                && best.place + 1 >= run.first
                && best.place <= run.last + 1
                && run.last - run.first + 1 < LARGEST
        };
        match runs.iter().position(touches) {
            Some(at) => {
                runs[at].first = runs[at].first.min(best.place);
                runs[at].last = runs[at].last.max(best.place);
                join(index, &mut runs, at);
            }
            None if runs.len() < k => runs.push(Run { first: best.place, last: best.place, best }),
            None => {}
        }
    }
    runs
}

/// Joins the run `at` with another run that now touches or overlaps it. The worse of the two runs is removed.
fn join(index: &Index, runs: &mut Vec<Run>, at: usize) {
    let (first, last) = (runs[at].first, runs[at].last);
    let source = |place: usize| index.pieces[place].source;
    let touches = |(other, run): (usize, &Run)| {
        other != at
            && source(run.first) == source(first)
            && run.first <= last + 1
            && first <= run.last + 1
            && run.last.max(last) - run.first.min(first) < LARGEST
    };
    if let Some(other) = runs.iter().enumerate().position(touches) {
        let (better, worse) = (at.min(other), at.max(other));
        let run = runs.remove(worse);
        runs[better].first = runs[better].first.min(run.first);
        runs[better].last = runs[better].last.max(run.last);
    }
}

impl Index {
    fn hit(&self, run: &Run) -> Hit {
        let (first, last) = (&self.pieces[run.first], &self.pieces[run.last]);
        let source = &self.sources[first.source];
        let range = Chunk { start: first.chunk.range.start, end: last.chunk.range.end };
        let lines = (source.lines.number(range.start), source.lines.number(range.end - 1));
        let mut hit = Hit {
            source: source.name.clone(),
            lines,
            within: first.chunk.within.clone(),
            text: String::new(),
            score: run.best.score,
            is_part: false,
        };
        for number in lines.0..=lines.1 {
            let (line, is_part) = source.lines.numbered(&source.text, number, range);
            hit.text += &line;
            hit.is_part |= is_part;
        }
        hit
    }
}
