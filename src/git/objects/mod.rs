//! Objects by their names: from packs and from files of their own.
//!
//! The sizes that an object states are looked at before a byte of it is unpacked, and what has more than the caller
//! takes is not read: a few bytes can state gigabytes. A damaged object, or a damaged pack, costs what is in it. Other
//! repositories' objects (`objects/info/alternates`) are read only where the user trusts the repository.

mod fault;
mod loose;
mod packs;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use gix::objs::Kind;
use gix::odb::pack::cache::Object;
use gix::odb::pack::cache::lru::MemoryCappedHashmap as Bases;
use gix::odb::pack::cache::object::MemoryCappedHashmap as Recent;

use super::discover::files::{Folder, Found};
use fault::expect;
use packs::{Pack, Packs};

pub(super) use fault::Fault;

/// Object directories that are read, one's own and those of others, at most.
const DIRECTORIES: usize = 16;

/// Bytes of `objects/info/alternates`, at most.
const ALTERNATES_LIMIT: u64 = 64 << 10;

/// The objects of a repository; shareable between threads, each of which reads through a [`Handle`].
pub(super) struct Objects {
    directories: Vec<Folder>,
    packs: Packs,
    /// Whether other repositories' objects belong to it that are not read.
    pub lacks_alternates: bool,
}

impl Objects {
    /// Looks at the directory `objects`; nothing in it is opened yet.
    pub fn new(objects: Folder) -> Objects {
        let mut directories = vec![objects];
        let mut at = 0;
        let mut lacks_alternates = false;
        while let Some(directory) = directories.get(at).cloned() {
            at += 1;
            if !directory.follows() {
                lacks_alternates |= directory.look("info/alternates") != Found::Nothing;
                continue;
            }
            let text = directory.read("info/alternates", ALTERNATES_LIMIT).ok().flatten().unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines().filter(|line| !line.starts_with('#')) {
                let path = directory.path().join(line.trim()).canonicalize();
                let known = |path: &PathBuf| directories.iter().any(|known| known.path() == path);
                if let Ok(path) = path
                    && !line.trim().is_empty()
                    && directories.len() < DIRECTORIES
                    && path.is_dir()
                    && !known(&path)
                {
                    directories.push(Folder::new(path, true));
                }
            }
        }
        Objects { directories, packs: Packs::default(), lacks_alternates }
    }

    /// Returns a way to read them that keeps nothing.
    pub fn handle(self: &Arc<Self>) -> Handle {
        Handle {
            objects: Arc::clone(self),
            packs: self.packs.listed(&self.directories),
            last: 0,
            inflate: gix::zlib::Inflate::default(),
            recent: None,
            bases: Box::new(gix::odb::pack::cache::Never),
        }
    }
}

/// Reads objects on one thread.
pub(super) struct Handle {
    objects: Arc<Objects>,
    packs: Arc<Vec<Arc<Pack>>>,
    /// The pack in which an object was found last.
    last: usize,
    inflate: gix::zlib::Inflate,
    recent: Option<Recent>,
    bases: Box<dyn gix::odb::pack::cache::DecodeEntry>,
}

impl Handle {
    /// Keeps so many bytes of objects, and of what others are deltas of, for those that are read next.
    pub fn keeping(mut self, objects: usize, bases: usize) -> Handle {
        self.recent = Some(Recent::new(objects));
        self.bases = Box::new(Bases::new(bases));
        self
    }

    /// Whether there is such an object.
    pub fn contains(&mut self, id: &gix::ObjectId) -> bool {
        self.packed(id).is_some() || loose::exists(&self.objects.directories, id) || self.relist(id)
    }

    /// Reads an object of `kind` and of at most `most` bytes into `buffer`.
    pub fn read(
        &mut self,
        id: &gix::ObjectId,
        kind: Kind,
        most: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        // Blobs are read once; trees and commits of neighbours are mostly the same.
        let keeps = kind != Kind::Blob;
        if keeps && let Some(found) = self.recent.as_mut().and_then(|recent| recent.get(id, buffer)) {
            return expect(kind, found);
        }
        let found = match self.look(id, kind, most, buffer) {
            Err(Fault::Missing) if self.relist(id) => self.look(id, kind, most, buffer),
            found => found,
        };
        found?;
        if keeps && let Some(recent) = &mut self.recent {
            recent.put(*id, kind, buffer);
        }
        Ok(())
    }

    fn look(&mut self, id: &gix::ObjectId, kind: Kind, most: u64, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        // What is damaged in one place may be whole in another.
        let mut fault = Fault::Missing;
        if let Some((pack, index)) = self.packed(id) {
            let pack = Arc::clone(&self.packs[pack]);
            match pack.read(index, kind, most, buffer, &mut self.inflate, &mut *self.bases) {
                Err(found) => fault = found,
                Ok(()) => return Ok(()),
            }
        }
        match loose::read(&self.objects.directories, id, kind, most, buffer, &mut self.inflate) {
            Err(Fault::Missing) => Err(fault),
            found => found,
        }
    }

    /// Returns the pack that holds an object, and where in its index.
    fn packed(&mut self, id: &gix::ObjectId) -> Option<(usize, u32)> {
        let count = self.packs.len();
        let order = (0..count).map(|n| (self.last + n) % count.max(1));
        let found = order.filter_map(|pack| Some((pack, self.packs[pack].lookup(id)?))).next();
        if let Some((pack, _)) = found {
            self.last = pack;
        }
        found
    }

    /// Lists the packs anew where there are others since; returns whether the object is there now.
    fn relist(&mut self, id: &gix::ObjectId) -> bool {
        let listed = self.objects.packs.listed(&self.objects.directories);
        if Arc::ptr_eq(&listed, &self.packs) {
            return false;
        }
        self.packs = listed;
        self.last = 0;
        self.packed(id).is_some()
    }
}
