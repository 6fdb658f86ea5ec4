//! Tests which memories `tiro gc` forgets because of their age, and which summaries remain.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Home, Server};

/// Two old conversations of one quarter, and one of today.
fn old_quarter(home: &Home) -> (PathBuf, Server) {
    let project = home.dir("project");
    let mut server = home.serve(&project);
    for (session, day, what) in [
        ("jam", "2024-02-01", "the quince jam needs 900 grams of sugar"),
        ("boat", "2024-03-30", "the walrus boat leaks below the waterline"),
    ] {
        let said = |id: &str, text: String| json!({"id": id, "role": "user", "text": text, "time": format!("{day}T10:00:00Z")});
        let messages =
            [said("1", format!("We found that {what}.")), said("2", format!("So it was settled: {what}."))];
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    }
    server.save("today", "1", "a new heron");
    home.run(&project, &["index"]);
    (project, server)
}

fn quarters(server: &mut Server) -> Vec<String> {
    let ask = json!({"query": "quince jam walrus boat", "kinds": ["summary"]});
    server.hits(ask).iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect()
}

/// Forgets sessions older than ninety days and summarises their quarters.
fn retire(home: &Home, project: &Path) -> Vec<String> {
    let gone = home.json(project, &["gc", "--sessions-after", "90", "--quarters"]);
    assert_eq!(gone["quarters"][0]["conversations"], 2, "summed up before its sessions leave: {gone}");
    let operations = gone["sessions"].as_array().unwrap().iter();
    operations.map(|left| left["operation"].as_str().unwrap().to_owned()).collect()
}

/// The summary of a quarter used to be forgotten together with the sessions that it was made to replace.
#[test]
fn the_summary_of_a_quarter_outlives_sessions_retired_by_age() {
    let home = Home::new();
    let (project, mut server) = old_quarter(&home);
    assert_eq!(retire(&home, &project).len(), 2);
    let shown = quarters(&mut server);
    assert!(
        shown.len() == 1 && shown[0].contains("900 grams") && shown[0].contains("waterline"),
        "{shown:?}"
    );
    assert!(
        server.search("900 grams").iter().all(|hit| hit["kind"] == "summary"),
        "the messages are forgotten"
    );

    // The summary is not made again without these sessions, and no later summary of the quarter replaces it.
    let late = |id: &str| json!({"id": id, "role": "user", "text": "The lynx had 3 kittens.", "time": "2024-03-01T10:00:00Z"});
    for session in ["lynx", "lynx again"] {
        let messages = [late("1"), late("2")];
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    }
    home.run(&project, &["index"]);
    assert_eq!(home.json(&project, &["gc", "--quarters"])["quarters"], json!([]));
    assert_eq!(quarters(&mut server), shown);
}

#[test]
fn the_summary_of_a_quarter_goes_with_a_retired_session_that_the_user_forgets() {
    for purge in [false, true] {
        let home = Home::new();
        let (project, mut server) = old_quarter(&home);
        retire(&home, &project);
        assert_eq!(quarters(&mut server).len(), 1);
        server.call("forget_context", json!({"session_id": "boat", "purge": purge}));
        assert!(quarters(&mut server).is_empty(), "purge: {purge}");
        if purge {
            server.end();
            assert_eq!(home.files_with("waterline"), Vec::<PathBuf>::new());
        }
    }
}

/// A restored session is like any other: forgetting a part of it removes the summary of its quarter.
#[test]
fn a_restored_session_removes_its_quarter_when_it_is_forgotten() {
    for is_made_anew in [false, true] {
        let home = Home::new();
        let (project, mut server) = old_quarter(&home);
        for operation in retire(&home, &project) {
            server.data("forget_context", json!({"undo": operation}));
        }
        if is_made_anew {
            home.run(&project, &["index"]);
        }
        assert_eq!((quarters(&mut server).len(), server.search("900 grams").len() > 1), (1, true));
        server.data("forget_context", json!({"session_id": "boat"}));
        assert!(quarters(&mut server).is_empty(), "made anew: {is_made_anew}");
    }
}
