//! Finds the sessions of a project among all transcripts of a client.
//!
//! Each transcript is looked at once (`clients/transcripts/look.rs`). The result is stored, so that the next search
//! only looks at new or changed transcripts. The directories in which a session ran decide to which project it belongs.
//! If the directories no longer exist, the records of moved repositories and removed work trees decide. If these
//! records don't help, git decides (`gone.rs`). A session whose project can't be found is left out and counted.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::accounting::{Account, Candidate, Why};
use super::gone;
use crate::clients::Client;
use crate::clients::transcripts::{self, Listed, Look, Looks, Trees};
use crate::follow::cursor::{Cursor, Read};
use crate::follow::link::WorkTrees;
use crate::follow::share::{Whose, Within};
use crate::sources::Sources;
use tiro_base::error::{Result, quoted};
use tiro_intake::ReadIntake;

/// Whether a search stores its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The search stores its results, so that the next search is faster.
    Yes,
    /// The search changes nothing.
    No,
}

/// The result of a search.
pub struct Search {
    /// The transcripts that belong to the project, wholly or perhaps in part.
    pub found: Vec<Candidate>,
    /// The account of all transcripts. Candidates that are not read yet count as new.
    pub account: Account,
    /// The roots of other projects, including roots that no longer exist.
    pub others: Vec<PathBuf>,
    /// The ids of all sessions, taken from the names of their files.
    pub sessions: HashSet<String>,
}

/// The project to which a session belongs.
enum Belongs {
    Here,
    /// The session ran elsewhere, but may have worked here.
    Perhaps,
    Elsewhere,
    Nowhere,
    Gone(String),
}

/// Searches the transcripts of `client`. `intake` is the memory of the project, if anything of the project is stored.
/// `registered` are the roots of the other projects. The search adds former roots of the project to `work_trees`.
/// `progress` is called with the number of bytes that were looked at and the total.
pub async fn search(
    (sources, intake): (&Sources, Option<&dyn ReadIntake>),
    client: Client,
    registered: &[PathBuf],
    work_trees: &mut WorkTrees,
    keep: Keep,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<Search> {
    let listing = transcripts::of_client(sources.machine.clients()?, client);
    let data_dir = &sources.machine.data_dir;
    let (mut looks, mut trees) = (Looks::of(data_dir, client), Trees::of(data_dir));
    let looked = looks.look_at(&listing.files, progress);
    let id = intake.map(|intake| intake.project().as_str());
    if let Some(id) = id {
        trees.add(&work_trees.roots(), id);
    }
    let (ours, mut others) = trees.gone(id);
    work_trees.formerly.extend(ours);
    others.extend_from_slice(registered);

    let mut sorted = Sorted::new(client);
    sorted.account.seen = listing.files.len() + listing.unreadable.len();
    sorted.account.folders = listing.folders.iter().map(|folder| quoted(folder.display())).collect();
    for path in &listing.unreadable {
        sorted.account.leave_out(Why::Unreadable, &path.to_string_lossy(), path);
    }
    let all: Vec<(&Listed, Result<Look>)> = listing.files.iter().zip(looked).collect();
    sorted.sort(&mut Within::new(sources, work_trees, &others), all.iter());
    let gone = std::mem::take(&mut sorted.gone);
    let proven =
        gone::proven((intake, sources.repository.as_deref()), (client, sources.now()), &gone, &mut trees)
            .await?;
    let is_any_proven = !proven.is_empty();
    work_trees.formerly.extend(proven);
    let mut within = Within::new(sources, work_trees, &others);
    if is_any_proven {
        let names: HashSet<&Path> = gone.values().flatten().map(|each| each.path.as_path()).collect();
        sorted.sort(&mut within, all.iter().filter(|(listed, _)| names.contains(listed.path.as_path())));
    } else {
        sorted.gone = gone;
    }
    for (directory, sessions) in std::mem::take(&mut sorted.gone) {
        sessions.iter().for_each(|each| sorted.account.leave_out(Why::DirectoryGone, &directory, &each.path));
    }
    if keep == Keep::Yes {
        looks.keep().and_then(|()| trees.keep())?;
    }
    let sessions = listing.files.iter().filter_map(|each| each.path.file_stem()?.to_str());
    let sessions = sessions.map(|stem| stem.trim_end_matches(".jsonl").to_owned()).collect();
    let Sorted { mut account, found, .. } = sorted;
    let found = candidates((sources, intake), found, &mut account).await;
    Ok(Search { found, account, others, sessions })
}

/// The transcripts, sorted by the project to which they belong.
struct Sorted<'a> {
    client: Client,
    account: Account,
    /// The transcripts of this project. The flag says whether this is certain.
    found: Vec<(&'a Listed, bool)>,
    /// The transcripts in directories that no longer exist, keyed by the first of these directories.
    gone: BTreeMap<String, Vec<&'a Listed>>,
}

impl<'a> Sorted<'a> {
    fn new(client: Client) -> Sorted<'a> {
        Sorted { client, account: Account::new(client), found: Vec::new(), gone: BTreeMap::new() }
    }

    fn sort<'r>(&mut self, within: &mut Within<'_>, all: impl Iterator<Item = &'r (&'a Listed, Result<Look>)>)
    where
        'a: 'r,
    {
        for (listed, look) in all {
            let path = &listed.path;
            let Ok(look) = look else {
                self.account.leave_out(Why::Unreadable, &path.to_string_lossy(), path);
                continue;
            };
            match belongs(within, self.client, path, look) {
                Belongs::Here => self.found.push((listed, true)),
                Belongs::Perhaps => self.found.push((listed, false)),
                Belongs::Elsewhere => self.account.elsewhere += 1,
                Belongs::Nowhere => self.account.leave_out(Why::NoDirectory, &path.to_string_lossy(), path),
                Belongs::Gone(directory) => self.gone.entry(directory).or_default().push(listed),
            }
        }
    }
}

