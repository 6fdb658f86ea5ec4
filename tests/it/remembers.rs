//! Everyone who may read a message or commit finds it, once and with its source, until it is forgotten.

use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// A unique random word, so that no index or file of another run can contain it.
fn token() -> String {
    let folder = tempfile::Builder::new().prefix("zq").rand_bytes(16).tempdir().unwrap();
    folder.path().file_name().unwrap().to_string_lossy().to_lowercase()
}

#[test]
fn a_token_planted_in_a_commit_and_in_a_conversation_is_found_after_a_restart() {
    let home = Home::new();
    let repo = home.repo("repo");
    let (committed, said) = (token(), token());
    repo.commit("a.txt", "a\n", "Begin");
    let sha = repo.commit("b.txt", "b\n", &format!("Call the retry budget {committed}\n\nIt was unnamed."));
    let mut server = home.serve(&repo.path);
    server.save("naming", "u-17", &format!("let us call the cache {said} from now on"));
    assert!(!server.end().contains(&said), "logs never hold the text of a memory");
    let imported = home.json(&repo.path, &["import", "git"]);
    assert_eq!(imported["imported"], 2);

    let mut server = home.serve(&repo.path);
    let (text, found) =
        server.both("search_project_memory", json!({"query": format!("who named {committed}?")}));
    let hit = &found["hits"][0];
    assert_eq!(hit["source_id"], json!(sha));
    assert_eq!((&hit["kind"], &hit["speaker"]), (&json!("commit"), &json!("Ada")));
    assert!(hit["text"].as_str().unwrap().contains(&committed));
    assert!(
        text.contains(&committed) && text.contains(&sha[..7]) && text.contains(hit["id"].as_str().unwrap())
    );

    let (text, found) = server.both("search_project_memory", json!({"query": said}));
    let hit = &found["hits"][0];
    assert_eq!((&hit["source_id"], &hit["session_id"]), (&json!("u-17"), &json!("naming")));
    assert_eq!((&hit["kind"], &hit["speaker"]), (&json!("message"), &json!("user")));
    assert!(text.contains(&said) && text.contains("naming"));
    assert_eq!(found["hits"].as_array().unwrap().len(), 1);
}

#[test]
fn a_message_saved_twice_is_stored_once() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let said =
        |text: &str| json!({"session_id": "s", "messages": [{"id": "1", "role": "user", "text": text}]});
    let first = server.data("save_messages", said("the first wording"));
    assert_eq!((&first["saved"], &first["already_stored"]), (&json!(1), &json!(0)));
    let again = server.data("save_messages", said("the first wording"));
    assert_eq!(
        (&again["saved"], &again["already_stored"], &again["ids"]),
        (&json!(0), &json!(1), &first["ids"])
    );
    let other = server.data("save_messages", said("the second wording"));
    assert_eq!((&other["saved"], &other["conflicts"]), (&json!(0), &json!(["1"])));
    let hits = server.search("wording");
    assert_eq!(strings(&hits, "text"), ["the first wording"]);

    let nameless = json!([{"role": "user", "text": "hello"}, {"role": "assistant", "text": "hello"}]);
    let nameless = server.data("save_messages", json!({"session_id": "t", "messages": nameless}));
    assert_eq!(nameless["saved"], 2);
    assert!(nameless["notices"][0].as_str().unwrap().contains("have no id"), "{nameless}");

    let fact = json!({"text": "the port is 8123", "type": "decision"});
    let stored = server.data("store_memory", fact.clone());
    let again = server.data("store_memory", fact);
    assert_eq!(
        (&stored["stored"], &again["stored"], &again["id"]),
        (&json!(true), &json!(false), &stored["id"])
    );
    assert_eq!(server.search("port 8123").len(), 1);
}

#[test]
fn memories_for_all_projects_are_found_in_every_project_and_labelled() {
    let home = Home::new();
    let mut one = home.serve(&home.dir("one"));
    one.data("store_memory", json!({"text": "the user prefers tabs", "scope": "owner"}));
    one.data("store_memory", json!({"text": "this project prefers spaces"}));
    let mut two = home.serve(&home.dir("two"));
    let hits = two.search("prefers");
    assert_eq!(strings(&hits, "text"), ["the user prefers tabs"]);
    assert_eq!(hits[0]["scope"], "owner");
    let hits = two.hits(json!({"query": "prefers", "sessions": ["any"]}));
    assert!(hits.is_empty(), "it belongs to no session");
}

