//! Reads the authors of commits, and replaces their names as `.mailmap` says.
//!
//! `.mailmap` is read from the main work tree, so that all worktrees show the same names, and in a bare repository from
//! the commit at `HEAD`. Like every control file, it is read only if it is a regular file of limited size. Git's
//! configuration can name other files of this kind; they are not read, because the configuration of a repository is not
//! trusted.

use std::path::PathBuf;

use gix::objs::Kind;

use super::commit::{self, Author};
use super::discover::files::Folder;
use super::mailmap::Mailmap;
use super::repository::Repository;
use super::sha::Sha;
use super::walk::Stop;

/// The name of the file.
const NAME: &str = ".mailmap";

/// The largest file that is read, in bytes. The `.mailmap` of the Linux kernel has 40 KB.
const LIMIT: u64 = 1 << 20;

impl Repository {
    /// Returns the current names of people. If the file can't be read, all authors keep the names that they have in
    /// commits.
    pub fn mailmap(&self) -> Mailmap {
        let bytes = match self.mailmap_root() {
            Some(root) => Folder::new(root, false).read(NAME, LIMIT).ok().flatten(),
            None => self.blob_at_head(NAME).ok().flatten().and_then(|sha| {
                let mut bytes = Vec::new();
                self.objects.handle().read(&sha.object_id(), Kind::Blob, LIMIT, &mut bytes).ok()?;
                Some(bytes)
            }),
        };
        bytes.map(Mailmap::of).unwrap_or_default()
    }

    /// Returns the work tree whose `.mailmap` is used, or `None` in a bare repository.
    fn mailmap_root(&self) -> Option<PathBuf> {
        let common = self.common_dir();
        let main = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"));
        main.map(PathBuf::from).or_else(|| self.work_dir())
    }

    /// Returns a text that changes whenever `.mailmap` in the work tree changes.
    pub(super) fn mailmap_stamp(&self) -> String {
        let metadata = self.mailmap_root().and_then(|root| std::fs::symlink_metadata(root.join(NAME)).ok());
        let shown = metadata.map(|metadata| format!("\n{} {:?}", metadata.len(), metadata.modified().ok()));
        shown.unwrap_or_default()
    }

    /// Returns the authors of `commits`, in the order of `commits`, until `stop` is set. The author of a commit that
    /// can't be read is `None`.
    pub fn authors(&self, commits: &[Sha], mailmap: &Mailmap, stop: &Stop) -> Vec<Option<Author>> {
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut author = |sha| Some(commit::read(&mut objects, sha, &mut buffer).ok()?.author(mailmap));
        commits.iter().take_while(|_| !stop.is_set()).map(&mut author).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn people_have_the_names_that_git_shows() {
        let fixture = Fixture::new();
        let mailmap = "# people\nInes Quay <ines@example.org> <mara@example.org>\n\
            Jörg Kühn <jk@example.org> JK <shared@example.org>\n<new@example.org> <old@example.org>\n";
        let read = || {
            let map = fixture.repository().mailmap();
            let of = |name: &str, address: &str| map.current(name, address).unwrap_or(name.to_owned());
            [
                of("Mara", "mara@example.org"),
                of("Mara Q", "MARA@example.org"),
                of("JK", "shared@example.org"),
                of("Bob", "shared@example.org"),
                of("Eve", "old@example.org"),
            ]
        };
        let expected = ["Ines Quay", "Ines Quay", "Jörg Kühn", "Bob", "Eve"];
        assert_eq!(fixture.repository().mailmap().stamp, "");
        fixture.write(".mailmap", mailmap);
        assert_eq!(read(), expected);
        // A legacy encoding, with which old mailmaps were written.
        fixture.write(".mailmap", mailmap.chars().map(|c| c as u8).collect::<Vec<u8>>());
        assert_eq!(read(), expected);
        fixture.commit_all("names");
        let bare = fixture.cloned_as("bare.git", &["--bare"]);
        let of_bare = bare.mailmap();
        assert_eq!(of_bare.current("Mara", "mara@example.org").as_deref(), Some("Ines Quay"));
    }

    /// If a link were followed, the lines of another file would be shown as names.
    #[cfg(unix)]
    #[test]
    fn a_mailmap_that_is_a_link_a_pipe_or_too_large_is_not_read() {
        let fixture = Fixture::new();
        let path = fixture.path.join(".mailmap");
        let elsewhere = fixture.path.parent().unwrap().join("elsewhere");
        std::fs::write(&elsewhere, "Ines <ines@example.org> <ada@example.org>\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(fixture.repository().mailmap().stamp, "");
        std::fs::remove_file(&path).unwrap();
        std::fs::File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
        assert_eq!(fixture.repository().mailmap().stamp, "");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(fixture.repository().mailmap().stamp, "");
    }
}
