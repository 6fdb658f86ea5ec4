//! A failed read is never told as "nothing": while every n-th read of the stores fails as on a bad disk, each tool that
//! reads answers completely, says in its first line what is missing, or fails with an error that names no other cause.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Server};

/// What every complete answer quotes.
const SAID: &str = "brass";

/// How an answer begins that lacks something.
const INCOMPLETE: &str = "Incomplete: ";

/// What no answer may say while the store holds what was asked for: that there is nothing, or nothing of this name.
const DENIALS: [&str; 14] = [
    "nothing found",
    "nothing was found",
    "nothing is remembered",
    "nothing in the stash",
    "nothing here is about",
    "nothing is called",
    "nothing matches",
    "stash is empty",
    "no conversation has to do",
    "no session is called",
    "no sessions in",
    "no message is called",
    "no messages in session",
    "no memory with id",
];

/// A home whose stores hold what is asked for, and the shim that makes reads fail.
struct Ground {
    home: Home,
    project: PathBuf,
    shim: PathBuf,
    calls: Vec<(&'static str, Value)>,
}

impl Ground {
    /// Returns the ground; `None` with a notice if there is no C compiler.
    fn new() -> Option<Ground> {
        let home = Home::new();
        let shim = home.path().join("failing_reads.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/failing_reads.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(source).arg("-ldl");
        if !compiled.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler `cc`, which makes the reads fail");
            return None;
        }
        let repo = home.repo("project");
        repo.commit("hall.txt", "hooks\n", "lantern: hang the lantern on brass hooks");
        let project = repo.path.clone();
        let mut server = home.serve_texts(&project);
        let messages: Vec<Value> = (0..40)
            .map(|n| {
                let text = match n % 5 {
                    0 => "We decided to hang the lantern of brass in the hall, because iron rusts.".to_owned(),
                    _ => format!("The garden {n} with roses and tulips of brass looks lovely today."),
                };
                let role = if n % 2 == 0 { "user" } else { "assistant" };
                json!({"id": n.to_string(), "role": role, "time": format!("2025-03-01T09:{n:02}:00Z"), "text": text})
            })
            .collect();
        server.call("save_messages", json!({"session_id": "talk", "messages": messages}));
        server.call("store_memory", json!({"kind": "decision", "text": "The lantern is made of brass."}));
        let owner = json!({"kind": "decision", "text": "Brass is best for a lantern.", "scope": "owner"});
        server.call("store_memory", owner);
        let segment = json!({"text": "The lantern in the stash has brass screws.", "type": "decision"});
        server.call("stash_context", json!({ "segments": [segment] }));
        let query = json!({"query": "lantern brass"});
        let calls = vec![
            ("search_project_memory", query.clone()),
            ("retrieve_context", query.clone()),
            ("retrieve_context", json!({"query": "lantern brass", "session_id": "talk"})),
            ("get_relevant_snippets", query.clone()),
            ("get_context_summary", query.clone()),
            ("get_context_summary", json!({"conversation_ids": ["talk"]})),
            ("retrieve_stashed_context", query),
            ("retrieve_stashed_context", json!({})),
            ("list_sessions", json!({})),
            ("expand_detail", json!({"id": "talk#5"})),
            ("summarize_conversation", json!({"session_id": "talk"})),
        ];
        for (tool, arguments) in &calls {
            let text = server.text(tool, arguments.clone());
            assert!(text.contains(SAID), "{tool} {arguments}: {text}");
        }
        server.end();
        let ground = Ground { home, project, shim, calls };
        ground.copy(&ground.home.data(), &ground.snapshot());
        Some(ground)
    }

    fn snapshot(&self) -> PathBuf {
        self.home.path().join("snapshot")
    }

    /// Reads fail while this file exists.
    fn armed(&self) -> PathBuf {
        self.home.path().join("armed")
    }

    fn copy(&self, from: &Path, to: &Path) {
        let _ = std::fs::remove_dir_all(to);
        let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
    }

