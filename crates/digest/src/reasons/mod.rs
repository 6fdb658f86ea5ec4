//! Finds the sentences that say why lines were written: in the conversation in which they were written, and in the
//! message of their commit. The sentences are quoted whole.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::statements::own_words::{is_prose, own_words};
use crate::statements::replies::{accepts, confirms};
use crate::statements::stems;
use tiro_base::memory::Role;
use tiro_text::blocks::{Block, Form, Kind, Sentence, blocks, is_boilerplate, quotable};
use tiro_text::words::query::terms;

/// How many messages of the user are read, from the last one back. Arbitrary: a request is often followed by a few
/// words such as "go on".
const REQUESTS: usize = 4;

/// A request of fewer stems than this says too little to be quoted alone. Arbitrary.
const FEW_STEMS: usize = 2;

/// A request of fewer stems than this, none of which is in the lines, is not quoted if a request before it says more.
/// Arbitrary.
const FEW_STEMS_ALONE: usize = 5;

/// A request of fewer stems than this, none of which is in the lines, is quoted with the request before it. Arbitrary.
const ENOUGH_STEMS: usize = 10;

/// A request with at least this many items is a list. Arbitrary.
const ITEMS: usize = 3;

/// A text of more bytes than this is not quoted whole: the limit of [`quotable`].
const LONGEST_SENTENCE: usize = 500;

/// How many characters are quoted of a request of several sentences. Arbitrary: three lines.
const LONGEST_REQUEST: usize = 300;

/// Words that connect a sentence with its reason.
const CONNECTIVES: [&str; 18] = [
    "because",
    "since",
    "so that",
    "so we",
    "so it",
    "to avoid",
    "to prevent",
    "to keep",
    "to make sure",
    "otherwise",
    "in order to",
    "instead of",
    "rather than",
    "due to",
    "root cause",
    "the problem is",
    "the issue is",
    "that's why",
];

/// If this many bytes lie between two sentences, something was left out between them. Arbitrary: more than marks of lists
/// and of paragraphs.
const GAP: usize = 16;

/// The beginnings of sentences with which an assistant ends its answer.
const FAREWELLS: [&str; 3] = ["let me know", "feel free", "if you"];

/// How many lines at the end of an answer are searched for questions to the user. Arbitrary.
const ASKED_LAST: usize = 16;

/// Marks with which a question ends.
const QUESTION_MARKS: [char; 3] = ['?', '？', '؟'];

/// Words of a sentence that proposes something. A sentence without them reports what was done.
const PROPOSES: [&str; 22] = [
    "i could",
    "we could",
    "i can",
    "we can",
    "should i",
    "should we",
    "i should",
    "we should",
    "shall",
    "would you",
    "want me",
    "do you want",
    "let's",
    "i'll",
    "i will",
    "we'll",
    "we will",
    "i'd",
    "i would",
    "suggest",
    "recommend",
    "propose",
];

/// A message before lines were written.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Who said it.
    pub role: Role,
    /// The text.
    pub text: &'a str,
}

/// What a quoted sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The user asked for the change.
    Asked,
    /// The assistant proposed the change, and the user accepted it.
    Accepted,
    /// The assistant gave the reason, or said what comes next, right before it made the change.
    Decided,
}

/// A sentence of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// What it is.
    pub part: Part,
    /// The index of the message.
    pub message: usize,
    /// The bytes of the message from which the sentence was read.
    pub range: Range<usize>,
    /// The sentence, or several, without markup.
    pub text: String,
}

/// Returns the stems of the words in lines of code, in the names of their file, and in other texts about them.
pub fn words_of(texts: &[&str]) -> BTreeSet<String> {
    let words = texts.iter().flat_map(|text| text.lines()).flat_map(terms);
    words.flat_map(|word| stems(&word)).collect()
}

