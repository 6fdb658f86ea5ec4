//! Ranks candidates. The functions here are pure, and of candidates with equal scores the newer one comes first. The
//! weights are in [`tuning::ranking`](crate::tuning::ranking).
//!
//! The score of a candidate is a sum of parts, each between 0 and its weight: its BM25 as a share of the query's best
//! BM25, its cosine, and small bonuses. So scores of different kinds of memories can be compared. On real
//! conversations, adding scores gives 12 percentage points more recall at 10 than adding ranks. Normalising by z-scores
//! gains nothing. Adding a part of a neighbour's score gains nothing either, because the index already contains the
//! neighbours' words.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::retrieve::prior;
use crate::tuning::ranking;
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Millis, Role};
use tiro_store::{ChunkKey, Neighbour, SessionKey};

/// The weights of the parts of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// BM25, as a share of the query's best BM25.
    pub lexical: f64,
    /// The cosine.
    pub semantic: f64,
    /// A speaker whom the query names.
    pub speaker: f64,
    /// The user's mark, or the importance from 0 to 1 that the memory's author gave it.
    pub importance: f64,
    /// The factor on BM25 and cosine of a memory that represents a whole session.
    pub conversation: f64,
    /// The amount by which the score of an assistant's long answer is lowered.
    pub answer: f64,
    /// The share of a long answer's score that is added to the user's message right before it.
    pub exchange: f64,
    /// The amount by which the score of a commit by a program is lowered.
    pub bot: f64,
    /// The amount by which a hit's score is lowered for each better hit of the same session. This affects only the
    /// order of the hits.
    pub repetition: f64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            lexical: ranking::LEXICAL,
            semantic: ranking::SEMANTIC,
            speaker: ranking::SPEAKER,
            importance: ranking::IMPORTANCE,
            conversation: ranking::CONVERSATION,
            answer: ranking::ANSWER,
            exchange: ranking::EXCHANGE,
            bot: ranking::BOT,
            repetition: ranking::REPETITION,
        }
    }
}

impl Weights {
    /// Returns the weights for a context, in which the user's messages come first.
    pub fn of_context() -> Weights {
        Weights {
            answer: ranking::ANSWER_IN_CONTEXT,
            exchange: ranking::EXCHANGE_IN_CONTEXT,
            ..Weights::default()
        }
    }

    /// Returns the weights for a question about statements of the assistant. With these weights, long answers count
    /// like other messages.
    pub fn with_answers(self) -> Weights {
        Weights { answer: 0.0, exchange: 0.0, ..self }
    }
}

/// A chunk that one of the searches found.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The number of the searched store that contains the chunk.
    pub store: usize,
    /// The key of the chunk in that store.
    pub chunk: ChunkKey,
    /// The chunk's BM25; 0 if the lexical search didn't return the chunk.
    pub lexical: f64,
    /// The chunk's cosine with the query, if both have an embedding.
    pub cosine: Option<f64>,
    /// The fields of the chunk's memory that ranking needs.
    pub place: Neighbour,
}

/// The parts of a score, each multiplied by its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The part for BM25.
    pub lexical: f64,
    /// The part for the cosine.
    pub semantic: f64,
    /// The part for the speaker's name.
    pub speaker: f64,
    /// The part for the user's mark or the importance that the author gave.
    pub importance: f64,
    /// The part that a user's message gets from the assistant's answer right after it.
    pub exchange: f64,
    /// The part that doesn't depend on the query; 0 or less.
    pub prior: f64,
}

impl Parts {
    /// Returns the score, which is the sum of all parts.
    pub fn sum(&self) -> f64 {
        self.lexical + self.semantic + self.speaker + self.importance + self.exchange + self.prior
    }
}

/// A memory that the search found, with its best chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The number of the searched store that contains the memory.
    pub store: usize,
    /// The memory's best chunk in that store.
    pub chunk: ChunkKey,
    /// The fields of the memory that ranking needs.
    pub place: Neighbour,
    /// The score of the memory.
    pub score: f64,
    /// The parts of the score.
    pub parts: Parts,
    /// The cosine of the best chunk with the query, if both have an embedding.
    pub cosine: Option<f64>,
    /// The number of other memories with the same text, which were left out.
    pub duplicates: usize,
}

