//! The numbers of the gate for summaries by a model: from which values on a check refuses a summary.
//!
//! `evals gate` shows what another value would change: how many true and false summaries are accepted. The values were
//! chosen on half of LoCoMo's session summaries and half of each of two other kinds, and checked on the rest.

/// The lowest quality, from 0 to 1, with which a model's summary is accepted. A check scores this at its limit.
pub const LEAST_QUALITY: f64 = 0.8;

/// The fewest bits by which the order of words must be likelier in sentences than in shuffled words, and the bits from
/// which on the order is beyond doubt. Each pair of neighbouring words that the messages have counts as one bit. Shown
/// by `evals gate`.
pub const ORDER: (f64, f64) = (0.5, 10.0);

/// In a language other than English, the smallest share of pairs of neighbouring words that the messages must have too,
/// and the share from which on the order is beyond doubt. Measured on LoCoMo as if it were not English: 95% of true
/// summaries have 9%, and 95% of shuffled ones less than 7%.
pub const PAIRS: (f64, f64) = (0.04, 0.15);

/// The largest share of words that a comma or another mark may follow. More make a list. Shown by `evals gate`.
pub const MARKS: f64 = 0.4;

/// The support that a summary of a few words needs, as a share of the weight of its words; how much more a long one
/// needs; and how much more for each doubling of the messages beyond 16 passages. Shown by `evals gate`.
pub const SUPPORT: f64 = 0.2;
/// See [`SUPPORT`].
pub const SUPPORT_IF_LONG: f64 = 0.2;
/// See [`SUPPORT`].
pub const SUPPORT_PER_DOUBLING: f64 = 0.02;

/// The total weight of the words of a long summary. Arbitrary.
pub const LONG: f64 = 60.0;

/// The support from which on a summary is beyond doubt. Arbitrary.
pub const SUPPORTED: f64 = 0.9;

/// The smallest support of one sentence, and the fewest words of meaning of a sentence that needs it. Shown by `evals
/// gate`.
pub const SENTENCE: (f64, usize) = (0.08, 4);

/// The weight of evidence from which on a speaker may be doubted because of little more evidence against than for him,
/// the prior weight that is added to less evidence, and the balance that is still accepted with much and with little
/// evidence. Shown by `evals gate`.
pub const EVIDENCE: (f64, f64) = (15.0, 10.0);
/// See [`EVIDENCE`].
pub const BALANCE: (f64, f64) = (-0.1, -0.2);

/// A sentence is compared with the negations of the messages only if they support at least this share of it. Arbitrary.
pub const KNOWN: f64 = 0.5;

/// A summary is a copy of a message if it has more than the first share of its runs of four words from the message,
/// and more than the second share of the message's. Arbitrary.
pub const COPY: (f64, f64) = (0.8, 0.7);

/// A message that has more than this share of the conversation may be copied. Arbitrary.
pub const MOST_OF_ALL: f64 = 0.6;

/// The share of the messages after which at least one sentence of the summary must find its support, and the share from
/// which on this is beyond doubt. Shown by `evals gate`.
pub const REACHED: (f64, f64) = (0.3, 0.8);

/// Only a summary of at least this many sentences, of at least this many messages, must reach so far. Arbitrary.
pub const REACHING: (usize, usize) = (3, 8);

/// The share of English function words from which on a text is English, and below which it is another language.
/// Measured: 98% of the true summaries have at least 20%, and German, French and Spanish texts at most 6%.
pub const ENGLISH: (f64, f64) = (0.15, 0.08);

/// A text has the language of the messages if at least this share of its words is among the messages' most frequent
/// words. Arbitrary.
pub const SAME_LANGUAGE: f64 = 0.12;

/// A text in which the messages have at least this share of the words of meaning is in their language. Arbitrary.
pub const SAME_WORDS: f64 = 0.35;
