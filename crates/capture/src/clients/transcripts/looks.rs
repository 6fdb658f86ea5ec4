//! Keeps the results of looking at transcripts, so that the next search needs to look only at new or changed ones.
//!
//! If the file is lost or damaged, all transcripts are looked at again. If several processes write the file at the same
//! time, the last one wins.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::FOLDER;
use super::every::{Listed, Stamp};
use super::lines::{around, open};
use super::look::Look;
use super::unpacked::plain;
use crate::clients::Client;
use tiro_base::error::{Context, Kind, Result, quoted};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};
use tiro_base::file::{self, Links, text_of};
use tiro_base::parallel;
use tiro_base::private;

/// The largest file that is read, in bytes. Arbitrary: enough for a million transcripts.
const LARGEST: u64 = 512 << 20;

/// The version of the file's format. It changes when a look notes other things.
const VERSION: u32 = 1;

/// The number of bytes that are compared to recognise a file that has grown.
const AROUND: u64 = 1024;

/// The number of transcripts after which the progress is reported again.
const STEP: usize = 32;

/// The results of earlier looks at the transcripts of a client.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Looks {
    version: u32,
    /// The results, keyed by the path of the transcript as text.
    known: HashMap<String, Known>,
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    is_changed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    /// A digest of the bytes before the end of the look.
    digest: String,
    look: Look,
}

impl Looks {
    /// Reads the stored results for the transcripts of `client` from `data_dir`.
    pub fn of(data_dir: &Path, client: Client) -> Looks {
        let path = data_dir.join(FOLDER).join(format!("{}.json", client.word()));
        let looks: Looks = read(&path);
        let known = if looks.version == VERSION { looks.known } else { HashMap::new() };
        Looks { version: VERSION, known, path: Some(path), is_changed: false }
    }

    /// Looks at those of the `listed` transcripts that are new or have changed. Returns one result for each of them, in
    /// the same order; an error gives the reason why the transcript can't be read. `progress` is called with the number
    /// of bytes that were looked at and the total.
    pub fn look_at(&mut self, listed: &[Listed], mut progress: impl FnMut(u64, u64)) -> Vec<Result<Look>> {
        let key = |each: &Listed| text_of(&each.path);
        let is_known = |each: &&Listed| self.known.get(&key(each)).is_some_and(|it| it.stamp == each.stamp);
        let new: Vec<&Listed> = listed.iter().filter(|each| !is_known(each)).collect();
        let all: u64 = new.iter().map(|each| each.stamp.bytes).sum();
        let (mut done, mut failed) = (0, HashMap::new());
        for some in new.chunks(STEP) {
            let looked = parallel::on_all_cores(some, |each| look(each, self.known.get(&key(each))));
            for (each, looked) in some.iter().zip(looked) {
                done += each.stamp.bytes;
                match looked {
                    Ok(known) => drop(self.known.insert(key(each), known)),
                    Err(error) => drop(failed.insert(key(each), error)),
                }
            }
            progress(done, all);
        }
        let before = self.known.len();
        let names: HashSet<String> = listed.iter().map(key).collect();
        self.known.retain(|name, _| names.contains(name));
        self.is_changed |= !new.is_empty() || self.known.len() != before;
        let found = |each: &Listed| match failed.remove(&key(each)) {
            Some(error) => Err(error),
            None => Ok(self.known.get(&key(each)).map(|known| known.look.clone()).unwrap_or_default()),
        };
        listed.iter().map(found).collect()
    }

    /// Writes the file, unless nothing changed.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if it can't be written.
    pub fn keep(&self) -> Result<()> {
        match &self.path {
            Some(path) if self.is_changed => write(path, self),
            _ => Ok(()),
        }
    }
}

/// Replaces the private file at `path` with `value`, atomically.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    private::create_dir(path.parent().expect("it is in a folder"))?;
    let bytes = serde_json::to_vec(value).context(Kind::Io, || "cannot write a list".to_owned())?;
    user_file::replace(path, &FileSnapshot { bytes: Bytes(bytes), mode: 0o600 })
}

/// Reads the file at `path`. A damaged file counts as empty.
pub(super) fn read<T: Default + serde::de::DeserializeOwned>(path: &Path) -> T {
    let bytes = file::read(path, Links::Refused, LARGEST).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Looks at a transcript. If the transcript is `known` and has only grown since, looks only at the new part.
fn look(listed: &Listed, known: Option<&Known>) -> Result<Known> {
    let path = &listed.path;
    let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
    let digest = |at: u64| -> Result<String> {
        Ok(blake3::hash(&around(path, at, AROUND)?.1).to_hex()[..16].to_owned())
    };
    let is_packed = plain(path) != *path;
    let known = known.filter(|known| {
        let is_longer = known.stamp.file == listed.stamp.file && known.stamp.bytes <= listed.stamp.bytes;
        is_longer && !is_packed && digest(known.look.looked).is_ok_and(|digest| digest == known.digest)
    });
    let mut look = known.map(|known| known.look.clone()).unwrap_or_default();
    let mut text = open(path)?;
    text.skip_to(look.looked).context(Kind::Io, failed)?;
    look.take(&mut text).context(Kind::Io, failed)?;
    // A compressed transcript doesn't grow.
    let digest = if is_packed { String::new() } else { digest(look.looked)? };
    Ok(Known { stamp: listed.stamp.clone(), digest, look })
}
