//! Orders the hits of a context across conversations. The functions here are pure.
//!
//! The order doesn't depend on the budget. A context shows the first hits that fit, so a larger budget shows everything
//! that a smaller budget shows, and more.

use std::collections::{HashMap, VecDeque};

use crate::assembly::passages::Room;
use tiro_base::memory::{Kind, Millis, Role};
use tiro_digest::context::importance::recency;
use tiro_digest::tuning::contexts::{
    self, AGEING, COMMIT_SHARE, GOOD_COMMIT, LEAST_COMMIT, LEAST_COMMIT_SHARE, LENGTH, SESSION_WEIGHT,
    SUMMARIES_FROM,
};
use tiro_recall::retrieve::rank::Ranked;
use tiro_recall::tuning::ranking::CONVERSATION;
use tiro_store::SessionKey;

/// A conversation: the number of its store, and its key in that store.
pub type Conversation = (usize, SessionKey);

/// A relevant conversation.
#[derive(Debug)]
pub struct Weighed {
    /// The weight of the conversation, from 0 to 1.
    pub weight: f64,
    /// The time of the earliest hit in the conversation, in milliseconds.
    pub first: Millis,
}

/// Returns the conversation of a hit.
pub fn conversation(hit: &Ranked) -> Option<Conversation> {
    hit.place.session.map(|session| (hit.store, session))
}

/// Computes the weight of each conversation from its three best messages and its age. The weights are relative to the
/// highest weight of all conversations.
pub fn weigh(hits: &[Ranked]) -> HashMap<Conversation, Weighed> {
    let newest = newest(hits);
    let mut scores: HashMap<Conversation, (Vec<f64>, Millis, Millis)> = HashMap::new();
    for hit in hits {
        let Some(session) = conversation(hit) else { continue };
        let time = hit.place.time;
        let (scores, first, last) = scores.entry(session).or_insert((Vec::new(), time, time));
        scores.push(hit.score);
        (*first, *last) = ((*first).min(time), (*last).max(time));
    }
    let weighed = scores.into_iter().map(|(session, (mut scores, first, last))| {
        scores.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = scores.iter().take(contexts::WEIGHING_MESSAGES).sum();
        (session, Weighed { weight: best * aged(last, newest), first })
    });
    let mut weighed: HashMap<Conversation, Weighed> = weighed.collect();
    let most = weighed.values().map(|session| session.weight).fold(f64::MIN_POSITIVE, f64::max);
    weighed.values_mut().for_each(|session| session.weight /= most);
    weighed
}

fn newest(hits: &[Ranked]) -> Millis {
    hits.iter().map(|hit| hit.place.time).max().unwrap_or(0)
}

fn aged(time: Millis, newest: Millis) -> f64 {
    1.0 - AGEING + AGEING * recency(time, newest, contexts::HALF_LIFE)
}

/// A lane, which contains the hits of some kinds. Each lane gets a share of the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Messages, facts and other notes.
    Said,
    /// Commits.
    Commits,
    /// Summaries of conversations.
    Summaries,
}

/// Returns the lane of a kind of memories.
pub fn lane(kind: Kind) -> Lane {
    match kind {
        Kind::Commit => Lane::Commits,
        Kind::Conversation | Kind::Summary => Lane::Summaries,
        _ => Lane::Said,
    }
}

/// Returns whether the hit is shown in a context that lists events in their order. Long answers and summaries are left
/// out, because they say little about the time of an event. A fact taken from a message is left out, because it repeats
/// the message.
pub fn is_event(hit: &Ranked) -> bool {
    match hit.place.kind {
        Kind::Message => {
            hit.place.role == Some(Role::User) || hit.place.speaker.is_some() && !Room::is_long(&hit.place)
        }
        kind => lane(kind) != Lane::Summaries && hit.place.taken_from.is_none(),
    }
}

