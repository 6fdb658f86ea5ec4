//! Makes questions with known answers from commits and sessions. The seed decides which.
//!
//! No model rewords them, so a question has the words of a subject or of a request, without the common ones. Its answer
//! is a sentence that its source alone contains: the sentence with the rarest words that the question lacks. So the
//! questions are easier to find than those that a person asks, and a figure for them is an upper bound.

use std::collections::{BTreeSet, HashMap};

use crate::random::Random;
use crate::summaries::{COMMON, sentences};

/// A commit, with its whole message.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The commit's id.
    pub sha: String,
    /// Whether the commit has several parents.
    pub is_merge: bool,
    /// The message.
    pub message: String,
}

/// A session, with its messages in their order.
#[derive(Clone, Debug)]
pub struct Session {
    /// The session's name.
    pub name: String,
    /// The role and the text of each message.
    pub said: Vec<(String, String)>,
}

/// A question with its known answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The question.
    pub question: String,
    /// The sentence that answers; `None` if the source itself is the answer.
    pub answer: Option<String>,
    /// Where the answer is.
    pub source: Source,
}

/// Where an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In this commit.
    Commit(String),
    /// In this session.
    Session(String),
}

/// The number of content words that a question needs at least. In a request, they must be rare. Arbitrary: fewer say
/// too little.
const FEWEST_WORDS: usize = 3;

/// The number of content words that a question has at most. Arbitrary: people ask short questions.
const MOST_WORDS: usize = 12;

/// A word is rare if at most one in so many texts has it, or at most [`RARE_ANYWAY`] texts. Arbitrary: "please check the
/// output" asks about nothing in particular where every tenth message says so.
const RARE: usize = 20;

/// The number of texts that may have a rare word even if there are few texts. Arbitrary: a request and its reply.
const RARE_ANYWAY: usize = 2;

/// The lengths, in characters, of a sentence that can be an answer. Arbitrary: a shorter sentence says little, and a
/// longer one is rarely shown whole.
const LENGTHS: std::ops::RangeInclusive<usize> = 30..=300;

/// Returns at most `most` questions, about half of them from sessions, in an order that the seed decides.
pub fn cases(commits: &[Commit], sessions: &[Session], most: usize, seed: u64) -> Vec<Case> {
    let texts: Vec<&str> = (commits.iter().map(|commit| commit.message.as_str()))
        .chain(sessions.iter().flat_map(|session| &session.said).map(|(_, text)| text.as_str()))
        .collect();
    let known = Known::new(&texts);
    let order = |count: usize, salt: u64| shuffled(count, seed.wrapping_add(salt));
    let of_session = |place: usize| of_session(&sessions[place], &known);
    let of_commit = |place: usize| of_commit(&commits[place], &known);
    let asked: Vec<Case> = order(sessions.len(), 1).into_iter().filter_map(of_session).take(most).collect();
    let mut told: Vec<Case> = order(commits.len(), 0).into_iter().filter_map(of_commit).take(most).collect();
    let from_sessions = asked.len().min((most / 2).max(most.saturating_sub(told.len())));
    told.truncate(most - from_sessions);
    told.extend(asked.into_iter().take(from_sessions));
    told
}

/// Returns the numbers below `count` in an order that the seed decides.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for place in (1..count).rev() {
        order.swap(place, random.below(place + 1));
    }
    order
}

/// All texts, and how many of them contain each word.
struct Known {
    counts: HashMap<String, usize>,
    solid: Vec<String>,
}

impl Known {
    fn new(texts: &[&str]) -> Known {
        let mut counts = HashMap::new();
        for text in texts {
            let words: BTreeSet<String> =
                content_words(text).into_iter().map(|word| word.to_lowercase()).collect();
            words.into_iter().for_each(|word| *counts.entry(word).or_insert(0) += 1);
        }
        Known { counts, solid: texts.iter().map(|text| solid(text)).collect() }
    }

