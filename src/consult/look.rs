//! Looks at the files of a thread: which are new, which changed since they were sent, and which are gone.
//!
//! A file that looks as the ledger says is not read. All others are read, redacted and counted, on all cores. Texts are
//! kept only as far as they may be sent, so that a folder of a gigabyte takes no more memory than a window.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::receipt::Skipped;
use crate::error::{Error, Kind, Result};
use crate::files::{
    Cut, Extractor, Found, Gathered, Limits, Place as Leads, Reading, Refusal, Roots, gather, gather_changed,
};
use crate::humanize::counted;
use crate::inline::{Seen, State};
use crate::parallel::on_all_cores;
use crate::project::OpenProject;
use crate::redact::{self, Redactor};
use crate::store::Store;
use crate::thread::{ContentHash, Entry, Place, Stat, Thread, ThreadName};
use crate::tokens;

/// How many bytes of files are read before their tokens are looked up. Arbitrary: small against the memory of a process.
const BATCH: u64 = 8 << 20;

/// How many bytes of texts are kept for a prompt. Arbitrary: more than a window takes.
const MOST_KEPT: usize = 24 << 20;

/// How many bytes of files are read in a call. Arbitrary: more than windows take a hundred times over, and read within a
/// minute.
const MOST_READ: u64 = 1 << 30;

/// What reads files.
pub(crate) struct Reader {
    /// The path policy.
    pub roots: Roots,
    /// How much is read.
    pub limits: Limits,
    /// What extracts the text of documents.
    pub extractor: Extractor,
    /// Replaces secrets.
    pub redactor: Redactor,
    /// The time, in nanoseconds since 1970.
    pub now_ns: i64,
    /// Whether nothing is stored, not even counts of tokens.
    pub only_looks: bool,
}

/// A file that was read and redacted.
pub(crate) struct Copy {
    /// See [`Entry::stat`].
    pub stat: Option<Stat>,
    /// See [`Entry::raw`].
    pub raw: ContentHash,
    /// See [`Entry::sent`].
    pub sent: ContentHash,
    /// The redacted text.
    pub text: String,
    /// How many secrets were replaced.
    pub redacted: usize,
    /// What the text doesn't show of the file.
    pub notes: Vec<String>,
}

/// The files of a call.
#[derive(Default)]
pub(crate) struct Looked {
    /// The files of the ledger and of the call, by path.
    pub seen: Vec<Seen>,
    /// How to read them.
    pub found: BTreeMap<String, Found>,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    /// How many secrets were replaced, by path.
    pub redacted: BTreeMap<String, usize>,
    /// Remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

impl Reader {
    /// Reads and redacts one file.
    pub fn copy(&self, found: &Found) -> Result<Copy, Refusal> {
        let reading = Reading { limits: &self.limits, now_ns: self.now_ns, extractor: &self.extractor };
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

/// Looks at the files of `thread` and at those that `context` and `priority` lead to.
pub(crate) async fn look(
    reader: &Reader,
    project: &OpenProject,
    name: &ThreadName,
    thread: &Thread,
    context: &[String],
    priority: &[String],
) -> Result<Looked> {
    let mut looked = Looked::default();
    let known: HashMap<&str, &Entry> =
        thread.ledger.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let stat = |path: &str| known.get(path).and_then(|entry| entry.stat);
    let find = |paths: &[String]| gather_changed(&reader.roots, paths, &reader.limits, &stat);
    let firsts: BTreeSet<String> = find(priority).files.into_iter().map(|found| found.path).collect();
    let all: Vec<String> = context.iter().chain(priority).cloned().collect();
    let gathered = find(&all);
    looked.skipped = skipped(&gathered);
    looked.notices.extend(cut(&gathered));
    looked.found = gathered.files.into_iter().map(|found| (found.path.clone(), found)).collect();
    let mut states: BTreeMap<String, State> = BTreeMap::new();
    let mut changed: Vec<&Found> = Vec::new();
    for (path, found) in &looked.found {
        let is_same = known.get(path.as_str()).is_some_and(|entry| {
            !entry.is_removed && entry.stat == Some(found.stat) && thread.rules == redact::version()
        });
        match is_same {
            true => drop(states.insert(path.clone(), State::Unchanged)),
            false => changed.push(found),
        }
    }
    for entry in thread.ledger.iter().filter(|entry| !looked.found.contains_key(&entry.path)) {
        states.insert(entry.path.clone(), State::Gone(gone(&reader.roots, &entry.path)));
    }
    let read = read(reader, project, name, &known, &changed).await?;
    for (path, outcome) in read {
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
                    states.insert(path.clone(), State::Gone(format!("it {why}")));
                }
                looked.skipped.push(Skipped { path, why: said(why) });
            }
        }
    }
    looked.seen = states
        .into_iter()
        .map(|(path, state)| Seen { is_first: firsts.contains(&path), path, state })
        .collect();
    Ok(looked)
}

type Outcome = Result<(State, usize, Vec<String>), Refusal>;

