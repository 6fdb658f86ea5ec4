//! Summarises a user's conversation with an assistant as an account of its exchanges. The account contains the user's
//! requests, and what the assistant's last message before the next request concludes.
//!
//! The account says little rather than something wrong. It leaves out an answer that the user rejects or the assistant
//! takes back, guesses, and what the assistant writes while it works.

mod choose;
mod read;
mod render;
pub(super) mod to_do;
mod undone;

use super::exchanges::Exchange;
use super::reading::Reading;
use super::{Source, Summary};
use read::Account;
use tiro_base::memory::Level;
use undone::drop_undone;

/// Returns the account of `exchanges`, with at most `max_tokens`.
pub(super) fn account(
    reading: &Reading,
    exchanges: &[Exchange],
    sources: &[Source<'_>],
    level: Level,
    max_tokens: usize,
    count: &dyn Fn(&str) -> usize,
) -> Summary {
    let mut account = Account::of(reading, exchanges, sources);
    drop_undone(&mut account);
    let summary = match level {
        Level::Brief => account.brief(max_tokens, count),
        Level::Standard | Level::Detailed => {
            let is_detailed = level == Level::Detailed;
            account.fitted(max_tokens, count, &|chosen| account.lines(chosen, is_detailed))
        }
    };
    match summary.text.is_empty() {
        true => account.shortest(max_tokens, count),
        false => summary,
    }
}
