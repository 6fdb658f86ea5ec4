//! A summary that is wanted, and one that was made.

use serde::{Deserialize, Serialize};

use crate::config::Configured;
use crate::memory::Level;
use crate::scope::SessionId;
use crate::store::{MessageRow, source_hash};
use crate::summarize;

/// Tokens of a model's window where nobody knows them: the least that is common.
pub(crate) const UNKNOWN_WINDOW: usize = 8192;

/// What to summarise, and how.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Whose messages.
    pub session: SessionId,
    /// Which, in order.
    pub rows: Vec<MessageRow>,
    /// How much it says.
    pub level: Level,
    /// Its tokens at most; as many as usual if left out.
    pub max_tokens: Option<usize>,
    /// What it is about; empty for everything.
    pub focus: String,
    /// Whether a model may write it, where the user named one for it.
    pub by_model: bool,
}

/// A summary that was made, or made before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    /// Its id, where it is stored as a version of its range.
    pub id: Option<String>,
    /// What it says.
    pub text: String,
    /// Its tokens (o200k).
    pub tokens: usize,
    /// `extractive`, or the name of the provider that wrote it.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// How much it keeps of the names, decisions and numbers that it could, 0 to 1.
    pub quality: f64,
    /// The ordinals its sentences come from.
    pub cited: Vec<i64>,
    /// What it cost, in US dollars.
    pub cost_usd: f64,
    /// Whether it was made before.
    #[serde(skip)]
    pub is_kept: bool,
    /// Whether a model was asked and nobody answered anything.
    #[serde(skip)]
    pub is_silent: bool,
    /// What was sent, and why another way was taken than asked for.
    #[serde(default)]
    pub notices: Vec<String>,
}

impl Wanted {
    /// Returns the tokens of what is summarised.
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|row| usize::try_from(row.tokens).unwrap_or(0)).sum()
    }

    /// Returns the tokens that the summary has at most.
    pub fn most(&self) -> usize {
        self.max_tokens.unwrap_or_else(|| summarize::length(self.level, self.tokens()))
    }

    /// Returns the hash of the ids of all messages in the range, in order.
    pub fn hash(&self) -> [u8; 32] {
        source_hash(self.rows.iter().map(|row| &row.id))
    }

    /// Returns what the summary is kept under.
    pub fn key(&self, provider: Option<&Configured>, temperature: f64) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 summary");
        hasher.update(&self.hash());
        let named = |it: &Configured| format!("{} {} {temperature}", it.provider.name, it.provider.model);
        let writer = provider.map_or(String::new(), named);
        for part in
            [self.session.as_str(), self.level.as_str(), &self.most().to_string(), &self.focus, &writer]
        {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}