/// Returns the sentences that say why lines were written: first what the user asked for or accepted, then the reason
/// that the assistant gave. `messages` are those before the lines were written, in order, and `words` are the
/// [words](words_of) of the lines. The result is empty if nothing says why.
pub fn in_conversation(messages: &[Said<'_>], words: &BTreeSet<String>) -> Vec<Quote> {
    let requests = (0..messages.len()).rev().filter(|place| messages[*place].role == Role::User);
    let mut quotes: Vec<Quote> = Vec::new();
    let mut last = messages.len();
    for request in requests.take(REQUESTS) {
        let text = messages[request].text;
        last = last.min(request);
        let is_reply = accepts(text) || confirms(text);
        let says = |text: &str| stems(text).len();
        let is_about = |text: &str| shared(text, words) > 0;
        let says_little = |text: &str| says(text) < FEW_STEMS_ALONE && !is_about(text);
        let own = asked(text, words);
        let is_bare = own.as_ref().is_none_or(|(_, text)| says(text) < FEW_STEMS_ALONE);
        let is_first = quotes.first().is_none_or(|quote| quote.part != Part::Accepted);
        let is_yes = is_bare && accepts(text);
        let proposed = (is_reply && is_first).then(|| proposal(messages, request, words, is_yes)).flatten();
        if let Some(proposed) = proposed {
            quotes.retain(|kept| !says_little(&kept.text));
            let own = own.filter(|_| !is_bare);
            let own = own.map(|(range, text)| Quote { part: Part::Asked, message: request, range, text });
            quotes.splice(0..0, [Some(proposed), own].into_iter().flatten());
            continue;
        }
        let Some((range, text)) = own else { continue };
        // An answer to a question of the assistant is understood with what was asked before.
        let enough = if is_about(&text) { FEW_STEMS_ALONE } else { ENOUGH_STEMS };
        let is_enough = says(&text) >= enough && !is_answer(messages, request, &text);
        let asked = Quote { part: Part::Asked, message: request, range, text };
        match quotes.first().map(|kept| kept.text.as_str()) {
            // The request to which the proposal answers.
            Some(_) if quotes[0].part == Part::Accepted => {
                if says_little(&asked.text) || asked.text.ends_with(QUESTION_MARKS) {
                    continue;
                }
                quotes.insert(0, asked);
                break;
            }
            // "Carry on with the next steps" says nothing without the request before it.
            Some(kept) if says_little(kept) => {
                if !says_little(&asked.text) || says(&asked.text) > says(kept) {
                    quotes = vec![asked];
                }
            }
            // "Write the docs for it, too" is about the lines, but only the request before it says what "it" is.
            Some(kept) => {
                let is_answer = is_answer(messages, quotes[0].message, kept);
                let is_vague = !is_about(kept) || refers_back(kept) || is_answer;
                let says_more = says(&asked.text) >= FEW_STEMS_ALONE && is_vague;
                if is_about(&asked.text) || says_more {
                    quotes.insert(0, asked);
                    break;
                }
            }
            None => quotes.push(asked),
        }
        if is_enough {
            break;
        }
    }
    let mut answers = (last..messages.len()).rev().filter(|place| messages[*place].role == Role::Assistant);
    let decided = answers.clone().find_map(|place| decision(messages[place].text, place, words));
    // A request such as "implement the plan" says nothing, but the assistant often says which part of it comes next.
    let said = |place: usize| announcement(messages[place].text, place, words);
    let is_vague = quotes.iter().all(|quote| quote.part == Part::Accepted && shared(&quote.text, words) == 0);
    quotes.extend(decided.or_else(|| is_vague.then(|| answers.find_map(said)).flatten()));
    quotes
}

/// Returns what a request says about the lines: the sentence about them with those around it, or its beginning.
fn asked(request: &str, words: &BTreeSet<String>) -> Option<(Range<usize>, String)> {
    let own = own_words(request).into_iter().map(|own| as_written(request, own));
    let mut own: Vec<Sentence> = own.collect();
    let is_list = own.iter().filter(|sentence| sentence.is_item).count() >= ITEMS;
    own.retain(says_something);
    if is_list {
        // A list asks for different things, so each sentence must be about the lines.
        own.retain(|sentence| shared(&sentence.text, words) > usize::from(sentence.is_item));
    }
    match best(&own, words) {
        Some(best) if is_list => Some((own[best].range.clone(), own[best].text.clone())),
        Some(best) => Some(around(&own, best)),
        None => beginning(request, is_list),
    }
}

/// Returns the sentence at `place` with those around it, as many as fit: the first sentence of a request often says what
/// is wrong, and the next one what to do.
fn around(own: &[Sentence], place: usize) -> (Range<usize>, String) {
    let size = |at: usize| own.get(at).map_or(usize::MAX, |sentence| sentence.text.chars().count() + 1);
    let (mut from, mut to) = (place, place + 1);
    let mut left = LONGEST_REQUEST.saturating_sub(size(place));
    loop {
        let quoted = to - from;
        if from > 0 && size(from - 1) <= left {
            from -= 1;
            left -= size(from);
        }
        if size(to) <= left {
            left -= size(to);
            to += 1;
        }
        if to - from == quoted {
            break;
        }
    }
    let (mut text, mut last) = (String::new(), None);
    for sentence in &own[from..to] {
        let is_gap = last.is_some_and(|last: usize| sentence.range.start > last + GAP);
        let joint = match text.ends_with(char::is_alphanumeric) {
            _ if is_gap => " … ",
            true => " · ",
            false => " ",
        };
        text += if text.is_empty() { "" } else { joint };
        text += &sentence.text;
        last = Some(sentence.range.end);
    }
    (own[from].range.start..own[to - 1].range.end, text)
}

/// Returns whether a request names something by a pronoun, so that it can't be understood alone.
fn refers_back(request: &str) -> bool {
    let lower = request.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ["it", "its", "this", "that", "them", "these", "those", "they"].contains(&word))
}

