//! Looks at the files of a thread, and finds which are new, which have changed since they were sent, and which are
//! gone.
//!
//! If the size and times of a file are the same as in the ledger, the file is not read. All other files are read,
//! redacted and counted on all cores, and on other threads than the call, so that the call can be cancelled at any
//! time. A text is kept in memory only if it may be sent. So even a folder of a gigabyte takes no more memory than the
//! texts that fit into a window.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::receipt::Skipped;
use crate::project::OpenProject;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::humanize::{counted, some};
use tiro_base::parallel::{beside, on_all_cores};
use tiro_base::thread::{ContentHash, FilePlace, LedgerEntry, Stat, Thread, ThreadName};
use tiro_files::{
    Budget, Cut, Exhausted, Extractor, FoundFile, Gathered, Limits, PathTarget, Reading, Refusal, Roots,
    gather, gather_changed,
};
use tiro_inline::{FileState, Seen};
use tiro_redact::{self, Redactor};
use tiro_text::tokens;

/// The number of bytes of files that are read before their tokens are counted. Arbitrary: little compared with the
/// memory of a process.
const BATCH: u64 = 8 << 20;

/// The number of bytes of texts that are kept for a prompt. Arbitrary: more than the largest window.
const MOST_KEPT: usize = 24 << 20;

/// The maximum number of bytes of files that are read in a call. Arbitrary: a hundred times as many as fit into a large
/// window. They are read within a minute.
const MOST_READ: u64 = 1 << 30;

/// Reads files of the project.
pub struct FileReader {
    /// The path policy.
    pub roots: Roots,
    /// The limits of what is read.
    pub limits: Limits,
    /// Extracts the text of documents.
    pub extractor: Extractor,
    /// The budget for the documents of the call. It ends with the call.
    pub budget: Budget,
    /// Replaces secrets.
    pub redactor: Redactor,
    /// The current time, in nanoseconds since 1970.
    pub now_ns: i64,
    /// Whether nothing is stored, not even counts of tokens.
    pub only_looks: bool,
}

/// A file that was read and redacted.
pub struct Copy {
    /// The file's size and times, see [`LedgerEntry::stat`].
    pub stat: Option<Stat>,
    /// The hash of the file, see [`LedgerEntry::raw`].
    pub raw: ContentHash,
    /// The hash of the redacted text, see [`LedgerEntry::sent`].
    pub sent: ContentHash,
    /// The redacted text.
    pub text: String,
    /// The number of secrets that were replaced.
    pub redacted: usize,
    /// Notes about parts of the file that the text doesn't show.
    pub notes: Vec<String>,
}

/// The files of a call.
#[derive(Default)]
pub struct Looked {
    /// The files of the ledger and of the call, by path.
    pub seen: Vec<Seen>,
    /// The data that is needed to open and read these files, by path.
    pub found: BTreeMap<String, FoundFile>,
    /// The paths that were left out.
    pub skipped: Vec<Skipped>,
    /// The documents that were not read because the call's budget was used up.
    pub unreached: Option<Skipped>,
    /// The number of replaced secrets in each file, keyed by path.
    pub redacted: BTreeMap<String, usize>,
    /// Remarks, each of which is a sentence without a full stop.
    pub notices: Vec<String>,
}

impl FileReader {
    /// Finds the files at `paths`. A path may also lead to a folder.
    pub fn gather(&self, paths: &[String]) -> Gathered {
        gather(&self.roots, paths, &self.limits, &self.budget)
    }

    /// Reads and redacts one file.
    pub fn copy(&self, found: &FoundFile) -> Result<Copy, Refusal> {
        let FileReader { limits, extractor, budget, .. } = self;
        let reading = Reading { limits, now_ns: self.now_ns, extractor, budget };
        let read = self.roots.read(found, &reading)?;
        let redacted = self.redactor.redact(&read.text);
        let count = redacted.found.iter().map(|finding| finding.count).sum();
        let changed = match redacted.text {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(changed),
        };
        let text = changed.unwrap_or(read.text);
        Ok(Copy {
            stat: read.is_settled.then_some(read.stat),
            raw: read.raw,
            sent: ContentHash::of(text.as_bytes()),
            text,
            redacted: count,
            notes: read.notes.iter().map(ToString::to_string).collect(),
        })
    }
}

