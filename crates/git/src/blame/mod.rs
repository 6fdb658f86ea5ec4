//! Finds the commit from which each line of a file came, as `git blame -w -M` does.
//!
//! The walk goes from the newest commit to the oldest. It passes each line to the parent that has the line too, and
//! stops when no line is left. White space does not count, renamed files are followed, and lines that a commit only
//! moved or reflowed are passed on. So are the lines of commits that `.git-blame-ignore-revs` lists.
//!
//! The crate `gix-blame` was not used. It keeps every version of a file that it compares in memory, ignores neither
//! white space nor moved lines nor listed commits, and needs filters and attributes of the repository.

mod lines;
mod moved;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice};

use super::diff::entries::shown;
use super::objects::Fault;
use super::repository::Repository;
use super::sha::Sha;
use lines::{Hunk, Text, hunks};
use tiro_base::error::{Error, Kind, Result};
pub use versions::LARGEST;
use versions::Versions;

/// The file with the ids of commits that are passed over, at the root of the repository.
const IGNORED: &str = ".git-blame-ignore-revs";

/// The lines whose origin is wanted.
pub struct BlameQuery<'a> {
    /// The commit at which the walk begins.
    pub commit: Sha,
    /// The path of the file in the repository.
    pub path: &'a str,
    /// The content of the file, if it is not that of the commit: lines that the commit doesn't have are not committed.
    pub content: Option<&'a [u8]>,
    /// The lines, beginning with 0. Lines after the last one are ignored.
    pub lines: Range<usize>,
}

/// Where lines came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This commit wrote them.
    Commit(Sha),
    /// They are at least as old as this commit, at which the history of a shallow clone ends.
    Boundary(Sha),
    /// They are not committed yet.
    Uncommitted,
    /// The walk ended before it found the commit: there was no time left, or an object could not be read.
    Unknown,
}

/// A run of lines with one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// The lines, beginning with 0.
    pub lines: Range<usize>,
    /// Where they came from.
    pub origin: Origin,
    /// The path of the file in the commit.
    pub path: String,
    /// The number of the first line in the commit's version of the file, beginning with 0.
    pub line: usize,
}

/// A run of lines of the file whose origin is sought. In the version of the file that is looked at, the run begins with
/// the line `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    source: usize,
    len: usize,
}

impl Span {
    fn sources(&self) -> Range<usize> {
        self.source..self.source + self.len
    }

    fn part(&self, sources: Range<usize>) -> Option<Span> {
        let start = self.start + (sources.start - self.source);
        (!sources.is_empty()).then(|| Span { start, source: sources.start, len: sources.len() })
    }

    /// Returns the span before `sources`, the span of `sources`, and the span after it.
    fn split(self, sources: Range<usize>) -> (Option<Span>, Span, Option<Span>) {
        let end = self.source + self.len;
        let own = Span {
            start: self.start + (sources.start - self.source),
            source: sources.start,
            len: sources.len(),
        };
        (self.part(self.source..sources.start), own, self.part(sources.end..end))
    }

    fn lines(self) -> impl Iterator<Item = Span> {
        (0..self.len).map(move |n| Span { start: self.start + n, source: self.source + n, len: 1 })
    }
}

/// A version of the file: a commit, and the path in it.
type Version = (Sha, BString);

impl Repository {
    /// Returns the origins of the lines in `query`, in order. `go_on` is called for each commit that is read, with
    /// their number so far. If it returns `false`, the walk ends, and the rest of the lines has no known origin.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if the commit has no such file, and [`Kind::BadInput`] if the file is binary or has more than
    /// 16 MiB. [`Kind::Git`] if the commit can't be read.
    pub fn blame(&self, query: &BlameQuery<'_>, go_on: &mut dyn FnMut(usize) -> bool) -> Result<Vec<Blamed>> {
        let mut walk = Walk::new(self, query.commit)?;
        let blob = walk.versions.blob(&query.commit, query.path.into()).map_err(failed)?;
        let text = match blob {
            Some(blob) => walk.versions.text(blob).map_err(|fault| match fault {
                Fault::TooLarge(bytes) => Error::bad_input(format!(
                    "`{}` has {bytes} bytes; only files of up to {LARGEST} bytes are read",
                    query.path
                )),
                fault => Error::new(Kind::Git, format!("cannot read `{}`: {fault}", query.path)),
            })?,
            None if query.content.is_some() => Rc::new(Text::of(b"")),
            None => {
                let message = format!("commit `{}` has no file `{}`", query.commit, query.path);
                return Err(Error::new(Kind::NotFound, message));
            }
        };
        let own = query.content.map(Text::of);
        if own.as_ref().unwrap_or(&text).is_binary {
            return Err(Error::bad_input(format!("`{}` is binary: it has no lines", query.path)));
        }
        let count = own.as_ref().map_or(text.count(), Text::count);
        let end = query.lines.end.min(count);
        let start = query.lines.start.min(end);
        let wanted = vec![Span { start, source: start, len: end - start }];
        let path = BString::from(query.path);
        match &own {
            None => walk.pass((query.commit, path), wanted),
            Some(own) => {
                let (same, changed) = unchanged(&hunks(&text, own), wanted, own.count());
                let (found, new) = moved::moved(&text, own, changed);
                walk.end(new, Origin::Uncommitted, path.as_ref());
                walk.pass((query.commit, path), same.into_iter().chain(placed(found)).collect());
            }
        }
        walk.run(go_on);
        Ok(walk.blamed())
    }
}

