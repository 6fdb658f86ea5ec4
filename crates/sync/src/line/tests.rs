//! Lines are read as they are written, and hostile ones are refused.

use serde_json::{Value, json};

use super::*;
use tiro_base::memory::{Memory, MemoryKey};
use tiro_base::scope::Visibility;

fn change() -> Change {
    let id = MemoryId::derive(Kind::Decision, None, "1");
    let memory = Memory {
        id: id.clone(),
        key: MemoryKey::NOT_STORED,
        kind: Kind::Decision,
        provenance: Provenance::UserSaid,
        author: AuthorId::new("ana"),
        visibility: Visibility::Project,
        text: "Wir nehmen die grüne Brücke.".to_owned(),
        session: SessionId::parse("ana/plan"),
        ordinal: Some(4),
        role: Some(Role::User),
        speaker: None,
        title: Some("Brücke".to_owned()),
        topic: None,
        source_id: None,
        path: Some("bridge.md".to_owned()),
        branch: Some("main".to_owned()),
        head_sha: None,
        time: 1_700_000_000_000,
        importance: Some(0.5),
        marked: true,
        tokens: 9,
        indexed: None,
        is_damaged: false,
    };
    let state = ExchangedState {
        is_marked: true,
        importance: Some(0.5),
        marked_at: Stamp::NEVER.next(12),
        ..ExchangedState::default()
    };
    let embedding = Some(("space/2".to_owned(), vec![0.6, 0.8]));
    let content = ExchangedMemory {
        memory,
        references: vec![MemoryId::derive(Kind::Fact, None, "2")],
        supersedes: Vec::new(),
        superseded_by: Vec::new(),
        lead: Some(9),
        files: vec!["a.rs".to_owned()],
        commit: None,
        chunks: vec![ExchangedChunk { start: 0, end: 30, embedding }],
    };
    Change {
        number: 9,
        id,
        kind: Kind::Decision,
        author: AuthorId::new("ana"),
        visibility: Visibility::Project,
        state,
        content: Some(Box::new(content)),
    }
}

fn line() -> Value {
    serde_json::from_str(&write(&change(), Vectors::Kept)).unwrap()
}

fn tried(line: &Value) -> Result<Arrived, Misread> {
    read(line.to_string().as_bytes())
}

#[test]
fn a_change_is_read_as_it_was_written() {
    let sent = change();
    let arrived = tried(&line()).unwrap();
    assert_eq!((&arrived.id, arrived.kind, &arrived.author), (&sent.id, sent.kind, &sent.author));
    assert_eq!(arrived.state, sent.state);
    let ArrivedMemory { draft, ordinal, embedded, is_indexed, .. } = *arrived.content.unwrap();
    let memory = sent.content.unwrap().memory;
    assert_eq!((&draft.text, draft.session, draft.time), (&memory.text, memory.session, memory.time));
    assert_eq!((draft.lead.as_deref(), ordinal, is_indexed), (Some("Wir nehme"), Some(4), true));
    assert_eq!(
        (draft.path, draft.branch, draft.files),
        (memory.path, memory.branch, vec!["a.rs".to_owned()])
    );
    assert_eq!((draft.role, draft.title, draft.references.len()), (memory.role, memory.title, 1));
    assert_eq!(draft.identity, Identity::Known(sent.id));
    assert_eq!(embedded.len(), 1);
    assert!((embedded[0].embedding.as_ref().unwrap().1[0] - 0.6).abs() < 0.001);
    let without = read(write(&change(), Vectors::LeftOut).as_bytes()).unwrap();
    assert!(without.content.is_some_and(|memory| memory.embedded.is_empty() && memory.is_indexed));
}

#[test]
fn a_memory_without_content_has_a_short_line() {
    let state =
        ExchangedState { is_forgotten: true, forgotten_at: Stamp::NEVER.next(3), ..Default::default() };
    let line = write(&Change { content: None, state, ..change() }, Vectors::Kept);
    let arrived = read(line.as_bytes()).unwrap();
    assert!(arrived.content.is_none() && arrived.state == state && line.len() < 120, "{line}");
    let new = write(&Change { content: None, state: ExchangedState::default(), ..change() }, Vectors::Kept);
    assert!(!new.contains("state"), "{new}");
}

