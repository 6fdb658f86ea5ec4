//! Links between commits and sessions: the confidence of each kind of evidence, from 0 to 1.
//!
//! The values are set by hand. Their order matters more than the values: an id that git printed, a call at the time of the
//! commit, lines in the commit, a changed file without known lines. `evals join` gives a precision of 100% and a recall of
//! 99.3% with the values below; the figures at single values are those of the same run with another value.

use crate::memory::Millis;

/// Milliseconds of a day.
pub const DAY: Millis = 24 * 60 * 60 * 1000;

/// The lowest confidence of a link. Arbitrary. A trigger of the schema refuses less, too
/// (`migrations/0007_weak_links.sql`), so a lower value changes nothing.
pub const LEAST_CONFIDENCE: f64 = 0.5;

/// How long before a commit a change may belong to it, in milliseconds: a month. Arbitrary.
pub const HORIZON: Millis = 30 * DAY;

/// How long after a commit was first made it may be amended and contain later changes, in milliseconds: two days.
/// Arbitrary.
pub const AMENDED_WITHIN: Millis = 2 * DAY;

/// Confidence if git printed the commit's id in the session. Shown by `evals join`.
pub const PRINTED_ID: f64 = 0.99;

/// Confidence if a call that commits ran in the commit's work tree at the time that the reflog records. Shown by
/// `evals join`.
pub const CALL_AT_REFLOG_TIME: f64 = 0.9;

/// Confidence if a call that commits ran at the time in the commit, and no reflog records it. Arbitrary.
pub const CALL_AT_COMMIT_TIME: f64 = 0.8;

/// Confidence if the session changed a file of the commit, and the lines are unknown. Measured by `evals join`: 0.4, too
/// little for a link, gives a recall of 94.1%.
pub const FILE_ALONE: f64 = 0.6;

/// The same, if another commit contained the file since the change. Measured by `evals join`: 0.6 gives a precision of 79.4%.
pub const FILE_IN_OTHER_COMMIT: f64 = 0.2;

/// Factor on [`FILE_ALONE`] for a change more than a day old. Arbitrary.
pub const AFTER_A_DAY: f64 = 0.9;

/// Factor on [`FILE_ALONE`] for a change more than a week old: too little for a link. Arbitrary.
pub const AFTER_A_WEEK: f64 = 0.7;

/// Confidence if the commit contains none of the changed lines. Shown by `evals join`.
pub const NO_LINES: f64 = 0.05;

/// Confidence if the commit contains any of the changed lines; [`HALF_OF_LINES`] is added. Arbitrary: `evals join` gives the
/// same with 0.5, which makes one line enough for a link.
pub const SOME_LINES: f64 = 0.3;

/// Added to [`SOME_LINES`] in proportion to the share of the changed lines that the commit contains, in full from half of
/// them on. A sixth of the lines is enough for a link. Shown by `evals join`.
pub const HALF_OF_LINES: f64 = 0.65;

/// The share of a commit's lines in a file that known lines must explain, so that sessions without known lines are not
/// linked by that file. Arbitrary: `evals join` gives the same without it.
pub const EXPLAINED: f64 = 0.9;

/// Sessions that must have written a line to make it no evidence. Measured by `evals join`: without this rule precision is
/// 98.5%. The number itself is arbitrary: two sessions may work on the same code, more rarely do.
pub const MANY_WRITERS: usize = 3;

/// Factor for a change in another work tree, if a session changed the file in the commit's own work tree. Arbitrary:
/// `evals join` gives the same without it.
pub const OTHER_TREE: f64 = 0.4;

/// Factor for a change in another work tree, if no session changed the file in the commit's own. Arbitrary:
/// `evals join` gives the same without it.
pub const ONLY_OTHER_TREE: f64 = 0.9;

/// Added to the confidence for each further file of the commit that links the session. Arbitrary.
pub const FURTHER_FILE: f64 = 0.02;

/// The highest confidence that several files give: below [`PRINTED_ID`]. Arbitrary.
pub const MOST_BY_FILES: f64 = 0.97;

/// Factor on the confidence of a link that a commit takes over from one that it replaces. Arbitrary.
pub const INHERITED: f64 = 0.95;
