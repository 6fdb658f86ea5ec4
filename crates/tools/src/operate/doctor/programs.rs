//! Reports how this program was installed, and which other versions of it are on the disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::operate::init;
use tiro_base::error::quoted;
use tiro_host::caller::Caller;
use tiro_host::config::build;
use tiro_host::engine::Engine;

const WHAT: &str = "program";

/// The largest file that is searched for a version, in bytes. Arbitrary: a program with debugging information has about
/// 100 MB.
const LARGEST: u64 = 512 << 20;

/// Reports this program, and each other version that the user or a client may start.
pub async fn check(engine: &Engine, caller: &Caller) -> Vec<Finding> {
    let Ok(this) = engine.config().real_program() else { return Vec::new() };
    let how = installed_by(&this, &engine.config().kept_program());
    let path = quoted(this.display());
    let found = how.map_or_else(|| format!("`{path}`"), |how| format!("`{path}`, {how}"));
    let mut findings = vec![Finding { what: WHAT, ok: true, found, mend: None }];
    let started: BTreeSet<PathBuf> =
        init::written(engine, caller).await.into_iter().flatten().map(|each| each.program).collect();
    let started: BTreeSet<PathBuf> = started.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut others = started.clone();
    others.extend(engine.config().programs_on_path());
    others.extend(engine.config().kept_program().canonicalize());
    others.remove(&this);
    findings.extend(others.iter().filter_map(|path| other(path, started.contains(path))));
    findings
}

/// Reports the program at `path` if its version is another one. `is_started` says whether clients start it.
fn other(path: &Path, is_started: bool) -> Option<Finding> {
    let size = path.metadata().ok()?.len();
    let bytes = std::fs::read(path).ok().filter(|_| size <= LARGEST)?;
    let version = build::version_of(&bytes)?;
    let (theirs, ours) = (build::ordered(version), build::ordered(build::version()));
    let starts = if is_started { ", which clients and hooks start," } else { "" };
    let (how, mend) = match theirs.cmp(&ours) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => ("newer", None),
        std::cmp::Ordering::Less => ("older", is_started.then(|| "tiro init".to_owned())),
    };
    let found = format!("`{}`{starts} is {how}: version {version}", quoted(path.display()));
    // An older program works with the same memory.
    Some(Finding { what: WHAT, ok: true, found, mend })
}

/// Says how the program at `path` was installed, as far as its surroundings show. `kept` is the path of the copy that
/// `tiro init` makes.
fn installed_by(path: &Path, kept: &Path) -> Option<&'static str> {
    let has = |name: &str| path.components().any(|part| part.as_os_str() == name);
    let beside = |name: &str| path.parent().is_some_and(|folder| folder.join(name).exists());
    Some(match () {
        () if kept.canonicalize().is_ok_and(|kept| kept == path) => "copied there by `tiro init`",
        () if has("_npx") => "run by npx from its cache",
        () if has("node_modules") => "installed by npm",
        () if has("archive-v0") => "run by uvx from its cache",
        () if beside("../pyvenv.cfg") => "installed by pip, pipx or uv",
        () if has("Cellar") => "installed by Homebrew",
        () if path.starts_with("/nix/store") => "installed by Nix",
        () if path.starts_with("/usr/bin") && Path::new("/var/lib/dpkg").exists() => {
            "installed by dpkg or apt"
        }
        () if beside(".cargo-lock") => "built by cargo",
        () if has(".cargo") => "installed by cargo",
        () if beside("../share/tiro") => "unpacked from an archive",
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surroundings_show_how_a_program_was_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let put = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let kept = put("data/bin/tiro");
        put("venv/pyvenv.cfg");
        put("target/release/.cargo-lock");
        put("opt/share/tiro/models/weights");
        let cases = [
            ("data/bin/tiro", Some("copied there by `tiro init`")),
            (".npm/_npx/1f/node_modules/t/bin/tiro", Some("run by npx from its cache")),
            ("lib/node_modules/t/bin/tiro", Some("installed by npm")),
            ("venv/bin/tiro", Some("installed by pip, pipx or uv")),
            ("Cellar/tiro/0.1.0/bin/tiro", Some("installed by Homebrew")),
            ("target/release/tiro", Some("built by cargo")),
            (".cargo/bin/tiro", Some("installed by cargo")),
            ("opt/bin/tiro", Some("unpacked from an archive")),
            ("elsewhere/tiro", None),
        ];
        for (path, how) in cases {
            assert_eq!(installed_by(&put(path), &kept), how, "{path}");
        }
    }

    #[test]
    fn a_program_of_another_version_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tiro");
        let reported = |version: &str, is_started: bool| {
            std::fs::write(&program, format!("\u{7f}ELF Tiro program, version {version};")).unwrap();
            other(&program, is_started).map(|finding| (finding.found, finding.mend))
        };
        assert!(reported("99.0.0", false).unwrap().0.ends_with("is newer: version 99.0.0"));
        let (found, mend) = reported("0.0.9", true).unwrap();
        assert!(found.ends_with("which clients and hooks start, is older: version 0.0.9"), "{found}");
        assert_eq!(mend.as_deref(), Some("tiro init"));
        assert!(reported(build::version(), true).is_none());
        assert!(reported("none", false).is_none());
    }
}