#[test]
fn a_commit_has_its_id() {
    let mut change = change();
    let content = change.content.as_mut().unwrap();
    (change.kind, content.memory.kind) = (Kind::Commit, Kind::Commit);
    let commit = CommitRecord { sha: "a".repeat(40), files: vec!["a".into()], ..CommitRecord::default() };
    content.commit = Some(commit.clone());
    let arrived = read(write(&change, Vectors::Kept).as_bytes()).unwrap().content.unwrap();
    assert_eq!(arrived.draft.commit, Some(commit));
}

#[test]
fn what_a_later_version_adds_is_ignored_and_what_it_says_otherwise_is_named() {
    let mut later = line();
    later["new"] = json!([1]);
    later["memory"]["colour"] = json!({"deep": true});
    later["state"]["pinned"] = json!(true);
    assert!(tried(&later).is_ok());
    for (place, word) in [("/kind", "opinion"), ("/memory/provenance", "guessed"), ("/memory/role", "critic")]
    {
        let mut later = line();
        *later.pointer_mut(place).unwrap() = json!(word);
        assert_eq!(tried(&later).unwrap_err(), Misread::Later, "{place}");
    }
}

#[test]
fn lines_with_wrong_values_are_refused_each_by_itself() {
    for (place, value) in [
        ("/id", json!("../../etc")),
        ("/id", json!(7)),
        ("/author", json!("")),
        ("/author", json!("ana\u{1b}[2J")),
        ("/author", json!("a".repeat(201))),
        ("/state/importance", json!(2)),
        ("/state/importance", json!("high")),
        ("/state/marked_at", json!(-1)),
        ("/state/marked_at", json!(1e300)),
        ("/state/marked", json!("true")),
        ("/memory/text", json!("")),
        ("/memory/text", Value::Null),
        ("/memory/time", json!(i64::MAX)),
        ("/memory/time", json!(-1)),
        ("/memory/ordinal", json!(-1)),
        ("/memory/lead", json!(1_000)),
        // In the middle of a letter.
        ("/memory/lead", json!(18)),
        ("/memory/session", json!("a\nb")),
        ("/memory/references", json!(["m1"])),
        ("/memory/files", json!([1])),
        ("/memory/commit", json!({"sha": "a".repeat(40)})),
    ] {
        let mut wrong = line();
        match wrong.pointer_mut(place) {
            Some(old) => *old = value.clone(),
            None => wrong["memory"][&place["/memory/".len()..]] = value.clone(),
        }
        assert_eq!(tried(&wrong).err(), Some(Misread::Malformed), "{place}: {value}");
    }
    let mut long = line();
    long["memory"]["title"] = json!("x".repeat(LONGEST_MEMBER + 1));
    assert_eq!(tried(&long).err(), Some(Misread::TooLong));
    for bytes in [&b""[..], b"null", b"[]", b"\xff", b"{\"id\":"] {
        assert_eq!(read(bytes).err(), Some(Misread::Malformed), "{bytes:?}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(read(deep.as_bytes()).err(), Some(Misread::Malformed));
}

#[test]
fn a_vector_that_lies_is_left_out_and_the_memory_is_taken() {
    for (member, value) in [
        ("vector", json!(numbers::write(&[1.0, 1.0]))),
        ("vector", json!("?")),
        ("start", json!(31)),
        ("end", json!(10_000)),
        ("end", json!(0)),
        ("space", json!("x".repeat(LONGEST_MEMBER + 1))),
    ] {
        let mut wrong = line();
        wrong["memory"]["chunks"][0][member] = value;
        assert!(tried(&wrong).unwrap().content.unwrap().embedded.is_empty(), "{member}");
    }
}
