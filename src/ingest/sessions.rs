//! Imports the sessions that a client keeps as transcripts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::clients::transcripts;
use crate::clients::{Client, Places};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ingest::link::{Place, link_span};
use crate::ingest::pointer;
use crate::ingest::reading::Importer;
use crate::ingest::share::FoundBy;
use crate::summaries::sessions;

pub use crate::ingest::imported::Imported;

/// The longest time that an import spends on summaries of the imported sessions. The idle server and `tiro index` make
/// the remaining summaries.
const SUMMARISING: Duration = Duration::from_secs(1);

/// The most forks of forks that are put in order. Arbitrary.
const DEEPEST_FORK: usize = 16;

/// The arguments of `tiro import claude-code|codex|gemini`.
#[derive(Debug)]
pub struct Args {
    /// The client that wrote the transcripts.
    pub client: Client,
    /// The transcripts to import. If there are none, all transcripts of the project are imported.
    pub transcripts: Vec<PathBuf>,
    /// How long the import may take; the next import continues where it stops. `None` means that there is no limit.
    pub patience: Option<Duration>,
}

/// Reads the new lines of the project's transcripts and stores their entries. `progress` is called with the number of
/// bytes done and the total.
///
/// An interrupted import can simply be repeated, because an entry gets the same id each time.
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
    let mut found = find(engine, &place, args.client, args.transcripts)?;
    originals_first(&mut found);
    if found.is_empty() {
        let notice = format!("no session of {} ran in this project", args.client.name());
        importer.output.notices.push(notice);
    }

    let all: u64 = found.iter().map(|each| each.bytes).sum();
    let mut done = 0;
    // A transcript that the user names is imported whole, even if its session ran in another project.
    let found_by = if is_named { FoundBy::Name } else { FoundBy::Search };
    for transcript in &found {
        let left = args.patience.map(|patience| patience.saturating_sub(began.elapsed()));
        let mut show = |read| progress(done + read, all);
        let followed = importer.follow((args.client, &transcript.path, found_by), left, &mut show);
        if let Err(error) = followed.await {
            // An unreadable transcript doesn't stop the others from being read.
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

/// Puts a session before its forks, so that what they repeat gets the session and the time of the original.
fn originals_first(found: &mut [transcripts::Found]) {
    let stem =
        |path: &Path| transcripts::plain(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parents: Vec<(String, Option<String>)> =
        found.iter().map(|each| (stem(&each.path), transcripts::forked_from(&each.path))).collect();
    let depth = |path: &Path| {
        let (mut name, mut depth) = (stem(path), 0);
        // The name of a transcript ends with the id of its session.
        while let Some((_, Some(parent))) = parents.iter().find(|(each, _)| each.ends_with(&name))
            && depth < DEEPEST_FORK
        {
            (name, depth) = (parent.clone(), depth + 1);
        }
        depth
    };
    // Codex names a file after its time.
    found.sort_by_cached_key(|each| (depth(&each.path), stem(&each.path), each.path.clone()));
}

/// Returns the transcripts that the user named, or if none is named, those of the project.
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

/// Returns the folders where clients keep their files. Fails if there is no home directory.
pub(crate) fn places(engine: &Engine) -> Result<Places> {
    engine.config().clients.clone().ok_or_else(|| {
        Error::bad_input("there is no home directory, so clients can't be found").hint("set HOME")
    })
}
