//! Numbers of the stash. `evals stash` measures them.

/// The weight of how well words and meaning fit the query.
pub const RELEVANCE: f64 = 0.6;
/// The weight of the age of the text.
pub const AGE: f64 = 0.2;
/// The days in which the age of the text loses 63% of its weight.
pub const AGE_DAYS: f64 = 30.0;
/// The weight of the time since the text was stashed.
pub const STASH_AGE: f64 = 0.2;
/// The days in which the time since the text was stashed loses 63% of its weight.
pub const STASH_AGE_DAYS: f64 = 7.0;
/// The least cosine of a hit, unless the call names another.
pub const MIN_SIMILARITY: f64 = 0.0;
/// The most tokens (o200k) of the preview of a hit.
pub const PREVIEW: usize = 150;
