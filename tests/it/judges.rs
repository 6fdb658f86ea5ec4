//! The agent judges: it is told of memories near the one that it stores, and may write a session's summary itself.

use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

fn store(server: &mut Server, text: &str, kind: &str) -> Value {
    server.data("store_memory", json!({"text": text, "type": kind}))
}

#[test]
fn storing_names_the_memories_near_it_and_a_second_call_settles_it() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let old = store(&mut server, "The quince press is deployed on Tuesdays", "decision");
    store(&mut server, "Ottoline prefers glass jars to tin", "preference");
    assert!(old.get("near").is_none(), "nothing was stored before: {old}");

    let ask = json!({"text": "The quince press is deployed on Thursdays", "type": "decision"});
    let (text, new) = server.both("store_memory", ask);
    let (old, id) = (old["id"].as_str().unwrap(), new["id"].as_str().unwrap());
    let near = new["near"].as_array().unwrap();
    assert_eq!(strings(near, "id"), [old], "{new}");
    assert!(text.starts_with(&format!("Stored as decision `{id}` (project). Near it: `{old}`.\n")), "{text}");
    assert!(text.contains("is deployed on Tuesdays\n[/data ") && text.contains("`supersedes`"), "{text}");

    let settled = json!({"text": "The quince press is deployed on Thursdays", "type": "decision",
        "supersedes": [old]});
    let (text, settled) = server.both("store_memory", settled);
    assert_eq!((&settled["id"], settled.get("near")), (&json!(id), None), "{text}");
    server.hang_up();
    server.wait();
    let mut server = home.serve(&home.dir("project"));
    let hits = server.search("when is the quince press deployed");
    assert_eq!(hits[1]["superseded"]["by"], json!(id), "{hits:?}");
    // What was settled is not asked about again.
    let third = store(&mut server, "The quince press is deployed on Thursdays at noon", "decision");
    assert_eq!(strings(third["near"].as_array().unwrap(), "id"), [id], "{third}");
}

#[test]
fn a_text_that_differs_only_in_case_stops_and_spaces_is_stored_once() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let first = store(&mut server, "Deploys go out after the stand-up, at v1.2", "fact");
    for again in [
        "deploys go out after the stand-up, at v1.2.",
        "Deploys  go out after the stand-up at\nv1.2!",
        "DEPLOYS GO OUT AFTER THE STAND-UP; AT V1.2",
    ] {
        let stored = store(&mut server, again, "fact");
        assert_eq!((&stored["id"], &stored["stored"]), (&first["id"], &json!(false)), "{again}");
        assert!(stored.get("near").is_none(), "{stored}");
    }
    for other in ["Deploys go out after the stand-up, at v12", "Deploys go out after the stand-up, at -v1.2"]
    {
        assert_eq!(store(&mut server, other, "fact")["stored"], json!(true), "{other}");
    }
    let code = store(&mut server, "let Jar = 1;", "code_block");
    assert_ne!(store(&mut server, "let jar = 1", "code_block")["id"], code["id"]);
}

#[test]
fn an_agent_writes_a_summary_that_keeps_to_the_messages() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let said = [
        ("user", "The quince press jams whenever the hopper holds more than 40 jars."),
        ("assistant", "I lowered the limit of the hopper to 35 jars and added a test for it."),
        ("user", "Good. Ottoline wants the limit in the configuration file."),
        ("assistant", "The limit is read from press.toml now, and the test passes."),
    ];
    let messages: Vec<Value> = said.iter().map(|(role, text)| json!({"role": role, "text": text})).collect();
    server.data("save_messages", json!({"session_id": "press", "messages": messages}));

    let wrong =
        json!({"session_id": "press", "summary": "The hopper of the quince press holds 90 jars now."});
    let refused = server.error("summarize_conversation", wrong);
    assert!(
        refused.contains("`summary` has a number or a date that the messages don't have: 90"),
        "{refused}"
    );
    assert!(refused.contains("nothing was stored"), "{refused}");
    let long = json!({"session_id": "press", "level": "brief", "summary": "The press jams. ".repeat(60)});
    assert!(server.error("summarize_conversation", long).contains("at level brief it may have 90"));
    let focused = json!({"session_id": "press", "focus": "jars", "summary": "The press jams."});
    assert!(server.error("summarize_conversation", focused).contains("`summary` and `focus`"));

    let summary = "The quince press jammed with more than 40 jars in the hopper, so the limit was lowered to 35 jars. \
        The limit is read from press.toml, as Ottoline wanted, and the test passes.";
    let given = server.data("summarize_conversation", json!({"session_id": "press", "summary": summary}));
    assert_eq!((&given["summary"], &given["provider"]), (&json!(summary), &json!("agent")), "{given}");
    server.hang_up();
    server.wait();
    let mut server = home.serve(&project);
    let (text, again) = server.both("summarize_conversation", json!({"session_id": "press"}));
    assert_eq!(
        (&again["summary"], &again["id"], &again["cached"]),
        (&json!(summary), &given["id"], &json!(true))
    );
    assert!(text.contains("; agent, quality "), "{text}");
    let opened = server.text("expand_detail", json!({"id": given["id"]}));
    assert!(opened.contains("hopper"), "{opened}");
}
