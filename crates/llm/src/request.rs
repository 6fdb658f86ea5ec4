//! A request to a model.

use std::borrow::Cow;

use serde_json::Value;

use tiro_text::tokens;

/// The maximum number of tokens that a dialect adds around each part of a request.
const TOKENS_AROUND_PART: usize = 16;

/// The maximum number of tokens that a service adds if the model may call functions, or if the answer must match a
/// schema. Anthropic, for example, adds a system prompt of some hundred tokens.
const TOKENS_OF_RULES: usize = 1_024;

/// The maximum number of tokens that a service counts for one image. The highest numbers are those of OpenAI's smallest
/// models (48,169 for gpt-4o-mini) and of Gemini for images of 100 megapixels (258 for each square of 768 pixels).
/// Money is reserved by this number. The number is far too high for most services, which count fewer than 5,000 tokens
/// for any image.
pub const TOKENS_OF_IMAGE: usize = 50_000;

/// The names of strings in [`Turn::Assistant::kept`] that contain no readable text, such as signatures, encrypted
/// reasoning and ids.
const OPAQUE: [&str; 8] = [
    "call_id",
    "data",
    "encrypted_content",
    "id",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "tool_use_id",
];

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A turn of the conversation that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// A text from the user, with images.
    User {
        /// The text.
        text: String,
        /// The images.
        images: Vec<Image>,
    },
    /// An answer of the model: [`Turn::answer`] makes it from a [`Reply`](super::Reply).
    Assistant {
        /// The text.
        text: String,
        /// The functions that the model called.
        calls: Vec<Call>,
        /// The data that the service needs back unchanged, such as signed reasoning. The data comes from
        /// [`Reply::kept`](super::Reply::kept). The model that wrote the data gets it in place of `text` and `calls`;
        /// any other model gets `text` and `calls`.
        kept: Option<Value>,
    },
    /// The result of a function. The results of all calls of an answer follow that answer.
    Result {
        /// The id of the call that has this result.
        call: String,
        /// The result.
        text: String,
        /// Whether the function failed. The text is then an error.
        is_error: bool,
    },
}

impl Turn {
    /// Returns a turn of the user without images.
    pub fn user(text: impl Into<String>) -> Turn {
        Turn::User { text: text.into(), images: Vec::new() }
    }

    /// Returns the turn that an answer of the model becomes in the next request.
    pub fn answer(reply: &super::Reply) -> Turn {
        Turn::Assistant { text: reply.text.clone(), calls: reply.calls.clone(), kept: reply.kept.clone() }
    }
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name: at most 64 ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the object that contains the arguments.
    pub parameters: Value,
}

/// A model's call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id of the call, which its result must repeat. It is unique within an answer.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments, as JSON. The arguments are a JSON string if the model's text is not JSON or was cut off.
    pub arguments: Value,
}

/// The amount of thinking that a model should do before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// As little as the model allows.
    Minimal,
    /// Little.
    Low,
    /// The usual amount: most services use this effort by default.
    Medium,
    /// Much.
    High,
}

/// A request to a model.
///
/// A conversation is a list of turns. If the model calls functions, the next request repeats the turns, followed by the
/// answer ([`Turn::answer`]) and by one [`Turn::Result`] for each call, in the order of the calls. A request should
/// begin with the same system prompt, functions and turns as the previous request, so that services can reuse what they
/// computed for that request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The system prompt.
    pub system: String,
    /// The conversation so far. The last turns are the question, or the results of functions.
    pub turns: Vec<Turn>,
    /// Functions that the model may call.
    pub functions: Vec<Function>,
    /// The name of a JSON schema, and the schema that the answer must match. Models that can't call functions and keep
    /// to a schema at the same time get the schema only as an instruction. So callers must check the answer in any
    /// case.
    pub schema: Option<(String, Value)>,
    /// The maximum number of tokens of the answer, including thoughts; 0 means no limit.
    pub max_output: usize,
    /// The temperature, 0 to 2; the provider's own setting takes precedence.
    pub temperature: Option<f64>,
    /// The temperature that is used if no other temperature is set. The temperature is sent only to models that accept
    /// one according to the catalogue.
    pub usual_temperature: Option<f64>,
    /// How much the model should think. `None` leaves the decision to the service. This setting is not sent to models
    /// that are known to refuse it.
    pub effort: Option<Effort>,
    /// Whether requests with the same beginning will follow within minutes, so that it is worth keeping the beginning
    /// in the service's cache. Anthropic, and OpenAI for its newer models, charge a quarter more for tokens that are
    /// written to the cache.
    pub keeps_prefix: bool,
    /// A name that is the same for all requests with the same beginning, and different for all others. OpenAI finds its
    /// cache by this name.
    pub cache_key: Option<String>,
    /// Whether the request is for embeddings. The answer then has a vector for the text of each turn, and no text.
    pub is_embedding: bool,
}

impl Request {
    /// Returns a request for an embedding of each of `texts`.
    pub fn embedding(texts: impl IntoIterator<Item = String>) -> Request {
        Request {
            turns: texts.into_iter().map(Turn::user).collect(),
            is_embedding: true,
            ..Request::default()
        }
    }

