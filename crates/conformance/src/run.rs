//! Runs a promise: it has to hold for an engine, and a store with its fault has to break it. One more promise is tested
//! with random histories.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::broken::{Broken, Fault};
use super::fixture::{Answered, Fixture, NO_ANSWER, name};
use super::subject::Engine;
use tiro_store::*;

/// A promise, called: it ends if the engine keeps it, and panics if not. It is boxed so that what runs a promise is
/// compiled once, not once for each promise.
pub type Called = Pin<Box<dyn Future<Output = ()>>>;

/// How long a promise may run. It needs a limit because a broken store may make it wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a promise against the engine; returns the message of its panic if it is broken.
fn run(engine: Box<dyn Engine>, promise: impl FnOnce(Fixture) -> Called) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let kept = catch_unwind(AssertUnwindSafe(|| {
        let promise = promise(Fixture::new(engine));
        runtime.block_on(async { tokio::time::timeout(PATIENCE, promise).await })
    }));
    let panic = match kept {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(_)) => return Err("it did not end".into()),
        Err(panic) => panic,
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    Err(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
}

/// Asserts that the promise holds for the engine.
pub fn holds(engine: Box<dyn Engine>, promise: fn(Fixture) -> Called) {
    if let Err(message) = run(engine, promise) {
        panic!("{message}");
    }
}

/// Asserts that the fault breaks the promise by a wrong answer, not by an error.
pub fn breaks(engine: Box<dyn Engine>, fault: Fault, promise: fn(Fixture) -> Called) {
    let message = run(Box::new(Broken::new(engine, fault)), promise).expect_err("the fault goes unseen");
    assert!(!message.contains(NO_ANSWER), "it fails for another reason than the fault: {message}");
}

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    Say(u8),
    Forget(u8),
    Undo,
    Purge(u8),
    Summarise(u8, u8),
    SummariseSession,
    SaveLate,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_u8).prop_map(Step::Say),
        3 => any::<u8>().prop_map(Step::Forget),
        2 => Just(Step::Undo),
        1 => any::<u8>().prop_map(Step::Purge),
        4 => (any::<u8>(), 0..6_u8).prop_map(|(first, more)| Step::Summarise(first, more)),
        2 => Just(Step::SummariseSession),
        2 => Just(Step::SaveLate),
        1 => Just(Step::Reopen),
    ]
}

/// Returns the strategy that draws histories.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..30)
}

/// Asserts that after each step the summaries of the session are made of exactly its living messages.
async fn a_history_leaves_current_summaries(mut fixture: Fixture, steps: Vec<Step>) {
    let (mut said, mut operations) = (0, 0);
    let mut late: Option<Summary> = None;
    for step in steps {
        let rows = fixture.rows("s").await;
        match step {
            Step::Say(count) => {
                for _ in 0..count {
                    fixture.say("s", &[&format!("w{said}")]).await;
                    said += 1;
                }
            }
            Step::Forget(n) | Step::Purge(n) => {
                if let Some(row) = rows.get(usize::from(n) % rows.len().max(1)) {
                    operations += 1;
                    let operation = format!("f{operations:03}");
                    fixture.forget(&[&row.id], &operation).await;
                    if matches!(step, Step::Purge(_)) {
                        fixture.store.purge(&fixture.scope, &operation, 6).await.answered();
                    }
                }
            }
            Step::Undo => drop(fixture.store.undo(&fixture.scope, None, 6).await),
            Step::Summarise(first, more) => {
                let first = i64::from(first) % (said + 1);
                late = Some(fixture.draft("s", first, first + i64::from(more)).await);
                fixture.summarise("s", first, first + i64::from(more)).await;
            }
            // This summary was made before the last changes to the messages.
            Step::SaveLate => {
                if let Some(summary) = late.take() {
                    fixture.store.save_summary(&fixture.scope, summary, 1).await.answered();
                }
            }
            Step::SummariseSession => {
                if let Some(last) = rows.last() {
                    let texts = fixture.texts(rows.iter().map(|row| row.key).collect()).await;
                    fixture.summarise_session("s", &texts.join(" | "), last.ordinal).await;
                }
            }
            Step::Reopen => fixture = fixture.reopened(),
        }
        assert_summaries_are_current(&fixture).await;
    }
    let check = fixture.store.check(&fixture.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

/// Asserts that every summary that the store returns is made from the living messages of its range.
async fn assert_summaries_are_current(fixture: &Fixture) {
    for row in fixture.summaries("s").await {
        let now = fixture.draft("s", row.summary.first, row.summary.last).await;
        assert_eq!((row.summary.text, row.summary.messages), (now.text, now.messages));
    }
    if let Some(row) = fixture.store.conversation(&fixture.scope, &name("s")).await.answered() {
        let memory = fixture.living(&row.id).await.expect("it isn't forgotten");
        assert_eq!(memory.text, fixture.draft("s", 0, row.last).await.text);
    }
}

/// Draws histories until one breaks the promise about summaries, and returns the message of its panic as an error.
fn histories(config: Config, engine: &dyn Fn() -> Box<dyn Engine>) -> Result<(), String> {
    let mut runner = TestRunner::new(Config { source_file: Some(file!()), ..config });
    let kept = runner.run(&steps(), |steps| {
        let promise = |fixture| -> Called { Box::pin(a_history_leaves_current_summaries(fixture, steps)) };
        run(engine(), promise).map_err(TestCaseError::fail)
    });
    kept.map_err(|failure| format!("{failure}"))
}

/// Asserts that a returned summary is of the living messages of its range, after any history.
pub fn summaries_are_of_living_messages(engine: &dyn Fn() -> Box<dyn Engine>) {
    if let Err(message) = histories(Config::with_cases(48), engine) {
        panic!("{message}");
    }
}

/// Asserts that some history breaks a store of the engine which returns stale summaries.
pub fn histories_break_a_store_with_stale_summaries(engine: &dyn Fn() -> Box<dyn Engine>) {
    // Failing histories of a broken store are not recorded as regressions.
    let config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::with_cases(200) };
    let broken = || -> Box<dyn Engine> { Box::new(Broken::new(engine(), Fault::ServesStaleSummaries)) };
    let message = histories(config, &broken).expect_err("the fault goes unseen");
    assert!(!message.contains(NO_ANSWER), "{message}");
}