fn failed(fault: String) -> Error {
    Error::new(Kind::Git, format!("cannot look for the origin of lines: {fault}"))
}

/// The state of a search for origins.
struct Walk {
    versions: Versions,
    boundary: Arc<HashSet<Sha>>,
    ignored: HashSet<Sha>,
    /// The lines whose origin is not known yet, by the version that has them. The version with the latest time is
    /// looked at next.
    open: BTreeMap<(i64, Version), Vec<Span>>,
    found: Vec<Blamed>,
}

/// What a parent has instead of a version of a file.
struct Parent {
    version: Version,
    blob: gix::ObjectId,
}

impl Walk {
    fn new(repository: &Repository, commit: Sha) -> Result<Walk> {
        let mut versions = Versions::of(repository);
        let list = versions.blob(&commit, IGNORED.into()).map_err(failed)?;
        let ignored =
            list.map(|list| ignored(&versions.content(list).unwrap_or_default())).unwrap_or_default();
        // If the list of commits where a shallow clone ends is unreadable, reading the missing parent fails instead.
        let boundary = repository.shallow().unwrap_or_default();
        Ok(Walk { versions, boundary, ignored, open: BTreeMap::new(), found: Vec::new() })
    }

    /// Looks at one version after the other, the newest first, until the origin of each line is known.
    fn run(&mut self, go_on: &mut dyn FnMut(usize) -> bool) {
        let mut count = 0;
        while let Some(((_, version), spans)) = self.open.pop_last() {
            count += 1;
            if !go_on(count) {
                self.end(spans, Origin::Unknown, version.1.as_ref());
                break;
            }
            let path = version.1.clone();
            if let Err((left, _)) = self.look_at(version, spans) {
                self.end(left, Origin::Unknown, path.as_ref());
            }
        }
        while let Some(((_, version), spans)) = self.open.pop_last() {
            self.end(spans, Origin::Unknown, version.1.as_ref());
        }
    }

    /// Passes the lines that a parent of `version` has to this parent. The others have found their origin. If something
    /// can't be read, returns the lines whose origin stays unknown, and the reason.
    fn look_at(&mut self, version: Version, spans: Vec<Span>) -> Result<(), (Vec<Span>, String)> {
        let (sha, path) = &version;
        let known = (|| {
            let parents = match self.boundary.contains(sha) {
                true => Vec::new(),
                false => self.versions.parents(sha)?,
            };
            let blob = self.versions.blob(sha, path.as_ref())?.ok_or("the file is not there")?;
            self.parents(sha, path, blob, &parents).map(|found| (blob, found))
        })();
        let (blob, parents) = match known {
            Ok(known) => known,
            Err(reason) => return Err((spans, reason)),
        };
        if let Some(same) = parents.iter().find(|parent| parent.blob == blob) {
            self.pass(same.version.clone(), spans);
            return Ok(());
        }
        let mut left = spans;
        let mut compared = Vec::new();
        for parent in parents {
            let (new, old) = match (self.versions.text(blob), self.versions.text(parent.blob)) {
                (Ok(new), Ok(old)) => (new, old),
                (Err(fault), _) | (_, Err(fault)) => return Err((left, fault.to_string())),
            };
            let hunks = hunks(&old, &new);
            let (same, changed) = unchanged(&hunks, left, new.count());
            left = changed;
            self.pass(parent.version.clone(), same);
            compared.push((parent.version, old, new, hunks));
        }
        let is_ignored = self.ignored.contains(sha);
        for (parent, old, new, hunks) in compared {
            let (moved, changed) = moved::moved(&old, &new, left);
            let (reflowed, changed) = moved::reflowed(&old, &new, &hunks, is_ignored, changed);
            left = changed;
            self.pass(parent, placed(moved).chain(placed(reflowed)).collect());
        }
        let origin = if self.boundary.contains(sha) { Origin::Boundary(*sha) } else { Origin::Commit(*sha) };
        self.end(left, origin, path.as_ref());
        Ok(())
    }

