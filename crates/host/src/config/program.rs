//! Chooses the path of this program that is written into the configuration of clients and into hooks.
//!
//! Package managers put each version into its own folder, and create a stable link or shim that leads to it. In
//! Homebrew and Linuxbrew this is `bin/tiro`, in Nix the profile, in mise the link `latest`, and in asdf and mise a
//! shim. After an upgrade, the old folder is gone and the link leads to the new version. So the written path is a
//! stable path on `PATH`, or the path by which the program was started. Links in this path are kept. A path is written
//! only if it leads to this very program.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The largest script that counts as a shim, in bytes. Arbitrary: shims are a few lines.
const LARGEST_SHIM: u64 = 16 << 10;

/// The way in which the program was started.
pub struct Started<'a> {
    /// The first word of the command line.
    pub name: Option<&'a OsStr>,
    /// The names of the working directory. The name that the user typed comes before the real name.
    pub directories: &'a [PathBuf],
    /// The folders of `PATH`.
    pub folders: &'a [PathBuf],
}

/// Returns the path for configurations, given the real path `real` of this program.
pub fn stable(real: &Path, started: &Started<'_>) -> PathBuf {
    let real = std::fs::canonicalize(real).unwrap_or_else(|_| real.to_owned());
    let mut candidates: Vec<PathBuf> = Vec::new();
    let mut names: Vec<&OsStr> = Vec::new();
    if let Some(name) = started.name {
        let path = Path::new(name);
        if path.components().count() > 1 || path.is_absolute() {
            candidates.extend(started.directories.iter().map(|directory| cleaned(&directory.join(path))));
        }
        names.extend(path.file_name());
    }
    names.push(OsStr::new(NAME));
    names.dedup();
    // A relative folder of `PATH` means a different folder in every project.
    let folders: Vec<&PathBuf> = started.folders.iter().filter(|folder| folder.is_absolute()).collect();
    for name in names {
        candidates.extend(folders.iter().map(|folder| folder.join(name)));
    }
    candidates.extend(links_beside(&real));
    candidates.extend(shim_beside(&real));
    let ours = candidates.into_iter().filter(|path| is_named_tiro(path) && leads_to(path, &real));
    // `min_by_key` returns the first of several equally good paths.
    ours.min_by_key(|path| {
        let is_versioned =
            path.components().any(|part| is_version(part) && real.components().any(|it| it == part));
        (is_versioned, *path == real)
    })
    .unwrap_or(real)
}

/// Returns whether starting `path` starts the program at `real`. The path may be this file, a link to it, or a shim of
/// it.
pub fn leads_to(path: &Path, real: &Path) -> bool {
    let Ok(target) = std::fs::canonicalize(path) else { return false };
    target == real || (is_executable(&target) && (is_shim(path, real) || is_script_of(&target, real)))
}

/// The file name of the program, wherever it is installed.
pub const NAME: &str = if cfg!(windows) { "tiro.exe" } else { "tiro" };

/// Returns whether the program lies in the cache of a command that runs programs without installing them: npx, `pnpm dlx`,
/// `yarn dlx`, bunx, uvx or `pipx run`.
pub fn is_cached(program: &Path) -> bool {
    let parts: Vec<_> = program.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let named = |part: &str| {
        ["_npx", "dlx", "archive-v0", "environments-v2", "builds-v0"].contains(&part)
            || ["dlx-", "bunx-"].iter().any(|beginning| part.starts_with(beginning))
    };
    let of_pipx = |two: &[std::borrow::Cow<'_, str>]| two[0] == "pipx" && two[1] == ".cache";
    parts.iter().any(|part| named(part)) || parts.windows(2).any(of_pipx)
}

/// Returns whether the file has a name by which our entries in configurations are recognised.
fn is_named_tiro(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tiro"))
}

/// Returns `path` without `.`. Also removes `..` if the result leads to the same place.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    let place = |path: &Path| std::fs::canonicalize(path).ok();
    if place(&clean) == place(path) { clean } else { path.to_owned() }
}

