//! Every tool that says that it only reads changes nothing: all rows are compared before and after.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::memory::{save_messages, store_memory};
use crate::stash::stash_context;
use crate::{Progress, Tool, offered};
use tiro_base::memory::Kind;
use tiro_base::scope::SessionId;
use tiro_capture::spool::Reference;
use tiro_git::testing::Fixture;
use tiro_host::caller::WritingCaller;
use tiro_host::config::Config;
use tiro_host::engine::Engine;
use tiro_host::idle::later;
use tiro_host::summaries::messages;
use tiro_intake::Capture;
use tiro_sqlite::{SqliteFiles, SqliteStore};
use tiro_store::Flavour;

/// Tables of what a call that only reads may write: caches, counters, what contexts showed, and leases.
const BESIDE: &[&str] = &[
    "context_cache",
    "commit_graph",
    "counters",
    "measurements",
    "assemblies",
    "assembly_lines",
    "leases",
    "embedding_cache",
    "file_tokens",
    "sqlite_sequence",
];

/// Two providers, so that the tools for assistants are offered too. Nobody answers there.
const CONFIG: &str = "[embedding]\nprose = 'vectors'\n\
    [providers.vectors]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'v'\nuses = ['embed']\n\
    [providers.lab]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'm'\nwindow = 16000\n\
    uses = ['consult', 'summarize']\n";

/// An engine with a project in `folder` whose store has all kinds of work to do, and no idle worker.
pub(super) async fn begun(folder: &Path, config: Option<&str>) -> (Arc<Engine>, Arc<WritingCaller>) {
    let mut settings = Config::of_test(folder);
    if let Some(config) = config {
        std::fs::write(folder.join("config.toml"), config).unwrap();
        settings.sources.file = Some(folder.join("config.toml"));
        settings.options = settings.sources.options().unwrap();
    }
    let project = folder.join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("press.txt"), "The press runs.\n").unwrap();
    let git = Fixture::new();
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Begin"]] {
        git.git_in(&project, args, b"");
    }
    settings.current_dir = Some(project);
    let caller = Arc::new(WritingCaller::of_process(&settings));
    let engine = Arc::new(Engine::new(settings.clone(), Arc::new(SqliteFiles::new(settings.data_dir))));
    // A conversation that has facts, a changed value, segments that are to be closed, and more messages than a context
    // shows. Nothing of it is noted or summarised yet.
    let messages: Vec<Value> = (0..240)
        .map(|n| {
            let text = match n {
                3 => "We decided to keep 45 quince trees, because the press is small.".to_owned(),
                200 => "We now keep 50 quince trees.".to_owned(),
                _ => format!("Reading {n}: {}", "the quince press runs well today. ".repeat(12)),
            };
            json!({"id": n.to_string(), "role": if n % 2 == 0 { "assistant" } else { "user" }, "text": text,
                "time": format!("2026-03-01T{:02}:{:02}:00Z", n / 60, n % 60)})
        })
        .collect();
    let args = serde_json::from_value(json!({"session_id": "press", "messages": messages})).unwrap();
    save_messages::run(&engine, &caller, args).await.unwrap();
    let note = store_memory::Args { text: "The cellar is cold.".into(), ..store_memory::Args::default() };
    store_memory::run(&engine, &caller, note).await.unwrap();
    for (text, days) in [("the boiler ticks", 1e-9), ("the boiler hums", 30.0)] {
        let args = json!({"segments": [{"text": text, "type": "debug_output"}], "expires_in_days": days});
        stash_context::run(&engine, &caller, serde_json::from_value(args).unwrap()).await.unwrap();
    }
    let args = json!({"segment_ids": ["press#0-4"], "expires_in_days": 1e-9});
    stash_context::run(&engine, &caller, serde_json::from_value(args).unwrap()).await.unwrap();
    caller.capture(&engine).catch_up().await;
    (engine, caller)
}

/// Returns a rows of the project's store, by table.
async fn rows(engine: &Engine, caller: &WritingCaller) -> BTreeMap<String, Vec<String>> {
    let project = caller.begin_project(engine).await.unwrap();
    let path = project.store.place();
    let store = SqliteStore::open(Path::new(&path), Flavour::Project, project.scope.project.clone()).unwrap();
    let mut rows = store.rows();
    rows.retain(|table, _| !BESIDE.contains(&table.as_str()) && !table.starts_with("text_index_"));
    rows
}

/// Returns arguments for each tool that only reads. Each call has work to find.
async fn calls(engine: &Engine, caller: &WritingCaller) -> BTreeMap<&'static str, Vec<Value>> {
    let project = caller.begin_project(engine).await.unwrap();
    let session = SessionId::parse("press").unwrap();
    let first =
        messages::range(&project, &session, (None, None), (None, None)).await.unwrap()[7].id.to_string();
    let stashed = project.store.list(&project.scope, &of_kind(Kind::DebugOutput), None, 9).await.unwrap();
    let stashed = stashed[0].id.to_string();
    BTreeMap::from([
        (
            "search_project_memory",
            vec![json!({"query": "quince press"}), json!({"query": "how many trees?"})],
        ),
        (
            "expand_detail",
            vec![
                json!({"id": first}),
                json!({"id": first, "level": "brief"}),
                json!({"id": "press#9", "collapse": true}),
                json!({"id": "press#9", "level": "standard", "focus": "quince"}),
            ],
        ),
        ("explain_lines", vec![json!({"path": "press.txt"}), json!({"path": "press.txt:1", "rev": "HEAD"})]),
        ("list_sessions", vec![json!({})]),
        (
            "retrieve_context",
            vec![
                json!({"query": "how many trees?", "session_id": "press", "max_tokens": 1000}),
                json!({"query": "quince press", "session_id": "press", "include_level": "summary"}),
                json!({"query": "quince press"}),
                json!({"query": "quince press", "include_level": "summary"}),
            ],
        ),
        ("get_relevant_snippets", vec![json!({"query": "quince press"})]),
        ("get_context_summary", vec![json!({"query": "quince press"})]),
        (
            "retrieve_stashed_context",
            vec![
                json!({}),
                json!({"query": "boiler"}),
                json!({"query": "boiler", "filters": {"type": "debug_output"}}),
                json!({"from_segment": stashed}),
            ],
        ),
        ("describe_session", vec![json!({})]),
        ("count_tokens", vec![json!({"paths": ["press.txt"]})]),
    ])
}

