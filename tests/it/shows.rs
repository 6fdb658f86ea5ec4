//! Opening an item by its name: the right item is opened, flags have an effect, and a notice names everything that is
//! left out.

use serde_json::json;

use crate::harness::{Home, strings};
use crate::talk::Talk;

#[test]
fn sessions_with_one_title_are_told_apart() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for session in ["a", "b"] {
        server.save(session, "1", "Why does the lantern of the ferry go out?");
    }
    server.save("c", "1", "Where does the ferry land?");
    let listed = server.data("list_sessions", json!({}));
    let mut titles = strings(listed["sessions"].as_array().unwrap(), "title");
    titles.sort();
    assert!(titles[0].starts_with("Where does the ferry land"), "{titles:?}");
    assert!(!titles[0].contains(" (20"), "{titles:?}");
    assert!(
        titles[1..].iter().all(|title| title.contains("lantern") && title.contains(" (20")),
        "{titles:?}"
    );
}

/// Flags without an effect on the opened item used to be accepted silently.
#[test]
fn a_flag_without_effect_is_an_error_that_explains_it() {
    let home = Home::new();
    let directory = home.dir("project");
    let mut server = home.serve(&directory);
    server.save("lantern-talk", "1", "Why does the lantern go out?");
    let note = server.data("store_memory", json!({"text": "It runs on a timer.", "type": "fact"}));
    let note = note["id"].as_str().unwrap();
    for (args, told) in [
        (&["show", "lantern-talk", "--collapse"][..], "`--collapse` goes one level up from a message"),
        (&["show", "lantern-talk", "--before", "1"], "`--before` shows messages before a memory"),
        (&["show", "lantern-talk", "--after", "1"], "`--after` shows messages after a memory"),
        (&["show", "lantern-talk", "--cursor", "9"], "`--cursor` continues a long text"),
        (
            &["show", "lantern-talk", "--messages", "--focus", "timer"],
            "`--focus` chooses what a summary is about",
        ),
        (&["show", note, "--from", "1"], "`--from` chooses messages of a conversation"),
        (&["show", "lantern-talk#0", "--to", "1"], "`--to` chooses messages of a conversation"),
    ] {
        let ran = home.run(&directory, args);
        assert!(
            !ran.is_ok && ran.stderr.contains(told) && ran.stderr.contains("hint: "),
            "{args:?}: {ran:?}"
        );
    }
    assert!(home.run(&directory, &["show", "lantern-talk", "--focus", "timer"]).is_ok);
}

/// A title with a number sign used to be taken for the name of a message in an unknown session.
#[test]
fn a_title_that_looks_like_a_message_name_opens_its_conversation() {
    let home = Home::new();
    let repo = home.repo("project");
    let talk = Talk::new(&home, "0d9f2c55-9f7e-4b6a-8a3e-0c1d2e3f4a5b", &repo.path, "main");
    talk.says("user", 1, "Fix the crash of #2819");
    talk.says("assistant", 2, "It is the derrick.");
    home.json(&repo.path, &["import", "claude-code"]);
    let shown = home.json(&repo.path, &["show", "Fix the crash of #2819"]);
    assert_eq!(shown["session_id"], talk.session, "{shown}");
    assert_eq!(home.json(&repo.path, &["show", &format!("{}#1", talk.session)])["number"], 1);
    let ran = home.run(&repo.path, &["show", "Fix the gash of #2819"]);
    assert!(!ran.is_ok && ran.stderr.contains("Fix the gash of"), "{ran:?}");
    // An agent that reads the list sees the title too.
    let listed = home.serve(&repo.path).text("list_sessions", json!({}));
    assert!(listed.contains("\"Fix the crash of #2819\": "), "{listed}");
}

/// Lists used to end after twenty items without saying so.
#[test]
fn items_left_out_of_a_list_are_counted() {
    let home = Home::new();
    let directory = home.dir("project");
    let mut server = home.serve(&directory);
    let ids: Vec<String> =
        (0..25).map(|number| server.save("s", &number.to_string(), &format!("Step {number}."))).collect();
    let note = json!({"text": "All of it is done.", "type": "fact", "references": ids});
    let note = server.data("store_memory", note);
    let shown = home.json(&directory, &["show", note["id"].as_str().unwrap()]);
    assert_eq!(shown["refers_to"].as_array().unwrap().len(), 20);
    let notice = "not listed: 5 memories that it refers to (at most 20 are listed)";
    assert!(shown["notices"].to_string().contains(notice), "{shown}");
}

/// Topics, citations, notices and the end of a summary used to be left out silently, and a session's name was
/// shortened.
#[test]
fn a_shortened_summary_says_so_and_keeps_names_whole() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let session =
        "a long name of a conversation about lanterns, derricks and the harbour of Zierikzee ".repeat(2);
    let session = session.trim();
    for number in 0..30 {
        let text = format!(
            "The lantern {number} of the harbour goes out at noon, since the derrick {number} creaks."
        );
        server.save(session, &number.to_string(), &text);
    }
    let mut full = serde_json::Value::Null;
    for max_tokens in [8000, 600, 400, 260, 200] {
        let args = json!({"session_id": session, "level": "detailed", "max_tokens": max_tokens});
        let (text, data) = server.both("summarize_conversation", args);
        let name = data["session_id"].as_str().unwrap();
        assert!(name == session || name.is_empty(), "{data}");
        if full.is_null() {
            full = data.clone();
        }
        // Topics are left out first. If no whole sentence fits, the summary is empty.
        let is_less = data["topics"] != full["topics"] || data["summary"] == "";
        assert!(is_less || max_tokens > 260, "{data}");
        assert_eq!(data["truncated"], is_less, "{max_tokens}: {data}");
        assert_eq!(text.contains("Shortened to fit max_tokens."), is_less, "{text}");
    }
}
