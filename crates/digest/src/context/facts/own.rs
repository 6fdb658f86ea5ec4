//! Finds the sentences of a message that are the speaker's own words, and what they state.

use super::{Said, cues, stands};
use crate::statements::replies;
use crate::statements::words::{has, words};
use std::ops::Range;
use tiro_base::memory::Kind;
use tiro_text::blocks::{self, Form, Sentence, blocks, quotations};

/// The maximum number of bytes of a message that are read. Arbitrary: longer messages are mostly pasted files.
const MOST_READ: usize = 16 * 1024;

/// A person may paste a sentence from an earlier message. This many earlier messages are searched for the sentence.
/// Arbitrary.
const PASTED_WITHIN: usize = 60;

/// The maximum number of bytes that are read of each of these earlier messages. Arbitrary.
const MOST_SEARCHED: usize = 64 * 1024;

/// A "yes" accepts the proposal of an answer only if the answer has at most this many sentences. Arbitrary: a longer
/// answer is an essay.
const LONGEST_PROPOSAL: usize = 16;

/// A reply with more words than this says more than yes. Arbitrary.
const LONGEST_YES: usize = 8;

/// The introduction of a list is searched for in this many sentences before an item. Arbitrary.
const ITEMS: usize = 8;

/// The sentence that says what the next one is about has at least this many own words, and at most this many bytes.
/// Arbitrary.
const CONTEXT: usize = 3;
const LONGEST_CONTEXT: usize = 200;

/// An introduction of a list with fewer words says nothing. Arbitrary.
const LEAST_INTRODUCTION: usize = 4;

/// Requests for work on a text. The text that such a message contains is not what its author says.
const ON_TEXT: &str = "translate proofread paraphrase rephrase reword shorten";

/// Requests that may also concern code. They concern a text if one of [`TEXTS`] follows.
const ON_SOME_TEXT: &str = "summarize summarise rewrite review edit correct fix improve polish check explain";

/// Words for texts.
const TEXTS: &str = "text mail email letter paragraph article essay post announcement readme sentence
    sentences quote wording grammar spelling";

/// What a speaker introduces with a colon is their own statement only if one of these words comes before the colon.
const INTRODUCES: &str = "note notes remember rule rules decision decisions decided agreed preference
    preferences convention conventions policy guideline guidelines constraint constraints
    important reminder always never actually correction scratch things points feedback
    suggestions also yes no mind";

/// What a person states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    /// `fact` or `decision`.
    pub(super) kind: Kind,
    /// The last sentence that states something.
    pub(super) claim: String,
    /// The whole text: the claim, and before it what says what the claim is about.
    pub(super) text: String,
}

impl Stated {
    /// Returns a decision that is understandable alone.
    pub(super) fn decision(text: String) -> Stated {
        Stated { kind: Kind::Decision, claim: text.clone(), text }
    }
}

/// Returns the facts and decisions that a person states in a message. `before` are the messages before it. In a
/// conversation of two people (`among_people`), nobody gives instructions, but both tell of themselves.
pub(super) fn stated(message: &str, before: &[Said<'_>], among_people: bool) -> Vec<Stated> {
    let message = read(message);
    let quoted = quotations(message);
    let sentences = sentences(message);
    if sentences.iter().any(|sentence| is_on_text(&outside(message, &sentence.range, &quoted))) {
        return Vec::new();
    }
    let end = material_from(message, &sentences).min(blocks::pasted_from(message).unwrap_or(usize::MAX));
    let mut found: Vec<Stated> = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        if sentence.range.start >= end {
            break;
        }
        let own = outside(message, &(sentence.range.start..sentence.range.end.min(end)), &quoted);
        // In `never ask "Shall I?"`, only the quotation is a question.
        let is_question = sentence.form == Form::Question && own.contains('?');
        let (own, claim) = match is_question {
            false => (own.as_str(), sentence.text.as_str()),
            true => {
                match (cues::choice_before_question(&own), cues::choice_before_question(&sentence.text)) {
                    (Some(own), Some(claim)) => (own, claim),
                    _ => continue,
                }
            }
        };
        if !sentence.is_whole() {
            continue;
        }
        let kind = cues::kind(own, among_people);
        let kind = kind
            .filter(|kind| stands::alone(own, *kind == Kind::Decision) && !was_said(&sentence.text, before));
        let Some(kind) = kind else { continue };
        let claim = claim.to_owned();
        if kind == Kind::Fact || cues::is_absolute(own) {
            found.push(Stated { kind, text: claim.clone(), claim });
            continue;
        }
        // What somebody else said is no part of the speaker's choice.
        let is_own = |first: &&Sentence| words(&outside(message, &first.range, &quoted)).len() >= CONTEXT;
        match introduced_by(message, &sentences[..place], sentence).filter(is_own) {
            Some(first) if stands::is_output(&first.text) => {}
            // After a question, how a thing should be only explains the question.
            Some(first) if first.form == Form::Question && !cues::is_first_person(own) => {}
            Some(first) => match found.iter_mut().find(|stated| stated.claim == first.text) {
                Some(stated) => {
                    stated.text = joined(&stated.text, &claim);
                    stated.claim = claim;
                }
                None => found.push(Stated { kind, text: joined(&first.text, &claim), claim }),
            },
            None if stands::is_more_of_something(own) => {}
            None => found.push(Stated { kind, text: claim.clone(), claim }),
        }
    }
    found
}