#[test]
fn an_import_adds_what_is_new_and_a_rebased_commit_stays_one_memory() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin the trunk");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    let before = repo.commit("topic.txt", "work\n", "Add the grommet to the sprocket");
    repo.git(&["checkout", "-q", "main"]);
    repo.commit("b.txt", "b\n", "Go on with the trunk");
    assert_eq!(home.json(&repo.path, &["import", "git"])["imported"], 3);
    assert_eq!(home.json(&repo.path, &["import", "git"])["imported"], 0);

    // The author's time stays the same, but the committer's time and the id change.
    repo.git_at(&["rebase", "-q", "main", "topic"], 1_700_009_000);
    let rebased = repo.head();
    repo.git(&["checkout", "-q", "-b", "release", "main~1"]);
    repo.git_at(&["cherry-pick", &rebased], 1_700_019_000);
    let picked = repo.head();
    assert!(before != rebased && rebased != picked);
    let again = home.json(&repo.path, &["import", "git"]);
    assert_eq!((&again["imported"], &again["already_stored"]), (&json!(0), &json!(2)));
    let mut server = home.serve(&repo.path);
    let hits = server.search("grommet sprocket");
    assert_eq!(
        (hits.len(), &hits[0]["source_id"]),
        (1, &json!(picked)),
        "the id that is checked out is cited"
    );
}

#[test]
fn a_commit_hit_includes_the_conversation_that_led_to_it() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let mut server = home.serve(&repo.path);
    server.save("flux", "1", "the capacitor overheats, shall we throttle the flux?");
    let sha =
        repo.commit("b.txt", "b\n", "Throttle the flux capacitor\n\nThrottle flux throttle flux capacitor.");
    home.json(&repo.path, &["import", "git"]);
    let hits = server.search("throttle flux capacitor");
    assert_eq!(strings(&hits, "kind"), ["message", "commit"], "the conversation says why and stands first");
    assert_eq!((&hits[1]["conversations"], &hits[1]["source_id"]), (&json!(["flux"]), &json!(sha)));
}

/// A project with a repository on two branches, three conversations over three days and a decision about a file.
fn varied() -> (Home, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("src/engine/valve.rs", "fn valve() {}\n", "Add the quince valve");
    home.json(&repo.path, &["import", "git"]);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.commit("docs/valve.md", "# Valve\n", "Describe the quince valve");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    for day in 1..=3 {
        let text = format!("quince talk of day {day}");
        let message =
            json!({"id": "1", "role": "user", "text": text, "time": format!("2026-03-0{day}T12:00:00Z")});
        server.data("save_messages", json!({"session_id": format!("day-{day}"), "messages": [message]}));
    }
    let decision =
        json!({"text": "the quince valve stays shut", "type": "decision", "source": "src/engine/valve.rs"});
    server.data("store_memory", decision);
    (home, server)
}

#[test]
fn filters_apply_before_the_search() {
    let (_home, mut server) = varied();
    let cases = [
        (json!({}), 6),
        (json!({"kinds": ["commit"]}), 2),
        (json!({"kinds": ["message", "decision"]}), 4),
        (json!({"sessions": ["day-1", "day-3"]}), 2),
        (json!({"path": "src/engine"}), 2),
        (json!({"path": "src/engine/valve.rs"}), 2),
        (json!({"path": "src/eng"}), 0),
        (json!({"branch": "side", "kinds": ["commit"]}), 1),
        (json!({"branch": "nowhere"}), 0),
        (json!({"since": "2026-03-02", "until": "2026-03-02", "kinds": ["message"]}), 1),
        (json!({"since": "2026-03-02", "until": "2026-03-03", "kinds": ["message"]}), 2),
        (json!({"since": "2026-03", "until": "2026-03", "kinds": ["message"]}), 3),
        (json!({"since": "2026-03-02T12:00:00Z", "kinds": ["message"]}), 2),
        (json!({"until": "2026-03-02T12:00:00Z", "kinds": ["message"]}), 1),
    ];
    for (mut arguments, count) in cases {
        arguments["query"] = json!("quince");
        let hits = server.hits(arguments.clone());
        assert_eq!(hits.len(), count, "{arguments}: {:?}", strings(&hits, "text"));
    }
}

