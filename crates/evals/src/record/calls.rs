//! What is asked: first what fills the memory, then every tool and subcommand that reads, then those that change something.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::Line;
use super::ground::Ground;
use crate::client::Server;

/// How long the idle server gets to finish what calls left.
const REST: Duration = Duration::from_secs(8);

/// The words that stand beside the questions about the sample.
const WORDS: [&str; 27] = [
    "deposit",
    "Penmarrow berth",
    "LISTEN/NOTIFY",
    "why sqlx",
    "rate limit",
    "what did Maud say?",
    "post-mortem",
    "src/part3.rs",
    "holds expire",
    "refund",
    "zebra quantum",
    "latest session",
    "Easter weekend",
    "who is Tomasz",
    "invoice VAT",
    "session cookie",
    "health check",
    "what changed after the outage?",
    "berth length in metres",
    "Saltreach",
    "Inver Quay",
    "SKIP LOCKED",
    "backup restore",
    "first decision",
    "how many marinas",
    "npm",
    "translation",
];

const STRATEGIES: [&str; 3] = ["relevance", "recency", "mixed"];

const LEVELS: [&str; 3] = ["brief", "standard", "detailed"];

/// Asks everything and returns what came back, in order.
pub fn record(ground: &mut Ground) -> Result<Vec<Line>> {
    fill(ground)?;
    let mut server = ground.serve()?;
    thread::sleep(REST);
    read(ground, &mut server)?;
    consult(ground, &mut server)?;
    change(ground, &mut server)?;
    server.close()?;
    commands(ground)?;
    Ok(std::mem::take(&mut ground.lines))
}

/// Imports and saves what the other calls are about.
fn fill(ground: &mut Ground) -> Result<()> {
    for arguments in [
        &["doctor"][..],
        &["search", "berth"],
        &["import", "git"],
        &["import", "git"],
        &["import", "claude-code"],
        &["import", "codex"],
        &["stats"],
    ] {
        ground.command(arguments)?;
    }
    let mut server = ground.serve()?;
    for (name, messages) in ground.sessions.clone() {
        for part in messages.chunks(20) {
            ground.call(&mut server, "save_messages", json!({"session_id": name, "messages": part}))?;
        }
    }
    ground.settle(&mut server)?;
    thread::sleep(REST);
    server.close()?;
    ground.command(&["index"])?;
    ground.command(&["summarize", "--all"])
}

fn read(ground: &mut Ground, server: &mut Server) -> Result<()> {
    let mut queries = ground.questions.clone();
    queries.extend(WORDS.map(str::to_owned));
    let names: Vec<String> = ground.sessions.iter().map(|(name, _)| name.clone()).collect();
    let mut ids = Vec::new();
    for (index, query) in queries.iter().enumerate() {
        let name = &names[index % names.len()];
        let found = ground.call(server, "search_project_memory", json!({"query": query}))?;
        let hits = found["structuredContent"]["hits"].as_array().cloned().unwrap_or_default();
        ids.extend(hits.iter().take(3).filter_map(|hit| hit["id"].as_str().map(str::to_owned)));
        for (tool, arguments) in [
            (
                "search_project_memory",
                json!({"query": query, "k": 3, "kinds": ["commit"], "max_tokens": 500}),
            ),
            ("search_project_memory", json!({"query": query, "sessions": [name], "since": "2026-03-05"})),
            ("retrieve_context", json!({"query": query, "max_tokens": 500 + 200 * index})),
            ("retrieve_context", json!({"query": query, "session_id": name, "max_tokens": 3000})),
            ("get_relevant_snippets", json!({"query": query, "strategy": STRATEGIES[index % 3]})),
            ("get_context_summary", json!({"query": query, "level": LEVELS[index % 3]})),
        ] {
            ground.call(server, tool, arguments)?;
        }
    }
    ids.sort();
    ids.dedup();
    for (index, id) in ids.iter().take(75).enumerate() {
        ground.call(server, "expand_detail", json!({"id": id, "before": index % 4, "after": index % 3}))?;
    }
    for (index, name) in names.iter().enumerate() {
        for level in LEVELS {
            ground.call(server, "summarize_conversation", json!({"session_id": name, "level": level}))?;
            ground.call(server, "expand_detail", json!({"id": name, "level": level}))?;
        }
        let arguments = json!({"session_id": name, "from": index, "to": 20 + index, "max_tokens": 200});
        ground.call(server, "summarize_conversation", arguments)?;
        ground.call(server, "expand_detail", json!({"id": format!("{name}#{}", 3 * index)}))?;
    }
    for arguments in
        [json!({}), json!({"limit": 3}), json!({"limit": 3, "cursor": "3"}), json!({"cursor": "x"})]
    {
        ground.call(server, "list_sessions", arguments)?;
    }
    Ok(())
}

fn consult(ground: &mut Ground, server: &mut Server) -> Result<()> {
    for (index, name) in ["a", "a", "b", "a"].iter().enumerate() {
        let arguments = json!({
            "session_id": name, "instructions": format!("Why is part {index} as it is?"), "call_id": format!("c{index}"),
            "context": ["src"], "wait_s": 60,
        });
        ground.call(server, "chat_with_mock", arguments)?;
        ground.call(server, "describe_session", json!({"session_id": name}))?;
    }
    for arguments in [
        json!({"paths": ["src"]}),
        json!({"paths": ["src/part1.rs", "src/none.rs"], "assistant": "mock"}),
        json!({"paths": ["../outside"]}),
        json!({"text": "How many tokens?"}),
    ] {
        ground.call(server, "count_tokens", arguments)?;
    }
    for what in ["files", "thread", "nothing"] {
        ground.call(server, "reset_session", json!({"session_id": "a", "what": what}))?;
    }
    for arguments in [
        json!({"operation": "show"}),
        json!({"provider": "mock", "config": {"temperature": 0.2}}),
        json!({"provider": "none", "config": {"model": "m"}}),
    ] {
        ground.call(server, "configure_llm_provider", arguments)?;
    }
    Ok(())
}