    /// Returns every text that is sent with the request, except [`Turn::Assistant::kept`].
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let turns = self.turns.iter().flat_map(|turn| match turn {
            Turn::User { text, .. } | Turn::Result { text, .. } => vec![Cow::from(text)],
            Turn::Assistant { text, calls, .. } => {
                let calls =
                    calls.iter().flat_map(|call| [Cow::from(&call.name), call.arguments.to_string().into()]);
                std::iter::once(Cow::from(text)).chain(calls).collect()
            }
        });
        let functions = self.functions.iter().flat_map(|function| {
            [
                Cow::from(&function.name),
                Cow::from(&function.description),
                function.parameters.to_string().into(),
            ]
        });
        let schema =
            self.schema.iter().flat_map(|(name, schema)| [Cow::from(name), schema.to_string().into()]);
        std::iter::once(Cow::from(&self.system)).chain(turns).chain(functions).chain(schema)
    }

    /// Returns an upper bound of the number of tokens of the request. The bound holds for any tokenizer. An image
    /// counts as [`TOKENS_OF_IMAGE`] tokens.
    pub fn tokens(&self) -> usize {
        self.tokens_by(&|text| tokens::bounded(text).high)
    }

    /// Like [`tokens`](Request::tokens), but `high` returns the upper bound for a text.
    pub fn tokens_by(&self, high: &dyn Fn(&str) -> usize) -> usize {
        let mut tokens = self.texts().map(|text| high(&text)).sum::<usize>();
        let mut parts = self.turns.len() + 2 * self.functions.len() + 4;
        if !self.functions.is_empty() || self.schema.is_some() {
            tokens += TOKENS_OF_RULES;
        }
        for turn in &self.turns {
            match turn {
                Turn::User { images, .. } => {
                    parts += images.len();
                    tokens = tokens.saturating_add(images.len().saturating_mul(TOKENS_OF_IMAGE));
                }
                Turn::Assistant { calls, kept, .. } => {
                    parts += calls.len();
                    tokens += kept.as_ref().map_or(0, |kept| high(&kept.to_string()));
                }
                Turn::Result { .. } => {}
            }
        }
        tokens.saturating_add(parts * TOKENS_AROUND_PART)
    }

    /// Returns the number of images.
    pub fn images(&self) -> usize {
        let of = |turn: &Turn| if let Turn::User { images, .. } = turn { images.len() } else { 0 };
        self.turns.iter().map(of).sum()
    }

    /// Returns a copy of the request with `change` applied to every text: the system prompt, the texts of all turns,
    /// the arguments of calls, descriptions, and the strings of schemas. Names and ids are not changed.
    ///
    /// [`Turn::Assistant::kept`] can't be changed, because services check it. The field is left out if `change` would
    /// change a readable text in it.
    pub fn with_texts(&self, change: &dyn Fn(&str) -> String) -> Request {
        let turns = self.turns.iter().map(|turn| match turn {
            Turn::User { text, images } => Turn::User { text: change(text), images: images.clone() },
            Turn::Assistant { text, calls, kept } => Turn::Assistant {
                text: change(text),
                calls: calls
                    .iter()
                    .map(|call| Call { arguments: arguments(&call.arguments, change), ..call.clone() })
                    .collect(),
                kept: kept.clone().filter(|kept| !is_changed(kept, change)),
            },
            Turn::Result { call, text, is_error } => {
                Turn::Result { call: call.clone(), text: change(text), is_error: *is_error }
            }
        });
        let functions = self.functions.iter().map(|function| Function {
            name: function.name.clone(),
            description: change(&function.description),
            parameters: schema(&function.parameters, change),
        });
        Request {
            system: change(&self.system),
            turns: turns.collect(),
            functions: functions.collect(),
            schema: self.schema.as_ref().map(|(name, it)| (name.clone(), schema(it, change))),
            max_output: self.max_output,
            temperature: self.temperature,
            usual_temperature: self.usual_temperature,
            effort: self.effort,
            keeps_prefix: self.keeps_prefix,
            cache_key: self.cache_key.clone(),
            is_embedding: self.is_embedding,
        }
    }
}

/// Returns the arguments of a call with `change` applied to their texts. `change` is first applied to each text alone,
/// and then to the whole JSON, where each text follows its name, as in `"password": "…"`. If the result is not JSON, it
/// is returned as a string.
fn arguments(arguments: &Value, change: &dyn Fn(&str) -> String) -> Value {
    let arguments = strings(arguments, true, change);
    let text = arguments.to_string();
    let changed = change(&text);
    if changed == text {
        return arguments;
    }
    serde_json::from_str(&changed).unwrap_or(Value::String(changed))
}

/// Returns a schema with `change` applied to its texts, but not to the names of properties. If the result is not JSON,
/// returns the schema that allows everything.
fn schema(schema: &Value, change: &dyn Fn(&str) -> String) -> Value {
    let schema = strings(schema, false, change);
    let text = schema.to_string();
    let changed = change(&text);
    if changed == text {
        return schema;
    }
    serde_json::from_str(&changed).unwrap_or_else(|_| serde_json::json!({"type": "object"}))
}