/// A day used to be one of UTC, and a range up to a day ended before it.
#[test]
fn a_day_is_a_whole_day_of_the_user() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let message =
        json!({"id": "1", "role": "user", "text": "The tug is black.", "time": "2026-09-09T03:00:00Z"});
    server.data("save_messages", json!({"session_id": "s", "messages": [message]}));
    server.end();
    let found = |zone: &str, since: &str, until: &str| {
        let zone = format!("zone={zone}");
        home.run(&project, &["--set", &zone, "search", "--since", since, "--until", until, "tug"])
    };
    let in_the_west = found("America/Los_Angeles", "2026-09-08", "2026-09-08");
    assert!(
        in_the_west.stdout.contains("black") && in_the_west.stdout.contains("2026-09-08 20:00"),
        "{in_the_west:?}"
    );
    assert!(!found("UTC", "2026-09-08", "2026-09-08").stdout.contains("black"));
    assert!(found("UTC", "2026-09", "2026").stdout.contains("black"));
    let nowhere = found("Mars/Olympus", "2026-09-08", "2026-09-08");
    assert!(!nowhere.is_ok && nowhere.stderr.contains("`zone`"), "{nowhere:?}");
}

#[test]
fn pages_have_no_gaps_and_no_repeats() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let message =
        |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("plum {n} {}", token())});
    let messages: Vec<Value> = (0..23).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    let mut seen: Vec<String> = Vec::new();
    let mut arguments = json!({"query": "plum", "k": 5, "max_tokens": 5000});
    loop {
        let page = server.data("search_project_memory", arguments.clone());
        seen.extend(strings(page["hits"].as_array().unwrap(), "source_id"));
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    let whole = server.hits(json!({"query": "plum", "k": 50, "max_tokens": 5000}));
    assert_eq!(seen, strings(&whole, "source_id"));
    assert_eq!(seen.len(), 23);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 23);
}

#[test]
fn a_long_text_comes_back_whole_in_pages() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let text: String = (0..900).map(|n| format!("Line {n} of the tale, naïve 語 \u{202e}{n}.\n")).collect();
    let id = server.save("tale", "1", &text);
    let (mut read, mut pages) = (String::new(), 0);
    let mut arguments = json!({"id": id, "max_tokens": 1000});
    loop {
        let page = server.data("expand_detail", arguments.clone());
        read += page["text"].as_str().unwrap();
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert!(pages > 5, "{pages} pages");
    assert_eq!(
        read,
        text.replace('\u{202e}', "\\u{202e}"),
        "the override is written out, the rest is verbatim"
    );
}

#[test]
fn a_marked_memory_ranks_before_its_equals() {
    let home = Home::new();
    let mut server = home.serve_with_ranking(&home.dir("project"));
    let ids: Vec<String> =
        (0..3).map(|n| server.save(&format!("s{n}"), "1", &format!("the walrus sings {n}"))).collect();
    let last = server.search("walrus sings")[2]["id"].clone();
    assert!(ids.contains(&last.as_str().unwrap().to_owned()));
    let marked = server.data("mark_important", json!({"ids": [last, "m0000000000000"]}));
    assert_eq!((&marked["ids"], &marked["unknown"]), (&json!([last]), &json!(["m0000000000000"])));
    let hits = server.search("walrus sings");
    assert_eq!(hits[0]["id"], last);
    assert!(hits[0]["score_parts"]["importance"].as_f64().unwrap() > 0.0);
    server.data("mark_important", json!({"ids": [last], "important": false}));
    assert_eq!(server.search("walrus sings")[2]["id"], last);
}

