//! Finds the sentences that an account needs: for each exchange, the sentence that states the request best, and the
//! sentence that states the outcome best.

use std::collections::BTreeSet;

use crate::summarize::Source;
use crate::summarize::cues::{announces, chooses, only_prepares, reports, stands_alone};
use crate::summarize::exchanges::{Exchange, central, overlap, works};
use crate::summarize::reading::{Reading, Sentence, roughly};
use crate::summarize::talk::{name, quote};
use crate::tuning::summaries::{ANSWERING, CHOICE, FIRST_ASK, ITEM, LEANS, PREPARES, REPORT};
use tiro_text::blocks::Form;

/// The data that is read from the exchanges, once for all levels.
pub(super) struct Account<'a> {
    pub(super) reading: &'a Reading,
    pub(super) exchanges: &'a [Exchange],
    pub(super) sources: &'a [Source<'a>],
    pub(super) central: Vec<f64>,
    /// Whether the assistant does work. If it does not, a list in its answer is advice and not a report.
    pub(super) is_work: bool,
    /// For each exchange, the sentence that states the request best.
    pub(super) asks: Vec<Option<usize>>,
    /// For each exchange, the sentence that states the outcome best.
    pub(super) outcomes: Vec<Option<usize>>,
}

impl<'a> Account<'a> {
    pub(super) fn of(
        reading: &'a Reading,
        exchanges: &'a [Exchange],
        sources: &'a [Source<'a>],
    ) -> Account<'a> {
        let central = central(reading);
        let mut account = Account {
            reading,
            exchanges,
            sources,
            central,
            is_work: works(sources),
            asks: Vec::new(),
            outcomes: Vec::new(),
        };
        account.asks = exchanges.iter().map(|exchange| account.ask(exchange)).collect();
        let mut said: BTreeSet<&str> = BTreeSet::new();
        let mut outcomes = Vec::new();
        for exchange in exchanges {
            // If an assistant repeats a sentence, the sentence says nothing about this exchange.
            let outcome = account.outcome(exchange);
            outcomes.push(outcome.filter(|place| said.insert(&reading.sentences[*place].text)));
        }
        account.outcomes = outcomes;
        account
    }

    pub(super) fn sentence(&self, place: usize) -> &Sentence {
        &self.reading.sentences[place]
    }

    /// Returns how central a sentence is to the whole conversation, relative to the sentence's length.
    pub(super) fn weight(&self, place: usize) -> f64 {
        let sentence = self.sentence(place);
        let sum: f64 = sentence.words.iter().map(|word| self.central[*word as usize]).sum();
        sentence.worth.min(1.0) * sum / (roughly(&sentence.text) as f64 + 5.0).sqrt()
    }

    pub(super) fn best(&self, places: &[usize], rate: impl Fn(usize) -> f64) -> Option<usize> {
        let rated = places.iter().map(|place| (rate(*place), *place)).filter(|(rate, _)| *rate > 0.0);
        rated.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, place)| place)
    }

    /// Returns the sentence of the exchange that states the user's request best.
    pub(super) fn ask(&self, exchange: &Exchange) -> Option<usize> {
        let rate = |place: usize| {
            let sentence = self.sentence(place);
            // A question counts more here, because it shows the user's wish.
            let form = if sentence.form == Form::Question { 2.0 } else { 1.0 };
            let choice = if chooses(sentence) { CHOICE } else { 1.0 };
            let item = if sentence.is_item { ITEM } else { 1.0 };
            let task = if only_prepares(&sentence.text) { PREPARES } else { 1.0 };
            (self.weight(place) + 0.01) * form * choice * item * task
        };
        self.best(&exchange.asked, rate).or(exchange.agreed)
    }

    /// Returns the sentence of the exchange that states the outcome best. Returns `None` if no sentence reports
    /// anything or answers the question.
    pub(super) fn outcome(&self, exchange: &Exchange) -> Option<usize> {
        let asked: Vec<&Sentence> = exchange.asked.iter().map(|place| self.sentence(*place)).collect();
        let last = exchange.answered.last().copied().unwrap_or(0);
        let first = exchange.answered.first().copied().unwrap_or(0);
        let rate = |at: usize| {
            let sentence = self.sentence(at);
            if sentence.form != Form::Statement || sentence.is_boilerplate {
                return 0.0;
            }
            let shared = overlap(&asked, sentence);
            let is_report = reports(sentence) && (self.is_work || !sentence.is_item);
            if !is_report && (shared < ANSWERING || sentence.is_item || announces(sentence)) {
                return 0.0;
            }
            // Reports are at the end of the work, and explanations at the beginning of an answer.
            let place = (at - first) as f64 / (last - first).max(1) as f64;
            let (factor, place) = if is_report { (REPORT, place) } else { (1.0, 1.0 - place) };
            self.weight(at) * factor * (0.5 + shared) * (0.5 + place)
        };
        self.best(&exchange.answered, rate)
    }

    /// Returns the exchange whose request states the purpose of the conversation best. Such a request is early, and
    /// shares its topic with the rest of the conversation.
    pub(super) fn goal(&self, max_bytes: usize) -> Option<usize> {
        let early = self.exchanges.len().div_ceil(3);
        let rate = |place: usize| {
            let first = if place == 0 { FIRST_ASK } else { 1.0 };
            let ask = self.asks[place].filter(|ask| self.sentence(*ask).text.len() <= max_bytes);
            ask.map_or(0.0, |ask| {
                let sentence = self.sentence(ask);
                let item = if sentence.is_item { ITEM } else { 1.0 };
                let alone = if stands_alone(&sentence.text) { 1.0 } else { LEANS };
                let task = if only_prepares(&sentence.text) { PREPARES } else { 1.0 };
                first * item * alone * task * self.weight(ask)
            })
        };
        let all: Vec<usize> = (0..self.exchanges.len()).collect();
        self.best(&all[..early], rate).or_else(|| self.best(&all, rate))
    }

    /// Returns the sentence that shows the current state of the conversation: the last request if it has no answer,
    /// otherwise the last outcome. The index of its exchange comes first.
    pub(super) fn stand(&self, max_bytes: usize) -> Option<(usize, usize)> {
        let fits = |place: &usize| self.sentence(*place).text.len() <= max_bytes;
        let last = self.exchanges.len() - 1;
        if self.is_open(last)
            && let Some(ask) = self.asks[last].filter(fits)
        {
            return Some((last, ask));
        }
        let late = self.exchanges.len().saturating_sub(if self.is_work { 4 } else { 0 });
        let found =
            (late..self.exchanges.len()).rev().find_map(|at| Some((at, self.outcomes[at].filter(fits)?)));
        found.or_else(|| {
            (0..self.exchanges.len()).rev().find_map(|at| Some((at, self.asks[at].filter(fits)?)))
        })
    }

    /// Returns whether the user only agreed to a proposal of the assistant.
    pub(super) fn is_agreed(&self, at: usize) -> bool {
        self.asks[at].is_some() && self.asks[at] == self.exchanges[at].agreed
    }

    /// Returns whether the request of an exchange has no answer.
    pub(super) fn is_open(&self, at: usize) -> bool {
        self.exchanges[at].answered.is_empty()
    }

    pub(super) fn source(&self, place: usize) -> &Source<'a> {
        &self.sources[self.sentence(place).source]
    }

    pub(super) fn ordinal(&self, place: usize) -> i64 {
        self.source(place).ordinal
    }

    pub(super) fn speaker(&self, place: usize) -> String {
        let source = self.source(place);
        if source.speaker.is_empty() { source.role.as_str().to_owned() } else { name(source.speaker) }
    }

    /// Returns the text that quotes a sentence. A missing full stop is added.
    pub(super) fn quote(&self, place: usize, cited: &mut BTreeSet<i64>) -> String {
        cited.insert(self.ordinal(place));
        quote(self.sentence(place))
    }

    /// Returns a quoted sentence with the number of its message.
    pub(super) fn cited(&self, place: usize, cited: &mut BTreeSet<i64>) -> String {
        format!("{} (#{})", self.quote(place, cited), self.ordinal(place))
    }
}