/// Returns the sentence that says what `sentence` of a message is about: the introduction of its list, or the sentence
/// directly before it. The item before a list item speaks of something else.
fn introduced_by<'a>(message: &str, before: &'a [Sentence], sentence: &Sentence) -> Option<&'a Sentence> {
    let list = before.iter().rev().take_while(|each| each.is_item || each.form == Form::Introduction);
    // "A few things:" says nothing.
    let introduction = list.take(ITEMS).find(|each| each.form == Form::Introduction);
    let says =
        |each: &&Sentence| each.form != Form::Introduction || words(&each.text).len() >= LEAST_INTRODUCTION;
    let introduction = introduction.filter(says);
    let line = message.get(..sentence.range.start)?.rsplit('\n').next().unwrap_or_default();
    let begins_item = sentence.is_item && !line.trim().is_empty() && !line.contains(char::is_alphabetic);
    let directly = before.last().filter(|each| !begins_item && says(each));
    let first = introduction.filter(|_| sentence.is_item).or(directly)?;
    (first.text.len() <= LONGEST_CONTEXT).then_some(first)
}

/// Returns two sentences as one text.
fn joined(first: &str, second: &str) -> String {
    let first = first.trim_end_matches(',');
    let end = if first.ends_with(['.', '!', '?', ':', ';']) { "" } else { "." };
    format!("{first}{end} {second}")
}

/// Returns the sentence of an assistant's `answer` that proposes something lasting, if `reply` accepts it without more
/// words, and if it is the only one.
pub(super) fn accepted(answer: &str, reply: &str) -> Option<String> {
    if !replies::accepts(reply) || reply.contains('?') || words(reply).len() > LONGEST_YES {
        return None;
    }
    let sentences = sentences(read(answer));
    if sentences.len() > LONGEST_PROPOSAL {
        return None;
    }
    let is_proposal = |sentence: &Sentence| sentence.is_whole() && cues::proposes(&sentence.text);
    let mut proposals = sentences.into_iter().filter(is_proposal);
    let (proposal, None) = (proposals.next()?, proposals.next()) else { return None };
    stands::alone(&proposal.text, true).then_some(proposal.text)
}

/// Returns the beginning of a message, which is the part that is read.
fn read(message: &str) -> &str {
    &message[..message.floor_char_boundary(MOST_READ)]
}

/// Returns the sentences of prose and of list items.
fn sentences(message: &str) -> Vec<Sentence> {
    let said = blocks(message).into_iter().filter(blocks::Block::is_said);
    said.flat_map(|block| blocks::sentences(&block)).collect()
}

/// Returns a part of a message without the quotations and the markup in it.
fn outside(message: &str, part: &Range<usize>, quoted: &[Range<usize>]) -> String {
    let is_quoted = |at: usize| quoted.iter().any(|quotation| quotation.contains(&at));
    let text = message.get(part.clone()).unwrap_or_default();
    let is_own = |(at, mark): &(usize, char)| !is_quoted(part.start + at) && !matches!(mark, '`' | '*');
    text.char_indices().filter(is_own).map(|(_, mark)| mark).collect()
}

/// Returns whether a sentence asks for work on a text.
fn is_on_text(own: &str) -> bool {
    let clauses = cues::clauses(own);
    let Some(words) = clauses.first() else { return false };
    let asks = |(at, word): (usize, &String)| {
        let is_text = words[at + 1..].iter().any(|word| has(TEXTS, word));
        has(ON_TEXT, word) || (has(ON_SOME_TEXT, word) && is_text)
    };
    words.iter().enumerate().take(4).any(asks) && !words.iter().any(|word| has("always never", word))
}

/// Returns the byte at which text begins that the speaker only passes on: after a colon that introduces no statement
/// of their own, after the salutation or the header of a mail.
fn material_from(message: &str, sentences: &[Sentence]) -> usize {
    let mut from = usize::MAX;
    for sentence in sentences {
        let text = message.get(sentence.range.clone()).unwrap_or_default();
        let colon = text.find(": ").or_else(|| text.ends_with(':').then_some(text.len() - 1));
        let Some(colon) = colon else { continue };
        if !words(&text[..colon]).iter().any(|word| has(INTRODUCES, word)) {
            from = from.min(sentence.range.start + colon.max(1));
            break;
        }
    }
    let mut start = 0;
    for line in message.split_inclusive('\n') {
        let text = line.trim();
        let is_short = text.split_whitespace().count() <= 4 && line.ends_with('\n');
        let is_salutation = start > 0 && is_short && text.ends_with(',');
        if is_salutation {
            from = from.min(start);
        }
        start += line.len();
    }
    from
}

/// Returns whether one of the messages in `before` contains the sentence `text`.
fn was_said(text: &str, before: &[Said<'_>]) -> bool {
    let text = plain(text);
    let searched = |said: &Said<'_>| plain(&said.text[..said.text.floor_char_boundary(MOST_SEARCHED)]);
    before.iter().rev().take(PASTED_WITHIN).any(|said| searched(said).contains(&text))
}

/// Returns a text without the characters of markup, with single spaces.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '*' | '`' | '_' | '\\')).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
