//! Finds the facts and decisions that a person states in a message.

use super::Said;
use super::passing;
use super::signs::{
    is_hedge, is_listener, is_own, is_past, is_reference, is_request, is_rule, is_strict, is_time, words,
};
use crate::context::entities::entities;
use tiro_base::memory::Kind;
use tiro_text::blocks::{self, Form, Sentence, blocks};

/// The maximum number of bytes of a message that are read. Arbitrary: longer messages are mostly pasted files.
const MOST_READ: usize = 16 * 1024;

/// The minimum number of words of a fact. Arbitrary.
const SHORTEST: usize = 5;

/// A decision without a name must have at least so many words if an assistant works in the session. Arbitrary.
const SHORTEST_WITHOUT_NAME: usize = 7;

/// The lowest score of a fact. Measured with `evals facts`: on conversations of two people, seven of ten sentences
/// above this score are from messages that annotators took facts from.
const BAR: f64 = 2.0;

/// Returns the facts and decisions of a person's message, the best first. If the message takes back an earlier
/// decision, the sentence that replaces this decision is itself a decision, whatever its score is. If an assistant
/// works in this session, `before` contains the messages before this message, and statements for the moment and pasted
/// text are left out. Otherwise `before` is `None`.
pub(super) fn stated(message: &str, takes_back: bool, before: Option<&[Said<'_>]>) -> Vec<(Kind, String)> {
    let mut found: Vec<(f64, Kind, String)> = Vec::new();
    let pasted_from = before.and_then(|_| blocks::pasted_from(read(message))).unwrap_or(usize::MAX);
    for sentence in sentences(message).into_iter().filter(|each| each.range.start < pasted_from) {
        let names = named(message, &sentence);
        let (score, kind) = judged(&sentence, names);
        let says_more = words(&sentence.text).len() >= SHORTEST;
        if takes_back && found.is_empty() && says_more {
            found.push((f64::MAX, Kind::Decision, sentence.text));
        } else if score >= BAR && before.is_none_or(|before| lasts(&sentence.text, names, kind, before)) {
            found.push((score, kind, sentence.text));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, kind, text)| (kind, text)).collect()
}

/// Returns whether a sentence has lasting content and was not pasted from the messages `before`. `names` is the number
/// of names in it.
fn lasts(text: &str, names: usize, kind: Kind, before: &[Said<'_>]) -> bool {
    let words = words(text);
    let says_of_what = names > 0 || (kind == Kind::Decision && words.len() >= SHORTEST_WITHOUT_NAME);
    says_of_what
        && !passing::is_passing(&words)
        && !passing::is_output(text)
        && !passing::was_said(text, before)
}

/// Returns the beginning of a message, which is the part that is read.
fn read(message: &str) -> &str {
    &message[..message.floor_char_boundary(MOST_READ)]
}

/// Returns the sentences of a message that can be quoted.
pub(super) fn sentences(message: &str) -> Vec<Sentence> {
    let said = blocks(read(message)).into_iter().filter(blocks::Block::is_said);
    let all: Vec<Sentence> = said.flat_map(|block| blocks::sentences(&block)).collect();
    all.into_iter()
        .filter(|sentence| sentence.is_whole() && sentence.form == Form::Statement)
        .filter(|sentence| !blocks::is_boilerplate(&sentence.text) || words(&sentence.text).len() > SHORTEST)
        .collect()
}

/// Returns the number of names, paths and identifiers in a sentence of `message`. Markup in the message shows which
/// words are code.
pub(super) fn named(message: &str, sentence: &Sentence) -> usize {
    message.get(sentence.range.clone()).map_or(0, |text| entities(text).len())
}

/// Returns the score of a sentence as a fact, and its kind. The single numbers are arbitrary. Their combination is
/// measured with `evals facts`.
fn judged(sentence: &Sentence, names: usize) -> (f64, Kind) {
    let text = sentence.text.as_str();
    let words = words(text);
    let has = |is: fn(&str) -> bool| words.iter().any(|word| is(word));
    let first = words.first().map(String::as_str).unwrap_or_default();
    let mut score = 0.0;
    let is_rule = has(is_rule) || is_choice(text);
    let is_own = has(is_own);
    // A mention of files, an arrow, or a list in brackets shows a paste or a note, which is not a statement.
    let is_note =
        text.starts_with(['@', '#', '/', '[', '{', '"', '(']) || text.contains("-->") || text.contains(": [");
    if words.len() < SHORTEST || text.ends_with(':') || is_note {
        return (0.0, Kind::Fact);
    }
    let add = |is: bool, value: f64| if is { value } else { 0.0 };
    score -= add(has(is_open), 2.0);
    score += add(is_own, 1.0) + add(super::signs::is_own(first), 0.3);
    score += add(text.contains(|c: char| c.is_ascii_digit()), 0.6) + add(has(is_time), 0.6);
    score += add(has_past(&words), 0.6);
    score += add(names > 0, 0.4);
    score += add(is_rule, 1.4) + add(has(is_strict), 0.6);
    score += add(words.len() >= 8, 0.3) + add(words.len() >= 12, 0.3);
    score -= add(has(is_listener), 0.9);
    score -= add(is_reference(first), 0.5);
    score -= add(has(is_hedge), 0.6);
    score -= add(text.ends_with('!'), 0.5);
    score -= add(is_ask(text, &words), 2.5);
    score -= add(has(super::signs::is_passing), 1.6);
    score -= add(matches!(first, "if" | "because" | "unless" | "when") && !text.contains(','), 1.5);
    score -= add(is_intention(&words), 1.0) + add(first == "no", 1.2);
    (score, if is_rule && !has_past_report(&words) { Kind::Decision } else { Kind::Fact })
}

/// Returns whether a word makes a statement uncertain.
fn is_open(word: &str) -> bool {
    matches!(word, "option" | "options" | "assume" | "assumes" | "assuming" | "might" | "whether")
}

/// Returns whether the speakers report something about themselves, as in "I went", "we've added", "I was".
fn has_past(words: &[String]) -> bool {
    let subject = |word: &String| matches!(word.as_str(), "i" | "we" | "i've" | "we've" | "my" | "our");
    words.windows(2).any(|pair| subject(&pair[0]) && is_past(&pair[1]))
        || words.windows(3).any(|three| subject(&three[0]) && is_past(&three[2]))
}

/// Returns whether the sentence only reports an event. In such a sentence, a word such as "only" doesn't state a rule.
fn has_past_report(words: &[String]) -> bool {
    let decides = ["decided", "chose", "chosen", "agreed", "switched", "must"];
    has_past(words) && !words.iter().any(|word| decides.contains(&word.as_str()))
}

/// Returns whether a sentence states a choice.
fn is_choice(text: &str) -> bool {
    let lower = super::signs::lower(text);
    let phrases = [
        "let's use",
        "lets use",
        "let's go with",
        "lets go with",
        "go with",
        "stay with",
        "stick with",
        "we'll use",
        "we will use",
        "from now on",
        "as a rule",
        "no longer",
        "no need",
        "don't need",
        "dont need",
        "do not need",
        "we use",
        "have to be",
        "has to be",
        "needs to be",
        "need to be",
        "settled on",
        "rather than",
        "switch to",
        "switched to",
        "moved to",
        "by default",
    ];
    // "I want the entry to have a name" is a requirement, but "I want to check it" is not.
    let wants = ["i want ", "we want "];
    let wanted = wants.iter().find_map(|phrase| lower.split_once(phrase)).map(|(_, rest)| rest);
    let is_wanted = wanted.is_some_and(|rest| !rest.starts_with("to ") && !rest.starts_with("you "));
    is_wanted || phrases.iter().any(|phrase| lower.contains(phrase))
}

/// Returns the words of each clause of a sentence.
fn clauses(text: &str) -> impl Iterator<Item = Vec<String>> {
    text.split([',', ';', ':', '—', '(']).map(words).filter(|words| !words.is_empty())
}

/// Returns whether a sentence states an intention of the speaker, as in "I'm trying to" and "I want to make sure".
fn is_intention(words: &[String]) -> bool {
    let all = words.join(" ");
    let phrases = [
        "i'd like to",
        "i need to",
        "i'm trying to",
        "im trying to",
        "i'll make sure",
        "i'm not sure",
        "we're going to",
        "i will",
        "i'll",
        "left off",
        "pick up where",
    ];
    let wants =
        |three: &[String]| matches!(three[0].as_str(), "i" | "we" | "just" | "specifically" | "really");
    phrases.iter().any(|phrase| all.contains(phrase))
        || words.windows(3).any(|three| wants(three) && three[1] == "want" && three[2] == "to")
}

/// Returns whether a sentence asks the listener to do something now.
fn is_ask(text: &str, words: &[String]) -> bool {
    let begins =
        |phrase: &[&str]| words.len() >= phrase.len() && phrase.iter().zip(words).all(|(a, b)| a == b);
    let is_lasting =
        words.iter().any(|word| matches!(word.as_str(), "always" | "never" | "must" | "every" | "should"));
    let skipped = [
        "now",
        "also",
        "then",
        "please",
        "ok",
        "okay",
        "and",
        "so",
        "just",
        "first",
        "great",
        "good",
        "yes",
        "alright",
        "instead",
        "actually",
        "no",
        "moreover",
        "however",
        "but",
        "finally",
        "next",
        "additionally",
        "i.e",
        "lets",
        "let's",
        "perfect",
        "nice",
        "don't",
        "dont",
        "and",
    ];
    let is_imperative = !is_lasting
        && clauses(text).take(2).any(|clause| {
            let first = clause.iter().find(|word| !skipped.contains(&word.as_str()));
            first.is_some_and(|word| is_request(word))
        });
    let asks = [
        &["can", "you"][..],
        &["could", "you"],
        &["would", "you"],
        &["will", "you"],
        &["please"],
        &["help", "me"],
        &["tell", "me"],
        &["show", "me"],
        &["give", "me"],
        &["let", "me"],
        &["go", "ahead"],
        &["i", "want", "you", "to"],
        &["i", "need", "you", "to"],
        &["i'd", "like", "you", "to"],
        &["i", "need", "help"],
        &["i'm", "trying", "to"],
    ];
    let anywhere = [
        "can you",
        "could you",
        "help me",
        "please",
        "let me know",
        "want you to",
        "need you to",
        "asked you",
    ];
    let all = words.join(" ");
    is_imperative
        || asks.iter().any(|ask| begins(ask))
        || (anywhere.iter().any(|ask| all.contains(ask)) && !is_lasting)
}