/// Looks at the files of `thread` and at the files to which `context` and `priority` lead.
pub async fn look(
    reader: &Arc<FileReader>,
    project: &OpenProject,
    name: &ThreadName,
    thread: &Thread,
    context: &[String],
    priority: &[String],
) -> Result<Looked> {
    let mut looked = Looked::default();
    let known: HashMap<&str, &LedgerEntry> =
        thread.ledger.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let (firsts, gathered) = find(reader, &thread.ledger, context, priority).await?;
    looked.skipped = skipped(&gathered);
    looked.notices.extend(cut(&gathered));
    looked.found = gathered.files.into_iter().map(|found| (found.path.clone(), found)).collect();
    let mut states: BTreeMap<String, FileState> = BTreeMap::new();
    let mut changed: Vec<FoundFile> = Vec::new();
    for (path, found) in &looked.found {
        let is_same = known.get(path.as_str()).is_some_and(|entry| {
            !entry.is_removed && entry.stat == Some(found.stat) && thread.rules == tiro_redact::version()
        });
        match is_same {
            true => drop(states.insert(path.clone(), FileState::Unchanged)),
            false => changed.push(found.clone()),
        }
    }
    for entry in thread.ledger.iter().filter(|entry| !looked.found.contains_key(&entry.path)) {
        states.insert(entry.path.clone(), FileState::Gone(gone(&reader.roots, &entry.path)));
    }
    let mut unreached = Unreached::default();
    for (path, outcome) in read(reader, project, name, &known, changed).await? {
        match outcome {
            Ok((state, redacted, notes)) => {
                states.insert(path.clone(), state);
                if redacted > 0 {
                    looked.redacted.insert(path.clone(), redacted);
                }
                looked.notices.extend(notes.into_iter().map(|note| format!("{path}: {note}")));
            }
            Err(why) => {
                if known.contains_key(path.as_str()) {
                    states.insert(path.clone(), FileState::Gone(format!("it {why}")));
                }
                looked.skipped.extend(unreached.or_skipped(path, why));
            }
        }
    }
    looked.unreached = unreached.into_skipped();
    looked.seen = states
        .into_iter()
        .map(|(path, state)| Seen { is_first: firsts.contains(&path), path, state })
        .collect();
    Ok(looked)
}

/// Finds the files of `priority`, and the files of `context` and `priority` together. A file whose size and times are
/// the same as in the ledger is not opened.
async fn find(
    reader: &Arc<FileReader>,
    ledger: &[LedgerEntry],
    context: &[String],
    priority: &[String],
) -> Result<(BTreeSet<String>, Gathered)> {
    let stats = ledger.iter().filter_map(|entry| Some((entry.path.clone(), entry.stat?)));
    let stats: HashMap<String, Stat> = stats.collect();
    let all: Vec<String> = context.iter().chain(priority).cloned().collect();
    let (reader, priority) = (Arc::clone(reader), priority.to_vec());
    beside(move || {
        let FileReader { roots, limits, budget, .. } = &*reader;
        let stat = |path: &str| stats.get(path).copied();
        let find = |paths: &[String]| gather_changed(roots, paths, limits, budget, &stat);
        (find(&priority).files.into_iter().map(|found| found.path).collect(), find(&all))
    })
    .await
}

type Outcome = Result<(FileState, usize, Vec<String>), Refusal>;

