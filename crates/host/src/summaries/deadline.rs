//! Determines how much time a model has for a summary.
//!
//! While a caller waits, the options determine the time. In the background nobody waits, so the user's own model gets
//! as much time as it needs at the speed of its last answers in this project. Before its first answer, and after an
//! attempt without an answer, it gets the longest deadline.

use std::time::Duration;

use crate::config::{Configured, Options};
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::wanted::Wanted;
use tiro_base::error::Result;
use tiro_store::Pace;

/// The longest deadline in the background. Arbitrary: a model that needs longer would keep the machine busy.
pub const LONGEST: Duration = Duration::from_secs(600);

/// A summary may take this many times as long as at the measured speed. It may need two requests, and the machine may
/// be busier than before and half as fast.
const TIMES: f64 = 4.0;

/// A model reads this many tokens in the time in which it writes one token. Arbitrary: models on processors read some
/// ten times as fast as they write.
const READ_PER_WRITTEN: i64 = 10;

/// The number of tokens of a request that don't belong to the messages.
const INSTRUCTION: i64 = 400;

/// The number of the last attempts that are read to measure the speed.
const MEASURED: usize = 5;

/// Returns how much time `provider` has for a summary that a caller waits for.
pub fn while_waiting(engine: &Engine, provider: &Configured) -> Duration {
    of_options(&engine.config().options, provider)
}

/// Returns how much time `provider` has for a summary in the background. It is never less than for a summary that a
/// caller waits for.
pub async fn in_background(
    engine: &Engine,
    project: &OpenProject,
    provider: &Configured,
    wanted: &Wanted,
) -> Result<Duration> {
    let usual = while_waiting(engine, provider);
    if !provider.provider.is_free() {
        return Ok(usual);
    }
    let (name, model) = (provider.provider.name.clone(), provider.provider.model.clone());
    let paces = project.store.paces(&project.scope, name, model, MEASURED).await?;
    let tokens = i64::try_from(wanted.tokens()).unwrap_or(i64::MAX);
    let most = i64::try_from(wanted.most()).unwrap_or(i64::MAX);
    Ok(at_pace(&paces, work(tokens.saturating_add(INSTRUCTION), most)).clamp(usual, LONGEST.max(usual)))
}

/// Returns the longest time that a summary of the queue may take.
pub fn longest(options: &Options) -> Duration {
    let usual = options.summary_local_deadline_s.max(options.summary_external_deadline_s);
    LONGEST.max(Duration::from_secs(usual))
}

fn of_options(options: &Options, provider: &Configured) -> Duration {
    Duration::from_secs(match provider.is_local() {
        true => options.summary_local_deadline_s,
        false => options.summary_external_deadline_s,
    })
}

/// Returns the deadline for an amount of work, given the last attempts, newest first.
fn at_pace(paces: &[Pace], work: i64) -> Duration {
    let is_answered = |pace: &&Pace| pace.output > 0 && pace.took > 0;
    if !paces.first().as_ref().is_some_and(is_answered) {
        return LONGEST;
    }
    let each = |pace: &Pace| pace.took as f64 / self::work(pace.input, pace.output) as f64;
    let slowest = paces.iter().filter(is_answered).map(each).fold(0.0, f64::max);
    Duration::try_from_secs_f64(TIMES * slowest * work as f64 / 1000.0).unwrap_or(LONGEST)
}

/// Returns how much work it is to read and write these tokens. The unit is the work of writing one token.
fn work(input: i64, output: i64) -> i64 {
    (input / READ_PER_WRITTEN).saturating_add(output).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_follows_the_speed_of_the_last_answers() {
        let pace = |input, output, took| Pace { input, output, took };
        // Ten tokens a second, written or read tenfold.
        let slow = pace(1000, 100, 20_000);
        let quick = pace(1000, 100, 2_000);
        for (paces, expected) in [
            (&[][..], 600.0),
            (&[slow], 120.0),
            (&[quick], 12.0),
            (&[quick, slow], 120.0),
            (&[pace(1000, 0, 5_000), quick], 600.0),
            (&[quick, pace(1000, 0, 5_000)], 12.0),
        ] {
            let deadline = at_pace(paces, work(2000, 100)).as_secs_f64();
            assert!((deadline - expected).abs() < 0.001, "{deadline} of {paces:?}");
        }
    }
}
