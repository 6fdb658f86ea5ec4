//! Estimates whether the best hits of a search answer the question. The functions here are pure. The numbers are in
//! [`tuning::ranking`](crate::tuning::ranking).
//!
//! Every search finds something. So an answer that shows the best hits must say if none of them is about the question.
//! A hit counts by the share of the question's words that it contains, and by its cosine with the question. Two more
//! signs show that a hit does not answer: the question contains a name that no memory contains, or the question names
//! a speaker but somebody else said the hit. If there is doubt, the hits count as an answer, because an answer that
//! is denied is lost.

use std::collections::HashSet;

use super::rank::{Ranked, names_speaker};
use crate::tuning::ranking;
use tiro_base::memory::{Kind, Role};

/// The number of the best hits that are compared with the question. The numbers were measured with this number.
pub const BEST: usize = 10;

/// What is known of a question before its hits are compared with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether the question contains a name that no memory of the searched stores contains.
    pub lacks_name: bool,
    /// Whether the question has an answer in any case. It asks for an order, for an overview or for the latest
    /// sessions, or it names a commit that was found.
    pub is_answered: bool,
    /// Whether the embedding model reads the language of the question.
    pub reads_meaning: bool,
}

/// What the best hits of a search say about the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One of the hits may answer the question, or there are no hits.
    MayAnswer,
    /// No hit is about the question.
    Nothing,
    /// The question names a speaker. The hits that are about the question are messages of other speakers.
    SaidByOthers,
}

impl Verdict {
    /// Returns the notice for an answer with this verdict.
    pub fn notice(self) -> Option<&'static str> {
        match self {
            Verdict::MayAnswer => None,
            Verdict::Nothing => {
                Some("nothing here is about this; these are the nearest, and may be unrelated")
            }
            Verdict::SaidByOthers => {
                Some("nothing here is about this from the person named; others said the nearest")
            }
        }
    }
}

/// Returns whether `hits`, the best hits of a search, answer the question. Each hit comes with the share of the
/// question's words that it contains, weighted by their rarity. `words` are the words of the question.
pub fn verdict(hits: &[(&Ranked, f64)], words: &[String], asked: Asked) -> Verdict {
    let hits = &hits[..hits.len().min(BEST)];
    if hits.is_empty() || asked.is_answered {
        return Verdict::MayAnswer;
    }
    let cosine = |hit: &Ranked| hit.cosine.filter(|_| asked.reads_meaning);
    let is_commit = |hit: &Ranked| hit.place.kind == Kind::Commit;
    if !hits.iter().any(|(hit, share)| may_answer(*share, cosine(hit), is_commit(hit), asked.lacks_name)) {
        return Verdict::Nothing;
    }
    let weighed: Vec<(&Ranked, f64)> =
        hits.iter().map(|(hit, share)| (*hit, share + cosine(hit).unwrap_or(0.0))).collect();
    match lead_of_others(&weighed, words).is_some_and(|lead| lead > ranking::LEAD_OF_OTHERS) {
        true => Verdict::SaidByOthers,
        false => Verdict::MayAnswer,
    }
}

/// Returns whether a hit may answer the question. `share` is the share of the question's words that the hit contains.
/// `cosine` is its cosine with the question, if the meaning of both is known. `lacks_name` says whether the question
/// contains a name that no memory contains.
fn may_answer(share: f64, cosine: Option<f64>, is_commit: bool, lacks_name: bool) -> bool {
    let (evidence, unknown_name, least) = match cosine {
        None => (share, ranking::UNKNOWN_NAME_BY_WORDS, ranking::ANSWERING_BY_WORDS),
        Some(cosine) => {
            let least = if is_commit { ranking::ANSWERING_COMMIT } else { ranking::ANSWERING };
            (share + ranking::COSINE_AS_EVIDENCE * cosine, ranking::UNKNOWN_NAME, least)
        }
    };
    evidence >= least + if lacks_name { unknown_name } else { 0.0 }
}

/// Returns how much better the best message of another speaker is than the best message of the speaker whom the
/// question names. Returns `None` if the question names none of the speakers of `hits` or several of them, or if only
/// one of the two sides has a message.
fn lead_of_others(hits: &[(&Ranked, f64)], words: &[String]) -> Option<f64> {
    let said: Vec<(&str, f64)> =
        hits.iter().filter_map(|(hit, weight)| Some((speaker(hit)?, *weight))).collect();
    let named: HashSet<&str> =
        said.iter().map(|(name, _)| *name).filter(|name| names_speaker(words, name)).collect();
    if named.len() != 1 {
        return None;
    }
    let best = |is_named: bool| {
        let own = said.iter().filter(|(name, _)| named.contains(name) == is_named);
        own.map(|(_, weight)| *weight).max_by(f64::total_cmp)
    };
    Some(best(false)? - best(true)?)
}

