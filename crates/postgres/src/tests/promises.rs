//! The promises of every engine hold for PostgreSQL, and a store of PostgreSQL with a fault breaks each.

use std::sync::Arc;

use super::engine::Postgres;
use tiro_conformance::exchange::converging::{self, Stores};
use tiro_conformance::run;
use tiro_conformance::subject::{Engine, project};
use tiro_sqlite::SqliteStore;
use tiro_store::Flavour;

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

#[test]
fn stores_of_a_server_and_of_files_become_equal() {
    if Postgres::new().is_none() {
        return;
    }
    converging::stores_become_equal(8, &|| -> Stores {
        let (server, client) = (Postgres::new().expect("it is there"), Postgres::new().expect("it is there"));
        let folder = tempfile::tempdir().unwrap();
        let file = SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project()).unwrap();
        (vec![server.open(), Arc::new(file), client.open()], Box::new((server, client, folder)))
    });
}