    /// Returns a command of the program whose every `n`-th read fails, with the stores as they were made.
    fn failing(&self, n: usize, args: &[&str]) -> Command {
        let _ = std::fs::remove_file(self.armed());
        self.copy(&self.snapshot(), &self.home.data());
        let mut command = self.home.tiro(&self.project, args);
        command
            .env("LD_PRELOAD", &self.shim)
            .env("FAULTS_EVERY", n.to_string())
            .env("FAULTS_WHILE", self.armed());
        command
    }

    /// Starts a server whose reads fail from now on. If `is_warm`, it has opened its stores before.
    fn serve(&self, n: usize, is_warm: bool) -> Server {
        if !is_warm {
            let command = self.failing(n, &["serve"]);
            std::fs::write(self.armed(), "").unwrap();
            return Server::open(command, "2025-06-18");
        }
        let mut server = Server::open(self.failing(n, &["serve"]), "2025-06-18");
        server.call("list_sessions", json!({}));
        std::fs::write(self.armed(), "").unwrap();
        server
    }

    /// Checks what a tool answered. Returns whether it was complete.
    fn check(&self, what: &str, is_error: bool, text: &str) -> bool {
        let lower = text.to_lowercase();
        let denial = DENIALS.iter().find(|denial| lower.contains(**denial));
        assert_eq!(denial, None, "{what}, but the store holds it: {text}");
        let is_partial = text.starts_with(INCOMPLETE);
        assert!(is_error || is_partial || text.contains(SAID), "{what} says less than it knows: {text}");
        assert!(!is_error || text.lines().count() >= 2, "{what}: an error without a way out: {text}");
        !is_error && !is_partial
    }

    fn call(&self, server: &mut Server, n: usize, tool: &str, arguments: &Value) -> bool {
        let result = server.call(tool, arguments.clone());
        let text = result["content"][0]["text"].as_str().unwrap();
        self.check(
            &format!("{tool} {arguments} with every {n}. read failed"),
            result["isError"] == true,
            text,
        )
    }

    fn commands(&self, n: usize) {
        let commands: [&[&str]; 6] = [
            &["search", "lantern brass"],
            &["context", "lantern brass"],
            &["show", "talk#5"],
            &["sessions"],
            &["stash", "list"],
            &["stash", "search", "lantern brass"],
        ];
        for args in commands {
            let mut command = self.failing(n, args);
            std::fs::write(self.armed(), "").unwrap();
            let Ran { is_ok, stdout, stderr } = Ran::of(&mut command);
            let text = if is_ok { stdout } else { stderr };
            self.check(&format!("tiro {args:?} with every {n}. read failed"), !is_ok, &text);
        }
    }
}

#[test]
fn a_failed_read_is_never_told_as_nothing() {
    let Some(ground) = Ground::new() else { return };
    let mut incomplete = 0;
    for n in [1, 2, 5, 11] {
        for (tool, arguments) in &ground.calls {
            let mut server = ground.serve(n, true);
            incomplete += usize::from(!ground.call(&mut server, n, tool, arguments));
            // Once the disk reads again, so does the server.
            std::fs::remove_file(ground.armed()).unwrap();
            server.end();
        }
    }
    assert!(incomplete > 5, "reads did fail: {incomplete}");
    ground.commands(3);
}

/// The same for many numbers, and for stores that are opened while reads fail. Takes some minutes.
#[test]
#[ignore = "takes minutes"]
fn a_failed_read_is_never_told_as_nothing_whichever_read_fails() {
    let Some(ground) = Ground::new() else { return };
    for n in 1..=60 {
        for is_warm in [true, false] {
            for (tool, arguments) in &ground.calls {
                let mut server = ground.serve(n, is_warm);
                for _ in 0..2 {
                    ground.call(&mut server, n, tool, arguments);
                }
            }
        }
        ground.commands(n);
    }
}
