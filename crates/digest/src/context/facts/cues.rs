//! Recognises standing instructions, preferences and decisions by their wording.

use crate::statements::answers;
use crate::statements::words::{ASKS, has, words};
use tiro_base::memory::Kind;

/// Words before the verb of an instruction that don't belong to it.
const LEADS: &str =
    "so but and now ok okay also then well yes no right please just again however moreover additionally
    oh hmm actually important note remember reminder rule correction decision preference instead wait
    btw";

/// Phrases that state a lasting rule anywhere in a clause.
const LASTING: &[&str] = &[
    "from now on",
    "going forward",
    "as a rule",
    "in all cases",
    "under no circumstances",
    "i prefer",
    "we prefer",
    "i strongly prefer",
    "i generally prefer",
    "my preference is",
    "must always",
    "must never",
    "must not",
    "should always",
    "should never",
    "should only",
    "may never",
    "may only",
    "must only",
    "you to always",
    "you to never",
    "i always want",
    "i never want",
    "i don't ever want",
    "don't ever",
    "dont ever",
    "do not ever",
];

/// Verbs after "we" that state a choice.
const CHOOSES: &[&str] = &[
    "decided",
    "chose",
    "agreed on",
    "agreed to",
    "agreed that",
    "settled on",
    "opted for",
    "went with",
    "are going with",
    "will use",
    "will go with",
    "will stay with",
    "will stick with",
    "will keep using",
    "are using",
    "use",
    "only use",
    "keep the",
    "keep our",
    "will keep the",
    "don't use",
    "do not use",
    "no longer use",
    "switched to",
    "migrated to",
    "moved to",
    "stay with",
    "stick with",
    "don't need",
    "dont need",
    "do not need",
    "don't want any",
    "dont want any",
    "do not want any",
    "don't support",
    "do not support",
];

/// Verbs after "let's" that state a choice.
const LETS: &[&str] = &[
    "use",
    "go with",
    "stay with",
    "stick with",
    "switch to",
    "standardize on",
    "standardise on",
    "store",
    "keep",
    "call",
    "name",
];

/// Words that make a whole sentence uncertain.
const HEDGES: &str = "perhaps maybe probably ideally generally idea hypothetically wondering unsure whether";

/// Words that begin a condition or a circumstance of an instruction.
const WHEN: &str = "when whenever if for in from on before after while unless once during with to";

/// What somebody wants a thing to do or to be.
const WANTED: &str =
    "be have contain use support stay work include live go show accept return keep look behave";

/// Verbs after "should" that say how a thing shall be.
const STATES: &str =
    "be have contain use take accept return support include store require allow behave show work look stay";

/// Words after "should be" that tell how things are now.
const DONE: &str = "ready done finished fine good ok okay enough able possible fixed working";

/// A sentence of so many words is specific. Arbitrary: "the border should be orange" leaves open which border.
const SPECIFIC: usize = 9;

/// Subjects that don't name a thing.
const NOT_NAMED: &str = "i we you they it he she this that these those there everything something nothing
    anything one ones both here";

/// Words that make the statement of a clause uncertain, a wish, a question or a report of something else.
const OPEN: &str =
    "if whether would could might maybe perhaps suppose supposed imagine imagined assume assuming
    hypothetically unless wonder wondering wish think guess said says told wrote writes thinks claims
    claimed suggested suggests asked asks haven't hasn't hadn't had didn't almost nearly not until";

/// Words after "always" and "never" with which no instruction goes on.
const NO_VERB: &str =
    "the a an in on at of with for from up there mind been had saw seen said did made went heard knew
    thought got was were is are so too very as";

/// Verbs with which "we always" tells of a misfortune.
const HAPPENS: &str = "get gets see sees fail fails forget forgets run seem seems end ends have has find";

/// Words for other people's work.
const OTHERS: &[&str] = &[
    "another project",
    "other project",
    "another team",
    "other team",
    "their team",
    "my previous",
    "my last job",
    "my last company",
    "my old",
    "my former",
    "our previous",
    "my friend",
    "in theory",
    "for example",
    "e g",
];

