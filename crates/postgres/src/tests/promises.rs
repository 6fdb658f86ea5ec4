//! The promises of every engine hold for PostgreSQL, and a store of PostgreSQL with a fault breaks each.

use super::engine::Postgres;
use tiro_conformance::run;

mod holds {
    tiro_conformance::holds_if_there!(crate::tests::engine::Postgres::new);
}

mod broken {
    tiro_conformance::breaks_if_there!(crate::tests::engine::Postgres::new);
}

#[test]
fn a_returned_summary_is_of_the_living_messages_of_its_range() {
    if Postgres::new().is_some() {
        run::summaries_are_of_living_messages(&|| Box::new(Postgres::new().expect("it is there")));
    }
}

#[test]
fn histories_break_a_store_with_stale_summaries() {
    if Postgres::new().is_some() {
        run::histories_break_a_store_with_stale_summaries(&|| {
            Box::new(Postgres::new().expect("it is there"))
        });
    }
}