/// Returns whether a hit may say the same as the text that was searched for, more, or the opposite. `share` is the share
/// of the text's words that the hit contains. `cosine` is its cosine with the text.
pub fn is_near(share: f64, cosine: Option<f64>) -> bool {
    share >= ranking::NEAR_SHARE || cosine.is_some_and(|cosine| cosine >= ranking::NEAR_COSINE)
}

impl Ranked {
    /// Returns the parts of the score with `share` in place of BM25. `share` is the share of the query's words that the
    /// memory contains. So a share of 1 means that the memory contains all words, not only as many as the best hit.
    pub fn full_scale(&self, share: f64, weights: &Weights) -> Parts {
        let counts = if self.place.kind == Kind::Conversation { weights.conversation } else { 1.0 };
        Parts { lexical: counts * weights.lexical * share, ..self.parts }
    }
}

/// Returns the memories of `candidates`, the best first. Each memory and each text is returned only once. `terms` are
/// the words of the query.
pub fn rank(candidates: Vec<Candidate>, terms: &[String], weights: &Weights) -> Vec<Ranked> {
    let best = candidates.iter().map(|candidate| candidate.lexical).fold(0.0, f64::max);
    let is_embedded = candidates.iter().any(|candidate| candidate.cosine.is_some());
    let mut by_memory: HashMap<(usize, MemoryKey), Ranked> = HashMap::with_capacity(candidates.len());
    for candidate in candidates {
        let Candidate { store, chunk, lexical, cosine, place } = candidate;
        let lexical = if best > 0.0 { lexical / best } else { 0.0 };
        // If a memory has no embedding yet, an expected cosine is used. With a cosine of 0, it would count as a memory
        // with another meaning.
        let expected = cosine.or(is_embedded.then(|| prior::expected_cosine(lexical)));
        let parts = parts(lexical, expected, &place, terms, weights);
        let ranked = Ranked { store, chunk, score: parts.sum(), parts, cosine, duplicates: 0, place };
        by_memory
            .entry((store, ranked.place.key))
            .and_modify(|known| {
                let is_better = (ranked.score, known.chunk) > (known.score, ranked.chunk);
                if is_better {
                    *known = ranked.clone();
                }
            })
            .or_insert(ranked);
    }
    let mut ranked: Vec<Ranked> = by_memory.into_values().collect();
    lend(&mut ranked, weights.exchange);
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.place.tie().cmp(&b.place.tie())));
    diversified(without_duplicates(without_extracts(ranked)), weights.repetition)
}

/// Mixes the hits of different sessions: each hit lowers the scores of the hits after it in the same session by
/// `repetition`. The order within a session stays the same.
fn diversified(ranked: Vec<Ranked>, repetition: f64) -> Vec<Ranked> {
    let mut queues: Vec<VecDeque<Ranked>> = Vec::new();
    let mut queue_by_session: HashMap<(usize, SessionKey), usize> = HashMap::new();
    let count = ranked.len();
    for each in ranked {
        let queue = match each.place.session {
            // Each memory without a session gets a separate queue.
            None => queues.len(),
            Some(session) => *queue_by_session.entry((each.store, session)).or_insert(queues.len()),
        };
        match queues.get_mut(queue) {
            Some(queue) => queue.push_back(each),
            None => queues.push(VecDeque::from([each])),
        }
    }
    let key = |queue: usize, first: &Ranked, taken: usize| Turn {
        score: first.score - repetition * taken as f64,
        tie: {
            let (time, text, id) = first.place.tie();
            Reverse((time, text, id.clone()))
        },
        queue,
        taken,
    };
    let mut turns: BinaryHeap<Turn> =
        queues.iter().enumerate().filter_map(|(queue, own)| Some(key(queue, own.front()?, 0))).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Turn { queue, taken, .. }) = turns.pop() {
        order.extend(queues[queue].pop_front());
        if let Some(next) = queues[queue].front() {
            turns.push(key(queue, next, taken + 1));
        }
    }
    order
}

