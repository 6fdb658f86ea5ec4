//! The window of an assistant, in tokens as Tiro counts them.
//!
//! Tiro counts with o200k. Models of services that don't use it count more tokens for the same text, so their windows are
//! divided by an upper estimate of the ratio. The numbers that a model reports for earlier prompts of the thread
//! improve the estimate.

use crate::tuning::{ANSWER_SHARE, GROWTH_SHARE, RESULTS_SHARE, TOKENS_OF_OTHERS, UNKNOWN_WINDOW};
use tiro_llm::{Provider, Service, catalogue};

/// How the window of an assistant is divided, in o200k tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The whole window.
    pub tokens: usize,
    /// The whole window, as the model counts.
    pub own: usize,
    /// The tokens that are kept free for the answer.
    pub answer: usize,
    /// The tokens that are kept free for later turns when files get their places.
    pub growth: usize,
    /// How many tokens of the model stand for one o200k token.
    pub ratio: f64,
    /// Whether the size of the window is known.
    pub is_known: bool,
    /// The most tokens of the answer, as the model counts them.
    pub most_output: usize,
}

impl Window {
    /// Returns how many tokens of files fit into a first prompt, beside what is kept free: for the answer, for results of
    /// functions, and for later turns.
    pub fn room(&self) -> usize {
        self.tokens.saturating_sub(self.answer + self.growth + self.results())
    }

    /// Returns how many tokens the results of functions may have.
    pub fn results(&self) -> usize {
        (self.tokens as f64 * RESULTS_SHARE) as usize
    }

    /// Returns whether counts are exact for the model.
    pub fn is_exact(&self) -> bool {
        self.ratio <= 1.0
    }
}

/// Returns the window of a provider's model. `reported` are pairs of tokens for earlier prompts: as the model reported
/// them, and as Tiro counted them.
pub fn window(provider: &Provider, reported: &[(u64, u64)]) -> Window {
    let known = catalogue::window(provider);
    let size = known.unwrap_or(UNKNOWN_WINDOW);
    let ratio = match provider.service {
        Service::Openai | Service::OpenaiResponses => 1.0,
        _ => reported
            .iter()
            .filter(|(model, counted)| *counted > 0 && *model > 0)
            .map(|(model, counted)| (*model as f64 / *counted as f64).clamp(1.0, 3.0))
            .reduce(f64::max)
            .unwrap_or(TOKENS_OF_OTHERS),
    };
    let output = (size as f64 * ANSWER_SHARE) as usize;
    let known_output = catalogue::model(provider).and_then(|model| model.max_output);
    let most_output =
        [Some(output), provider.max_output, known_output].into_iter().flatten().min().unwrap_or(output);
    let scaled = |tokens: usize| (tokens as f64 / ratio) as usize;
    Window {
        tokens: scaled(size),
        own: size,
        answer: scaled(most_output),
        growth: (scaled(size) as f64 * GROWTH_SHARE) as usize,
        ratio,
        is_known: known.is_some(),
        most_output: most_output.max(1),
    }
}
