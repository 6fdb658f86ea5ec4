//! Recognises from a question's words which kind of answer is wanted. The functions here are pure.
//!
//! The words are English, like the stopwords, with the most common words of a few other languages. If a question
//! contains none of these words, it is answered like any other question.

use tiro_base::times::{MONTHS, WEEKDAYS};
use tiro_text::words::is_cjk;

/// Phrases of a question about statements of the assistant.
const ANSWERS: &[&str] = &[
    "did you",
    "have you",
    "had you",
    "you said",
    "you told",
    "you suggested",
    "you recommended",
    "you explained",
    "you proposed",
    "you mentioned",
    "you gave",
    "your advice",
    "your answer",
    "your suggestion",
    "your suggestions",
    "your recommendation",
    "your recommendations",
    "your explanation",
    "hast du",
    "haben sie",
    "as tu",
    "avez vous",
];

/// Phrases of a question about an order or a beginning in time.
const ORDERS: &[&str] = &[
    "in which order",
    "in what order",
    "what order",
    "the order in which",
    "order of events",
    "in order",
    "chronological",
    "chronologically",
    "chronology",
    "timeline",
    "sequence of",
    "in sequence",
    "since when",
    "at first",
    "which came first",
    "first time",
    "evolved over time",
    "reihenfolge",
    "seit wann",
    "dans quel ordre",
    "depuis quand",
    "en que orden",
    "en qué orden",
    "desde cuando",
    "desde cuándo",
];

/// Phrases of a question about much of the conversation, not about a single thing.
const OVERVIEWS: &[&str] = &[
    "summarize",
    "summarise",
    "summary",
    "overview",
    "recap",
    "sum up",
    "everything we",
    "everything i",
    "how far have",
    "what have we done",
    "zusammenfassung",
    "überblick",
    "résumé de",
    "resumen de",
];

/// Phrases of a question about the latest sessions that doesn't say how many.
const LATEST: &[&str] = &[
    "last session",
    "last sessions",
    "latest session",
    "latest sessions",
    "recent sessions",
    "previous session",
    "previous sessions",
    "last conversations",
    "recent conversations",
    "where did we leave off",
    "where we left off",
    "where i left off",
    "what were we doing",
    "what was i working on",
    "wo waren wir",
    "où en étions nous",
    "上次",
    "前回",
    "what did we do last time",
    "what have we been working on",
    "what did we work on",
    "letzten sitzungen",
];

/// Words for a day in a question, and how many days before today it is.
const DAYS: &[(&str, i64)] = &[
    ("today", 0),
    ("yesterday", 1),
    ("heute", 0),
    ("gestern", 1),
    ("aujourd hui", 0),
    ("hier", 1),
    ("hoy", 0),
    ("ayer", 1),
    ("oggi", 0),
    ("ieri", 1),
    ("今天", 0),
    ("昨天", 1),
    ("今日", 0),
    ("昨日", 1),
];

/// The number of sessions that are listed if a question about the latest sessions doesn't say how many.
const FEW_SESSIONS: usize = 5;

/// Returns whether the question is about statements of the assistant: `what did you recommend?`.
pub fn asks_for_answers(question: &str) -> bool {
    has_any(question, ANSWERS)
}

/// Returns whether the question is about the order of events, or about when something began.
pub fn asks_for_order(question: &str) -> bool {
    let words = words(question);
    // `order` alone often means a purchase.
    let begins = words.starts_with(" when did ")
        && [" first ", " start ", " begin "].iter().any(|word| words.contains(word));
    begins || has_any(question, ORDERS)
}

/// Returns whether the question is about much of the conversation: `give me a summary of the project`.
pub fn asks_for_overview(question: &str) -> bool {
    has_any(question, OVERVIEWS)
}

/// Returns which day the question is about, as the number of days before today; `None` if it names no day. A question
/// about a change since a day, such as "what changed since yesterday", is about no single day.
pub fn asks_for_day(question: &str) -> Option<i64> {
    let is_since = has_any(question, &["since", "before", "until", "seit", "vor", "bis", "depuis", "desde"]);
    let day = DAYS.iter().find(|(word, _)| has_any(question, &[word]) || has_unspaced(question, word));
    day.map(|(_, days)| *days).filter(|_| !is_since)
}

/// Returns how many of the latest sessions the question is about; `None` if it isn't about the latest sessions.
pub fn asks_for_sessions(question: &str) -> Option<usize> {
    let words = words(question);
    let list: Vec<&str> = words.split_whitespace().collect();
    let numbered = list.windows(3).find_map(|each| {
        let is_last = matches!(each[0], "last" | "latest" | "recent" | "previous" | "past");
        let is_session = matches!(each[2], "session" | "sessions" | "conversations" | "chats");
        if is_last && is_session { number(each[1]) } else { None }
    });
    let one = has_any(
        question,
        &["last session", "latest session", "previous session", "last time", "left off", "leave off"],
    );
    let is_latest = has_any(question, LATEST) || LATEST.iter().any(|phrase| has_unspaced(question, phrase));
    numbered.or_else(|| is_latest.then_some(if one { 1 } else { FEW_SESSIONS }))
}

