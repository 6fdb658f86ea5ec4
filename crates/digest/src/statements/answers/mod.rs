//! Finds what a person decided by answering questions: the question and the answer together are a decision.
//!
//! Questions come from a client's own dialog, from a numbered list, or from a list of options. A dialog states each
//! question beside its answer. A numbered answer belongs to the question with the same number, and a chosen option to
//! the line that names it. If both together don't say what they are about, the request that led to them is added.

mod lists;
mod options;
mod plans;

use crate::statements::stems;
use crate::statements::voice::Said;
use crate::statements::voice::Voice;
use crate::statements::words::{ASKS, has, words};
use lists::one_line;
pub(crate) use plans::FOLLOWING;
use tiro_base::memory::Role;
use tiro_text::blocks::{self, Block, blocks, is_boilerplate};

/// The tools with which clients ask the user: Claude Code's, opencode's, Cursor's and Codex's. Their output states
/// questions and answers.
const ASKING: [&str; 4] = ["AskUserQuestion", "question", "ask_question", "request_user_input"];

/// What comes before the questions and answers in the output of such a tool.
const ANSWERED: &str = "User has answered your questions: ";

/// What comes between a decision and the request that led to it.
pub(crate) const REQUEST: &str = " (asked for: ";

/// The maximum number of bytes of a question and of an answer. Arbitrary: two sentences.
const LONGEST: usize = 280;

/// The maximum number of bytes of the request that led to a question. Arbitrary: a sentence.
const TOPIC: usize = 110;

/// A request has at least this many words, in one of this many messages before the questions. Arbitrary.
const WORDS_OF_REQUEST: usize = 5;
const REQUEST_WITHIN: usize = 3;

/// Phrases with which a person says what they want.
const WISHES: [&str; 16] = [
    "i want",
    "i need",
    "i would like",
    "i would need",
    "i'd like",
    "i wanna",
    "we want",
    "we need",
    "we should",
    "let's",
    "lets",
    "can you",
    "could you",
    "can we",
    "could we",
    "please",
];

/// A question and its answer with so many words say what they are about. Arbitrary.
const SPEAKS_ALONE: usize = 24;

/// A question and its answer say what they are about if they share this many words with the request. Arbitrary.
const SHARED: usize = 2;

/// Words of an answer that only agree or refuse.
const BARE: &str =
    "yes yeah yep sure ok okay no nope please correct right exactly true fine good great perfect nice
    sounds looks makes sense agree agreed it is that this the all as is for of course definitely absolutely";

/// Phrases of an answer that leaves the question open, or refers to what the assistant said.
const OPEN: &[&str] = &[
    "not sure",
    "unsure",
    "don't know",
    "dont know",
    "do not know",
    "no idea",
    "idk",
    "maybe",
    "perhaps",
    "up to you",
    "your call",
    "you decide",
    "you choose",
    "whatever",
    "no preference",
    "decide later",
    "suggest",
    "recommend",
    "i think",
    "i guess",
    "see above",
    "feel free",
    "as above",
    "tell me",
    "let me",
    "mention",
    "you propose",
    "you said",
    "you describe",
    "imagination",
    "option",
    "both scenarios",
    "all three",
    "all of them",
    "current one",
    "first one",
    "second one",
    "last one",
];

/// What begins a remark of the assistant about an option.
const RECOMMENDED: &str = "recommended";

/// Words that begin a question which "yes" answers.
const CLOSED: &str = "should can could would do does did is are was were will shall may must";

/// Beginnings of a question about how things are, which decides nothing.
const STATUS: &[&str] = &[
    "do you already",
    "did you",
    "have you",
    "are you seeing",
    "are you getting",
    "current",
    "what is the current",
    "what's the current",
    "where is",
    "where are",
    "how does",
    "how do",
    "what happens",
    "what error",
];

/// Words that point to something outside a question or an answer.
const POINTS: &str = "this these those above below here following";

/// Words that point to something outside a question without a label.
const REFERS: &str = "it its that they them both either neither";

