//! Checks who did what: whether the speaker that a clause names is the same one whose words support the clause.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::summarize::Source;
use crate::summarize::quality::read::functions::{class, is_function};
use crate::summarize::quality::read::index::{Index, is_content};
use crate::summarize::quality::read::statements::Statement;
use crate::summarize::quality::read::tokens::{Token, tokens};

/// Verbs after which a clause is about the words of another speaker.
const OF_OTHERS: &str = "ask asked asks asking inquire inquired inquires congratulate congratulated congratulates praise \
    praised praises praising compliment complimented compliments complimenting encourage encouraged encourages encouraging \
    thank thanked thanks admire admired admires admiring sympathize sympathized commend commended applaud applauded respond \
    responded responds reply replied replies acknowledge acknowledged support supported supports reassure reassured wish \
    wished wishes remind reminded curious impressed agree agreed agrees advise advised advises comfort comforts comforted \
    offered offers congratulating appreciate appreciated appreciates help helps helped helping assist assists assisted interview interviews \
    interviewed serve serves understands understood empathize empathized interest interested validate validated affirmed \
    affirms affirm applauds celebrates celebrated cheers cheered guides guided consoles consoled";

static OTHERS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| OF_OTHERS.split_whitespace().collect());

/// A word counts in full if it is at most this many passages away from the passage that supports the sentence best.
/// Other words count with the factor `FAR`. Arbitrary.
const NEAR: usize = 2;
const FAR: f64 = 0.25;

/// The speakers.
#[derive(Debug)]
pub(super) struct Voices<'a> {
    /// The tokens of the name of each speaker, by number.
    names: Vec<Vec<Token<'a>>>,
    /// For each source, the number of its speaker.
    pub(super) of_source: Vec<usize>,
}

impl<'a> Voices<'a> {
    /// Returns the speakers of the sources.
    pub(super) fn of(sources: &[Source<'a>]) -> Voices<'a> {
        let mut known: Vec<&'a str> = Vec::new();
        let number = |source: &Source<'a>| {
            known.iter().position(|name| *name == source.speaker).unwrap_or_else(|| {
                known.push(source.speaker);
                known.len() - 1
            })
        };
        let of_source = sources.iter().map(number).collect();
        Voices { names: known.into_iter().map(tokens).collect(), of_source }
    }

    /// Returns the words of the speakers' names, in lower case.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.names.iter().flatten().map(|token| token.lower.clone())
    }

    /// If the tokens from `at` on name a speaker, returns the speaker's number and the number of tokens of the name.
    fn named(&self, said: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        let rest = said.get(at..)?;
        let whole = self.names.iter().enumerate().filter(|(_, name)| {
            !name.is_empty()
                && name.len() <= rest.len()
                && name.iter().zip(rest).all(|(part, token)| part.lower == token.lower)
        });
        if let Some((number, name)) = whole.max_by_key(|(_, name)| name.len()) {
            return Some((number, name.len()));
        }
        // A first name is enough if only one speaker has this first name.
        let first = rest.first().filter(|token| token.is_capital() && !is_function(&token.lower))?;
        let mut having =
            self.names.iter().enumerate().filter(|(_, name)| {
                name.len() > 1 && name.first().is_some_and(|part| part.lower == first.lower)
            });
        let (number, _) = having.next()?;
        having.next().is_none().then_some((number, 1))
    }
}

/// The evidence about the speakers that clauses name as their subjects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// The total weight of the words that confirm the named speakers.
    pub(super) right: f64,
    /// The total weight of the words that contradict the named speakers.
    pub(super) wrong: f64,
}

/// Returns the evidence for a sentence. `subject` is the subject of the previous sentence, to which pronouns refer.
pub(super) fn evidence(
    statement: &Statement<'_>,
    voices: &Voices<'_>,
    index: &Index,
    subject: &mut Option<usize>,
) -> Evidence {
    let near: Vec<usize> = statement.near().collect();
    let said = &statement.tokens;
    let mut evidence = Evidence::default();
    let before = subject.take();
    let mut is_of_others = false;
    let mut owner: Option<(usize, usize)> = None;
    let mut at = 0;
    while at < said.len() {
        let token = &said[at];
        if let Some((number, length)) = voices.named(said, at) {
            let is_possessive = said[at + length - 1].is_possessive;
            let is_joined =
                |place: Option<usize>| place.is_some_and(|place| voices.named(said, place).is_some());
            let after = said.get(at + length).is_some_and(|next| next.lower == "and")
                && is_joined(Some(at + length + 1));
            let ahead = at > 1 && said[at - 1].lower == "and" && is_joined(at.checked_sub(2));
            if is_possessive {
                owner = Some((number, at + length));
            } else if after || ahead {
                *subject = None;
            } else if begins_clause(said, at, length) {
                *subject = Some(number);
                is_of_others = false;
            }
            at += length;
            continue;
        }
        match token.lower.as_str() {
            "they" | "both" | "their" => *subject = None,
            "he" | "she" if subject.is_none() => *subject = before,
            _ => {}
        }
        is_of_others |= OTHERS.contains(token.lower.as_str());
        let owned = owner.filter(|(_, place)| at < place + 2).map(|(number, _)| number);
        if let Some(voice) = owned.or(subject.filter(|_| !is_of_others))
            && is_content(token)
        {
            let balance = balance(&token.stem, voice, voices, index, &near) * index.weight(&token.stem);
            if balance > 0.0 { evidence.right += balance } else { evidence.wrong -= balance }
        }
        at += 1;
    }
    evidence
}

/// Returns whether the name at `at` is the subject of a clause, not an object.
fn begins_clause(said: &[Token<'_>], at: usize, length: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &said[before]) else { return true };
    let follows =
        |letters: &str| said.get(at + length).is_some_and(|next| letters.contains(class(next, false)));
    match class(before, at == 1) {
        _ if before.is_before_mark => true,
        'C' | 'S' | 'A' => true,
        // "with Ana saying", "after Ana left"
        'P' => follows("GE"),
        'D' => at == 1,
        _ => false,
    }
}

/// Returns how much more often the sources use a word for `voice` than for the other speakers, from -1 to 1.
fn balance(stem: &str, voice: usize, voices: &Voices<'_>, index: &Index, near: &[usize]) -> f64 {
    let others = (voices.names.len().max(2) - 1) as f64;
    let (mut own, mut other) = (0.0, 0.0);
    for said in index.with(stem) {
        let is_near = near.iter().any(|place| place.abs_diff(said.passage) <= NEAR);
        let weight = if is_near { 1.0 } else { FAR };
        let share = if voices.of_source[said.source] == voice { said.own } else { (1.0 - said.own) / others };
        own += weight * share;
        other += weight * (1.0 - share) / others;
    }
    if own + other == 0.0 { 0.0 } else { (own - other) / (own + other) }
}