/// Reads the files `changed`. Returns the state of each, keyed by path.
async fn read(
    reader: &Arc<FileReader>,
    project: &OpenProject,
    name: &ThreadName,
    known: &HashMap<&str, &LedgerEntry>,
    changed: Vec<FoundFile>,
) -> Result<Vec<(String, Outcome)>> {
    check_size(&changed)?;
    let mut outcomes = Vec::with_capacity(changed.len());
    let mut kept = 0;
    let mut rest = changed;
    while !rest.is_empty() {
        let later = rest.split_off(batch(&rest));
        let (read, counts) = read_and_count(reader, project, std::mem::replace(&mut rest, later)).await?;
        let inline = read.iter().filter(|(path, _)| {
            known.get(path.as_str()).is_some_and(|entry| entry.place == FilePlace::Inline)
        });
        let inline: Vec<String> = inline.map(|(path, _)| path.clone()).collect();
        let mut before = match inline.is_empty() {
            true => HashMap::new(),
            false => project.store.copies(&project.scope, name, inline).await?,
        };
        for (path, copy) in read {
            let outcome = copy.map(|copy| {
                let tokens = counts.get(&copy.sent).copied().unwrap_or(u32::MAX);
                kept += copy.text.len();
                let state = FileState::Read {
                    stat: copy.stat,
                    raw: copy.raw,
                    sent: copy.sent,
                    tokens,
                    text: (kept <= MOST_KEPT).then(|| copy.text.into()),
                    before: before.remove(&path).map(Into::into),
                };
                (state, copy.redacted, copy.notes)
            });
            outcomes.push((path, outcome));
        }
    }
    Ok(outcomes)
}

/// Files with their copies, with the path first.
type Copies = Vec<(String, Result<Copy, Refusal>)>;

/// Reads the files of a batch. Also returns the number of tokens of each copy, keyed by the hash of its text. If a text
/// was counted before, its stored number is used.
async fn read_and_count(
    reader: &Arc<FileReader>,
    project: &OpenProject,
    batch: Vec<FoundFile>,
) -> Result<(Copies, HashMap<ContentHash, u32>)> {
    let reads = Arc::clone(reader);
    let copies: Copies = beside(move || {
        let copies = on_all_cores(&batch, |found| reads.copy(found));
        batch.into_iter().map(|found| found.path).zip(copies).collect()
    })
    .await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let hashes: Vec<ContentHash> =
        copies.iter().filter_map(|(_, copy)| Some(copy.as_ref().ok()?.sent)).collect();
    let mut counts = store.token_counts(scope, &hashes).await?;
    let (known, budget) = (counts.clone(), reader.budget.clone());
    let (copies, counted) = beside(move || {
        let copied = copies.iter().filter_map(|(_, copy)| copy.as_ref().ok());
        let new: Vec<&Copy> = copied.filter(|copy| !known.contains_key(&copy.sent)).collect();
        let counted = on_all_cores(&new, |copy| {
            let count = || (copy.sent, u32::try_from(tokens::count(&copy.text)).unwrap_or(u32::MAX));
            // If the call has ended, nobody waits for the remaining counts.
            (!budget.has_ended()).then(count)
        });
        let counted: Vec<(ContentHash, u32)> = counted.into_iter().flatten().collect();
        (copies, counted)
    })
    .await?;
    if !counted.is_empty() && !reader.only_looks {
        project.books.note_token_counts(scope, &counted).await?;
    }
    counts.extend(counted);
    Ok((copies, counts))
}

/// Returns the reason why a file of the ledger was not found.
fn gone(roots: &Roots, path: &str) -> String {
    match roots.resolve(path) {
        Ok(PathTarget::File(_)) => "it is no longer part of the context".to_owned(),
        Ok(PathTarget::Folder(_)) => "it is a folder now".to_owned(),
        Err(Refusal::Missing) => "it no longer exists".to_owned(),
        Err(why) => format!("it {why}"),
    }
}

/// Returns a refusal as the receipt shows it.
fn said(why: Refusal) -> String {
    match why.way_out() {
        Some(way_out) => format!("{why}; {way_out}"),
        None => why.to_string(),
    }
}

