//! Reads loose objects, which are files such as `objects/ab/cdef…`. A loose object is a header with the kind and the
//! size, followed by the content, all deflated.

use gix::objs::Kind;
use gix::zlib::{Inflate, Status};

use super::fault::{Fault, expect};
use crate::discover::files::{self, Folder, PathKind};

/// How many bytes are unpacked to read the header. No header has so many.
const HEADER: usize = 64;

fn name(id: &gix::ObjectId) -> String {
    let hex = id.to_hex().to_string();
    format!("{}/{}", &hex[..2], &hex[2..])
}

/// Returns whether a loose file exists for the object.
pub(super) fn exists(directories: &[Folder], id: &gix::ObjectId) -> bool {
    let name = name(id);
    directories.iter().any(|directory| directory.look(&name) == PathKind::File)
}

/// Reads the object `id` into `buffer`. Fails if the object is not of `kind` or has more than `most` bytes.
pub(super) fn read(
    directories: &[Folder],
    id: &gix::ObjectId,
    kind: Kind,
    most: u64,
    buffer: &mut Vec<u8>,
    inflate: &mut Inflate,
) -> Result<(), Fault> {
    let name = name(id);
    // A longer file contains an object of more than `most` bytes: even data that can't be compressed grows only
    // slightly when deflated.
    let deflated_most = most + most / 100 + 1024;
    for directory in directories {
        let bytes = match directory.read(&name, deflated_most) {
            Ok(None) => continue,
            Ok(Some(bytes)) => bytes,
            Err(files::Fault::TooLarge(bytes)) => return Err(Fault::TooLarge(bytes)),
            Err(_) => return Err(Fault::Damaged),
        };
        return unpack(&bytes, kind, most, buffer, inflate);
    }
    Err(Fault::Missing)
}

fn unpack(
    bytes: &[u8],
    kind: Kind,
    most: u64,
    buffer: &mut Vec<u8>,
    inflate: &mut Inflate,
) -> Result<(), Fault> {
    inflate.reset();
    let mut beginning = [0; HEADER];
    let (status, read, written) = inflate.prefix(bytes, &mut beginning).map_err(|_| Fault::Damaged)?;
    let beginning = &beginning[..written];
    let (found, size, header) = gix::objs::decode::loose_header(beginning).map_err(|_| Fault::Damaged)?;
    expect(kind, found)?;
    if size > most {
        return Err(Fault::TooLarge(size));
    }
    let size = usize::try_from(size).map_err(|_| Fault::Damaged)?;
    if beginning.len() - header > size {
        return Err(Fault::Damaged);
    }
    let unpacked = match status {
        Status::StreamEnd => {
            buffer.clear();
            buffer.extend_from_slice(&beginning[header..]);
            buffer.len()
        }
        _ => inflate.rest(&bytes[read..], beginning, header, buffer, size).map_err(|_| Fault::Damaged)?,
    };
    if unpacked == size { Ok(()) } else { Err(Fault::Damaged) }
}
