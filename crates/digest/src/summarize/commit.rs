//! Makes summaries of commits with a model. The model gets the message, a digest of the changes, and as many changed
//! lines as fit.
//!
//! Everything that an answer states must be in the message or in the changes.

use super::model::{INSTRUCTION, output, request, until_good};
use super::quality::judge;
use super::{Source, Wish};
use tiro_base::envelope;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Role;
use tiro_llm::{Reply, Request};

/// The redacted texts of a commit to summarise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// Its message.
    pub message: &'a str,
    /// The digest of its changes.
    pub changes: &'a str,
    /// Its changed lines.
    pub diff: &'a str,
}

/// Returns the request to the model. If the model's window is too small for all changed lines, the last lines are left
/// out.
///
/// Errors with [`Kind::Limit`] if the window is too small for the message.
pub fn commit_request(
    commit: &Commit<'_>,
    wish: &Wish<'_>,
    count: &dyn Fn(&str) -> usize,
) -> Result<Request> {
    let room = wish.window.saturating_sub(2 * INSTRUCTION + 2 * output(wish));
    let Commit { message, changes, diff } = *commit;
    let said = format!("{message}\n\n{changes}");
    let left = room.checked_sub(count(&said) + 64).ok_or_else(|| {
        Error::new(Kind::Limit, "the model's window is too small for this commit's message")
    })?;
    // A token has at most 128 bytes, so at most 128 bytes for each remaining token can fit. The tokens of the text
    // after these bytes aren't counted.
    let mut end = diff.floor_char_boundary(left.saturating_mul(128).min(diff.len()));
    while end > 0 && count(&diff[..end]) > left {
        end = diff[..end / 4 * 3].rfind('\n').map_or(0, |at| at + 1);
    }
    let material = format!("{}\n\n{}", said.trim_end(), &diff[..end]);
    let material = envelope::wrap(wish.secret, &envelope::escape(material.trim_end()));
    Ok(request(include_str!("prompts/commit.md"), &material, wish))
}

/// Returns a model's summary of a commit. `ask` sends a request to the model and waits for the answer.
///
/// Errors if [`commit_request`] or `ask` does, and with [`Kind::Provider`] if both answers are rejected.
pub async fn commit_by_model<A, W>(
    commit: &Commit<'_>,
    wish: &Wish<'_>,
    count: &(dyn Fn(&str) -> usize + Sync),
    ask: A,
) -> Result<String>
where
    A: FnMut(Request) -> W,
    W: Future<Output = Result<Reply>>,
{
    let first = commit_request(commit, wish, &|text| count(text))?;
    let message = without_trailers(commit.message);
    let source =
        |text| Source { ordinal: 0, speaker: "", role: Role::Assistant, time: 0, text, corrected: &[] };
    let sources = [message.as_str(), commit.changes, commit.diff].map(source);
    let judge = |text: &str| judge(text, &sources);
    Ok(until_good(first, wish, count, &judge, ask).await?.text)
}

/// Returns the message without trailers such as `Signed-off-by`.
fn without_trailers(message: &str) -> String {
    let is_trailer = |line: &&str| {
        line.split_once(": ")
            .is_some_and(|(name, _)| name.to_ascii_lowercase().ends_with("-by") && !name.contains(' '))
    };
    let lines: Vec<&str> = message.lines().filter(|line| !is_trailer(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use tiro_base::memory::Level;
    use tiro_llm::Turn;
    use tiro_text::tokens;

    const COMMIT: Commit<'_> = Commit {
        message: "cache: keep answers for 30 minutes\n\nPostgres was asked again for each of them.\n\n\
            Signed-off-by: Ada <ada@example.org>",
        changes: "Added: AnswerCache\nFiles: src/cache.rs +40",
        diff: "src/cache.rs\n+struct AnswerCache { expires: Instant }\n",
    };
    const GOOD: &str = "Answers are kept in a cache for 30 minutes by the new AnswerCache, since Postgres was asked again \
        for each of them.";

    fn count(text: &str) -> usize {
        tokens::count(text)
    }

    fn wish(window: usize) -> Wish<'static> {
        Wish { level: Level::Standard, max_tokens: 80, focus: "", previous: None, window, secret: &[7; 32] }
    }

    fn asked(answers: &[&str]) -> (Result<String>, usize) {
        let asked = RefCell::new(0);
        let ask = |_: Request| {
            let text = answers.get(*asked.borrow()).map(|text| (*text).to_owned());
            *asked.borrow_mut() += 1;
            let none = || Error::new(Kind::Provider, "no more answers");
            std::future::ready(text.ok_or_else(none).map(|text| Reply { text, ..Reply::default() }))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let made = runtime.block_on(commit_by_model(&COMMIT, &wish(8000), &count, ask));
        (made, asked.into_inner())
    }

    #[test]
    fn an_answer_keeps_the_message_and_may_mention_changes() {
        let (made, requests) = asked(&[GOOD]);
        assert_eq!((made.unwrap().as_str(), requests), (GOOD, 1));
        let made_up = "Redis 7 and Kafka replace MySQL in Berlin by Friday, Greg says.";
        let vague = "Some code was changed to be better.";
        for bad in [made_up, vague, ""] {
            assert_eq!(asked(&[bad, GOOD]).0.unwrap(), GOOD);
            let (made, requests) = asked(&[bad, bad, GOOD]);
            assert_eq!((made.unwrap_err().kind(), requests), (Kind::Provider, 2), "{bad}");
        }
    }

    #[test]
    fn changed_lines_fill_the_window_and_never_pass_it() {
        let diff = "src/a.rs\n".to_owned() + &"+let shard = cache.shard(17);\n".repeat(2000);
        let commit = Commit { diff: &diff, ..COMMIT };
        for window in [1500, 3000, 8000] {
            let request = commit_request(&commit, &wish(window), &count).unwrap();
            let Turn::User { text, .. } = &request.turns[0] else { panic!("{request:?}") };
            assert!(count(text) + count(&request.system) + request.max_output <= window, "{window}");
            assert!(text.contains("30 minutes") && text.contains("+let shard"), "{text}");
        }
        assert_eq!(commit_request(&commit, &wish(900), &count).unwrap_err().kind(), Kind::Limit);
    }
}