/// Returns whether the question asks for much of what is stored, not for a single thing.
pub fn asks_for_much(question: &str) -> bool {
    let is_of_time = asks_for_sessions(question).is_some() || asks_for_day(question).is_some();
    is_of_time || asks_for_order(question) || asks_for_overview(question)
}

/// Returns the words of an English question that are probably names, in lower case. They begin with a capital letter
/// within a sentence, and are not names of a month or a day. If most words begin with a capital letter, as in a title,
/// nothing is returned.
pub fn names(question: &str) -> Vec<String> {
    let (mut begins, mut capitals, mut all) = (true, 0, 0);
    let mut names = Vec::new();
    for token in question.split_whitespace() {
        let word = token.trim_start_matches(|c: char| !c.is_alphanumeric());
        let word = word.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_first = std::mem::replace(&mut begins, token.ends_with(['.', '?', '!', ':']));
        if is_first || word.is_empty() {
            continue;
        }
        all += 1;
        if word.starts_with(char::is_uppercase) {
            capitals += 1;
            names.push(word.to_lowercase());
        }
    }
    let is_date = |name: &String| MONTHS.contains(&name.as_str()) || WEEKDAYS.contains(&name.as_str());
    names.retain(|name| name.chars().nth(1).is_some() && !is_date(name));
    if 2 * capitals > all { Vec::new() } else { names }
}

fn number(word: &str) -> Option<usize> {
    let named = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let named = named.iter().position(|name| *name == word).map(|place| place + 1);
    named.or_else(|| word.parse().ok()).filter(|count| (1..=50).contains(count))
}

/// Returns whether the question contains one of the phrases as whole words.
fn has_any(question: &str, phrases: &[&str]) -> bool {
    let words = words(question);
    phrases.iter().any(|phrase| words.contains(&format!(" {phrase} ")))
}

/// Returns whether the question contains a phrase of a script that is written without spaces.
fn has_unspaced(question: &str, phrase: &str) -> bool {
    phrase.contains(is_cjk) && question.contains(phrase)
}

/// Returns the words of `text` in lower case, with one space before and after each word.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(String::from(" "), |all, word| all + &word.to_lowercase() + " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_capital_within_a_sentence_is_a_name() {
        assert_eq!(names("When did Gina visit Ada's shop in Rome? Did Bob?"), ["gina", "ada", "rome", "bob"]);
        assert_eq!(names("did I plant it in May or on Monday"), Vec::<String>::new());
        assert_eq!(names("gina's shop"), Vec::<String>::new());
        assert_eq!(names("Where is it? Rome is far"), Vec::<String>::new());
        assert_eq!(names("Fix The Login Of Gina"), Vec::<String>::new());
        assert_eq!(names(""), Vec::<String>::new());
    }

    #[test]
    fn a_question_says_what_it_asks_for() {
        assert!(asks_for_answers("How did you recommend structuring my work?"));
        assert!(!asks_for_answers("What would you suggest?"));
        for order in [
            "In which order did I bring up the parts of my app?",
            "Can you list the order in which I mentioned them?",
            "Since when do we use Redis?",
            "When did I first mention Ada?",
        ] {
            assert!(asks_for_order(order), "{order}");
        }
        for other in
            ["How do I order pizza?", "When did the order arrive?", "What is the first sprint's goal?"]
        {
            assert!(!asks_for_order(other), "{other}");
        }
        assert_eq!(asks_for_sessions("What were the last 7 sessions about?"), Some(7));
        assert_eq!(asks_for_sessions("what were my last three sessions about"), Some(3));
        assert_eq!(asks_for_sessions("What was the last session about?"), Some(1));
        assert_eq!(asks_for_sessions("Summarise the recent sessions"), Some(FEW_SESSIONS));
        assert_eq!(asks_for_sessions("How long does a login session last?"), None);
        assert_eq!(asks_for_sessions("continue where we left off"), Some(1));
        assert_eq!(asks_for_sessions("继续上次的工作"), Some(FEW_SESSIONS));
        assert_eq!(asks_for_day("What did we do yesterday?"), Some(1));
        assert_eq!(asks_for_day("Was haben wir gestern gemacht?"), Some(1));
        assert_eq!(asks_for_day("昨天我们做了什么"), Some(1));
        assert_eq!(asks_for_day("what changed since yesterday"), None);
        assert_eq!(asks_for_day("which day is it"), None);
    }
}
