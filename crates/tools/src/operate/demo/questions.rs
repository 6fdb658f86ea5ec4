//! Makes questions about a history for the demonstration, similar to those of a person.
//!
//! A person remembers what changed and asks for the reason. So a question is made from the subject of a commit. The
//! topic before the colon and everything after the first clause are dropped, and the rest becomes a question. The rules
//! accept a subject that begins with a verb from a list, or that is a sentence with `is` or `are`. Every other subject
//! is skipped. If no subject of the history fits, a question quotes a subject instead. The rules do not parse English.

/// The verbs with which a subject may begin, also in the past tense (`added`) and in the third person (`adds`).
const VERBS: &[&str] = &[
    "add",
    "allow",
    "answer",
    "apply",
    "avoid",
    "cache",
    "check",
    "claim",
    "clarify",
    "clean",
    "close",
    "count",
    "decide",
    "defer",
    "deprecate",
    "detect",
    "disable",
    "disallow",
    "drop",
    "enable",
    "enforce",
    "ensure",
    "expire",
    "explain",
    "expose",
    "extract",
    "forbid",
    "force",
    "freeze",
    "handle",
    "hide",
    "hold",
    "ignore",
    "implement",
    "improve",
    "include",
    "inline",
    "introduce",
    "keep",
    "limit",
    "load",
    "lock",
    "log",
    "make",
    "mark",
    "measure",
    "move",
    "normalize",
    "optimize",
    "parse",
    "pass",
    "permit",
    "prefer",
    "preserve",
    "prevent",
    "price",
    "print",
    "provide",
    "raise",
    "read",
    "record",
    "reduce",
    "refactor",
    "reject",
    "relax",
    "remove",
    "rename",
    "reorder",
    "replace",
    "report",
    "require",
    "restore",
    "restrict",
    "return",
    "reuse",
    "revert",
    "rework",
    "rewrite",
    "round",
    "run",
    "send",
    "share",
    "show",
    "simplify",
    "skip",
    "sort",
    "split",
    "stop",
    "store",
    "strip",
    "support",
    "switch",
    "take",
    "turn",
    "unify",
    "use",
    "validate",
    "verify",
    "wait",
    "warn",
    "wrap",
    "write",
];

/// Words that mark a subject as too dull for a question.
const DULL: &[&str] = &[
    "changelog",
    "ci",
    "clippy",
    "lint",
    "linter",
    "linting",
    "merge",
    "readme",
    "release",
    "typo",
    "typos",
    "version",
];

/// The strings that end the first clause of a subject.
const ENDS: &[&str] = &[", ", "; ", ": ", ". ", " - ", " -- ", " — ", " – ", " (", " [", " #"];

/// Words that begin a subordinate clause. An `is` after such a word belongs to that clause.
const JOINTS: &[&str] = &[
    "after", "as", "because", "before", "how", "if", "that", "unless", "until", "what", "whatever", "when",
    "where", "whether", "which", "while", "who", "whose",
];

/// Further words, in addition to [`VERBS`], that can follow a plural noun but can't follow a verb.
const AUXILIARIES: &[&str] = &[
    "are", "can", "come", "could", "do", "get", "go", "have", "lead", "may", "must", "need", "now", "should",
    "were", "will",
];

/// A clause becomes a question only if at least this many words follow its first word.
const FEWEST: usize = 3;

/// The most characters of a question.
const LONGEST: usize = 90;

/// If at least this many commits give a reason in their body, questions are made only about such commits.
const ENOUGH: usize = 3;

/// Returns up to three questions about commits that are spread over `commits`, each with the id of its commit.
///
/// Each entry of `commits` is the subject, the indexed text (message and files) and the id of a commit. Commits whose
/// message gives a reason are preferred if there are enough of them.
pub fn of_history<'c>(commits: &[(&str, &str, &'c str)]) -> Vec<(String, &'c str)> {
    let asked =
        |question: fn(&str) -> Option<String>, gives_reason: fn(&str) -> bool| -> Vec<(String, &'c str)> {
            let commits = commits.iter().filter(|(_, text, _)| gives_reason(text));
            commits.filter_map(|(subject, _, id)| Some((question(subject)?, *id))).collect()
        };
    let mut candidates = asked(of_subject, gives_reason);
    if candidates.len() < ENOUGH {
        candidates = asked(of_subject, |_| true);
    }
    if candidates.is_empty() {
        candidates = asked(quoting, |_| true);
    }
    let mut questions: Vec<(String, &str)> = Vec::new();
    for place in [candidates.len() / 5, candidates.len() / 2, candidates.len() * 4 / 5] {
        if let Some(candidate) = candidates.get(place)
            && !questions.iter().any(|(question, id)| *question == candidate.0 || *id == candidate.1)
        {
            questions.push(candidate.clone());
        }
    }
    questions
}

/// Returns whether a commit's message has a paragraph of prose after its subject.
///
/// A paragraph that begins with a label, such as `Files:` or `Co-authored-by:`, is not prose.
fn gives_reason(text: &str) -> bool {
    text.split("\n\n").skip(1).any(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.len() >= 12 && !words.iter().take(3).any(|word| word.ends_with(':'))
    })
}