/// Returns whether a message is the result of a tool with which a client asked the user something, or showed a plan for
/// approval.
pub fn is_dialog(role: Option<Role>, speaker: Option<&str>) -> bool {
    let asks = |name: &str| ASKING.contains(&name) || name == plans::SHOWS_PLAN;
    role == Some(Role::Tool) && speaker.is_some_and(asks)
}

/// Returns whether a text is a decision that this module made of a question and its answer.
pub(crate) fn is_decision(text: &str) -> bool {
    is_plan(text) || text.contains("? – ") || text.contains(REQUEST) || text.starts_with("Chosen: ")
}

/// Returns whether a decision is that a plan was approved.
pub(crate) fn is_plan(decision: &str) -> bool {
    decision.starts_with(plans::BEGINS)
}

/// Returns what the user decided in a client's own dialog, from the message with the output of the client's tool.
/// `before` are the messages before it.
pub(crate) fn in_dialog(before: &[Said<'_>], message: &Said<'_>) -> Vec<String> {
    if let Some(decisions) = plans::approved(before, message) {
        return decisions;
    }
    let Some((_, told)) = message.text.split_once(ANSWERED) else { return Vec::new() };
    let topic = topic(before);
    let mut found = Vec::new();
    let mut rest = told;
    // A question, `=`, and the answer are in quotation marks. Between pairs there is a comma.
    while let Some((question, more)) =
        rest.trim_start_matches([',', ' ']).strip_prefix('"').and_then(|rest| rest.split_once("\"=\""))
    {
        let ends = |at: &usize| [", \"", ". ", " ", "\n"].iter().any(|end| more[at + 1..].starts_with(end));
        let end = more.match_indices('"').map(|(at, _)| at).find(ends).unwrap_or(more.len());
        found.extend(decided(question, more[..end].trim_end_matches(['"', '.']), topic.as_deref()));
        rest = &more[(end + 1).min(more.len())..];
    }
    found
}

/// Returns what a person's `message` decides of the questions or the plan of the assistant. `before` are the messages
/// before it. The assistant asked in those from the place `from` on.
pub(crate) fn decisions(before: &[Said<'_>], from: usize, message: &Said<'_>) -> Vec<String> {
    if let Some(decisions) = plans::approved(before, message) {
        return decisions;
    }
    let ((before, asked), reply) = (before.split_at(from), message.text);
    let asked: Vec<&str> =
        asked.iter().rev().filter(|said| said.voice() == Voice::Assistant).map(|said| said.text).collect();
    let answers = lists::answers(reply);
    if answers.len() < 2 {
        let chosen = asked.iter().find_map(|asked| options::chosen(asked, reply));
        return chosen.map(|chosen| about(chosen, topic(before).as_deref())).into_iter().collect();
    }
    let questions = asked.iter().find_map(|asked| lists::questions(asked));
    let Some(questions) = questions else { return Vec::new() };
    if answers.keys().any(|number| !questions.contains_key(number)) {
        return Vec::new();
    }
    let topic = topic(before);
    let pairs = answers.iter().map(|(number, answer)| (&questions[number], answer));
    let pairs = pairs.filter(|(question, _)| is_alone(question));
    pairs.filter_map(|(question, answer)| decided(question, answer, topic.as_deref())).collect()
}

/// Returns whether a question of a list is understandable without what the assistant said around it.
fn is_alone(question: &str) -> bool {
    !(refers(question, POINTS) || labelled(question).0.is_empty() && refers(question, REFERS))
}

/// Returns the label of a question, as in "Storage: which database?", and the question.
fn labelled(question: &str) -> (&str, &str) {
    question.rsplit_once(": ").unwrap_or(("", question))
}

/// Returns the decision that an answer to a question states, if both together are understandable.
fn decided(question: &str, answer: &str, topic: Option<&str>) -> Option<String> {
    let answer = one_line(answer);
    let answer = without_advice(&answer).trim_end_matches(['.', ',']);
    let (said, question) = (words(answer), question.trim_end_matches(':').trim());
    let joined = format!(" {} ", said.join(" "));
    let (label, asked) = labelled(question);
    let is_question = question.ends_with('?');
    // The end of a longer question, as in "in the metadata?".
    let is_cut = label.is_empty()
        && asked.starts_with(char::is_lowercase)
        && words(asked).first().is_some_and(|first| !has(CLOSED, first) && !has(ASKS, first));
    let is_status = label.to_lowercase().starts_with("current")
        || STATUS.iter().any(|begin| words(asked).join(" ").starts_with(begin));
    let is_open = answer.contains('?') || OPEN.iter().any(|phrase| joined.contains(&format!(" {phrase}")));
    let fits = question.len() <= LONGEST && answer.len() <= LONGEST && !question.is_empty();
    let is_bare = said.iter().all(|word| has(BARE, word));
    let says_enough = match (is_bare, is_question) {
        (true, _) => is_question && is_closed(asked),
        (false, true) => true,
        // A label alone, such as `Permissions`, stands for several questions, so "yes" answers none of them.
        (false, false) => {
            let (begins, agrees) = (said.iter().take(3), has("yes no yeah yep ok", &said[0]));
            let points = begins.into_iter().any(|word| has(POINTS, word) || has(REFERS, word));
            !points && said.len() > if agrees { 6 } else { 3 }
        }
    };
    // The letter of an option, whose text is elsewhere.
    let is_letter = said.len() == 1 && said[0].chars().count() == 1 && said[0].is_ascii();
    let joint = if is_question { " – " } else { ": " };
    (fits && says_enough && !is_letter && !is_status && !is_open && !is_cut && !said.is_empty())
        .then(|| about(format!("{question}{joint}{answer}"), topic))
}

/// Returns a chosen option without the assistant's remark that it recommends the option.
fn without_advice(answer: &str) -> &str {
    let remark = answer.rfind('(').filter(|at| answer[at + 1..].to_lowercase().starts_with(RECOMMENDED));
    remark.map_or(answer, |at| answer[..at].trim_end())
}

/// Returns the decision, with the request that led to it unless the decision says what it is about.
fn about(decision: String, topic: Option<&str>) -> String {
    let is_short = decision.split_whitespace().count() < SPEAKS_ALONE;
    match topic.filter(|topic| is_short && stems(topic).intersection(&stems(&decision)).count() < SHARED) {
        Some(topic) => format!("{decision}{REQUEST}{topic})"),
        None => decision,
    }
}

/// Returns the request of a person that led to a question: its first sentence that says what the person wants, or its
/// first sentence.
fn topic(before: &[Said<'_>]) -> Option<String> {
    let persons = before.iter().rev().filter(|said| matches!(said.voice(), Voice::Person(_)));
    let sentence = |said: &Said<'_>| {
        let text = &said.text[..said.text.floor_char_boundary(4 * LONGEST)];
        if lists::answers(text).len() > 1 {
            return None;
        }
        let said = blocks(text).into_iter().filter(Block::is_said);
        let sentences = said.flat_map(|block| blocks::sentences(&block)).map(|sentence| sentence.text);
        let says_something = |text: &String| !is_boilerplate(text) && words(text).len() >= WORDS_OF_REQUEST;
        let sentences: Vec<String> = sentences.filter(says_something).collect();
        let is_wish = |text: &&String| {
            let said = format!(" {} ", words(text).join(" "));
            WISHES.iter().any(|wish| said.contains(&format!(" {wish} ")))
        };
        sentences.iter().find(is_wish).or(sentences.first()).cloned()
    };
    let sentence = persons.take(REQUEST_WITHIN).find_map(sentence)?;
    let sentence = one_line(sentence.trim_end_matches(['.', ':', ',', '!']));
    Some(blocks::shortened(&sentence, TOPIC))
}

/// Returns whether "yes" answers the question completely: it is one question without alternatives, and doesn't ask
/// whether the assistant shall do something next.
fn is_closed(asked: &str) -> bool {
    let all = words(asked);
    let joined = format!(" {} ", all.join(" "));
    let is_next_step = all.get(1).is_some_and(|word| has("i we", word)) || joined.contains(" me to ");
    let begins = all.first().is_some_and(|word| has(CLOSED, word));
    begins && !is_next_step && !joined.contains(" or ") && asked.matches('?').count() == 1
}

/// Returns whether a text has one of the words `list`.
fn refers(text: &str, list: &str) -> bool {
    words(text).iter().any(|word| has(list, word))
}