    /// Returns whether enough words of `line` are rare.
    fn is_telling(&self, line: &str) -> bool {
        let mut words = content_words(line);
        words.truncate(MOST_WORDS);
        let is_rare = |word: &&String| {
            let count = self.counts.get(&word.to_lowercase()).copied().unwrap_or(0);
            count <= RARE_ANYWAY || count * RARE <= self.solid.len()
        };
        words.iter().filter(is_rare).count() >= FEWEST_WORDS
    }

    /// Returns the sum of the rarities of the words of `sentence` that `question` lacks.
    fn rarity(&self, sentence: &str, question: &BTreeSet<String>) -> f64 {
        let words: BTreeSet<String> =
            content_words(sentence).into_iter().map(|word| word.to_lowercase()).collect();
        let rarity = |word: &String| {
            let count = self.counts.get(word).copied().unwrap_or(1);
            (self.solid.len() as f64 / count as f64).ln()
        };
        words.difference(question).map(rarity).sum()
    }

    /// Returns the sentence among `sentences` that only one text contains and whose words, without those of
    /// `question`, are the rarest.
    fn telling<'s>(&self, sentences: impl Iterator<Item = &'s str>, question: &str) -> Option<&'s str> {
        let asked = content_words(question).into_iter().map(|word| word.to_lowercase()).collect();
        let mut rated: Vec<(f64, &str)> = sentences
            .filter(|sentence| LENGTHS.contains(&sentence.chars().count()))
            .map(|sentence| (self.rarity(sentence, &asked), sentence))
            .filter(|(rarity, _)| *rarity > 0.0)
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        let is_only = |sentence: &&str| {
            let wanted = solid(sentence);
            self.solid.iter().filter(|text| text.contains(&wanted)).nth(1).is_none()
        };
        rated.into_iter().map(|(_, sentence)| sentence).find(is_only)
    }
}

/// Returns `text` without white space.
fn solid(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Makes the question about a commit whose message has several lines, or about a merge whose message has a title.
fn of_commit(commit: &Commit, known: &Known) -> Option<Case> {
    let (subject, body) = subject_and_body(&commit.message);
    if subject.starts_with("Merge ") || (body.trim().is_empty() && !commit.is_merge) {
        return None;
    }
    let question = question("why", subject)?;
    let answer = known.telling(telling_sentences(body), &question).map(str::to_owned);
    Some(Case { question, answer, source: Source::Commit(commit.sha.clone()) })
}

/// Returns the subject and the body of a message. If the first line only names the merged branch, the next line is the
/// subject, as hosts of repositories write it.
fn subject_and_body(message: &str) -> (&str, &str) {
    let (first, rest) = message.trim().split_once('\n').unwrap_or((message.trim(), ""));
    let rest = rest.trim_start();
    match first.starts_with("Merge ") && !rest.is_empty() {
        true => rest.split_once('\n').unwrap_or((rest, "")),
        false => (first, rest),
    }
}

/// Makes the question about the last request of a session that says enough. The answer stands in the replies to it.
fn of_session(session: &Session, known: &Known) -> Option<Case> {
    let asks = session.said.iter().enumerate().filter(|(_, (role, _))| role == "user");
    asks.rev().find_map(|(place, (_, text))| {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let question = question("what", line).filter(|_| known.is_telling(line))?;
        let replies = session.said[place + 1..].iter().take_while(|(role, _)| role == "assistant");
        let replies: Vec<&str> = replies.map(|(_, text)| text.as_str()).collect();
        let said = replies.iter().flat_map(|reply| telling_sentences(reply));
        let answer = known.telling(said, &question)?.to_owned();
        Some(Case { question, answer: Some(answer), source: Source::Session(session.name.clone()) })
    })
}

/// Returns the question with the content words of `line`; `None` if there are too few.
fn question(asks: &str, line: &str) -> Option<String> {
    let mut words = content_words(line);
    words.truncate(MOST_WORDS);
    (words.len() >= FEWEST_WORDS).then(|| format!("{asks}: {}", words.join(" ")))
}

/// Returns the words of `text` in their order, without the common ones, numbers, and repetitions.
pub fn content_words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = word.to_lowercase();
        let is_common = COMMON.split_whitespace().any(|common| common == lower);
        let is_seen = found.iter().any(|seen| seen.eq_ignore_ascii_case(word));
        if word.chars().count() > 1 && word.contains(char::is_alphabetic) && !is_common && !is_seen {
            found.push(word.to_owned());
        }
    }
    found
}

