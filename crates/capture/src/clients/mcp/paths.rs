//! Finds the configuration of a client on each operating system.

use std::path::{Path, PathBuf};

use crate::clients::Places;

/// The operating systems on which clients keep their configuration at different places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux, and every other system that is neither of the others.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

/// A place on each operating system, in the words of the client's documentation. The path of a file begins with `~`,
/// with `$XDG_CONFIG_HOME` or `%APPDATA%`, or with `.`, which stands for the root of the project.
pub struct Paths {
    /// The place on Linux.
    pub linux: &'static str,
    /// The place on macOS.
    pub mac: &'static str,
    /// The place on Windows.
    pub windows: &'static str,
}

impl System {
    /// Returns the system on which the program runs.
    pub fn current() -> System {
        match () {
            () if cfg!(target_os = "macos") => System::Mac,
            () if cfg!(windows) => System::Windows,
            () => System::Linux,
        }
    }
}

impl Paths {
    /// Returns the same place for every operating system.
    pub const fn everywhere(place: &'static str) -> Paths {
        Paths { linux: place, mac: place, windows: place }
    }

    /// Returns the place on `system`.
    pub fn on(&self, system: System) -> &'static str {
        match system {
            System::Linux => self.linux,
            System::Mac => self.mac,
            System::Windows => self.windows,
        }
    }

    /// Returns whether the file belongs to a project, not to the user.
    pub fn is_of_project(&self, system: System) -> bool {
        self.on(system).starts_with("./")
    }

    /// Returns the path of the file. `root` is the root of the project. Returns `None` if the file belongs to a project
    /// and there is none.
    pub fn expand(&self, system: System, places: &Places, root: Option<&Path>) -> Option<PathBuf> {
        let (base, rest) = self.on(system).split_once('/')?;
        let base = match base {
            "~" => places.home.clone(),
            "." => root?.to_owned(),
            _ => places.settings(),
        };
        Some(rest.split('/').fold(base, |path, name| path.join(name)))
    }
}
