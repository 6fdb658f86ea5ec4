//! A program that came in a package has its model; one that runs from a cache is copied before clients start it.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Home, Ran};

/// Puts the program at `path`, as a package manager does.
fn install(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_tiro"), path).unwrap();
}

/// Puts a file for the default model into a package whose program is in `bin`, and returns its folder. The model can't be
/// used.
fn with_model(prefix: &Path) -> PathBuf {
    let folder = prefix.join("share/tiro/models/all-MiniLM-L6-v2");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("weights.tiro"), "no weights").unwrap();
    folder
}

/// Runs a program as a user would who has set no variables of Tiro but the data directory.
fn run(home: &Home, program: &Path, directory: &Path, args: &[&str]) -> Ran {
    let like = home.tiro(directory, args);
    let mut command = Command::new(program);
    command.args(args).current_dir(directory).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ran::of(command.env_remove("TIRO_MODEL_DIR"))
}

#[test]
fn a_packaged_model_is_found_beside_the_program_also_through_a_link() {
    let home = Home::new();
    let here = home.dir("here");
    let prefix = home.path().join("prefix").join("tiro/0.1.0");
    let program = prefix.join("bin/tiro");
    install(&program);
    assert!(run(&home, &program, &here, &["model", "list"]).stdout.starts_with("No model is installed"));
    let model = with_model(&prefix);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    for program in [&program, &link] {
        let listed = run(&home, program, &here, &["model", "list"]).stdout;
        assert!(listed.contains(model.to_str().unwrap()), "{listed}");
    }
    // A folder that the user names is the only one.
    let named = Ran::of(home.tiro(&here, &["model", "list"]).env("TIRO_MODEL_DIR", home.path().join("none")));
    assert!(named.stdout.starts_with("No model is installed"), "{named:?}");
}

#[test]
fn what_npx_runs_is_copied_with_its_model_and_outlives_the_cache() {
    let home = Home::new();
    home.dir("home/.claude");
    let repo = home.repo("repo");
    let cache = home.path().join("home/.npm/_npx/5e1f");
    let package = cache.join("node_modules/tiro-memory-linux-x64");
    let program = package.join("bin/tiro");
    install(&program);
    with_model(&package);

    let shown = run(&home, &program, &repo.path, &["init", "--dry-run"]);
    assert!(shown.is_ok && shown.stderr.contains("It is copied to"), "{shown:?}");
    let kept = home.data().join("bin/tiro");
    assert!(!kept.exists());
    let done = run(&home, &program, &repo.path, &["init", "--yes"]);
    assert!(done.is_ok, "{done:?}");
    let server = home.path().join("home/.claude/skills/tiro/.mcp.json");
    let server: Value = serde_json::from_slice(&std::fs::read(server).unwrap()).unwrap();
    assert_eq!(server["mcpServers"]["tiro"]["command"], kept.to_str().unwrap());
    let again = run(&home, &program, &repo.path, &["init", "--dry-run"]);
    assert!(again.is_ok && !again.stderr.contains("copied"), "{again:?}");
    let told = run(&home, &kept, &repo.path, &["doctor"]);
    assert!(told.stdout.contains("copied there by `tiro init`"), "{told:?}");

    std::fs::remove_dir_all(&cache).unwrap();
    let listed = run(&home, &kept, &repo.path, &["model", "list"]).stdout;
    assert!(listed.contains(home.data().join("models").to_str().unwrap()), "{listed}");
    let removed = run(&home, &kept, &repo.path, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("Removed the copy of the program"), "{removed:?}");
    assert!(!kept.exists() && !home.path().join("home/.claude/skills/tiro").exists());
}

#[test]
fn an_older_program_that_clients_start_is_named() {
    let home = Home::new();
    home.dir("home/.claude");
    let repo = home.repo("repo");
    let (old, new) = (home.path().join("old/tiro"), home.path().join("new/tiro"));
    install(&old);
    install(&new);
    assert!(run(&home, &old, &repo.path, &["init", "--yes"]).is_ok);
    let told = run(&home, &new, &repo.path, &["doctor"]);
    assert!(!told.stdout.contains("is older"), "{told:?}");
    // As an older release would have it.
    let stamp = format!("Tiro program, version {};", env!("CARGO_PKG_VERSION"));
    let mut bytes = std::fs::read(&old).unwrap();
    let at = bytes.windows(stamp.len()).position(|text| text == stamp.as_bytes()).unwrap();
    bytes[at + stamp.len() - 6..at + stamp.len()].copy_from_slice(b"0.0.9;");
    std::fs::write(&old, bytes).unwrap();
    let told = run(&home, &new, &repo.path, &["doctor"]);
    let older = format!("`{}`, which clients and hooks start, is older: version 0.0.9", old.display());
    assert!(told.stdout.contains(&older), "{told:?}");
}
