//! Summarises a user's conversation with an assistant as an account of its exchanges. The account contains the user's
//! requests, their outcomes, the decisions, and the current state.

mod choose;
mod read;
mod render;

use super::exchanges::Exchange;
use super::reading::Reading;
use super::{Source, Summary};
use read::Account;
use tiro_base::memory::Level;

/// Returns the account of `exchanges`, with at most `max_tokens`.
pub(super) fn account(
    reading: &Reading,
    exchanges: &[Exchange],
    sources: &[Source<'_>],
    level: Level,
    max_tokens: usize,
    count: &dyn Fn(&str) -> usize,
) -> Summary {
    let account = Account::of(reading, exchanges, sources);
    let summary = match level {
        Level::Brief => account.brief(max_tokens, count),
        Level::Standard => account.fitted(max_tokens, count, &|chosen| account.standard(chosen)),
        Level::Detailed => account.fitted(max_tokens, count, &|chosen| account.detailed(chosen)),
    };
    match summary.text.is_empty() {
        true => account.shortest(max_tokens, count),
        false => summary,
    }
}
