//! The numbers of the gate for summaries by a model: the values at which a check rejects a summary.
//!
//! `evals gate` shows the effect of other values: how many true and false summaries are accepted. The values were
//! chosen on half of LoCoMo's session summaries and half of each of two other kinds, and checked on the rest.

/// The lowest quality, from 0 to 1, with which a model's summary is accepted. A check has this score if its value is at
/// the limit.
pub const LEAST_QUALITY: f64 = 0.8;

/// How much likelier the order of words must be in sentences than in shuffled words, in bits, and the number of bits
/// that excludes any doubt. Each pair of neighbouring words that the messages also contain counts as one bit. Shown by
/// `evals gate`.
pub const ORDER: (f64, f64) = (0.5, 10.0);

/// In a language other than English, the smallest share of pairs of neighbouring words that the messages must also
/// contain, and the share that excludes any doubt. Measured on LoCoMo as if it were not English: in 95% of the true
/// summaries, the share is at least 9%, and in 95% of the shuffled ones, it is less than 7%.
pub const PAIRS: (f64, f64) = (0.04, 0.15);

/// The largest share of words that may be followed by a comma or another mark. With more marks, the text is a list.
/// Shown by `evals gate`.
pub const MARKS: f64 = 0.4;

/// The support that a summary of a few words needs, as a share of the weight of its words. [`SUPPORT_IF_LONG`] is added
/// for a long summary, and [`SUPPORT_PER_DOUBLING`] for each doubling of the messages beyond 16 passages. Shown by
/// `evals gate`.
pub const SUPPORT: f64 = 0.2;
/// See [`SUPPORT`].
pub const SUPPORT_IF_LONG: f64 = 0.2;
/// See [`SUPPORT`].
pub const SUPPORT_PER_DOUBLING: f64 = 0.02;

/// The total weight of the words of a long summary. Arbitrary.
pub const LONG: f64 = 60.0;

/// The support that excludes any doubt. Arbitrary.
pub const SUPPORTED: f64 = 0.9;

/// The smallest support of one sentence, and the least number of content words of a sentence that needs this support.
/// Shown by `evals gate`.
pub const SENTENCE: (f64, usize) = (0.08, 4);

/// The weight of evidence from which on the limit for much evidence applies, and the prior weight that is added to less
/// evidence. With much evidence, a small excess of evidence against the named speaker is enough to reject a summary.
/// [`BALANCE`] contains both limits. Shown by `evals gate`.
pub const EVIDENCE: (f64, f64) = (15.0, 10.0);
/// The lowest balance of evidence that is accepted if there is much evidence, and the lowest if there is little. Shown by
/// `evals gate`; see [`EVIDENCE`].
pub const BALANCE: (f64, f64) = (-0.1, -0.2);

/// A sentence is compared with the negations of the messages only if they support at least this share of it. Arbitrary.
pub const KNOWN: f64 = 0.5;

/// A summary is a copy of a message if more than the first share of the summary's runs of four words are in the
/// message, and they are more than the second share of the message's runs. Arbitrary.
pub const COPY: (f64, f64) = (0.8, 0.7);

/// A message that makes up more than this share of the conversation may be copied. Arbitrary.
pub const MOST_OF_ALL: f64 = 0.6;

/// At least one sentence of the summary must find its support after the first share of the messages, and support after
/// the second share excludes any doubt. Shown by `evals gate`.
pub const REACHED: (f64, f64) = (0.3, 0.8);

/// Only a summary of at least this many sentences, made from at least this many messages, must reach so far. Arbitrary.
pub const REACHING: (usize, usize) = (3, 8);

/// The share of English function words from which on a text counts as English, and the share below which it counts as
/// another language. Measured: 98% of the true summaries have at least 20%, and German, French and Spanish texts at
/// most 6%.
pub const ENGLISH: (f64, f64) = (0.15, 0.08);

/// A text counts as written in the language of the messages if at least this share of its words is among the messages'
/// most frequent words. Arbitrary.
pub const SAME_LANGUAGE: f64 = 0.12;

/// A text counts as written in the language of the messages if the messages contain at least this share of its content
/// words. Arbitrary.
pub const SAME_WORDS: f64 = 0.35;
