//! Reads are answered from stored data, even if nothing can be written.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::harness::{Home, Server};

/// Returns the server, started so that its writes fail as on a full disk.
fn serve(home: &Home, project: &Path) -> Server {
    let tiro = home.tiro(project, &["serve"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(tiro.get_program()).args(tiro.get_args());
    command.current_dir(project).env_clear();
    command.envs(tiro.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Server::start(command)
}

/// Makes all further writes of the server fail, since none of its files can grow.
fn fill_the_disk(server: &Server) {
    let none = Rlimit { current: Some(0), maximum: None };
    prlimit(Pid::from_raw(server.pid()), Resource::Fsize, none).unwrap();
}

/// Saves a conversation that is long enough for segments.
fn converse(server: &mut Server) {
    let message = |n: usize| {
        let text = format!("We put quince {n} into the cellar since it is cold there, decided on day {n}.");
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "text": text})
    };
    let messages: Vec<Value> = (0..60).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
}

/// Makes every call that reads. Each must answer within some seconds. Returns the notices.
fn ask_everything(server: &mut Server) -> String {
    let id = server.search("quince 7 cellar")[0]["id"].clone();
    let mut said = String::new();
    for (tool, arguments) in [
        ("search_project_memory", json!({"query": "quince cellar"})),
        ("retrieve_context", json!({"query": "quince 7", "session_id": "s"})),
        ("retrieve_context", json!({"query": "quince 8"})),
        ("get_context_summary", json!({"query": "quince"})),
        ("get_relevant_snippets", json!({"query": "quince"})),
        ("summarize_conversation", json!({"session_id": "s"})),
        ("list_sessions", json!({})),
        ("retrieve_stashed_context", json!({"query": "quince"})),
        ("expand_detail", json!({"id": id, "level": "brief"})),
        ("expand_detail", json!({"id": "s#7"})),
    ] {
        let asked = Instant::now();
        let (text, data) = server.both(tool, arguments);
        let is_list = ["list_sessions", "retrieve_stashed_context"].contains(&tool);
        assert!(text.contains("quince") || is_list, "{tool}: {text}");
        assert!(asked.elapsed() < Duration::from_secs(9), "{tool} took {:?}", asked.elapsed());
        said += &data["notices"].to_string();
    }
    said
}

#[test]
fn reads_work_on_a_full_disk() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = serve(&home, &project);
    converse(&mut server);
    fill_the_disk(&server);
    let said = ask_everything(&mut server);
    assert!(said.contains("not stored"), "{said}");
    server.error("store_memory", json!({"text": "a pomelo"}));
    assert!(server.search("pomelo").is_empty());

    // A server that is started now behaves the same, with the log of another server and without it.
    let mut another = serve(&home, &project);
    fill_the_disk(&another);
    ask_everything(&mut another);
    drop((server, another));
    let mut last = home.serve(&project);
    last.search("quince");
    last.end();
    let mut another = serve(&home, &project);
    fill_the_disk(&another);
    ask_everything(&mut another);
    another.error("store_memory", json!({"text": "a pomelo"}));
    // Once there is free space, the server writes again.
    let all = Rlimit { current: None, maximum: None };
    prlimit(Pid::from_raw(another.pid()), Resource::Fsize, all).unwrap();
    another.data("store_memory", json!({"text": "a pomelo"}));
    assert_eq!(another.search("pomelo").len(), 1);
}

#[test]
fn reads_work_beside_a_locked_writer() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    converse(&mut server);
    let held: Vec<Connection> = [home.store(), home.data().join("owner.db")]
        .iter()
        .map(|store| {
            let connection = Connection::open(store).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            connection
        })
        .collect();
    let said = ask_everything(&mut server);
    assert!(said.contains("not stored"), "{said}");
    ask_everything(&mut home.serve(&project));
    drop(held);
    assert!(!ask_everything(&mut server).contains("not stored"));
}

/// Root can write everywhere, so the server runs as another user, who also owns the files.
#[test]
fn reads_work_in_a_read_only_folder() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let home = Home::new();
    let project = home.dir("project");
    let is_root = home.path().metadata().unwrap().uid() == 0;
    let tiro = |argument: &str| {
        let mut command = home.tiro(&project, &[argument]);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    if is_root {
        give_away(&home.path());
        if !tiro("--version").output().is_ok_and(|ran| ran.status.success()) {
            eprintln!("skipped: the program can't be run as another user than root");
            return;
        }
    }
    let mut server = Server::start(tiro("serve"));
    converse(&mut server);
    server.end();
    let folder = home.store().parent().unwrap().to_owned();
    let set = |mode: u32| {
        for path in [&home.data(), &folder] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    // The log next to a store stays writable. The last process that ends normally removes it.
    let has_log = || home.store().with_extension("db-wal").exists();
    assert!((0..20).any(|_| !has_log() || (tiro("stats").output().unwrap().status.success() && !has_log())));
    set(0o500);
    let mut server = Server::start(tiro("serve"));
    ask_everything(&mut server);
    let told = server.error("store_memory", json!({"text": "a pomelo"}));
    assert!(told.contains("TIRO_DATA_DIR"), "{told}");
    set(0o700);
    server.data("store_memory", json!({"text": "a pomelo"}));
}

/// The number of a user and a group that have no rights.
const NOBODY: u32 = 65534;

/// Gives the folder and everything in it to that user.
fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

/// Calls of one process waited for each other first and for the other process then: the second ended after 20 s.
#[test]
fn a_write_against_a_held_lock_ends_after_ten_seconds_however_many_wait() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("talk", "1", "a quince in the cellar");
    let holder = Connection::open(home.store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    for n in 0..3 {
        let messages = json!([{"role": "user", "content": format!("a medlar, number {n}")}]);
        server.ask(
            "tools/call",
            json!({"name": "save_messages", "arguments": {"session_id": "s", "messages": messages}}),
        );
    }
    for _ in 0..3 {
        let answer = server.receive();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(13), "{:?}", began.elapsed());
    holder.execute_batch("ROLLBACK").unwrap();
}