/// Returns the name of the person who said the message. A message whose speaker is only called by the role, such as
/// `user`, has no such name.
fn speaker(hit: &Ranked) -> Option<&str> {
    let is_role = |name: &str| Role::parse(&name.to_lowercase()).is_some();
    hit.place.speaker.as_deref().filter(|name| hit.place.kind == Kind::Message && !is_role(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::rank::tests::ranked;

    const READS: Asked = Asked { lacks_name: false, is_answered: false, reads_meaning: true };

    fn hit(speaker: Option<&str>, cosine: Option<f64>) -> Ranked {
        let mut hit = ranked();
        (hit.cosine, hit.place.speaker) = (cosine, speaker.map(str::to_owned));
        hit
    }

    /// Returns the verdict on hits with these speakers, shares and cosines.
    fn judged(hits: &[(&str, f64, f64)], question: &str, asked: Asked) -> Verdict {
        let ranked: Vec<Ranked> =
            hits.iter().map(|(name, _, cosine)| hit(Some(name), Some(*cosine))).collect();
        let hits: Vec<(&Ranked, f64)> =
            ranked.iter().zip(hits).map(|(hit, (_, share, _))| (hit, *share)).collect();
        let words: Vec<String> = question.split(' ').map(str::to_owned).collect();
        verdict(&hits, &words, asked)
    }

    #[test]
    fn words_and_meaning_count_together() {
        for (share, cosine, is_answer) in [
            (1.0, 0.3, true),  // the same words
            (0.1, 0.5, true),  // other words of the same meaning
            (0.3, 0.4, true),  // a little of both
            (0.3, 0.2, false), // a word in common
            (0.1, 0.3, false),
            (0.0, 0.0, false),
        ] {
            assert_eq!(may_answer(share, Some(cosine), false, false), is_answer, "{share} {cosine}");
        }
    }

    #[test]
    fn without_a_meaning_a_small_share_of_the_words_is_enough() {
        assert!(may_answer(0.2, None, false, false) && !may_answer(0.1, None, false, false));
        assert!(may_answer(0.4, None, false, true) && !may_answer(0.2, None, false, true));
        assert!(may_answer(0.2, None, true, false), "commits have the same bound");
    }

    #[test]
    fn a_commit_needs_more_than_a_message() {
        assert!(may_answer(0.1, Some(0.4), false, false) && !may_answer(0.1, Some(0.4), true, false));
        assert!(may_answer(0.5, Some(0.4), true, false));
    }

    #[test]
    fn a_question_with_an_unknown_name_needs_more() {
        assert!(!may_answer(0.2, Some(0.45), false, true) && may_answer(0.2, Some(0.45), false, false));
        assert!(may_answer(0.7, Some(0.5), false, true));
    }

    #[test]
    fn far_hits_are_nothing_unless_the_question_asks_for_much() {
        let far = [("Ada", 0.1, 0.2), ("Bob", 0.2, 0.1)];
        assert_eq!(judged(&far, "quince harvest", READS), Verdict::Nothing);
        assert_eq!(judged(&far, "summary", Asked { is_answered: true, ..READS }), Verdict::MayAnswer);
        assert_eq!(judged(&[], "quince harvest", READS), Verdict::MayAnswer);
        let late: Vec<_> = (0..=BEST).map(|n| ("Ada", if n == BEST { 1.0 } else { 0.0 }, 0.0)).collect();
        assert_eq!(judged(&late, "quince harvest", READS), Verdict::Nothing);
    }

    #[test]
    fn cosines_do_not_count_if_the_model_does_not_read_the_language() {
        let hits = [("Ada", 0.2, 0.1)];
        assert_eq!(judged(&hits, "quittenernte", READS), Verdict::Nothing);
        assert_eq!(
            judged(&hits, "quittenernte", Asked { reads_meaning: false, ..READS }),
            Verdict::MayAnswer
        );
    }

    #[test]
    fn what_somebody_else_said_does_not_answer_for_the_person_who_is_named() {
        let hits = [("Ada", 0.9, 0.6), ("Bob", 0.2, 0.4)];
        assert_eq!(judged(&hits, "what did bob plant", READS), Verdict::SaidByOthers);
        for other in ["what did ada plant", "what was planted", "what did ada and bob plant"] {
            assert_eq!(judged(&hits, other, READS), Verdict::MayAnswer, "{other}");
        }
        let close = [("Ada", 0.9, 0.6), ("Bob", 0.6, 0.5)];
        assert_eq!(judged(&close, "what did bob plant", READS), Verdict::MayAnswer);
        // Nothing of Bob was found, so it is unknown whether he is a speaker.
        assert_eq!(judged(&hits[..1], "what did bob plant", READS), Verdict::MayAnswer);
    }

    #[test]
    fn a_role_is_not_a_name() {
        let hits = [("assistant", 0.9, 0.6), ("user", 0.2, 0.4)];
        assert_eq!(judged(&hits, "how does a user log in", READS), Verdict::MayAnswer);
    }
}
