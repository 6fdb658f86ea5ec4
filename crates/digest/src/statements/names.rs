//! Reads names that a speaker chooses.

use super::Value;
use super::lists::has;
use super::tokens::Token;

/// Verbs with which a speaker chooses a name; sorted.
const CHOOSES: &[&str] = &[
    "adopt",
    "choose",
    "chose",
    "chosen",
    "keep",
    "pick",
    "picked",
    "prefer",
    "settle",
    "settled",
    "stay",
    "stick",
    "switch",
    "switched",
    "switching",
    "use",
    "using",
];

/// The maximum number of tokens between a verb of change and the name that is replaced. Arbitrary.
const MOVED_WITHIN: usize = 6;

/// Words that may stand between a verb of choice and the name; sorted.
const BEFORE_NAME: &[&str] = &["a", "an", "for", "on", "our", "the", "to", "with"];

/// Reads a name that is chosen at `place`: "use Redis", "switched from Redis to Postgres", "Postgres instead of Redis".
pub(super) fn name(tokens: &[Token<'_>], place: usize) -> Option<Value> {
    let verb = tokens[place].lower();
    let goes_with = matches!(verb.as_str(), "go" | "going" | "went") && tokens.get(place + 1)?.text == "with";
    if !has(CHOOSES, &verb) && !goes_with {
        return None;
    }
    let negated = tokens[place.saturating_sub(3)..place].iter().any(|token| {
        matches!(
            token.lower().as_str(),
            "don't" | "not" | "never" | "no" | "longer" | "stop" | "if" | "can't"
        )
    });
    if negated {
        return None;
    }
    let mut at = place + 1;
    let mut replaced = Vec::new();
    // This finds "from" in "Switched the queue from Redis to RabbitMQ".
    let from = (at..tokens.len().min(at + MOVED_WITHIN)).find(|at| tokens[*at].text == "from");
    if verb.starts_with("switch")
        && let Some(old) = from.and_then(|from| named(tokens, from + 1))
    {
        replaced.push(old.0);
        at = old.1;
    }
    while tokens.get(at).is_some_and(|token| has(BEFORE_NAME, &token.lower())) {
        at += 1;
    }
    let (value, end) = named(tokens, at)?;
    for (place, token) in tokens.iter().enumerate().skip(end) {
        let is_instead = match token.lower().as_str() {
            "instead" | "rather" => {
                tokens.get(place + 1).is_some_and(|next| matches!(next.text, "of" | "than"))
            }
            _ => false,
        };
        if is_instead {
            replaced.extend(named(tokens, place + 2).map(|(old, _)| old));
        }
    }
    let modifiers = Vec::new();
    Some(Value { value, unit: "name".into(), modifiers, tokens: at..end, replaced })
}

/// Reads a name at `place`. A name consists of capitalised words, or is a word that is spelled like an identifier.
/// Returns the name in lower case, with hyphens in place of spaces, and the place after it.
fn named(tokens: &[Token<'_>], place: usize) -> Option<(String, usize)> {
    let is_name = |token: &Token<'_>| {
        let has_inner = token
            .text
            .chars()
            .skip(1)
            .any(|c| c.is_uppercase() || c == '_' || c == '/' || c.is_ascii_digit());
        token.is_word() && (token.text.starts_with(char::is_uppercase) || has_inner) && token.text != "I"
    };
    let place = match tokens.get(place)?.text {
        "the" | "`" | "\"" | "*" => place + 1,
        _ => place,
    };
    let quoted = place > 0 && tokens[place - 1].text == "`";
    let end = tokens[place..]
        .iter()
        .take(3)
        .take_while(|token| is_name(token) || (quoted && token.is_word()))
        .count();
    let words: Vec<String> = tokens[place..place + end].iter().map(Token::lower).collect();
    (!words.is_empty()).then(|| (words.join("-"), place + end))
}