fn change(ground: &mut Ground, server: &mut Server) -> Result<()> {
    let texts = [
        ("The mail worker polls every 5 seconds", "decision", "mail"),
        ("The mail worker polls every 3 seconds", "decision", "mail"),
        ("Maud answers on Tuesdays", "fact", "people"),
        ("password: hunter2-Kq81mZ", "note", "secrets"),
        ("", "note", "nothing"),
        ("A berth is 12 metres", "unknown-type", "berths"),
    ];
    let mut stored = Vec::new();
    for (text, kind, topic) in texts {
        let answer =
            ground.call(server, "store_memory", json!({"text": text, "type": kind, "topic": topic}))?;
        stored.extend(answer["structuredContent"]["id"].as_str().map(str::to_owned));
    }
    for id in &stored {
        ground.call(server, "mark_important", json!({"ids": [id], "importance": 0.9}))?;
        ground.call(server, "expand_detail", json!({"id": id}))?;
        ground.call(server, "forget_context", json!({"ids": [id], "dry_run": true}))?;
    }
    for arguments in [
        json!({"segment_ids": ["harbour-07#0-10"]}),
        json!({"segments": [{"text": "error: connection reset by peer in src/part3.rs", "type": "error_log", "topic": "net"}]}),
        json!({"segments": [{"text": "fn berth() -> u32 { 12 }", "type": "code_block"}], "expires_in_days": 2}),
        json!({"segment_ids": ["nobody#1"]}),
    ] {
        ground.call(server, "stash_context", arguments)?;
    }
    ground.settle(server)?;
    for query in ["connection reset", "berth", "LISTEN/NOTIFY", "nothing like it", "Maud"] {
        ground.call(server, "retrieve_stashed_context", json!({"query": query, "top_k": 4}))?;
        ground.call(server, "retrieve_context", json!({"query": query, "session_id": "harbour-07"}))?;
    }
    for arguments in [
        json!({"segment_ids": ["harbour-07#0-3"]}),
        json!({"segment_ids": ["harbour-07#4-10"], "keep": true}),
    ] {
        ground.call(server, "merge_stashed_context", arguments)?;
    }
    for arguments in [
        json!({"query": "mail worker polls", "dry_run": true}),
        json!({"query": "zebra quantum entanglement"}),
        json!({"session_id": "harbour-08"}),
        json!({"ids": ["nothing"]}),
    ] {
        ground.call(server, "forget_context", arguments)?;
    }
    ground.settle(server)?;
    for query in ["mail worker", "berth", "deposit", "Tuesdays"] {
        ground.call(server, "search_project_memory", json!({"query": query, "max_tokens": 1000}))?;
        ground.call(server, "retrieve_context", json!({"query": query}))?;
    }
    for (tool, arguments) in [
        ("search_project_memory", json!({})),
        ("search_project_memory", json!({"query": "x", "since": "yesterdayish"})),
        ("retrieve_context", json!({"query": "x", "session_id": "nobody"})),
        ("expand_detail", json!({"id": "nobody"})),
        ("save_messages", json!({"session_id": "s", "messages": "no list"})),
        ("no_such_tool", json!({})),
        ("store_memory", Value::Null),
    ] {
        ground.call(server, tool, arguments)?;
    }
    Ok(())
}

fn commands(ground: &mut Ground) -> Result<()> {
    for query in ground.questions.clone() {
        ground.command(&["search", &query])?;
        ground.command(&["context", &query])?;
        ground.command(&["search", "--json", &query])?;
    }
    for name in ["harbour-01", "harbour-02", "harbour-08", "nobody"] {
        ground.command(&["show", name])?;
        ground.command(&["summarize", name])?;
        ground.command(&["context", "--session", name, "berths"])?;
    }
    for line in [
        "show harbour-01#3",
        "show harbour-01#3 --json",
        "show HEAD",
        "sessions",
        "sessions --json",
        "stats",
        "stats --json",
        "stash list",
        "stash search berth",
        "projects list",
        "projects list --json",
        "provider list",
        "provider sent",
        "provider sent --json",
        "doctor",
        "doctor --json",
        "gc --dry-run",
        "forget --query deposit --dry-run",
        "undo",
        "undo",
        "add --type decision Berths-are-blue",
        "search Berths-are-blue",
        "mark --off nothing",
        "chat mock Why? src/part1.rs",
        "chat --preview mock Why? src/part1.rs",
        "export",
        "pause",
        "doctor",
        "resume",
        "model list",
        "summarize --commits",
        "show harbour-02#1",
        "show harbour-03 --json",
        "context --json what-did-Maud-say",
        "stash --help",
        "init --dry-run",
        "completions bash",
        "help",
        "help search",
        "search",
        "nonsense",
        "import git --json",
        "index",
        "gc",
        "stats",
    ] {
        ground.command(&line.split(' ').collect::<Vec<_>>())?;
    }
    Ok(())
}
