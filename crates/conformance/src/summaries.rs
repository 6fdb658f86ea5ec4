//! Promises about segments, summaries and versions: each is up to date with its messages or is removed, and this
//! remains so after a restart.

use super::fixture::{Answered, Fixture, HOUR, fact, message, name, note, outcomes, quarter};
use tiro_base::memory::{Level, MemoryId};
use tiro_store::*;

pub async fn a_summary_of_a_quarter_leaves_with_its_sources(fixture: Fixture) {
    let mut stands: Vec<MemoryId> = Vec::new();
    for session in ["s", "t"] {
        fixture.say(session, &[session]).await;
        let Saved::Made(id) = fixture.summarise_session(session, session, 0).await else {
            panic!("it is made")
        };
        stands.push(id);
    }
    let save = async |memory| fixture.store.save_quarter(&fixture.scope, memory, 1).await.answered();
    assert_eq!(save(quarter("papaya", &stands)).await, Outcome::Stored);
    assert_eq!(save(quarter("guava", &stands)).await, Outcome::Stored);
    assert_eq!((fixture.found("papaya").await, fixture.found("guava").await), (0, 1));
    let said = fixture.rows("t").await.remove(0).id;
    fixture.forget(&[&said], "f1").await;
    assert_eq!(fixture.found("guava").await, 0, "it was removed with one of its sources");
    // The sources of this summary were read before one of them was forgotten.
    assert_eq!(save(quarter("lychee", &stands)).await, Outcome::Forgotten);
    assert_eq!(
        (fixture.found("lychee").await, save(quarter("lychee", &stands[..1])).await),
        (0, Outcome::Stored)
    );
}

pub async fn a_summary_leaves_with_the_first_of_its_messages_and_the_others_stay(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two", "three", "four"]).await;
    let Saved::Made(first) = fixture.summarise("s", 0, 1).await else { panic!("it is made") };
    let Saved::Made(second) = fixture.summarise("s", 2, 3).await else { panic!("it is made") };
    let texts = async |fixture: &Fixture| {
        let rows = fixture.summaries("s").await;
        rows.into_iter().map(|row| row.summary.text).collect::<Vec<_>>()
    };
    let fixture = fixture.reopened();
    assert_eq!(texts(&fixture).await, ["one | two", "three | four"]);
    fixture.forget(&[&said[1]], "f1").await;
    let left = fixture.summaries("s").await;
    assert_eq!(left.iter().map(|row| &row.id).collect::<Vec<_>>(), [&second]);
    let fixture = fixture.reopened();
    let left = fixture.summaries("s").await;
    assert_eq!(left.iter().map(|row| &row.id).collect::<Vec<_>>(), [&second]);
    assert_eq!(fixture.store.summary(&fixture.scope, &first).await.answered(), None);
    fixture.summarise("s", 0, 1).await;
    assert_eq!(texts(&fixture).await[0], "one");
    // A summary made without the restored message doesn't cover it.
    fixture.undo().await;
    assert_eq!(texts(&fixture).await.len(), 1);
    assert!(matches!(fixture.summarise("s", 0, 1).await, Saved::Made(id) if id == first));
    assert_eq!(texts(&fixture).await[0], "one | two");
}

pub async fn a_summary_of_messages_that_changed_is_not_stored(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two"]).await;
    let (late, ahead) = (fixture.draft("s", 0, 1).await, fixture.draft("s", 0, 5).await);
    let save =
        async |summary: Summary| fixture.store.save_summary(&fixture.scope, summary, 1).await.answered();
    fixture.say("s", &["three"]).await;
    assert_eq!(save(ahead).await, Saved::SourcesChanged, "the range has one more message now");
    fixture.forget(&[&said[0], &said[1]], "f1").await;
    assert_eq!(save(late.clone()).await, Saved::SourcesChanged);
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert_eq!(save(late).await, Saved::SourcesChanged);
    assert!(fixture.reopened().summaries("s").await.is_empty());
}

pub async fn of_two_that_make_one_summary_one_stores_it(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    let other = fixture.engine.open();
    let draft = fixture.draft("s", 0, 1).await;
    let (one, two) = tokio::join!(
        fixture.store.save_summary(&fixture.scope, draft.clone(), 1),
        other.save_summary(&fixture.scope, draft.clone(), 1)
    );
    let saved = [one.answered(), two.answered()];
    assert!(saved.iter().any(|saved| matches!(saved, Saved::Made(_))), "{saved:?}");
    assert!(saved.iter().any(|saved| matches!(saved, Saved::AlreadyMade(_))), "{saved:?}");
    assert_eq!(fixture.summaries("s").await.len(), 1);
}