/// Words that make a sentence a rule for all things of a kind.
const ALL: &str = "every each all any no nothing nobody only";

/// Returns the kind of a person's sentence `own`, or `None` if it states nothing that lasts. `among_people` tells that
/// two people talk, and no assistant.
pub(super) fn kind(own: &str, among_people: bool) -> Option<Kind> {
    let all = words(own);
    let joined = format!(" {} ", all.join(" "));
    let first = all.iter().find(|word| !has(LEADS, word))?;
    let is_others = OTHERS.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
    let asks = ["can you", "could you", "help me"].iter().any(|phrase| joined.contains(phrase));
    let is_unsure = all.iter().any(|word| has(HEDGES, word)) || joined.contains(" not sure if ");
    let is_question =
        has(ASKS, first) && *first != "when" && !without_leads(&all).starts_with(&["do", "not"]);
    if is_others || asks || is_unsure || is_question {
        return None;
    }
    let states = |part: &str| {
        let mut before: Vec<String> = Vec::new();
        clauses(part).into_iter().any(|clause| {
            // After "don't touch the seeds", "never touch the seeds" is a rule.
            let forbids =
                matches!(without_leads(&before).as_slice(), ["don't" | "dont", ..] | ["do", "not", ..]);
            let is_request = before.iter().any(|word| !has(LEADS, word)) && !has(WHEN, first) && !forbids;
            let is_open =
                before.iter().any(|word| has("would suppose imagine said says told wrote asked", word));
            let is_instead =
                [" instead of ", " rather than ", " not "].iter().any(|than| joined.contains(than));
            let states = chooses(&clause, among_people)
                || prefers(&clause)
                || (!among_people && is_specific(own) && specifies(&clause))
                || (!among_people && instructs(&clause, is_request))
                || (!among_people && is_instead && without_leads(&clause).first() == Some(&"use"));
            before.extend(clause);
            states && !is_open
        })
    };
    if own.split(": ").any(states) {
        return Some(Kind::Decision);
    }
    (among_people && tells(own)).then_some(Kind::Fact)
}

/// Returns whether a sentence states an instruction or a preference, which holds whatever the question is. Other
/// decisions matter only to questions about them.
pub fn is_standing(text: &str) -> bool {
    !answers::is_decision(text)
        && clauses(text).iter().any(|clause| prefers(clause) || instructs(clause, false))
}

/// Returns whether a sentence holds for everything, as in "never commit to main", so that it needs no sentence before
/// it.
pub(super) fn is_absolute(own: &str) -> bool {
    clauses(own).iter().any(|clause| {
        prefers(clause) || (instructs(clause, false) && clause.iter().any(|word| has("always never", word)))
    })
}

/// Returns whether a sentence speaks of its speaker.
pub(super) fn is_first_person(own: &str) -> bool {
    words(own).iter().any(|word| has("i i'd i've we we'd we've let's lets our my", word))
}

/// Returns the part of a sentence that states the speaker's choice before a question about the choice, as in "I chose
/// A over B, how do I begin?".
pub(super) fn choice_before_question(text: &str) -> Option<&str> {
    let asks = |rest: &str| {
        let words = words(rest);
        let first = words.iter().find(|word| !has(LEADS, word));
        first.is_some_and(|word| has(ASKS, word) && !has("which when where who whose", word))
    };
    let (at, _) = text.match_indices(", ").find(|(at, _)| asks(&text[at + 2..]))?;
    let part = &text[..at];
    let is_choice = |clause: &Vec<String>| {
        let prefers = clause.windows(2).any(|two| has("i we", &two[0]) && two[1] == "prefer");
        prefers || chooses(clause, false)
    };
    clauses(part).iter().any(is_choice).then_some(part)
}

