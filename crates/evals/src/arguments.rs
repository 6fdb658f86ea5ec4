//! Random arguments for a tool, made from its schema.
//!
//! The name of an argument decides which value it gets. Ids, sessions, cursors and URIs come from answers that servers
//! of the same scope or of another one gave. Texts to store contain the words of the scope; questions contain words of
//! any scope. Every other argument gets any value that the schema allows.

use serde_json::{Map, Value, json};

use crate::corpus;
use crate::random::Random;

/// The memory of one owner and project, and the words that mark its texts.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The owner of its data directory.
    pub owner: Owner,
    /// The name of the project directory.
    pub project: &'static str,
    /// A word of every text of the scope; questions of other scopes may contain it.
    pub word: &'static str,
    /// Another word of every text of the scope; only calls of the scope itself contain it.
    pub secret: &'static str,
}

/// An owner of projects.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The name of the data directory.
    pub name: &'static str,
    /// The word that replaces the scope's secret in texts stored for all projects of the owner.
    pub secret: &'static str,
}

/// Ids, sessions, cursors and URIs from answers of servers, each with its scope.
#[derive(Debug, Default)]
pub struct Pool {
    handles: Vec<(usize, String)>,
    uris: Vec<(usize, String)>,
}

/// The maximum number of handles in the pool. Once it is full, new handles replace old ones.
const POOL: usize = 4000;

/// A few handles to make arguments from, and a count of the handles of other scopes that were used.
pub struct Source<'a> {
    scopes: &'a [Scope],
    scope: usize,
    sample: Pool,
    foreign: usize,
}

impl Pool {
    /// Adds every id, session, cursor and URI of an answer from the server of `scope`.
    pub fn harvest(&mut self, scope: usize, answer: &Value) {
        match answer {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "uri" => keep(&mut self.uris, scope, text),
                        Value::String(text) if is_handle(name) => keep(&mut self.handles, scope, text),
                        other => self.harvest(scope, other),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.harvest(scope, item)),
            _ => {}
        }
    }

    /// Returns a sample of the pool. Half of it comes from other scopes than `scope`.
    pub fn sample(&self, scope: usize, random: &mut Random) -> Pool {
        let mut draw = |from: &[(usize, String)]| {
            let mut drawn = Vec::new();
            for foreign in [false, true] {
                let fitting = |random: &mut Random| {
                    let mut tries = (0..20).map(|_| random.pick(from));
                    tries.find(|(owner, _)| (*owner != scope) == foreign).cloned()
                };
                for _ in 0..3 {
                    if !from.is_empty() {
                        drawn.extend(fitting(random));
                    }
                }
            }
            drawn
        };
        Pool { handles: draw(&self.handles), uris: draw(&self.uris) }
    }
}

fn keep(pool: &mut Vec<(usize, String)>, scope: usize, text: &str) {
    if text.is_empty() || text.len() > 500 || pool.iter().rev().take(50).any(|(_, kept)| kept == text) {
        return;
    }
    if pool.len() < POOL {
        pool.push((scope, text.to_string()));
    } else {
        let place = text.bytes().fold(pool.len(), |sum, byte| sum.wrapping_mul(31) + byte as usize) % POOL;
        pool[place] = (scope, text.to_string());
    }
}

/// Whether a field or argument of this name contains an id, session, cursor or URI.
fn is_handle(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["id", "ids", "session", "sessions", "cursor", "references", "undo", "operation", "source"]
        .contains(&name.as_str())
        || ["_id", "_ids", "_cursor", "_key"].iter().any(|end| name.ends_with(end))
}

/// Returns a text to store in `scope`: the scope's two words among words that all scopes use.
pub fn text_of(scope: &Scope, random: &mut Random) -> String {
    format!("The {} keeps {} near the {}.", scope.word, scope.secret, shared_words(random))
}

/// Returns words that the texts of all scopes contain, so that a question of one scope matches texts of another.
fn shared_words(random: &mut Random) -> String {
    let words = [
        "harbor", "ledger", "deploy", "latency", "parser", "garden", "invoice", "kernel", "rollback", "queue",
    ];
    let chosen: Vec<&str> = (0..3 + random.below(4)).map(|_| *random.pick(&words)).collect();
    chosen.join(" ")
}

