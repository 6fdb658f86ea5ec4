//! A request to a model.

use std::borrow::Cow;

use crate::tokens;

/// The maximum number of tokens that a dialect adds around each part of a request.
const TOKENS_AROUND_PART: usize = 16;

/// One turn of the conversation that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// A text from the user.
    User(String),
    /// A text from the model, and the functions that the model called.
    Assistant {
        /// The text.
        text: String,
        /// The calls.
        calls: Vec<Call>,
    },
    /// The result of a function.
    #[cfg_attr(not(test), expect(dead_code, reason = "needed when a consulted model calls functions"))]
    Result {
        /// The id of the call that has this result.
        call: String,
        /// The result.
        text: String,
    },
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// A model's call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id of the call, which its result must repeat.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: serde_json::Value,
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The system prompt.
    pub system: String,
    /// The conversation so far; the question is last.
    pub turns: Vec<Turn>,
    /// Functions that the model may call.
    pub functions: Vec<Function>,
    /// The name of a JSON schema, and the schema; the answer must match it.
    pub schema: Option<(String, serde_json::Value)>,
    /// The maximum number of tokens that the answer may have; 0 means no limit.
    pub max_output: usize,
    /// The temperature, 0 to 2; the provider's own setting takes precedence.
    pub temperature: Option<f64>,
}

impl Request {
    /// Returns every text that is sent with the request.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let turns = self.turns.iter().flat_map(|turn| match turn {
            Turn::User(text) | Turn::Result { text, .. } => vec![Cow::from(text)],
            Turn::Assistant { text, calls } => {
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

    /// Returns an upper bound of the tokens of the request, which holds for any tokenizer.
    pub fn tokens(&self) -> usize {
        let parts = self.turns.len() + 2 * self.functions.len() + 4;
        self.texts().map(|text| tokens::bounded(&text).high).sum::<usize>() + parts * TOKENS_AROUND_PART
    }
}