    /// Returns what each of `parents` has instead of the file `path` of `sha`, whose content is `blob`. A parent
    /// without such a file is left out. Returns only the first parent that has the same content, if there is one.
    fn parents(
        &mut self,
        sha: &Sha,
        path: &BString,
        blob: gix::ObjectId,
        parents: &[Sha],
    ) -> Result<Vec<Parent>, String> {
        let mut found = Vec::new();
        let mut without = Vec::new();
        for parent in parents {
            match self.versions.blob(parent, path.as_ref())? {
                Some(old) if old == blob => {
                    return Ok(vec![Parent { version: (*parent, path.clone()), blob: old }]);
                }
                Some(old) => found.push(Parent { version: (*parent, path.clone()), blob: old }),
                None => without.push(*parent),
            }
        }
        for parent in without {
            let from = self.versions.renamed(&parent, sha, path)?;
            found.extend(from.map(|(from, blob)| Parent { version: (parent, from), blob }));
        }
        Ok(found)
    }

    /// Adds `spans` to the lines of `version` whose origin is sought.
    fn pass(&mut self, version: Version, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        match self.versions.time(&version.0) {
            Ok(time) => self.open.entry((time, version)).or_default().extend(spans),
            Err(_) => self.end(spans, Origin::Unknown, version.1.as_ref()),
        }
    }

    fn end(&mut self, spans: Vec<Span>, origin: Origin, path: &BStr) {
        let path = shown(&path.to_owned());
        self.found.extend(spans.into_iter().map(|span| Blamed {
            lines: span.start..span.start + span.len,
            origin,
            path: path.clone(),
            line: span.source,
        }));
    }

    /// Returns the runs of lines in order. Neighbouring lines of one origin are one run.
    fn blamed(mut self) -> Vec<Blamed> {
        self.found.sort_by_key(|run| run.lines.start);
        let mut runs: Vec<Blamed> = Vec::with_capacity(self.found.len());
        for run in self.found {
            match runs.last_mut() {
                Some(last)
                    if last.origin == run.origin
                        && last.path == run.path
                        && last.lines.end == run.lines.start
                        && last.line + last.lines.len() == run.line =>
                {
                    last.lines.end = run.lines.end;
                }
                _ => runs.push(run),
            }
        }
        runs
    }
}

/// Returns the commits that a list of ignored commits names. Each line has an id of 40 digits, or is a comment.
fn ignored(list: &[u8]) -> HashSet<Sha> {
    let lines = list.lines().filter_map(|line| line.to_str().ok());
    lines.filter_map(|line| line.split('#').next()?.trim().parse().ok()).collect()
}

/// Divides `spans` of a version into the lines that the version before has too, with their places there, and the
/// others. `hunks` are the differences, and `count` is the number of lines.
fn unchanged(hunks: &[Hunk], spans: Vec<Span>, count: usize) -> (Vec<Span>, Vec<Span>) {
    let (mut same, mut changed) = (Vec::new(), Vec::new());
    for span in spans {
        let (mut old, mut new) = (0, 0);
        let end = Hunk { old: usize::MAX..usize::MAX, new: count..count };
        let first = hunks.partition_point(|hunk| hunk.new.end <= span.source);
        if let Some(before) = first.checked_sub(1).map(|before| &hunks[before]) {
            (old, new) = (before.old.end, before.new.end);
        }
        for hunk in hunks[first..].iter().chain([&end]) {
            let sources = span.sources();
            let kept = new.max(sources.start)..hunk.new.start.min(sources.end).max(new.max(sources.start));
            same.extend(span.part(kept).map(|part| Span { source: old + (part.source - new), ..part }));
            let own = hunk.new.start.max(sources.start)..hunk.new.end.min(sources.end);
            if own.start < own.end {
                changed.extend(span.part(own));
            }
            (old, new) = (hunk.old.end, hunk.new.end);
            if new >= sources.end {
                break;
            }
        }
    }
    (same, changed)
}

/// Returns lines with their places in the version before.
fn placed(found: Vec<moved::Found>) -> impl Iterator<Item = Span> {
    found.into_iter().map(|(span, source)| Span { source, ..span })
}