#[test]
fn an_amended_message_is_a_new_memory_and_the_existing_commit_is_cited() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("jam.txt", "damson", "pantry: make jam of plums");
    home.json(&repo.path, &["import", "git"]);
    repo.git(&["commit", "-q", "--amend", "-m", "pantry: make jam, since damsons were out of stock"]);
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    let head = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let hits = server.search("damsons out of stock");
    assert_eq!((&hits[0]["source_id"], &hits[0]["freshness"]), (&json!(head), &json!("current")));
    let named = server.search(&format!("what was {} about", &head[..10]));
    assert_eq!(named[0]["source_id"], json!(head));
    assert_eq!(server.data("expand_detail", json!({"id": &head[..10]}))["source_id"], json!(head));
    let forgotten = server.data("forget_context", json!({"source": &head[..10]}));
    assert_eq!(forgotten["count"], 1);
}

/// A purge used to remove the text but not the name of the conversation, which can reveal as much.
#[test]
fn a_purged_conversation_leaves_no_name() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("about-the-durian", "1", "it smells");
    let purged = server.data("forget_context", json!({"session_id": "about-the-durian", "purge": true}));
    assert_eq!(purged["done"], "purged");
    drop(server);
    assert!(home.files_with("about-the-durian").is_empty());
}

/// `last` used to undo the project's operation, even if the owner's was later.
#[test]
fn undo_restores_the_latest_forgetting_of_either_store() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for scope in ["project", "owner"] {
        let stored =
            server.data("store_memory", json!({"text": format!("a kumquat of the {scope}"), "scope": scope}));
        server.data("forget_context", json!({"ids": [stored["id"]]}));
    }
    server.data("forget_context", json!({"undo": "last"}));
    let scopes: Vec<_> = server.search("kumquat").iter().map(|hit| hit["scope"].clone()).collect();
    assert_eq!(scopes, [json!("owner")]);
}

/// If a history was shallow, the place where it was cut used to count as its beginning forever.
#[test]
fn a_clone_that_was_shallow_is_imported_again() {
    let home = Home::new();
    let origin = home.repo("origin");
    for n in 0..4 {
        origin.commit("a.txt", &format!("{n}\n"), &format!("Step {n} to the rambutan"));
    }
    let clone = home.path().join("clone");
    let url = format!("file://{}", origin.path.display());
    origin.git(&["clone", "-q", "--depth", "1", &url, clone.to_str().unwrap()]);
    assert_eq!(home.json(&clone, &["import", "git"])["imported"], 1);
    origin.git(&["-C", clone.to_str().unwrap(), "fetch", "-q", "--unshallow"]);
    let again = home.json(&clone, &["import", "git"])["imported"].as_u64().unwrap();
    assert!(again >= 3, "{again} commits after the history is whole");
}

#[test]
fn references_are_followed_over_two_hops_in_both_directions() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let mut ids: Vec<String> = Vec::new();
    for n in 0..4 {
        let before: Vec<&String> = ids.last().into_iter().collect();
        let stored = server.data("store_memory", json!({"text": format!("link {n}"), "references": before}));
        ids.push(stored["id"].as_str().unwrap().to_owned());
    }
    let from =
        |server: &mut Server, id: &str| server.data("expand_detail", json!({"id": id}))["references"].clone();
    assert_eq!(from(&mut server, &ids[0]), json!([ids[1], ids[2]]));
    assert_eq!(from(&mut server, &ids[3]), json!([ids[2], ids[1]]));
}

