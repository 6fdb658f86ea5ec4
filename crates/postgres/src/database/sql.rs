//! Statements that are put together from parts, with their parameters.

use tokio_postgres::types::ToSql;

/// The text of a statement, and its parameters `$1`, `$2` and so on.
#[derive(Default)]
pub(crate) struct Sql {
    text: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Sql {
    /// Returns a statement that begins with `text`.
    pub fn new(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), values: Vec::new() }
    }

    /// Adds to the text.
    pub fn push(&mut self, text: &str) -> &mut Sql {
        self.text.push_str(text);
        self
    }

    /// Adds a parameter; returns its name, such as `$3`, to be used in the text.
    pub fn bind(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parameters.
    pub fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
