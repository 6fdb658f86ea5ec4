//! Compares random calls on SQLite with the same calls on the engine of this crate, which is the model: both give the
//! same answers, and after each call everything that can be read is the same.
//!
//! Keys are opaque, so answers are compared by the ids of memories. Where the engines may differ, because the docs
//! leave it open, nothing is compared: the numbers of versions, and the scores of searches once something was forgotten
//! or removed. Where SQLite is known to differ from its docs, the calls and reads say so, and leave it out.

mod reads;
mod steps;

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use self::steps::{Side, Step, World};
use super::engine::{InMemory, Sqlite};
use tiro_base::error::Result;

/// Reads by name: what was read, in words.
type Reads = BTreeMap<String, String>;

#[test]
fn random_calls_have_the_answers_of_the_model() {
    // A case takes about a second, so what fails is not shortened for long.
    let config = Config { source_file: Some(file!()), max_shrink_iters: 100, ..Config::with_cases(16) };
    let compared = TestRunner::new(config).run(&steps::steps(), |history| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let differences = runtime.block_on(differences(&history));
        prop_assert!(differences.is_empty(), "{}", differences.join("\n\n"));
        Ok::<(), TestCaseError>(())
    });
    if let Err(difference) = compared {
        panic!("{difference}");
    }
}

/// Returns the differences after the first call after which there is one.
async fn differences(history: &[Step]) -> Vec<String> {
    let (mut sqlite, mut memory) = (Side::new(Sqlite::new()), Side::new(InMemory::new()));
    let mut world = World::new();
    for step in history {
        let made = format!("after {step:?} at {}", world.now);
        let (own, model) = (sqlite.make(step, &world).await, memory.make(step, &world).await);
        if own != model {
            return vec![format!(
                "{made}, the answer of SQLite is\n{own}\nand that of the model is\n{model}"
            )];
        }
        world.follow(step);
        let (own, model) = (sqlite.reads(&world).await, memory.reads(&world).await);
        let differ = |(name, own): (&String, &String)| {
            let model = model.get(name).map_or("", String::as_str);
            let text = || format!("{made}, SQLite reads `{name}` as\n{own}\nand the model as\n{model}");
            (own != model).then(text)
        };
        let differ: Vec<String> = own.iter().filter_map(differ).collect();
        if !differ.is_empty() {
            return differ;
        }
    }
    Vec::new()
}

/// Returns an answer in words: of an error only its kind, since the texts of errors may differ.
fn shown<T: Debug>(answer: Result<T>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}
