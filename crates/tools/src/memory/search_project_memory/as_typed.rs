//! Searches while a person types. The answer must come within hundredths of a second, so it leaves out everything that
//! needs more than the stores: it imports nothing, waits for no model, and compares nothing with git.

use std::sync::Arc;

use super::{Args, Hit, filter, hide_expired, narrowed, read_shown, within};
use crate::memory::hits::from_memory::hit;
use tiro_base::error::Result;
use tiro_base::memory::Content;
use tiro_base::scope::{Scope, Sessions};
use tiro_embed::{Encode, Encoders, Local};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::Standing;
use tiro_recall::retrieve;
use tiro_recall::retrieve::rank::{Ranked, Weights};
use tiro_store::ReadStore;

/// How many words that begin with the last one are searched for. Arbitrary.
const COMPLETIONS: usize = 3;

/// The least number of bytes of a word that is completed. Shorter ones begin too many words.
const LEAST_BYTES: usize = 2;

/// The hits that are shown if `k` is left out. Arbitrary: as many as a person sees at once.
const SHOWN: usize = 8;

/// Returns the best hits, best first. They lack their standing, the conversations behind commits, and titles. The
/// arguments `max_tokens` and `cursor` are ignored.
///
/// The last word may not be complete yet, so the words that begin with it are searched for, too.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Vec<Hit>> {
    let query = args.query.trim_start();
    if query.trim().is_empty() {
        return Ok(Vec::new());
    }
    let k = within("k", args.k.unwrap_or(SHOWN), 1, super::MOST_HITS)?;
    let project = caller.project(engine).await?;
    let installation = engine.installation().await?;
    let (scope, _) = narrowed(&project.scope, &project.redactor, args.sessions.as_deref())?;
    let (filter, _) = filter(&args, engine.now())?;
    let owners = &installation.registry;
    let owners_scope = project.scope.owner_wide();
    let mut places: Vec<(&dyn ReadStore, &Scope)> = vec![(project.store.as_ref(), &scope)];
    if scope.sessions == Sessions::All {
        places.push((owners.memories().as_ref(), &owners_scope));
    }
    // Only a model that another call loaded is used.
    let loaded = engine.loaded_embedders();
    let encoder = |content| -> Option<Arc<dyn Encode>> {
        let embedder = match content {
            Content::Prose => loaded.prose.clone(),
            Content::Code => loaded.code.clone(),
        };
        Some(Arc::new(Local(embedder?)))
    };
    let encoders = match (&loaded.prose, &loaded.code) {
        (Some(prose), Some(code)) if Arc::ptr_eq(prose, code) => Encoders::one(encoder(Content::Prose)),
        _ => Encoders::two(encoder(Content::Prose), encoder(Content::Code)),
    };
    let completed = completed(&places, query).await?;
    let mut found = retrieve::search(&places, &encoders, &completed, &filter, &Weights::default()).await?;
    hide_expired(engine, &project, &filter, &mut found.ranked).await?;
    project.keep_current_documents(&mut found.ranked).await?;
    let page: Vec<&Ranked> = found.ranked.iter().take(k).collect();
    let shown = read_shown(&places, &page).await?;
    let hits = shown.into_iter().enumerate().map(|(rank, (ranked, shown, scope))| {
        let parts = ranked.parts;
        let hit = hit((rank, ranked, parts), shown, scope, Standing::UNKNOWN, None, caller.author());
        Hit { ranking: None, ..hit }
    });
    Ok(hits.collect())
}

/// Returns `query` with the most frequent words that begin with its last word. If a space follows this word, it is
/// complete.
async fn completed(places: &[(&dyn ReadStore, &Scope)], query: &str) -> Result<String> {
    let last = query.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let mut completed = query.to_owned();
    if last.len() >= LEAST_BYTES {
        for (store, scope) in places {
            for word in store.completions(scope, &last, COMPLETIONS).await? {
                completed.push(' ');
                completed += &word;
            }
        }
    }
    Ok(completed)
}
