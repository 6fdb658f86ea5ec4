//! What a model is asked.

use std::borrow::Cow;

use crate::tokens;

/// Tokens that a dialect adds around each part of a request. From above.
const TOKENS_AROUND_PART: usize = 16;

/// Who says a part of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// The one who asks.
    User(String),
    /// The model, with the functions it called.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<Call>,
    },
    /// What a function returned.
    Result {
        /// Of which call.
        call: String,
        /// What it returned.
        text: String,
    },
}

/// A function the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// Its arguments, as a JSON schema.
    pub parameters: serde_json::Value,
}

/// A call of a function by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id that its result must name.
    pub id: String,
    /// The function.
    pub name: String,
    /// The arguments.
    pub arguments: serde_json::Value,
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// What it is told to be.
    pub system: String,
    /// What was said so far, the question last.
    pub turns: Vec<Turn>,
    /// Functions it may call.
    pub functions: Vec<Function>,
    /// The JSON schema that the answer must match, with its name.
    pub schema: Option<(String, serde_json::Value)>,
    /// Tokens of the answer at most.
    pub max_output: usize,
    /// 0 to 2; the provider's own setting goes before it.
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

    /// Returns how many tokens the request has at most, whatever tokenizer the model uses.
    pub fn tokens(&self) -> usize {
        let parts = self.turns.len() + 2 * self.functions.len() + 4;
        self.texts().map(|text| tokens::bounded(&text).high).sum::<usize>() + parts * TOKENS_AROUND_PART
    }
}
