//! The numbers of the gate for summaries by a model: the values at which a check rejects a summary.
//!
//! `evals gate` shows the effect of other values: how many true and false summaries are accepted. The values were
//! chosen with three kinds of summaries, one of which is LoCoMo's session summaries. One half of each kind was used to
//! choose the values, and the other half to check them.

/// The lowest quality, from 0 to 1, with which a model's summary is accepted. A check has this score if its value is at
/// the limit.
pub const LEAST_QUALITY: f64 = 0.8;

/// Two numbers of bits: how much likelier the order of the words must be in sentences than in shuffled words, and how
/// much likelier it must be to exclude any doubt. Each pair of neighbouring words that the messages also contain counts
/// as one bit. Shown by `evals gate`.
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

/// If the words of a summary have at least this total weight, [`SUPPORT_IF_LONG`] is added in full. Arbitrary.
pub const LONG: f64 = 60.0;

/// The support that excludes any doubt. Arbitrary.
pub const SUPPORTED: f64 = 0.9;

/// The smallest support of one sentence, and the least number of content words of a sentence that needs this support.
/// Shown by `evals gate`.
pub const SENTENCE: (f64, usize) = (0.08, 4);

/// The weight of evidence that counts as much evidence, and the prior weight that is added to less evidence. With much
/// evidence, a small excess of evidence against the named speaker is enough to reject a summary. [`BALANCE`] contains
/// both limits. Shown by `evals gate`.
pub const EVIDENCE: (f64, f64) = (15.0, 10.0);
/// The lowest balance of evidence that is accepted if there is much evidence, and the lowest if there is little. Shown by
/// `evals gate`; see [`EVIDENCE`].
pub const BALANCE: (f64, f64) = (-0.1, -0.2);

/// A sentence is compared with the negations of the messages only if the messages support at least this share of the
/// sentence. Arbitrary.
pub const KNOWN: f64 = 0.5;

/// A summary is a copy of a message if the message contains more than the first share of the summary's runs of four
/// words, and these runs are more than the second share of the message's own runs. Arbitrary.
pub const COPY: (f64, f64) = (0.8, 0.7);

/// A message that makes up more than this share of the conversation may be copied. Arbitrary.
pub const MOST_OF_ALL: f64 = 0.6;

/// At least one sentence of the summary must find its support after the first share of the messages, and support after
/// the second share excludes any doubt. Shown by `evals gate`.
pub const REACHED: (f64, f64) = (0.3, 0.8);

/// The limits of [`REACHED`] apply only to a summary of at least the first number of sentences, made from at least the
/// second number of messages. Arbitrary.
pub const REACHING: (usize, usize) = (3, 8);

/// A text counts as English if at least the first share of its words are English function words. Below the second
/// share, it counts as a text in another language. Measured: 98% of the true summaries have at least 20%, and German,
/// French and Spanish texts at most 6%.
pub const ENGLISH: (f64, f64) = (0.15, 0.08);

/// A text counts as written in the language of the messages if at least this share of its words is among the messages'
/// most frequent words. Arbitrary.
pub const SAME_LANGUAGE: f64 = 0.12;

/// A text counts as written in the language of the messages if the messages contain at least this share of its content
/// words. Arbitrary.
pub const SAME_WORDS: f64 = 0.35;