#[test]
fn forgotten_memories_are_hidden_until_undo() {
    let home = Home::new();
    let repo = home.repo("repo");
    let sha = repo.commit("a.txt", "a\n", "Paint the zeppelin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    let id = server.save("one", "1", "a zeppelin in session one");
    server.save("two", "1", "a zeppelin in session two");
    server.save("two", "2", "another zeppelin in session two");
    let selections = [
        (json!({"ids": [id]}), 1),
        (json!({"session_id": "two"}), 2),
        (json!({"source": sha}), 1),
        (json!({"query": "zeppelin"}), 4),
    ];
    for (selection, count) in selections {
        let mut dry = selection.clone();
        dry["dry_run"] = json!(true);
        let would = server.data("forget_context", dry);
        assert_eq!((&would["done"], &would["count"]), (&json!("would_forget"), &json!(count)), "{selection}");
        assert_eq!(server.search("zeppelin").len(), 4, "a dry run changes nothing");

        let forgotten = server.data("forget_context", selection.clone());
        assert_eq!((&forgotten["count"], &forgotten["ids"]), (&would["count"], &would["ids"]), "{selection}");
        let left = server.search("zeppelin");
        assert_eq!(left.len(), 4 - count, "{selection}");
        for id in forgotten["ids"].as_array().unwrap() {
            assert!(server.error("expand_detail", json!({"id": id})).contains(id.as_str().unwrap()));
        }
        let undone = server.data("forget_context", json!({"undo": forgotten["operation"]}));
        assert_eq!((&undone["done"], &undone["count"]), (&json!("undone"), &json!(count)));
        assert_eq!(server.search("zeppelin").len(), 4, "{selection}");
    }
    server.error("forget_context", json!({"undo": "f00"}));
}

/// A message that is restored together with all its neighbours is not indexed again, but must be found by the same
/// words as before.
#[test]
fn a_restored_conversation_is_found_as_before() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let message = |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("turn{n} of many")});
    let messages: Vec<Value> = (0..12).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    let found = |server: &mut Server| {
        let words = |n: usize| json!({"query": format!("turn{n}"), "k": 50, "max_tokens": 9000});
        (0..13).map(|n| server.hits(words(n))).collect::<Vec<_>>()
    };
    let before = found(&mut server);
    assert_eq!(before[6].len(), 5, "a turn is found by its neighbours' words");
    server.data("forget_context", json!({"session_id": "s"}));
    server.data("forget_context", json!({"undo": "last"}));
    assert_eq!(found(&mut server), before);
    // The messages in between are now context of the restored ones, which they were not when those were forgotten.
    server.data("forget_context", json!({"session_id": "s"}));
    server.save("s", "12", "turn12 of many");
    server.data("forget_context", json!({"undo": "last"}));
    assert_eq!(strings(&found(&mut server)[12], "source_id").len(), 3);
}

/// The words of a purged turn used to stay on disk as the context of a neighbour that was forgotten before it.
#[test]
fn purged_messages_are_no_longer_the_context_of_forgotten_ones() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let neighbour = server.save("s", "1", "the neighbour");
    let secret = server.save("s", "2", "the qwzxvkplum");
    server.save("s", "3", "another neighbour");
    let forgotten = server.data("forget_context", json!({"ids": [neighbour]}));
    server.data("forget_context", json!({"ids": [secret], "purge": true}));
    assert_eq!(home.files_with("qwzxvkplum"), Vec::<std::path::PathBuf>::new());
    server.data("forget_context", json!({"undo": forgotten["operation"]}));
    assert_eq!(server.search("neighbour").len(), 2);
}

