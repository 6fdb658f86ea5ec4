//! Promises about reading memories and sessions: by key, by place in a session, page by page, and by name.

use super::fixture::{
    Answered, Fixture, by_words, commit, conversation, fact, message, message_at, name, note, prepared,
};
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Kind, Memory, MemoryId, Provenance};
use tiro_store::*;

pub async fn memories_come_in_the_order_of_their_keys(fixture: Fixture) {
    fixture.say("s", &["maple", "willow", "larch"]).await;
    let mut rows = fixture.rows("s").await;
    rows.sort_by_key(|row| row.ordinal);
    let keys = vec![rows[2].key, rows[0].key, rows[1].key];
    let texts = fixture.store.texts(&fixture.scope, keys.clone()).await.answered();
    assert_eq!(texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["larch", "maple", "willow"]);
    let memories = fixture.store.memories(&fixture.scope, keys.clone()).await.answered();
    assert_eq!(memories.iter().map(|memory| memory.key).collect::<Vec<_>>(), keys);
}

pub async fn memories_out_of_scope_are_left_out(fixture: Fixture) {
    fixture.say("s", &["maple"]).await;
    fixture.say("other", &["willow"]).await;
    let own = fixture.rows("s").await.remove(0);
    let keys = vec![fixture.rows("other").await.remove(0).key, own.key];
    let scope = fixture.only(&["s"]);
    let memories = fixture.store.memories(&scope, keys.clone()).await.answered();
    assert_eq!(memories.iter().map(|memory| &memory.id).collect::<Vec<_>>(), [&own.id]);
    assert_eq!(fixture.store.texts(&scope, keys).await.answered(), [(own.key, "maple".to_owned())]);
}

pub async fn a_search_result_is_shown_at_its_place(fixture: Fixture) {
    fixture.say("s", &["maple"]).await;
    fixture.say("other", &["willow"]).await;
    let mut found = Vec::new();
    for word in ["willow", "maple"] {
        let hits = fixture.candidates(&fixture.scope, &Filter::default(), word).await;
        found.extend(hits.iter().map(|hit| (hit.memory, hit.chunk)));
    }
    let shown = fixture.store.shown(&fixture.only(&["s"]), found.clone()).await.answered();
    assert_eq!(shown.len(), 1);
    let one = &shown[0];
    assert_eq!((one.place, one.memory.text.as_str(), one.chunk.key), (1, "maple", found[1].1));
    assert_eq!((one.chunk.start, one.chunk.end, one.chunk.tokens), (0, 5, 1));
}

pub async fn messages_are_shown_with_those_around_them(fixture: Fixture) {
    let ids = fixture.say("s", &["a", "b", "c", "d", "e"]).await;
    let around = async |ordinal, before, after| {
        let found =
            fixture.store.surroundings(&fixture.scope, &name("s"), ordinal, before, after).await.answered();
        found.into_iter().map(|memory| memory.text).collect::<Vec<_>>().concat()
    };
    assert_eq!(around(2, 1, 1).await, "bcd");
    assert_eq!(around(0, 3, 0).await, "a");
    // A forgotten message is skipped and does not count as a neighbour.
    fixture.forget(&[&ids[1]], "f1").await;
    assert_eq!(around(2, 1, 2).await, "acde");
}

pub async fn neighbours_come_once_in_the_order_of_keys(fixture: Fixture) {
    fixture.say("s", &["a", "b", "c", "d"]).await;
    let mut rows = fixture.rows("s").await;
    rows.sort_by_key(|row| row.ordinal);
    let keys = vec![rows[3].key, rows[1].key];
    let before = Before { session: name("s"), ordinal: 3, most: 2 };
    let (beside, before) = fixture.store.beside(&fixture.scope, keys, Some(before)).await.answered();
    let texts = |memories: &[Memory]| memories.iter().map(|memory| memory.text.clone()).collect::<Vec<_>>();
    assert_eq!(
        (texts(&beside), texts(&before)),
        (vec!["a".into(), "c".into()], vec!["b".into(), "c".into()])
    );
}

