//! Calls are answered in all the ways in which clients and models write them: each tool is called in each way.

use serde_json::{Map, Value, json};

use crate::harness::{Home, Server};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// A way to write the arguments of a call, given the schema of the tool.
type Way = fn(&Value, &Value) -> Value;

/// The ways, each with its name.
const WAYS: [(&str, Way); 18] = [
    ("as the schema says", |arguments, _| arguments.clone()),
    ("each value but texts as a JSON string", |arguments, _| each(arguments, &|_, value| stringified(value))),
    ("each value but texts as Python prints it", |arguments, _| {
        each(arguments, &|_, value| match stringified(value) {
            Value::String(text) if !value.is_string() => {
                let python = text.replace('"', "'").replace("true", "True").replace("false", "False");
                Value::String(python)
            }
            other => other,
        })
    }),
    ("left out as null", |arguments, schema| filled(arguments, schema, &|_| Value::Null)),
    ("left out as an empty text", |arguments, schema| filled(arguments, schema, &|_| json!(""))),
    ("left out as the text null", |arguments, schema| filled(arguments, schema, &|_| json!("null"))),
    ("left out as the text None", |arguments, schema| filled(arguments, schema, &|_| json!("None"))),
    ("left out as an empty value of its type", |arguments, schema| {
        filled(arguments, schema, &|property| match property["type"].as_str() {
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some("string") => json!(""),
            Some("integer" | "number") if property["minimum"].as_u64() > Some(0) => json!(0),
            _ => Value::Null,
        })
    }),
    ("left out as an object of nothing", |arguments, schema| {
        filled(arguments, schema, &|property| match property["properties"].as_object() {
            Some(inner) => inner.keys().map(|name| (name.clone(), json!(""))).collect::<Map<_, _>>().into(),
            None => Value::Null,
        })
    }),
    ("one value for a list of one", |arguments, _| {
        each(arguments, &|_, value| match value.as_array().map(Vec::as_slice) {
            Some([one]) => one.clone(),
            _ => value.clone(),
        })
    }),
    ("a list of one for one value", |arguments, _| {
        each(arguments, &|_, value| match value {
            Value::Array(_) | Value::Object(_) => value.clone(),
            one => json!([one]),
        })
    }),
    ("whole numbers as fractions", |arguments, _| {
        each(arguments, &|_, value| value.as_i64().map_or(value.clone(), |number| json!(number as f64)))
    }),
    ("names in camelCase", |arguments, _| renamed(arguments, &camel)),
    ("names in kebab-case", |arguments, _| renamed(arguments, &|name| name.replace('_', "-"))),
    ("choices in capitals", |arguments, schema| {
        each(arguments, &|name, value| match (schema["properties"][name].get("enum"), value) {
            (Some(_), Value::String(choice)) => json!(choice.to_uppercase()),
            _ => value.clone(),
        })
    }),
    ("all arguments as a JSON string", |arguments, _| json!(arguments.to_string())),
    ("within another object", |arguments, _| json!({ "arguments": arguments })),
    (EXTRA, |arguments, _| {
        let mut arguments = arguments.clone();
        arguments["reasoning_for_user"] = json!("to see what is there");
        arguments
    }),
];

const EXTRA: &str = "with an argument that the tool does not have";

fn each(arguments: &Value, change: &dyn Fn(&str, &Value) -> Value) -> Value {
    let fields = arguments.as_object().unwrap();
    fields.iter().map(|(name, value)| (name.clone(), change(name, value))).collect::<Map<_, _>>().into()
}

fn stringified(value: &Value) -> Value {
    if value.is_string() { value.clone() } else { json!(value.to_string()) }
}

/// Returns the arguments with every other property of the schema, as models write it that must give each.
fn filled(arguments: &Value, schema: &Value, nothing: &dyn Fn(&Value) -> Value) -> Value {
    let mut filled = arguments.clone();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if arguments.get(name).is_none() {
            filled[name] = nothing(property);
        }
    }
    filled
}