#[test]
fn purged_text_is_nowhere_on_disk_and_does_not_come_back() {
    let home = Home::new();
    let repo = home.repo("repo");
    let (committed, said, stored) = (token(), token(), token());
    repo.commit("a.txt", "a\n", &format!("Mention {committed}"));
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    server.save("s", "1", "before");
    server.save("s", "2", &format!("a word that must go: {said}"));
    server.save("s", "3", "after");
    server.data("store_memory", json!({"text": format!("so must {stored}"), "scope": "owner"}));
    // Before the purge, the index has the words, also as the context of neighbours.
    for word in [&committed, &said, &stored] {
        let id = server.search(word)[0]["id"].clone();
        server.text("expand_detail", json!({"id": id}));
        assert!(!home.files_with(word).is_empty(), "the search of the files finds what is there");
        let purged = server.data("forget_context", json!({"ids": [id], "purge": true}));
        // With a message, the facts that were extracted from it go too.
        assert!(purged["done"] == "purged" && purged["count"].as_i64() >= Some(1), "{purged}");
        assert!(server.search(word).is_empty());
        assert_eq!(home.files_with(word), Vec::<std::path::PathBuf>::new());
    }
    server.error("forget_context", json!({"undo": "last"}));

    let again = home.json(&repo.path, &["import", "git"]);
    assert_eq!(again["imported"], 0, "{again}");
    let message = json!({"id": "2", "role": "user", "text": format!("a word that must go: {said}")});
    let again = server.data("save_messages", json!({"session_id": "s", "messages": [message]}));
    assert_eq!((&again["saved"], &again["forgotten"]), (&json!(0), &json!(1)));
    assert!(server.search(&committed).is_empty() && server.search(&said).is_empty());
    for word in [&committed, &said, &stored] {
        assert_eq!(home.files_with(word), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_conversation_has_a_memory_of_the_whole_until_part_of_it_is_forgotten() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let secret = token();
    server.save("harbour", "1", "We decided that the ferry leaves Bergen at seven.");
    let id = server.save("harbour", "2", &format!("The mooring of the ferry costs {secret} crowns."));
    server.save("harbour", "3", "```\nfn pasted() {}\n```\nThe pilot boards at the lighthouse.");
    // Without a model nothing is embedded, which the command reports. Everything else is made.
    home.run(&project, &["index"]);
    let wholes = |server: &mut Server| {
        server.hits(json!({"query": "ferry mooring lighthouse", "kinds": ["conversation"]}))
    };
    let found = wholes(&mut server);
    assert_eq!(strings(&found, "session_id"), ["harbour"]);
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.contains("seven") && text.contains(&secret) && !text.contains("pasted"), "{text}");
    // The memory of the conversation ranks below the messages that answer.
    let hits = server.search("what does the mooring of the ferry cost");
    assert_eq!(hits[0]["kind"], "message");
    assert!(strings(&hits, "kind").contains(&"conversation".to_owned()));

    drop(server);
    let mut server = home.serve(&project);
    assert_eq!(wholes(&mut server).len(), 1);
    let purged = server.data("forget_context", json!({"ids": [id], "purge": true}));
    assert_eq!(purged["count"], 1);
    assert!(wholes(&mut server).is_empty());
    assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new());
    home.run(&project, &["index"]);
    let made_anew = wholes(&mut server);
    assert!(made_anew.len() == 1 && !made_anew[0]["text"].as_str().unwrap().contains(&secret));
    assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new());

    // Data derived from messages is restored with them.
    let file = home.path().join("copy.db");
    home.json(&project, &["backup", &file.to_string_lossy()]);
    let other = home.dir("other");
    let restored = home.json(&other, &["restore", &file.to_string_lossy()]);
    assert_eq!(restored["added"], 4, "two messages, a fact and the conversation: {restored}");
    assert_eq!(wholes(&mut home.serve(&other)).len(), 1);
    home.run(&other, &["index"]);
    assert_eq!(wholes(&mut home.serve(&other)).len(), 1);
}

#[test]
fn gc_lists_first_and_keeps_messages_unless_asked() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let old = json!({"role": "user", "text": "an old quince", "time": "2020-01-01T00:00:00Z", "id": "1"});
    server.data("save_messages", json!({"session_id": "long ago", "messages": [old]}));
    server.save("today", "1", "a new quince");
    let listed = home.json(&project, &["gc", "--dry-run", "--sessions-after", "90"]);
    assert_eq!(strings(listed["sessions"].as_array().unwrap(), "session_id"), ["long ago"]);
    assert_eq!(home.json(&project, &["gc"])["sessions"], json!([]));
    assert_eq!(server.search("quince").len(), 2);
    let gone = home.json(&project, &["gc", "--sessions-after", "90"]);
    assert_eq!(gone["sessions"][0]["memories"], 1);
    assert_eq!(server.search("quince").len(), 1);
    server.data("forget_context", json!({"undo": gone["sessions"][0]["operation"]}));
    assert_eq!(server.search("quince").len(), 2);
    assert!(!home.run(&project, &["gc", "--sessions-after", "0"]).is_ok);
}

