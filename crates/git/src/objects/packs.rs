//! Reads objects in packs. The index of a pack contains the offset of each object. The pack itself contains the
//! objects, either whole or as deltas of other objects.

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
use crate::discover::files::Folder;

/// The maximum number of files of `objects/pack` that are listed: up to four for each pack.
const FILES: usize = 40_000;

/// The maximum number of bytes that unpacking one object may take, including the bases of its deltas.
const UNPACK_LIMIT: usize = 128 << 20;

/// The packs of a repository, as last listed.
#[derive(Default)]
pub(super) struct Packs(Mutex<Listed>);

#[derive(Default)]
struct Listed {
    /// The times when the folders of packs last changed; `None` before the first listing.
    stamp: Option<Vec<Option<SystemTime>>>,
    packs: Arc<Vec<Arc<Pack>>>,
}

impl Packs {
    /// Returns the packs in `directories`. Lists them again if a directory has changed since they were last listed.
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
            // The newest packs come first, because they contain the objects that are read most.
            packs.sort_by_key(|pack| std::cmp::Reverse(pack.changed));
            *listed = Listed { stamp: Some(stamp), packs: Arc::new(packs) };
        }
        Arc::clone(&listed.packs)
    }
}

/// A pack and its index, opened when they are first needed.
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

    /// Returns the path of the file `name` in the directory, if it is a regular file and no part of `name` is a link.
    fn file(&self, name: &str) -> Option<PathBuf> {
        self.directory.open(name).ok().flatten()?;
        Some(self.directory.path().join(name))
    }

    fn index(&self) -> Option<&index::File> {
        let open = || index::File::at(self.file(&self.index_name)?, HashKind::Sha1).ok();
        self.index.get_or_init(|| catch_panic(open).flatten()).as_ref()
    }

    fn data(&self) -> Option<&data::File> {
        let name = self.index_name.replace(".idx", ".pack");
        let open = || {
            let data = data::File::at(self.file(&name)?, HashKind::Sha1).ok()?;
            Some(data.with_alloc_limit_bytes(Some(UNPACK_LIMIT)))
        };
        self.data.get_or_init(|| catch_panic(open).flatten()).as_ref()
    }

    /// Returns the position of an object in the pack's index, or `None` if the pack does not contain the object.
    pub fn lookup(&self, id: &gix::ObjectId) -> Option<u32> {
        let index = self.index()?;
        catch_panic(|| index.lookup(id)).flatten()
    }

    /// Reads the object at the position `place` of the index into `buffer`. Fails if the object is not of `kind` or has
    /// more than `most` bytes.
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
            // The size stated in a delta can be false, so the real size is checked too.
            if buffer.len() as u64 > most { Err(Fault::TooLarge(buffer.len() as u64)) } else { Ok(()) }
        };
        catch_panic(read).unwrap_or(Err(Fault::Damaged))
    }
}

/// Runs code of `gix` on untrusted bytes. Returns `None` if that code panics.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