/// Counts the tokens of the files that `paths` lead to.
pub async fn count(
    reader: &Arc<FileReader>,
    project: &OpenProject,
    paths: &[String],
) -> Result<super::CountedFiles> {
    let (walks, paths) = (Arc::clone(reader), paths.to_vec());
    let gathered = beside(move || walks.gather(&paths)).await?;
    let mut counted = super::CountedFiles { skipped: skipped(&gathered), ..super::CountedFiles::default() };
    counted.notices.extend(cut(&gathered));
    check_size(&gathered.files)?;
    let mut unreached = Unreached::default();
    let mut rest = gathered.files;
    while !rest.is_empty() {
        let later = rest.split_off(batch(&rest));
        let (read, counts) = read_and_count(reader, project, std::mem::replace(&mut rest, later)).await?;
        for (path, copy) in read {
            match copy {
                Ok(copy) => {
                    let tokens = counts.get(&copy.sent).copied().unwrap_or_default();
                    counted.files.push((path, tokens as usize));
                    counted.secrets += copy.redacted;
                }
                Err(why) => counted.skipped.extend(unreached.or_skipped(path, why)),
            }
        }
    }
    counted.skipped.splice(0..0, unreached.into_skipped());
    Ok(counted)
}

/// Errors with [`Kind::Limit`] if `files` are too large to be read in a call.
fn check_size(files: &[FoundFile]) -> Result<()> {
    let bytes: u64 = files.iter().map(|found| found.stat.size).sum();
    if bytes <= MOST_READ {
        return Ok(());
    }
    let count = counted(files.len() as u64, "file", "files");
    let message =
        format!("the context has {count} of {} MB to read, more than {} MB", bytes >> 20, MOST_READ >> 20);
    Err(Error::new(Kind::Limit, message).hint(Cut::Deadline.way_out()))
}

/// Returns how many of `files` are read in one batch.
pub(super) fn batch(files: &[FoundFile]) -> usize {
    let mut bytes = 0;
    files
        .iter()
        .take_while(|found| {
            let fits = bytes == 0 || bytes + found.stat.size <= BATCH;
            bytes += found.stat.size;
            fits
        })
        .count()
}

/// The documents that were not read because the call's budget was used up. There can be thousands, so they are reported
/// together.
#[derive(Default)]
pub(super) struct Unreached {
    paths: Vec<String>,
    why: Option<Exhausted>,
}

impl Unreached {
    /// If the budget was used up before this file, keeps the file and returns `None`. Otherwise returns the file as the
    /// receipt shows it.
    pub fn or_skipped(&mut self, path: String, why: Refusal) -> Option<Skipped> {
        let Refusal::Budget(exhausted) = why else { return Some(Skipped { path, why: said(why) }) };
        self.paths.push(path);
        self.why.get_or_insert(exhausted);
        None
    }

    /// Returns all kept documents as one entry of the receipt, with their number and the first path. Returns `None` if
    /// there are none.
    pub fn into_skipped(self) -> Option<Skipped> {
        let why = Refusal::Budget(self.why?);
        match &self.paths[..] {
            [path] => Some(Skipped { path: path.clone(), why: said(why) }),
            paths => {
                let documents = counted(paths.len(), "document", "documents");
                let why = said(why).replacen("was not read", "were not read", 1);
                Some(Skipped { path: format!("{documents} ({})", some(paths)), why })
            }
        }
    }
}

/// Returns the paths that were left out, as the receipt shows them.
pub(super) fn skipped(gathered: &Gathered) -> Vec<Skipped> {
    let refused =
        gathered.refused.iter().map(|refused| Skipped { path: refused.path.clone(), why: said(refused.why) });
    let groups = gathered.skipped.iter().map(|group| {
        let rest = (group.files + group.folders).saturating_sub(group.paths.len());
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        Skipped { path: group.paths.join(", ") + &more, why: said(group.why) }
    });
    refused.chain(groups).collect()
}

/// Returns the notice that not all files were found.
pub(super) fn cut(gathered: &Gathered) -> Option<String> {
    gathered.cut.map(|cut| format!("not all files were found: {cut}; {}", cut.way_out()))
}