fn renamed(value: &Value, rename: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (rename(name), renamed(value, rename)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| renamed(item, rename)).collect(),
        other => other.clone(),
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

/// A home with a repository, memories, a stash and an assistant.
struct Ground {
    _home: Home,
    _mock: Mock,
    server: Server,
    message: String,
    fact: String,
}

fn ground() -> Ground {
    let (home, mock) = (Home::new(), Mock::start());
    mock.behaves(&Manner::Says("Keep it.".into()));
    let endpoint = mock.endpoint();
    write(
        &home,
        &format!(
            "[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{endpoint}'\nmodel = 'm'\nwindow = 16000\n"
        ),
    );
    let repo = home.repo("project");
    repo.commit("src/quay.rs", "fn quay() {}\n", "Begin the quay");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    let message = server.save("quay", "1", "Why does the crane at the quay turn left?");
    server.save("quay", "2", "Because the quay is on the left.");
    let fact = server.data("store_memory", json!({"text": "The crane is blue", "topic": "cranes"}));
    let fact = fact["id"].as_str().unwrap().to_owned();
    server.data("stash_context", json!({"segment_ids": ["quay#1"]}));
    // The first answer alone says how much is not embedded yet.
    server.search("crane");
    Ground { _home: home, _mock: mock, server, message, fact }
}

impl Ground {
    /// Returns a call of each tool, with its arguments as the schema says.
    fn calls(&self) -> Vec<(&'static str, Value)> {
        let (message, fact) = (&self.message, &self.fact);
        let messages =
            json!([{"id": "3", "role": "user", "text": "Count the oars", "time": "2026-03-01T10:00:00Z"}]);
        let search = json!({
            "query": "crane", "k": 3, "kinds": ["message"], "sessions": ["quay"], "since": "2020-01-01",
            "max_tokens": 900,
        });
        vec![
            ("search_project_memory", search),
            ("search_project_memory", json!({"query": "crane"})),
            ("expand_detail", json!({"id": message, "before": 1, "after": 1, "max_tokens": 900})),
            ("expand_detail", json!({"id": "quay", "level": "messages"})),
            ("explain_lines", json!({"path": "src/quay.rs", "lines": "1", "max_tokens": 900})),
            ("explain_lines", json!({"path": "src/quay.rs", "lines": "1-1", "rev": "HEAD"})),
            ("save_messages", json!({"session_id": "oars", "messages": messages})),
            (
                "store_memory",
                json!({"text": "The crane turns left", "type": "decision", "importance": 0.8, "references": [fact]}),
            ),
            ("mark_important", json!({"ids": [fact], "important": true, "importance": 0.5})),
            ("forget_context", json!({"ids": [fact], "dry_run": true})),
            ("forget_context", json!({"query": "crane", "dry_run": true})),
            ("list_sessions", json!({"limit": 5})),
            ("list_sessions", json!({})),
            (
                "retrieve_context",
                json!({"query": "crane", "include_level": "mixed", "max_tokens": 900, "conversation_ids": ["quay"]}),
            ),
            ("retrieve_context", json!({"query": "crane", "time_range": {"start": "2020-01-01"}})),
            (
                "get_relevant_snippets",
                json!({"query": "crane", "strategy": "relevance", "expand_context": true, "max_tokens": 900}),
            ),
            (
                "get_context_summary",
                json!({"query": "crane", "level": "brief", "max_tokens": 900, "conversation_ids": ["quay"]}),
            ),
            (
                "summarize_conversation",
                json!({"session_id": "quay", "level": "brief", "from": 0, "use_provider": false, "dry_run": false}),
            ),
            ("configure_llm_provider", json!({"operation": "show"})),
            (
                "configure_llm_provider",
                json!({
                    "provider": "ollama", "config": {"model": "tiny", "max_tokens": 300}, "set_as_default": false,
                }),
            ),
            ("stash_context", json!({"segment_ids": [message], "expires_in_days": 3, "protected": false})),
            ("stash_context", json!({"segments": [{"text": "a log of the crane", "type": "error_log"}]})),
            (
                "retrieve_stashed_context",
                json!({"query": "crane", "top_k": 3, "filters": {"session_id": "quay"}, "max_hops": 1}),
            ),
            ("merge_stashed_context", json!({"segment_ids": ["quay#1"], "keep": true, "max_tokens": 900})),
            (
                "chat_with_mock",
                json!({
                    "session_id": "crane", "instructions": "Why?", "context": ["src/quay.rs"], "temperature": 0.5,
                    "reasoning_effort": "low", "wait_s": 30, "call_id": "c1",
                }),
            ),
            ("describe_session", json!({"session_id": "crane"})),
            ("count_tokens", json!({"paths": ["src/quay.rs"], "assistant": "mock"})),
            ("reset_session", json!({"session_id": "crane", "what": "files"})),
        ]
    }
}

#[test]
fn each_tool_answers_each_way_to_write_a_call() {
    let mut ground = ground();
    let listed = ground.server.request("tools/list", json!({}))["result"]["tools"].take();
    let listed = listed.as_array().unwrap();
    let calls = ground.calls();
    for tool in listed {
        assert!(calls.iter().any(|(name, _)| tool["name"] == *name), "{} is not called", tool["name"]);
    }
    // These answers don't change while nothing is stored.
    let same = [
        "search_project_memory",
        "expand_detail",
        "explain_lines",
        "list_sessions",
        "get_relevant_snippets",
        "count_tokens",
    ];
    let mut refused = Vec::new();
    for (name, arguments) in &calls {
        let schema = &listed.iter().find(|tool| tool["name"] == *name).unwrap()["inputSchema"];
        let plain = ground.server.text(name, arguments.clone());
        for (way, written) in WAYS {
            let written = written(arguments, schema);
            let result = ground.server.call(name, written.clone());
            let text = result["content"][0]["text"].as_str().unwrap();
            let is_same = way == EXTRA || !same.contains(name) || text == plain;
            let is_named = way != EXTRA || text.ends_with("Ignored arguments: `reasoning_for_user`.");
            if result["isError"] == true || !is_same || !is_named {
                refused.push(format!("{name}, {way}: {written}: {text}"));
            }
        }
    }
    assert!(refused.is_empty(), "{} of {}:\n{}", refused.len(), calls.len() * WAYS.len(), refused.join("\n"));
}

#[test]
fn arguments_have_their_usual_other_names() {
    let mut ground = ground();
    let (message, fact) = (ground.message.clone(), ground.fact.clone());
    let calls = [
        (
            "search_project_memory",
            json!({"question": "crane", "limit": 3, "type": "message", "session_id": "quay"}),
        ),
        (
            "search_project_memory",
            json!({"q": "crane", "num_results": "3", "from_date": "2020-01-01", "to": "2100-01-01"}),
        ),
        (
            "search_project_memory",
            json!({"query": "crane", "tags": ["cranes"], "n": 2, "offset": 0, "tokens": 900}),
        ),
        ("expand_detail", json!({"memory_id": message})),
        ("expand_detail", json!({"session_id": "quay"})),
        ("explain_lines", json!({"file_path": "src/quay.rs", "line": 1, "commit": "HEAD"})),
        ("explain_lines", json!({"file": "src/quay.rs", "range": [1, 1]})),
        ("explain_lines", json!({"filename": "src/quay.rs", "lines": {"start": 1, "end": 1}})),
        (
            "save_messages",
            json!({"conversation_id": "oars", "messages": [{"role": "human", "content": "Count the oars"}]}),
        ),
        (
            "save_messages",
            json!({"session": "oars", "message": {"role": "ai", "content": [{"type": "text", "text": "Ten."}], "timestamp": 1_772_357_400}}),
        ),
        (
            "store_memory",
            json!({"content": "The mast is high", "category": "note", "tags": "masts", "file": "src/quay.rs", "scope": "global"}),
        ),
        ("store_memory", json!({"memory": "The mast is new", "type": "Decisions", "priority": "high"})),
        ("mark_important", json!({"id": fact})),
        ("mark_important", json!({"memory_ids": format!("{fact}, {message}"), "importance": "high"})),
        ("forget_context", json!({"memory_id": fact, "dryRun": "true"})),
        ("list_sessions", json!({"k": 3})),
        (
            "retrieve_context",
            json!({"query": "crane", "since": "2020-01-01 10:00", "level": "summary", "budget": 900}),
        ),
        ("retrieve_context", json!({"query": "crane", "time_range": "2020-01-01 to 2100-01-01"})),
        (
            "retrieve_context",
            json!({"query": "crane", "time_range": ["2020-01-01", "2100-01-01"], "session_ids": "quay"}),
        ),
        ("get_context_summary", json!({"query": "crane", "session_id": "quay", "detail_level": "short"})),
        ("summarize_conversation", json!({"conversation_id": "quay", "level": "Full", "topic": "crane"})),
        (
            "configure_llm_provider",
            json!({"name": "ollama", "model": "tiny", "base_url": "http://localhost:11434"}),
        ),
        ("stash_context", json!({"ids": [message], "ttl_days": "7"})),
        ("stash_context", json!({"segments": "a log of the mast"})),
        ("stash_context", json!({"text": "another log of the mast"})),
        (
            "retrieve_stashed_context",
            json!({"query": "crane", "limit": "2", "session_id": "quay", "type": "message"}),
        ),
        ("merge_stashed_context", json!({"ids": message})),
        (
            "chat_with_mock",
            json!({"conversation_id": "crane", "prompt": "Why?", "files": "src/quay.rs", "timeout": 30}),
        ),
        ("describe_session", json!({"session": "crane"})),
        ("count_tokens", json!({"path": "src/quay.rs"})),
        ("reset_session", json!({"thread_id": "crane", "what": "session"})),
    ];
    for (tool, arguments) in calls {
        let text = ground.server.text(tool, arguments.clone());
        assert!(!text.contains("Ignored"), "{tool} {arguments}: {text}");
    }
    // Both names of an argument: the tool's own counts.
    let text = ground.server.text("list_sessions", json!({"limit": 1, "k": 2}));
    assert!(text.contains("More with cursor `1`.\nIgnored arguments: `k`."), "{text}");
    let text = ground.server.text("search_project_memory", json!({"query": "crane", "limit": 1, "k": 1}));
    assert!(!text.contains("Ignored"), "{text}");
}

#[test]
fn what_cannot_be_read_is_refused_with_an_example() {
    let mut ground = ground();
    for (tool, arguments, told) in [
        (
            "search_project_memory",
            json!({}),
            "argument `query` is missing\ngive `query`, such as \"why is the cache off\"",
        ),
        ("search_project_memory", json!({"query": ""}), "argument `query` is empty\ngive `query`, such as"),
        (
            "search_project_memory",
            json!({"query": "x", "k": "many"}),
            "argument `k` is `many`\ngive `k` as a whole number, such as 10",
        ),
        (
            "store_memory",
            json!({"text": "x", "importance": "a lot"}),
            "argument `importance` is `a lot`\ngive `importance` as a number, such as 0.8",
        ),
        (
            "save_messages",
            json!({"session_id": "s", "messages": "hello"}),
            "argument `messages` is `hello`\ngive `messages` as an array, such as [{",
        ),
        (
            "save_messages",
            json!({"session_id": "s", "messages": [{"role": "user", "text": ""}]}),
            "argument `messages[0].text` is empty\ngive",
        ),
        (
            "mark_important",
            json!({"ids": ""}),
            "argument `ids` is missing\ngive `ids`, such as [\"m1a2b3c4d5e6f7\"]",
        ),
        (
            "expand_detail",
            json!({"path": "x"}),
            "argument `id` is missing\ngive `id`, such as \"m1a2b3c4d5e6f7\" or \"auth#12\"",
        ),
        (
            "retrieve_context",
            json!({"query": "x", "include_level": "some"}),
            "argument `include_level` cannot be `some`\nchoose from",
        ),
        (
            "search_project_memory",
            json!({"query": "x", "max_tokens": 3}),
            "argument `max_tokens` is 3, out of range\ngive 100 or more",
        ),
    ] {
        let text = ground.server.error(tool, arguments.clone());
        assert!(text.starts_with(told), "{tool} {arguments}: {text}");
    }
}

/// A session that `tiro show` opened used to be no id for expand_detail.
#[test]
fn a_session_is_opened_by_its_name() {
    let mut ground = ground();
    for name in ["quay", "qua"] {
        let opened = ground.server.data("expand_detail", json!({"id": name}));
        assert_eq!((&opened["kind"], &opened["session_id"]), (&json!("summary"), &json!("quay")), "{opened}");
        let opened = ground.server.text("expand_detail", json!({"id": name, "level": "messages"}));
        assert!(opened.contains("#0 user: Why does the crane") && opened.contains("on the left"), "{opened}");
    }
    ground.server.save("quarry", "1", "Stones.");
    let several = ground.server.error("expand_detail", json!({"id": "qua"}));
    assert!(several.contains("`quay`") && several.contains("`quarry`"), "{several}");
    // A session with exactly the name of something else is opened.
    let id = ground.message.clone();
    ground.server.save(&id, "1", "A session with the name of a message.");
    assert_eq!(ground.server.data("expand_detail", json!({"id": id}))["session_id"], json!(id));
    let unknown = ground.server.error("expand_detail", json!({"id": "nowhere"}));
    assert!(unknown.contains("`nowhere`") && unknown.contains("list_sessions"), "{unknown}");
}

/// Clients gave a model an answer twice, as text and as data, so it cost up to twice its budget.
#[test]
fn an_answer_is_text_alone_and_within_its_budget() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve_texts(&project);
    let text = |n: usize| {
        format!("{n} The \"crane\" turns\n\tleft {{}} at {} oars", "the quay and its ".repeat(n % 40))
    };
    let messages: Vec<Value> =
        (0..120).map(|n| json!({"id": n.to_string(), "role": "user", "text": text(n)})).collect();
    let saved = server.call("save_messages", json!({"session_id": "quay", "messages": messages}));
    assert!(saved["content"][0]["text"].as_str().unwrap().contains("Saved 120 messages"), "{saved}");
    for tool in server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap() {
        assert!(tool.get("outputSchema").is_none(), "{tool}");
    }
    let mut programs = home.serve(&project);
    for (tool, arguments) in [
        ("search_project_memory", json!({"query": "crane oars", "k": 50})),
        ("retrieve_context", json!({"query": "crane oars"})),
        ("retrieve_context", json!({"query": "crane oars", "session_id": "quay"})),
        ("get_relevant_snippets", json!({"query": "crane oars"})),
        ("get_context_summary", json!({"query": "crane oars"})),
        ("summarize_conversation", json!({"session_id": "quay", "level": "detailed"})),
        ("expand_detail", json!({"id": "quay", "level": "messages"})),
    ] {
        for budget in [300, 1000, 4000] {
            let mut arguments = arguments.clone();
            arguments["max_tokens"] = json!(budget);
            let result = server.call(tool, arguments.clone());
            assert!(result.get("structuredContent").is_none() && result["isError"] == false, "{result}");
            let shown = tiro::testing::count(result["content"][0]["text"].as_str().unwrap());
            assert!(shown <= budget, "{tool} {arguments}: {shown} of {budget}: {result}");
            let (both, _) = programs.both(tool, arguments);
            assert!(
                tiro::testing::count(&both) <= shown + 10,
                "{tool}: a program gets {both}\na model {result}"
            );
        }
    }
    let error = server.call("expand_detail", json!({"id": "nowhere"}));
    assert!(error.get("structuredContent").is_none() && error["isError"] == true, "{error}");
}

