//! Runs every promise twice: it holds for SQLite, and is broken by its fault.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::broken::{Broken, Fault};
use super::place::{NO_ANSWER, Place};
use super::promises;
use super::subject::{Engine, Sqlite};

/// The longest that a promise takes; a broken store may keep one waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a promise against the engine; returns the message of its panic where it is broken.
fn run<E: Engine>(engine: E, promise: impl AsyncFnOnce(Place<E>)) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let kept = async { tokio::time::timeout(PATIENCE, promise(Place::new(engine))).await };
    let kept = catch_unwind(AssertUnwindSafe(|| runtime.block_on(kept)));
    let panic = match kept {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(_)) => return Err("it did not end".into()),
        Err(panic) => panic,
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    Err(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
}

/// Asserts that the promise holds.
fn holds(promise: impl AsyncFnOnce(Place<Sqlite>)) {
    if let Err(message) = run(Sqlite::new(), promise) {
        panic!("{message}");
    }
}

/// Asserts that the fault breaks the promise, by a wrong answer rather than by none.
fn breaks(fault: Fault, promise: impl AsyncFnOnce(Place<Broken<Sqlite>>)) {
    let message = run(Broken::new(Sqlite::new(), fault), promise).expect_err("the fault goes unseen");
    assert!(!message.contains(NO_ANSWER), "it fails for another reason than the fault: {message}");
}

macro_rules! tests {
    ($($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        mod holds {
            $(mod $subject {
                $(#[test]
                fn $promise() {
                    super::super::holds(super::super::super::$subject::$promise);
                })+
            })+
        }

        mod broken {
            $(mod $subject {
                use super::super::super::broken::Fault;

                $(#[test]
                fn $promise() {
                    super::super::breaks(Fault::$fault, super::super::super::$subject::$promise);
                })+
            })+
        }

        /// Every promise, with the fault that breaks it.
        const PROMISES: &[(&str, Fault)] = &[$($((stringify!($promise), Fault::$fault),)+)+];
    };
}
promises!(tests);

#[test]
fn promises_have_names_of_their_own() {
    let names: HashSet<&str> = PROMISES.iter().map(|(name, _)| *name).collect();
    let faults: HashSet<Fault> = PROMISES.iter().map(|(_, fault)| *fault).collect();
    eprintln!("{} promises, each broken by one of {} faults", names.len(), faults.len());
    assert_eq!(names.len(), PROMISES.len(), "two promises have one name");
}