pub async fn the_newest_version_of_a_summary_is_served(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    fixture.summarise("s", 0, 1).await;
    assert_eq!(fixture.summaries("s").await[0].version, 1);
    let draft = fixture.draft("s", 0, 1).await;
    let by_model = Summary { provider: "local".into(), text: "better".into(), ..draft };
    fixture.store.save_summary(&fixture.scope, by_model.clone(), 2).await.answered();
    let newest = async |fixture: &Fixture| {
        let rows = fixture.summaries("s").await;
        rows.into_iter().map(|row| (row.version, row.summary.text, row.summary.cited)).collect::<Vec<_>>()
    };
    assert_eq!(newest(&fixture).await, [(2, "better".to_owned(), vec![0, 1])]);
    // The same provider is asked again. Its stored answer is replaced if it is from before `since`, and kept
    // otherwise.
    let again = |text: &str| Summary { text: text.into(), ..by_model.clone() };
    let saved = fixture.store.save_version(&fixture.scope, again("best"), 2, 3).await.answered();
    assert!(matches!(saved, Saved::AlreadyMade(_)), "{saved:?}");
    let saved = fixture.store.save_version(&fixture.scope, again("best"), 3, 3).await.answered();
    assert!(matches!(saved, Saved::Made(_)), "{saved:?}");
    let fixture = fixture.reopened();
    assert_eq!(newest(&fixture).await, [(3, "best".to_owned(), vec![0, 1])]);
}

pub async fn segments_follow_one_another_and_count_living_messages(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two", "three", "four", "five"]).await;
    fixture.forget(&[&said[2]], "f1").await;
    fixture.close_segments("s", &[(0, 0, 1)]).await;
    // The message between the two segments is forgotten. When it is restored, it belongs to the second segment.
    fixture.close_segments("s", &[(0, 0, 4), (1, 3, 4)]).await;
    fixture.close_segments("s", &[(3, 9, 12)]).await;
    let counted = async |fixture: &Fixture| {
        let rows = fixture.store.segments(&fixture.scope, &name("s")).await.answered();
        rows.iter().map(|row| (row.first, row.last, row.messages, row.tokens)).collect::<Vec<_>>()
    };
    assert_eq!(counted(&fixture).await, [(0, 1, 2, 2), (2, 4, 2, 2)]);
    fixture.undo().await;
    fixture.forget(&[&said[0]], "f2").await;
    let fixture = fixture.reopened();
    assert_eq!(counted(&fixture).await, [(0, 1, 1, 1), (2, 4, 3, 3)]);
}

pub async fn of_two_that_close_a_segment_one_does(fixture: Fixture) {
    let session = name("s");
    fixture.say("s", &["one", "two", "three", "four"]).await;
    let other = fixture.engine.open();
    let longer = vec![SegmentRow { number: 0, first: 0, last: 2, messages: 0, tokens: 0 }];
    let longer = other.add_segments(&fixture.scope, &session, longer);
    let (_, added) = tokio::join!(fixture.close_segments("s", &[(0, 0, 1)]), longer);
    added.answered();
    let rows = fixture.store.segments(&fixture.scope, &name("s")).await.answered();
    assert_eq!(rows.len(), 1);
    assert!([1, 2].contains(&rows[0].last) && rows[0].messages == rows[0].last + 1, "{rows:?}");
    fixture.close_segments("s", &[(1, 9, 3)]).await;
    let next = fixture.store.segments(&fixture.scope, &name("s")).await.answered().remove(1);
    assert_eq!((next.first, next.last), (rows[0].last + 1, 3));
}

/// If the range of a summary extended beyond the end of its session, the summary would cover messages that are
/// stored later.
pub async fn a_summary_ends_with_its_session(fixture: Fixture) {
    fixture.say("s", &["one"]).await;
    fixture.summarise("s", 0, 7).await;
    fixture.say("s", &["two"]).await;
    let row = fixture.summaries("s").await.remove(0).summary;
    assert_eq!((row.first, row.last, row.text.as_str()), (0, 0, "one"));
}

pub async fn a_summary_is_stored_with_its_fields(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    let draft =
        Summary { segment: Some(3), quality: 0.5, model: "m".into(), ..fixture.draft("s", 0, 1).await };
    let saved = fixture.store.save_summary(&fixture.scope, draft.clone(), 7).await.answered();
    let Saved::Made(id) = saved else { panic!("it is made") };
    let fixture = fixture.reopened();
    let row = fixture.store.summary(&fixture.scope, &id).await.answered().expect("it is stored");
    assert_eq!((row.id, row.version, row.made_at, row.summary), (id, 1, 7, draft));
}

