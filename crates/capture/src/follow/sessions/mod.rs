//! Imports the sessions that a client recorded as transcripts.

mod accounting;
mod gone;
pub mod imported;
mod search;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clients::Client;
use crate::clients::transcripts;
use crate::follow::cursor::Cursor;
use crate::follow::link::{WorkTrees, link_span};
use crate::follow::reading::Importer;
use crate::follow::share::FoundBy;
use crate::sources::Sources;
use tiro_base::error::Result;
use tiro_intake::{Intake, ReadIntake};

pub use self::accounting::Account;
pub use self::imported::Imported;
pub use self::search::{Keep, Search, search};

use self::accounting::{Candidate, Why};

/// The maximum number of nested forks that are put in order. Arbitrary.
const DEEPEST_FORK: usize = 16;

/// The arguments of `tiro import CLIENT`.
#[derive(Debug)]
pub struct Args {
    /// The client that wrote the transcripts.
    pub client: Client,
    /// The transcripts to import. If there are none, all transcripts of the project are imported.
    pub transcripts: Vec<PathBuf>,
    /// The time that the import may take. The next import continues where this one stops. `None` means that there is no
    /// limit.
    pub patience: Option<Duration>,
}

/// Reads the new lines of the project's transcripts and stores their entries. `registered` are the roots of the other
/// projects. `progress` is called with the number of bytes done and the total.
///
/// An interrupted import can simply be repeated, because an entry gets the same id each time.
pub async fn import(
    (sources, intake): (&Sources, &dyn Intake),
    registered: &[PathBuf],
    args: Args,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Imported> {
    let began = Instant::now();
    let mut work_trees = WorkTrees::of(sources);
    let is_named = !args.transcripts.is_empty();
    let (mut account, mut others, mut sessions) = (None, Vec::new(), HashSet::new());
    let mut found = if is_named {
        named(args.transcripts)?
    } else {
        let known = (sources, Some(intake as &dyn ReadIntake));
        let search =
            search(known, args.client, registered, &mut work_trees, Keep::Yes, &mut progress).await?;
        (account, others, sessions) = (Some(search.account), search.others, search.sessions);
        search.found
    };
    originals_first(&mut found);
    let mut importer = Importer::new(sources, intake, &work_trees);
    importer.others = &others;
    if found.is_empty() {
        let notice = format!("no session of {} ran in this project", args.client.name());
        importer.output.notices.push(notice);
    }

    let all: u64 = found.iter().map(|each| each.bytes).sum();
    let mut done = 0;
    // A transcript that the user names is imported as a whole, even if its session ran in another project.
    let found_by = if is_named { FoundBy::Name } else { FoundBy::Search };
    for transcript in &found {
        let left = args.patience.map(|patience| patience.saturating_sub(began.elapsed()));
        let mut show = |read| progress(done + read, all);
        let followed = importer.follow((args.client, &transcript.path, found_by), left, &mut show).await;
        if let Some(account) = account.as_mut().filter(|_| transcript.unread > 0) {
            correct(account, (sources, intake), transcript, followed.is_ok()).await;
        }
        if let Err(error) = followed {
            // An unreadable transcript doesn't stop the others from being read.
            importer.output.failed.push(error.to_string());
        }
        done += transcript.bytes;
        progress(done, all);
    }
    if let Some(path) =
        sources.machine.clients()?.prompts(args.client).filter(|path| !is_named && path.exists())
    {
        match importer.follow_prompts(&path, &sessions).await {
            Ok(prompts) => importer.output.prompts = prompts,
            Err(error) => importer.output.failed.push(error.to_string()),
        }
    }
    let Importer { mut output, span, .. } = importer;
    output.account = account.map(|account| Account { is_done: true, ..account });
    output.commits_linked = link_span((sources, intake), &work_trees, &span, args.patience).await?;
    Ok(output)
}

/// Sorts sessions so that an original comes before its forks. Then the repeated entries get the session and the time of
/// the original.
fn originals_first(found: &mut [Candidate]) {
    let stem =
        |path: &Path| transcripts::plain(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let unread = found.iter().filter(|each| each.unread > 0);
    let parents: Vec<(String, Option<String>)> =
        unread.map(|each| (stem(&each.path), transcripts::forked_from(&each.path))).collect();
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
    // Codex names a file after the time of the session.
    found.sort_by_cached_key(|each| (depth(&each.path), stem(&each.path), each.path.clone()));
}

/// Corrects the account for a transcript that was read, or that could not be read.
async fn correct(
    account: &mut Account,
    (sources, intake): (&Sources, &dyn ReadIntake),
    transcript: &Candidate,
    is_read: bool,
) {
    let path = &transcript.path;
    if !is_read {
        account.take_back(transcript);
        account.leave_out(Why::Unreadable, &path.to_string_lossy(), path);
    } else if !transcript.is_certain
        && Cursor::read(&sources.redactor, intake, path).await.is_ok_and(|read| !read.has_any)
    {
        account.take_back(transcript);
        account.elsewhere += 1;
    }
}

/// Returns the transcripts that the user named.
pub fn named(paths: Vec<PathBuf>) -> Result<Vec<Candidate>> {
    let found = paths.into_iter().map(|path| {
        let bytes = transcripts::around(&path, 0, 0)?.0;
        let path = path.canonicalize().unwrap_or(path);
        Ok(Candidate { path, bytes, unread: bytes, is_certain: true })
    });
    found.collect()
}