fn of_kind(kind: Kind) -> tiro_base::filter::Filter {
    tiro_base::filter::Filter { kinds: Some(vec![kind]), ..Default::default() }
}

/// Calls every tool that only reads.
async fn call_all(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) -> Vec<String> {
    let table = offered(engine, caller);
    let read_only: Vec<&Tool> = table.iter().filter(|tool| tool.hints.read_only).collect();
    let arguments = calls(engine, caller).await;
    let mut answers = Vec::new();
    for tool in read_only {
        let all = arguments.get(tool.name.as_str());
        let all =
            all.unwrap_or_else(|| panic!("no arguments for `{}`, which says that it only reads", tool.name));
        for each in all {
            let answer = tool.call(each.clone(), Progress::default()).await;
            let answer = answer.unwrap_or_else(|error| panic!("{} {each}: {error}", tool.name));
            answers.push(format!("{} {each}:\n{}", tool.name, answer.text));
        }
    }
    answers
}

#[tokio::test]
async fn a_tool_that_only_reads_changes_no_row() {
    for config in [None, Some(CONFIG)] {
        let folder = tempfile::tempdir().unwrap();
        let (engine, caller) = begun(folder.path(), config).await;
        let before = rows(&engine, &caller).await;
        assert!(before["memories"].len() > 240 && before["stashed"].len() == 7, "enough to do");
        assert!(before["segments"].is_empty() && before["summaries"].is_empty(), "enough to do");
        let first = call_all(&engine, &caller).await;
        for (table, rows) in rows(&engine, &caller).await {
            assert_eq!(rows, before[&table], "{table}");
        }
        // The calls left work. When it is done, the answers are still the same, but for what is new in the stash.
        while later::work_off(&engine, &caller).await.unwrap() {}
        let after = rows(&engine, &caller).await;
        assert!(!after["segments"].is_empty() && !after["summaries"].is_empty());
        let second = call_all(&engine, &caller).await;
        let lines = |answers: &[String]| -> Vec<String> {
            let of_session = answers.iter().filter(|answer| answer.contains("\"session_id\":\"press\""));
            of_session.flat_map(|answer| answer.lines().map(str::to_owned)).collect()
        };
        for line in lines(&first).iter().filter(|line| line.starts_with('#')) {
            let found =
                lines(&second).iter().any(|other| other[..other.len().min(9)] == line[..line.len().min(9)]);
            assert!(found, "{line} is missing in\n{second:?}");
        }
    }
}

/// Transcripts and commits are followed before a call answers: what they contain is imported, and nothing else changes.
#[tokio::test]
async fn following_inside_such_a_call_only_imports() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = begun(folder.path(), None).await;
    let project = caller.begin_project(&engine).await.unwrap();
    let path = folder.path().join("t-1.jsonl");
    let line = |n: usize, role: &str, text: &str| {
        json!({"type": role, "uuid": format!("u{n}"), "timestamp": format!("2026-03-02T09:00:{n:02}Z"), "sessionId": "t-1",
            "cwd": project.root, "message": {"role": role, "content": text}})
        .to_string()
    };
    let lines = [line(1, "user", "We decided to sell 12 casks."), line(2, "assistant", "Noted, 12 casks.")];
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let reference = Reference {
        client: "claude-code".into(),
        event: "Stop".into(),
        session: "t-1".into(),
        transcript: Some(path),
        commit: None,
        directory: project.root.clone(),
        at: engine.now(),
        trouble: None,
    };
    let before = rows(&engine, &caller).await;
    engine.spool(&project).leave(&reference).unwrap();
    call_all(&engine, &caller).await;
    let after = rows(&engine, &caller).await;
    assert_eq!(after["memories"].len(), before["memories"].len() + 2, "the two messages");
    for table in ["stashed", "segments", "summaries", "statements", "superseded", "conversations"] {
        assert_eq!(after[table], before[table], "{table}");
    }
    assert!(before["memories"].iter().all(|row| after["memories"].contains(row)));
}

#[test]
fn a_tool_says_whether_it_may_ask_a_provider() {
    let open = |config: &str| -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let mut settings = Config::of_test(folder.path());
        settings.sources.file = Some(folder.path().join("config.toml"));
        settings.options = settings.sources.options().unwrap();
        let caller = Arc::new(WritingCaller::of_process(&settings));
        let table = offered(
            &Arc::new(Engine::new(settings.clone(), Arc::new(SqliteFiles::new(settings.data_dir)))),
            &caller,
        );
        table.into_iter().filter(|tool| tool.hints.open_world).map(|tool| tool.name).collect()
    };
    assert!(open("").is_empty());
    let all = open(CONFIG);
    let expected = [
        "search_project_memory",
        "retrieve_context",
        "get_relevant_snippets",
        "get_context_summary",
        "summarize_conversation",
        "retrieve_stashed_context",
        "chat_with_lab",
    ];
    assert_eq!(all, expected);
}
