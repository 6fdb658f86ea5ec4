//! Stores a summary that the calling agent wrote, in place of making one.

use std::sync::Arc;

use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use crate::summaries::keep::{cached, keep};
use crate::summaries::messages::{self, blocking, count};
use crate::summaries::wanted::{Made, Wanted};
use tiro_base::envelope;
use tiro_base::error::{Error, Result};
use tiro_digest::summarize;
use tiro_store::SummaryRow;

/// The provider of a summary that the agent wrote, and its model. They are not known, since the agent is the caller.
pub const AGENT: &str = "agent";

/// The maximum number of bytes of wrong words that an error quotes. Arbitrary.
const QUOTED: usize = 300;

/// Checks the agent's summary in the same way as a model's, and stores it as a version of its range. Later calls for the
/// same messages and level return it, and ask no model.
///
/// `wanted` has the usual length and no focus. Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the
/// summary is too long or fails a check; the error says which, and nothing is stored.
pub async fn given(
    engine: &Engine,
    project: &WritableProject,
    wanted: &Wanted,
    summary: &str,
) -> Result<Made> {
    let began = engine.now();
    // A secret has the same mark as in the messages.
    let redactor = project.redactor.within(&format!("session {}", wanted.session));
    let text = redactor.redact(summary.trim()).text.into_owned();
    let counted = text.clone();
    let (tokens, most) = (blocking(move || count(&counted)).await?, summarize::longest(wanted.level));
    if tokens > most {
        let level = wanted.level;
        return Err(Error::bad_input(format!(
            "`summary` has {tokens} tokens; at level {level} it may have {most}"
        ))
        .hint("nothing was stored; shorten it, or use a more detailed level"));
    }
    let texts = Arc::new(messages::texts(project, &wanted.rows).await?);
    let (judged, read) = (text.clone(), Arc::clone(&texts));
    let (verdict, cited) = blocking(move || {
        let sources = messages::sources(&read);
        (summarize::judge(&judged, &sources), summarize::cite(&judged, &sources))
    })
    .await?;
    if !verdict.accepts() {
        let wrong = verdict.wrong.join("; ");
        let wrong = envelope::one_line(&wrong[..wrong.floor_char_boundary(QUOTED)]);
        let wrong = if wrong.is_empty() { String::new() } else { format!(": {wrong}") };
        return Err(Error::bad_input(format!("`summary` {}{wrong}", verdict.fault))
            .hint("nothing was stored; correct it, or leave `summary` out"));
    }
    let mut made = Made {
        id: None,
        text: messages::without_damaged(text, &texts),
        tokens,
        provider: AGENT.into(),
        model: AGENT.into(),
        quality: verdict.quality,
        cited,
        cost_usd: 0.0,
        is_kept: false,
        is_silent: false,
        notices: Vec::new(),
    };
    made.id = keep(engine, project, wanted, &made, began).await?;
    if made.id.is_none() {
        return Err(Error::not_found("messages were forgotten while the summary was checked")
            .hint("nothing was stored; write it again without them"));
    }
    if verdict.is_partial {
        made.notices.push(PARTLY_CHECKED.to_owned());
    }
    Ok(made)
}

/// Returns the summary if an agent wrote it, or if it is cached under `key`.
pub async fn known(
    engine: &Engine,
    project: &OpenProject,
    wanted: &Wanted,
    key: [u8; 32],
) -> Result<Option<Made>> {
    match by_agent(project, wanted).await? {
        None => cached(engine, project, key).await,
        made => Ok(made),
    }
}

/// Returns the stored summary of the same messages and level that an agent wrote, if there is one.
pub async fn by_agent(project: &OpenProject, wanted: &Wanted) -> Result<Option<Made>> {
    if wanted.max_tokens.is_some() || !wanted.focus.is_empty() {
        return Ok(None);
    }
    let hash = wanted.hash();
    let rows = project.store.summaries(&project.scope, &wanted.session, Some(wanted.level)).await?;
    let is_it = |row: &SummaryRow| {
        row.summary.provider == AGENT && row.summary.segment.is_none() && row.summary.source_hash == hash
    };
    Ok(rows.into_iter().find(is_it).map(|SummaryRow { id, summary, .. }| Made {
        id: Some(id.to_string()),
        text: summary.text,
        tokens: usize::try_from(summary.tokens).unwrap_or(0),
        provider: summary.provider,
        model: summary.model,
        quality: summary.quality,
        cited: summary.cited,
        cost_usd: 0.0,
        is_kept: true,
        is_silent: false,
        notices: Vec::new(),
    }))
}

/// The notice for a summary of which only names and numbers could be checked.
pub const PARTLY_CHECKED: &str =
    "the summary is in another language than the messages: only its names and numbers were checked";
