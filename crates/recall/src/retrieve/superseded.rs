//! Orders the memories that a search found, so that a memory that is still valid comes before a memory that it
//! replaced.
//!
//! If a question asks about the past, both come in the order of time. In both cases, a caller can tell which memories
//! are superseded, and by which memories. If the search found only the replaced memory, the memory that is valid now is
//! added before it.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::retrieve::rank::Ranked;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::Scope;
use tiro_digest::statements::{self, concerns};
use tiro_store::{ReadStore, ReplacementQuery, Replacements, Superseded};

/// The number of the best memories that are examined. Arbitrary: more than the first pages show.
const EXAMINED: usize = 60;

/// The number of the best notes whose texts are compared with each other. Arbitrary: more than one page shows.
const COMPARED_NOTES: usize = 20;

/// Two hits answer a question equally well if the lower score is at least this share of the higher one. Arbitrary. Used
/// if their meaning is not known.
const EQUAL_SCORE: f64 = 0.8;

/// Two hits of which the meaning is known answer a question equally well if the lower score is at least the first share
/// of the higher one, and the nearness of the meaning at least the second share of that of the nearest hit. A score
/// alone says less: words around a hit raise it. Measured by `evals updates` on chats of a user with an assistant: with
/// 0.8 and 0, the newest value comes before older ones for 65% of the questions.
const EQUAL_MEANING: (f64, f64) = (0.55, 0.6);

/// If two notes begin with the same word, a smaller share is enough. Arbitrary.
const EQUAL_SUBJECT_SCORE: f64 = 0.5;

/// The number of hits on a usual first page.
const FIRST_PAGE: usize = 10;

/// Phrases of questions about the past.
const PAST: &[&str] = &[
    "previous",
    "previously",
    "used to",
    "history",
    "originally",
    "initially",
    "earlier",
    "over time",
    "changed",
    "evolve",
    "evolved",
    "progressed",
    "was first",
    "at first",
    "in which order",
    "what order",
    "formerly",
    "so far",
    "timeline",
    "improved from",
];

/// The texts of notes that a search found, by their stores and keys.
pub type NoteTexts = HashMap<(usize, MemoryKey), String>;

/// The memories that a search found and that are superseded, by their stores and keys.
pub type SupersededHits = HashMap<(usize, MemoryKey), Superseded>;

/// Returns whether a question asks about the past, not the present.
pub fn asks_for_history(query: &str) -> bool {
    let lower = query.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let all = format!(" {} ", words.join(" "));
    let is_before =
        all.ends_with(" before ") || all.contains(" was before ") || all.contains(" were before ");
    is_before || PAST.iter().any(|phrase| all.contains(&format!(" {phrase} ")))
}

/// Reads from each store which memories replaced memories in `ranked`. A memory that `may_be_replaced` accepts is a
/// commit, which another commit may have replaced. A memory that [`current_first`] examines may be superseded by
/// another memory.
pub async fn replaced(
    stores: &[(&dyn ReadStore, &Scope)],
    ranked: &[Ranked],
    may_be_replaced: impl Fn(&Ranked) -> bool,
) -> Result<Vec<Replacements>> {
    // The examined memories are known only after commits were replaced. Each replacement may remove a commit from the
    // list, so commits are not counted here.
    let mut others = 0;
    let last = ranked.iter().position(|each| {
        others += usize::from(!may_be_replaced(each));
        others == EXAMINED
    });
    let examined = &ranked[..last.map_or(ranked.len(), |last| last + 1)];
    let is_note = |each: &&Ranked| {
        each.place.kind.group() == Group::Note && each.place.taken_from.is_none() && is_unmarked(each)
    };
    let notes: Vec<&Ranked> = ranked.iter().filter(is_note).take(COMPARED_NOTES).collect();
    let mut replaced = Vec::with_capacity(stores.len());
    for (number, (store, scope)) in stores.iter().enumerate() {
        let key = |each: &Ranked| each.place.key;
        let commits = ranked.iter().filter(|each| each.store == number && may_be_replaced(each));
        let memories = examined.iter().filter(|each| each.store == number);
        let (commits, memories) = (commits.map(key).collect(), memories.map(key).collect());
        let texts = notes.iter().filter(|each| each.store == number).map(|each| key(each)).collect();
        let wanted = ReplacementQuery { commits, memories, texts, ..ReplacementQuery::default() };
        let is_nothing = wanted.memories.is_empty() && wanted.commits.is_empty();
        replaced.push(match is_nothing {
            true => Replacements::default(),
            false => store.replacements(scope, wanted).await?,
        });
    }
    Ok(replaced)
}

