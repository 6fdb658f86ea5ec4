//! Finds the sentences that an account needs: for each exchange, the sentence with the request, and the sentences that
//! state the outcome.

use std::collections::BTreeSet;

use crate::statements::own_words::is_prose;
use crate::summarize::Source;
use crate::summarize::assisted::works;
use crate::summarize::conclusions::{claims_effect, concludes, reports_change};
use crate::summarize::exchanges::{Exchange, central, overlap};
use crate::summarize::reading::{Reading, Sentence, roughly};
use crate::summarize::specificity::{is_preparation, names, specificity};
use crate::summarize::talk::{name, quote};
use crate::tuning::summaries::{ANSWERING, MOST_CONCLUSIONS, SPECIFIC};
use tiro_text::blocks::Form;

/// A request is shown with its neighbours up to this many bytes. Arbitrary: about two lines.
const REQUEST_BYTES: usize = 240;

/// Phrases with which a question asks for work.
const WORK: [&str; 5] = ["can you ", "could you ", "can we ", "could we ", "please "];

/// The data that is read from the exchanges, once for all levels.
pub(super) struct Account<'a> {
    pub(super) reading: &'a Reading,
    pub(super) exchanges: &'a [Exchange],
    pub(super) sources: &'a [Source<'a>],
    pub(super) central: Vec<f64>,
    /// For each exchange, the sentence with the request.
    pub(super) asks: Vec<Option<usize>>,
    /// For each exchange, the sentences that show the request, in order.
    pub(super) requests: Vec<Vec<usize>>,
    /// For each exchange, the sentences that state the outcome, in order.
    pub(super) outcomes: Vec<Vec<usize>>,
}

