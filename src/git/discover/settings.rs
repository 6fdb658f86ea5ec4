//! The few settings of a repository that matter here. Includes are not followed, and nothing that a setting names is run.

use std::path::PathBuf;

use gix::bstr::ByteSlice;
use gix::config::File;
use gix::config::file::Metadata;

use super::files::{Fault, Folder, path_of};

/// Bytes of a configuration file, at most. Arbitrary: a thousand branches take a tenth of it.
const LIMIT: u64 = 1 << 20;

/// What a repository's configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Settings {
    /// `core.bare`: whether it has no work tree.
    pub bare: bool,
    /// `core.worktree`, as it stands there: relative to the git directory.
    pub work_tree: Option<PathBuf>,
    /// `core.hooksPath`, as it stands there.
    pub hooks_path: Option<String>,
    /// What of its format is not understood, in words.
    pub foreign: Option<&'static str>,
}

/// Reads `config` of the directory that all work trees share, and `config.worktree` of the one's own where that counts;
/// or returns which of the two can't be read, and why.
pub(super) fn read(common: &Folder, own: &Folder) -> Result<Settings, (PathBuf, Fault)> {
    let shared = one(common, "config")?;
    let Some(shared) = shared else { return Ok(Settings::default()) };
    let has_own = shared.boolean("extensions.worktreeConfig").ok().flatten().unwrap_or(false);
    let own = if has_own { one(own, "config.worktree")? } else { None };
    let files = || own.iter().chain([&shared]);
    let string = |key: &str| files().find_map(|file| file.string(key));
    let path = |key: &str| string(key).and_then(|value| path_of(&value));
    let foreign = match () {
        () if string("extensions.objectFormat").is_some_and(|format| format != "sha1") => {
            Some("its objects are not named by SHA-1")
        }
        () if string("extensions.refStorage").is_some_and(|format| format != "files") => {
            Some("its references are not kept in files")
        }
        () => None,
    };
    Ok(Settings {
        bare: files().find_map(|file| file.boolean("core.bare").ok().flatten()).unwrap_or(false),
        work_tree: path("core.worktree"),
        hooks_path: string("core.hooksPath").map(|value| value.to_str_lossy().into_owned()),
        foreign,
    })
}

fn one(folder: &Folder, name: &str) -> Result<Option<File>, (PathBuf, Fault)> {
    let failed = |fault| (folder.path().join(name), fault);
    let Some(bytes) = folder.read(name, LIMIT).map_err(failed)? else { return Ok(None) };
    parse(&bytes).map(Some).ok_or_else(|| failed(Fault::Content))
}

/// Reads what a configuration file holds; `None` where it is none.
pub(in crate::git) fn parse(bytes: &[u8]) -> Option<File> {
    File::from_bytes_no_includes(bytes, Metadata::api(), Default::default()).ok()
}
