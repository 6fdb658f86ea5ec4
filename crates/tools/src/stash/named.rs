//! Reads the names of stored segments: ids, messages, and ranges of messages.

use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize;
use tiro_base::memory::{MemoryId, MemoryKey};
use tiro_base::scope::SessionId;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::summaries::levels;
use tiro_intake::session_id;

/// The maximum number of segments of a call. Arbitrary: as many as are stashed in about a second.
pub(super) const MOST: usize = 10_000;

/// Returns the ids that `texts` name, in their order. A text has the form `m…`, `SESSION#3`, or `SESSION#0-49` for a
/// range of messages. Repetitions stay.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if a message does not exist. Errors with
/// [`BadInput`](tiro_base::error::Kind::BadInput) if a text has none of these forms, or if there are more than
/// [`MOST`].
pub(super) async fn ids(
    engine: &Engine,
    caller: &Caller,
    argument: &str,
    texts: &[String],
) -> Result<Vec<MemoryId>> {
    let mut ids = Vec::with_capacity(texts.len());
    let mut unknown = Vec::new();
    for text in texts {
        match range(engine, caller, argument, text).await? {
            Some((session, first, last)) => {
                let found = messages(engine, caller, &session, first, last).await?;
                if found.is_empty() {
                    unknown.push(quoted(text));
                }
                ids.extend(found);
            }
            None => {
                let (named, missing) =
                    levels::ids(engine, caller, argument, std::slice::from_ref(text)).await?;
                ids.extend(named);
                unknown.extend(missing);
            }
        }
    }
    if !unknown.is_empty() {
        return Err(Error::not_found(format!("no message is called {}", humanize::some(&unknown)))
            .hint("nothing was changed; list_sessions shows the sessions and how many messages they have"));
    }
    if ids.len() > MOST {
        return Err(Error::bad_input(format!("`{argument}` names {} segments, more than {MOST}", ids.len()))
            .hint("nothing was changed; divide them among several calls"));
    }
    Ok(ids)
}

/// Returns the session and the first and last number if `text` is a range of messages.
async fn range(
    engine: &Engine,
    caller: &Caller,
    argument: &str,
    text: &str,
) -> Result<Option<(SessionId, i64, i64)>> {
    let Some((name, numbers)) = text.trim().rsplit_once('#') else { return Ok(None) };
    let Some((first, last)) = numbers.split_once('-') else { return Ok(None) };
    let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) else { return Ok(None) };
    if first > last {
        return Err(Error::bad_input(format!("`{}` ends before it begins", quoted(text)))
            .hint("give the smaller number first, such as SESSION#0-49"));
    }
    let redactor = &caller.project(engine).await?.redactor;
    Ok(Some((session_id(redactor, argument, name)?, first, last)))
}

/// Returns the living messages of the session from the number `first` to `last`.
async fn messages(
    engine: &Engine,
    caller: &Caller,
    session: &SessionId,
    first: i64,
    last: i64,
) -> Result<Vec<MemoryId>> {
    let project = caller.project(engine).await?;
    let rows = project.store.session_messages(&project.scope, session, first).await?;
    Ok(rows.into_iter().take_while(|row| row.ordinal <= last).map(|row| row.id).collect())
}

/// Returns the keys of the memories called `ids`.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if one of them is not a living memory of the project.
pub(super) async fn keys(engine: &Engine, caller: &Caller, ids: &[MemoryId]) -> Result<Vec<MemoryKey>> {
    let project = caller.project(engine).await?;
    let keys = project.store.keys_of(&project.scope, ids.to_vec()).await?;
    let missing: Vec<String> =
        ids.iter().zip(&keys).filter(|(_, key)| key.is_none()).map(|(id, _)| id.to_string()).collect();
    if !missing.is_empty() {
        return Err(Error::not_found(format!("no segment is called {}", humanize::some(&missing)))
            .hint("retrieve_stashed_context lists the stash"));
    }
    Ok(keys.into_iter().flatten().collect())
}
