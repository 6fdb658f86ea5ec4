//! Finds what else was said about some lines.

use std::collections::{BTreeSet, HashSet};

use super::groups::Group;
use super::page::{Explained, Other, escaped, open};
use crate::common::beginning_in_bytes;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Role};
use tiro_base::scope::SessionId;
use tiro_base::times::minute;
use tiro_digest::statements::own_words::{is_prose, own_words};
use tiro_embed::Encoders;
use tiro_host::project::OpenProject;
use tiro_recall::retrieve::rank::{Weights, is_near};
use tiro_recall::retrieve::{self, query};

/// How many other memories about the lines an answer names.
const OTHERS: usize = 3;

/// The maximum number of bytes of another memory that are shown. Arbitrary: about two lines.
const LONGEST_OTHER: usize = 200;

/// The number of words by which other memories are searched. Arbitrary.
const WORDS: usize = 12;

/// Returns up to three other memories about the lines: notes and messages of a person that have most of the words of the
/// lines, and that no group quotes. The session `without` gives none.
pub async fn found(
    project: &OpenProject,
    groups: &[Group],
    explained: &[Explained],
    without: Option<SessionId>,
) -> Result<Vec<Other>> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut words: Vec<String> = Vec::new();
    for line in groups.iter().flat_map(|group| &group.lines).map(|line| line.text.as_str()) {
        for word in tiro_text::words::identifiers(line) {
            let is_plain = word.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
            if words.len() < WORDS && is_plain && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
    }
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let query = words.join(" ");
    let kinds = vec![Kind::Message, Kind::Fact, Kind::Decision, Kind::Document];
    let filter = Filter { kinds: Some(kinds), without, ..Filter::default() };
    let places = [(store, scope)];
    let found = retrieve::search(&places, &Encoders::default(), &query, &filter, &Weights::default()).await?;
    let best = found.ranked.iter().take(4 * OTHERS).map(|hit| (hit.place.key, hit.chunk)).collect();
    let shown = store.shown(scope, best).await?;
    let texts: Vec<String> = shown.iter().map(|shown| shown.memory.text.clone()).collect();
    let shares = store.shares(scope, found.terms, found.rarity, texts).await?;
    let quoted: HashSet<&str> =
        explained.iter().flat_map(|group| &group.reasons).map(|reason| reason.open.as_str()).collect();
    let terms: BTreeSet<String> = query::terms(&query).into_iter().collect();
    let has = |text: &str| query::terms(text).iter().filter(|word| terms.contains(*word)).count();
    let mut others = Vec::new();
    for (shown, share) in shown.iter().zip(shares) {
        let memory = &shown.memory;
        let open = open(memory);
        let is_said = memory.role.is_none_or(|role| role == Role::User);
        if !is_said || quoted.contains(open.as_str()) || !is_near(share, None) {
            continue;
        }
        let piece = memory.text.get(shown.chunk.start..shown.chunk.end).unwrap_or_default();
        // Of what a person says, logs and other texts that were pasted don't count.
        let sentences = match memory.role {
            Some(_) => own_words(piece),
            None => tiro_text::blocks::quotable(piece),
        };
        let prose = sentences.iter().filter(|sentence| is_prose(&sentence.text));
        let Some(sentence) = prose.max_by_key(|sentence| has(&sentence.text)) else { continue };
        if has(&sentence.text) < 2 {
            continue;
        }
        others.push(Other {
            text: escaped(&beginning_in_bytes(&sentence.text, LONGEST_OTHER)),
            kind: memory.kind.as_str(),
            author: memory.author.other_than(&scope.reader),
            time: minute(memory.time),
            open,
        });
        if others.len() == OTHERS {
            break;
        }
    }
    Ok(others)
}