impl<'a> Account<'a> {
    pub(super) fn of(
        reading: &'a Reading,
        exchanges: &'a [Exchange],
        sources: &'a [Source<'a>],
    ) -> Account<'a> {
        let central = central(reading);
        let (asks, requests, outcomes) = Default::default();
        let mut account = Account { reading, exchanges, sources, central, asks, requests, outcomes };
        account.asks = exchanges.iter().map(|exchange| account.ask(exchange)).collect();
        account.requests = (0..exchanges.len()).map(|at| account.request(at)).collect();
        let is_work = works(sources);
        let mut said: BTreeSet<&str> = BTreeSet::new();
        let mut outcomes = Vec::new();
        for exchange in exchanges {
            // If an assistant repeats a sentence, the sentence says nothing about this exchange.
            let mut outcome = account.outcome(exchange, is_work);
            outcome.retain(|place| said.insert(&reading.sentences[*place].text));
            outcomes.push(outcome);
        }
        account.outcomes = outcomes;
        account
    }

    pub(super) fn sentence(&self, place: usize) -> &Sentence {
        &self.reading.sentences[place]
    }

    /// Returns how central a sentence is to the whole conversation, relative to the sentence's length.
    fn weight(&self, place: usize) -> f64 {
        let sentence = self.sentence(place);
        let sum: f64 = sentence.words.iter().map(|word| self.central[*word as usize]).sum();
        sum / (roughly(&sentence.text) as f64 + 5.0).sqrt()
    }

    /// Returns whether a sentence names what it is about.
    pub(super) fn is_specific(&self, place: usize) -> bool {
        let text = &self.sentence(place).text;
        is_prose(text) && specificity(text) >= SPECIFIC
    }

    /// Returns whether the request of an exchange asks only for an answer or for reading, and not for work.
    pub(super) fn only_asks(&self, at: usize) -> bool {
        self.requests[at].iter().all(|place| {
            let sentence = self.sentence(*place);
            let text = sentence.text.to_lowercase();
            let asked = WORK.iter().find_map(|polite| text.split_once(polite)).map(|(_, asked)| asked);
            match asked {
                Some(asked) => is_preparation(asked),
                None => sentence.form == Form::Question || is_preparation(&text),
            }
        })
    }

    /// Returns whether a sentence contains a name or a number. A conclusion without one is mostly praise of the work.
    fn has_name(&self, sentence: &Sentence) -> bool {
        names(&sentence.text) > 0
            || sentence.words.iter().any(|word| self.reading.words[*word as usize].is_key())
    }

    /// Returns the first sentence of the exchange that names what the user asks for, or else the first sentence.
    fn ask(&self, exchange: &Exchange) -> Option<usize> {
        let specific = exchange.asked.iter().find(|place| self.is_specific(**place));
        let prose = exchange.asked.iter().find(|place| is_prose(&self.sentence(**place).text));
        specific.or(prose).or(exchange.asked.first()).copied().or(exchange.agreed)
    }

    /// Returns the sentences that show the request of an exchange: the whole message if it is short, otherwise the
    /// sentence with the request and those after it, as far as there is room. A sentence without its neighbours can mean
    /// something else.
    fn request(&self, at: usize) -> Vec<usize> {
        let Some(ask) = self.asks[at] else { return Vec::new() };
        let source = self.sentence(ask).source;
        let of_message = (self.exchanges[at].asked.iter().copied())
            .filter(|place| self.sentence(*place).source == source && is_prose(&self.sentence(*place).text));
        let bytes = |places: &[usize]| -> usize {
            places.iter().map(|place| self.sentence(*place).text.len() + 1).sum()
        };
        let whole: Vec<usize> = of_message.collect();
        if whole.contains(&ask) && bytes(&whole) <= REQUEST_BYTES {
            return whole;
        }
        let mut request = vec![ask];
        for place in whole.into_iter().filter(|place| *place > ask) {
            request.push(place);
            if bytes(&request) > REQUEST_BYTES {
                request.pop();
                break;
            }
        }
        request
    }

    /// Returns the sentences of the exchange that state the outcome. If the assistant works, these are the conclusions
    /// in its last message. Otherwise, these are the statements of its answer that contain the words of the question.
    fn outcome(&self, exchange: &Exchange, is_work: bool) -> Vec<usize> {
        if exchange.is_rejected {
            return Vec::new();
        }
        let asked: Vec<&Sentence> = exchange.asked.iter().map(|place| self.sentence(*place)).collect();
        let states = |place: &usize| {
            let sentence = self.sentence(*place);
            // If the assistant called no tool, it explained or guessed.
            let is_about = match is_work && exchange.has_calls {
                true => sentence.is_last,
                false => overlap(&asked, sentence) >= ANSWERING && !(is_work && reports_change(sentence)),
            };
            is_about
                && (exchange.is_borne_out || !is_work || !claims_effect(sentence))
                && sentence.corrected.is_none()
                && concludes(sentence)
                && self.has_name(sentence)
        };
        exchange.answered.iter().copied().filter(states).take(MOST_CONCLUSIONS).collect()
    }

    /// Returns the exchange with the first request that names what it is about, or else the one with the most central
    /// request.
    pub(super) fn goal(&self, max_bytes: usize) -> Option<usize> {
        let fits = |at: &usize| self.asks[*at].is_some_and(|ask| self.sentence(ask).text.len() <= max_bytes);
        let mut all = (0..self.exchanges.len()).filter(fits);
        let weight = |at: &usize| self.asks[*at].map_or(0.0, |ask| self.weight(ask));
        let is_specific = |at: &usize| self.asks[*at].is_some_and(|ask| self.is_specific(ask));
        all.clone()
            .find(|at| is_specific(at) && self.says_something(*at))
            .or_else(|| all.clone().find(is_specific))
            .or_else(|| all.by_ref().max_by(|a, b| weight(a).total_cmp(&weight(b)).then(b.cmp(a))))
    }

    /// Returns the sentence that shows the current state of the conversation: the outcome of the last exchange that
    /// has one or says what it is about, or else its request. The index of the exchange comes first.
    pub(super) fn stand(&self, max_bytes: usize) -> Option<(usize, usize)> {
        let fits = |place: &usize| self.sentence(*place).text.len() <= max_bytes;
        (0..self.exchanges.len()).rev().find_map(|at| {
            let outcome = self.outcomes[at].first().copied().filter(fits);
            let ask = self.asks[at].filter(fits).filter(|_| self.says_something(at));
            Some((at, outcome.or(ask)?))
        })
    }

    /// Returns whether the user only agreed to a proposal of the assistant.
    pub(super) fn is_agreed(&self, at: usize) -> bool {
        self.asks[at].is_some() && self.asks[at] == self.exchanges[at].agreed
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
}
