//! Reads files of a commit: their paths, their contents, and when they were changed last.

use std::time::Instant;

use gix::objs::tree::EntryKind;

use crate::commit;
use crate::repository::{Repository, look_up};
use crate::sha::Sha;
use tiro_base::error::{Error, Kind, Result};

/// The maximum number of folders that are read, and the maximum depth of nested folders. A small tree can stand for a
/// huge number of folders.
const FOLDERS: usize = 50_000;
const DEPTH: usize = 64;

/// The largest folder that is read, in bytes.
const FOLDER_LIMIT: u64 = 16 << 20;

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// The path in the repository.
    pub path: String,
    /// The id of its content.
    pub blob: Sha,
}

impl Repository {
    /// Returns the files of `commit` whose paths `is_wanted` accepts, sorted by path. Links, and paths that are not
    /// UTF-8, are left out.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the commit or a folder can't be read, or if there is no time to read all folders.
    pub fn files(
        &self,
        commit: &Sha,
        is_wanted: impl Fn(&str) -> bool,
        until: Instant,
    ) -> Result<Vec<TreeFile>> {
        let failed =
            |fault: String| Error::new(Kind::Git, format!("cannot list the files of `{commit}`: {fault}"));
        let mut objects = self.objects.handle().keeping(8 << 20, 8 << 20);
        let mut buffer = Vec::new();
        let root = commit::read(&mut objects, commit, &mut buffer).map_err(failed)?.tree;
        let mut left = vec![(String::new(), root)];
        let (mut files, mut count) = (Vec::new(), 0);
        while let Some((folder, tree)) = left.pop() {
            count += 1;
            if count > FOLDERS || Instant::now() >= until {
                return Err(failed("there are too many folders".to_owned()));
            }
            if tree.is_empty_tree() {
                continue;
            }
            let read = objects.read(&tree, gix::objs::Kind::Tree, FOLDER_LIMIT, &mut buffer);
            read.map_err(|fault| failed(fault.to_string()))?;
            for entry in gix::objs::TreeRefIter::from_bytes(&buffer, gix::hash::Kind::Sha1) {
                let entry = entry.map_err(|_| failed("a folder is damaged".to_owned()))?;
                let Ok(name) = std::str::from_utf8(entry.filename) else { continue };
                let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                match entry.mode.kind() {
                    EntryKind::Tree if path.matches('/').count() < DEPTH => {
                        left.push((path, entry.oid.to_owned()))
                    }
                    EntryKind::Blob | EntryKind::BlobExecutable if is_wanted(&path) => {
                        files.push(TreeFile { path, blob: Sha::from(entry.oid) });
                    }
                    _ => {}
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    /// Returns the content of a file, or `None` if it has more than `most` bytes or can't be read.
    pub fn content(&self, blob: &Sha, most: u64) -> Option<Vec<u8>> {
        let mut data = Vec::new();
        self.objects.handle().read(&blob.object_id(), gix::objs::Kind::Blob, most, &mut data).ok()?;
        Some(data)
    }

    /// Returns for each of `files` the time, in seconds since 1970, of the commit that gave it its content, on the way
    /// from `head` back along the first parents. If time runs out, returns the time of the oldest commit that was read.
    pub fn changed_at(&self, head: &Sha, files: &[TreeFile], until: Instant) -> Vec<i64> {
        let mut objects = self.objects.handle().keeping(8 << 20, 8 << 20);
        let mut buffer = Vec::new();
        let mut times = vec![0; files.len()];
        let mut open: Vec<usize> = (0..files.len()).collect();
        let mut at = Some(*head);
        while let Some(sha) = at.filter(|_| !open.is_empty()) {
            let Ok((parents, made)) = commit::parents_and_time(&mut objects, &sha, &mut buffer) else {
                break;
            };
            open.retain(|place| {
                let TreeFile { path, blob } = &files[*place];
                let found = look_up(&mut objects, &mut buffer, &sha, path);
                let is_same = found.is_ok_and(|found| found.as_ref() == Some(blob));
                if is_same {
                    times[*place] = made;
                }
                is_same
            });
            at = parents.first().copied().filter(|_| Instant::now() < until);
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn files_are_listed_with_their_contents_and_times() {
        let fixture = Fixture::new();
        fixture.commit("AGENTS.md", "Use tabs.\n", "first");
        let second = fixture.commit("docs/a.md", "A\n", "second");
        let third = fixture.commit("src/main.rs", "fn main() {}\n", "third");
        let repository = fixture.repository();
        let until = Instant::now() + Duration::from_secs(20);
        let files = repository.files(&third, |path| path.ends_with(".md"), until).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["AGENTS.md", "docs/a.md"]);
        assert_eq!(repository.content(&files[0].blob, 100).unwrap(), b"Use tabs.\n");
        assert_eq!(repository.content(&files[0].blob, 3), None);
        let second =
            fixture.git(&["show", "-s", "--format=%ct", &second.to_string()]).trim().parse().unwrap();
        let times = repository.changed_at(&third, &files, until);
        assert_eq!(times[1], second);
        assert!(times[0] <= second && times[0] > 0);
        assert!(repository.files(&third, |_| true, Instant::now()).is_err(), "there is no time");
    }
}
