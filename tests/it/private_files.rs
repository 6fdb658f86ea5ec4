//! Only their user can read the stored files. That holds with any umask, after any older version, and if several
//! processes start for the first time at once.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Home, Server, feed};

/// Returns the program as [`Home::tiro`] does, with a umask.
fn with_umask(home: &Home, umask: &str, directory: &Path, args: &[&str]) -> Command {
    let tiro = home.tiro(directory, args);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("umask {umask}; exec \"$0\" \"$@\""))
        .arg(tiro.get_program())
        .args(tiro.get_args());
    command.current_dir(directory).env_clear();
    command.envs(tiro.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Returns what others can read or change in the folder, except the files of models.
fn open(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut look = |path: &Path| {
        let mode = path.symlink_metadata().unwrap().mode() & 0o7777;
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        if mode != wanted {
            found.push((path.to_owned(), format!("{mode:04o}")));
        }
    };
    look(folder);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            look(&path);
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Databases and backups used to get the mode that the umask allowed, so another user could read the installation's
/// secret.
#[test]
fn every_file_is_private_after_every_command_with_any_umask() {
    for umask in ["000", "022"] {
        let home = Home::new();
        std::fs::remove_dir(home.data()).unwrap();
        let repo = home.repo("repo");
        repo.commit("a.txt", "a\n", "Begin with an apple");
        let check = |what: &str| {
            if home.data().exists() {
                assert_eq!(open(&home.data()), [], "umask {umask}, after {what}");
            }
        };
        let hook = json!({
            "session_id": "s", "transcript_path": home.path().join("t.jsonl"), "cwd": repo.path,
            "hook_event_name": "Stop",
        });
        feed(with_umask(&home, umask, &repo.path, &["hook", "claude-code"]), hook.to_string().as_bytes());
        check("a hook");
        let backup = home.path().join(format!("backup {umask}.db"));
        let backup = backup.to_str().unwrap();
        let mut server = Server::start(with_umask(&home, umask, &repo.path, &["serve"]));
        server.save("s", "1", "a quince");
        check("a write");
        server.data("search_project_memory", json!({"query": "quince"}));
        server.data("store_memory", json!({"text": "a pomelo", "scope": "owner"}));
        for args in [
            &["import", "git"][..],
            &["index"],
            &["pause"],
            &["resume"],
            &["init", "--yes"],
            &["stats"],
            &["doctor"],
            &["summarize", "s"],
            &["backup", backup],
            &["restore", backup],
            &["forget", "--session", "s"],
            &["undo"],
            &["forget", "--session", "s", "--purge"],
            &["gc"],
            &["projects"],
            &["sessions"],
            &["export"],
            &["init", "--remove"],
        ] {
            let ran = with_umask(&home, umask, &repo.path, args).stdin(Stdio::null()).output().unwrap();
            check(&format!("{args:?}: {}", String::from_utf8_lossy(&ran.stderr)));
        }
        assert_eq!(Path::new(backup).metadata().unwrap().mode() & 0o7777, 0o600);
        let again = home.run(&repo.path, &["backup", backup]);
        assert!(!again.is_ok && again.stderr.contains("exists already"), "{again:?}");
        drop(server);
        check("the end of the server");
    }
}

#[test]
fn files_that_an_older_program_left_readable_are_closed_and_reported() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "a quince");
    for path in [home.data().join("owner.db"), home.store()] {
        set(&path, 0o644);
    }
    for mode in [0o755, 0o777] {
        set(&home.data(), mode);
        let told = home.run(&project, &["doctor"]);
        assert!(!told.is_ok, "{told:?}");
        let line = told.stdout.lines().find(|line| line.contains("data directory")).unwrap();
        let does = if mode == 0o755 { "can be read by other users" } else { "can be changed by other users" };
        assert!(
            line.starts_with("FAIL") && line.contains(does) && line.contains(&format!("{mode:04o}")),
            "{told:?}"
        );
        assert!(told.stdout.contains("chmod -R go="), "{told:?}");
        set(&home.data(), mode);
        let told = home.run(&project, &["sessions"]);
        assert!(
            told.is_ok && told.stderr.contains(&format!("note: `{}` {does}", home.data().display())),
            "{told:?}"
        );
        assert_eq!(open(&home.data()), []);
        let told = home.run(&project, &["sessions"]);
        assert!(!told.stderr.contains("note:"), "it is said once: {told:?}");
    }
    set(&home.data(), 0o755);
    set(&home.data().join("owner.db"), 0o644);
    let mut server = home.serve(&project);
    let told = server.text("store_memory", json!({"text": "a pomelo"}));
    assert!(told.contains("(mode 0755)") && told.contains("only this user can access them"), "{told}");
    assert_eq!(open(&home.data()), []);
    drop(server);
    set(&home.path(), 0o777);
    let told = home.run(&project, &["doctor"]);
    assert!(told.stdout.contains("other users can replace it"), "{told:?}");
    set(&home.path(), 0o700);
    let told = home.run(&project, &["doctor"]);
    assert!(told.stdout.contains("ok   data directory"), "{told:?}");
}

#[test]
fn a_readable_folder_with_other_files_is_refused_as_data_directory() {
    let home = Home::new();
    let project = home.dir("project");
    std::fs::write(home.data().join("thesis.tex"), "mine").unwrap();
    set(&home.data(), 0o755);
    let mut server = home.serve(&project);
    let message = json!([{"role": "user", "text": "a quince"}]);
    let told = server.error("save_messages", json!({"session_id": "s", "messages": message}));
    assert!(told.contains("isn't Tiro's own") && told.contains("chmod 700"), "{told}");
    assert_eq!(home.data().metadata().unwrap().mode() & 0o7777, 0o755);
    assert_eq!(std::fs::read_dir(home.data()).unwrap().count(), 1, "nothing was written");
    set(&home.data(), 0o700);
    server.save("s", "1", "a quince");
}

/// Any of the processes may be the first. None sees a file before it is private, and none fails because another is
/// faster.
#[test]
fn many_processes_create_a_private_data_directory_in_parallel() {
    let home = Home::new();
    let project = home.dir("project");
    let servers: Vec<_> = (0..6)
        .map(|n| {
            let command = with_umask(&home, "000", &project, &["serve"]);
            std::thread::spawn(move || {
                let mut server = Server::start(command);
                server.save("s", &n.to_string(), &format!("quince {n}"));
                server
            })
        })
        .collect();
    let mut servers: Vec<Server> = servers.into_iter().map(|each| each.join().unwrap()).collect();
    assert_eq!(open(&home.data()), []);
    let found: Vec<Value> = servers[0].search("quince");
    assert_eq!(found.len(), 6);
}