pub async fn marks_are_kept_until_they_are_taken_away(fixture: Fixture) {
    let ids = fixture.say("s", &["maple", "willow"]).await;
    let unknown = MemoryId::derive(Kind::Message, None, "unknown");
    let named = [unknown, ids[1].clone()];
    let mark = async |marked| fixture.store.mark(&fixture.scope, &named, marked, None).await.answered();
    assert_eq!(mark(true).await, ids[1..]);
    let marked = async || fixture.rows("s").await.iter().map(|row| row.marked).collect::<Vec<_>>();
    assert_eq!(marked().await, [false, true]);
    assert_eq!((mark(false).await, marked().await), (ids[1..].to_vec(), vec![false, false]));
}

pub async fn important_messages_are_marked_or_valued(fixture: Fixture) {
    let ids = fixture.say("s", &["a", "b", "c", "d"]).await;
    let mark = async |place_of: usize, marked, importance| {
        let ids = [ids[place_of].clone()];
        fixture.store.mark(&fixture.scope, &ids, marked, importance).await.answered();
    };
    mark(0, true, None).await;
    mark(1, false, Some(0.9)).await;
    mark(2, false, Some(0.3)).await;
    let important = async |limit| {
        let query = ContextQuery { importance: 0.5, important: limit, ..ContextQuery::default() };
        fixture.parts("s", query).await.important.into_iter().map(|memory| memory.text).collect::<Vec<_>>()
    };
    assert_eq!(
        (important(9).await, important(1).await),
        (vec!["b".into(), "a".into()], vec!["b".to_owned()])
    );
}

pub async fn facts_of_a_session_come_latest_first(fixture: Fixture) {
    let ids = fixture.say("s", &["maple"]).await;
    for (text, time) in [("first", 10), ("third", 30), ("second", 20)] {
        let mut fact = fact("s", text, &[&ids[0]]);
        fact.draft.time = time;
        fixture.put(fact).await;
    }
    fixture.put(fact("other", "elsewhere", &[&ids[0]])).await;
    let facts = async |limit| {
        let query = ContextQuery { facts: limit, ..ContextQuery::default() };
        fixture.parts("s", query).await.facts.into_iter().map(|memory| memory.text).collect::<Vec<_>>()
    };
    assert_eq!(facts(9).await, ["third", "second", "first"]);
    assert_eq!(facts(1).await, ["third"]);
}

