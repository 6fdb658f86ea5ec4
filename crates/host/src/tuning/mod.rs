//! The numbers that were tuned: weights, shares, half-lives and thresholds, by subject.
//!
//! Each is in the crate that reads it; these are the ones that the program itself reads. docs/tuning.md lists all.
//!
//! A number is one of them if another value would change which memories are found, shown or kept, or how long users and
//! processes wait for that. Each doc comment gives the number's unit and says what the number is based on:
//!
//! - *measured*: values were compared, and the figures are given;
//! - *shown by* a command: that command shows what another value would change, but no comparison is on record;
//! - *arbitrary*: nothing measures it.
//!
//! To change a number, run its command before and after, and give both figures. A number that follows from others is
//! computed from them.
//!
//! Limits that protect against large or hostile input, deadlines, and batch sizes are not here, but next to the code
//! that enforces them. Defaults that users can change are options (`config/options.rs`); an option whose default was
//! tuned takes it from here.
//!
//! The commands:
//!
//! | short | command | measures |
//! |---|---|---|
//! | `evals retrieval` | `cargo run --release -p evals -- retrieval --suite DIR --out RUN.jsonl` | evidence among the first 10 hits, on LoCoMo |
//! | `evals commits` | `cargo run --release -p evals -- commits --repo bat --suite DIR --out RUN.jsonl` | commits for lines of a changelog, first 10 |
//! | `evals budget` | `cargo run --release -p evals -- budget --suite DIR --budgets 1000,2000,4000,8000` | evidence kept by a context across conversations |
//! | `evals tiers` | `cargo run --release -p evals -- tiers --suite DIR --every 4` | tokens saved and evidence kept within one long conversation |
//! | `evals summaries` | `cargo run --release -p evals -- summaries --suite DIR` | words of answers kept by summaries |
//! | `evals gate` | `cargo run --release -p evals -- gate --suite DIR` | true and false summaries by a model that are accepted |
//! | `evals join` | `cargo run --release -p evals -- join --works 100 --seed 601`; with `--repo DIR` for the lines of real commits | precision and recall of the sessions linked to commits |
//! | `evals latency` | `cargo run --release -p evals -- latency --docs 100000` | time of searches and contexts |

pub mod consult;
pub mod forgetting;
