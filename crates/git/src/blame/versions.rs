//! Reads versions of files: what is at a path in a commit, and its lines.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Kind;

use super::lines::Text;
use crate::commit;
use crate::diff::entries::{Blobs, COMMIT_BUDGET, Deadline, changed_entries};
use crate::diff::renames::pair_renames;
use crate::objects::{Fault, Handle};
use crate::repository::Repository;
use crate::sha::Sha;

/// The largest version of a file that is read, in bytes. Arbitrary: about 400,000 lines.
pub const LARGEST: u64 = 16 << 20;

/// The largest folder that is read, in bytes.
const LARGEST_TREE: u64 = 16 << 20;

/// How many bytes of trees and commits, and of bases of packed objects, are kept.
const OBJECT_CACHE: usize = 16 << 20;
const PACK_CACHE: usize = 32 << 20;

/// How many versions are kept. A version is needed as the parent's, and then as the commit's own.
const TEXTS: usize = 4;

/// How many folders are remembered. Arbitrary: neighbouring commits share nearly all of them.
const FOLDERS: usize = 4096;

/// Reads versions of files, and remembers those that neighbouring commits share.
pub(super) struct Versions {
    objects: Handle,
    texts: VecDeque<(gix::ObjectId, Rc<Text>)>,
    /// What is at paths that were looked up: a folder, and the rest of the path.
    folders: HashMap<(gix::ObjectId, BString), Option<gix::ObjectId>>,
    buffer: Vec<u8>,
}

impl Versions {
    pub fn of(repository: &Repository) -> Versions {
        let objects = repository.objects.handle().keeping(OBJECT_CACHE, PACK_CACHE);
        Versions { objects, texts: VecDeque::new(), folders: HashMap::new(), buffer: Vec::new() }
    }

    /// Returns the parents of a commit.
    pub fn parents(&mut self, sha: &Sha) -> Result<Vec<Sha>, String> {
        commit::parents(&mut self.objects, sha, &mut self.buffer)
    }

    /// Returns the time of a commit in seconds since 1970.
    pub fn time(&mut self, sha: &Sha) -> Result<i64, String> {
        Ok(commit::parents_and_time(&mut self.objects, sha, &mut self.buffer)?.1)
    }

    /// Returns the path and the content that the file `path` of `sha` had in `parent`, before it was renamed.
    pub fn renamed(
        &mut self,
        parent: &Sha,
        sha: &Sha,
        path: &BString,
    ) -> Result<Option<(BString, gix::ObjectId)>, String> {
        let [old, new] = [parent, sha].map(|sha| self.tree(sha));
        let deadline = Deadline::begin();
        let mut entries = changed_entries(&mut self.objects, Some(old?), new?, deadline)?.found;
        let mut blobs = Blobs { objects: &mut self.objects, left: COMMIT_BUDGET, deadline };
        // Only one added file counts, so the others don't use up the limit of pairs.
        entries.retain(|entry| entry.new.is_none() || entry.path == *path);
        pair_renames(&mut entries, Some(&mut blobs));
        let entry = entries.into_iter().find(|entry| entry.path == *path);
        Ok(entry.and_then(|entry| Some((entry.from?, entry.old?.1))))
    }

    fn tree(&mut self, sha: &Sha) -> Result<gix::ObjectId, String> {
        commit::read(&mut self.objects, sha, &mut self.buffer).map(|commit| commit.tree)
    }

    /// Returns the file at `path` in the commit `sha`.
    pub fn blob(&mut self, sha: &Sha, path: &BStr) -> Result<Option<gix::ObjectId>, String> {
        let mut at = self.tree(sha)?;
        let mut rest = path;
        loop {
            let key = (at, rest.to_owned());
            let (name, below) = rest
                .split_once_str("/")
                .map_or((rest, None), |(name, below)| (name.as_bstr(), Some(below.as_bstr())));
            let found = match self.folders.get(&key) {
                Some(known) => *known,
                None => {
                    let found = self.entry(&at, name, below.is_some())?;
                    if self.folders.len() >= FOLDERS {
                        self.folders.clear();
                    }
                    self.folders.insert(key, found);
                    found
                }
            };
            match (found, below) {
                (Some(found), Some(below)) => (at, rest) = (found, below),
                (found, _) => return Ok(found),
            }
        }
    }

    /// Returns the folder, or the file, called `name` in a folder.
    fn entry(
        &mut self,
        folder: &gix::ObjectId,
        name: &BStr,
        is_folder: bool,
    ) -> Result<Option<gix::ObjectId>, String> {
        if folder.is_empty_tree() {
            return Ok(None);
        }
        let read = self.objects.read(folder, Kind::Tree, LARGEST_TREE, &mut self.buffer);
        read.map_err(|fault| format!("the folder `{folder}`: {fault}"))?;
        let entries = gix::objs::TreeRefIter::from_bytes(&self.buffer, gix::hash::Kind::Sha1);
        let is_it = |entry: &gix::objs::tree::EntryRef<'_>| {
            let mode = entry.mode;
            entry.filename == name && if is_folder { mode.is_tree() } else { mode.is_blob() }
        };
        Ok(entries.map_while(Result::ok).find(is_it).map(|entry| entry.oid.to_owned()))
    }

    /// Returns the lines of a file.
    pub fn text(&mut self, blob: gix::ObjectId) -> Result<Rc<Text>, Fault> {
        if let Some((_, text)) = self.texts.iter().find(|(id, _)| *id == blob) {
            return Ok(Rc::clone(text));
        }
        self.objects.read(&blob, Kind::Blob, LARGEST, &mut self.buffer)?;
        let text = Rc::new(Text::of(&self.buffer));
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_back((blob, Rc::clone(&text)));
        Ok(text)
    }

    /// Returns the content of a file.
    pub fn content(&mut self, blob: gix::ObjectId) -> Result<Vec<u8>, Fault> {
        let mut content = Vec::new();
        self.objects.read(&blob, Kind::Blob, LARGEST, &mut content)?;
        Ok(content)
    }
}
