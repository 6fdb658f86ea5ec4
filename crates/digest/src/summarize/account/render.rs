//! Renders an account at the three levels of detail.

use std::collections::{BTreeMap, BTreeSet};

use super::choose::Part;
use super::read::Account;
use crate::summarize::Summary;
use crate::summarize::exchanges::Exchange;
use crate::summarize::talk::start_line;
use tiro_base::times::day;
use tiro_text::blocks::Form;

impl Account<'_> {
    /// Returns the topic and the current state of the conversation, in two sentences.
    pub(super) fn brief(&self, max_tokens: usize, count: &dyn Fn(&str) -> usize) -> Summary {
        // Shorter and shorter sentences are tried until both fit.
        for bytes in [4, 3, 2, 1].map(|bytes| bytes * max_tokens) {
            let Some(goal) = self.goal(bytes) else { continue };
            let ask = self.asks[goal].expect("a goal has a request");
            let mut cited = BTreeSet::new();
            let mut text = format!("{}: {}", self.speaker(ask), self.quote(ask, &mut cited));
            if let Some((_, stands)) = self.stand(bytes).filter(|(_, stands)| *stands != ask) {
                let both =
                    format!("{text}\nLast, {}: {}", self.speaker(stands), self.quote(stands, &mut cited));
                if count(&both) <= max_tokens {
                    return Summary { text: both, cited: cited.into_iter().collect(), unread: 0 };
                }
                cited.remove(&self.ordinal(stands));
                if bytes > max_tokens {
                    continue;
                }
            }
            if count(&text) <= max_tokens {
                text.shrink_to_fit();
                return Summary {
                    text,
                    cited: BTreeSet::from([self.ordinal(ask)]).into_iter().collect(),
                    unread: 0,
                };
            }
        }
        Summary::default()
    }

    /// Renders the exchanges in order of time. If `is_detailed`, each day has a heading, and the files and commits of
    /// each exchange are named. An outcome has a line of its own, so that readers don't take it for the user's words.
    pub(super) fn lines(&self, chosen: &BTreeSet<Part>, is_detailed: bool) -> Summary {
        let mut by_exchange: BTreeMap<usize, (BTreeSet<usize>, BTreeSet<usize>)> = BTreeMap::new();
        for part in chosen {
            let (Part::Exchange(at) | Part::Said(at, _) | Part::Answered(at, _)) = *part;
            let (said, answered) = by_exchange.entry(at).or_default();
            match *part {
                Part::Exchange(at) => {
                    said.extend(&self.requests[at]);
                    answered.extend(self.outcomes[at].first());
                }
                Part::Said(_, place) => drop(said.insert(place)),
                Part::Answered(_, place) => drop(answered.insert(place)),
            }
        }
        let mut cited = BTreeSet::new();
        let mut text = String::new();
        let mut said_on = String::new();
        for (at, (said, answered)) in by_exchange {
            let Some(first) = said.first().copied() else { continue };
            let source = self.source(first);
            let today = day(source.time);
            start_line(&mut text);
            if is_detailed && source.time != 0 && today != said_on {
                text += &today;
                text.push('\n');
                said_on = today;
            }
            let agreed = if self.is_agreed(at) { ", and the user agreed" } else { "" };
            let mut quoted = |places: &BTreeSet<usize>| {
                let quotes: Vec<String> = places.iter().map(|place| self.quote(*place, &mut cited)).collect();
                quotes.join(" ")
            };
            // A request such as "please go on" says nothing beside its outcome.
            let says_topic = |place: &usize| {
                let sentence = self.sentence(*place);
                self.is_specific(*place) || (sentence.form == Form::Question && !sentence.words.is_empty())
            };
            let is_told = answered.is_empty() || said.iter().any(says_topic);
            if is_told {
                text += &format!("#{} {}{agreed}: {}", source.ordinal, self.speaker(first), quoted(&said));
            }
            if let Some(first) = answered.first() {
                let (ordinal, outcome) = (self.ordinal(*first), quoted(&answered));
                text += &match is_told {
                    true => format!("\n  → #{ordinal}: {outcome}"),
                    false => format!("#{ordinal} {}: {outcome}", self.speaker(*first)),
                };
            }
            if is_detailed {
                text += &made(&self.exchanges[at]);
            }
        }
        Summary { text, cited: cited.into_iter().collect(), unread: 0 }
    }

    /// Returns the shortest request, if it fits.
    pub(super) fn shortest(&self, max_tokens: usize, count: &dyn Fn(&str) -> usize) -> Summary {
        let mut asks: Vec<usize> = self.asks.iter().flatten().copied().collect();
        asks.sort_by_key(|ask| self.sentence(*ask).text.len());
        asks.truncate(1);
        let Some(ask) = asks.pop() else { return Summary::default() };
        let mut cited = BTreeSet::new();
        let text = self.quote(ask, &mut cited);
        match count(&text) <= max_tokens {
            true => Summary { text, cited: cited.into_iter().collect(), unread: 0 },
            false => Summary::default(),
        }
    }
}

/// Returns the files and commits of an exchange, in brackets; empty if there are none.
fn made(exchange: &Exchange) -> String {
    let mut parts = Vec::new();
    if !exchange.files.is_empty() {
        let shown: Vec<&str> = exchange.files.iter().map(String::as_str).take(4).collect();
        let more = exchange.files.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("edited {}{more}", shown.join(", ")));
    }
    if !exchange.commits.is_empty() {
        let shown: Vec<&str> = exchange.commits.iter().map(String::as_str).take(3).collect();
        parts.push(format!("commit {}", shown.join(", ")));
    }
    if parts.is_empty() { String::new() } else { format!(" [{}]", parts.join("; ")) }
}
