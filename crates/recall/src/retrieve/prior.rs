//! Judges a memory by its length and its author, without the query. Also returns the expected cosine of a memory that
//! has no embedding yet. The functions here are pure.

use crate::tuning::ranking::EXPECTED_COSINE;
use tiro_base::memory::{Kind, Role};
use tiro_store::Neighbour;
use tiro_text::tuning::CHUNK_TOKENS;

/// The names of programs that commit to many repositories. Names that end with `[bot]` or `-bot` also belong to
/// programs.
const BOTS: &[&str] = &[
    "dependabot",
    "dependabot-preview",
    "renovate",
    "github-actions",
    "github actions",
    "greenkeeper",
    "greenkeeperio",
    "pre-commit-ci",
    "snyk bot",
    "weblate",
    "imgbot",
    "allcontributors",
    "semantic-release",
    "mergify",
    "bors",
    "codecov",
];

/// Returns whether the memory is a message of an assistant that is longer than one chunk.
///
/// Such an answer has several chunks, and its best chunk decides its score. So it has more chances than a short message.
/// The words around each chunk belong to the same answer.
pub fn is_answer(place: &Neighbour) -> bool {
    place.kind == Kind::Message
        && place.role == Some(Role::Assistant)
        && usize::try_from(place.tokens).is_ok_and(|tokens| tokens > CHUNK_TOKENS)
}

/// Returns whether the memory is a commit by a program that updates dependencies or makes releases.
pub fn is_by_bot(place: &Neighbour) -> bool {
    place.kind == Kind::Commit && place.speaker.as_deref().is_some_and(is_bot)
}

fn is_bot(author: &str) -> bool {
    let author = author.trim().to_lowercase();
    author.ends_with("[bot]")
        || author.ends_with("-bot")
        || author.ends_with(" bot")
        || BOTS.contains(&author.as_str())
}

/// Returns the expected cosine of a chunk that has no embedding yet. `lexical` is the chunk's BM25 as a share of the
/// query's best BM25.
pub fn expected_cosine(lexical: f64) -> f64 {
    EXPECTED_COSINE.0 + EXPECTED_COSINE.1 * lexical
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_people() {
        for bot in [
            "dependabot[bot]",
            "renovate[bot]",
            "renovate",
            "GitHub Actions",
            "semantic-release-bot",
            "Renovate Bot",
        ] {
            assert!(is_bot(bot), "{bot}");
        }
        for person in ["Abbot", "David Peter", "Bot Renard", "talbot", "Renovate Jones"] {
            assert!(!is_bot(person), "{person}");
        }
    }
}