/// Returns `ranked` with each superseded memory after the memory that replaced it. If `query` asks about the past, such
/// memories are in the order of time instead. Also returns which memories are superseded. If the search didn't find a
/// memory that replaced one of them, the memory is added, unless `filter` excludes it. `replaced` contains the
/// replacements in each store.
pub fn current_first(
    replaced: &[Replacements],
    mut ranked: Vec<Ranked>,
    query: &str,
    filter: &Filter,
) -> (Vec<Ranked>, SupersededHits) {
    let mut hits = SupersededHits::new();
    for (number, replaced) in replaced.iter().enumerate() {
        let own = ranked.iter().take(EXAMINED).filter(|each| each.store == number);
        let keys: Vec<MemoryKey> = own.map(|each| each.place.key).collect();
        let stored = replaced.superseded.iter().filter(|each| keys.contains(&each.memory));
        for superseded in stored.filter(|each| is_asked(query, each)) {
            hits.entry((number, superseded.memory)).or_insert_with(|| superseded.clone());
        }
        let found = hits.iter().filter(|((store, _), _)| *store == number).map(|(_, superseded)| superseded);
        let mut missing: Vec<(MemoryKey, &Superseded)> = found
            .filter(|superseded| {
                !ranked.iter().any(|each| (each.store, each.place.key) == (number, superseded.by_key))
            })
            .map(|superseded| (superseded.by_key, superseded))
            .collect();
        missing.sort_by_key(|(key, superseded)| (*key, superseded.memory));
        missing.dedup_by_key(|(key, _)| *key);
        let mut added: Vec<(usize, Ranked)> = Vec::new();
        for (key, superseded) in missing {
            let place = replaced.places.iter().find(|place| place.key == key);
            let Some((place, chunk)) = place.cloned().zip(superseded.by_chunk) else { continue };
            let group = place.kind.group();
            let at =
                ranked.iter().position(|each| (each.store, each.place.key) == (number, superseded.memory));
            let others = Filter { kinds: None, ..filter.clone() };
            let is_admitted = filter.groups().contains(&group)
                && !others.narrows(group)
                && filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&place.kind))
                && (filter.without.is_none() || superseded.by_session != filter.without);
            if let Some(at) = at.filter(|_| is_admitted) {
                added.push((at, Ranked { place, chunk, duplicates: 0, ..ranked[at].clone() }));
            }
        }
        // The positions stay valid if the last memories are inserted first.
        added.sort_by_key(|(at, _)| Reverse(*at));
        for (at, each) in added {
            ranked.insert(at, each);
        }
    }
    (arranged(ranked, &hits, asks_for_history(query)), hits)
}

