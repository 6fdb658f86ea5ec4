//! The promises of every engine hold for SQLite, and a store of SQLite with a fault breaks each.

use super::engine::Sqlite;
use tiro_conformance::broken::{Broken, Fault};
use tiro_conformance::exchange::converging::{self, Stores};
use tiro_conformance::run;
use tiro_conformance::subject::Engine;

mod holds {
    tiro_conformance::holds!(crate::tests::engine::Sqlite::new);
}

mod broken {
    tiro_conformance::breaks!(crate::tests::engine::Sqlite::new);
}

#[test]
fn a_returned_summary_is_of_the_living_messages_of_its_range() {
    run::summaries_are_of_living_messages(&|| Box::new(Sqlite::new()));
}

#[test]
fn histories_break_a_store_with_stale_summaries() {
    run::histories_break_a_store_with_stale_summaries(&|| Box::new(Sqlite::new()));
}

#[test]
fn stores_that_exchange_their_memories_become_equal() {
    converging::stores_become_equal(24, &|| {
        let engines = [Sqlite::new(), Sqlite::new(), Sqlite::new()];
        (engines.iter().map(|engine| engine.open()).collect(), Box::new(engines))
    });
}

#[test]
fn stores_of_which_one_takes_every_change_for_the_latest_differ() {
    converging::stores_with_a_fault_differ(&|| -> Stores {
        let sound = [Sqlite::new(), Sqlite::new()];
        let broken = Broken::new(Box::new(Sqlite::new()), Fault::TakesWhatComes);
        let stores = vec![sound[0].open(), broken.open(), sound[1].open()];
        (stores, Box::new((sound, broken)))
    });
}
