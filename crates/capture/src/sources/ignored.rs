//! The sessions and files that the user does not want to be remembered.

use globset::{Glob, GlobSet};

use tiro_base::error::{Context, Kind, Result, quoted};

/// The sessions and files that the user does not want to be remembered.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    sessions: GlobSet,
    paths: GlobSet,
    /// Whether sessions that a script ran are ignored.
    pub headless: bool,
}

impl Ignored {
    /// Parses the patterns of the options `ignore.sessions`, for names of sessions, and `ignore.paths`, for paths
    /// relative to the project.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] for an invalid pattern.
    pub fn new(sessions: &[String], paths: &[String], headless: bool) -> Result<Ignored> {
        let set = |key: &str, patterns: &[String]| {
            let mut set = GlobSet::builder();
            for pattern in patterns {
                let glob = Glob::new(pattern);
                set.add(glob.context(Kind::BadInput, || {
                    format!("`{}` in `{key}` is not a valid pattern", quoted(pattern))
                })?);
            }
            set.build().context(Kind::BadInput, || format!("there are too many patterns in `{key}`"))
        };
        Ok(Ignored {
            sessions: set("ignore.sessions", sessions)?,
            paths: set("ignore.paths", paths)?,
            headless,
        })
    }

    /// Returns whether the session called `name` is ignored.
    pub fn session(&self, name: &str) -> bool {
        self.sessions.is_match(name)
    }

    /// Returns whether work on `file` is ignored.
    pub fn path(&self, file: &str) -> bool {
        self.paths.is_match(file)
    }

    /// Returns whether work on any of `files` is ignored.
    pub fn any_path(&self, files: &[String]) -> bool {
        files.iter().any(|file| self.path(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_ignored_sessions_and_files() {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ignored = Ignored::new(&list(&["scratch-*"]), &list(&["secrets/**", "*.pem"]), false).unwrap();
        assert!(ignored.session("scratch-1") && !ignored.session("work"));
        let any = |file: &str| ignored.any_path(&["src/a.rs".to_owned(), file.to_owned()]);
        assert!(any("secrets/x/y.txt") && any("keys/a.pem") && !any("src/b.rs"));
        let error = Ignored::new(&[], &list(&["a["]), false).unwrap_err();
        assert!(error.to_string().contains("a["), "{error}");
    }
}
