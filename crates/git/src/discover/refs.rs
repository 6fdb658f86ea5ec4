//! Reads references: `HEAD`, and the commits of the local branches.
//!
//! References are read as text, from loose files and from `packed-refs`. As in git, symbolic references are followed
//! for a few steps, and only to references below `refs/`. A reference that can't be read is left out. The name of such
//! a reference is reported, but not its content.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::Location;
use super::files::{Folder, PathKind};
use crate::sha::Sha;

/// The maximum number of bytes of a loose reference.
const REF_LIMIT: u64 = 1 << 10;

/// The maximum number of bytes of `packed-refs`: about a million references.
const PACKED_LIMIT: u64 = 64 << 20;

/// The maximum number of branches that are read.
pub(crate) const BRANCH_LIMIT: usize = 20_000;

/// The maximum number of folders of branches that are read.
const FOLDER_LIMIT: usize = 10_000;

/// The maximum number of symbolic references that are followed in a row, as in git.
const STEPS: usize = 5;

/// The content of `HEAD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The reference that `HEAD` names, such as `refs/heads/main`; `None` when `HEAD` is detached.
    pub name: Option<String>,
    /// The commit; `None` if the branch has no commit yet.
    pub commit: Option<Sha>,
    /// Why `HEAD` could not be read, in words; `None` if it was read.
    pub fault: Option<String>,
}

/// The local branches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branches {
    /// The commit of each branch. The key is the name of the branch, without `refs/heads/`.
    pub found: BTreeMap<String, Sha>,
    /// Which references were left out, and why, in words.
    pub faults: Vec<String>,
    /// Whether there are more branches than were read.
    pub partial: bool,
}

/// The content of `packed-refs`, as last read.
#[derive(Default)]
pub(crate) struct Packed(Mutex<Option<(Stamp, Arc<Vec<u8>>)>>);

type Stamp = (u64, Option<SystemTime>);

/// The content of a loose reference.
enum Target {
    Id(Sha),
    Name(String),
}

impl Packed {
    /// Returns the content of the file, or the reason why it can't be read. The content is empty if there is no such
    /// file.
    fn read(&self, common: &Folder) -> Result<Arc<Vec<u8>>, String> {
        let failed = |fault| format!("`packed-refs` {fault}");
        let stamp = |metadata: &Metadata| (metadata.len(), metadata.modified().ok());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, metadata)) = common.open("packed-refs").map_err(failed)? else {
            *kept = None;
            return Ok(Arc::default());
        };
        let stamp = stamp(&metadata);
        if let Some((_, bytes)) = kept.as_ref().filter(|(before, _)| *before == stamp) {
            return Ok(Arc::clone(bytes));
        }
        let bytes = Arc::new(common.read("packed-refs", PACKED_LIMIT).map_err(failed)?.unwrap_or_default());
        *kept = Some((stamp, Arc::clone(&bytes)));
        Ok(bytes)
    }
}

/// Returns the references of a `packed-refs` file.
fn packed(bytes: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Sha)> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let (id, name) = line.trim_ascii_end().split_at_checked(41)?;
        let sha = std::str::from_utf8(&id[..40]).ok()?.parse().ok()?;
        Some((String::from_utf8_lossy(name), sha))
    })
}

/// Reads `HEAD` and the commit that it leads to.
pub(crate) fn head(location: &Location, packed: &Packed) -> Head {
    match step(location, "HEAD") {
        Err(fault) => Head { fault: Some(fault), ..Head::default() },
        Ok(None) => Head { fault: Some("`HEAD` is missing".to_owned()), ..Head::default() },
        Ok(Some(Target::Id(commit))) => Head { commit: Some(commit), ..Head::default() },
        Ok(Some(Target::Name(name))) => {
            let (commit, fault) = match resolve(location, packed, &name) {
                Ok(commit) => (commit, None),
                Err(fault) => (None, Some(fault)),
            };
            Head { name: Some(name), commit, fault }
        }
    }
}

/// Returns the object that the reference `name` finally leads to, or `None` if there is no such reference.
pub(crate) fn resolve(location: &Location, kept: &Packed, name: &str) -> Result<Option<Sha>, String> {
    let mut name = name.to_owned();
    for _ in 0..STEPS {
        match step(location, &name)? {
            Some(Target::Id(sha)) => return Ok(Some(sha)),
            Some(Target::Name(next)) => name = next,
            None => {
                let bytes = kept.read(&location.common)?;
                return Ok(packed(&bytes).find(|(packed, _)| *packed == *name).map(|(_, sha)| sha));
            }
        }
    }
    Err(format!("`{name}` is reached through more than {STEPS} references"))
}

