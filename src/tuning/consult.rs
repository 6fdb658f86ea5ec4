//! The numbers of consulting: how the window of an assistant is shared.

/// The share of the window that outdated copies of files and diffs may take before all files are sent again. The design
/// gives a third; shown by `evals resend`.
pub const STALE_SHARE: f64 = 1.0 / 3.0;

/// The share of the window that is kept free for the answer, if the provider sets no `max_output`. Arbitrary: 25,000 of
/// 200,000 tokens.
pub const ANSWER_SHARE: f64 = 1.0 / 8.0;

/// The share of the window that is kept free for later turns when files get their places. Arbitrary.
pub const GROWTH_SHARE: f64 = 1.0 / 8.0;
