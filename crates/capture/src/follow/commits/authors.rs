//! Updates the author names of stored commits.
//!
//! A commit is stored with the name that `.mailmap` gives its author. If `.mailmap` changes later, the names of the
//! stored commits are updated in bounded steps. Texts, ids and times stay the same.

use std::sync::Arc;
use std::time::Instant;

use super::import;
use crate::follow::in_time::in_time;
use crate::sources::Sources;
use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryKey};
use tiro_git::{Author, Mailmap, Sha};
use tiro_intake::Intake;
use tiro_intake::prepare::shown_tokens;
use tiro_redact::Redactor;
use tiro_store::{AuthorRow, ChunkRange, Renamed};

/// The name of the import cursor that identifies the mailmap from which the names of all stored commits were taken.
const MAILMAP: &str = "git mailmap";

/// The number of commits that one step checks. Arbitrary: reading the authors of this many commits takes only some
/// milliseconds.
const STEP: usize = 500;

/// Gives the stored commits the names of the current `.mailmap`, the newest commits first. Stops at the time `until`.
/// Returns whether all commits have these names now.
pub async fn follow(sources: &Sources, intake: &dyn Intake, until: Option<Instant>) -> Result<bool> {
    let Some(repository) = sources.repository.clone() else { return Ok(true) };
    let read = in_time(until, move |_| repository.mailmap()).await;
    let Some(mailmap) = read.map(Arc::new) else { return Ok(false) };
    let named_by = intake.cursor(MAILMAP).await?.unwrap_or_default();
    if named_by == mailmap.stamp {
        return Ok(true);
    }
    let mut before = None;
    loop {
        let rows = intake.commit_authors(before, STEP).await?;
        let Some(last) = rows.last() else { break };
        before = Some(last.key);
        if !step((sources, intake), rows, &mailmap, until).await?
            || until.is_some_and(|until| Instant::now() >= until)
        {
            return Ok(false);
        }
    }
    intake.keep_cursor(MAILMAP, &mailmap.stamp).await?;
    Ok(true)
}

/// Renames the authors of some commits. Returns false if git took too long.
async fn step(
    (sources, intake): (&Sources, &dyn Intake),
    rows: Vec<AuthorRow>,
    mailmap: &Arc<Mailmap>,
    until: Option<Instant>,
) -> Result<bool> {
    let Some(repository) = sources.repository.clone() else { return Ok(true) };
    let rows: Vec<(AuthorRow, Sha)> =
        rows.into_iter().filter_map(|row| row.sha.parse().ok().map(|sha| (row, sha))).collect();
    let (shas, mailmap): (Vec<Sha>, _) = (rows.iter().map(|(_, sha)| *sha).collect(), Arc::clone(mailmap));
    let authors = in_time(until, move |stop| repository.authors(&shas, &mailmap, stop)).await;
    let Some(authors) = authors.filter(|authors| authors.len() == rows.len()) else { return Ok(false) };
    let named = rows.into_iter().zip(authors).filter_map(|((row, _), author)| {
        let author = redacted(author?, &sources.redactor);
        (row.author.unwrap_or_default() != author.name).then_some((row.key, author))
    });
    let named: Vec<(MemoryKey, Author)> = named.collect();
    if named.is_empty() {
        return Ok(true);
    }
    let keys: Vec<MemoryKey> = named.iter().map(|(key, _)| *key).collect();
    let memories = intake.memories(keys).await?;
    let of = |key: MemoryKey| named.iter().find(|(each, _)| *each == key).map(|(_, author)| author.clone());
    let work: Vec<(Memory, Author, Vec<ChunkRange>)> = memories
        .into_iter()
        .filter_map(|(memory, chunks)| {
            let author = of(memory.key)?;
            Some((memory, author, chunks))
        })
        .collect();
    let renamed =
        tokio::task::spawn_blocking(move || work.into_iter().map(renamed).collect::<Vec<Renamed>>());
    intake.rename_authors(renamed.await.expect("naming does not panic")).await?;
    Ok(true)
}

fn redacted(author: Author, redactor: &Redactor) -> Author {
    let clean = |name: String| redactor.redact(&name).text.into_owned();
    Author { name: clean(author.name), written: author.written.map(clean) }
}

/// Returns the new values for a stored commit whose author has another name now.
fn renamed((mut memory, author, chunks): (Memory, Author, Vec<ChunkRange>)) -> Renamed {
    memory.indexed = memory.indexed.map(|indexed| import::with_written_name(&indexed, &author));
    memory.speaker = Some(author.name).filter(|name| !name.is_empty());
    let tokens = shown_tokens(&memory, &chunks);
    let tokens = chunks.iter().map(|chunk| chunk.key).zip(tokens).collect();
    Renamed { key: memory.key, author: memory.speaker, indexed: memory.indexed, tokens }
}
