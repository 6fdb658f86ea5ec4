//! The promises of every engine hold for SQLite, and a store of SQLite with a fault breaks each.

use super::engine::Sqlite;
use tiro_conformance::run;

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
