//! Finds the noted memories that a new text may repeat, add to or contradict. The agent that stores the text decides
//! which of these it is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::beginning;
use crate::memory::authors::with_author;
use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind, MemoryId, Provenance, marked};
use tiro_base::scope::{AuthorId, Scope};
use tiro_digest::statements;
use tiro_embed::Encoders;
use tiro_recall::retrieve;
use tiro_recall::retrieve::rank::{Ranked, Weights, is_near};
use tiro_recall::tuning::ranking::SAME_SUBJECT_COSINE;
use tiro_store::{ReadStore, ShownMemory};
use tiro_text::chunk::excerpt::Shown;

/// The maximum number of memories that are shown. Arbitrary.
const MOST: usize = 3;

/// The number of the best hits that are examined. Arbitrary.
const EXAMINED: usize = 10;

/// The maximum number of tokens that are shown of a memory. Arbitrary: about two sentences.
const SHOWN_TOKENS: usize = 60;

/// A memory that is near the new text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Near {
    /// The memory's id.
    pub id: String,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its text, or the beginning.
    pub text: String,
    /// The first line of its excerpt: id, kind, time.
    #[serde(skip)]
    head: String,
}

/// Returns the noted memories of the store that are near `text`, best first. Those in `settled`, extracted ones and
/// superseded ones are left out, except those in `corrected`, which the text itself supersedes.
pub async fn near(
    (store, scope): (&dyn ReadStore, &Scope),
    encoders: &Encoders<'_>,
    text: &str,
    settled: &[MemoryId],
    corrected: &[MemoryId],
) -> Result<Vec<Near>> {
    let noted = Kind::ALL.iter().copied().filter(|kind| kind.group() == Group::Note);
    let filter = Filter { kinds: Some(noted.collect()), ..Filter::default() };
    let found = retrieve::search(&[(store, scope)], encoders, text, &filter, &Weights::default()).await?;
    let is_open = |ranked: &&Ranked| {
        let is_superseded = found.superseded.contains_key(&(0, ranked.place.key));
        !settled.contains(&ranked.place.id) && (!is_superseded || corrected.contains(&ranked.place.id))
    };
    let hits: Vec<&Ranked> = found.ranked.iter().filter(is_open).take(EXAMINED).collect();
    let wanted = hits.iter().map(|ranked| (ranked.place.key, ranked.chunk)).collect();
    let shown = store.shown(scope, wanted).await?;
    let searched =
        |shown: &ShownMemory| retrieve::searched_text(&shown.memory, shown.chunk.start..shown.chunk.end);
    let texts = shown.iter().map(searched).collect();
    // Every word counts the same: in a small store, the words of the text that nobody used before would be the rare ones.
    let same = vec![1.0; found.terms.len()];
    let shares = store.shares(scope, found.terms, same, texts).await?;
    let (words, subject) = (statements::stems(text), statements::first_stem(text));
    let near = shown.iter().zip(shares).filter(|(shown, share)| {
        let cosine = hits[shown.place].cosine;
        let is_about_same = statements::are_alike(&words, &statements::stems(&shown.memory.text))
            || cosine.is_some_and(|cosine| cosine >= SAME_SUBJECT_COSINE)
                && statements::first_stem(&shown.memory.text) == subject;
        shown.memory.provenance != Provenance::Derived && (is_near(*share, cosine) || is_about_same)
    });
    Ok(near.take(MOST).map(|(shown, _)| of(shown, &scope.reader)).collect())
}

fn of(ShownMemory { memory, chunk, .. }: &ShownMemory, reader: &AuthorId) -> Near {
    let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default().trim();
    let shown = beginning(piece, SHOWN_TOKENS);
    let more = if shown.len() < memory.text.trim().len() { " …" } else { "" };
    let text = marked(format!("{shown}{more}"), memory.is_damaged);
    let author = memory.author.other_than(reader);
    let head = with_author(Shown::of_memory(memory).line(), author.as_deref());
    Near { id: memory.id.to_string(), author, text: envelope::escape(&text).into_owned(), head }
}

/// Returns `near` as text: the memories in an envelope, then how to say that one of them no longer holds. This invitation
/// is left out if the new text already supersedes all of them.
pub fn text(near: &[Near], superseded: &[String], secret: &[u8; 32]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let body = near.iter().map(|near| format!("{}{}\n", near.head, envelope::quoted(&near.text)));
    let ids: Vec<String> = near.iter().map(|near| format!("`{}`", near.id)).collect();
    let wrapped = envelope::wrap(secret, &body.collect::<String>());
    let invitation = match near.iter().all(|near| superseded.contains(&near.id)) {
        true => "",
        false => "If one of them no longer holds, store the new text again with its id in `supersedes`.",
    };
    format!(" Near it: {}.\n{wrapped}{invitation}", ids.join(", "))
}