/// Reads the loose file of the reference `name`. Returns `None` if there is no such file.
fn step(location: &Location, name: &str) -> Result<Option<Target>, String> {
    let is_own =
        ["HEAD", "refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|own| name.starts_with(own));
    read(if is_own { &location.own } else { &location.common }, name, name, true)
}

/// Reads `file`, the loose file of the reference `name`. Returns `None` if there is no such file.
fn read(folder: &Folder, file: &str, name: &str, may_be_link: bool) -> Result<Option<Target>, String> {
    // Old versions of git wrote a symbolic reference as a link. The link's target is read as text; the link is not
    // followed.
    let linked =
        may_be_link.then(|| folder.link(file)).flatten().and_then(|target| Some(target.to_str()?.to_owned()));
    if let Some(target) = linked.filter(|target| is_name(target)) {
        return Ok(Some(Target::Name(target)));
    }
    let failed = |fault: &dyn std::fmt::Display| format!("`{name}` {fault}");
    let Some(bytes) = folder.read(file, REF_LIMIT).map_err(|fault| failed(&fault))? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let target = match text.strip_prefix("ref:") {
        Some(target) => {
            Some(target.trim()).filter(|target| is_name(target)).map(|it| Target::Name(it.to_owned()))
        }
        None => text
            .get(..40)
            .filter(|_| text[40..].trim().is_empty())
            .and_then(|id| id.parse().ok())
            .map(Target::Id),
    };
    target.map(Some).ok_or_else(|| failed(&"is not a reference"))
}

/// Returns whether `name` is a safe name of a reference: it begins with `refs/`, and no part of it leads to another
/// folder (such as `..`) or contains control characters.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && !part.contains("..")
    };
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    name.len() < REF_LIMIT as usize
        && name.starts_with("refs/")
        && !name.contains(is_bad)
        && name.split('/').all(is_plain)
}

/// Reads the local branches, from `packed-refs` and from loose files. If a branch is in both, the commit in its loose
/// file is returned.
pub(crate) fn branches(location: &Location, kept: &Packed) -> Branches {
    beneath(location, kept, "refs/heads/")
}

/// Reads the references below `heads`, as [`branches`] does.
pub(crate) fn beneath(location: &Location, kept: &Packed, heads: &str) -> Branches {
    let mut branches = Branches::default();
    match kept.read(&location.common) {
        Ok(bytes) => {
            for (name, sha) in packed(&bytes) {
                let Some(branch) = name.strip_prefix(heads).filter(|_| is_name(&name)) else { continue };
                if branches.found.len() == BRANCH_LIMIT {
                    branches.partial = true;
                    break;
                }
                branches.found.insert(branch.to_owned(), sha);
            }
        }
        Err(fault) => branches.faults.push(fault),
    }
    let mut folders = vec![heads.trim_end_matches('/').to_owned()];
    let mut looked = 0;
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        looked += 1;
        if looked > FOLDER_LIMIT {
            branches.partial = true;
            break;
        }
        let listed = match location.common.list(&folder, BRANCH_LIMIT) {
            Ok((listed, whole)) => {
                branches.partial |= !whole;
                listed
            }
            Err(fault) => {
                branches.fault(format!("`{folder}` {fault}"));
                continue;
            }
        };
        let Ok(Some(opened)) = location.common.opened(&folder) else { continue };
        for (file, found) in listed {
            let name = format!("{folder}/{file}");
            if !is_name(&name) {
                continue;
            }
            if found == PathKind::Folder {
                folders.push(name);
                continue;
            }
            files += 1;
            if files > BRANCH_LIMIT {
                branches.partial = true;
                break;
            }
            let branch = name[heads.len()..].to_owned();
            let target = read(&opened, &file, &name, found == PathKind::Link);
            let sha = target.and_then(|target| match target {
                Some(Target::Name(next)) => resolve(location, kept, &next),
                Some(Target::Id(sha)) => Ok(Some(sha)),
                None => Ok(None),
            });
            match sha {
                Ok(Some(sha)) => drop(branches.found.insert(branch, sha)),
                Ok(None) if name.contains(char::REPLACEMENT_CHARACTER) => {
                    branches.fault(format!("`{name}` has a name that is not UTF-8"));
                }
                Ok(None) => {}
                Err(fault) => {
                    branches.found.remove(&branch);
                    branches.fault(fault);
                }
            }
        }
    }
    branches
}

impl Branches {
    fn fault(&mut self, fault: String) {
        const SHOWN: usize = 20;
        if self.faults.len() < SHOWN {
            self.faults.push(fault);
        } else {
            self.partial = true;
        }
    }
}
