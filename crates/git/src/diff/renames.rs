//! Finds renamed files among the deleted and added files of a commit: first those with equal content, then those that
//! share at least half of their lines.

use std::collections::{HashMap, HashSet};

use gix::bstr::{BString, ByteSlice};
use gix::objs::tree::EntryMode;

use super::entries::{Blob, Blobs, Entry};

/// The maximum number of pairs of a deleted and an added file whose lines are compared. If there are more
/// pairs, no lines are compared.
const RENAME_PAIRS: usize = 400;

/// If several deleted files have the same content as an added file, this many of them are checked for the same file
/// name.
const NAMESAKES: usize = 64;

/// Finds pairs of a deleted and an added file, and joins each pair into one renamed file. Files of equal content are
/// paired first, preferably with the same file name. If `blobs` is given and few files are left after this, the files
/// that share the most lines are paired.
pub(crate) fn pair_renames(entries: &mut Vec<Entry>, blobs: Option<&mut Blobs<'_>>) {
    let is_blob = |side: &Option<(EntryMode, gix::ObjectId)>| side.is_some_and(|(mode, _)| mode.is_blob());
    let mut deleted: Vec<usize> = Vec::new();
    let mut added: Vec<usize> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match (&entry.old, &entry.new) {
            (old, None) if is_blob(old) => deleted.push(index),
            (None, new) if is_blob(new) => added.push(index),
            _ => {}
        }
    }
    if deleted.is_empty() || added.is_empty() {
        return;
    }

    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut by_content: HashMap<gix::ObjectId, Vec<usize>> = HashMap::new();
    for &index in &deleted {
        by_content.entry(entries[index].old.expect("deleted files had content").1).or_default().push(index);
    }
    added.retain(|&index| {
        let id = entries[index].new.expect("added files have content").1;
        let Some(sources) =
            by_content.get_mut(&id).filter(|sources| !sources.is_empty() && !id.is_empty_blob())
        else {
            return true;
        };
        let name = file_name(&entries[index].path);
        let mut close = sources.iter().take(NAMESAKES);
        let best = close.position(|&source| file_name(&entries[source].path) == name).unwrap_or(0);
        pairs.push((sources.remove(best), index));
        false
    });
    let paired: HashSet<usize> = pairs.iter().map(|(source, _)| *source).collect();
    deleted.retain(|index| !paired.contains(index));
    if let Some(blobs) = blobs.filter(|_| deleted.len() * added.len() <= RENAME_PAIRS) {
        pairs.extend(similar(entries, &deleted, &added, blobs));
    }

    for &(source, target) in &pairs {
        entries[target].old = entries[source].old;
        entries[target].from = Some(entries[source].path.clone());
    }
    let mut index = 0;
    let sources: HashSet<usize> = pairs.iter().map(|&(source, _)| source).collect();
    entries.retain(|_| {
        index += 1;
        !sources.contains(&(index - 1))
    });
}

fn file_name(path: &BString) -> &[u8] {
    path.rsplit_once_str("/").map_or(path.as_slice(), |(_, name)| name)
}

/// Returns the pairs whose equal lines make up at least half of the bytes of the larger file, the most similar pair
/// first. Each file is in at most one pair.
fn similar(
    entries: &[Entry],
    deleted: &[usize],
    added: &[usize],
    blobs: &mut Blobs<'_>,
) -> Vec<(usize, usize)> {
    if deleted.is_empty() || added.is_empty() {
        return Vec::new();
    }
    let mut lines = |index: usize| {
        let mut lines: HashMap<u64, (i64, usize)> = HashMap::new();
        let Blob::Text(text) = blobs.read(entries[index].old.or(entries[index].new)) else {
            return (lines, 0);
        };
        for line in text.lines() {
            lines.entry(hash(line)).or_insert((0, line.len() + 1)).0 += 1;
        }
        (lines, text.len())
    };
    let old: Vec<_> = deleted.iter().map(|&index| lines(index)).collect();
    let new: Vec<_> = added.iter().map(|&index| lines(index)).collect();
    let mut scored = Vec::new();
    for (source, (old, old_bytes)) in deleted.iter().zip(&old) {
        for (target, (new, new_bytes)) in added.iter().zip(&new) {
            let (small, large) = (*old_bytes.min(new_bytes), *old_bytes.max(new_bytes));
            if small * 2 < large || large == 0 {
                continue;
            }
            let shared: usize = old
                .iter()
                .filter_map(|(line, (count, bytes))| Some(new.get(line)?.0.min(*count) as usize * bytes))
                .sum();
            if shared * 2 >= large {
                scored.push((shared as f64 / large as f64, *source, *target));
            }
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (_, source, target) in scored {
        if !pairs.iter().any(|&(taken, given)| taken == source || given == target) {
            pairs.push((source, target));
        }
    }
    pairs
}

/// Hashes a line with FNV-1a, which is fast for short lines. A collision only makes two files look more similar.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