pub async fn summaries_are_served_by_level(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    for level in [Level::Brief, Level::Detailed] {
        let draft = Summary { level, ..fixture.draft("s", 0, 1).await };
        fixture.store.save_summary(&fixture.scope, draft, 1).await.answered();
    }
    let levels = async |level| {
        let rows = fixture.store.summaries(&fixture.scope, &name("s"), level).await.answered();
        rows.into_iter().map(|row| row.summary.level).collect::<Vec<_>>()
    };
    assert_eq!(levels(Some(Level::Brief)).await, [Level::Brief]);
    assert_eq!((levels(Some(Level::Standard)).await.len(), levels(None).await.len()), (0, 2));
}

pub async fn summaries_are_counted_with_their_sources(fixture: Fixture) {
    fixture.say("s", &["one", "two", "three"]).await;
    fixture.close_segments("s", &[(0, 0, 1)]).await;
    let draft = Summary { tokens: 1, ..fixture.draft("s", 0, 1).await };
    fixture.store.save_summary(&fixture.scope, draft, 1).await.answered();
    let counts = fixture.store.summary_counts(&fixture.scope).await.answered();
    let rows = counts
        .iter()
        .map(|row| (row.level, row.provider.as_str(), row.summaries, row.tokens, row.source_tokens));
    assert_eq!(rows.collect::<Vec<_>>(), [(Level::Standard, "extractive", 1, 1, 2)]);
    let segments = fixture.store.summarised_segments(&fixture.scope).await.answered();
    let rows = segments.iter().map(|row| (row.segment.messages, row.segment.tokens, row.summaries));
    assert_eq!(rows.collect::<Vec<_>>(), [(2, 2, [None, Some(1), None])]);
}

