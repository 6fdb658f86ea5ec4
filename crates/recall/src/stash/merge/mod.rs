//! Merges segments: puts them into their original order, and leaves out content that another segment already contains.
//!
//! Three kinds of repetition are recognised. If segments have the same text, only one of them is shown. If there are
//! several versions of one file, only the newest is shown. If two pieces of one source overlap, the second piece is
//! shown from the end of the overlap on. Messages are never shortened, because two people may say the same words.

use std::collections::HashMap;

use tiro_base::memory::{Kind, Memory, MemoryId, Millis};
use tiro_base::scope::SessionId;

/// The minimum number of bytes of an overlap. Shorter overlaps, such as a closing brace, may be chance.
const LEAST_OVERLAP: usize = 80;
/// The maximum number of bytes of an overlap. Arbitrary: some hundred lines.
const MOST_OVERLAP: usize = 32 << 10;

/// The result of merging. The numbers are indexes in the list of segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The segments to show, in their original order. Each comes with the number of bytes at its beginning that the
    /// segment before it already shows.
    pub shown: Vec<(usize, usize)>,
    /// The segments whose text another segment also has, each with that other segment.
    pub duplicates: Vec<(usize, usize)>,
    /// The older versions of a file, each with the newest version.
    pub conflicts: Vec<(usize, usize)>,
}

/// Returns which parts of `segments` to show.
pub fn plan(segments: &[Memory]) -> Plan {
    let mut plan = Plan::default();
    let mut left_out = vec![false; segments.len()];
    let order = original_order(segments);
    let mut by_text: HashMap<&str, usize> = HashMap::new();
    for &place in &order {
        match by_text.get(segments[place].text.as_str()) {
            Some(&first) => {
                left_out[place] = true;
                plan.duplicates.push((place, first));
            }
            None => drop(by_text.insert(&segments[place].text, place)),
        }
    }
    let mut newest: HashMap<&str, usize> = HashMap::new();
    for &place in order.iter().filter(|place| is_file(&segments[**place])) {
        let Some(path) = segments[place].path.as_deref().filter(|_| !left_out[place]) else { continue };
        let best = newest.entry(path).or_insert(place);
        if recency(&segments[place]) > recency(&segments[*best]) {
            *best = place;
        }
    }
    for &place in order.iter().filter(|place| is_file(&segments[**place]) && !left_out[**place]) {
        let Some(&best) = segments[place].path.as_deref().and_then(|path| newest.get(path)) else { continue };
        if best != place && are_versions(&segments[place].text, &segments[best].text) {
            plan.conflicts.push((place, best));
        }
    }
    plan.conflicts.iter().for_each(|(older, _)| left_out[*older] = true);
    let kept: Vec<usize> = order.into_iter().filter(|place| !left_out[*place]).collect();
    for (number, &place) in kept.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &segments[kept[before]]);
        let overlap = before.map_or(0, |before| overlap_of(before, &segments[place]));
        plan.shown.push((place, overlap));
    }
    plan
}

/// Returns the indexes of the segments in their original order. Sessions are ordered by their first segment, messages
/// by their number, and everything else by its time.
fn original_order(segments: &[Memory]) -> Vec<usize> {
    let mut begins: HashMap<&SessionId, Millis> = HashMap::new();
    for segment in segments {
        if let Some(session) = &segment.session {
            let begin = begins.entry(session).or_insert(segment.time);
            *begin = segment.time.min(*begin);
        }
    }
    let mut order: Vec<usize> = (0..segments.len()).collect();
    let key = |place: &usize| -> (Millis, Option<&SessionId>, i64, Millis, &MemoryId) {
        let segment = &segments[*place];
        let begin = segment.session.as_ref().map_or(segment.time, |session| begins[session]);
        let number = segment.ordinal.unwrap_or(i64::MAX);
        (begin, segment.session.as_ref(), number, segment.time, &segment.id)
    };
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    order
}

fn is_file(segment: &Memory) -> bool {
    segment.kind == Kind::FileContent
}

fn recency(segment: &Memory) -> (Millis, tiro_base::memory::MemoryKey) {
    (segment.time, segment.key)
}

/// Returns whether two texts with the same path are versions of the same lines, and not different pieces of the file.
/// Versions share at least a tenth of the lines of the shorter text.
fn are_versions(one: &str, other: &str) -> bool {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (short, long) = if lines(one) <= lines(other) { (one, other) } else { (other, one) };
    let known: std::collections::HashSet<&str> = long.lines().map(str::trim).collect();
    let shared = short.lines().map(str::trim).filter(|line| line.len() > 3 && known.contains(line)).count();
    // A piece that only overlaps with the end of the other piece is its continuation, not its version.
    let overlap = tail_in(short, long).max(tail_in(long, short));
    let beyond = shared.saturating_sub(short[..overlap.min(short.len())].lines().count());
    lines(short) == 0 || beyond * 10 >= lines(short)
}

/// If `before` and `segment` are pieces of one source, returns how many bytes at the beginning of `segment` repeat the
/// end of `before`.
fn overlap_of(before: &Memory, segment: &Memory) -> usize {
    let is_same_source = before.kind == segment.kind
        && segment.kind != Kind::Message
        && before.path.is_some()
        && before.path == segment.path;
    if is_same_source { tail_in(&before.text, &segment.text) } else { 0 }
}

/// Returns the length of the longest end of `before` with which `text` begins. The repeated text must end with a whole
/// line. Returns 0 if the repeated text is shorter than [`LEAST_OVERLAP`].
fn tail_in(before: &str, text: &str) -> usize {
    let head = &text.as_bytes()[..text.len().min(MOST_OVERLAP)];
    let tail = &before.as_bytes()[before.len().saturating_sub(MOST_OVERLAP)..];
    // This is the algorithm of Knuth, Morris and Pratt. It finds how much of `head` matches at each position of `tail`,
    // in linear time.
    let mut border = vec![0; head.len()];
    let mut matched = 0;
    for place in 1..head.len() {
        while matched > 0 && head[place] != head[matched] {
            matched = border[matched - 1];
        }
        matched += usize::from(head[place] == head[matched]);
        border[place] = matched;
    }
    matched = 0;
    for &byte in tail {
        while matched > 0 && (matched == head.len() || head[matched] != byte) {
            matched = border[matched - 1];
        }
        matched += usize::from(head.get(matched) == Some(&byte));
    }
    while matched >= LEAST_OVERLAP {
        if matched < text.len() && text.is_char_boundary(matched) && head[matched - 1] == b'\n' {
            return matched;
        }
        matched = border[matched - 1];
    }
    0
}

#[cfg(test)]
mod tests;
