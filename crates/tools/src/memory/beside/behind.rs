//! Finds the conversations that led to the commits on a page of hits. For each conversation, returns the name, the
//! argument that opens it, and the message that answers the query best.

use crate::common::beginning_in_bytes;
use crate::memory::beside::linked::LONGEST_TITLE;
use crate::memory::hits::{Behind, BehindMessage};
use tiro_base::envelope;
use tiro_base::error::{Error, Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, Role, marked};
use tiro_base::scope::{AuthorId, Scope, SessionId, Sessions};
use tiro_base::times::day;
use tiro_embed::Encoders;
use tiro_host::project::OpenProject;
use tiro_recall::retrieve;
use tiro_recall::retrieve::rank::{Ranked, Weights};
use tiro_store::{BehindRow, ShownMemory};

/// If the first search found no message of a conversation, the conversation is searched a second time. This is done for
/// at most this many conversations of a page. Arbitrary.
const SEARCHED: usize = 3;

/// The data for searching some conversations again: the query of the search and its embedder.
pub struct Question<'a> {
    /// The words of the question.
    pub query: &'a str,
    /// The encoders of the question.
    pub encoders: &'a Encoders<'a>,
}

/// For each hit in `shown`, returns the conversation that most likely led to it. Returns `None` for a hit that isn't a
/// commit, or to which no conversation led. The conversation comes with its best answering message, unless the page
/// shows this message as a hit. `ranked` are all hits of the search, including those of other pages. If the messages
/// can't be searched, a notice is added to `notices`.
pub async fn conversations(
    project: &OpenProject,
    question: Question<'_>,
    shown: &[(&Ranked, ShownMemory, &'static str)],
    ranked: &[Ranked],
    notices: &mut Vec<String>,
) -> Result<Vec<Option<Behind>>> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut rows: Vec<Option<BehindRow>> = Vec::with_capacity(shown.len());
    let mut confidences = Vec::with_capacity(shown.len());
    for (ranked, found, _) in shown {
        let conversations = found.conversations.clone();
        let row = match conversations.is_empty() || ranked.store != 0 {
            true => None,
            false => store.behind(scope, conversations, found.memory.time).await?.into_iter().next(),
        };
        let is_it = |session: &&SessionId| row.as_ref().is_some_and(|row| row.session == **session);
        let place = found.conversations.iter().position(|session| is_it(&session));
        confidences.push(place.and_then(|place| found.confidences.get(place)).copied().unwrap_or_default());
        rows.push(row);
    }
    let missing = |row: &&BehindRow| best(ranked, row).is_none();
    let mut missing: Vec<SessionId> =
        rows.iter().flatten().take(SEARCHED).filter(missing).map(|row| row.session.clone()).collect();
    missing.sort_unstable();
    missing.dedup();
    let more = match missing.is_empty() {
        true => Vec::new(),
        false => {
            let scope = Scope { sessions: Sessions::Only(missing), ..scope.clone() };
            let filter = Filter { kinds: Some(vec![Kind::Message]), ..Filter::default() };
            let Question { query, encoders } = question;
            let places = [(store, &scope)];
            match retrieve::search(&places, encoders, query, &filter, &Weights::default()).await {
                Ok(found) => {
                    notices.extend(found.notices.into_iter().filter(|notice| partial::is(notice)));
                    found.ranked
                }
                Err(error) => {
                    let missing = "the conversations behind commits were not searched";
                    notices.push(partial::notice(Error::new(error.kind(), missing).source(error)));
                    Vec::new()
                }
            }
        }
    };
    let mut all = Vec::with_capacity(rows.len());
    for (row, confidence) in rows.into_iter().zip(confidences) {
        let Some(row) = row else {
            all.push(None);
            continue;
        };
        let best = best(ranked, &row).or(best(&more, &row));
        all.push(Some(Behind { confidence, ..behind(project, shown, best, row).await? }));
    }
    Ok(all)
}

/// Returns the best hit in `ranked` that is a message of the conversation `row`.
fn best<'a>(ranked: &'a [Ranked], row: &BehindRow) -> Option<&'a Ranked> {
    let is_of = |hit: &&Ranked| {
        hit.store == 0 && hit.place.kind == Kind::Message && hit.place.session == Some(row.key)
    };
    ranked.iter().find(is_of)
}

async fn behind(
    project: &OpenProject,
    shown: &[(&Ranked, ShownMemory, &'static str)],
    best: Option<&Ranked>,
    row: BehindRow,
) -> Result<Behind> {
    let BehindRow { session, title, time, ordinal, .. } = row;
    let is_shown = |best: &Ranked| shown.iter().any(|(other, ..)| other.place.id == best.place.id);
    let said = match best.filter(|best| !is_shown(best)) {
        None => None,
        Some(best) => {
            let found = project.store.shown(&project.scope, vec![(best.place.key, best.chunk)]).await?.pop();
            found.map(|found| message_of(&found, &project.scope.reader))
        }
    };
    let escaped = |text: &str| envelope::escape(text).into_owned();
    let (time, ordinal) =
        best.map_or((time, ordinal), |best| (best.place.time, best.place.ordinal.unwrap_or(ordinal)));
    Ok(Behind {
        title: title
            .map(|title| escaped(&beginning_in_bytes(title.trim(), LONGEST_TITLE)))
            .filter(|title| !title.is_empty()),
        date: day(time),
        confidence: 0.0,
        open: format!("{}#{ordinal}", escaped(session.as_str())),
        session_id: escaped(session.as_str()),
        said,
    })
}

fn message_of(ShownMemory { memory, chunk, .. }: &ShownMemory, reader: &AuthorId) -> BehindMessage {
    let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default();
    let text = marked(piece.trim().to_owned(), memory.is_damaged);
    let (speaker, author) = (speaker(memory), memory.author.other_than(reader));
    BehindMessage { speaker, author, text: envelope::escape(&text).into_owned() }
}

/// Returns the speaker of a message or the author of a commit, escaped.
pub fn speaker(memory: &Memory) -> Option<String> {
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str));
    name.map(|name| envelope::escape(name).into_owned())
}
