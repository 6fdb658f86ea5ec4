//! No acknowledged write is lost if processes are killed, inputs are closed or input is malformed.

use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// After how long a server that was asked to end counts as one that never ends. It gives itself less than two seconds.
const GONE: Duration = Duration::from_secs(60);

/// Three processes write to the same store, and each is killed eight times at arbitrary moments. Every acknowledged
/// write is stored once, and the store and its index are intact.
#[test]
fn acknowledged_writes_survive_kill_9() {
    const WRITERS: usize = 3;
    const LIVES: usize = 8;
    let home = Home::new();
    let project = home.dir("project");
    let acknowledged: Vec<Vec<String>> = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let (home, project) = (&home, &project);
            move || {
                let mut acknowledged = Vec::new();
                let mut number = 0;
                for life in 0..LIVES {
                    let mut server = home.serve(project);
                    let pid = Pid::from_raw(server.pid()).unwrap();
                    let (written, is_written) = channel();
                    std::thread::scope(|scope| {
                        // The process is killed during the next write, as soon as enough writes are acknowledged.
                        scope.spawn(move || {
                            is_written.iter().take(1 + (life * 5 + writer * 3) % 11).for_each(|()| {});
                            kill_process(pid, Signal::KILL).unwrap();
                        });
                        loop {
                            let id = format!("w{writer}-{number}");
                            let message = json!({"id": id, "role": "user", "text": format!("apricot {id}")});
                            let arguments = json!({"session_id": "crash", "messages": [message]});
                            let Some(answer) = server.try_call("save_messages", arguments) else { break };
                            let saved = &answer["result"]["structuredContent"];
                            // The write that the last kill interrupted is sent again with the same id.
                            let known = saved["already_stored"].as_u64().unwrap();
                            assert_eq!(saved["saved"].as_u64().unwrap() + known, 1, "{answer}");
                            acknowledged.push(id);
                            number += 1;
                            // After the kill, the receiver no longer exists.
                            let _ = written.send(());
                        }
                        drop(written);
                    });
                    server.wait();
                }
                acknowledged
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(write(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let acknowledged = acknowledged.concat();
    assert!(acknowledged.len() >= WRITERS * LIVES, "{} writes", acknowledged.len());

    let exported = home.run(&project, &["export"]).stdout;
    let memories: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stored = strings(&memories, "source_id");
    let distinct: HashSet<&String> = stored.iter().collect();
    assert_eq!(distinct.len(), stored.len(), "none is there twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|id| !distinct.contains(id)).collect();
    assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
    sound(&home);
    let found = home.serve(&project).hits(json!({"query": acknowledged[0], "k": 50, "max_tokens": 9000}));
    assert!(strings(&found, "source_id").contains(&acknowledged[0]), "the index holds it too");
}

/// Sends a slow request and returns before it is answered.
fn in_mid_call(home: &Home) -> Server {
    let mut server = home.serve(&home.dir("project"));
    // From here on there is a store, which must be sound afterwards.
    let first = json!([{"id": "first", "role": "user", "text": "The press runs."}]);
    server.call("save_messages", json!({"session_id": "s", "messages": first}));
    let message = |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("message {n} {}", "word ".repeat(200))});
    let messages: Vec<Value> = (0..20_000).map(message).collect();
    server.ask(
        "tools/call",
        json!({"name": "save_messages", "arguments": {"session_id": "s", "messages": messages}}),
    );
    server
}

#[test]
fn a_server_ends_after_its_input_closes() {
    let home = Home::new();
    let mut server = in_mid_call(&home);
    let asked = Instant::now();
    server.hang_up();
    let status = server.wait();
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
    assert!(status.success(), "{status}");
    sound(&home);
}

#[test]
fn a_server_ends_after_sigterm() {
    let home = Home::new();
    let mut server = in_mid_call(&home);
    let asked = Instant::now();
    kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::TERM).unwrap();
    server.wait();
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
    sound(&home);

    let mut idle = home.serve(&home.dir("project"));
    let asked = Instant::now();
    kill_process(Pid::from_raw(idle.pid()).unwrap(), Signal::TERM).unwrap();
    assert!(idle.wait().success());
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
}

/// Checks that `doctor` finds nothing wrong except the missing model.
fn sound(home: &Home) {
    let told: Value =
        serde_json::from_str(&home.run(&home.dir("project"), &["doctor", "--json"]).stdout).unwrap();
    let findings = told["findings"].as_array().unwrap();
    let unsound = |each: &&Value| each["ok"] != true && each["what"] != "embedding model";
    assert_eq!(findings.iter().find(unsound), None, "{told}");
    assert!(findings.iter().any(|each| each["what"] == "store"), "{told}");
}

#[test]
fn malformed_input_is_answered_and_survived() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let nonsense = [
        ("nonsense", -32700),
        ("{", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"no/such"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no_such_tool"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
            -32002,
        ),
    ];
    for (line, code) in nonsense {
        server.send(line);
        let answer = server.receive();
        let told = &answer["error"]["code"];
        // The stateless protocol has its own code for an unknown resource.
        assert!(*told == code || (code == -32002 && *told == -32602), "{line}: {answer}");
    }
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/no-such"}"#);
    server.save("s", "1", "still here");
    assert_eq!(server.search("still here").len(), 1);
}