/// Returns `value` with `change` applied to all its strings, and also to the names of members if `with_names` is true.
fn strings(value: &Value, with_names: bool, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| strings(item, with_names, change)).collect(),
        Value::Object(members) => {
            let changed = members.iter().map(|(name, member)| {
                let name = if with_names { change(name) } else { name.clone() };
                (name, strings(member, with_names, change))
            });
            Value::Object(changed.collect())
        }
        other => other.clone(),
    }
}

/// Returns whether `change` changes a readable text of `kept`.
fn is_changed(kept: &Value, change: &dyn Fn(&str) -> String) -> bool {
    match kept {
        Value::String(text) => change(text) != *text,
        Value::Array(items) => items.iter().any(|item| is_changed(item, change)),
        Value::Object(members) => members.iter().any(|(name, member)| match name.as_str() {
            // The model chose the names of these members, so none of them is opaque.
            "input" | "args" => arguments(member, change) != *member,
            name => !OPAQUE.contains(&name) && is_changed(member, change),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Replaces a secret that is recognised by itself, and one that is recognised by the name of its member, as the
    /// redactor does.
    fn change(text: &str) -> String {
        text.replace("hunter2", "*").replace(r#""password":"swordfish""#, r#""password":"*""#)
    }

    fn answer(text: &str, arguments: Value, kept: Value) -> Turn {
        let call = Call { id: "hunter2".into(), name: "look".into(), arguments };
        Turn::Assistant { text: text.into(), calls: vec![call], kept: Some(kept) }
    }

    fn changed(turn: Turn) -> Turn {
        let request = Request { turns: vec![turn], ..Request::default() };
        request.with_texts(&change).turns.remove(0)
    }

    #[test]
    fn every_text_is_changed_and_no_name() {
        let schema = json!({"properties": {"hunter2": {"description": "hunter2"}}, "enum": ["hunter2"]});
        let request = Request {
            system: "a hunter2".into(),
            turns: vec![
                Turn::user("b hunter2"),
                Turn::Result { call: "hunter2".into(), text: "c hunter2".into(), is_error: true },
            ],
            functions: vec![Function {
                name: "look".into(),
                description: "d hunter2".into(),
                parameters: schema.clone(),
            }],
            schema: Some(("count".into(), schema)),
            ..Request::default()
        };
        let changed = request.with_texts(&change);
        let shown: Vec<String> = changed.texts().map(Cow::into_owned).collect();
        // Names in a schema are changed only because the schema is changed as one text.
        let schema = r#"{"properties":{"*":{"description":"*"}},"enum":["*"]}"#;
        assert_eq!(shown, ["a *", "b *", "c *", "look", "d *", schema, "count", schema]);
        let Turn::Result { call, is_error: true, .. } = &changed.turns[1] else { panic!("{changed:?}") };
        assert_eq!(call, "hunter2");
        assert_eq!(request.with_texts(&str::to_owned), request);
    }

    #[test]
    fn arguments_are_changed_by_themselves_and_together_with_their_names() {
        for (before, after) in [
            (json!({"at": ["hunter2", {"hunter2": 1}]}), json!({"at": ["*", {"*": 1}]})),
            (json!({"password": "swordfish"}), json!({"password": "*"})),
            (json!({"pass": "swordfish"}), json!({"pass": "swordfish"})),
            (json!("{\"at\": hunter2"), json!("{\"at\": *")),
            (json!({"at": 7}), json!({"at": 7})),
        ] {
            let Turn::Assistant { calls, .. } = changed(answer("", before, Value::Null)) else { panic!() };
            assert_eq!((&calls[0].arguments, calls[0].id.as_str()), (&after, "hunter2"));
        }
    }

    #[test]
    fn what_is_kept_is_left_out_if_it_would_be_changed() {
        for (kept, remains) in [
            (
                json!({"of": "a", "parts": [{"type": "thinking", "thinking": "Hm.", "signature": "hunter2"}]}),
                true,
            ),
            (json!({"parts": [{"type": "redacted_thinking", "data": "hunter2"}]}), true),
            (json!({"parts": [{"encrypted_content": "hunter2", "id": "hunter2"}]}), true),
            (json!({"parts": [{"thinking": "It is hunter2."}]}), false),
            (json!({"parts": [{"text": "hunter2", "thoughtSignature": "s"}]}), false),
            // A model may give an argument any name.
            (json!({"parts": [{"type": "tool_use", "id": "c", "input": {"id": "hunter2"}}]}), false),
            (json!({"parts": [{"functionCall": {"args": {"data": "hunter2"}}}]}), false),
            (json!({"parts": [{"input": {"password": "swordfish"}}]}), false),
            (json!({"parts": [{"arguments": "{\"at\": \"hunter2\"}"}]}), false),
        ] {
            let Turn::Assistant { kept: left, .. } = changed(answer("", json!({}), kept.clone())) else {
                panic!()
            };
            assert_eq!(left, remains.then_some(kept));
        }
    }
}
