//! No answer exceeds its budget, counted exactly; the list of tools is small too.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

fn exact(text: &str) -> usize {
    tiro::testing::count(text)
}

/// Texts with unusual token counts: runs of white space or of one sign, scripts without spaces, code, escapes, long
/// words.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z]{1,12} pear ",
        "(pear |quince |plum ){1,60}",
        " {1,40}pear\n{1,20}",
        "[語字漢문자ไทยمرحبا]{1,40} pear ",
        "pear [\u{200b}\u{202e}\u{0}-\u{1f}👩🏽💻]{1,20}",
        "fn pear\\(x: u8\\) -> u8 \\{ x \\+ [0-9]{1,20} \\}\n",
        "[a-zA-Z0-9+/]{50,300} pear ",
        "\\[/data [0-9a-f]{16}\\] pear \\\\u\\{202e\\}",
    ];
    prop::collection::vec(part, 1..25).prop_map(|parts| parts.concat())
}

#[derive(Debug, Clone)]
struct Question {
    query: String,
    k: usize,
    max_tokens: usize,
}

fn question() -> impl Strategy<Value = Question> {
    let query = prop_oneof![
        "pear",
        "(pear|quince|plum|fn)( [a-z]{1,8}){0,4}",
        "[語字 a-z]{1,20}x",
        "nothing-of-the-kind"
    ];
    let max_tokens = prop_oneof![100usize..200, 200usize..3000];
    (query, 1usize..=50, max_tokens).prop_map(|(query, k, max_tokens)| Question { query, k, max_tokens })
}

/// Checks an answer against the budget and returns its data.
fn check(
    server: &mut Server,
    tool: &str,
    arguments: Value,
    max_tokens: usize,
) -> Result<Value, TestCaseError> {
    let (text, data) = server.both(tool, arguments.clone());
    let (count, told) = (exact(&text), data["tokens_used"].as_u64().unwrap() as usize);
    prop_assert!(count <= max_tokens, "{tool} {arguments}: {count} tokens, {max_tokens} allowed: {text}");
    prop_assert!(told >= count && told <= max_tokens, "{tool} {arguments}: told {told}, are {count}: {text}");
    let count = exact(&data.to_string());
    prop_assert!(count <= told, "{tool} {arguments}: told {told}, are {count} as JSON: {data}");
    Ok(data)
}

