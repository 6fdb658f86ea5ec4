//! The session that the client runs now gives no hits: the model still has it. All others are found as ever.

use serde_json::{Value, json};

use crate::harness::{Home, Server};
use crate::talk::Talk;

const QUESTION: &str = "why does the grommet rattle at night?";

/// A home whose repository has a running session, an earlier one, and one that an agent saved. Each asks the same.
fn told() -> (Home, Talk) {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("a.txt", "a\n", "Begin");
    home.json(&repo.path, &["import", "claude-code"]);
    let earlier = Talk::new(&home, "earlier", &repo.path, "main");
    earlier.says("user", 1, "Why does the grommet rattle at night, though the wind is calm?");
    home.json(&repo.path, &["import", "claude-code"]);
    home.serve(&repo.path).save(
        "saved",
        "1",
        "Mira asked why the grommet would rattle at night in the cellar.",
    );
    let talk = Talk::new(&home, "running", &repo.path, "main");
    talk.begins(&home);
    talk.says("user", 100, QUESTION);
    talk.hook(&home, "Stop");
    (home, talk)
}

fn serve(home: &Home, talk: &Talk, client: &str) -> Server {
    Server::start_as(home.tiro(&talk.directory, &["serve"]), client)
}

/// Returns the sessions of the hits, without repetitions.
fn sessions(server: &mut Server, arguments: Value) -> Vec<String> {
    let hits = server.hits(arguments);
    let mut found: Vec<String> =
        hits.iter().filter_map(|hit| hit["session_id"].as_str().map(str::to_owned)).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn the_running_session_gives_hits_only_if_it_is_named() {
    let (home, talk) = told();
    let mut server = serve(&home, &talk, "claude-code");
    let all = json!({"query": QUESTION, "kinds": ["message"]});
    assert_eq!(sessions(&mut server, all.clone()), ["earlier", "saved"]);
    let named = json!({"query": QUESTION, "sessions": ["running"]});
    assert_eq!(sessions(&mut server, named), ["running"]);
    for (tool, arguments) in [
        ("get_relevant_snippets", json!({"query": QUESTION})),
        ("retrieve_context", json!({"query": QUESTION})),
        ("get_context_summary", json!({"query": QUESTION})),
    ] {
        let text = server.text(tool, arguments);
        assert!(text.contains("earlier") && !text.contains("running"), "{tool}: {text}");
    }
    let text = server.text("retrieve_context", json!({"query": QUESTION, "session_id": "running"}));
    assert!(text.contains("grommet"), "{text}");
    // The client begins another session: now that one runs.
    let next = Talk::new(&home, "next", &talk.directory, "main");
    next.begins(&home);
    assert_eq!(sessions(&mut server, all), ["earlier", "running", "saved"]);
}

/// A session that is not certainly the one of this server is found.
#[test]
fn an_uncertain_session_is_found() {
    let (home, talk) = told();
    for client in ["it", "codex-mcp-client"] {
        let mut server = serve(&home, &talk, client);
        let found = sessions(&mut server, json!({"query": QUESTION, "kinds": ["message"]}));
        assert_eq!(found, ["earlier", "running", "saved"], "{client}");
    }
}

/// After a compaction, the pointer names the call that returns where the session stands, which has at most 400 tokens.
#[test]
fn after_a_compaction_one_call_returns_where_the_session_stands() {
    let (home, talk) = told();
    for at in 0..60 {
        talk.says(
            "user",
            200 + 2 * at,
            &format!("Please tighten valve {at} of the press, and tell me what came of it."),
        );
        talk.says(
            "assistant",
            201 + 2 * at,
            &format!("Valve {at} is tight now; the gauge shows {at} bar. Next is the hinge."),
        );
    }
    let payload = json!({"session_id": "running", "transcript_path": talk.path, "cwd": talk.directory,
        "hook_event_name": "SessionStart", "source": "compact"});
    let said = (0..50)
        .map(|_| home.feed(&talk.directory, &["hook", "claude-code"], payload.to_string().as_bytes()).stdout)
        .find(|said| !said.is_empty());
    let said: Value = serde_json::from_str(&said.unwrap()).unwrap();
    let pointer = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(pointer.contains("get_context_summary") && pointer.contains("[\"running\"]"), "{pointer}");
    let mut server = serve(&home, &talk, "claude-code");
    let stands = json!({"conversation_ids": ["running"], "max_tokens": 400});
    let (text, data) = server.both("get_context_summary", stands);
    assert!(tiro::testing::count(&text) <= 400, "{text}");
    assert!(tiro::testing::count(&data.to_string()) <= 400, "{data}");
    // What was said last is followed first.
    assert!(text.contains("valve 59") || text.contains("Valve 59"), "{text}");
    assert!(server.error("get_context_summary", json!({})).contains("conversation_ids"));
}