/// Returns the hits in order. A context shows as many of the first hits as fit. In each beginning of the list, commits
/// and summaries get shares of the tokens; `summaries` is the share of summaries. A hit is left out if its score is below
/// `least` of the best score. For commits, this bound is higher.
pub fn order(
    hits: Vec<Ranked>,
    sessions: &HashMap<Conversation, Weighed>,
    room: Room,
    summaries: f64,
    least: f64,
) -> Vec<Ranked> {
    let newest = newest(&hits);
    let best = hits.iter().map(|hit| hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let score = |hit: &Ranked| {
        // A memory without a conversation gets the weight of a conversation in which it is the best message.
        let alone = || (hit.score / best * aged(hit.place.time, newest)).clamp(0.0, 1.0);
        let weight =
            conversation(hit).and_then(|session| sessions.get(&session)).map_or_else(alone, |it| it.weight);
        // A commit with only a subject says less than a commit with a longer message. So a commit's length doesn't
        // lower its score.
        let length = if lane(hit.place.kind) == Lane::Commits { 0 } else { room.tokens(&hit.place) };
        hit.score + SESSION_WEIGHT * weight - LENGTH * length as f64
    };
    let is_near = |hit: &Ranked| {
        let least = match lane(hit.place.kind) {
            Lane::Commits if least > 0.0 => LEAST_COMMIT,
            // The score of a memory that represents a session is lowered by this factor.
            Lane::Summaries => CONVERSATION * least,
            _ => least,
        };
        // A long answer counts without the amount by which its score is lowered: it says what was done.
        let lowered = if lane(hit.place.kind) == Lane::Said { hit.parts.prior } else { 0.0 };
        hit.score - lowered >= least * best
    };
    let mut scored: Vec<(f64, Ranked)> =
        hits.into_iter().filter(is_near).map(|hit| (score(&hit), hit)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.place.tie().cmp(&b.1.place.tie())));
    in_lanes(scored, room, best, summaries)
}