#[test]
fn a_quarter_is_summarised_on_request_and_its_summary_goes_with_its_sources() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    for (session, day, what) in [
        ("jam", "2024-02-01", "the quince jam needs 900 grams of sugar"),
        ("boat", "2024-03-30", "the walrus boat leaks below the waterline"),
        ("later", "2024-04-02", "the heron nests on the roof"),
    ] {
        let said = |id: &str, text: String| json!({"id": id, "role": "user", "text": text, "time": format!("{day}T10:00:00Z")});
        let messages =
            [said("1", format!("We found that {what}.")), said("2", format!("So it was settled: {what}."))];
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    }
    home.run(&project, &["index"]);
    let quarters = |server: &mut Server| {
        let ask = json!({"query": "quince jam walrus boat", "kinds": ["summary"]});
        server.hits(ask).iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let told = home.json(&project, &["gc", "--quarters", "--dry-run"]);
    assert_eq!(told["quarters"], json!([{"quarter": "2024-Q1", "conversations": 2, "tokens": 0}]), "{told}");
    assert!(quarters(&mut server).is_empty() && home.json(&project, &["gc"])["quarters"] == json!([]));
    assert_eq!(home.json(&project, &["gc", "--quarters"])["quarters"][0]["quarter"], "2024-Q1");
    let shown = quarters(&mut server);
    assert!(shown.len() == 1 && shown[0].starts_with("2024-Q1, 2 conversations: "), "{shown:?}");
    assert!(
        shown[0].contains("900 grams") && shown[0].contains("waterline") && !shown[0].contains("heron"),
        "{shown:?}"
    );
    assert_eq!(home.json(&project, &["gc", "--quarters"])["quarters"], json!([]), "it is summed up");
    // A later text with the same identity replaces the memory. Its sources are still found.
    let more = json!([{"id": "1", "role": "user", "text": "The lynx was seen.", "time": "2024-03-01T10:00:00Z"},
        {"id": "2", "role": "user", "text": "A lynx with 3 kittens, says Mira.", "time": "2024-03-01T10:01:00Z"}]);
    server.data("save_messages", json!({"session_id": "lynx", "messages": more}));
    home.run(&project, &["index"]);
    assert_eq!(home.json(&project, &["gc", "--quarters"])["quarters"][0]["conversations"], 3);
    let shown = quarters(&mut server);
    assert!(shown.len() == 1 && shown[0].contains("kittens") && shown[0].contains("900 grams"), "{shown:?}");
    assert!(server.search("900 grams of sugar").iter().any(|hit| hit["kind"] == "message"));
    server.data("forget_context", json!({"session_id": "boat", "purge": true}));
    server.end();
    assert_eq!(home.files_with("waterline"), Vec::<std::path::PathBuf>::new());
    assert!(quarters(&mut home.serve(&project)).is_empty());
}

#[test]
fn a_session_and_a_memory_are_read_as_resources() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let id = server.save("a session/with §", "1", "the lighthouse blinks");
    let listed = server.request("resources/list", json!({}));
    let uri = listed["result"]["resources"][0]["uri"].as_str().unwrap().to_owned();
    for uri in [uri, format!("tiro://memory/{id}")] {
        let read = server.request("resources/read", json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
        assert!(text.contains("the lighthouse blinks"), "{uri}: {text}");
    }
}

/// With a model, a question finds a text that has no word in common with it. If there is no model, the test says so and
/// passes.
#[test]
fn a_model_finds_by_meaning() {
    let Some(models) = std::env::var_os("TIRO_MODEL_DIR") else {
        eprintln!("skipped: no model (TIRO_MODEL_DIR is not set)");
        return;
    };
    let home = Home::new();
    let project = home.dir("project");
    let listed =
        home.tiro(&project, &["model", "list", "--json"]).env("TIRO_MODEL_DIR", &models).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    if !listed.contains("MiniLM") {
        eprintln!("skipped: no model in {models:?}");
        return;
    }
    let start = || {
        let mut command = home.tiro(&project, &["serve"]);
        command.env("TIRO_MODEL_DIR", &models).env("TIRO_TIMINGS", "1");
        Server::start(command)
    };
    let mut server = start();
    server.save("pets", "1", "our kitten sleeps on the sofa all day");
    server.save("cars", "1", "the engine of the lorry needs oil");
    server.end();
    let indexed = home.tiro(&project, &["index"]).env("TIRO_MODEL_DIR", &models).output().unwrap();
    assert!(indexed.status.success(), "{indexed:?}");
    let hits = start().search("where does the cat nap?");
    assert_eq!(hits[0]["session_id"], "pets");
    assert!(hits[0]["score_parts"]["semantic"].as_f64().unwrap() > 0.0);
}
