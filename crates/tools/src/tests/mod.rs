mod callers;
mod clock;
mod reads;
mod sides;
mod snapshots;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::common::arguments;
use super::common::schema::{input_schema, output_schema};
use super::*;
use tiro_base::error::Result;
use tiro_host::caller::{Toolset, Toolsets};

/// Arguments of every type that tools use.
#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Args {
    /// What to look for,
    /// in words.
    query: String,
    /// At most this many.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    k: u32,
    max_tokens: Option<u64>,
    #[serde(default)]
    kinds: Vec<Kind>,
    since: Option<Time>,
    order: Option<Kind>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    expand: bool,
}

fn ten() -> u32 {
    10
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Message,
    /// A commit of the repository.
    Commit,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(untagged)]
enum Time {
    Seconds(i64),
    Text(String),
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Message {
    role: String,
    source_id: Option<String>,
}

#[derive(JsonSchema, Serialize)]
struct Output {
    hits: Vec<Hit>,
    next_cursor: Option<String>,
}

#[derive(JsonSchema, Serialize)]
struct Hit {
    id: String,
}

#[test]
fn schemas_are_flat_and_plain() {
    let schema = Value::Object(input_schema::<Args>());
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in words."},
                "k": {"type": "integer", "description": "At most this many.", "minimum": 1, "maximum": 100, "default": 10},
                "max_tokens": {"type": "integer", "minimum": 0},
                "kinds": {"type": "array", "items": {"type": "string", "enum": ["message", "commit"]}},
                "since": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "order": {"type": "string", "enum": ["message", "commit"]},
                "messages": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"role": {"type": "string"}, "source_id": {"type": "string"}},
                    "required": ["role"],
                }},
                "expand": {"type": "boolean"},
            },
            "required": ["query"],
        })
    );
    assert_eq!(
        Value::Object(output_schema::<Output>()),
        json!({"type": "object", "properties": {"hits": {"type": "array"}, "next_cursor": {"type": "string"}}})
    );
}

fn read(arguments: Value) -> Result<Args> {
    given(arguments).map(|(args, _)| args)
}

/// Returns the arguments and the remark about them.
fn given(arguments: Value) -> Result<(Args, String)> {
    let given = arguments::read::<Args>(&input_schema::<Args>(), arguments)?;
    Ok((given.args, given.remark.unwrap_or_default()))
}

