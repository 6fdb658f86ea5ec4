//! Recognises the function of a sentence in a conversation by its first words: whether the sentence states a choice,
//! reports a result, or announces a step. The words are English. Sentences of other languages count as plain
//! statements.

use super::reading::Sentence;
use tiro_text::blocks::Form;

/// Words that show that a sentence states a request or a decision.
const CHOICES: &str = "let's lets we'll i'll should shouldn't must mustn't instead don't dont never always prefer keep \
    drop remove use switch decide decided agree agreed chose only rename move make add want wants need needs require \
    deadline budget limit";

/// The beginnings of sentences that report an action or a finding.
const REPORTS: [&str; 46] = [
    "done",
    "fixed",
    "added",
    "updated",
    "created",
    "implemented",
    "removed",
    "renamed",
    "moved",
    "changed",
    "replaced",
    "refactored",
    "committed",
    "pushed",
    "merged",
    "verified",
    "confirmed",
    "all tests",
    "the tests",
    "tests pass",
    "the test",
    "i've",
    "i have",
    "i added",
    "i updated",
    "i fixed",
    "i created",
    "i removed",
    "i changed",
    "i moved",
    "i found",
    "we decided",
    "it now",
    "this now",
    "successfully",
    "the issue",
    "the problem",
    "the error",
    "the bug",
    "the cause",
    "the reason",
    "the root cause",
    "this means",
    "so ",
    "as a result",
    "therefore",
];

/// Words that report a new state, anywhere in a sentence.
const STATES: [&str; 16] = [
    " now ",
    " is now",
    " are now",
    " has been ",
    " have been ",
    " will now",
    " no longer ",
    " successfully",
    " passes",
    " passed",
    " fails because",
    " failed because",
    " instead of ",
    " was caused by ",
    " pass.",
    " pass now",
];

/// The beginnings of sentences in which the assistant announces its next step.
const ANNOUNCES: [&str; 37] = [
    "let me",
    "let's",
    "lets",
    "i'll",
    "i will",
    "i'm going to",
    "i am going to",
    "i need to",
    "now let me",
    "now let's",
    "now i'll",
    "now i will",
    "now i need",
    "first, i",
    "next, i",
    "next i",
    "we'll need",
    "we need to",
    "read file",
    "searched",
    "listed directory",
    "here",
    "you can use",
    "to do this",
    "ah",
    "oh",
    "first, let",
    "i see",
    "i understand",
    "now that",
    "i have enough",
    "now i have",
    "i now have",
    "i have a",
    "i've got",
    "good,",
    "perfect",
];

/// Verbs with which an assistant instructs the user.
const INSTRUCTS: &str = "add adjust analyze apply ask assume avoid begin build calculate carefully check choose compare \
    configure consider continue create customize define describe determine develop discuss document download draw edit \
    emphasize enable ensure establish evaluate explain explore find focus follow gather give go highlight identify imagine \
    implement import include incorporate initialize install keep learn leverage list look maintain make measure mention \
    monitor navigate note obtain open organize outline plan practice prepare prioritize provide re-run read refactor \
    reflect regularly remember replace replicate research review run schedule seek select send set share show solve start \
    state stay store submit suppose tailor take test think track try understand update use utilize validate verify visit \
    visualize write";

/// Words that, at the beginning of a sentence, refer to something that was said before.
const LEANS: [&str; 38] = [
    "it", "its", "this", "that", "these", "those", "they", "no", "yes", "ok", "okay", "why", "did", "didn't",
    "didnt", "what", "is", "are", "does", "do", "was", "were", "also", "but", "and", "so", "then", "hmm",
    "instead", "continue", "in", "for", "after", "if", "when", "before", "because", "while",
];

/// Verbs at the beginning of a request. A request with such a verb only prepares the work, or asks about it.
const PREPARES: &str =
    "read look see check learn review explain tell show remember note continue proceed retry";

/// Words that may stand before the verb of a request.
const BEFORE_VERB: &str = "ok okay now also then please can could would will you let's lets just first go ahead and so great carefully     i want need to we should let me us";

/// Words that introduce the purpose of a request that begins with a preparation.
const FOR: [&str; 6] = [" then ", " and now ", " so that ", " in order to ", " and make ", " and let's "];

/// A request to change a document only tidies up if it has at most this many words. Arbitrary: a longer request states
/// its purpose.
const CHORE: usize = 9;

/// Returns whether a request only prepares the work or tidies up after it, such as "read the README" and "update
/// docs/plan.md".
pub(super) fn only_prepares(text: &str) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let verb = words.find(|word| !BEFORE_VERB.split_whitespace().any(|before| before == *word));
    let prepares = verb.is_none_or(|verb| PREPARES.split_whitespace().any(|each| each == verb));
    let mut all = text.split_whitespace();
    let is_chore = all.clone().count() <= CHORE
        && all.any(|word| word.trim_end_matches(['.', ',', '!']).to_ascii_lowercase().ends_with(".md"))
        && matches!(verb, Some("update" | "edit" | "commit" | "fix"));
    is_chore || (prepares && !FOR.iter().any(|after| lower.contains(after)))
}

/// Returns the verbs of requests. These verbs say nothing about the topic of a request.
pub(super) fn verbs_of_requests() -> impl Iterator<Item = &'static str> {
    PREPARES.split_whitespace().chain(INSTRUCTS.split_whitespace())
}

/// Returns whether a sentence can be understood without the sentences before it.
pub(super) fn stands_alone(text: &str) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    let first = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').find(|word| !word.is_empty());
    let last = lower.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty());
    first.is_none_or(|first| !LEANS.contains(&first)) && !matches!(last, Some("this" | "that" | "it"))
}

/// Returns whether a sentence of the user states a choice, a wish or a rule.
pub(super) fn chooses(sentence: &Sentence) -> bool {
    let lower = sentence.text.to_lowercase().replace('’', "'");
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    sentence.decides || words.any(|word| CHOICES.split_whitespace().any(|choice| choice == word))
}

/// Returns whether a sentence of the assistant reports an action or a finding.
pub(super) fn reports(sentence: &Sentence) -> bool {
    let lower = format!(" {} ", sentence.text.to_lowercase().replace('’', "'"));
    let begins = |start: &str| {
        let rest = lower.trim_start().strip_prefix(start);
        rest.is_some_and(|rest| start.ends_with(' ') || !rest.starts_with(char::is_alphabetic))
    };
    sentence.form == Form::Statement
        && !announces(sentence)
        && (REPORTS.iter().any(|start| begins(start)) || STATES.iter().any(|state| lower.contains(state)))
}

/// Returns whether a sentence of the assistant announces its next step or tells the user what to do.
pub(super) fn announces(sentence: &Sentence) -> bool {
    let lower = sentence.text.to_lowercase().replace('’', "'");
    let begins =
        |start: &str| lower.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphabetic));
    lower.contains(", i'll ")
        || ANNOUNCES.iter().any(|start| begins(start))
        || INSTRUCTS.split_whitespace().any(begins)
}
