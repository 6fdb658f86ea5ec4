//! The paths and the words of all files of a commit.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::diff::entries::{Deadline, changed_entries, shown};
use crate::objects::{Fault, Handle};
use tiro_base::encoding;

/// The maximum number of bytes of files that are read for the words of a commit. Arbitrary: enough for large
/// repositories of source code.
const MOST_READ: usize = 128 << 20;

/// The maximum number of different words of a commit that are kept: 8 MiB.
const MOST_WORDS: usize = 1 << 20;

/// A larger file is read only to look for a certain word, because it was probably generated.
pub(super) const LARGEST: u64 = 1 << 20;

/// The largest file that is read at all.
const LARGEST_OF_ALL: u64 = 32 << 20;

/// The paths of all files of a commit, and the words in them, as far as they were read.
pub(crate) struct Words {
    /// The tree of the commit.
    tree: gix::ObjectId,
    /// The paths of the files.
    pub(super) paths: Vec<String>,
    /// The hashes of the words.
    known: HashSet<u64>,
    /// The files that are still to be read.
    left: Vec<gix::ObjectId>,
    /// The large files, which are read only if a word is nowhere else.
    large: Vec<gix::ObjectId>,
    /// How many bytes may still be read.
    budget: usize,
    /// Whether the limits allowed to read everything.
    is_whole: bool,
}

impl Words {
    /// Returns the words of `tree`. They are kept in `kept` until another tree is asked for. Returns `None` if the
    /// files of the tree can't be listed.
    pub(super) fn of<'k>(
        kept: &'k mut Option<Words>,
        objects: &mut Handle,
        tree: gix::ObjectId,
        deadline: Deadline,
    ) -> Option<&'k mut Words> {
        if kept.as_ref().is_none_or(|words| words.tree != tree) {
            let listed =
                changed_entries(objects, None, tree, deadline).ok().filter(|listed| !listed.partial)?;
            let paths = listed.found.iter().map(|entry| shown(&entry.path)).collect();
            let left = listed.found.iter().filter_map(|entry| Some(entry.new?.1)).collect();
            let (known, large) = (HashSet::new(), Vec::new());
            *kept = Some(Words { tree, paths, known, left, large, budget: MOST_READ, is_whole: true });
        }
        kept.as_mut()
    }

    /// Returns for each of `names` whether a file contains it as a word, or `None` if that is not known yet. Reads the
    /// files that are still to be read.
    pub(super) fn contain(
        &mut self,
        objects: &mut Handle,
        names: &[String],
        deadline: Deadline,
    ) -> Vec<Option<bool>> {
        while let Some(id) = self.left.pop_if(|_| !deadline.is_over()) {
            match read(objects, &id, LARGEST) {
                Ok(text) => {
                    add_words(&text, &mut self.known);
                    self.budget = self.budget.saturating_sub(text.len());
                }
                Err(Fault::TooLarge(_)) => self.large.push(id),
                Err(_) => self.is_whole = false,
            }
            if self.budget == 0 || self.known.len() > MOST_WORDS {
                (self.is_whole, self.left) = (false, Vec::new());
            }
        }
        let mut is_known: Vec<Option<bool>> = names
            .iter()
            .map(|name| match self.known.contains(&hash(name.as_bytes())) {
                true => Some(true),
                false => (self.is_whole && self.left.is_empty()).then_some(false),
            })
            .collect();
        // A word that is nowhere else may be in a large file.
        for id in &self.large {
            if !is_known.contains(&Some(false)) {
                break;
            }
            let mut found = HashSet::new();
            let is_read = !deadline.is_over()
                && read(objects, id, LARGEST_OF_ALL).is_ok_and(|text| {
                    add_words(&text, &mut found);
                    true
                });
            for (name, known) in names.iter().zip(&mut is_known).filter(|(_, known)| **known == Some(false)) {
                match found.contains(&hash(name.as_bytes())) {
                    true => *known = Some(true),
                    false if !is_read => *known = None,
                    false => {}
                }
            }
        }
        is_known
    }
}

/// Returns the content of a file, in UTF-8 if it is text in an encoding with zeros.
pub(super) fn read(objects: &mut Handle, id: &gix::ObjectId, most: u64) -> Result<Vec<u8>, Fault> {
    let mut data = Vec::new();
    objects.read(id, gix::objs::Kind::Blob, most, &mut data)?;
    match data.contains(&0) {
        // UTF-16 has zeros, and so have images, which have no words.
        true => Ok(encoding::text(data).map(|text| text.text.into_bytes()).unwrap_or_default()),
        false => Ok(data),
    }
}

/// Adds the hashes of the words of a file.
pub(super) fn add_words(text: &[u8], known: &mut HashSet<u64>) {
    let is_border = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b'_');
    known.extend(text.split(is_border).filter(|word| !word.is_empty()).map(hash));
}

pub(super) fn hash(word: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}
