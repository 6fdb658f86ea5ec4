//! Reads many commits with their changes, on one thread or several, in the given order.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use gix::bstr::ByteSlice;

use super::commit::{self, CommitDetail, Unreadable};
use super::diff::changes::{self, Depth, IsIgnored};
use super::diff::entries::{Blob, Blobs, COMMIT_BUDGET, Deadline, Entry, changed_entries, in_utf8, shown};
use super::diff::hunks::{changed_hashes, changed_lines};
use super::diff::names::Format;
use super::diff::renames::pair_renames;
use super::mailmap::Mailmap;
use super::objects::Handle;
use super::repository::Repository;
use super::sha::Sha;
use tiro_redact::Redactor;

/// How many bytes of decoded objects each reader caches. The cache saves reads because neighbouring commits share most
/// trees.
const OBJECT_CACHE: usize = 16 << 20;

/// How many bytes of delta bases each reader caches. Packs store most objects as differences (deltas) from another
/// object, the base.
const PACK_CACHE: usize = 32 << 20;

/// Each file gets at least this many bytes of a diff, until the diff's limit is reached. Without this minimum,
/// a diff of many files would leave each file too little space for one line. Arbitrary: about one hunk.
const LEAST_OF_FILE: usize = 600;

/// How many commits a thread reads before it passes them on.
const BATCH: usize = 16;

/// A commit, or the reason why it could not be read.
pub type Outcome = Result<CommitDetail, Unreadable>;

/// Reads commits on a single thread and caches the objects that neighbouring commits share.
pub struct CommitReader<'a> {
    objects: Handle,
    is_ignored: IsIgnored<'a>,
    boundary: Arc<HashSet<Sha>>,
    mailmap: Arc<Mailmap>,
    buffer: Vec<u8>,
}

impl Repository {
    /// Returns a reader of commits that leaves out the changes to ignored files. Reuse one reader for a whole import,
    /// because it caches objects.
    pub fn reader<'a>(&self, is_ignored: IsIgnored<'a>) -> CommitReader<'a> {
        self.reader_by(is_ignored, Arc::new(self.mailmap()))
    }

    fn reader_by<'a>(&self, is_ignored: IsIgnored<'a>, mailmap: Arc<Mailmap>) -> CommitReader<'a> {
        let objects = self.objects.handle().keeping(OBJECT_CACHE, PACK_CACHE);
        // The list of commits where a shallow clone ends may be unreadable. This does no harm: reading a missing parent
        // fails, so the changes of these commits are unknown anyway.
        let boundary = self.shallow().unwrap_or_default();
        CommitReader { objects, is_ignored, boundary, mailmap, buffer: Vec::new() }
    }

    /// Reads `commits` on `threads` threads and passes them to `each` in the given order.
    ///
    /// Threads read at most a few batches ahead of `each`, so memory use does not grow with the history. `each` runs on
    /// the calling thread. As soon as `each` returns `Break`, no further commits are passed to it, and the threads stop
    /// reading.
    pub fn details(
        &self,
        commits: &[Sha],
        threads: usize,
        is_ignored: IsIgnored<'_>,
        mut each: impl FnMut(Outcome) -> ControlFlow<()>,
    ) {
        let threads = threads.clamp(1, commits.len().div_ceil(BATCH).max(1));
        if threads == 1 {
            let mut reader = self.reader(is_ignored);
            let _ = commits.iter().try_for_each(|sha| each(reader.commit(sha)));
            return;
        }
        let mailmap = Arc::new(self.mailmap());
        std::thread::scope(|scope| {
            let receivers: Vec<_> = (0..threads)
                .map(|thread| {
                    let (sender, receiver) = sync_channel(2);
                    let batches = commits.chunks(BATCH).skip(thread).step_by(threads);
                    let mailmap = Arc::clone(&mailmap);
                    scope.spawn(move || {
                        read_batches(self.reader_by(is_ignored, mailmap), batches, &sender);
                    });
                    receiver
                })
                .collect();
            for batch in 0..commits.len().div_ceil(BATCH) {
                // `recv` fails only if the reading thread panicked. The enclosing scope then panics too when it ends.
                let Ok(outcomes) = receivers[batch % threads].recv() else { return };
                if outcomes.into_iter().try_for_each(&mut each).is_break() {
                    return;
                }
            }
        });
    }
}