pub async fn pages_of_a_list_hold_each_memory_once(fixture: Fixture) {
    let texts = ["a", "b", "c", "d", "e"];
    for text in texts {
        fixture.put(note(text)).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    for _ in 0..texts.len() {
        let page = fixture.store.list(&fixture.scope, &Filter::default(), after, 2).await.answered();
        after = page.last().map(|memory| memory.key).or(after);
        seen.extend(page.into_iter().map(|memory| memory.text));
    }
    assert_eq!(seen, ["e", "d", "c", "b", "a"]);
}

pub async fn words_are_completed_by_the_most_frequent(fixture: Fixture) {
    for text in ["a maple", "the marmot", "one maple and a map", "larch"] {
        fixture.put(note(text)).await;
    }
    let words =
        async |beginning, limit| fixture.store.completions(&fixture.scope, beginning, limit).await.answered();
    assert_eq!(words("ma", 2).await, ["mapl", "map"]);
    assert_eq!(words("map", 9).await, ["mapl"]);
    assert!(words("oak", 9).await.is_empty());
}

pub async fn the_latest_memories_come_first(fixture: Fixture) {
    for (text, time) in [("c", 30), ("e", 50), ("a", 10), ("b", 20), ("d", 30)] {
        fixture.put(message_at("s", text, time)).await;
    }
    let latest = async |filter: Filter, limit| {
        let found = fixture.store.latest(&fixture.scope, &filter, limit).await.answered();
        found.into_iter().map(|memory| memory.text).collect::<Vec<_>>().concat()
    };
    assert_eq!(latest(Filter::default(), 9).await, "edcba");
    assert_eq!(latest(Filter::default(), 2).await, "ed");
    let between = Filter { since: Some(20), until: Some(50), ..Filter::default() };
    assert_eq!(latest(between, 9).await, "dcb");
    let commits = Filter { kinds: Some(vec![Kind::Commit]), ..Filter::default() };
    assert_eq!(latest(commits, 9).await, "");
    fixture.put(commit('f', "f", 40)).await;
    let both = Filter { kinds: Some(vec![Kind::Message, Kind::Commit, Kind::Message]), ..Filter::default() };
    assert_eq!(latest(both.clone(), 9).await, "efdcba");
    assert_eq!(latest(both, 2).await, "ef");
}

pub async fn activity_is_counted_by_session_and_quarter_hour(fixture: Fixture) {
    let quarter = QUARTER_HOUR;
    for (session, time) in [("t", quarter), ("s", 5), ("s", quarter - 1), ("s", quarter), ("s", 9 * quarter)]
    {
        fixture.put(message_at(session, &format!("maple at {time}"), time)).await;
    }
    let forgotten = fixture.put(message_at("s", "willow", 6)).await;
    fixture.put(fact("s", "larch", &[&forgotten])).await;
    fixture.forget(&[&forgotten], "f1").await;
    let filter = Filter { until: Some(9 * quarter), ..Filter::default() };
    let rows = fixture.store.activity(&fixture.scope, &filter).await.answered();
    let counted: Vec<_> =
        rows.iter().map(|row| (row.session.as_str(), row.first, row.last, row.messages)).collect();
    let expected = [("s", 5, quarter - 1, 2), ("s", quarter, quarter, 1), ("t", quarter, quarter, 1)];
    assert_eq!(counted, expected);
    assert!(rows.iter().all(|row| row.tokens > 0), "{rows:?}");
    let only = fixture.store.activity(&fixture.only(&["t"]), &Filter::default()).await.answered();
    assert_eq!(only.len(), 1);
}

pub async fn ids_are_found_by_their_beginning(fixture: Fixture) {
    let mut ids = fixture.say("s", &["a", "b", "c", "d", "e"]).await;
    let all = async |scope: &tiro_base::scope::Scope, beginning: &str, limit| {
        fixture.store.ids_beginning(scope, beginning, limit).await.answered()
    };
    assert_eq!(all(&fixture.scope, ids[2].as_str(), 9).await, ids[2..3]);
    fixture.forget(&[&ids[4]], "f1").await;
    ids.truncate(4);
    ids.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    assert_eq!(all(&fixture.scope, "m", 9).await, ids);
    assert_eq!(all(&fixture.scope, "m", 2).await, ids[..2]);
    assert!(all(&fixture.only(&["other"]), "m", 9).await.is_empty());
    assert!(all(&fixture.scope, "x", 9).await.is_empty());
}

pub async fn references_are_known_from_both_ends(fixture: Fixture) {
    let ids = fixture.say("s", &["maple"]).await;
    let mut draft = fact("s", "of maple", &[&ids[0]]).draft;
    draft.kind = Kind::Decision;
    let derived = fixture.put(prepared(draft, "of maple")).await;
    let (source, derived) = (fixture.key(&ids[0]).await, fixture.key(&derived).await);
    let (store, scope) = (&fixture.store, &fixture.scope);
    assert_eq!(store.references(scope, derived).await.answered(), [source]);
    assert_eq!(store.references(scope, source).await.answered(), [derived]);
    assert_eq!(store.refers_to(scope, derived).await.answered(), [source]);
    assert!(store.refers_to(scope, source).await.answered().is_empty());
    let found = store.candidates(scope, by_words(&Filter::default(), &["maple"], 9)).await.answered();
    let places = found.places.answered();
    let taken_from = places.iter().find(|place| place.key == derived).expect("it is found").taken_from;
    assert_eq!(taken_from, Some(source));
}

pub async fn messages_are_read_from_a_place_on(fixture: Fixture) {
    fixture.say("s", &["a", "b", "c"]).await;
    let rows = fixture.store.session_messages(&fixture.scope, &name("s"), 1).await.answered();
    assert_eq!(rows.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [1, 2]);
}

pub async fn sessions_come_latest_first_with_their_counts(fixture: Fixture) {
    fixture
        .save(vec![message_at("old", "a", 10), message_at("old", "b", 20), message_at("new", "c", 30)])
        .await;
    let sessions = fixture.store.sessions(&fixture.scope, 0, 9).await.answered();
    let rows = sessions.iter().map(|row| (row.id.as_str(), row.memories, row.tokens, row.first, row.last));
    assert_eq!(rows.collect::<Vec<_>>(), [("new", 1, 1, 30, 30), ("old", 2, 2, 10, 20)]);
}

pub async fn pages_of_sessions_follow_one_another(fixture: Fixture) {
    for (time, session) in ["a", "b", "c"].iter().enumerate() {
        fixture.put(message_at(session, session, time as i64)).await;
    }
    for scope in [fixture.scope.clone(), fixture.only(&["a", "b", "c"])] {
        let page = async |offset, limit| {
            let rows = fixture.store.sessions(&scope, offset, limit).await.answered();
            rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>().concat()
        };
        assert_eq!(
            (page(0, 2).await, page(2, 2).await, page(3, 2).await),
            ("cb".into(), "a".into(), "".into())
        );
    }
}

pub async fn a_session_is_called_by_name_alias_beginning_or_title(fixture: Fixture) {
    for session in ["auth refactor", "auth", "maple"] {
        fixture.say(session, &["a message"]).await;
    }
    let origin =
        Origin { title: Some("Trees in the Park".into()), aliases: vec!["5f3c".into()], ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("maple"), origin).await.answered();
    for (text, expected) in [
        ("auth", vec!["auth"]),
        ("auth r", vec!["auth refactor"]),
        ("5f3c", vec!["maple"]),
        ("the park", vec!["maple"]),
        ("unknown", vec![]),
    ] {
        let found = fixture.store.sessions_called(&fixture.scope, text, 9).await.answered();
        assert_eq!(found.iter().map(|session| session.as_str()).collect::<Vec<_>>(), expected, "{text}");
    }
}

pub async fn a_session_is_reached_by_its_alias(fixture: Fixture) {
    fixture.say("maple", &["a", "b"]).await;
    let origin = Origin { aliases: vec!["5f3c".into()], ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("maple"), origin).await.answered();
    assert_eq!(fixture.rows("5f3c").await.len(), 2);
    let scope = fixture.only(&["5f3c"]);
    assert_eq!(fixture.store.list(&scope, &Filter::default(), None, 9).await.answered().len(), 2);
}

pub async fn a_session_is_described_by_title_and_client(fixture: Fixture) {
    fixture.say("s", &["how the user began", "and went on"]).await;
    let about = async || {
        fixture.store.about_sessions(&fixture.scope, vec![name("unknown"), name("s")]).await.answered()
    };
    assert_eq!(about().await[1].title.as_deref(), Some("how the user began"));
    let origin =
        Origin { title: Some("A title".into()), client: Some("a client".into()), ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("s"), origin).await.answered();
    let known = about().await;
    assert_eq!((known[1].title.as_deref(), known[1].client.as_deref()), (Some("A title"), Some("a client")));
    assert_eq!((&known[0].title, &known[0].client), (&None, &None));
    // A memory that summarises the session replaces the one title that it names.
    let mut memory = conversation("s", "a summary");
    (memory.draft.title, memory.draft.topic) = (Some("Its own".into()), Some("A title".into()));
    let hash = source_hash(fixture.rows("s").await.iter().map(|row| &row.id));
    fixture.store.save_conversation(&fixture.scope, memory, 1, hash, 1).await.answered();
    let known = about().await.remove(1);
    assert_eq!((known.title.as_deref(), known.given.as_deref()), (Some("Its own"), Some("A title")));
    assert_eq!(fixture.store.sessions_called(&fixture.scope, "own", 5).await.answered(), [name("s")]);
    let renamed = Origin { title: Some("Renamed".into()), ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("s"), renamed).await.answered();
    assert_eq!(about().await[1].title.as_deref(), Some("Renamed"));
}

pub async fn a_description_keeps_what_it_does_not_name(fixture: Fixture) {
    fixture.say("s", &["a message"]).await;
    let describe = async |title: Option<&str>, client: Option<&str>| {
        let (title, client) = (title.map(str::to_owned), client.map(str::to_owned));
        let origin = Origin { title, client, ..Origin::default() };
        fixture.store.describe_session(&fixture.scope, &name("s"), origin).await.answered();
    };
    describe(Some("A title"), Some("a client")).await;
    describe(Some("Another"), None).await;
    let restored = ForeignSession {
        session: name("s"),
        origin: Origin { client: Some("their client".into()), ..Origin::default() },
        branch: None,
        head_sha: None,
        segments: Vec::new(),
        summaries: Vec::new(),
        conversation: None,
    };
    fixture.store.restore_sessions(&fixture.scope, vec![restored]).await.answered();
    let about = fixture.store.about_sessions(&fixture.scope, vec![name("s")]).await.answered().remove(0);
    assert_eq!((about.title.as_deref(), about.client.as_deref()), (Some("Another"), Some("a client")));
}

pub async fn a_session_stands_where_it_was_last_seen(fixture: Fixture) {
    let on = |text: &str, branch: Option<&str>, head: Option<&str>| {
        let mut message = message("s", text);
        message.draft.branch = branch.map(str::to_owned);
        message.draft.head_sha = head.map(str::to_owned);
        message
    };
    fixture.save(vec![on("a", Some("main"), Some("aaa")), on("b", Some("side"), None)]).await;
    fixture.save(vec![on("c", None, Some("ccc"))]).await;
    let stands = fixture.store.session_stands(&fixture.scope, &name("s")).await.answered();
    assert_eq!(stands, (Some("side".to_owned()), Some("ccc".to_owned())));
}

pub async fn ids_of_clients_are_known_in_other_sessions(fixture: Fixture) {
    for (session, text, id) in [("s", "a", "id 1"), ("other", "b", "id 2")] {
        let mut message = message(session, text);
        message.draft.source_id = Some(id.into());
        fixture.put(message).await;
    }
    let ids = ["id 1", "id 2", "id 3"].map(str::to_owned).to_vec();
    let known = fixture.store.known_elsewhere(&fixture.scope, &name("s"), ids).await.answered();
    assert_eq!(known.into_iter().collect::<Vec<_>>(), ["id 2"]);
}

pub async fn tokens_of_a_session_are_those_of_its_living_messages(fixture: Fixture) {
    let ids = fixture.say("s", &["a", "b", "c", "d"]).await;
    fixture.close_segments("s", &[(0, 0, 1)]).await;
    let tokens = async || fixture.parts("s", ContextQuery::default()).await.tokens;
    assert_eq!(tokens().await, 4);
    fixture.forget(&[&ids[0], &ids[3]], "f1").await;
    assert_eq!(tokens().await, 2);
}

pub async fn the_parts_of_a_context_begin_where_it_needs_them(fixture: Fixture) {
    let ids = fixture.say("s", &["a", "b", "c", "d", "e", "f"]).await;
    fixture.close_segments("s", &[(0, 0, 1), (1, 2, 3)]).await;
    fixture.summarise("s", 0, 1).await;
    fixture.forget(&[&ids[4]], "f1").await;
    let query = ContextQuery { recent: 1, texts: 9, look_back: 9, ..ContextQuery::default() };
    let parts = fixture.parts("s", query).await;
    let texts =
        |parts: &ContextParts| parts.texts.iter().map(|(_, text, _)| text.clone()).collect::<String>();
    assert_eq!((parts.noted, parts.from, parts.messages.len(), texts(&parts).as_str()), (-1, 0, 5, "cdf"));
    assert_eq!((parts.segments.len(), parts.summaries.len(), parts.pending), (2, 1, 6));
    fixture.store.add_statements(&fixture.scope, Vec::new(), Some((name("s"), 5))).await.answered();
    let parts = fixture.parts("s", ContextQuery { texts: 2, look_back: 0, ..query }).await;
    assert_eq!((parts.noted, parts.from, parts.messages.len(), texts(&parts).as_str()), (5, 2, 3, "cd"));
    let whole = fixture.parts("s", ContextQuery { whole: 4, ..query }).await;
    assert_eq!((whole.from, texts(&whole).as_str()), (0, "abcdf"));
}

pub async fn an_owner_sees_nothing_of_another(fixture: Fixture) {
    let ids = fixture.say("s", &["one", "two"]).await;
    let Saved::Made(summary) = fixture.summarise("s", 0, 1).await else { panic!("it is made") };
    sees_nothing(&fixture, &fixture.stranger(), &ids[0], &summary).await;
    assert!(fixture.store.is_empty(&fixture.stranger()).await.answered());
    // Both owners may have a session with the same name and a memory with the same id.
    let own = vec![message("s", "one")];
    fixture.store.save(&fixture.stranger(), own, 1).await.answered();
    let theirs = fixture.store.session_messages(&fixture.stranger(), &name("s"), 0).await.answered();
    assert_eq!((theirs.len(), fixture.rows("s").await.len()), (1, 2));
}

pub async fn a_scope_of_sessions_sees_nothing_of_others(fixture: Fixture) {
    let ids = fixture.say("s", &["one", "two"]).await;
    let Saved::Made(summary) = fixture.summarise("s", 0, 1).await else { panic!("it is made") };
    sees_nothing(&fixture, &fixture.only(&["other"]), &ids[0], &summary).await;
}

/// Asserts that `scope` shows nothing of the session `s`, which has the message and the summary.
async fn sees_nothing(
    fixture: &Fixture,
    scope: &tiro_base::scope::Scope,
    message: &MemoryId,
    summary: &MemoryId,
) {
    let store = &fixture.store;
    let keys: Vec<_> = fixture.rows("s").await.iter().map(|row| row.key).collect();
    assert!(store.session_messages(scope, &name("s"), 0).await.answered().is_empty());
    assert!(store.summaries(scope, &name("s"), None).await.answered().is_empty());
    assert_eq!(store.summary(scope, summary).await.answered(), None);
    assert_eq!(store.memory(scope, message).await.answered(), None);
    assert!(store.texts(scope, keys.clone()).await.answered().is_empty());
    assert!(store.memories(scope, keys).await.answered().is_empty());
    assert!(store.list(scope, &Filter::default(), None, 9).await.answered().is_empty());
    assert!(store.sessions(scope, 0, 9).await.answered().is_empty());
    assert!(store.sessions_called(scope, "s", 9).await.answered().is_empty());
    assert!(store.surroundings(scope, &name("s"), 0, 9, 9).await.answered().is_empty());
    let parts = store.context_parts(scope, &name("s"), ContextQuery::default()).await.answered();
    assert_eq!((parts.tokens, parts.messages, parts.summaries), (0, Vec::new(), Vec::new()));
    assert!(store.source_state(scope).await.answered().is_empty);
    let late = store.save_summary(scope, fixture.draft("s", 0, 1).await, 1).await.answered();
    assert_eq!(late, Saved::SourcesChanged);
    assert!(store.grown_sessions(scope, 9).await.answered().is_empty());
}

pub async fn a_memory_of_no_session_is_outside_a_scope_of_sessions(fixture: Fixture) {
    let draft = Draft::new(Kind::Decision, Provenance::UserSaid, "maple", 10);
    let id = fixture.put(prepared(draft, "maple")).await;
    fixture.say("s", &["willow"]).await;
    let scope = fixture.only(&["s"]);
    assert_eq!(fixture.store.memory(&scope, &id).await.answered(), None);
    let listed = fixture.store.list(&scope, &Filter::default(), None, 9).await.answered();
    assert_eq!(listed.iter().map(|memory| memory.text.as_str()).collect::<Vec<_>>(), ["willow"]);
}

pub async fn keys_are_found_by_id(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.say("t", &["larch"]).await;
    fixture.forget(&[&said[1]], "f1").await;
    let (store, key) = (&fixture.store, fixture.key(&said[0]).await);
    let unknown = MemoryId::derive(Kind::Fact, None, "unknown");
    let ids = vec![said[1].clone(), said[0].clone(), unknown];
    assert_eq!(store.keys_of(&fixture.scope, ids.clone()).await.answered(), [None, Some(key), None]);
    let other = fixture.only(&["t"]);
    assert_eq!(store.keys_of(&other, ids).await.answered(), [None, None, None]);
}