impl<'a> Source<'a> {
    /// Returns a source for calls from `scope`.
    pub fn new(scopes: &'a [Scope], scope: usize, sample: Pool) -> Source<'a> {
        Source { scopes, scope, sample, foreign: 0 }
    }

    /// Returns how many handles of other scopes were used.
    pub fn foreign(&self) -> usize {
        self.foreign
    }

    /// Returns a resource URI: either one from an answer, or one in which the id of another resource is used.
    pub fn uri(&mut self, random: &mut Random) -> String {
        let uri = match self.sample.uris.is_empty() {
            true => "tiro://memory/1".to_string(),
            false => self.take(random, |pool| &pool.uris),
        };
        match uri.rsplit_once('/') {
            Some((start, _)) if random.chance(0.4) => {
                let handle = self.handle(random);
                format!("{start}/{handle}")
            }
            _ => uri,
        }
    }

    /// Returns arguments that fit `schema`: all required ones, and a random share of the optional ones. Sometimes there
    /// is exactly one optional argument, for tools that take only one of several.
    pub fn object(&mut self, schema: &Value, random: &mut Random) -> Value {
        let mut arguments = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let Some(properties) = schema["properties"].as_object() else { return json!({}) };
        let is_required = |name: &String| required.contains(&json!(name));
        let optional: Vec<&String> = properties.keys().filter(|name| !is_required(name)).collect();
        let only = (!optional.is_empty() && random.chance(0.5)).then(|| *random.pick(&optional));
        let share = random.unit();
        for (name, property) in properties {
            let wanted = match only {
                Some(only) => only == name,
                None => random.chance(share),
            };
            if wanted || is_required(name) {
                arguments.insert(name.clone(), self.value(name, property, schema, random));
            }
        }
        if arguments.get("scope").is_some_and(|scope| scope == "owner") {
            let own = self.scopes[self.scope];
            if let Some(Value::String(text)) = arguments.get_mut("text") {
                *text = text.replace(own.secret, own.owner.secret);
            }
        }
        Value::Object(arguments)
    }

    /// Returns a value for the argument `name`. References of `schema` are resolved in `root`.
    fn value(&mut self, name: &str, schema: &Value, root: &Value, random: &mut Random) -> Value {
        let schema = resolve(schema, root);
        if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
            return random.pick(choices).clone();
        }
        for alternatives in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[alternatives].as_array().filter(|choices| !choices.is_empty()) {
                return self.value(name, random.pick(choices), root, random);
            }
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("string");
        match kind {
            "boolean" if name == "purge" => json!(random.chance(0.2)),
            "boolean" => json!(random.chance(0.5)),
            "integer" if name.contains("token") => json!(100 + random.below(4000)),
            "integer" => json!(1 + random.below(30)),
            "number" => json!(random.unit()),
            "null" => Value::Null,
            "array" => {
                let count = 1 + random.below(3);
                (0..count).map(|_| self.value(name, &schema["items"], root, random)).collect()
            }
            "object" => {
                let mut inner = schema.clone();
                inner["$defs"] = root["$defs"].clone();
                self.object(&inner, random)
            }
            _ => json!(self.string(name, random)),
        }
    }

    fn string(&mut self, name: &str, random: &mut Random) -> String {
        match name {
            "text" | "content" => text_of(&self.scopes[self.scope], random),
            "query" | "question" => self.question(random),
            "role" => random.pick(&["user", "assistant"]).to_string(),
            "kinds" | "kind" => {
                random.pick(&["message", "fact", "decision", "research", "commit"]).to_string()
            }
            "type" => random.pick(&["fact", "decision", "research", "task_state", "error_log"]).to_string(),
            "uri" => self.uri(random),
            "scope" => random.pick(&["project", "owner"]).to_string(),
            "since" | "until" | "time" => corpus::rfc3339(1_700_000_000 + random.below(50_000_000) as i64),
            _ if is_handle(name) => self.handle(random),
            _ => shared_words(random),
        }
    }

    /// Returns a question in the words of all scopes, often with the word of one.
    fn question(&mut self, random: &mut Random) -> String {
        let asked = random.below(self.scopes.len());
        if random.chance(0.3) {
            return shared_words(random);
        }
        self.foreign += usize::from(asked != self.scope);
        format!("{} {}", self.scopes[asked].word, shared_words(random))
    }

    /// Returns an id, session or cursor: one from an answer, one that every scope has, or an unknown one.
    fn handle(&mut self, random: &mut Random) -> String {
        match random.below(10) {
            0 => format!("session-{}", random.below(4)),
            1 => random.pick(&["0", "1", "-1", "m1", "../owner-b", "%", "*", "' OR 1=1 --"]).to_string(),
            _ if self.sample.handles.is_empty() => "session-0".into(),
            _ => self.take(random, |pool| &pool.handles),
        }
    }

    fn take(&mut self, random: &mut Random, from: fn(&Pool) -> &Vec<(usize, String)>) -> String {
        let (scope, text) = random.pick(from(&self.sample)).clone();
        self.foreign += usize::from(scope != self.scope);
        text
    }
}

/// Follows a `$ref` into the definitions of `root`.
fn resolve<'v>(schema: &'v Value, root: &'v Value) -> &'v Value {
    let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPES: [Scope; 2] = [
        Scope {
            owner: Owner { name: "a", secret: "compass" },
            project: "p",
            word: "finch",
            secret: "anchor",
        },
        Scope { owner: Owner { name: "b", secret: "gauge" }, project: "p", word: "heron", secret: "whistle" },
    ];

    #[test]
    fn arguments_fit_the_schema_and_use_foreign_handles_but_no_foreign_secret() {
        let schema = json!({
            "properties": {
                "session_id": {"type": "string"}, "query": {"type": "string"}, "k": {"type": "integer"},
                "messages": {"type": "array", "items": {"$ref": "#/$defs/message"}},
            },
            "required": ["session_id", "messages"],
            "$defs": {
                "message": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            },
        });
        let mut pool = Pool::default();
        pool.harvest(1, &json!({"hits": [{"id": "theirs"}]}));
        pool.harvest(0, &json!({"structuredContent": {"next_cursor": "ours"}}));
        let mut random = Random::new(3);
        let mut foreign = 0;
        for _ in 0..200 {
            let mut source = Source::new(&SCOPES, 0, pool.sample(0, &mut random));
            let arguments = source.object(&schema, &mut random);
            assert!(arguments["messages"][0]["text"].as_str().unwrap().contains("anchor"));
            assert!(!arguments.to_string().contains("whistle"));
            foreign += usize::from(arguments["session_id"] == "theirs");
        }
        assert!(foreign > 20, "{foreign}");
    }
}
