//! Renders an account at the three levels of detail.

use std::collections::{BTreeMap, BTreeSet};

use super::choose::Part;
use super::read::Account;
use crate::summarize::Summary;
use crate::summarize::exchanges::Exchange;
use crate::summarize::talk::start_line;
use tiro_base::times::day;

/// The text between the lines of a section or an exchange.
const NEXT: &str = "\n  ";

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

    /// Renders the goal, the user's statements and decisions, the work, and the last exchange, each with the numbers of
    /// the messages.
    pub(super) fn standard(&self, chosen: &BTreeSet<Part>) -> Summary {
        let mut cited = BTreeSet::new();
        let goal = self.goal(usize::MAX).filter(|goal| chosen.contains(&Part::Exchange(*goal)));
        let last = self.exchanges.len().saturating_sub(1);
        let (mut decided, mut worked, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for part in chosen {
            match part {
                Part::Exchange(at) if Some(*at) == goal => {}
                Part::Exchange(at) if *at == last => ends.push(self.line(*at, chosen, &mut cited)),
                Part::Exchange(at) => worked.push(self.line(*at, chosen, &mut cited)),
                Part::Said(_, place) => decided.push(self.cited(*place, &mut cited)),
                // The line of the exchange already contains this sentence.
                Part::Answered(..) => {}
            }
        }
        let goal: Vec<String> = goal.map(|goal| self.line(goal, chosen, &mut cited)).into_iter().collect();
        let end = if self.is_open(last) { "Open" } else { "Last" };
        let sections = [
            ("Goal", goal, " "),
            ("Said and decided", decided, " "),
            ("Worked on", worked, NEXT),
            (end, ends, " "),
        ];
        let lines = sections.iter().filter(|(_, lines, _)| !lines.is_empty());
        let lines = lines.map(|(head, lines, between)| format!("{head}: {}", lines.join(between)));
        let lines: Vec<String> = lines.collect();
        Summary { text: lines.join("\n"), cited: cited.into_iter().collect(), unread: 0 }
    }

    /// Renders an exchange as two lines, `request (#2)` and `→ outcome (#3)`. If the outcome were in the same line as
    /// the request, readers could take it for the user's words.
    pub(super) fn line(&self, at: usize, chosen: &BTreeSet<Part>, cited: &mut BTreeSet<i64>) -> String {
        let agreed = if self.is_agreed(at) { "agreed: " } else { "" };
        let mut line =
            self.asks[at].map_or(String::new(), |ask| format!("{agreed}{}", self.cited(ask, cited)));
        let outcome = self.outcomes[at].filter(|_| self.is_work);
        let more = chosen.iter().filter_map(|part| match part {
            Part::Answered(of, place) if *of == at => Some(*place),
            _ => None,
        });
        let answered: BTreeSet<usize> = outcome.into_iter().chain(more).collect();
        if !answered.is_empty() {
            let quotes: Vec<String> = answered.iter().map(|place| self.cited(*place, cited)).collect();
            let before = if line.is_empty() { "" } else { NEXT };
            line += &format!("{before}→ {}", quotes.join(" "));
        }
        line
    }

    /// Renders the exchanges in order of time, one per line, under headings with their days.
    pub(super) fn detailed(&self, chosen: &BTreeSet<Part>) -> Summary {
        let mut by_exchange: BTreeMap<usize, (bool, BTreeSet<usize>, BTreeSet<usize>)> = BTreeMap::new();
        for part in chosen {
            match *part {
                Part::Exchange(at) => by_exchange.entry(at).or_default().0 = true,
                Part::Said(at, place) => drop(by_exchange.entry(at).or_default().1.insert(place)),
                Part::Answered(at, place) => drop(by_exchange.entry(at).or_default().2.insert(place)),
            }
        }
        let mut cited = BTreeSet::new();
        let mut text = String::new();
        let mut said_on = String::new();
        for (at, (is_whole, mut said, mut answered)) in by_exchange {
            if is_whole {
                let (ask, outcome) = (self.asks[at], self.outcomes[at]);
                said.extend(ask);
                answered.extend(outcome.filter(|_| self.is_work));
            }
            let Some(first) = said.iter().chain(&answered).next().copied() else { continue };
            let source = self.source(first);
            let today = day(source.time);
            if source.time != 0 && today != said_on {
                start_line(&mut text);
                text += &today;
                said_on = today;
            }
            start_line(&mut text);
            let agreed = if is_whole && self.is_agreed(at) { ", and the user agreed" } else { "" };
            text += &format!("#{} {}{agreed}: ", source.ordinal, self.speaker(first));
            let mut quoted = |places: &BTreeSet<usize>| {
                let quotes: Vec<String> = places.iter().map(|place| self.quote(*place, &mut cited)).collect();
                quotes.join(" ")
            };
            text += &quoted(&said);
            if !answered.is_empty() {
                text += if said.is_empty() { "" } else { NEXT };
                text += if said.is_empty() { "" } else { "→ " };
                text += &quoted(&answered);
            }
            text += &made(&self.exchanges[at]);
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
