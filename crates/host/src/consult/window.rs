//! The window of an assistant, in tokens as Tiro counts them.
//!
//! Tiro counts with o200k. Models of services with another tokenizer count more tokens for the same text, so their
//! windows are divided by an upper estimate of the ratio. If the model has reported numbers for earlier prompts of the
//! thread, they improve the estimate.

use crate::tuning::{ANSWER_SHARE, GROWTH_SHARE, RESULTS_SHARE, TOKENS_OF_OTHERS, UNKNOWN_WINDOW};
use tiro_llm::{Provider, Service, catalogue};

/// The division of an assistant's window, in o200k tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The whole window.
    pub tokens: usize,
    /// The whole window, as the model counts tokens.
    pub own: usize,
    /// The tokens that are kept free for the answer.
    pub answer: usize,
    /// The tokens that are kept free for later turns when files get their places.
    pub growth: usize,
    /// The number of the model's own tokens that correspond to one o200k token.
    pub ratio: f64,
    /// Whether the size of the window is known.
    pub is_known: bool,
    /// The maximum number of tokens of the answer, as the model counts them.
    pub most_output: usize,
}

impl Window {
    /// Returns how many tokens of files fit into a first prompt. The tokens for the answer, for results of functions
    /// and for later turns are kept free.
    pub fn room(&self) -> usize {
        self.tokens.saturating_sub(self.answer + self.growth + self.results())
    }

    /// Returns the maximum number of tokens of the results of functions.
    pub fn results(&self) -> usize {
        (self.tokens as f64 * RESULTS_SHARE) as usize
    }

    /// Returns whether Tiro's counts are exact for this model.
    pub fn is_exact(&self) -> bool {
        self.ratio <= 1.0
    }
}

/// Returns the window of a provider's model. `reported` contains two numbers of tokens for each earlier prompt: the
/// number that the model reported, and the number that Tiro counted.
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