/// Merges the lanes by score, within the shares of commits and summaries.
fn in_lanes(scored: Vec<(f64, Ranked)>, room: Room, best: f64, summaries: f64) -> Vec<Ranked> {
    let mut order = Vec::with_capacity(scored.len());
    let [mut said, mut commits, mut summed] = [const { VecDeque::new() }; 3];
    for (score, hit) in scored {
        match lane(hit.place.kind) {
            Lane::Said => &mut said,
            Lane::Commits => &mut commits,
            Lane::Summaries => &mut summed,
        }
        .push_back((score, hit));
    }
    let (mut all, mut of_commits, mut of_summaries) = (0.0, 0.0, 0.0);
    loop {
        let score = |lane: &VecDeque<(f64, Ranked)>| lane.front().map(|(score, _)| *score);
        let cost = |lane: &VecDeque<(f64, Ranked)>| {
            lane.front().map_or(0.0, |(_, hit)| room.tokens(&hit.place) as f64)
        };
        let (next_commit, next_summary) = (cost(&commits), cost(&summed));
        let commit_fits = of_commits + next_commit <= COMMIT_SHARE * (all + next_commit) || said.is_empty();
        let is_good = commits.front().is_some_and(|(_, hit)| hit.score >= GOOD_COMMIT * best);
        let commit_is_due = is_good && of_commits < LEAST_COMMIT_SHARE * all;
        let summary_fits = of_summaries + next_summary <= summaries * (all - SUMMARIES_FROM).max(0.0);
        let take_summary = !summed.is_empty() && (summary_fits || said.is_empty() && commits.is_empty());
        let take_commit =
            !commits.is_empty() && (commit_is_due || commit_fits && score(&commits) > score(&said));
        let (lane, spent) = match () {
            () if take_summary => (&mut summed, Some(&mut of_summaries)),
            () if take_commit => (&mut commits, Some(&mut of_commits)),
            () => (&mut said, None),
        };
        let Some((_, hit)) = lane.pop_front() else { return order };
        let cost = room.tokens(&hit.place) as f64;
        all += cost;
        if let Some(spent) = spent {
            *spent += cost;
        }
        order.push(hit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tiro_base::memory::{MemoryId, MemoryKey};
    use tiro_digest::tuning::contexts::LEAST_RELEVANCE;
    use tiro_recall::retrieve::rank::Parts;
    use tiro_store::{ChunkKey, Neighbour};

    fn hit(seq: i64, kind: Kind, tokens: i64, score: f64) -> Ranked {
        let place = Neighbour {
            key: MemoryKey::from_store(seq),
            id: MemoryId::derive(Kind::Message, None, &seq.to_string()),
            kind,
            session: (kind == Kind::Message).then(|| SessionKey::from_store(1)),
            ordinal: Some(seq),
            role: Some(Role::User),
            speaker: None,
            tokens,
            time: 0,
            marked: false,
            importance: None,
            text_hash: seq.to_le_bytes(),
            taken_from: None,
        };
        let chunk = ChunkKey::from_store(seq);
        Ranked { store: 0, chunk, place, score, parts: Parts::default(), cosine: None, duplicates: 0 }
    }

    fn ordered(hits: Vec<Ranked>) -> Vec<i64> {
        let sessions = weigh(&hits);
        order(hits, &sessions, Room::USUAL, 0.1, LEAST_RELEVANCE)
            .iter()
            .map(|hit| hit.place.key.in_store())
            .collect()
    }

    #[test]
    fn a_short_message_comes_before_a_long_one_that_is_hardly_better() {
        let long = hit(1, Kind::Message, 290, 1.0);
        assert_eq!(ordered(vec![long, hit(2, Kind::Message, 20, 0.9)]), [2, 1]);
    }

    #[test]
    fn commits_are_among_the_first_but_do_not_fill_the_context() {
        let messages = (0..20).map(|seq| hit(seq, Kind::Message, 100, 1.0 - 0.01 * seq as f64));
        let commits = (20..40).map(|seq| hit(seq, Kind::Commit, 100, 2.0));
        let best = ordered(messages.clone().chain(commits).collect());
        let in_first = |order: &[i64], count: usize| order[..count].iter().filter(|seq| **seq >= 20).count();
        assert_eq!((in_first(&best, 8), in_first(&best, 20), best.len()), (2, 5, 40));
        let weaker = (20..40).map(|seq| hit(seq, Kind::Commit, 100, 0.7));
        assert_eq!(in_first(&ordered(messages.clone().chain(weaker).collect()), 20), 2);
        let noise = (20..40).map(|seq| hit(seq, Kind::Commit, 100, 0.4));
        assert_eq!(ordered(messages.chain(noise).collect()).len(), 20);
    }

    proptest! {
        #[test]
        fn each_hit_that_is_near_is_in_the_order_once(
            kinds in prop::collection::vec((0..4usize, 0..500i64, 0.0..2.0), 0..40),
        ) {
            let kind = [Kind::Message, Kind::Commit, Kind::Conversation, Kind::Fact];
            let hits = (0..).zip(&kinds).map(|(seq, (at, tokens, score))| hit(seq, kind[*at], *tokens, *score));
            let best = kinds.iter().map(|(.., score)| *score).fold(f64::MIN_POSITIVE, f64::max);
            let mut all = ordered(hits.collect());
            all.sort_unstable();
            let is_near = |(_, (at, _, score)): &(i64, &(usize, i64, f64))| {
                let least = match kind[*at] {
                    Kind::Commit => LEAST_COMMIT,
                    Kind::Conversation => CONVERSATION * LEAST_RELEVANCE,
                    _ => LEAST_RELEVANCE,
                };
                *score >= least * best
            };
            let near: Vec<i64> = (0..).zip(&kinds).filter(is_near).map(|(seq, _)| seq).collect();
            prop_assert_eq!(all, near);
        }
    }
}