/// Returns how many of the [words](words_of) of some lines a sentence has.
pub fn shared(sentence: &str, words: &BTreeSet<String>) -> usize {
    stems(sentence).intersection(words).count()
}

/// Returns the sentence of a commit's message that says why, after the subject. An item of a list must be about lines
/// with the [words](words_of) `words`, because a commit often lists what it does elsewhere. Words of the subject are
/// about all of the commit, so they don't count.
pub fn in_commit(message: &str, words: &BTreeSet<String>) -> Option<Sentence> {
    let (subject, body) = message.split_once('\n')?;
    let start = subject.len() + 1;
    let words = words - &words_of(&[subject]);
    let is_about = |sentence: &Sentence| !sentence.is_item || shared(&sentence.text, &words) > 1;
    let mut said = quotable(body).into_iter().filter(|said| gives_reason(said) && is_prose(&said.text));
    let found = said.find(is_about)?;
    Some(Sentence { range: start + found.range.start..start + found.range.end, ..found })
}

/// Returns whether a sentence may say why.
fn says_something(sentence: &Sentence) -> bool {
    sentence.form != Form::Aside && is_prose(&sentence.text) && !is_boilerplate(&sentence.text)
}

/// Returns the place of the sentence that is about the lines, or else of the one that says most.
fn best(said: &[Sentence], words: &BTreeSet<String>) -> Option<usize> {
    let rated = said.iter().enumerate().filter_map(|(place, sentence)| {
        let stems = stems(&sentence.text);
        let shared = stems.intersection(words).count();
        let says = stems.len().min(12);
        (says >= FEW_STEMS).then_some((shared, connects(&sentence.text), says, Reverse(place)))
    });
    rated.max().map(|(.., Reverse(place))| place)
}

/// Returns a sentence as its message has it. Own words may name the first error of a log after a sentence, which nobody
/// said.
fn as_written(message: &str, sentence: Sentence) -> Sentence {
    let written = message.get(sentence.range.clone()).unwrap_or_default();
    let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = written.trim_end_matches(['.', ':', ' ']);
    let has_error = !head.is_empty() && sentence.text.len() > written.len();
    match sentence.text.strip_prefix(head).is_some_and(|rest| has_error && rest.starts_with(": ")) {
        true => Sentence { text: written, ..sentence },
        false => sentence,
    }
}