/// Returns whether a component of a path names a version. It contains a number with a point, such as `0.1.0`, or it is
/// a development version of Homebrew or an entry of the Nix store.
fn is_version(part: Component<'_>) -> bool {
    let text = part.as_os_str().to_string_lossy();
    let bytes = text.as_bytes();
    let has_number =
        bytes.windows(3).any(|it| it[0].is_ascii_digit() && it[1] == b'.' && it[2].is_ascii_digit());
    let hash = text.split_once('-').is_some_and(|(hash, _)| {
        hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    has_number || hash || text.starts_with("HEAD-")
}

/// Returns the shim for a program that asdf or mise installed. The shim is `shims/tiro` beside the folder `installs`.
fn shim_beside(real: &Path) -> Option<PathBuf> {
    let installs = real.ancestors().find(|above| above.file_name() == Some(OsStr::new("installs")))?;
    Some(installs.parent()?.join("shims").join(real.file_name()?))
}

/// Returns the usual stable paths of a program in the folder of a version. These are a link `current` or `latest`
/// beside the folder, as made by snap, Scoop and mise, and `bin/tiro` beside Homebrew's `Cellar`.
fn links_beside(real: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for above in real.ancestors().skip(1) {
        let (Some(parent), Ok(rest)) = (above.parent(), real.strip_prefix(above)) else { continue };
        found.extend(["current", "latest"].map(|link| parent.join(link).join(rest)));
        if above.file_name() == Some(OsStr::new("Cellar")) {
            found.extend(real.file_name().map(|name| parent.join("bin").join(name)));
        }
    }
    found
}

fn is_shim(path: &Path, real: &Path) -> bool {
    shim_beside(real).is_some_and(|shim| shim == *path || std::fs::canonicalize(path).ok() == Some(shim))
}

/// Returns whether the file is a script that names `real`.
fn is_script_of(file: &Path, real: &Path) -> bool {
    let mut text = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(LARGEST_SHIM).read_to_end(&mut text));
    let (text, real) = (String::from_utf8_lossy(&text), real.to_string_lossy());
    let is_whole_word =
        |at: usize| !text[at + real.len()..].starts_with(|c: char| c.is_alphanumeric() || "-_./".contains(c));
    read.is_ok() && text.starts_with("#!") && text.match_indices(&*real).any(|(at, _)| is_whole_word(at))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_runs_from_a_cache_is_not_installed() {
        let cached = [
            "/h/.npm/_npx/0f3/node_modules/tiro-memory-linux-x64/bin/tiro",
            "/h/.cache/pnpm/dlx/0f3/node_modules/.pnpm/tiro-memory/node_modules/tiro-memory/bin/tiro",
            "/tmp/bunx-1000-tiro-memory@latest/node_modules/tiro-memory-linux-x64/bin/tiro",
            "/h/.cache/uv/archive-v0/Dg3/bin/tiro",
            "/h/.local/pipx/.cache/0f3/bin/tiro",
        ];
        let installed = [
            "/usr/lib/node_modules/tiro-memory/node_modules/tiro-memory-linux-x64/bin/tiro",
            "/h/.local/share/uv/tools/tiro-memory/bin/tiro",
            "/h/.local/pipx/venvs/tiro-memory/bin/tiro",
            "/opt/homebrew/Cellar/tiro/0.1.0/bin/tiro",
            "/usr/bin/tiro",
        ];
        cached.iter().for_each(|path| assert!(is_cached(Path::new(path)), "{path}"));
        installed.iter().for_each(|path| assert!(!is_cached(Path::new(path)), "{path}"));
    }

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn script(&self, name: &str, text: &str) -> PathBuf {
            let path = self.at(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn link(&self, name: &str, to: &str) {
            let path = self.at(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to.replace("ROOT", self.at("").to_str().unwrap().trim_end_matches('/')), path).unwrap();
        }
    }

    /// Returns the path that is written if the real program is `real`, and the user typed `typed` in `directory`.
    fn written(machine: &Machine, real: &str, typed: &str, directory: &str, folders: &[&str]) -> String {
        let folders: Vec<PathBuf> = folders
            .iter()
            .map(|folder| match folder.starts_with('.') {
                true => PathBuf::from(folder),
                false => machine.at(folder),
            })
            .collect();
        let typed = typed.replace("ROOT", machine.at("").to_str().unwrap().trim_end_matches('/'));
        let directories = [machine.at(directory)];
        let started = Started { name: Some(typed.as_ref()), directories: &directories, folders: &folders };
        let found = stable(&machine.at(real), &started);
        found
            .strip_prefix(machine.at(""))
            .map_or_else(|_| found.display().to_string(), |it| it.display().to_string())
    }

    fn machine() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        for real in [
            "kegs/tiro/0.1.0/bin/tiro",
            "kegs/tiro/HEAD-1a2b3c4/bin/tiro",
            "plain/tiro",
            "installs/tiro/0.1.0/bin/tiro",
            "store/0123456789abcdfghijklmnpqrsvwxyz-tiro/bin/tiro",
        ] {
            machine.script(real, "program");
        }
        machine
    }

    #[test]
    fn the_link_through_which_it_was_started_is_written_and_not_what_it_leads_to() {
        let machine = machine();
        let real = "kegs/tiro/0.1.0/bin/tiro";
        machine.link("bin/tiro", "../kegs/tiro/0.1.0/bin/tiro");
        machine.link("opt/tiro", "../kegs/tiro/0.1.0");
        machine.link("mine/tiro", "ROOT/bin/tiro");
        machine.link("profile", "ROOT/bin");
        machine.link("other/tiro", "ROOT/plain/tiro");
        machine.link("short/t", "ROOT/bin/tiro");
        std::fs::create_dir_all(machine.at("empty")).unwrap();
        for (typed, directory, folders, expected) in [
            ("tiro", "", &["empty", "bin"][..], "bin/tiro"),
            ("tiro", "", &["opt/tiro/bin"], "opt/tiro/bin/tiro"),
            ("tiro", "", &["mine", "bin"], "mine/tiro"),
            ("tiro", "", &["profile"], "profile/tiro"),
            ("./tiro", "bin", &[], "bin/tiro"),
            ("../bin/tiro", "opt", &[], "bin/tiro"),
            ("ROOT/bin/tiro", "", &[], "bin/tiro"),
            // Started by the versioned path: a stable path on `PATH` is preferred.
            ("ROOT/kegs/tiro/0.1.0/bin/tiro", "", &["bin"], "bin/tiro"),
            ("tiro", "", &["kegs/tiro/0.1.0/bin", "bin"], "bin/tiro"),
            // A path that leads elsewhere or nowhere, or that is relative, is not written.
            ("tiro", "", &["other"], real),
            ("tiro", "", &["empty", "other", "bin"], "bin/tiro"),
            ("tiro", "", &["./bin"], real),
            ("another-name", "", &["bin"], "bin/tiro"),
            ("ROOT/short/t", "", &["bin"], "bin/tiro"),
            ("ROOT/short/t", "", &[], real),
            ("", "", &[], real),
        ] {
            assert_eq!(
                written(&machine, real, typed, directory, folders),
                expected,
                "{typed} in {folders:?}"
            );
        }
    }

    #[test]
    fn development_versions_and_nix_have_stable_links_too() {
        let machine = machine();
        for real in [
            "kegs/tiro/HEAD-1a2b3c4/bin/tiro",
            "store/0123456789abcdfghijklmnpqrsvwxyz-tiro/bin/tiro",
            "plain/tiro",
        ] {
            let _ = std::fs::remove_dir_all(machine.at("bin"));
            machine.link("bin/tiro", &format!("ROOT/{real}"));
            assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &["bin"]), "bin/tiro");
            assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &[]), real);
        }
        let _ = std::fs::remove_dir_all(machine.at("bin"));
        // If its path has no version, the program is written as the user typed it.
        assert_eq!(written(&machine, "plain/tiro", "./tiro", "plain", &[]), "plain/tiro");
        let real = "Cellar/tiro/0.1.0/bin/tiro";
        machine.script(real, "program");
        machine.link("bin/tiro", "../Cellar/tiro/0.1.0/bin/tiro");
        assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &[]), "bin/tiro");
    }

    #[test]
    fn a_shim_leads_here_if_its_manager_installed_this_program_or_it_names_it() {
        let machine = machine();
        let real = "installs/tiro/0.1.0/bin/tiro";
        assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &[]), real);
        machine.script("elsewhere/tiro", "#!/bin/sh\nexec another\n");
        assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &["elsewhere"]), real);
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", machine.at(real).display());
        machine.script("wrapped/tiro", &text);
        machine.script("longer/tiro", &text.replace("bin/tiro", "bin/tiro-next"));
        assert_eq!(
            written(&machine, real, &format!("ROOT/{real}"), "", &["longer", "wrapped"]),
            "wrapped/tiro"
        );
        // Without the wrapper on `PATH`, a link beside the version is found.
        machine.link("installs/tiro/latest", "0.1.0");
        assert_eq!(
            written(&machine, real, "tiro", "", &["installs/tiro/latest/bin"]),
            "installs/tiro/latest/bin/tiro"
        );
        assert_eq!(
            written(&machine, real, &format!("ROOT/{real}"), "", &[]),
            "installs/tiro/latest/bin/tiro"
        );
        std::fs::remove_file(machine.at("installs/tiro/latest")).unwrap();
        machine.script("shims/tiro", "#!/usr/bin/env bash\nexec asdf exec \"tiro\" \"$@\"\n");
        assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &["shims"]), "shims/tiro");
        assert_eq!(written(&machine, real, &format!("ROOT/{real}"), "", &[]), "shims/tiro");
    }
}