#[test]
fn an_answer_is_never_over_its_budget() {
    let home = Home::new();
    let server = RefCell::new(home.serve(&home.dir("project")));
    let session = RefCell::new(0);
    let cases = (prop::collection::vec(text(), 1..12), prop::collection::vec(question(), 1..6));
    let config = Config { cases: 24, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let checked = TestRunner::new(config).run(&cases, |(texts, questions)| {
        let server = &mut *server.borrow_mut();
        *session.borrow_mut() += 1;
        // Names count too.
        let name = format!("s{} {}", session.borrow(), "語 name".repeat(*session.borrow() % 20));
        let message = |(n, text): (usize, &String)| {
            let id = format!("{name}/{n}/{}", "a-b_c".repeat(*session.borrow() % 40));
            json!({"id": id, "role": "user", "speaker": "Ada \"Countess\"", "text": text})
        };
        let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
        server.data("save_messages", json!({"session_id": name, "messages": messages}));
        for Question { query, k, max_tokens } in questions {
            let arguments = json!({"query": query, "k": k, "max_tokens": max_tokens});
            let found = check(server, "search_project_memory", arguments, max_tokens)?;
            let hits = found["hits"].as_array().unwrap();
            let dropped = found["dropped"].as_u64().unwrap() as usize;
            prop_assert_eq!(found["truncated"].as_bool().unwrap(), dropped > 0);
            prop_assert!(hits.len() + dropped <= k);
            let max_tokens = max_tokens.max(150);
            for hit in hits.iter().take(2) {
                let arguments = json!({"id": hit["id"], "max_tokens": max_tokens});
                let page = check(server, "expand_detail", arguments, max_tokens)?;
                if let Some(cursor) = page["next_cursor"].as_str() {
                    let arguments = json!({"id": hit["id"], "max_tokens": max_tokens, "cursor": cursor});
                    let next = check(server, "expand_detail", arguments, max_tokens)?;
                    prop_assert!(!next["text"].as_str().unwrap().is_empty(), "every page goes on: {next}");
                }
                let whole = json!({"id": hit["id"], "level": "messages", "max_tokens": max_tokens});
                check(server, "expand_detail", whole, max_tokens)?;
            }
        }
        Ok(())
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}

/// A home with a repository of commits linked to a conversation, and a server on it.
fn worked() -> (Home, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let mut server = home.serve(&repo.path);
    let name = "pears \"and\" quinces 語";
    let message = |n: usize| {
        let text =
            format!("{n} Why is the pear \"so\" green? {}\n\tfn pear() {{}}\n", "quince plum ".repeat(n * 3));
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "text": text})
    };
    let messages: Vec<Value> = (0..24).map(message).collect();
    server.data("save_messages", json!({"session_id": name, "messages": messages}));
    for n in 0..8 {
        let message =
            format!("Ripen pear {n}\n\nThe pear is green because it is early. {}", "Quince. ".repeat(n * 20));
        repo.commit("a.txt", &format!("pear {n}\n"), &message);
    }
    home.json(&repo.path, &["import", "git"]);
    let decision = json!({"text": "We ripen each pear before noon.", "type": "decision", "importance": 0.9});
    server.data("store_memory", decision);
    (home, server)
}

/// Only some tools used to count the tokens of their JSON, which some clients give a model instead of the text.
#[test]
fn no_tool_is_over_its_budget_as_text_or_as_json() {
    let (_home, server) = worked();
    let server = RefCell::new(server);
    let session = "pears \"and\" quinces 語";
    let of =
        |kind: &str| server.borrow_mut().hits(json!({"query": "pear", "kinds": [kind]}))[0]["id"].clone();
    let (message, commit) = (of("message"), of("commit"));
    let calls = [
        ("search_project_memory", json!({"query": "ripen pear", "k": 30})),
        ("search_project_memory", json!({"query": "ripen pear", "kinds": ["commit"]})),
        (
            "search_project_memory",
            json!({"query": "green", "sessions": [session, "no such session", "nor such"]}),
        ),
        ("expand_detail", json!({"id": message})),
        ("expand_detail", json!({"id": commit})),
        ("expand_detail", json!({"id": message, "level": "messages"})),
        ("retrieve_context", json!({"query": "ripen pear"})),
        ("retrieve_context", json!({"query": "ripen pear", "session_id": session})),
        ("get_relevant_snippets", json!({"query": "ripen pear"})),
        ("get_context_summary", json!({"query": "ripen pear"})),
        ("summarize_conversation", json!({"session_id": session, "level": "detailed"})),
        ("summarize_conversation", json!({"session_id": session, "focus": "quince"})),
        ("summarize_conversation", json!({"session_id": session, "dry_run": true})),
    ];
    let budget = prop_oneof![50usize..400, 400usize..3000, 3000usize..=20_000];
    let config = Config { cases: 20, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let checked = TestRunner::new(config).run(&budget, |max_tokens| {
        for (tool, arguments) in &calls {
            let mut arguments = arguments.clone();
            arguments["max_tokens"] = json!(max_tokens);
            let result = server.borrow_mut().call(tool, arguments.clone());
            let text = result["content"][0]["text"].as_str().unwrap();
            if result["isError"] == true {
                let told = format!("argument `max_tokens` is {max_tokens}, out of range\ngive 1");
                let told = [told.clone(), told.replace("give 1", "give 2"), told.replace("give 1", "give 3")];
                prop_assert!(
                    max_tokens < 300 && told.iter().any(|told| text.starts_with(told)),
                    "{tool}: {text}"
                );
                continue;
            }
            let (count, json) = (exact(text), exact(&result["structuredContent"].to_string()));
            prop_assert!(count <= max_tokens, "{tool} {arguments}: {count} of {max_tokens}: {text}");
            prop_assert!(json <= max_tokens, "{tool} {arguments}: {json} as JSON of {max_tokens}: {result}");
        }
        Ok(())
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}

/// A long hit used to be skipped in favour of shorter ones after it, and the cursor of the next page then pointed past
/// it.
#[test]
fn no_hit_is_skipped_under_a_small_budget() {
    let (_home, server) = worked();
    let server = RefCell::new(server);
    let page = |arguments: &Value| server.borrow_mut().data("search_project_memory", arguments.clone());
    let whole = page(&json!({"query": "ripen green pear", "k": 50, "max_tokens": 20_000}));
    assert!(whole["dropped"] == 0 && whole["next_cursor"].is_null(), "{} dropped", whole["dropped"]);
    let mut whole = strings(whole["hits"].as_array().unwrap(), "id");
    whole.sort();
    let config = Config { cases: 6, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&(250usize..1500, 1usize..12), |(max_tokens, k)| {
        let mut arguments = json!({"query": "ripen green pear", "k": k, "max_tokens": max_tokens});
        let mut seen: Vec<String> = Vec::new();
        loop {
            let found = page(&arguments);
            let hits = found["hits"].as_array().unwrap();
            prop_assert!(!hits.is_empty(), "{arguments}: {found}");
            seen.extend(strings(hits, "id"));
            match found["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => break,
            }
        }
        seen.sort();
        prop_assert_eq!(&seen, &whole, "{}", arguments);
        Ok(())
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}

/// If a budget was above the limit of clients, one tool used to fail and another to give a notice.
#[test]
fn a_budget_that_is_too_large_is_reduced_and_reported() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let id = server.save("s", "1", "a pear and another pear");
    for (tool, mut arguments) in [
        ("search_project_memory", json!({"query": "pear"})),
        ("expand_detail", json!({"id": id})),
        ("retrieve_context", json!({"query": "pear"})),
        ("get_relevant_snippets", json!({"query": "pear"})),
        ("get_context_summary", json!({"query": "pear"})),
        ("summarize_conversation", json!({"session_id": "s"})),
    ] {
        arguments["max_tokens"] = json!(1_000_000_000);
        let (text, data) = server.both(tool, arguments);
        assert!(text.contains("at most, since clients cut longer answers"), "{tool}: {text}");
        assert!(data["notices"].to_string().contains("max_tokens is"), "{tool}: {data}");
    }
}

/// Copilot CLI used to put a long answer into a file, and its model saw only the beginning.
#[test]
fn copilot_gets_no_answer_that_it_would_put_into_a_file() {
    const SHOWN: usize = 20_000;
    let home = Home::new();
    let serve = || home.tiro(&home.dir("project"), &["serve"]);
    let mut server = Server::start_as(serve(), "copilot-cli");
    let text = "The harbour master decided that every boat is weighed before it leaves the harbour at noon. ";
    let id = server.save("s", "1", &text.repeat(600));
    let calls = [
        ("expand_detail", json!({"id": id})),
        ("expand_detail", json!({"id": id, "max_tokens": 20_000})),
        ("retrieve_context", json!({"query": "who weighs boats?", "session_id": "s"})),
    ];
    for (tool, arguments) in calls.clone() {
        let text = server.text(tool, arguments);
        assert!(text.contains("harbour") && text.len() <= SHOWN, "{tool}: {} bytes", text.len());
    }
    let mut other = Server::start_as(serve(), "it");
    let (tool, arguments) = calls[1].clone();
    assert!(other.text(tool, arguments.clone()).len() > SHOWN, "other clients show more");
    // Where every request names its client, that counts.
    let named = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "copilot-cli", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({"name": tool, "arguments": arguments, "_meta": named});
    let answer = other.request("tools/call", request);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("harbour") && text.len() <= SHOWN, "{} bytes", text.len());
}

#[test]
fn a_session_as_a_resource_is_bounded() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let messages: Vec<Value> =
        (0..300).map(|n| json!({"role": "user", "text": format!("{n} {}", "語 word ".repeat(60))})).collect();
    server.data("save_messages", json!({"session_id": "long", "messages": messages}));
    let read = server.request("resources/read", json!({"uri": "tiro://session/long"}));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(exact(text) <= 20_000, "{}", exact(text));
    assert!(text.contains("did not fit") && text.contains("299 語"));
}

#[test]
fn the_list_of_tools_is_small() {
    let home = Home::new();
    let project = home.dir("project");
    let listed = home.serve_texts(&project).request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 16);
    let costs = tools.iter().map(|tool| {
        let called = json!({"description": tool["description"], "inputSchema": tool["inputSchema"]});
        (tool["name"].to_string(), exact(&called.to_string()))
    });
    let costs: Vec<(String, usize)> = costs.collect();
    assert!(costs.iter().all(|(_, cost)| *cost <= 220), "{costs:?}");
    let whole = exact(&listed["result"].to_string());
    assert!(whole <= 4000, "{whole} tokens");
    let described = home.serve(&project).request("tools/list", json!({}));
    let whole = exact(&described["result"].to_string());
    assert!(whole <= 5200, "{whole} tokens with the answers described");
}
