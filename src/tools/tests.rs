mod reads;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::common::arguments;
use super::common::schema::{input_schema, output_schema};
use super::*;
use crate::caller::{Toolset, Toolsets};
use crate::error::Result;

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
    arguments::read(&input_schema::<Args>(), arguments)
}

#[test]
fn unambiguous_variants_of_arguments_are_accepted() {
    let args = read(json!({
        "query": "x", "maxTokens": 5.0, "k": null, "since": "yesterday", "order": "commit",
        "messages": [{"role": "user", "sourceID": "m1"}],
    }));
    let message = Message { role: "user".to_owned(), source_id: Some("m1".to_owned()) };
    let expected = Args {
        query: "x".to_owned(),
        k: 10,
        max_tokens: Some(5),
        kinds: Vec::new(),
        since: Some(Time::Text("yesterday".to_owned())),
        order: Some(Kind::Commit),
        messages: vec![message],
        expand: false,
    };
    assert_eq!(args.unwrap(), expected);
}

#[test]
fn errors_name_the_wrong_argument_and_a_remedy() {
    let cases = [
        (json!({}), "argument `query` is missing", "give `query`: What to look for, in words."),
        (json!(null), "argument `query` is missing", "give `query`: What to look for, in words."),
        (json!({"query": null}), "argument `query` is null", "give `query` as a string"),
        (json!({"query": 1}), "argument `query` is a number", "give `query` as a string"),
        (json!([]), "the arguments are an array, not an object", ""),
        (json!({"query": "", "k": "10"}), "argument `k` is a string", "give `k` as a whole number"),
        (json!({"query": "", "k": 1.5}), "argument `k` is a fraction", "give `k` as a whole number"),
        (
            json!({"query": "", "k": 2f64.powi(70)}),
            "argument `k` is a number too large to be counted",
            "give `k` as a whole number",
        ),
        (json!({"query": "", "k": 0}), "argument `k` is 0, out of range", "give from 1 to 100"),
        (
            json!({"query": "", "maxTokens": -1}),
            "argument `max_tokens` is -1, out of range",
            "give 0 or more",
        ),
        (
            json!({"query": "", "expand": "yes"}),
            "argument `expand` is a string",
            "give `expand` as true or false",
        ),
        (
            json!({"query": "", "since": []}),
            "argument `since` is an array",
            "give `since` as one of: integer, string",
        ),
        (json!({"query": "", "kinds": "commit"}), "argument `kinds` is a string", "give `kinds` as an array"),
        (
            json!({"query": "", "kinds": ["comit"]}),
            "argument `kinds[0]` cannot be `comit`",
            "choose from `message`, `commit`",
        ),
        (
            json!({"query": "", "messages": [{"role": "user"}, {}]}),
            "argument `messages[1].role` is missing",
            "give `messages[1].role`",
        ),
        (
            json!({"query": "", "messages": [{"role": "user", "rule": 1}]}),
            "there is no argument `messages[0].rule`",
            "did you mean `role`? There are `role`, `source_id`",
        ),
        (
            json!({"query": "", "maxTokens": 1, "max_tokens": 2}),
            "argument `max_tokens` is given twice, once as `maxTokens`",
            "",
        ),
    ];
    for (arguments, message, hint) in cases {
        let error = read(arguments.clone()).expect_err(&arguments.to_string());
        assert_eq!((error.to_string().as_str(), error.way_out().unwrap_or_default()), (message, hint));
        assert_eq!(error.kind(), crate::error::Kind::BadInput);
    }
    let error = read(json!({"query": "", "token_max": 1})).unwrap_err();
    assert!(error.way_out().unwrap().contains("`max_tokens`"), "{error:?}");
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
