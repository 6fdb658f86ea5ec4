//! Tests against a server of PostgreSQL. `TIRO_TEST_POSTGRES` has its address; `.ci/run` starts servers and runs the
//! tests with each. Without it, the tests say that they were skipped.

mod backups;
pub(crate) mod engine;
mod found;
mod graphs;
mod growing;
mod promises;
mod purging;
mod refused;
mod shared;
mod spread;
mod stores;
mod texts;
mod waiting;
