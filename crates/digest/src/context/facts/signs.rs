//! Words and signs that are used to judge sentences.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Names of assistants and of roles. A speaker with such a name is not a person.
const ASSISTANTS: &[&str] = &[
    "agent",
    "ai",
    "assistant",
    "bot",
    "chatgpt",
    "claude",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "gpt",
    "llama",
    "model",
    "opus",
    "sonnet",
    "haiku",
    "system",
    "tool",
];

/// Verbs that begin a request that only concerns the moment.
const REQUESTS: &str = "
    add adjust analyze append apply ask author build bump call change check clarify clean close commit compare complete compute
    configure continue convert copy create debug define delete deploy describe design do document download draft drop
    edit enable enter estimate evaluate execute explain explore extend extract figure find finish fix follow format
    generate get give go handle help identify ignore implement import improve include initialize inspect install
    integrate investigate list load look make merge mock modify move note open optimize organize output perform pick
    plan prepare print proceed propose provide pull push put query read rebase recommend refactor regenerate remove
    rename reorganize reorder replace report resolve restart resume retry return revert review rewrite run save search send set
    setup share show simplify simulate group ensure solve sort split start stash stop suggest summarize switch sync take tell test translate
    try turn undo update upgrade upload use validate verify view wait walk write";

/// Past tenses that don't end in `ed`, and other verbs that are used in reports.
const PAST: &str = "
    was were had did went got made took bought found saw met began ran won lost gave came left felt told said wrote read
    sold built brought taught thought kept led held stood understood sent spent paid grew knew drew flew drove rode rose
    chose spoke broke woke wore ate drank swam sang fell caught became heard cut hit let set put been gone done seen
    taken given gotten written known chosen spoken broken worn eaten";

/// Words of time.
const TIMES: &str = "
    yesterday today tonight tomorrow recently lately ago since last next week weeks weekend month months year years
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december summer winter spring fall autumn morning evening deadline currently already soon";

/// Words that state a rule or a choice.
const RULES: &str = "
    must never always should shouldn't mustn't only prefer prefers decided chose chosen agreed require
    requires required forbidden allowed supposed instead default convention policy";

/// Words that express an opinion or are merely polite. They state no fact.
const HEDGES: &str = "
    think guess hope wonder wondering maybe perhaps bet suppose imagine appreciate glad sorry thank thanks wow hey great
    awesome cool amazing wonderful nice congrats agree sounds wish curious";

/// Words about the conversation itself, or about what the speaker sees at this moment.
const PASSES: &str = "
    see seeing here looked checked notice noticing mentioned referring meant earlier conversation interaction asked again wrong
    understand seems seem trying error errors prompt message answer question reply output hanging stuck convinced chat";

static PASSING_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| PASSES.split_whitespace().collect());
static REQUEST_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| REQUESTS.split_whitespace().collect());
static PAST_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| PAST.split_whitespace().collect());
static TIME_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| TIMES.split_whitespace().collect());
static RULE_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| RULES.split_whitespace().collect());
static HEDGE_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| HEDGES.split_whitespace().collect());

/// Returns `text` in lower case with straight apostrophes.
pub(super) fn lower(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// Returns the words of `text` in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = lower(text);
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '_')));
    words.map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns whether a speaker's name is the name of a person.
pub(super) fn is_persons_name(name: &str) -> bool {
    let begins =
        name.starts_with(char::is_uppercase) && name.chars().all(|c| c.is_alphabetic() || " .'-".contains(c));
    begins && !words(name).iter().any(|word| ASSISTANTS.contains(&word.as_str()))
}

pub(super) fn is_request(word: &str) -> bool {
    REQUEST_WORDS.contains(word)
}

pub(super) fn is_rule(word: &str) -> bool {
    RULE_WORDS.contains(word)
}

/// Returns whether a word alone turns a sentence into a rule.
pub(super) fn is_strict(word: &str) -> bool {
    matches!(
        word,
        "must" | "mustn't" | "always" | "decided" | "policy" | "convention" | "forbidden" | "required"
    )
}

pub(super) fn is_time(word: &str) -> bool {
    TIME_WORDS.contains(word)
}

pub(super) fn is_passing(word: &str) -> bool {
    PASSING_WORDS.contains(word)
}

pub(super) fn is_hedge(word: &str) -> bool {
    HEDGE_WORDS.contains(word)
}

/// Returns whether a word is a verb in the past tense, or a participle.
pub(super) fn is_past(word: &str) -> bool {
    PAST_WORDS.contains(word)
        || (word.len() > 4 && word.ends_with("ed") && !matches!(word, "need" | "indeed"))
}

/// Returns whether a word refers to the speaker.
pub(super) fn is_own(word: &str) -> bool {
    matches!(
        word,
        "i" | "i'm"
            | "im"
            | "i've"
            | "ive"
            | "i'd"
            | "i'll"
            | "my"
            | "mine"
            | "me"
            | "we"
            | "we're"
            | "we've"
            | "we'll"
            | "our"
            | "us"
    )
}

/// Returns whether a word refers to the listener.
pub(super) fn is_listener(word: &str) -> bool {
    matches!(word, "you" | "your" | "you're" | "you've" | "you'll" | "you'd" | "yours" | "u")
}

/// Returns whether a word refers to something that was said before.
pub(super) fn is_reference(word: &str) -> bool {
    matches!(
        word,
        "that"
            | "that's"
            | "thats"
            | "this"
            | "it"
            | "it's"
            | "its"
            | "these"
            | "those"
            | "they"
            | "they're"
            | "he"
            | "she"
            | "there"
            | "there's"
            | "here"
            | "here's"
    )
}
