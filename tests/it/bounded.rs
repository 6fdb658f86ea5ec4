//! The memory and the file descriptors of the program stay bounded with many parallel calls, with clients that do not
//! read, and with texts of any length.
//!
//! `evals limits` measures the usual amounts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Server};

/// Returns a field of `/proc/PID/status` in MiB.
fn memory(pid: i32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}

fn descriptors(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns the request line of a call.
fn call(id: u64, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[test]
fn parallel_searches_use_few_descriptors_and_none_fails() {
    const SEARCHES: u64 = 500;
    let home = Home::new();
    let project = home.dir("project");
    let tiro = home.tiro(&project, &["serve"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .arg(tiro.get_program())
        .arg("serve")
        .current_dir(&project)
        .env_clear()
        .envs(tiro.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut server = Server::start(limited);
    for n in 0..20 {
        server.save("s", &n.to_string(), &format!("remark {n} on the harbour"));
    }
    for n in 0..SEARCHES {
        let query = json!({"query": format!("harbour {n}")});
        server.ask("tools/call", json!({"name": "search_project_memory", "arguments": query}));
    }
    let mut most = 0;
    for _ in 0..SEARCHES {
        let answer = server.receive();
        most = most.max(descriptors(server.pid()));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{answer}");
        let notices = result["structuredContent"]["notices"].to_string();
        assert!(!notices.contains("no search by words"), "{answer}");
    }
    assert!(most <= 72, "{most} descriptors");
}

/// A server whose answers are not read until `read`.
struct Unread {
    child: Child,
}

impl Unread {
    fn start(home: &Home) -> Unread {
        let mut command = home.tiro(&home.dir("project"), &["serve"]);
        command.env("TIRO_LOG", "error").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Unread { child: command.spawn().unwrap() }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Writes `lines` on a separate thread, which then closes the input.
    fn feed(&mut self, lines: Vec<String>) -> std::thread::JoinHandle<()> {
        let mut stdin = self.child.stdin.take().unwrap();
        std::thread::spawn(move || {
            for line in lines {
                // The server has closed its input.
                if stdin.write_all(format!("{line}\n").as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    /// Waits until the server's memory stops changing.
    fn settle(&self) {
        let (mut last, mut same) = (0.0, 0);
        while same < 5 {
            std::thread::sleep(Duration::from_millis(200));
            let now = memory(self.pid(), "VmRSS:");
            same = if now - last < 0.5 { same + 1 } else { 0 };
            last = now;
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines of a handshake and of `count` requests, alternating calls and lists.
fn questions(count: u64) -> Vec<String> {
    let client = json!({"name": "it", "version": "0"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string();
    let ask = |id: u64| call(id, "search_project_memory", json!({"query": format!("the harbour {id}")}));
    let asked = (1..=count).map(|id| if id % 2 == 0 { list(id) } else { ask(id) });
    [hello.to_string(), ready.to_string()].into_iter().chain(asked).collect()
}

/// 1.1 MB of requests used to take 228 MB.
#[test]
fn a_client_that_never_reads_is_no_longer_served_and_its_end_is_noticed() {
    let home = Home::new();
    home.serve(&home.dir("project")).save("s", "1", &"the harbour is closed on Sundays. ".repeat(40));
    let mut server = Unread::start(&home);
    let feeding = server.feed(questions(30_000));
    server.settle();
    assert!(!feeding.is_finished(), "the server reads on and on");
    let peak = memory(server.pid(), "VmHWM:");
    // Half of the requests are for the list of tools, which has 20 kB.
    assert!(peak < 160.0, "{peak} MiB");
    drop(server);
    feeding.join().unwrap();
}

#[test]
fn a_client_that_never_reads_and_exits_leaves_no_server_running() {
    let home = Home::new();
    let file = home.path().join("requests");
    std::fs::write(&file, questions(30_000).join("\n") + "\n").unwrap();
    let mut client = Command::new("cat").arg(&file).stdout(Stdio::piped()).spawn().unwrap();
    let mut command = home.tiro(&home.dir("project"), &["serve"]);
    command.stdin(client.stdout.take().unwrap()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Unread { child: command.spawn().unwrap() };
    drop(command);
    server.settle();
    assert!(client.try_wait().unwrap().is_none(), "the server reads on and on");
    // The pipe is full of requests, and the input ends after them.
    client.kill().unwrap();
    client.wait().unwrap();
    let began = Instant::now();
    while server.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    const REQUESTS: u64 = 6000;
    let home = Home::new();
    home.serve(&home.dir("project")).save("s", "1", "the harbour is closed on Sundays");
    let mut server = Unread::start(&home);
    let ping = |id: u64| match id % 3 {
        0 => json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string(),
        1 => json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string(),
        _ => "no request".to_owned(),
    };
    let lines: Vec<String> = questions(0).into_iter().chain((1..=REQUESTS).map(ping)).collect();
    let expected = lines.len() - 1;
    let mut stdin = server.child.stdin.take().unwrap();
    std::thread::spawn(move || {
        lines.iter().try_for_each(|line| stdin.write_all(format!("{line}\n").as_bytes())).unwrap();
        // The input stays open until all answers are read. If it ended earlier, the last requests would have only a
        // second.
        std::thread::sleep(Duration::from_secs(120));
    });
    server.settle();
    let output = BufReader::new(server.child.stdout.take().unwrap());
    let began = Instant::now();
    let answered = output.lines().take(expected).filter(|line| line.is_ok()).count();
    assert_eq!(answered, expected);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// Returns the folder of the installed model; without one, prints that the test is skipped.
fn model() -> Option<std::path::PathBuf> {
    let models = std::env::var_os("TIRO_MODEL_DIR").map(std::path::PathBuf::from);
    let folder = models.map(|models| models.join("all-MiniLM-L6-v2"));
    let folder = folder.filter(|folder| folder.join("weights.tiro").exists());
    if folder.is_none() {
        eprintln!("skipped: no model (TIRO_MODEL_DIR)");
    }
    folder
}

/// SIGBUS used to end the server.
#[test]
fn when_the_model_is_truncated_under_a_server_search_is_lexical_and_says_so() {
    let Some(folder) = model() else { return };
    let home = Home::new();
    let own = home.dir("models/all-MiniLM-L6-v2").join("weights.tiro");
    std::fs::copy(folder.join("weights.tiro"), &own).unwrap();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "1", "the durian smells");
    assert!(
        !server.data("search_project_memory", json!({"query": "durian"}))["notices"]
            .to_string()
            .contains("model")
    );
    std::fs::File::options().write(true).open(&own).unwrap().set_len(4096).unwrap();
    let (text, found) =
        server.both("search_project_memory", json!({"query": "which fruit smells of cheese"}));
    assert_eq!(found["hits"][0]["source_id"], "1", "{found}");
    assert!(
        text.contains("no search by meaning") && text.contains("changed since this process opened it"),
        "{text}"
    );
    server.save("s", "2", "nobody else eats mangosteens");
    assert_eq!(server.search("mangosteens")[0]["source_id"], "2");
}

/// Each piece of a batch used to contain a copy of its whole text.
#[test]
fn a_large_text_is_embedded_without_loading_all_of_it() {
    const SIZE: usize = 64 << 20;
    const PIECES: usize = 4;
    let Some(folder) = model() else { return };
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).data("store_memory", json!({"text": "the harbour is closed on Sundays"}));
    // The text is stored as an older version did, which had no limit of length.
    let line = "the harbour is closed on Sundays. ";
    let text = line.repeat(SIZE / line.len());
    let store = rusqlite::Connection::open(home.store()).unwrap();
    store.execute("UPDATE memories SET text = ?1", [&text]).unwrap();
    store.execute_batch("DELETE FROM pending; DELETE FROM vectors; DELETE FROM chunks;").unwrap();
    for piece in 0..PIECES {
        let start = SIZE / PIECES * piece / line.len() * line.len();
        let values = (piece as i64, start as i64, (start + 4 * line.len()) as i64);
        let sql = "INSERT INTO chunks (memory, ordinal, start_byte, end_byte, tokens)
            SELECT seq, ?1, ?2, ?3, 30 FROM memories";
        store.execute(sql, values).unwrap();
    }
    store.execute("INSERT INTO pending (chunk) SELECT seq FROM chunks", []).unwrap();
    drop(store);
    let mut indexing = home
        .tiro(&project, &["index", "--threads", "1"])
        .env("TIRO_MODEL_DIR", folder.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (pid, mut peak) = (indexing.id() as i32, 0.0f64);
    let status = loop {
        if let Some(status) = indexing.try_wait().unwrap() {
            break status;
        }
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status.contains("VmHWM:") {
            peak = peak.max(memory(pid, "VmHWM:"));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success());
    assert_eq!(home.json(&project, &["stats"])["pending"], 0);
    assert!((10.0..128.0).contains(&peak), "{peak} MiB");
}
