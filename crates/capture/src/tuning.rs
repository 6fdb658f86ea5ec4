//! The tuned numbers of this crate. One is the time for finding out whether the commits and files in memories still
//! exist. The others are for links between commits and sessions, such as the confidence, from 0 to 1, of each kind of
//! evidence.
//!
//! The confidences of links are set by hand. Their order matters more than the values themselves. From strong to weak,
//! the evidence is: an id that git printed, a call at the time of the commit, lines in the commit, and a changed file
//! without known lines. With the values below, `evals join` gives a precision of 100% and a recall of 99.3%. A figure
//! in the doc comment of a value comes from the same run with only that value changed.

use std::time::Duration;

use tiro_base::memory::Millis;

/// How long one answer may read git to find out which commits are reachable, if that is not known yet. This is long
/// enough for about 40,000 commits; the next answer continues. Measured by the ignored test
/// `a_page_of_hits_takes_milliseconds`.
pub const FRESHNESS_PATIENCE: Duration = Duration::from_millis(400);

/// How long one answer may read git to find out what became of the code that its notes name; the next answer continues.
/// Arbitrary: about 60 MB of source code.
pub const NAMES_PATIENCE: Duration = Duration::from_millis(300);

/// A day in milliseconds.
pub const DAY: Millis = 24 * 60 * 60 * 1000;

/// How much older than its commit a change may be, in milliseconds: a month. Arbitrary.
pub const HORIZON: Millis = 30 * DAY;

/// How long a commit may still be amended, and so gain later changes, in milliseconds: two days. Arbitrary.
pub const AMENDED_WITHIN: Millis = 2 * DAY;

/// The confidence if git printed the commit's id in the session. Shown by `evals join`.
pub const PRINTED_ID: f64 = 0.99;

/// The confidence if a tool call that made a commit ran in the commit's work tree, at the time that the reflog records
/// for the commit. Shown by `evals join`.
pub const CALL_AT_REFLOG_TIME: f64 = 0.9;

/// The confidence if no reflog records the commit, but some tool call made a commit at the time given in this
/// commit's header. Arbitrary.
pub const CALL_AT_COMMIT_TIME: f64 = 0.8;

/// The confidence if the session changed a file of the commit, but the changed lines are unknown. Measured by `evals
/// join`: with 0.4, which is too little for a link, recall is 94.1%.
pub const FILE_ALONE: f64 = 0.6;

/// The confidence if the session changed a file of the commit, the changed lines are unknown, and another commit has
/// changed the file since. Measured by `evals join`: with 0.6, precision is 79.4%.
pub const FILE_IN_OTHER_COMMIT: f64 = 0.2;

/// The factor on [`FILE_ALONE`] if the change is more than a day older than the commit. Arbitrary.
pub const AFTER_A_DAY: f64 = 0.9;

/// The factor on [`FILE_ALONE`] if the change is more than a week older than the commit. The product is too little for
/// a link. Arbitrary.
pub const AFTER_A_WEEK: f64 = 0.7;

/// The confidence if the commit contains none of the changed lines. Shown by `evals join`.
pub const NO_LINES: f64 = 0.05;

/// The confidence if the commit contains any of the changed lines, before a part of [`HALF_OF_LINES`] is added.
/// Arbitrary: `evals join` gives the same result with 0.5, although a single line is then enough for a link.
pub const SOME_LINES: f64 = 0.3;

/// Added to [`SOME_LINES`] in proportion to the share of the changed lines that the commit contains, and in full if it
/// contains at least half of them. A sixth of the lines is enough for a link. Shown by `evals join`.
pub const HALF_OF_LINES: f64 = 0.65;

/// If sessions with known lines wrote at least this share of a commit's lines in a file, this file links no session
/// without known lines to the commit. Arbitrary: `evals join` gives the same result without this rule.
pub const EXPLAINED: f64 = 0.9;

/// A line that at least this many sessions wrote is no evidence. Measured by `evals join`: without this rule, precision
/// is 98.5%. The number itself is arbitrary: two sessions may well work on the same code, but three or more seldom do.
pub const MANY_WRITERS: usize = 3;

/// The factor for a change that was not made in the commit's work tree, if some session changed the same file in that
/// work tree. Arbitrary: `evals join` gives the same result without this factor.
pub const OTHER_TREE: f64 = 0.4;

/// The factor for a change that was not made in the commit's work tree, if no session changed the same file in that
/// work tree. Arbitrary: `evals join` gives the same result without this factor.
pub const ONLY_OTHER_TREE: f64 = 0.9;

/// Added to the confidence for each further file of the commit that links the session. Arbitrary.
pub const FURTHER_FILE: f64 = 0.02;

/// The highest confidence that several files can give together. It is lower than [`PRINTED_ID`]. Arbitrary.
pub const MOST_BY_FILES: f64 = 0.97;

/// If a commit replaces another commit, it inherits that commit's links, with their confidence multiplied by this
/// factor. Arbitrary.
pub const INHERITED: f64 = 0.95;