/// Reads `changed`, and returns the state of each by path.
async fn read(
    reader: &Reader,
    project: &OpenProject,
    name: &ThreadName,
    known: &HashMap<&str, &Entry>,
    changed: &[&Found],
) -> Result<Vec<(String, Outcome)>> {
    check_size(changed)?;
    let mut outcomes = Vec::with_capacity(changed.len());
    let mut kept = 0;
    let mut rest = changed;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(rest));
        rest = later;
        let copies = on_all_cores(batch, |found| reader.copy(found));
        let counts = count_tokens(reader, project, &copies).await?;
        let inline = batch
            .iter()
            .filter(|found| known.get(found.path.as_str()).is_some_and(|entry| entry.place == Place::Inline));
        let inline: Vec<String> = inline.map(|found| found.path.clone()).collect();
        let mut before = match inline.is_empty() {
            true => HashMap::new(),
            false => project.store.copies(&project.scope, name, inline).await?,
        };
        for (found, copy) in batch.iter().zip(copies) {
            let outcome = copy.map(|copy| {
                let tokens = counts.get(&copy.sent).copied().unwrap_or(u32::MAX);
                kept += copy.text.len();
                let state = State::Read {
                    stat: copy.stat,
                    raw: copy.raw,
                    sent: copy.sent,
                    tokens,
                    text: (kept <= MOST_KEPT).then(|| copy.text.into()),
                    before: before.remove(&found.path).map(Into::into),
                };
                (state, copy.redacted, copy.notes)
            });
            outcomes.push((found.path.clone(), outcome));
        }
    }
    Ok(outcomes)
}

/// Returns the tokens of each copy, by the hash of its text. Those of texts that were counted before are looked up.
async fn count_tokens(
    reader: &Reader,
    project: &OpenProject,
    copies: &[Result<Copy, Refusal>],
) -> Result<HashMap<ContentHash, u32>> {
    let (store, scope): (&Store, _) = (&project.store, &project.scope);
    let copies: Vec<&Copy> = copies.iter().flatten().collect();
    let hashes: Vec<ContentHash> = copies.iter().map(|copy| copy.sent).collect();
    let mut counts = store.token_counts(scope, &hashes).await?;
    let new: Vec<&Copy> = copies.into_iter().filter(|copy| !counts.contains_key(&copy.sent)).collect();
    let counted =
        on_all_cores(&new, |copy| (copy.sent, u32::try_from(tokens::count(&copy.text)).unwrap_or(u32::MAX)));
    if !counted.is_empty() && !reader.only_looks {
        store.note_token_counts(scope, &counted).await?;
    }
    counts.extend(counted);
    Ok(counts)
}

/// Returns why a file of the ledger was not found.
fn gone(roots: &Roots, path: &str) -> String {
    match roots.resolve(path) {
        Ok(Leads::File(_)) => "it is no longer part of the context".to_owned(),
        Ok(Leads::Folder(_)) => "it is a folder now".to_owned(),
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
pub(crate) async fn count(
    reader: &Reader,
    project: &OpenProject,
    paths: &[String],
) -> Result<super::CountedFiles> {
    let gathered = gather(&reader.roots, paths, &reader.limits);
    let mut counted = super::CountedFiles { skipped: skipped(&gathered), ..super::CountedFiles::default() };
    counted.notices.extend(cut(&gathered));
    let found: Vec<&Found> = gathered.files.iter().collect();
    check_size(&found)?;
    let mut rest = found.as_slice();
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(rest));
        rest = later;
        let copies = on_all_cores(batch, |found| reader.copy(found));
        let counts = count_tokens(reader, project, &copies).await?;
        for (found, copy) in batch.iter().zip(copies) {
            match copy {
                Ok(copy) => {
                    let tokens = counts.get(&copy.sent).copied().unwrap_or_default();
                    counted.files.push((found.path.clone(), tokens as usize));
                    counted.secrets += copy.redacted;
                }
                Err(why) => counted.skipped.push(unread(found, why)),
            }
        }
    }
    Ok(counted)
}

/// Errors with [`Kind::Limit`] if `files` are too large to be read in a call.
fn check_size(files: &[&Found]) -> Result<()> {
    let bytes: u64 = files.iter().map(|found| found.stat.size).sum();
    if bytes <= MOST_READ {
        return Ok(());
    }
    let count = counted(files.len() as u64, "file", "files");
    let message =
        format!("the context has {count} of {} MB to read, more than {} MB", bytes >> 20, MOST_READ >> 20);
    Err(Error::new(Kind::Limit, message).hint(Cut::Deadline.way_out()))
}

/// Returns how many of `files` are read at once.
pub(super) fn batch(files: &[&Found]) -> usize {
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

/// Returns a file that could not be read, as the receipt shows it.
pub(super) fn unread(found: &Found, why: Refusal) -> Skipped {
    Skipped { path: found.path.clone(), why: said(why) }
}

/// Returns what was left out, as the receipt shows it.
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