pub async fn a_session_has_one_summary(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    let Saved::Made(first) = fixture.summarise_session("s", "cherimoya", 1).await else {
        panic!("it is made")
    };
    assert_eq!(fixture.found("cherimoya").await, 1);
    fixture.say("s", &["three"]).await;
    assert!(matches!(fixture.summarise_session("s", "mangosteen", 2).await, Saved::Made(_)));
    // Another process stores a summary of fewer messages afterwards.
    assert!(matches!(fixture.summarise_session("s", "salak", 1).await, Saved::AlreadyMade(_)));
    let fixture = fixture.reopened();
    assert_eq!((fixture.found("cherimoya").await, fixture.found("mangosteen").await), (0, 1));
    assert_eq!(fixture.living(&first).await, None);
    let check = fixture.store.check(&fixture.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

pub async fn the_summary_of_a_session_leaves_with_its_messages(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two", "three"]).await;
    assert!(matches!(fixture.summarise_session("s", "mangosteen", 2).await, Saved::Made(_)));
    assert!(fixture.store.conversation(&fixture.scope, &name("s")).await.answered().is_some());
    fixture.forget(&[&said[0]], "f1").await;
    assert_eq!(fixture.store.conversation(&fixture.scope, &name("s")).await.answered(), None);
    let fixture = fixture.reopened();
    assert_eq!(fixture.found("mangosteen").await, 0);
    assert_eq!(fixture.store.conversation(&fixture.scope, &name("s")).await.answered(), None);
    let check = fixture.store.check(&fixture.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
    // A summary made without a restored message doesn't cover it.
    assert!(matches!(fixture.summarise_session("s", "rambutan", 2).await, Saved::Made(_)));
    fixture.undo().await;
    assert_eq!(fixture.found("rambutan").await, 0);
}

pub async fn a_summary_of_a_session_is_due_at_its_date(fixture: Fixture) {
    for session in ["a", "b"] {
        fixture.say(session, &[session]).await;
        fixture.summarise_session(session, &format!("short {session}"), 0).await;
    }
    for (session, due) in [("a", 200), ("b", 100)] {
        fixture.store.postpone_conversation(&fixture.scope, &name(session), due).await.answered();
    }
    let due = async |now, limit| fixture.store.due_conversations(&fixture.scope, now, limit).await.answered();
    assert_eq!((due(99, 9).await, due(100, 9).await), (vec![], vec![name("b")]));
    assert_eq!((due(200, 9).await, due(200, 1).await), (vec![name("b"), name("a")], vec![name("b")]));
    // A new summary of the same messages keeps the due date; a summary of more messages removes it.
    fixture.summarise_session("a", "other words", 0).await;
    assert_eq!(due(200, 9).await, [name("b"), name("a")]);
    fixture.say("a", &["more"]).await;
    fixture.summarise_session("a", "of more", 1).await;
    assert_eq!(due(200, 9).await, [name("b")]);
}

pub async fn sessions_grow_until_they_are_worked_off(fixture: Fixture) {
    let grown = async || fixture.store.grown_sessions(&fixture.scope, 9).await.answered();
    let work_off =
        async |grown: GrownSession| fixture.store.worked_off(&fixture.scope, grown).await.answered();
    let said = fixture.say("s", &["one"]).await;
    let first = grown().await.remove(0);
    assert_eq!(first.session, name("s"));
    work_off(first).await;
    assert!(grown().await.is_empty());
    fixture.forget(&[&said[0]], "f1").await;
    assert_eq!(grown().await.len(), 1, "its summary is outdated");
    fixture.undo().await;
    assert_eq!(grown().await.len(), 1);
}

pub async fn a_session_that_grew_meanwhile_is_not_worked_off(fixture: Fixture) {
    fixture.say("s", &["one"]).await;
    let early = fixture.store.grown_sessions(&fixture.scope, 9).await.answered().remove(0);
    fixture.say("s", &["two"]).await;
    fixture.store.worked_off(&fixture.scope, early.clone()).await.answered();
    let grown = fixture.store.grown_sessions(&fixture.scope, 9).await.answered();
    assert_eq!(grown.len(), 1);
    assert_ne!(grown[0].version, early.version);
}

pub async fn sessions_that_grew_first_come_first(fixture: Fixture) {
    for session in ["b", "a", "c"] {
        fixture.say(session, &[session]).await;
    }
    fixture.say("b", &["more"]).await;
    let grown = async |limit| {
        let rows = fixture.store.grown_sessions(&fixture.scope, limit).await.answered();
        rows.iter().map(|row| row.session.to_string()).collect::<Vec<_>>().concat()
    };
    assert_eq!((grown(9).await, grown(2).await), ("acb".into(), "ac".into()));
}

/// Changes the session `s`, in a different way at each step.
async fn change(fixture: &Fixture, said: &[MemoryId], step: usize) {
    match step {
        0 => drop(fixture.say("s", &["three"]).await),
        1 => drop(fixture.forget(&[&said[0]], "f1").await),
        2 => drop(fixture.undo().await),
        3 => drop(fixture.store.mark(&fixture.scope, said, true, None).await.answered()),
        4 => drop(fixture.summarise("s", 0, 1).await),
        _ => {
            let mut waiting = fixture.store.pending_chunks(&fixture.scope, None, 1).await.answered();
            let embeddings = vec![(waiting.remove(0), vec![0.5; 4])];
            fixture.store.save_embeddings(&fixture.scope, "space", embeddings).await.answered();
        }
    }
}

pub async fn a_version_changes_with_everything_in_its_scope(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two"]).await;
    fixture.say("other", &["one"]).await;
    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    for step in 0..=6 {
        if step > 0 {
            change(&fixture, &said, step - 1).await;
        }
        seen[0].push(fixture.version(&["s"]).await);
        seen[1].push(fixture.version(&["other", "s"]).await);
        seen[2].push(fixture.store.source_state(&fixture.scope).await.answered().version);
    }
    for mut versions in seen {
        versions.sort_unstable_by_key(|version| version.bytes());
        versions.dedup();
        assert_eq!(versions.len(), 7);
    }
}

pub async fn a_version_stays_while_other_sessions_change(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two"]).await;
    fixture.say("other", &["one"]).await;
    let other = fixture.version(&["other"]).await;
    assert_eq!(fixture.version(&["other", "s"]).await, fixture.version(&["s", "other"]).await);
    for step in 0..6 {
        change(&fixture, &said, step).await;
        assert_eq!(fixture.version(&["other"]).await, other, "step {step}");
    }
}

pub async fn a_quarter_leaves_other_notes_alone(fixture: Fixture) {
    let said = fixture.say("s", &["one"]).await;
    let kept = vec![note("papaya"), fact("s", "of one", &[&said[0]])];
    assert_eq!(outcomes(&fixture.save(kept).await), [Outcome::Stored, Outcome::Stored]);
    let Saved::Made(id) = fixture.summarise_session("s", "guava", 0).await else { panic!("it is made") };
    let mut spring = quarter("lychee", std::slice::from_ref(&id));
    spring.draft.topic = Some("quarter 2024-Q2".into());
    for memory in [spring, quarter("salak", std::slice::from_ref(&id))] {
        assert_eq!(
            fixture.store.save_quarter(&fixture.scope, memory, HOUR).await.answered(),
            Outcome::Stored
        );
    }
    for word in ["papaya", "guava", "lychee", "salak"] {
        assert_eq!(fixture.found(word).await, 1, "{word}");
    }
    // Forgetting a source removes the summaries of both quarters.
    fixture.save(vec![message("s", "two")]).await;
    fixture.forget(&[&said[0]], "f1").await;
    assert_eq!((fixture.found("lychee").await, fixture.found("salak").await), (0, 0));
}
