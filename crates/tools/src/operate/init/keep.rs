//! Keeps the program where clients can always start it.
//!
//! `npx` and `uvx` run a program out of a cache, and may empty the cache at any time. So `tiro init` copies such a program,
//! and the model that came with it, into the data directory. The entries of clients start this copy.

use std::path::PathBuf;

use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};
use tiro_base::private;
use tiro_embed::Model;
use tiro_host::config::Config;

/// The modes of a program and of a file with data.
const PROGRAM: u32 = 0o755;
const DATA: u32 = 0o644;

/// The files that are copied.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies(Vec<Copy>);

#[derive(Clone, Debug)]
struct Copy {
    from: PathBuf,
    to: PathBuf,
    mode: u32,
}

impl Copies {
    /// Returns the files that must be copied; none if the program stays where it is, or if equal copies are there.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the operating system doesn't report the path of the program.
    pub(super) fn needed(config: &Config) -> Result<Copies> {
        let kept = config.program()?;
        let Some(cached) = config.cached_program()? else { return Ok(Copies::default()) };
        let mut copies = vec![Copy { from: cached, to: kept, mode: PROGRAM }];
        for model in Model::ALL {
            let (from, to) = (config.models.folder(model), model.folder(config.models.own()));
            let files = std::fs::read_dir(&from).into_iter().flatten().flatten().filter(|_| from != to);
            copies.extend(files.map(|file| Copy {
                from: file.path(),
                to: to.join(file.file_name()),
                mode: DATA,
            }));
        }
        copies.retain(|copy| !copy.is_done());
        Ok(Copies(copies))
    }

    /// Returns whether nothing must be copied.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says what will be copied, in one line; empty if nothing will be.
    pub(super) fn text(&self) -> String {
        let Some(first) = self.0.first() else { return String::new() };
        let more = if self.0.len() > 1 { ", with its model" } else { "" };
        let (from, to) = (quoted(first.from.display()), quoted(first.to.display()));
        format!("The program runs from a cache, `{from}`. It is copied to `{to}`{more}.\n")
    }

    /// Copies the files. Each file is copied as a whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if a file can't be read or written.
    pub(super) fn make(&self) -> Result<()> {
        self.0.iter().try_for_each(Copy::make)
    }
}

impl Copy {
    fn is_done(&self) -> bool {
        let size = |path| std::fs::metadata(path).ok().map(|found| found.len());
        size(&self.from) == size(&self.to) && std::fs::read(&self.from).ok() == std::fs::read(&self.to).ok()
    }

    fn make(&self) -> Result<()> {
        let Copy { from, to, mode } = self;
        let cannot = |to: &PathBuf| format!("cannot copy the program to `{}`", quoted(to.display()));
        let bytes =
            std::fs::read(from).context(Kind::Io, || format!("cannot read `{}`", quoted(from.display())))?;
        let folder = to.parent().ok_or_else(|| Error::new(Kind::Io, cannot(to)))?;
        private::make_dir(folder).context(Kind::Io, || cannot(to))?;
        aside(to);
        user_file::replace(to, &FileSnapshot { bytes: Bytes(bytes), mode: *mode })
    }
}

/// Removes the copy of the program. Returns whether there was one.
pub(super) fn remove(config: &Config) -> Result<bool> {
    let program = config.kept_program();
    if !program.exists() {
        return Ok(false);
    }
    aside(&program);
    user_file::delete(&program)?;
    Ok(true)
}

/// Windows doesn't replace a program that runs, but renames it. The renamed file is removed the next time.
fn aside(program: &std::path::Path) {
    if cfg!(windows) {
        let old = program.with_extension("old");
        let _ = std::fs::remove_file(&old);
        let _ = std::fs::rename(program, old);
    }
}