/// Returns the question that a person who remembers `subject` would ask, or `None` if no rule fits.
fn of_subject(subject: &str) -> Option<String> {
    let clause = clause(subject)?;
    let words: Vec<&str> = clause.split_whitespace().collect();
    let question = match verb(words[0]).filter(|_| !is_plural(&words)) {
        Some("fix") => format!("How did we fix {}?", words[1..].join(" ")),
        Some(verb) => format!("Why did we {verb} {}?", words[1..].join(" ")),
        None => {
            let place = words.iter().position(|word| matches!(*word, "is" | "are"))?;
            let (noun, rest) = (&words[..place], &words[place + 1..]);
            let is_plain = |word: &&str| !JOINTS.contains(&word.to_lowercase().as_str());
            if !(1..=6).contains(&noun.len()) || rest.is_empty() || !noun.iter().all(is_plain) {
                return None;
            }
            // If the first word has a capital letter, it must be an article. Any other capitalised word may be a name,
            // or a verb that the rules do not know.
            let first = match noun[0] {
                article @ ("A" | "An" | "The" | "All" | "Every" | "Each" | "No") => article.to_lowercase(),
                other if !other.starts_with(char::is_uppercase) => other.to_owned(),
                _ => return None,
            };
            let noun = std::iter::once(first.as_str()).chain(noun[1..].iter().copied());
            let noun = noun.collect::<Vec<_>>().join(" ");
            format!("Why {} {noun} {}?", words[place], rest.join(" "))
        }
    };
    (words.len() > FEWEST && question.chars().count() <= LONGEST).then_some(question)
}

/// Returns whether the clause begins with a plural noun that only looks like a verb, such as `reads` in `reads take
/// turns`. A first word that ends in `s` counts as such a noun if a verb follows it.
fn is_plural(words: &[&str]) -> bool {
    let follows = |word: &&str| AUXILIARIES.contains(word) || verb(word).is_some();
    words[0].ends_with('s') && words.get(1).is_some_and(follows)
}

/// Returns a question that quotes the first clause of `subject`.
fn quoting(subject: &str) -> Option<String> {
    let clause = clause(subject)?;
    (clause.split_whitespace().count() > FEWEST).then(|| format!("Why was this changed: “{clause}”?"))
}

/// Returns the first clause of `subject` without the topic before it. Returns `None` if this clause is empty or
/// contains one of the words in [`DULL`].
fn clause(subject: &str) -> Option<&str> {
    let topic = |topic: &str| topic.split_whitespace().count() <= 3;
    let rest = subject.split_once(": ").filter(|(before, _)| topic(before)).map_or(subject, |(_, rest)| rest);
    let end = ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let clause = rest[..end].trim().trim_end_matches(['.', '!', '…']);
    let is_dull = |word: &str| {
        DULL.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().as_str())
    };
    (!clause.is_empty() && !clause.split_whitespace().any(is_dull)).then_some(clause)
}

/// Returns the base form of the verb `word`, such as `drop` for `Dropped`.
fn verb(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let without = |ending: &str| word.strip_suffix(ending).unwrap_or(&word).to_owned();
    let mut stems = vec![word.clone(), without("s"), without("es"), without("d"), without("ed")];
    // `dropped` comes from `drop`, `simplifies` and `simplified` from `simplify`.
    let doubled = without("ed");
    if doubled.len() > 2 && doubled.as_bytes()[doubled.len() - 1] == doubled.as_bytes()[doubled.len() - 2] {
        stems.push(doubled[..doubled.len() - 1].to_owned());
    }
    stems.extend(["ies", "ied"].iter().filter_map(|ending| Some(format!("{}y", word.strip_suffix(ending)?))));
    VERBS.iter().chain(&["fix"]).copied().find(|verb| stems.iter().any(|stem| stem == verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_reads_as_a_person_would_ask_it() {
        let asked = [
            (
                "rt: add unstable option to disable the LIFO slot (#4936)",
                "Why did we add unstable option to disable the LIFO slot?",
            ),
            (
                "Fixed precedence of StringIO imports for LogTrapTestCase.",
                "How did we fix precedence of StringIO imports for LogTrapTestCase?",
            ),
            ("Dropped support for Python 2.6, and more", "Why did we drop support for Python 2.6?"),
            ("git: a password is not taken out of the line", "Why is a password not taken out of the line?"),
            ("store: reads take turns at eight connections", ""),
            ("evals: limits measures large texts", ""),
            ("store: locks are held for a second at most", "Why are locks held for a second at most?"),
            ("cli: reads the password from a file", "Why did we read the password from a file?"),
            ("jobs: poll every 2 seconds instead of LISTEN/NOTIFY", ""),
            ("Bump libc from 0.2.60 to 0.2.61", ""),
            ("Fix typo in entry-points.rst", ""),
            ("Add tests", ""),
            ("Explicate that installers are unsigned", ""),
            ("Explicate installers are unsigned", ""),
            ("what is remembered is whole and in order", ""),
            ("", ""),
        ];
        for (subject, question) in asked {
            assert_eq!(of_subject(subject).unwrap_or_default(), question, "{subject}");
        }
    }

    #[test]
    fn commits_that_give_a_reason_are_asked_about() {
        let reason =
            "Use one lock\n\nTwo locks were taken in a different order by two threads, so that both waited.";
        let label = "Use two locks\n\nFiles: src/a.rs, src/b.rs, src/c.rs, src/d.rs, and eight more of that folder below it";
        let commit = |text: &'static str, id| ("locks: use one lock for both threads", text, id);
        let few = [commit(label, "1"), commit(label, "2")];
        assert_eq!(of_history(&few), [("Why did we use one lock for both threads?".to_owned(), "1")]);
        let many = [commit(label, "1"), commit(reason, "2"), commit(reason, "3"), commit(reason, "4")];
        assert_eq!(of_history(&many)[0].1, "2");
        let quoted = [("the first version of everything", "", "1"), ("all of the second beginning", "", "2")];
        assert_eq!(
            of_history(&quoted),
            [("Why was this changed: “all of the second beginning”?".to_owned(), "2")]
        );
        assert!(of_history(&[]).is_empty());
    }
}
