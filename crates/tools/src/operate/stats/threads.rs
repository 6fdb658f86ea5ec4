//! The use of threads with assistants: sent tokens, saved tokens, and cost.

use serde::Serialize;

use tiro_base::humanize::thousands;
use tiro_base::money::Money;
use tiro_store::ThreadRow;

/// The maximum number of threads that the text lists. Arbitrary.
const LISTED: usize = 10;

/// The use of a thread: sent tokens, saved tokens, and cost.
#[derive(Debug, Serialize)]
pub struct ThreadUse {
    /// The session.
    pub session_id: String,
    /// The assistant.
    pub assistant: String,
    /// How many turns it has.
    pub turns: u32,
    /// The number of tokens that the turns added to the prompts (o200k).
    pub appended: u64,
    /// The number of tokens that the turns would have added if every turn had sent all its files whole.
    pub whole: u64,
    /// The share of `whole` that was saved, from 0 to 1. Absent if `whole` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
    /// The number of tokens that the provider counted as sent. `cached` is the number of them that it read from its
    /// cache.
    pub input: u64,
    /// See `input`.
    pub cached: u64,
    /// The cost.
    pub cost: String,
}

/// Returns the use of each thread, in the order of `rows`.
pub fn uses(rows: &[ThreadRow]) -> Vec<ThreadUse> {
    let of = |row: &ThreadRow| ThreadUse {
        session_id: row.name.session.to_string(),
        assistant: row.name.assistant.clone(),
        turns: row.turns,
        appended: row.spent.appended,
        whole: row.spent.whole,
        saved: (row.spent.whole > 0)
            .then(|| 1.0 - row.spent.appended.min(row.spent.whole) as f64 / row.spent.whole as f64),
        input: row.spent.input,
        cached: row.spent.cached,
        cost: Money(row.spent.micros).to_string(),
    };
    rows.iter().map(of).collect()
}

/// Returns the table of the threads. Returns an empty text if there are none.
pub fn table(threads: &[ThreadUse]) -> String {
    if threads.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n\n{:40} {:>6} {:>14} {:>14} {:>7} {:>9}",
        "thread", "turns", "tokens added", "sent whole", "saved", "cost"
    );
    for thread in threads.iter().take(LISTED) {
        let name = format!("{}@{}", thread.session_id, thread.assistant);
        let saved = thread.saved.map_or(String::new(), |saved| format!("{:.0}%", saved * 100.0));
        text += &format!(
            "\n{name:40} {:>6} {:>14} {:>14} {saved:>7} {:>9}",
            thread.turns,
            thousands(thread.appended),
            thousands(thread.whole),
            thread.cost
        );
    }
    if threads.len() > LISTED {
        text += &format!("\n{} more threads", threads.len() - LISTED);
    }
    text
}