/// Returns the sentences of the prose of `text`. Fenced code, quoted lines, tables, tool calls and trailers are left out.
fn telling_sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = text.lines().filter(move |line| {
        let line = line.trim_start();
        if line.starts_with("```") {
            is_code = !is_code;
            return false;
        }
        !is_code && !line.starts_with(['>', '|', '[', '<', '{', '#']) && !is_trailer(line)
    });
    prose.flat_map(sentences).map(|sentence| sentence.trim_start_matches(['-', '*', ' ']))
}

/// Returns whether a line is a trailer, such as `Signed-off-by: Ada`.
fn is_trailer(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(key, _)| key.contains('-') && !key.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(sha: &str, message: &str) -> Commit {
        Commit { sha: sha.into(), is_merge: false, message: message.into() }
    }

    fn session(name: &str, said: &[(&str, &str)]) -> Session {
        let said = said.iter().map(|(role, text)| (role.to_string(), text.to_string())).collect();
        Session { name: name.into(), said }
    }

    #[test]
    fn a_commit_is_asked_about_by_its_subject_and_answered_by_its_body() {
        let commits = [
            commit(
                "a",
                "Flush the cache twice\n\nThe second flush waits for the journal of the disk.\nThanks to all of you for it.\n\nSigned-off-by: Ada Lovelace and the others",
            ),
            commit("b", "Thanks\n\nThanks to all of you for it."),
            commit("c", "One line that says what is changed here"),
        ];
        let made = cases(&commits, &[], 30, 1);
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(made[0].question, "why: Flush cache twice");
        assert_eq!(made[0].answer.as_deref(), Some("The second flush waits for the journal of the disk."));
        assert_eq!(made[0].source, Source::Commit("a".into()));
    }

    #[test]
    fn a_merge_is_asked_about_by_its_title() {
        let mut merge = commit("m", "Merge pull request #7 from ada/tls\n\nUse TLS between workers");
        merge.is_merge = true;
        let made = cases(&[merge, commit("n", "Merge branch 'main' into tls")], &[], 30, 1);
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!((made[0].question.as_str(), &made[0].answer), ("why: Use TLS between workers", &None));
        assert_eq!(made[0].source, Source::Commit("m".into()));
    }

    #[test]
    fn a_session_is_asked_about_by_its_last_request_that_says_enough() {
        let talk = session(
            "s",
            &[
                ("user", "rename the worker module please"),
                ("assistant", "I renamed it. ```\nlet x = 1;\n```"),
                ("user", "why does the mail worker poll?"),
                ("assistant", "[bash: ls]\nThe pooler keeps no session, so LISTEN is lost at once."),
                ("user", "ok, go on"),
                ("assistant", "Good, then everything is finished for today."),
            ],
        );
        let made = cases(&[], &[talk], 30, 1);
        assert_eq!(made[0].question, "what: why mail worker poll");
        let answer = made[0].answer.as_deref();
        assert_eq!(answer, Some("The pooler keeps no session, so LISTEN is lost at once."));
    }

    #[test]
    fn the_seed_decides_which() {
        let commits: Vec<Commit> = (0..60)
            .map(|n| {
                commit(
                    &format!("c{n}"),
                    &format!("Change part{n} of engine\n\nIt was slow because of reason{n} there."),
                )
            })
            .collect();
        let ids =
            |seed| cases(&commits, &[], 30, seed).into_iter().map(|case| case.question).collect::<Vec<_>>();
        assert_eq!(ids(1).len(), 30);
        assert_eq!(ids(1), ids(1));
        assert_ne!(ids(1), ids(2));
    }
}
