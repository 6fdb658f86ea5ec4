//! Each file tests one promise of Tiro with the real program. Most tests talk to `tiro serve` over its stdin and
//! stdout. Each has a separate home without a model, so that search is only by words and gives the same results
//! everywhere.
#![allow(
    clippy::disallowed_methods,
    reason = "tests run `git` and the program itself, and read the environment"
)]

mod accounts;
mod agrees;
mod answers;
mod arrives;
mod backs_up;
mod bad_input;
mod behind;
#[cfg(target_os = "linux")]
mod bounded;
mod calls;
mod commits_in_short;
mod compacts;
mod consults;
mod context;
#[cfg(unix)]
mod deploys;
mod derived;
#[cfg(target_os = "linux")]
mod disk_fails;
#[cfg(unix)]
mod documented;
mod documents;
mod embeds;
mod encodings;
mod explains;
mod extracts;
mod finds;
mod flips;
mod follows;
mod forges;
mod forgets;
mod harness;
#[cfg(unix)]
mod hostile_repositories;
#[cfg(unix)]
mod installed;
mod judges;
mod keeps_out;
mod large;
mod leaves;
mod links;
mod lists;
mod lives_beside;
mod looks;
mod many_documents;
mod migrates;
mod misbehaves;
mod mock;
mod names_clients;
mod never_over_budget;
mod newer_clients;
mod odd_histories;
mod opens;
mod options;
mod packaging;
mod person;
mod previews;
mod private_files;
mod redaction;
mod remembers;
#[cfg(unix)]
mod replaced;
mod restores;
mod retires;
mod rots;
mod running;
mod scopes;
mod sent;
mod serves_http;
mod set_up_again;
mod sets_up;
mod shares;
mod shares_by_keys;
mod shares_with_teams;
mod shows;
mod spends;
mod starts;
mod stash;
mod summaries;
mod superseded;
#[cfg(unix)]
mod survives;
mod syncs;
mod talk;
mod tidy;
mod tokens_in_names;
#[cfg(unix)]
mod tries;
#[cfg(unix)]
mod unwritable;
mod web;
mod worth;
mod written;
