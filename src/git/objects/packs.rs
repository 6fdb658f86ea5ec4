//! Objects in packs: an index that says where each lies, and the pack with objects and with what differs from others.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::odb::pack::cache::DecodeEntry;
use gix::odb::pack::data::decode::{entry, header};
use gix::odb::pack::{data, index};
use gix::zlib::Inflate;

use super::fault::{Fault, expect};
use crate::git::discover::files::Folder;

/// Files of `objects/pack` that are looked at, at most: four for each pack.
const FILES: usize = 40_000;

/// Bytes that unpacking one object may take, whatever the object's own size: the bases of deltas are unpacked too.
const UNPACK_LIMIT: usize = 128 << 20;

/// The packs of a repository, as they were listed last.
#[derive(Default)]
pub(super) struct Packs(Mutex<Listed>);

#[derive(Default)]
struct Listed {
    /// When each folder of packs changed last.
    stamp: Option<Vec<Option<SystemTime>>>,
    packs: Arc<Vec<Arc<Pack>>>,
}

impl Packs {
    /// Returns the packs in `directories`, listing them where there are others since the last time.
    pub fn listed(&self, directories: &[Folder]) -> Arc<Vec<Arc<Pack>>> {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = |directory: &Folder| {
            let metadata = directory.path().join("pack").symlink_metadata();
            metadata.and_then(|metadata| metadata.modified()).ok()
        };
        let stamp: Vec<_> = directories.iter().map(changed).collect();
        if listed.stamp.as_ref() != Some(&stamp) {
            let before: HashMap<PathBuf, Arc<Pack>> =
                listed.packs.iter().map(|pack| (pack.name(), Arc::clone(pack))).collect();
            let mut packs: Vec<Arc<Pack>> = Vec::new();
            for directory in directories {
                let (files, _) = directory.list("pack", FILES).unwrap_or_default();
                let names =
                    files.into_iter().filter(|(name, _)| name.ends_with(".idx")).map(|(name, _)| name);
                packs.extend(names.map(|name| {
                    let pack = Pack::new(directory.clone(), format!("pack/{name}"));
                    before.get(&pack.name()).map_or_else(|| Arc::new(pack), Arc::clone)
                }));
            }
            // Those that were written last hold what is asked for most.
            packs.sort_by_key(|pack| std::cmp::Reverse(pack.changed));
            *listed = Listed { stamp: Some(stamp), packs: Arc::new(packs) };
        }
        Arc::clone(&listed.packs)
    }
}

/// A pack and its index, opened when they are needed.
pub(super) struct Pack {
    directory: Folder,
    index_name: String,
    changed: Option<SystemTime>,
    index: OnceLock<Option<index::File>>,
    data: OnceLock<Option<data::File>>,
}

impl Pack {
    fn new(directory: Folder, index_name: String) -> Pack {
        let metadata = directory.path().join(&index_name).symlink_metadata();
        let changed = metadata.and_then(|metadata| metadata.modified()).ok();
        Pack { directory, index_name, changed, index: OnceLock::new(), data: OnceLock::new() }
    }

    fn name(&self) -> PathBuf {
        self.directory.path().join(&self.index_name)
    }

    /// Returns a file's path, where a regular file stands there and no link leads to it.
    fn file(&self, name: &str) -> Option<PathBuf> {
        self.directory.open(name).ok().flatten()?;
        Some(self.directory.path().join(name))
    }

    fn index(&self) -> Option<&index::File> {
        let open = || index::File::at(self.file(&self.index_name)?, HashKind::Sha1).ok();
        self.index.get_or_init(|| quietly(open).flatten()).as_ref()
    }

    fn data(&self) -> Option<&data::File> {
        let name = self.index_name.replace(".idx", ".pack");
        let open = || {
            let data = data::File::at(self.file(&name)?, HashKind::Sha1).ok()?;
            Some(data.with_alloc_limit_bytes(Some(UNPACK_LIMIT)))
        };
        self.data.get_or_init(|| quietly(open).flatten()).as_ref()
    }

    /// Returns where in the index an object stands; `None` where it is not in this pack.
    pub fn lookup(&self, id: &gix::ObjectId) -> Option<u32> {
        let index = self.index()?;
        quietly(|| index.lookup(id)).flatten()
    }

    /// Reads the object at a place of the index, of `kind` and of at most `most` bytes, into `buffer`.
    pub fn read(
        &self,
        place: u32,
        kind: Kind,
        most: u64,
        buffer: &mut Vec<u8>,
        inflate: &mut Inflate,
        bases: &mut dyn DecodeEntry,
    ) -> Result<(), Fault> {
        let (Some(index), Some(data)) = (self.index(), self.data()) else { return Err(Fault::Damaged) };
        let entry_of = |id: &gix::oid| -> Result<Option<data::Entry>, gix::Error> {
            index.lookup(id).map(|place| data.entry(index.pack_offset_at_index(place))).transpose()
        };
        let read = || -> Result<(), Fault> {
            let entry = data.entry(index.pack_offset_at_index(place)).map_err(|_| Fault::Damaged)?;
            let base = |id: &gix::oid| Ok(entry_of(id)?.map(header::ResolvedBase::InPack));
            let header = data.decode_header(entry.clone(), inflate, &base).map_err(|_| Fault::Damaged)?;
            expect(kind, header.kind)?;
            if header.object_size > most {
                return Err(Fault::TooLarge(header.object_size));
            }
            let base = |id: &gix::oid, _: &mut Vec<u8>| Ok(entry_of(id)?.map(entry::ResolvedBase::InPack));
            data.decode_entry(entry, buffer, inflate, &base, bases).map_err(|_| Fault::Damaged)?;
            // Of a delta the size that was stated is not the one that came of it.
            if buffer.len() as u64 > most { Err(Fault::TooLarge(buffer.len() as u64)) } else { Ok(()) }
        };
        quietly(read).unwrap_or(Err(Fault::Damaged))
    }
}

/// Runs the library's code on bytes that others wrote; `None` where it panics.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
