use proptest::prelude::*;

use super::*;
use tiro_base::memory::{MemoryKey, Provenance};
use tiro_base::scope::{AuthorId, Visibility};

fn segment(kind: Kind, n: i64, path: Option<&str>, time: Millis, text: &str) -> Memory {
    Memory {
        id: MemoryId::derive(kind, None, &n.to_string()),
        key: MemoryKey::from_store(n),
        kind,
        provenance: Provenance::ModelSaid,
        author: AuthorId::new("ines"),
        visibility: Visibility::Project,
        text: text.to_owned(),
        session: None,
        ordinal: None,
        role: None,
        speaker: None,
        title: None,
        topic: None,
        source_id: None,
        path: path.map(str::to_owned),
        branch: None,
        head_sha: None,
        time,
        importance: None,
        marked: false,
        tokens: 1,
        indexed: None,
        is_damaged: false,
    }
}

fn message(session: &str, ordinal: i64, time: Millis, text: &str) -> Memory {
    let message = segment(Kind::Message, ordinal, None, time, text);
    Memory { session: SessionId::parse(session), ordinal: Some(ordinal), ..message }
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("let value_{n} = compute({n});\n")).collect()
}

#[test]
fn messages_come_in_the_order_of_their_session_whatever_their_times() {
    let segments = [message("b", 1, 50, "two"), message("a", 0, 40, "other"), message("b", 0, 60, "one")];
    let shown: Vec<usize> = plan(&segments).shown.into_iter().map(|(place, _)| place).collect();
    assert_eq!(shown, [1, 2, 0]);
}

#[test]
fn a_text_is_shown_once() {
    let segments = [message("a", 0, 1, "same"), message("a", 1, 2, "same"), message("a", 2, 3, "no")];
    let plan = plan(&segments);
    assert_eq!((plan.shown, plan.duplicates), (vec![(0, 0), (2, 0)], vec![(1, 0)]));
}

#[test]
fn of_two_versions_of_a_file_the_newest_is_shown() {
    let (old, new) = (lines(0..20), lines(0..18) + "return value_17;\n");
    let file = |n, time, text: &str| segment(Kind::FileContent, n, Some("src/a.rs"), time, text);
    let plan = plan(&[file(1, 9, &new), file(2, 3, &old)]);
    assert_eq!((plan.shown, plan.conflicts), (vec![(0, 0)], vec![(1, 0)]));
}

#[test]
fn pieces_of_one_file_are_joined_where_they_overlap() {
    let (first, second) = (lines(0..20), lines(14..40));
    let file = |n, text: &str| segment(Kind::FileContent, n, Some("src/a.rs"), n, text);
    let segments = [file(1, &first), file(2, &second)];
    let plan = plan(&segments);
    assert!(plan.conflicts.is_empty(), "{plan:?}");
    let joined: String = plan.shown.iter().map(|(place, from)| &segments[*place].text[*from..]).collect();
    assert_eq!(joined, lines(0..40));
}

proptest! {
    /// Nothing is lost: each segment is shown, or named as the duplicate or the older version of one that is shown.
    #[test]
    fn every_segment_is_shown_or_accounted_for(
        given in prop::collection::vec((0..3usize, 0..3usize, 0..50i64, 0..30usize), 0..12),
    ) {
        let segments: Vec<Memory> = given
            .iter()
            .enumerate()
            .map(|(n, (kind, path, time, length))| {
                let kind = [Kind::Message, Kind::FileContent, Kind::ErrorLog][*kind];
                segment(kind, n as i64, [None, Some("a"), Some("b")][*path], *time, &lines(0..*length))
            })
            .collect();
        let plan = plan(&segments);
        let shown: Vec<usize> = plan.shown.iter().map(|(place, _)| *place).collect();
        let mut all: Vec<usize> = shown.clone();
        for (place, other) in plan.duplicates.iter().chain(&plan.conflicts) {
            all.push(*place);
            prop_assert!(shown.contains(other) || plan.conflicts.iter().any(|(older, _)| older == other));
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..segments.len()).collect::<Vec<_>>());
        for (number, (place, overlap)) in plan.shown.iter().enumerate() {
            if *overlap > 0 {
                let before = &segments[plan.shown[number - 1].0].text;
                prop_assert!(before.ends_with(&segments[*place].text[..*overlap]));
            }
        }
    }
}