#[test]
fn arguments_are_read_in_the_ways_models_and_clients_write_them() {
    let plain = || json!({"query": "x"});
    let message = || json!([{"role": "user", "source_id": "m1"}]);
    let cases = [
        // Other spellings, and values in strings.
        (json!({"query": "x", "maxTokens": 5.0, "k": null}), json!({"query": "x", "max_tokens": 5})),
        (json!({"query": "x", "max-tokens": "5"}), json!({"query": "x", "max_tokens": 5})),
        (json!({"query": "x", "k": "3"}), json!({"query": "x", "k": 3})),
        (json!({"query": "x", "k": "1e1"}), json!({"query": "x", "k": 10})),
        (json!({"query": "x", "k": ["4.0"]}), json!({"query": "x", "k": 4})),
        (json!({"query": "x", "max_tokens": "2,000"}), json!({"query": "x", "max_tokens": 2000})),
        (json!({"query": 7}), json!({"query": "7"})),
        (json!({"query": ["x"]}), plain()),
        (json!({"query": [{"type": "text", "text": "a"}, {"text": "b"}]}), json!({"query": "a\nb"})),
        (json!({"query": "null"}), json!({"query": "null"})),
        (json!({"query": "x", "expand": "True"}), json!({"query": "x", "expand": true})),
        (json!({"query": "x", "expand": 1}), json!({"query": "x", "expand": true})),
        (json!({"query": "x", "expand": "no"}), plain()),
        (json!({"query": "x", "order": "Commits"}), json!({"query": "x", "order": "commit"})),
        // Lists.
        (json!({"query": "x", "kinds": "commit"}), json!({"query": "x", "kinds": ["commit"]})),
        (
            json!({"query": "x", "kinds": "[\"commit\", \"message\"]"}),
            json!({"query": "x", "kinds": ["commit", "message"]}),
        ),
        (
            json!({"query": "x", "kinds": "['commit', 'message']"}),
            json!({"query": "x", "kinds": ["commit", "message"]}),
        ),
        (
            json!({"query": "x", "kinds": "[commit, message]"}),
            json!({"query": "x", "kinds": ["commit", "message"]}),
        ),
        (
            json!({"query": "x", "kinds": "commit, message"}),
            json!({"query": "x", "kinds": ["commit", "message"]}),
        ),
        (json!({"query": "x", "kinds": "\"commit\""}), json!({"query": "x", "kinds": ["commit"]})),
        (json!({"query": "x", "kinds": ["COMMIT", "", null]}), json!({"query": "x", "kinds": ["commit"]})),
        (json!({"query": "x", "kinds": {"item": ["commit"]}}), json!({"query": "x", "kinds": ["commit"]})),
        (
            json!({"query": "x", "messages": message().to_string()}),
            json!({"query": "x", "messages": message()}),
        ),
        (json!({"query": "x", "messages": message()[0]}), json!({"query": "x", "messages": message()})),
        (
            json!({"query": "x", "messages": "{'role': 'user', 'sourceID': 'm1'}"}),
            json!({"query": "x", "messages": message()}),
        ),
        (
            json!({"query": "x", "messages": ["{\"role\": \"user\", \"source_id\": \"m1\"}"]}),
            json!({"query": "x", "messages": message()}),
        ),
        // Left out.
        (
            json!({"query": "x", "since": "", "order": "null", "kinds": "[]", "messages": "", "k": "", "expand": ""}),
            plain(),
        ),
        (
            json!({"query": "x", "since": null, "order": "None", "kinds": [], "messages": [], "k": 0, "expand": null}),
            plain(),
        ),
        (
            json!({"query": "x", "since": "undefined", "order": " ", "kinds": [""], "messages": {}, "k": "0"}),
            plain(),
        ),
        // Other names.
        (json!({"question": "x", "limit": 3}), json!({"query": "x", "k": 3})),
        (json!({"query": "x", "k": "", "top_k": 3}), json!({"query": "x", "k": 3})),
        (json!({"query": "x", "k": 3, "limit": "3"}), json!({"query": "x", "k": 3})),
        (
            json!({"query": "x", "types": "commit", "start_date": "yesterday"}),
            json!({"query": "x", "kinds": ["commit"], "since": "yesterday"}),
        ),
        (
            json!({"query": "x", "messages": [{"sender": "user"}]}),
            json!({"query": "x", "messages": [{"role": "user"}]}),
        ),
        // Around the arguments.
        (json!("{\"query\": \"x\"}"), plain()),
        (json!([{"query": "x"}]), plain()),
        (json!({"arguments": {"query": "x"}}), plain()),
        (json!({"input": "{\"query\": \"x\"}"}), plain()),
        (json!({"input": "x"}), plain()),
    ];
    for (written, meant) in cases {
        let (args, remark) = given(written.clone()).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(args, serde_json::from_value(meant).unwrap(), "{written}");
        assert_eq!(remark, "", "{written}");
    }
}

