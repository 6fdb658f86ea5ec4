//! Numbers of the stash. `evals stash` measures them.

/// The weight of relevance: how well the words and the meaning of a segment fit the query. The first design had 0.6
/// here, and 0.2 for each of the two ages below. With the values of that design, the first five segments restore 9.5
/// percentage points less of the evidence of conversations that end now.
pub const WEIGHT_RELEVANCE: f64 = 0.9;
/// The weight of the age of the text.
pub const WEIGHT_AGE: f64 = 0.05;
/// The weight of the time since the text was stashed.
pub const WEIGHT_STASH_AGE: f64 = 0.05;
/// The number of days in which the age of the text loses 63% of its weight.
pub const AGE_DAYS: f64 = 30.0;
/// The number of days in which the time since the text was stashed loses 63% of its weight.
pub const STASH_AGE_DAYS: f64 = 7.0;
/// The least cosine of a hit, unless the call sets another limit. A limit of 0.7 would leave out 96% of the evidence
/// that is found. A limit of 0.2 would leave out 1.5% of the evidence and 3.6% of the rest.
pub const MIN_SIMILARITY: f64 = 0.0;
/// The maximum number of tokens (o200k) of the preview of a hit.
pub const PREVIEW: usize = 150;