/// Returns whether an assistant's sentence proposes something that lasts.
pub(super) fn proposes(text: &str) -> bool {
    let all = words(text).join(" ");
    let begins = ["we should ", "i suggest ", "i recommend ", "i propose ", "i'd suggest ", "i'd recommend "];
    let lasting =
        ["use", "using", "keep", "keeping", "always", "never", "instead of", "rather than", "stay with"];
    begins.iter().any(|phrase| all.starts_with(phrase))
        && lasting.iter().any(|phrase| format!(" {all} ").contains(&format!(" {phrase} ")))
}

/// Returns the words of each clause of a sentence.
pub(super) fn clauses(text: &str) -> Vec<Vec<String>> {
    let text = text.replace(" but ", ", ").replace(" – ", ", ").replace(" - ", ", ");
    let pairs = [("'re ", " are "), ("'ve ", " have "), ("'ll ", " will ")];
    let text = pairs.iter().fold(text.replace('’', "'"), |text, (short, long)| text.replace(short, long));
    text.split([',', ';', ':', '—', '(', '.']).map(words).filter(|words| !words.is_empty()).collect()
}

/// Returns the words of a clause without the words before its verb or its subject that don't belong to it.
fn without_leads(clause: &[String]) -> Vec<&str> {
    clause.iter().map(String::as_str).skip_while(|word| has(LEADS, word)).collect()
}

/// Returns whether a clause is a standing instruction. If the sentence began with a request (`is_request`), a clause
/// that begins with "always" only says how to do it.
fn instructs(clause: &[String], is_request: bool) -> bool {
    let said = without_leads(clause);
    let joined = format!(" {} ", said.join(" "));
    let forbids = matches!(said.as_slice(), ["don't" | "dont", ..] | ["do", "not", ..]);
    if forbids && said.iter().any(|word| has("without unless ever anymore", word)) {
        return true;
    }
    let Some(place) = said.iter().position(|word| has("always never must should", word)) else {
        return false;
    };
    let verb = said.get(place + 1).copied().unwrap_or_default();
    let subject = &said[..place];
    let is_open = subject.iter().any(|word| has(OPEN, word) || has(ASKS, word));
    let goes_on = !verb.is_empty() && !has(NO_VERB, verb) && !is_past(verb);
    if is_open || !goes_on {
        return false;
    }
    match (said[place], subject) {
        ("always" | "never", []) => !is_request && !verb.ends_with("ing"),
        ("always" | "never", ["we" | "you"]) => !has(HAPPENS, verb),
        ("must", subject) => {
            let named = subject.first().is_some_and(|word| !has(NOT_NAMED, word))
                && !subject.iter().any(|word| has("i you it they he she", word));
            let is_guess = verb == "have"
                && said.get(place + 2).is_some_and(|word| has("been some", word) || is_past(word));
            let forbids = *subject == ["there"] && verb == "be" && said.get(place + 2) == Some(&"no");
            (named || forbids) && !is_guess
        }
        // "You should not be moving files" is about this moment.
        ("should", ["you"]) => verb == "not" && said.get(place + 2).is_some_and(|next| !has("have be", next)),
        ("should", [.., last]) if !has("i we you they it", last) => {
            said.iter().any(|word| has(ALL, word)) || joined.contains(" should be able to ")
        }
        _ => false,
    }
}

/// Returns whether a sentence says exactly what it is about: it has a name of code, a number, a contrast or many
/// words.
fn is_specific(own: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let has_capital =
            word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
        word.contains(|c: char| c.is_ascii_digit() || "_./".contains(c)) || has_capital
    };
    let is_contrast = ["instead of", "rather than", " not "].iter().any(|than| own.contains(than));
    is_contrast || own.split_whitespace().any(is_name) || own.split_whitespace().count() >= SPECIFIC
}

