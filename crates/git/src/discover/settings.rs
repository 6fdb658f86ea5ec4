//! Reads a handful of settings of a repository. Included files are not read, and no program that a setting names is
//! run.

use std::path::PathBuf;

use gix::bstr::ByteSlice;
use gix::config::File;
use gix::config::file::Metadata;

use super::files::{Fault, Folder, path_of};

/// The maximum number of bytes of a configuration file. Arbitrary: the settings of a thousand branches take a tenth
/// of this limit.
const LIMIT: u64 = 1 << 20;

/// The settings of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `core.bare`: whether the repository has no work tree.
    pub bare: bool,
    /// `core.worktree` as written. A relative path is relative to the git directory.
    pub work_tree: Option<PathBuf>,
    /// `core.hooksPath` as written.
    pub hooks_path: Option<String>,
    /// Why the format of the repository is not supported, in words; `None` if it is supported.
    pub foreign: Option<&'static str>,
}

/// Reads `config` in the directory that all work trees share. Also reads `config.worktree` in the work tree's own git
/// directory, if `config` enables this file; the settings of `config.worktree` take precedence.
///
/// # Errors
///
/// Returns the path of the file that can't be read, and why.
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
            Some("it does not name its objects by SHA-1")
        }
        () if string("extensions.refStorage").is_some_and(|format| format != "files") => {
            Some("it does not keep its references in files")
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

/// Parses a configuration file; returns `None` if it is invalid.
fn parse(bytes: &[u8]) -> Option<File> {
    File::from_bytes_no_includes(bytes, Metadata::api(), Default::default()).ok()
}