/// Returns `ranked` with notes about the same thing in the order of time, the newest first: they exchange their places.
/// Two notes are about the same thing if they share enough words, or if they begin with the same word and answer the
/// question equally well.
/// `texts` contains the texts of the best notes. Nobody knows whether the newer note corrects the older one, but an agent
/// that reads only the first hit reads the newer one. Also returns the pairs of such notes, the newer first.
pub fn newest_first(mut ranked: Vec<Ranked>, texts: &NoteTexts) -> (Vec<Ranked>, Vec<[MemoryId; 2]>) {
    let places: Vec<usize> =
        (0..ranked.len()).filter(|place| texts.contains_key(&key_of(&ranked[*place]))).collect();
    let stems: Vec<_> = places
        .iter()
        .map(|place| &texts[&key_of(&ranked[*place])])
        .map(|text| (statements::stems(text), statements::first_stem(text)))
        .collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, own) in stems.iter().enumerate() {
        let score = |number: usize| ranked[places[number]].score;
        let is_alike = |group: &&mut Vec<usize>| {
            let are_equal = score(number) >= EQUAL_SUBJECT_SCORE * score(group[0]);
            statements::are_alike(&stems[group[0]].0, &own.0) || are_equal && stems[group[0]].1 == own.1
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    let mut pairs = Vec::new();
    for group in groups.iter().filter(|group| group.len() > 1) {
        let own: Vec<usize> = group.iter().map(|number| places[*number]).collect();
        exchange(&mut ranked, &own);
        let id = |place: usize| ranked[place].place.id.clone();
        pairs.extend(own.windows(2).map(|pair| [id(pair[0]), id(pair[1])]));
    }
    (ranked, pairs)
}

/// Returns `ranked` with the best statements of persons and the best notes in the order of time, the newest first: they
/// exchange their places. A statement that answers the question as well as an earlier one may replace it.
pub fn latest_of_best(mut ranked: Vec<Ranked>) -> Vec<Ranked> {
    let is_told = |each: &Ranked| {
        let is_users = each.place.kind == Kind::Message && each.place.role == Some(Role::User);
        // What somebody marked stays where its mark puts it.
        (is_users || each.place.kind.group() == Group::Note) && is_unmarked(each)
    };
    let best = |value: &dyn Fn(&Ranked) -> f64| {
        ranked.iter().filter(|each| is_told(each)).map(value).fold(f64::MIN_POSITIVE, f64::max)
    };
    let (score, nearness) = (best(&|each| each.score), best(&|each| each.parts.semantic));
    let is_known = ranked.iter().any(|each| each.cosine.is_some());
    let is_equal = |each: &Ranked| match is_known {
        true => {
            let (of_score, of_nearness) = EQUAL_MEANING;
            each.score >= of_score * score && each.parts.semantic >= of_nearness * nearness
        }
        false => each.score >= EQUAL_SCORE * score,
    };
    let places: Vec<usize> = (0..ranked.len().min(FIRST_PAGE))
        .filter(|place| is_told(&ranked[*place]) && is_equal(&ranked[*place]))
        .collect();
    exchange(&mut ranked, &places);
    ranked
}

/// Lets the hits at `places`, which are in order, exchange their places, so that the newest comes first.
fn exchange(ranked: &mut [Ranked], places: &[usize]) {
    let mut ordered: Vec<Ranked> = places.iter().map(|place| ranked[*place].clone()).collect();
    ordered.sort_by_key(|each| Reverse((each.place.time, each.place.ordinal, each.place.key)));
    for (place, each) in places.iter().zip(ordered) {
        ranked[*place] = each;
    }
}

/// Returns whether nobody marked the memory or gave it an importance.
fn is_unmarked(ranked: &Ranked) -> bool {
    !ranked.place.marked && ranked.place.importance.is_none()
}

fn key_of(ranked: &Ranked) -> (usize, MemoryKey) {
    (ranked.store, ranked.place.key)
}

/// Returns whether a replaced statement is about the topic of the question. A message makes many statements. If one of
/// them was replaced, this doesn't matter to a question about another one.
pub fn is_asked(query: &str, superseded: &Superseded) -> bool {
    superseded.words.as_ref().is_none_or(|words| concerns(query, words))
}

/// Moves the memory that is valid now directly before the first memory that it replaced. If `by_time` is true, memories
/// about the same thing instead exchange their positions, so that they are in the order of time. The position of a
/// memory that does not move changes only by the number of memories that were moved in front of it.
fn arranged(ranked: Vec<Ranked>, hits: &SupersededHits, by_time: bool) -> Vec<Ranked> {
    if hits.is_empty() {
        return ranked;
    }
    let key = |each: &Ranked| (each.store, each.place.key);
    let newest =
        |each: &Ranked| hits.get(&key(each)).map_or(key(each), |superseded| (each.store, superseded.by_key));
    let mut groups: HashMap<(usize, MemoryKey), Vec<usize>> = HashMap::new();
    for (place, each) in ranked.iter().enumerate() {
        groups.entry(newest(each)).or_default().push(place);
    }
    let mut places: Vec<(usize, usize)> = (0..ranked.len()).map(|place| (place, 1)).collect();
    for (newest, members) in groups {
        if by_time {
            let mut ordered = members.clone();
            ordered.sort_by_key(|place| -> (Millis, MemoryKey) {
                (ranked[*place].place.time, ranked[*place].place.key)
            });
            for (place, member) in members.into_iter().zip(ordered) {
                places[member] = (place, 1);
            }
        } else if let Some(holds) = members.iter().find(|place| key(&ranked[**place]) == newest)
            && *holds > members[0]
        {
            places[*holds] = (members[0], 0);
        }
    }
    let mut placed: Vec<((usize, usize), Ranked)> = places.into_iter().zip(ranked).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, each)| each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::rank::Parts;
    use tiro_store::{ChunkKey, Neighbour};

    fn ranked(number: i64) -> Ranked {
        let place = Neighbour {
            key: MemoryKey::from_store(number),
            id: MemoryId::derive(Kind::Message, None, &number.to_string()),
            kind: Kind::Message,
            session: None,
            ordinal: None,
            role: None,
            speaker: None,
            tokens: 0,
            time: number,
            marked: false,
            importance: None,
            text_hash: [0; 8],
            taken_from: None,
        };
        let chunk = ChunkKey::from_store(number);
        Ranked { store: 0, chunk, place, score: 1.0, parts: Parts::default(), cosine: None, duplicates: 0 }
    }

    fn superseded(older: i64, newer: i64) -> ((usize, MemoryKey), Superseded) {
        let memory = MemoryKey::from_store(older);
        let superseded = Superseded {
            memory,
            statement: None,
            words: None,
            by: MemoryId::derive(Kind::Message, None, &newer.to_string()),
            by_key: MemoryKey::from_store(newer),
            by_time: newer,
            by_session: None,
            by_ordinal: None,
            by_statement: None,
            by_chunk: None,
        };
        ((0, memory), superseded)
    }

    #[test]
    fn what_holds_comes_first_and_history_in_order_of_time() {
        let hits: SupersededHits = [superseded(2, 7), superseded(4, 7)].into();
        let all = || [4, 1, 7, 2, 9].map(ranked).to_vec();
        let order = |by_time| {
            let arranged = arranged(all(), &hits, by_time);
            arranged.iter().map(|each| each.place.key.in_store()).collect::<Vec<_>>()
        };
        assert_eq!(order(false), [7, 4, 1, 2, 9], "no other memory falls behind the replaced ones");
        assert_eq!(order(true), [2, 1, 4, 7, 9]);
    }

    #[test]
    fn of_notes_about_the_same_thing_the_newest_comes_first() {
        let text = |number: i64, text: &str| ((0, MemoryKey::from_store(number)), text.to_owned());
        let texts: NoteTexts = [
            text(1, "The stand-up is at 10:00"),
            text(4, "We deploy on Tuesdays"),
            text(7, "The stand-up moved to 9:30"),
            text(8, "The cache is flushed on every deploy"),
        ]
        .into();
        let (ranked, pairs) = newest_first([4, 1, 9, 8, 7].map(ranked).to_vec(), &texts);
        let order: Vec<i64> = ranked.iter().map(|each| each.place.key.in_store()).collect();
        assert_eq!(order, [4, 7, 9, 8, 1]);
        let id = |number: i64| MemoryId::derive(Kind::Message, None, &number.to_string());
        assert_eq!(pairs, [[id(7), id(1)]]);
    }

    #[test]
    fn of_messages_that_answer_equally_well_the_newest_comes_first() {
        let told = |(number, score, semantic, cosine): (i64, f64, f64, Option<f64>)| {
            let mut ranked = Ranked { score, cosine, ..ranked(number) };
            ranked.place.role = Some(Role::User);
            ranked.parts.semantic = semantic;
            ranked
        };
        let order = |hits: &[(i64, f64, f64, Option<f64>)]| {
            let ordered = latest_of_best(hits.iter().copied().map(told).collect());
            ordered.iter().map(|each| each.place.key.in_store()).collect::<Vec<_>>()
        };
        let near = Some(0.5);
        // 9 has a good score only because of the words around it, and 8 is weak.
        let hits = [(2, 1.0, 0.6, near), (9, 0.9, 0.1, near), (4, 0.7, 0.5, near), (8, 0.4, 0.5, near)];
        assert_eq!(order(&hits), [4, 9, 2, 8]);
        assert_eq!(order(&[(2, 1.0, 0.0, None), (4, 0.7, 0.0, None), (3, 0.8, 0.0, None)]), [3, 4, 2]);
    }

    #[test]
    fn questions_about_the_past_are_known() {
        assert!(
            asks_for_history("What was the quota before?") && asks_for_history("history of the deadline")
        );
        for other in
            ["How do I change the port?", "How many days before the deadline?", "What is the progress of it?"]
        {
            assert!(!asks_for_history(other), "{other}");
        }
        assert!(!asks_for_history("What is the quota?") && !asks_for_history("Which golden rule holds?"));
    }
}
