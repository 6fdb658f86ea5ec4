//! The types for making a summary: the wanted summary, and the finished summary.

use serde::{Deserialize, Serialize};

use crate::config::Configured;
use tiro_base::memory::Level;
use tiro_base::scope::SessionId;
use tiro_digest::summarize;
use tiro_store::{MessageRow, source_hash};

/// The context window, in tokens, that is assumed for a model whose window is unknown. It is the smallest window that
/// is still common.
pub const UNKNOWN_WINDOW: usize = 8192;

/// A description of the wanted summary.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The session whose messages are summarised.
    pub session: SessionId,
    /// The messages, in order.
    pub rows: Vec<MessageRow>,
    /// The level of detail.
    pub level: Level,
    /// The maximum number of tokens (o200k) of the summary; `None` for the level's usual length.
    pub max_tokens: Option<usize>,
    /// The topic to concentrate on; empty for everything.
    pub focus: String,
    /// Whether a model may write the summary. This has no effect unless the user named a provider for summaries.
    pub by_model: bool,
}

/// A finished summary, which was made now or taken from the cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made {
    /// The id. A summary that is only cached has none.
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// The number of tokens (o200k).
    pub tokens: usize,
    /// `extractive`, or the name of the provider that wrote it.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// The quality according to the checks of `summarize::quality`, from 0 to 1.
    pub quality: f64,
    /// The ordinals of the messages from which the summary's sentences come.
    pub cited: Vec<i64>,
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// Whether the summary was taken from the store or the cache.
    #[serde(skip)]
    pub is_kept: bool,
    /// Whether a model was asked and no request was answered.
    #[serde(skip)]
    pub is_silent: bool,
    /// Notices about what was sent to a model, and about the reason if the summary was not made as requested.
    #[serde(default)]
    pub notices: Vec<String>,
}

impl Wanted {
    /// Returns how many tokens (o200k) the messages have.
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|row| usize::try_from(row.tokens).unwrap_or(0)).sum()
    }

    /// Returns the maximum number of tokens of the summary.
    pub fn most(&self) -> usize {
        self.max_tokens.unwrap_or_else(|| summarize::length(self.level, self.tokens()))
    }

    /// Returns the hash of the ids of all messages in the range, in order.
    pub fn hash(&self) -> [u8; 32] {
        source_hash(self.rows.iter().map(|row| &row.id))
    }

    /// Returns the key under which the summary is cached: a hash of the messages and of everything else that affects
    /// the summary.
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