/// The best remaining hit of a session, with its score as lowered by the hits taken before it.
struct Turn {
    score: f64,
    /// As in [`Neighbour::tie`].
    tie: Reverse<(Reverse<Millis>, [u8; 8], MemoryId)>,
    queue: usize,
    taken: usize,
}

impl Ord for Turn {
    fn cmp(&self, other: &Turn) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| self.tie.cmp(&other.tie))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Turn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Turn {
    fn eq(&self, other: &Turn) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Turn {}

/// Adds `share` of the score of each long answer to the score of the user's message right before it. The request and
/// the answer belong together, and the user's message is shorter.
fn lend(ranked: &mut [Ranked], share: f64) {
    let at = |each: &Ranked, back: i64| Some((each.store, each.place.session?, each.place.ordinal? - back));
    let answers = ranked.iter().filter(|each| prior::is_answer(&each.place));
    let lent: HashMap<(usize, SessionKey, i64), f64> = answers
        .filter_map(|each| Some((at(each, 1)?, share * (each.parts.lexical + each.parts.semantic))))
        .collect();
    if lent.is_empty() {
        return;
    }
    for each in ranked.iter_mut().filter(|each| each.place.role == Some(Role::User)) {
        if let Some(lent) = at(each, 0).and_then(|place| lent.get(&place)) {
            each.parts.exchange = *lent;
            each.score = each.parts.sum();
        }
    }
}

fn parts(lexical: f64, cosine: Option<f64>, place: &Neighbour, terms: &[String], weights: &Weights) -> Parts {
    let is_named = place.speaker.as_deref().is_some_and(|speaker| names_speaker(terms, speaker));
    let share = if place.kind == Kind::Conversation { weights.conversation } else { 1.0 };
    let importance = if place.marked { 1.0 } else { place.importance.unwrap_or(0.0) };
    let answer = if prior::is_answer(place) { weights.answer } else { 0.0 };
    let bot = if prior::is_by_bot(place) { weights.bot } else { 0.0 };
    Parts {
        lexical: share * weights.lexical * lexical,
        semantic: share * weights.semantic * cosine.unwrap_or(0.0).max(0.0),
        speaker: if is_named { weights.speaker } else { 0.0 },
        importance: weights.importance * importance,
        exchange: 0.0,
        prior: -(answer + bot),
    }
}

/// Returns whether `words`, the words of a query, contain a part of the name of `speaker`.
pub fn names_speaker(words: &[String], speaker: &str) -> bool {
    let speaker = speaker.to_lowercase();
    speaker.split(|c: char| !c.is_alphanumeric()).any(|name| words.iter().any(|word| word == name))
}

/// If the search found both a message and a memory that was extracted from it, leaves out the extracted memory. The
/// message gets the better place of the two.
fn without_extracts(ranked: Vec<Ranked>) -> Vec<Ranked> {
    if ranked.iter().all(|each| each.place.taken_from.is_none()) {
        return ranked;
    }
    let place_by_memory: HashMap<(usize, MemoryKey), usize> =
        ranked.iter().enumerate().map(|(place, each)| ((each.store, each.place.key), place)).collect();
    let mut kept: Vec<Option<Ranked>> = ranked.into_iter().map(Some).collect();
    for place in 0..kept.len() {
        let Some(each) = &kept[place] else { continue };
        let source = each.place.taken_from.and_then(|source| place_by_memory.get(&(each.store, source)));
        let Some(&source) = source else { continue };
        let Some(extract) = kept[place].take() else { continue };
        // A message that ranks below its extract moves up to the extract's place. It stays there if further extracts
        // follow.
        if source > place
            && let Some(mut message) = kept[source].take()
        {
            (message.score, message.parts) = (extract.score, extract.parts);
            kept[place] = Some(message);
        }
    }
    kept.into_iter().flatten().collect()
}

/// Of several memories with the same text, keeps the best and counts the others.
fn without_duplicates(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut place_by_text: HashMap<[u8; 8], usize> = HashMap::with_capacity(ranked.len());
    let mut kept: Vec<Ranked> = Vec::with_capacity(ranked.len());
    for each in ranked {
        match place_by_text.get(&each.place.text_hash) {
            Some(&first) => kept[first].duplicates += 1 + each.duplicates,
            None => {
                place_by_text.insert(each.place.text_hash, kept.len());
                kept.push(each);
            }
        }
    }
    kept
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns one ranked memory.
    pub(in crate::retrieve) fn ranked() -> Ranked {
        rank(vec![candidate(1, 1.0, 0.5)], &[], &Weights::default()).remove(0)
    }

    fn candidate(seq: i64, lexical: f64, cosine: f64) -> Candidate {
        Candidate {
            store: 0,
            chunk: ChunkKey::from_store(seq),
            lexical,
            cosine: Some(cosine),
            place: Neighbour {
                key: MemoryKey::from_store(seq),
                id: MemoryId::derive(Kind::Message, None, &seq.to_string()),
                kind: Kind::Message,
                session: None,
                ordinal: None,
                role: None,
                speaker: None,
                tokens: 20,
                time: 0,
                marked: false,
                importance: None,
                text_hash: (seq as u64).to_le_bytes(),
                taken_from: None,
            },
        }
    }

    fn order(candidates: Vec<Candidate>) -> Vec<i64> {
        rank(candidates, &[], &Weights::default()).iter().map(|ranked| ranked.place.key.in_store()).collect()
    }

    #[test]
    fn a_memory_good_in_both_searches_beats_one_that_is_best_in_one() {
        assert_eq!(
            order(vec![candidate(1, 10.0, 0.1), candidate(2, 8.0, 0.6), candidate(3, 0.0, 0.7)]),
            [2, 1, 3]
        );
    }

    #[test]
    fn marks_and_named_speakers_win_among_equals() {
        let mut marked = candidate(1, 1.0, 0.5);
        marked.place.marked = true;
        assert_eq!(order(vec![candidate(2, 1.0, 0.5), marked]), [1, 2]);
        let mut said = candidate(3, 1.0, 0.5);
        said.place.speaker = Some("Ines Moreau".into());
        let ranked = rank(vec![candidate(4, 1.0, 0.5), said], &["ines".into()], &Weights::default());
        assert_eq!(ranked[0].place.key.in_store(), 3);
    }

    fn said(seq: i64, role: Role, tokens: i64, ordinal: i64, lexical: f64) -> Candidate {
        let mut said = candidate(seq, lexical, 0.5);
        (said.place.role, said.place.tokens) = (Some(role), tokens);
        (said.place.session, said.place.ordinal) = (Some(SessionKey::from_store(1)), Some(ordinal));
        said
    }

    #[test]
    fn a_long_answer_ranks_after_what_the_user_said_and_lends_to_its_question() {
        let answer = || said(1, Role::Assistant, 900, 7, 10.0);
        assert_eq!(order(vec![answer(), said(2, Role::User, 40, 9, 8.0)]), [2, 1]);
        // A short answer is one of two people's turns.
        assert_eq!(
            order(vec![said(1, Role::Assistant, 40, 7, 10.0), said(2, Role::User, 40, 9, 8.0)]),
            [1, 2]
        );
        let (asked, other) = (said(3, Role::User, 40, 6, 6.0), said(4, Role::User, 40, 20, 7.1));
        assert_eq!(order(vec![asked.clone(), other.clone()]), [4, 3]);
        assert_eq!(order(vec![asked, other, answer()]), [3, 4, 1]);
        let weights = Weights::default().with_answers();
        let ranked = rank(vec![answer(), said(2, Role::User, 40, 9, 8.0)], &[], &weights);
        assert_eq!(ranked[0].place.key.in_store(), 1, "asked what the assistant said");
    }

    #[test]
    fn a_program_s_commit_ranks_after_a_person_s() {
        let by = |seq, author: &str, lexical| {
            let mut commit = candidate(seq, lexical, 0.5);
            (commit.place.kind, commit.place.speaker) = (Kind::Commit, Some(author.into()));
            commit
        };
        assert_eq!(order(vec![by(1, "dependabot[bot]", 10.0), by(2, "Ada", 8.0)]), [2, 1]);
    }

    /// An earlier version ranked a memory that waited to be embedded as if its cosine were 0.
    #[test]
    fn a_memory_without_an_embedding_is_not_below_worse_ones() {
        let mut waiting = candidate(1, 8.0, 0.0);
        waiting.cosine = None;
        assert_eq!(order(vec![waiting.clone(), candidate(2, 7.5, 0.25), candidate(3, 10.0, 0.5)]), [3, 1, 2]);
        let alone = rank(vec![waiting], &[], &Weights::default());
        assert_eq!(alone[0].parts.semantic, 0.0, "no memory has an embedding");
    }

    #[test]
    fn the_memory_of_a_session_ranks_after_messages_that_answer_as_well() {
        let mut session = candidate(1, 10.0, 0.6);
        session.place.kind = Kind::Conversation;
        assert_eq!(order(vec![session, candidate(2, 8.0, 0.5), candidate(3, 2.0, 0.2)]), [2, 1, 3]);
    }

    #[test]
    fn equal_texts_are_one_hit_that_says_so() {
        let mut copy = candidate(2, 1.0, 0.5);
        copy.place.text_hash = 1u64.to_le_bytes();
        let ranked = rank(vec![candidate(1, 2.0, 0.5), copy], &[], &Weights::default());
        assert_eq!((ranked.len(), ranked[0].place.key.in_store(), ranked[0].duplicates), (1, 1, 1));
    }

    #[test]
    fn an_extract_is_shown_as_its_message_at_the_better_place() {
        let taken_from = |seq, lexical, source| {
            let source = MemoryKey::from_store(source);
            let mut extract = candidate(seq, lexical, 0.5);
            extract.place.taken_from = Some(source);
            extract
        };
        let two = vec![
            taken_from(1, 10.0, 3),
            candidate(2, 8.0, 0.5),
            candidate(3, 2.0, 0.5),
            taken_from(4, 9.0, 3),
        ];
        assert_eq!(order(two), [3, 2]);
        assert_eq!(
            order(vec![candidate(3, 9.0, 0.5), candidate(2, 8.0, 0.5), taken_from(1, 1.0, 3)]),
            [3, 2]
        );
        assert_eq!(order(vec![taken_from(1, 10.0, 7), candidate(2, 8.0, 0.5)]), [1, 2]);
    }

    #[test]
    fn a_score_of_full_scale_says_what_is_asked_for_and_not_what_is_best() {
        let ranked = rank(vec![candidate(1, 0.1, 0.1)], &[], &Weights::default());
        assert_eq!(ranked[0].parts.lexical, 1.0);
        assert_eq!(ranked[0].full_scale(0.25, &Weights::default()).lexical, 0.25);
    }

    #[test]
    fn sessions_take_turns_among_near_equals() {
        let mut candidates =
            vec![candidate(1, 10.0, 0.50), candidate(2, 10.0, 0.49), candidate(3, 10.0, 0.48)];
        candidates[0].place.session = Some(SessionKey::from_store(1));
        candidates[1].place.session = Some(SessionKey::from_store(1));
        candidates[2].place.session = Some(SessionKey::from_store(2));
        assert_eq!(order(candidates), [1, 3, 2]);
    }

    proptest! {
        #[test]
        fn the_order_of_candidates_does_not_matter(scores in prop::collection::vec((0.0..20.0, -1.0..1.0), 0..40), seed: u64) {
            let candidates: Vec<Candidate> =
                scores.iter().enumerate().map(|(n, (lexical, cosine))| candidate(n as i64 / 2, *lexical, *cosine)).collect();
            let mut shuffled = candidates.clone();
            shuffled.sort_by_key(|each| blake3::hash(format!("{seed} {each:?}").as_bytes()).to_hex().to_string());
            prop_assert_eq!(order(candidates), order(shuffled));
        }
    }
}