/// Returns the beginning of a request that is a list, or one long text without full stops.
fn beginning(request: &str, is_list: bool) -> Option<(Range<usize>, String)> {
    let mut said = blocks(request).into_iter().filter(|block| block.is_said());
    let (range, text) = if is_list {
        let all: Vec<_> = said.collect();
        let range = all.first()?.range.start..all.last()?.range.end;
        (range, all.iter().map(|block| block.text.trim()).collect::<Vec<_>>().join(" · "))
    } else {
        let block = said.find(|block| is_prose(&block.text))?;
        (block.range, block.text)
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.char_indices().nth(LONGEST_REQUEST).map_or(text.len(), |(end, _)| end);
    let cut = &text[..end];
    if is_list && cut.len() == text.len() {
        return Some((range, text));
    }
    let end =
        cut.rfind(' ').filter(|_| cut.len() < text.len() && (is_list || text.len() > LONGEST_SENTENCE))?;
    Some((range, format!("{} …", &cut[..end])))
}

/// Returns whether a message of the user answers a question of the assistant: the message before it has several questions,
/// or ends with one, and the answer is short.
fn is_answer(messages: &[Said<'_>], reply: usize, answer: &str) -> bool {
    let before = messages[..reply].iter().rfind(|said| said.role != Role::Tool);
    let Some(before) = before.filter(|said| said.role == Role::Assistant) else { return false };
    let asks = |line: &&str| line.trim_end_matches(['*', '_', ' ']).ends_with(QUESTION_MARKS);
    let mut lines = before.text.lines().rev().filter(|line| !line.trim().is_empty()).take(ASKED_LAST);
    let ends_with_one = lines.clone().next().is_some_and(|line| asks(&line));
    lines.by_ref().filter(asks).nth(1).is_some() || ends_with_one && stems(answer).len() < ENOUGH_STEMS
}

/// Returns the sentence that the user accepted: one of the assistant's last message before the reply, which proposes
/// something. If the reply is a bare yes, the last proposal counts also if it has no words of the lines.
fn proposal(messages: &[Said<'_>], reply: usize, words: &BTreeSet<String>, is_yes: bool) -> Option<Quote> {
    let place = (0..reply).rev().find(|place| messages[*place].role != Role::Tool)?;
    if messages[place].role != Role::Assistant {
        return None;
    }
    let rated = quotable(messages[place].text).into_iter().filter_map(|sentence| {
        let about = shared(&sentence.text, words);
        let proposes =
            has_phrase(&sentence.text, &PROPOSES) && sentence.form != Form::Aside && is_prose(&sentence.text);
        let is_farewell = FAREWELLS.iter().any(|words| sentence.text.to_lowercase().starts_with(words));
        (proposes && !is_farewell && (is_yes || about > 1))
            .then_some((if about > 1 { about } else { 0 }, sentence))
    });
    let Sentence { text, range, .. } = rated.max_by_key(|(about, _)| *about)?.1;
    let item = item_about(messages[place].text, words).filter(|(.., item)| is_yes && *item != text);
    let (range, text) = match item {
        Some((of_item, item)) => {
            (range.start.min(of_item.start)..range.end.max(of_item.end), format!("{item} … {text}"))
        }
        None => (range, text),
    };
    Some(Quote { part: Part::Accepted, message: place, range, text })
}

/// Returns the item of a list that has more words of the lines than any other.
fn item_about(text: &str, words: &BTreeSet<String>) -> Option<(Range<usize>, String)> {
    let items = blocks(text).into_iter().filter(|block| block.kind == Kind::Item && block.is_said());
    let mut rated: Vec<(usize, Block)> =
        items.map(|block| (shared(&block.text, words), block)).filter(|(about, _)| *about > 0).collect();
    rated.sort_by_key(|(about, _)| Reverse(*about));
    let is_best = rated.get(1).is_none_or(|(second, _)| *second < rated[0].0);
    let (_, best) = rated.into_iter().next().filter(|_| is_best)?;
    let is_short = best.text.chars().count() <= LONGEST_REQUEST;
    is_short.then(|| (best.range, best.text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Returns the last sentence of an answer that gives a reason and is about the lines.
fn decision(answer: &str, message: usize, words: &BTreeSet<String>) -> Option<Quote> {
    let said = quotable(answer).into_iter().rev();
    let about = |sentence: &Sentence| shared(&sentence.text, words) > 1;
    let Sentence { text, range, .. } =
        said.filter(|sentence| gives_reason(sentence) && is_prose(&sentence.text)).find(about)?;
    Some(Quote { part: Part::Decided, message, range, text })
}

/// Returns the last paragraph of an answer if it is about the lines.
fn announcement(answer: &str, message: usize, words: &BTreeSet<String>) -> Option<Quote> {
    let block = blocks(answer).into_iter().rev().find(|block| block.is_said())?;
    let text = block.text.trim().trim_end_matches(':').to_owned();
    let is_short = text.chars().count() <= LONGEST_REQUEST;
    let is_quoted = is_short && is_prose(&text) && shared(&text, words) > 0;
    is_quoted.then_some(Quote { part: Part::Decided, message, range: block.range, text })
}

fn gives_reason(sentence: &Sentence) -> bool {
    sentence.form == Form::Statement && connects(&sentence.text)
}

fn connects(text: &str) -> bool {
    has_phrase(text, &CONNECTIVES)
}

fn has_phrase(text: &str, phrases: &[&str]) -> bool {
    let lower = format!(" {} ", text.to_lowercase().replace('’', "'"));
    phrases.iter().any(|phrase| lower.contains(&format!(" {phrase} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Role = Role::User;
    const ASSISTANT: Role = Role::Assistant;

    fn found(messages: &[(Role, &str)], lines: &str) -> Vec<(Part, usize, String)> {
        let messages: Vec<Said<'_>> =
            messages.iter().map(|(role, text)| Said { role: *role, text }).collect();
        let quotes = in_conversation(&messages, &words_of(&[lines]));
        quotes.into_iter().map(|quote| (quote.part, quote.message, quote.text)).collect()
    }

    #[test]
    fn the_request_about_the_lines_and_the_reason_of_the_assistant_are_quoted() {
        let lines = "let delay = retry_delay(attempt);\nsleep(delay);";
        let messages = [
            (
                USER,
                "Rename the crate. The API answers 429 if two workers retry at once, so wait longer each time.",
            ),
            (
                ASSISTANT,
                "I looked at the client. The retry delay is fixed because the attempt is not counted. Let me fix it.",
            ),
        ];
        assert_eq!(
            found(&messages, lines),
            [
                (
                    Part::Asked,
                    0,
                    "Rename the crate. The API answers 429 if two workers retry at once, so wait longer each time.".to_owned()
                ),
                (Part::Decided, 1, "The retry delay is fixed because the attempt is not counted.".to_owned()),
            ]
        );
    }

    #[test]
    fn what_the_user_accepted_is_the_proposal_and_a_short_reply_leads_to_the_request_before() {
        let lines = "const RETRIES: u32 = 5;";
        let messages = [
            (USER, "The upload fails on a slow network."),
            (ASSISTANT, "I could raise the number of retries to five. Shall I?"),
            (USER, "yes please"),
        ];
        assert_eq!(
            found(&messages, "let mut upload = slow(network);"),
            [
                (Part::Asked, 0, "The upload fails on a slow network.".to_owned()),
                (Part::Accepted, 1, "I could raise the number of retries to five.".to_owned())
            ]
        );
        assert_eq!(
            found(&messages, &format!("{lines} // number of retries")),
            [(Part::Accepted, 1, "I could raise the number of retries to five.".to_owned())]
        );
        let list = "Please go ahead.\n\n1. New pages\n   * `faq.html`: answers of the support\n2. Old pages\n   * `index.html`: no numbers of users\n   * `upload.html`: the slow network\n";
        assert_eq!(found(&[(USER, list)], "slow(network)")[0].2, "upload.html: the slow network");
        let whole = "Please go ahead. · New pages · faq.html: answers of the support · Old pages · index.html: no numbers of users · upload.html: the slow network";
        assert_eq!(found(&[(USER, list)], "let index = pages();")[0].2, whole);
        assert_eq!(found(&[(USER, "go on"), (ASSISTANT, "Done.")], lines), []);
        let next = [messages[0], (ASSISTANT, "Done."), (USER, "carry on with the steps")];
        assert_eq!(found(&next, lines)[0].2, "The upload fails on a slow network.");
        assert_eq!(found(&next[1..], lines)[0].2, "carry on with the steps");
        let asked = [
            (USER, "Add a footer component with a column for each group of links."),
            (ASSISTANT, "Done."),
            (USER, "write the docs for it too"),
        ];
        let said: Vec<String> = found(&asked, "docs").into_iter().map(|(.., text)| text).collect();
        assert_eq!(said, [asked[0].1, asked[2].1]);
        let long = "raise the number of retries and then do this and that ".repeat(12);
        let [(Part::Asked, 0, text)] = &found(&[(USER, &long)], lines)[..] else { panic!() };
        assert!(text.len() <= LONGEST_REQUEST + 4 && text.ends_with(" …"), "{text}");
    }

    #[test]
    fn of_a_plan_that_is_carried_out_the_part_that_comes_next_is_quoted() {
        let mut messages = vec![
            (USER, "Implement the plan as specified, it is attached for your reference."),
            (ASSISTANT, "I read the plan.\n\nNow let me create the upload fixtures:"),
            (ASSISTANT, "Done."),
        ];
        let said = "Now let me create the upload fixtures".to_owned();
        assert_eq!(found(&messages, "upload()"), [(Part::Decided, 1, said)]);
        assert_eq!(found(&messages, "retry()"), []);
        messages[0].1 = "The upload fails on a slow network.";
        assert_eq!(found(&messages, "upload()").len(), 1);
    }

    #[test]
    fn a_bare_yes_leads_to_the_last_proposal_and_what_the_assistant_announced() {
        let messages = [
            (USER, "can the tests fail, or are they just pretend tests?"),
            (
                ASSISTANT,
                "They can.\n\n- **Phase 3: API**, done\n- **Phase 4: dialogs**, not begun\n\n\
                 Would you like me to continue with the other phases, or add a database?",
            ),
            (USER, "approved, please continue"),
            (ASSISTANT, "I continue with the tests of the dialog."),
        ];
        let told = found(&messages, "dialog.open();");
        let parts: Vec<_> = told.iter().map(|(part, place, _)| (*part, *place)).collect();
        assert_eq!(parts, [(Part::Accepted, 1)], "{told:?}");
        let accepted = "Phase 4: dialogs, not begun … Would you like me to continue with the other phases, or add a database?";
        assert_eq!(told[0].2, accepted);
        let told = found(&messages, "retry();");
        assert_eq!(told.len(), 1, "{told:?}");
    }

    #[test]
    fn an_answer_to_a_question_comes_with_what_was_asked() {
        let messages = [
            (USER, "The list of orders is too long, the guests scroll for minutes."),
            (ASSISTANT, "A) pages\nB) a filter\nC) both\n\nWhich one?"),
            (USER, "option C for all orders please"),
        ];
        let texts = |messages: &[(Role, &str)]| -> Vec<String> {
            found(messages, "orders.filter(paid)").into_iter().map(|(.., text)| text).collect()
        };
        assert_eq!(texts(&messages), [messages[0].1, messages[2].1]);
        let long = "1. the newest orders come first, as the guests expect it\n2. only orders that are paid, please, and no drafts";
        let several =
            [messages[0], (ASSISTANT, "1. Which orders come first?\n2. Which ones are shown?"), (USER, long)];
        assert_eq!(texts(&several).len(), 2);
        let anew = [
            messages[0],
            messages[1],
            (
                USER,
                "Forget that, show the orders of today in a new window with a large font for the kitchen staff.",
            ),
        ];
        assert_eq!(texts(&anew), [anew[2].1]);
    }

    #[test]
    fn a_report_of_what_was_done_is_no_proposal() {
        let messages = [
            (USER, "The upload of large files fails on a slow network in the train."),
            (
                ASSISTANT,
                "The upload now retries five times on a slow network. Shall I raise the number of retries?",
            ),
            (USER, "yes"),
        ];
        let texts: Vec<String> = found(&messages, "const RETRIES: u32 = 5; // number of retries")
            .into_iter()
            .map(|(.., text)| text)
            .collect();
        assert_eq!(texts, [messages[0].1, "Shall I raise the number of retries?"]);
    }

    #[test]
    fn an_error_of_a_log_is_not_quoted_as_the_users_words() {
        let request = "The upload fails again after the last change.\n\n```\nTypeError: fetch failed\n```";
        assert_eq!(
            found(&[(USER, request)], "upload()")[0].2,
            "The upload fails again after the last change."
        );
        let request = "Please rename `upload` to **send** everywhere in the client.";
        assert_eq!(
            found(&[(USER, request)], "upload()")[0].2,
            "Please rename upload to send everywhere in the client."
        );
        let request =
            "@src/routes/docs.$.tsx:93 factor this out into the upload components and change useLocation";
        assert_eq!(found(&[(USER, request)], "upload()")[0].2, request);
        let request = "We are going to create a component for uploads\n\nIt should:\n\n- @src/upload.$.tsx adapt the styles (h1, h2) of uploads\n- need no other changes";
        assert_eq!(
            found(&[(USER, request)], "const styles = create();")[0].2,
            "We are going to create a component for uploads · It should: @src/upload.$.tsx adapt the styles (h1, h2) of uploads; need no other changes"
        );
    }

    #[test]
    fn a_commit_says_why_only_after_its_subject_and_with_a_reason() {
        let words = words_of(&["fn retry_delay()"]);
        let why = |message: &str| in_commit(message, &words).map(|sentence| sentence.text);
        assert_eq!(why("Retry longer because of 429"), None);
        assert_eq!(why("Retry longer\n\nAdds a delay.\n\nSigned-off-by: A"), None);
        let message = "Retry longer\n\nAdds a delay. Two workers got 429 because they retried at once.";
        assert_eq!(why(message).unwrap(), "Two workers got 429 because they retried at once.");
        let list = "Be kinder\n\n- Says what to avoid, because the guide was unclear\n- Names the retry delay, because it is needed";
        assert_eq!(why(list).unwrap(), "Names the retry delay, because it is needed");
        assert_eq!(
            why(&list.replace("Be kinder", "Improve the retry delay")),
            None,
            "every item is about it"
        );
        let range = in_commit(message, &words).unwrap().range;
        assert_eq!(&message[range], "Two workers got 429 because they retried at once.");
    }
}
