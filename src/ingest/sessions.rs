//! Imports the sessions that a client keeps as transcripts.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::clients::transcripts;
use crate::clients::{Client, Places};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ingest::link::{Place, link_span};
use crate::ingest::pointer;
use crate::ingest::reading::Importer;
use crate::ingest::share::Whose;
use crate::summaries::sessions;

pub use crate::ingest::imported::Imported;

/// How long an import goes on to make what sessions come down to; an idle server and `tiro index` do the rest.
const SUMMARISING: Duration = Duration::from_secs(1);

/// What `tiro import claude-code|codex|gemini` takes.
#[derive(Debug)]
pub struct Args {
    /// Whose sessions.
    pub client: Client,
    /// These transcripts; all of the project's if there are none.
    pub transcripts: Vec<PathBuf>,
    /// When to stop, leaving the rest to the next time; never if left out.
    pub patience: Option<Duration>,
}

/// Reads what is new in the project's transcripts and stores it; `progress` hears bytes done and all.
///
/// Can be interrupted and repeated: an entry has the same identity each time.
pub(crate) async fn import(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Imported> {
    let project = caller.begin_project(engine).await?;
    let began = Instant::now();
    let place = Place::of(project);
    let mut importer = Importer::new(engine, caller, project, &place);
    let is_named = !args.transcripts.is_empty();
    let found = find(engine, &place, args.client, args.transcripts)?;
    if found.is_empty() {
        let notice = format!("no session of {} was held in this project", args.client.name());
        importer.output.notices.push(notice);
    }

    let all: u64 = found.iter().map(|each| each.bytes).sum();
    let mut done = 0;
    // One that was named is imported whole, wherever it was held.
    let whose = if is_named { Whose::Named } else { Whose::Found };
    for transcript in &found {
        let left = args.patience.map(|patience| patience.saturating_sub(began.elapsed()));
        let mut show = |read| progress(done + read, all);
        let followed = importer.follow((args.client, &transcript.path, whose), left, &mut show);
        if let Err(error) = followed.await {
            // The other transcripts are read all the same.
            importer.output.failed.push(error.to_string());
        }
        done += transcript.bytes;
        progress(done, all);
    }
    let Importer { mut output, span, .. } = importer;
    output.commits_linked = link_span(project, &place, &span, args.patience).await?;
    if output.imported > 0 {
        engine.wrote();
        let left = args.patience.map_or(SUMMARISING, |patience| patience.saturating_sub(began.elapsed()));
        sessions::work_off(engine, caller, left.min(SUMMARISING)).await?;
    }
    pointer::point(engine, project).await?;
    Ok(output)
}

/// Finds the transcripts that were named, else those of the project.
pub(crate) fn find(
    engine: &Engine,
    place: &Place,
    client: Client,
    named: Vec<PathBuf>,
) -> Result<Vec<transcripts::Found>> {
    if named.is_empty() {
        return Ok(transcripts::of_project(&places(engine)?, client, &place.roots()));
    }
    let found = named.into_iter().map(|path| {
        let bytes = transcripts::around(&path, 0, 0)?.0;
        Ok(transcripts::Found { path: path.canonicalize().unwrap_or(path), bytes })
    });
    found.collect()
}

/// Returns where clients keep their files; errors where there is no home directory.
pub(crate) fn places(engine: &Engine) -> Result<Places> {
    engine.config().clients.clone().ok_or_else(|| {
        Error::bad_input("there is no home directory, so clients can't be found").hint("set HOME")
    })
}
