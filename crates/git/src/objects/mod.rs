//! Reads objects by name, from packs and from loose files.
//!
//! The size that an object states is checked before the object is unpacked, because a few bytes can unpack to
//! gigabytes. An object larger than the caller accepts is not read. If an object or a pack is damaged, only its own
//! content is unavailable. Objects of other repositories (`objects/info/alternates`) are read only if the user trusts
//! the repository.

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

use super::discover::files::{Folder, PathKind};
use fault::expect;
use packs::{Pack, Packs};

pub(super) use fault::Fault;

/// The maximum number of object directories that are read, including those of other repositories.
const DIRECTORIES: usize = 16;

/// The maximum number of bytes that are read of `objects/info/alternates`.
const ALTERNATES_LIMIT: u64 = 64 << 10;

/// The objects of a repository. Threads can share them; each thread reads through its own [`Handle`].
pub(super) struct Objects {
    directories: Vec<Folder>,
    packs: Packs,
    /// Whether the repository uses objects of other repositories that are not read.
    pub lacks_alternates: bool,
}

impl Objects {
    /// Returns the objects in the directory `objects`. An object is read only when it is requested.
    pub fn new(objects: Folder) -> Objects {
        let mut directories = vec![objects];
        let mut at = 0;
        let mut lacks_alternates = false;
        while let Some(directory) = directories.get(at).cloned() {
            at += 1;
            if !directory.follows() {
                lacks_alternates |= directory.look("info/alternates") != PathKind::Nothing;
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

    /// Returns a reader without a cache.
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
    /// The position in `packs` of the pack that contained the last object. The next object is looked up in that pack
    /// first.
    last: usize,
    inflate: gix::zlib::Inflate,
    recent: Option<Recent>,
    bases: Box<dyn gix::odb::pack::cache::DecodeEntry>,
}

impl Handle {
    /// Adds two caches: one of `objects` bytes for trees and commits, and one of `bases` bytes for delta bases.
    pub fn keeping(mut self, objects: usize, bases: usize) -> Handle {
        self.recent = Some(Recent::new(objects));
        self.bases = Box::new(Bases::new(bases));
        self
    }

    /// Returns whether the object exists.
    pub fn contains(&mut self, id: &gix::ObjectId) -> bool {
        self.packed(id).is_some() || loose::exists(&self.objects.directories, id) || self.relist(id)
    }

    /// Reads the object `id` into `buffer`. Fails if the object is not of `kind` or has more than `most` bytes.
    pub fn read(
        &mut self,
        id: &gix::ObjectId,
        kind: Kind,
        most: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        // Only trees and commits are cached. Neighbouring commits share most of them, but each blob is read only once.
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
        // The object may be both in a pack and in a loose file. If the first is damaged, the second may be intact.
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

    /// Returns the position of the object's pack in `packs`, and the position of the object in the index of the pack.
    fn packed(&mut self, id: &gix::ObjectId) -> Option<(usize, u32)> {
        let count = self.packs.len();
        let order = (0..count).map(|n| (self.last + n) % count.max(1));
        let found = order.filter_map(|pack| Some((pack, self.packs[pack].lookup(id)?))).next();
        if let Some((pack, _)) = found {
            self.last = pack;
        }
        found
    }

    /// Lists the packs again. Returns whether the list changed and the object is in one of the packs now.
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