/// Returns the project to which a session belongs.
fn belongs(within: &mut Within<'_>, client: Client, path: &Path, look: &Look) -> Belongs {
    let recorded =
        transcripts::recorded_directory(client, path).and_then(|it| it.to_str().map(str::to_owned));
    let directories = recorded.map_or_else(|| look.directories.clone(), |directory| vec![directory]);
    let whose: Vec<Whose> = directories.iter().map(|directory| within.whose(directory)).collect();
    if whose.first() == Some(&Whose::Ours) {
        return Belongs::Here;
    }
    let roots = within.work_trees().roots_and_former();
    if directories.is_empty() && transcripts::is_named_after(client, path, look.hash.as_deref(), &roots) {
        return Belongs::Here;
    }
    // Later directories may belong to single commands, in which nothing was said.
    let is_in_part = whose.contains(&Whose::Ours) || look.is_partial;
    if is_in_part || look.folders.iter().any(|folder| is_worked_in(within, &directories, folder)) {
        return Belongs::Perhaps;
    }
    match directories.into_iter().next() {
        None => Belongs::Nowhere,
        Some(first) if whose.iter().all(|whose| *whose == Whose::Gone) => Belongs::Gone(first),
        Some(_) => Belongs::Elsewhere,
    }
}

/// Returns whether `folder`, in which files were changed, lies in the project. A relative path is relative to one of
/// `directories`.
fn is_worked_in(within: &mut Within<'_>, directories: &[String], folder: &str) -> bool {
    if Path::new(folder).is_absolute() {
        return within.may_have(folder) && within.has(folder);
    }
    directories.iter().any(|directory| {
        let leads_in = within.is_beneath(directory) || folder.starts_with("..");
        let folder = Path::new(directory).join(folder);
        leads_in && folder.to_str().is_some_and(|folder| within.may_have(folder) && within.has(folder))
    })
}

/// Returns the transcripts together with the number of their unread bytes, and counts them.
async fn candidates(
    (sources, intake): (&Sources, Option<&dyn ReadIntake>),
    found: Vec<(&Listed, bool)>,
    account: &mut Account,
) -> Vec<Candidate> {
    let mut candidates = Vec::with_capacity(found.len());
    for (Listed { path, stamp }, is_certain) in found {
        let read = match intake {
            Some(intake) => Cursor::read(&sources.redactor, intake, path).await,
            None => Ok(Read { unread: stamp.bytes, has_any: false }),
        };
        // The import reports transcripts that can't be read.
        let Read { unread, has_any } = read.unwrap_or(Read { unread: stamp.bytes, has_any: false });
        let candidate = Candidate { path: path.clone(), bytes: stamp.bytes, unread, is_certain };
        match unread == 0 && !has_any && !is_certain {
            true => account.elsewhere += 1,
            false => account.count_here(&candidate),
        }
        candidates.push(candidate);
    }
    candidates
}
