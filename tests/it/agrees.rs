//! Tool descriptions agree with the program: every tool, argument, kind and type that they name exists and is
//! accepted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Home, strings};

/// Returns the names in `text`: words with an underscore, and the first word between backticks.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |word: &&str| word.trim_matches('_').contains('_');
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).filter(is_name);
    let quoted = text.split('`').skip(1).step_by(2);
    let first = |quoted: &str| quoted.split([':', ' ']).next().unwrap_or_default().to_owned();
    words.map(str::to_owned).chain(quoted.map(first)).collect()
}

/// Returns the descriptions in a schema, at any depth.
fn descriptions(schema: &Value, into: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            into.extend(fields.get("description").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| descriptions(field, into));
        }
        Value::Array(items) => items.iter().for_each(|item| descriptions(item, into)),
        _ => {}
    }
}

/// Returns the names of the properties in a schema and the choices for them, at any depth.
fn properties(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "properties" {
                    into.extend(field.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
                }
                if name == "enum" {
                    into.extend(
                        field.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
                    );
                }
                properties(field, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, into)),
        _ => {}
    }
}

/// Returns the words of a list such as `fact (default), decision, finding`.
fn listed(text: &str) -> Vec<String> {
    let word = |part: &str| part.split('(').next().unwrap_or_default().trim_matches([' ', '.']).to_owned();
    text.split(',').map(word).filter(|word| !word.is_empty()).collect()
}

/// Descriptions used to name a tool that did not exist, a type that was refused, and a tag that no filter accepted.
/// This checks every name in them.
#[test]
fn every_name_in_a_tool_description_exists_and_is_accepted() {
    let home = Home::new();
    let project = home.dir("project");
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "0"}}});
    let greeted = home.feed(&project, &["serve"], format!("{greeting}\n").as_bytes());
    let greeted: Value = serde_json::from_str(greeted.stdout.lines().next().unwrap()).unwrap();
    let instructions = greeted["result"]["instructions"].as_str().unwrap().to_owned();

    let mut server = home.serve(&project);
    let listed_tools = server.request("tools/list", json!({}));
    let tools = listed_tools["result"]["tools"].as_array().unwrap().clone();
    let mut known: BTreeSet<String> = strings(&tools, "name").into_iter().collect();
    let mut told = vec![instructions.clone()];
    for tool in &tools {
        properties(&tool["inputSchema"], &mut known);
        properties(&tool["outputSchema"], &mut known);
        told.push(tool["description"].as_str().unwrap().to_owned());
        descriptions(&tool["inputSchema"], &mut told);
        descriptions(&tool["outputSchema"], &mut told);
    }
    let of = |tool: &str, argument: &str| {
        let tool = tools.iter().find(|each| each["name"] == tool).unwrap();
        let text = tool["inputSchema"]["properties"][argument]["description"].as_str();
        text.unwrap_or_else(|| panic!("nothing is said of {argument}")).to_owned()
    };
    let types = listed(&of("store_memory", "type"));
    let kinds = listed(of("search_project_memory", "kinds").trim_start_matches("Such as "));
    assert!(types.len() > 4 && kinds.len() > 2, "{types:?} {kinds:?}");
    let items =
        &tools.iter().find(|each| each["name"] == "stash_context").unwrap()["inputSchema"]["properties"];
    let stashed = listed(items["segments"]["items"]["properties"]["type"]["description"].as_str().unwrap());
    for kind in &stashed {
        let segment = json!([{"text": format!("a {kind} of the quay"), "type": kind}]);
        assert_eq!(server.data("stash_context", json!({"segments": segment}))["stashed"], json!(1), "{kind}");
    }
    known.extend(types.iter().chain(&kinds).chain(&stashed).cloned());
    known.extend(["last", "extractive"].map(str::to_owned));
    for text in &told {
        for name in names(text) {
            assert!(known.contains(&name), "`{name}` is none of what there is: {text}");
        }
    }

    // Each type in the descriptions and in the instructions is accepted, and each memory is found by the type with
    // which it was stored.
    let asked = ["decisions", "preferences", "findings"];
    assert!(asked.iter().all(|word| instructions.contains(word)), "{instructions}");
    let asked = asked.map(|word| word.trim_end_matches('s').to_owned());
    for word in types.iter().chain(&asked) {
        let text = format!("The grommet is a {word}");
        let id = server.data("store_memory", json!({"text": text, "type": word}))["id"].clone();
        let found = server.hits(json!({"query": text, "kinds": [word]}));
        assert!(found.iter().any(|hit| hit["id"] == id), "{word}: {found:?}");
    }
    for word in &kinds {
        server.hits(json!({"query": "grommet", "kinds": [word]}));
    }
    server.data("store_memory", json!({"text": "The grommet has a tag", "topic": "sprockets"}));
    let tagged = server.hits(json!({"query": "grommet", "topic": "sprockets"}));
    assert_eq!(strings(&tagged, "text"), ["The grommet has a tag"]);
    let ran = home.run(&project, &["search", "grommet", "--topic", "sprockets", "--json"]);
    assert!(ran.stdout.contains("has a tag") && !ran.stdout.contains("is a decision"), "{ran:?}");
}
