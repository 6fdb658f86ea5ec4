//! The conversations behind the commits that a search found: what each is called, how it is opened, and what of it
//! answers best.

use std::sync::Arc;

use crate::assembly::passages::day;
use crate::embed::Embedder;
use crate::envelope;
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Kind, Memory, Role};
use crate::project::OpenProject;
use crate::retrieve;
use crate::retrieve::rank::{Ranked, Weights};
use crate::scope::{Scope, SessionId, Sessions};
use crate::store::{BehindRow, ShownMemory};
use crate::tools::common::beginning::beginning_in_bytes;
use crate::tools::memory::hits::{Behind, Said};
use crate::tools::memory::linked::LONGEST_TITLE;

/// Commits of a page whose conversations are searched, where the search had nothing of them. Arbitrary.
const SEARCHED: usize = 3;

/// A question, to be asked again of some conversations.
pub(crate) struct Question<'a> {
    pub query: &'a str,
    pub embedder: Option<Arc<Embedder>>,
}

/// Returns for each of `shown` the likeliest conversation behind it, with the message that answers best where that isn't
/// shown itself; none for what is no commit. `ranked` is all that was found.
pub(crate) async fn conversations(
    project: &OpenProject,
    question: Question<'_>,
    shown: &[(&Ranked, ShownMemory, &'static str)],
    ranked: &[Ranked],
) -> Result<Vec<Option<Behind>>> {
    let (store, scope) = (&project.store, &project.scope);
    let mut rows: Vec<Option<BehindRow>> = Vec::with_capacity(shown.len());
    let mut confidences = Vec::with_capacity(shown.len());
    for (_, found, _) in shown {
        let named = found.conversations.clone();
        let row = match named.is_empty() {
            true => None,
            false => store.behind(scope, named, found.memory.time).await?.into_iter().next(),
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
            let Question { query, embedder } = question;
            let places = [(store, &scope)];
            retrieve::search(&places, embedder, query, &filter, &Weights::default()).await?.ranked
        }
    };
    let mut behind = Vec::with_capacity(rows.len());
    for (row, confidence) in rows.into_iter().zip(confidences) {
        let Some(row) = row else {
            behind.push(None);
            continue;
        };
        let best = best(ranked, &row).or(best(&more, &row));
        behind.push(Some(Behind { confidence, ..one(project, shown, best, row).await? }));
    }
    Ok(behind)
}

/// Returns the best message of the conversation among what was found.
fn best<'a>(ranked: &'a [Ranked], row: &BehindRow) -> Option<&'a Ranked> {
    let is_of = |hit: &&Ranked| {
        hit.store == 0 && hit.place.kind == Kind::Message && hit.place.session == Some(row.seq)
    };
    ranked.iter().find(is_of)
}

async fn one(
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
            let found = project.store.shown(&project.scope, vec![(best.place.seq, best.chunk)]).await?.pop();
            found.map(|found| said(&found))
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

fn said(ShownMemory { memory, chunk, .. }: &ShownMemory) -> Said {
    let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default();
    Said { speaker: speaker(memory), text: envelope::escape(piece.trim()).into_owned() }
}

/// Returns who speaks or committed, as an answer names them.
pub(crate) fn speaker(memory: &Memory) -> Option<String> {
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str));
    name.map(|name| envelope::escape(name).into_owned())
}