/// Clients of before June 2025 left when they got a newer revision.
#[test]
fn old_revisions_get_texts_only() {
    let home = Home::new();
    let project = home.dir("project");
    for revision in ["2024-11-05", "2025-03-26"] {
        let mut command = home.tiro(&project, &["serve", "--structured"]);
        command.env("TIRO_LOG", "info");
        let mut server = Server::open(command, revision);
        let answer = server.call("list_sessions", json!({}));
        assert!(answer.get("structuredContent").is_none() && answer["isError"] == false, "{answer}");
        server.send(
            r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#,
        );
        assert_eq!(server.receive().as_array().map(Vec::len), Some(2));
    }
}

/// Half an emoji in a call used to be refused without saying why.
#[test]
fn half_an_emoji_is_stored_with_a_replacement_character() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for (id, tool, arguments) in [
        (1, "store_memory", r#"{"text":"The gull icon is \ud83d in the preview"}"#),
        (
            2,
            "save_messages",
            r#"{"session_id":"gull \udca1","messages":[{"role":"user","text":"The gull \uD83D\uDCA1 \ud83d"}]}"#,
        ),
        (3, "search_project_memory", r#"{"query":"gull \ud83d","\ud83d":1}"#),
    ] {
        server.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ));
        let answer = server.receive();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)), "{answer}");
    }
    let texts: Vec<String> =
        server.search("gull").iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect();
    assert!(texts.contains(&"The gull icon is \u{fffd} in the preview".to_owned()), "{texts:?}");
    assert!(texts.contains(&"The gull \u{1f4a1} \u{fffd}".to_owned()), "{texts:?}");
}