#[test]
fn two_servers_see_each_others_writes() {
    let home = Home::new();
    let project = home.dir("project");
    let (mut one, mut two) = (home.serve(&project), home.serve(&project));
    assert!(two.search("nectarine").is_empty());
    let id = one.save("s", "1", "a nectarine from one");
    assert_eq!(two.search("nectarine").len(), 1);
    two.save("s", "2", "a nectarine from two");
    assert_eq!(one.search("nectarine").len(), 2);
    two.data("forget_context", json!({"ids": [id]}));
    assert_eq!(strings(&one.search("nectarine"), "text"), ["a nectarine from two"]);
}

/// An emptied store used to count as a new one, and the server answered that nothing was remembered.
#[test]
fn an_emptied_store_is_not_mistaken_for_a_new_one() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "the durian smells");
    let backup = home.path().join("backup.db");
    assert!(home.run(&project, &["backup", backup.to_str().unwrap()]).is_ok);
    for path in [home.store(), home.data().join("owner.db")] {
        let kept = std::fs::read(&path).unwrap();
        for beside in ["-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(beside);
            let _ = std::fs::remove_file(name);
        }
        std::fs::write(&path, "").unwrap();
        let said = home.serve(&project).error("search_project_memory", json!({"query": "durian"}));
        assert!(
            said.contains("is an empty file, although it held memories") && said.contains("`tiro restore`"),
            "{said}"
        );
        assert!(!home.run(&project, &["search", "durian"]).is_ok);
        assert_eq!(path.metadata().unwrap().len(), 0, "it is left as it is");
        std::fs::write(&path, kept).unwrap();
    }
    // Following the advice of the error works.
    std::fs::write(home.store(), "").unwrap();
    std::fs::rename(home.store(), home.path().join("emptied.db")).unwrap();
    let restored = home.run(&project, &["restore", backup.to_str().unwrap()]);
    assert!(restored.is_ok, "{restored:?}");
    assert_eq!(home.serve(&project).search("durian").len(), 1);
}

/// While one server recreated a removed store, another used to see an empty file and to report lost data.
#[test]
fn many_servers_recreate_a_removed_store_in_parallel() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "the durian smells");
    for removed in ["projects", "projects", "owner.db", "projects", "projects", "owner.db"] {
        for name in [removed.to_owned(), format!("{removed}-wal"), format!("{removed}-shm")] {
            let path = home.data().join(name);
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        let mut servers: Vec<Server> = (0..6).map(|_| home.serve(&project)).collect();
        let asked: Vec<u64> = servers
            .iter_mut()
            .enumerate()
            .map(|(at, server)| {
                let messages = json!([{"id": at.to_string(), "role": "user", "text": "a medlar"}]);
                let arguments = json!({"session_id": "s", "messages": messages});
                server.ask("tools/call", json!({"name": "save_messages", "arguments": arguments}))
            })
            .collect();
        for (server, id) in servers.iter_mut().zip(asked) {
            let answer = server.receive();
            assert_eq!(answer["id"], id);
            assert_ne!(answer["result"]["isError"], true, "after {removed} was removed: {answer}");
        }
    }
}

/// A copy of a store file used to lack what was still in the log next to it.
#[test]
fn after_the_last_process_ended_the_file_alone_is_complete() {
    let home = Home::new();
    let project = home.dir("project");
    let (mut one, mut two) = (home.serve(&project), home.serve(&project));
    let messages = |server: &mut Server, from: usize| {
        let message = |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("a fig {n}")});
        let messages: Vec<Value> = (from..from + 300).map(message).collect();
        server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    };
    messages(&mut one, 0);
    messages(&mut two, 300);
    one.search("fig");
    let asked = Instant::now();
    one.end();
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
    two.search("fig");
    two.end();
    // A server waits only a moment for its other work when it ends, so on a busy machine a log may stay. The next one
    // moves it.
    let logs = || [home.store(), home.data().join("owner.db")].map(|store| store.with_extension("db-wal"));
    for _ in 0..4 {
        if logs().iter().any(|log| log.exists()) {
            let mut next = home.serve(&project);
            next.search("fig");
            next.end();
        }
    }
    let alone = |what: &str| {
        for store in [home.store(), home.data().join("owner.db")] {
            for log in ["-wal", "-shm"] {
                let mut log_name = store.as_os_str().to_owned();
                log_name.push(log);
                assert!(!std::path::Path::new(&log_name).exists(), "{log_name:?} after {what}");
            }
        }
        let copy = home.path().join("copy.db");
        std::fs::copy(home.store(), &copy).unwrap();
        let copy = rusqlite::Connection::open(copy).unwrap();
        let count: i64 = copy.query_row("SELECT count(*) FROM memories", [], |row| row.get(0)).unwrap();
        assert!(count >= 600, "{count} memories after {what}");
    };
    alone("two servers");
    assert!(home.run(&project, &["search", "fig"]).is_ok);
    alone("a command");
}