fn read_batches<'a>(
    mut reader: CommitReader<'_>,
    batches: impl Iterator<Item = &'a [Sha]>,
    sender: &SyncSender<Vec<Outcome>>,
) {
    for batch in batches {
        let outcomes = batch.iter().map(|sha| reader.commit(sha)).collect();
        if sender.send(outcomes).is_err() {
            return;
        }
    }
}

impl CommitReader<'_> {
    /// Reads a commit and compares it with its first parent.
    ///
    /// # Errors
    ///
    /// Fails if the commit object is missing or damaged. Missing trees and blobs are no error: the returned details
    /// report them.
    pub fn commit(&mut self, sha: &Sha) -> Outcome {
        let unreadable = |reason| Unreadable { sha: *sha, reason };
        let raw = commit::read(&mut self.objects, sha, &mut self.buffer).map_err(unreadable)?;
        let mut detail = raw.detail(*sha, &self.mailmap);
        let new = raw.tree;
        let depth = if detail.parents.len() > 1 { Depth::Trees } else { Depth::Lines };
        let old = match detail.parents.first() {
            None => Ok(None),
            Some(_) if self.boundary.contains(sha) => {
                Err("the history of this shallow clone ends here".to_owned())
            }
            Some(parent) => commit::read(&mut self.objects, parent, &mut self.buffer)
                .map(|raw| Some(raw.tree))
                .map_err(|reason| format!("its parent `{parent}` cannot be read: {reason}")),
        };
        match old {
            Ok(old) => {
                (detail.changes, detail.patch_id) =
                    changes::compare(&mut self.objects, old, new, depth, self.is_ignored)
            }
            Err(reason) => detail.changes.unknown = Some(reason),
        }
        Ok(detail)
    }

    /// Reads a commit without its changes.
    ///
    /// # Errors
    ///
    /// Fails if the commit object is missing or damaged.
    pub fn header(&mut self, sha: &Sha) -> Outcome {
        let unreadable = |reason| Unreadable { sha: *sha, reason };
        let raw = commit::read(&mut self.objects, sha, &mut self.buffer).map_err(unreadable)?;
        Ok(raw.detail(*sha, &self.mailmap))
    }

    /// Returns the lines that a commit changed, file by file, in about `most` bytes. Secrets are redacted, and deleted
    /// files are left out. The text is empty for merges, and if the commit can't be compared with its parent.
    ///
    /// # Errors
    ///
    /// Fails if the commit object is missing or damaged.
    pub fn diff(&mut self, sha: &Sha, redactor: &Redactor, most: usize) -> Result<String, Unreadable> {
        let Some((found, mut blobs)) = self.changed_files(sha)? else { return Ok(String::new()) };
        let found: Vec<Entry> = found.into_iter().filter(|entry| entry.new.is_some()).collect();
        let mut diff = String::new();
        for (place, entry) in found.iter().enumerate() {
            let left = most.saturating_sub(diff.len());
            if left == 0 {
                break;
            }
            let (Blob::Text(old), Blob::Text(new)) = (blobs.read(entry.old), blobs.read(entry.new)) else {
                continue;
            };
            // A secret is often recognised only by the text around it, so whole files are redacted, not single lines.
            let (old, new, _) = in_utf8(old, new);
            let [old, new] = [old, new].map(|text| redactor.redact(&text.to_str_lossy()).text.into_owned());
            let share = (left / (found.len() - place)).max(LEAST_OF_FILE).min(left);
            let lines = changed_lines(&old, &new, share);
            if !lines.is_empty() {
                diff += &format!("{}\n{lines}", redactor.redact(&shown(&entry.path)).text);
            }
        }
        Ok(diff)
    }

    /// Returns, for each changed path, the hashes of the lines that the commit adds or removes. Each hash is mapped to
    /// the number of such lines in the file. The result is empty for merges, and if the parent is not in this clone.
    ///
    /// # Errors
    ///
    /// Fails if the commit object is missing or damaged.
    pub fn changed_lines(&mut self, sha: &Sha) -> Result<HashMap<String, HashMap<u32, usize>>, Unreadable> {
        let Some((found, mut blobs)) = self.changed_files(sha)? else { return Ok(HashMap::new()) };
        let mut lines: HashMap<String, HashMap<u32, usize>> = HashMap::new();
        for entry in found {
            let (Blob::Text(old), Blob::Text(new)) = (blobs.read(entry.old), blobs.read(entry.new)) else {
                continue;
            };
            let (old, new, _) = in_utf8(old, new);
            let hashes = changed_hashes(&old, &new);
            for path in entry.paths() {
                lines.entry(shown(path)).or_default().extend(&hashes);
            }
        }
        Ok(lines)
    }

    /// Returns the files that a commit changes, and a reader of their blobs. Returns `None` for a merge, and if the
    /// parent can't be read.
    fn changed_files(&mut self, sha: &Sha) -> Result<Option<(Vec<Entry>, Blobs<'_>)>, Unreadable> {
        let unreadable = |reason| Unreadable { sha: *sha, reason };
        let raw = commit::read(&mut self.objects, sha, &mut self.buffer).map_err(unreadable)?;
        let (parents, new) = (raw.parents, raw.tree);
        let old = match &parents[..] {
            [] => None,
            [parent] if !self.boundary.contains(sha) => {
                match commit::read(&mut self.objects, parent, &mut self.buffer) {
                    Ok(raw) => Some(raw.tree),
                    Err(_) => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let deadline = Deadline::begin();
        let Ok(entries) = changed_entries(&mut self.objects, old, new, deadline) else { return Ok(None) };
        let mut found = entries.found;
        let mut blobs = Blobs { objects: &mut self.objects, left: COMMIT_BUDGET, deadline };
        pair_renames(&mut found, Some(&mut blobs));
        let is_ignored = self.is_ignored;
        found.retain(|entry| {
            Format::of(&shown(&entry.path)) != Format::Noise
                && !entry.paths().any(|path| is_ignored(&shown(path)))
        });
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some((found, blobs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn a_diff_has_the_changed_lines_of_each_file_without_secrets_and_noise() {
        const KEY: &str = "AKIAQZ7RX2LM5TNVB3KD";
        let fixture = Fixture::new();
        fixture.write("Cargo.lock", "one\n");
        fixture.write("gone.rs", "fn gone() {}\n");
        let root = fixture.commit("a.rs", format!("fn old() {{}}\nlet key = \"{KEY}\";\n"), "first");
        fixture.write("Cargo.lock", "two\n");
        fixture.write("b.rs", (0..500).map(|n| format!("line {n}\n")).collect::<String>());
        fixture.git(&["rm", "-q", "gone.rs"]);
        fixture.write("kept.out", "a diary\n");
        let sha = fixture.commit("a.rs", "fn new() {}\n", "second");
        let repository = fixture.repository();
        let mut reader = repository.reader(&|path| path == "kept.out");
        let redactor = Redactor::new([0; 32]);
        let diff = reader.diff(&sha, &redactor, 2000).unwrap();
        assert!(diff.starts_with("a.rs\n-fn old() {}\n-let key = \"[REDACTED:"), "{diff}");
        assert!(diff.contains("+fn new() {}\nb.rs\n+line 0\n") && diff.ends_with("…\n"), "{diff}");
        assert!(!diff.contains(KEY) && !diff.contains("Cargo.lock") && !diff.contains("gone"), "{diff}");
        assert!(!diff.contains("kept.out") && !diff.contains("diary"), "{diff}");
        assert!(diff.len() < 2100, "{}", diff.len());
        assert!(reader.diff(&root, &redactor, 2000).unwrap().contains("+fn old() {}"));
    }
}