/// Returns whether a clause states how a named thing shall be, as in "the export should be a CSV file".
fn specifies(clause: &[String]) -> bool {
    let said = without_leads(clause);
    let Some(place) = said.iter().position(|word| *word == "should") else { return false };
    let (subject, states) = (&said[..place], &said[place + 1..]);
    let states = states.strip_prefix(&["also"]).or(states.strip_prefix(&["not"])).unwrap_or(states);
    let is_named = subject.last().is_some_and(|last| !has(NOT_NAMED, last));
    let is_open = subject.iter().any(|word| has(OPEN, word) || has(ASKS, word) || has(NOT_NAMED, word));
    let is_aim = subject.iter().any(|word| has("goal focus idea aim purpose result output", word));
    // "The token should be ready" says how things are now.
    let is_done = states.get(1).is_some_and(|word| states[0] == "be" && has(DONE, word));
    is_named && !is_open && !is_aim && !is_done && states.len() > 1 && has(STATES, states[0])
}

/// Returns whether a clause has a phrase of a lasting rule or preference.
fn prefers(clause: &[String]) -> bool {
    let joined = format!(" {} ", clause.join(" "));
    LASTING.iter().any(|phrase| {
        let before = joined.find(&format!(" {phrase} ")).map(|at| &joined[..at]);
        before.is_some_and(|before| !before.split(' ').any(|word| has(OPEN, word)))
    })
}

/// Returns whether a clause states a choice of the speakers. "Let's keep going" is no choice of two people.
fn chooses(clause: &[String], among_people: bool) -> bool {
    let said = without_leads(clause);
    let begins = |words: &[&str], phrase: &str| {
        let mut words = words.iter();
        phrase.split(' ').all(|word| words.next() == Some(&word))
    };
    let skip =
        |words: &[&str]| words.iter().take_while(|word| has("have finally just both all", word)).count();
    if let Some(at) = said.iter().position(|word| has("let's lets", word)) {
        let (before, rest) = (&said[..at], &said[at + 1..]);
        let is_open = before.iter().any(|word| has(OPEN, word));
        let goes_on = rest.get(1).is_some_and(|word| word.ends_with("ing") || has("work on up it", word));
        return !among_people && !is_open && !goes_on && LETS.iter().any(|phrase| begins(rest, phrase));
    }
    match said.as_slice() {
        ["i" | "we", "want", "to", verb, rest @ ..] if has("use keep avoid", verb) => rest.len() > 4,
        ["i'd" | "we'd", "rather", verb, rest @ ..] if has("use keep have avoid", verb) => rest.len() > 4,
        ["i" | "we", "want", thing, rest @ ..] | ["i" | "we", "also", "want", thing, rest @ ..] => {
            rest.len() > 5
                && !has("to you it that", thing)
                && rest.windows(2).any(|two| two[0] == "to" && has(WANTED, two[1]))
        }
        words => words.iter().position(|word| has("we i", word)).is_some_and(|at| {
            // "It fails when we use the mill" is no choice.
            let is_open = words[..at].iter().any(|word| has(OPEN, word) || has("when whenever", word));
            let rest = &words[at + 1..];
            let rest = &rest[skip(rest)..];
            let by_one = |phrase: &str| phrase == "decided" || phrase == "chose" || phrase.ends_with(" any");
            let chosen = |phrase: &&str| begins(rest, phrase) && (words[at] == "we" || by_one(phrase));
            !is_open && CHOOSES.iter().any(chosen)
        }),
    }
}

/// Returns whether a person tells what they did or became, with a name or a number.
fn tells(own: &str) -> bool {
    let is_own = |clause: &Vec<String>| {
        let said = without_leads(clause);
        let begins = said.first().is_some_and(|word| has("i we my our", word));
        let is_open = said.iter().any(|word| has(OPEN, word));
        begins && !is_open && said.iter().skip(1).take(2).any(|word| is_past(word))
    };
    let names = crate::context::entities::entities(own);
    (own.contains(|c: char| c.is_ascii_digit()) || !names.is_empty())
        && clauses(own).iter().take(2).any(is_own)
}

/// Returns whether a word is a verb in the past tense.
fn is_past(word: &str) -> bool {
    (word.len() > 4 && word.ends_with("ed") && !has("need indeed embed", word))
        || has("was were had did went got made took bought found met began won lost left became dealt", word)
}