#[test]
fn what_is_not_taken_as_given_is_named_in_one_line() {
    for (written, k, remark) in [
        (
            json!({"query": "x", "reason": "why", "wait_for": null}),
            10,
            "Ignored arguments: `reason`, `wait_for`.",
        ),
        (json!({"query": "x", "k": 3, "limit": 5}), 3, "Ignored arguments: `limit`."),
        (json!({"query": "x", "limit": 5, "k": 3}), 3, "Ignored arguments: `limit`."),
        (json!({"query": "x", "limit": 5, "topK": 3}), 5, "Ignored arguments: `topK`."),
        (json!({"query": "x", "k": 1000}), 100, "`k` is 100 at most."),
        (json!({"query": "x", "limit": "1e30"}), 100, "`limit` is 100 at most."),
        (json!({"query": "x", "limit": [1, 2]}), 10, "Ignored arguments: `limit`."),
        (
            json!({"query": "x", "messages": [{"role": "user", "mood": 1}]}),
            10,
            "Ignored arguments: `messages[0].mood`.",
        ),
        (
            json!({"query": "x", "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}),
            10,
            "Ignored arguments: `a`, `b`, `c`, `d`, `e`, 2 more.",
        ),
    ] {
        let (args, told) = given(written.clone()).unwrap();
        assert_eq!((args.k, told.as_str()), (k, remark), "{written}");
    }
    // The line is paid from the budget.
    let (args, _) = given(json!({"query": "x", "max_tokens": 500, "reason": 1})).unwrap();
    assert_eq!(args.max_tokens, Some(493));
}

#[test]
fn errors_name_the_wrong_argument_and_give_an_example() {
    let query = "give `query`, such as \"why is the cache off\": What to look for, in words.";
    let text = "give `query` as a string, such as \"why is the cache off\"";
    let whole = "give `k` as a whole number, such as 10";
    let cases = [
        (json!({}), "argument `query` is missing", query),
        (json!(null), "argument `query` is missing", query),
        (json!([]), "argument `query` is missing", query),
        (json!({"query": null}), "argument `query` is missing", query),
        (json!({"query": ""}), "argument `query` is empty", query),
        (json!({"query": true}), "argument `query` is a boolean", text),
        (json!({"query": ["a", {"image": 1}]}), "argument `query` is an array", text),
        (
            json!("cache"),
            "the arguments are `cache`, not an object",
            "give an object, such as {\"query\": \"why is the cache off\"}",
        ),
        (json!({"query": "x", "k": "ten"}), "argument `k` is `ten`", whole),
        (
            json!({"query": "x", "limit": "many"}),
            "argument `limit` is `many`",
            "give `limit` as a whole number, such as 10",
        ),
        (json!({"query": "x", "k": 1.5}), "argument `k` is a fraction", whole),
        (json!({"query": "x", "k": true}), "argument `k` is a boolean", whole),
        (
            json!({"query": "x", "max_tokens": 2f64.powi(70)}),
            "argument `max_tokens` is a number too large to be counted",
            "give `max_tokens` as a whole number, such as 2000",
        ),
        (json!({"query": "x", "k": -1}), "argument `k` is -1, out of range", "give from 1 to 100"),
        (
            json!({"query": "x", "maxTokens": "-1"}),
            "argument `maxTokens` is -1, out of range",
            "give 0 or more",
        ),
        (
            json!({"query": "x", "expand": "maybe"}),
            "argument `expand` is `maybe`",
            "give `expand` as true or false, such as true",
        ),
        (
            json!({"query": "x", "since": true}),
            "argument `since` is a boolean",
            "give `since` as one of: integer, string, such as \"2026-03-01\"",
        ),
        (
            json!({"query": "x", "kinds": ["comit"]}),
            "argument `kinds[0]` cannot be `comit`",
            "choose from `message`, `commit`",
        ),
        (
            json!({"query": "x", "messages": [{"role": "user"}, {}]}),
            "argument `messages[1].role` is missing",
            "give `messages[1].role`, such as \"user\"",
        ),
        (
            json!({"query": "x", "messages": "two of them"}),
            "argument `messages` is `two of them`",
            "give `messages` as an array, such as [{\"role\": \"user\", \"text\": \"Why is the cache off?\"}]",
        ),
    ];
    for (arguments, message, hint) in cases {
        let error = read(arguments.clone()).expect_err(&arguments.to_string());
        assert_eq!((error.to_string().as_str(), error.way_out().unwrap_or_default()), (message, hint));
        assert_eq!(error.kind(), tiro_base::error::Kind::BadInput);
    }
    let error = read(json!({"qery": "x"})).unwrap_err();
    assert_eq!(error.way_out().unwrap(), format!("{query}; there are no arguments `qery`"));
}

#[tokio::test]
async fn a_tool_reads_json_and_answers_without_nulls() {
    let about = About {
        name: "search".to_owned(),
        title: "Search".to_owned(),
        description: "Searches.".to_owned(),
        hints: Hints::READS,
        toolset: Toolset::Memory,
    };
    let tool = Tool::new::<Args, Output, _, _>(about, |args, _| async move {
        let output = Output { hits: vec![Hit { id: args.query.clone() }], next_cursor: None };
        Ok(Answer::new(args.query, &output))
    });
    let answer = tool.call(json!({"query": "m1"}), Progress::default()).await.unwrap();
    assert_eq!((answer.text.as_str(), Value::Object(answer.fields)), ("m1", json!({"hits": [{"id": "m1"}]})));
    let answer = tool.call(json!({"query": "m1", "reason": 1}), Progress::default()).await.unwrap();
    assert_eq!(answer.text, "m1\nIgnored arguments: `reason`.");
    assert_eq!(answer.fields["notices"], json!(["Ignored arguments: `reason`."]));
    assert!(tool.call(json!({}), Progress::default()).await.is_err());
    assert_eq!(Value::Object(Arc::unwrap_or_clone(tool.output_schema))["type"], "object");
}

#[test]
fn toolsets_are_read_by_name() {
    let toolsets: Toolsets = "memory, stash".parse().unwrap();
    assert!(toolsets.has(Toolset::Stash) && !toolsets.has(Toolset::Consult));
    assert!(Toolsets::default().has(Toolset::Context));
    assert_eq!("memory,x".parse::<Toolsets>().unwrap_err().to_string(), "there is no toolset `x`");
}
