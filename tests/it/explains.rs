//! A line leads to the commit that wrote it, and to the request because of which it was written.

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server};
use crate::talk::{BEGAN, Talk};

/// A home with a repository of one commit, which is imported, and a server.
fn followed() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("src/valve.rs", "fn valve() {}\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    server.search("settle");
    (home, repo, server)
}

/// Makes a session add lines to a file, `at` seconds after the beginning.
fn adds(talk: &Talk, repo: &Repo, at: i64, file: &str, lines: &str) {
    let path = repo.path.join(file);
    let input = json!({"file_path": path, "old_string": "", "new_string": lines});
    talk.calls(at, "Edit", input, "The file has been updated.");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    repo.write(file, &format!("{before}{lines}\n"));
}

fn commits(repo: &Repo, at: i64, message: &str) {
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "-m", message], (BEGAN + at) as u64);
}

/// Returns the groups of lines of an answer.
fn groups(server: &mut Server, arguments: Value) -> Vec<Value> {
    server.data("explain_lines", arguments)["groups"].as_array().unwrap().clone()
}

/// Returns what each sentence of a group is, and its text.
fn reasons(group: &Value) -> Vec<(&str, &str)> {
    let reasons = group["reasons"].as_array().unwrap();
    reasons.iter().map(|each| (each["part"].as_str().unwrap(), each["text"].as_str().unwrap())).collect()
}

#[test]
fn a_line_leads_to_the_request_and_the_reason_of_its_change() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "tightens", &repo.path, "main");
    let other = Talk::new(&home, "paints", &repo.path, "main");
    other.says("user", 0, "Paint the crane blue, please.");
    adds(&other, &repo, 30, "src/crane.rs", "fn paint_crane() {}");
    other.hook(&home, "Stop");
    talk.says("user", 60, "The valve leaks under pressure, so tighten it by a quarter turn.");
    talk.says(
        "assistant",
        65,
        "The valve must turn before the gauge is read, because the gauge drops when it leaks.",
    );
    adds(&talk, &repo, 70, "src/valve.rs", "fn tighten_valve() { quarter_turn(); }");
    talk.says("assistant", 80, "Done.");
    talk.hook(&home, "Stop");
    commits(&repo, 120, "Tighten the valve");
    // A later commit that only indents the line is not its origin.
    repo.write("src/valve.rs", "fn valve() {}\n    fn tighten_valve() {  quarter_turn(); }\n");
    commits(&repo, 200, "Indent");
    server.search("settle");
    server.end();

    let mut server = home.serve(&repo.path);
    let found = groups(&mut server, json!({"path": "src/valve.rs", "lines": "1-2"}));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((&found[0]["subject"], reasons(&found[0])), (&json!("Begin"), vec![]));
    let group = &found[1];
    assert_eq!(
        (&group["lines"], &group["subject"], &group["state"]),
        (&json!("2"), &json!("Tighten the valve"), &json!("committed"))
    );
    let asked = "The valve leaks under pressure, so tighten it by a quarter turn.";
    let decided = "The valve must turn before the gauge is read, because the gauge drops when it leaks.";
    assert_eq!(reasons(group), [("asked", asked), ("decided", decided)]);
    let open = group["reasons"][0]["open"].as_str().unwrap();
    let opened = server.data("expand_detail", json!({"id": open}));
    assert_eq!(opened["text"], asked);
    let text = server.text("explain_lines", json!({"path": "src/valve.rs:2"}));
    assert!(text.contains(asked) && text.contains("it wrote the lines, and led to the commit"), "{text}");
    let printed = home.run(&repo.path, &["why", "src/valve.rs:2"]);
    assert!(
        printed.is_ok && printed.stdout.contains(asked) && printed.stdout.contains("Tighten the valve"),
        "{}",
        printed.stdout
    );
    // The path is read from the directory where the user works.
    let printed = home.run(&repo.path.join("src"), &["why", "valve.rs:2"]);
    assert!(printed.stdout.contains(asked), "{} {}", printed.stdout, printed.stderr);
}

#[test]
fn a_line_that_is_not_committed_leads_to_the_session_that_wrote_it() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "gauges", &repo.path, "main");
    talk.says("user", 60, "Add a gauge that shows the pressure in bar.");
    adds(&talk, &repo, 70, "src/valve.rs", "fn gauge_in_bar() {}");
    talk.hook(&home, "Stop");
    repo.write("src/valve.rs", "fn valve() {}\nfn gauge_in_bar() {}\nfn by_hand_alone() {}\n");
    let found = groups(&mut server, json!({"path": "src/valve.rs"}));
    let shown: Vec<_> = found
        .iter()
        .map(|group| (group["lines"].as_str().unwrap(), group["state"].as_str().unwrap(), reasons(group)))
        .collect();
    assert_eq!(
        shown,
        [
            ("1", "committed", vec![]),
            ("2", "uncommitted", vec![("asked", "Add a gauge that shows the pressure in bar.")]),
            ("3", "uncommitted", vec![]),
        ]
    );
    assert_eq!(found[2]["link"], "no recorded session wrote them");
    // What was forgotten is no reason.
    server.data("forget_context", json!({"session_id": "gauges"}));
    let found = groups(&mut server, json!({"path": "src/valve.rs", "lines": "2"}));
    assert_eq!(reasons(&found[0]), []);
}

#[test]
fn a_commit_without_a_session_says_why_only_if_its_message_does() {
    let (_home, repo, mut server) = followed();
    repo.commit(
        "a.rs",
        "fn first_of_all() {}\n",
        "Add a function\n\nIt is needed because the gauge has none.",
    );
    repo.commit(
        "a.rs",
        "fn first_of_all() {}\nfn second_of_all() {}\n",
        "Add another function\n\nMore to come.",
    );
    let found = groups(&mut server, json!({"path": "a.rs"}));
    assert_eq!(reasons(&found[0]), [("committed", "It is needed because the gauge has none.")]);
    assert_eq!(
        (reasons(&found[1]), &found[1]["link"]),
        (vec![], &json!("no session is linked to the commit"))
    );
    let text = server.text("explain_lines", json!({"path": "a.rs", "lines": "2"}));
    assert!(text.contains("[why is not known: no session is linked to the commit]"), "{text}");
    // An earlier version of the file, and one that is gone.
    let found = groups(&mut server, json!({"path": "a.rs", "rev": "HEAD~1"}));
    assert_eq!((found.len(), &found[0]["lines"]), (1, &json!("1")));
    repo.git(&["rm", "-q", "a.rs"]);
    repo.git(&["commit", "-q", "-m", "Remove it"]);
    let before = repo.git(&["rev-parse", "HEAD~1"]);
    let found = groups(&mut server, json!({"path": "a.rs", "rev": &before.trim()[..12]}));
    assert_eq!(found.len(), 2);
}

#[test]
fn what_has_no_lines_is_an_error_that_names_the_way_out() {
    let (home, repo, mut server) = followed();
    repo.write("binary", "a\0b\n");
    repo.commit("gone/.env", "A=1\n", "A file of secrets");
    repo.git(&["rm", "-q", "gone/.env"]);
    repo.write(".env", "A=1\n");
    for (arguments, said) in [
        (json!({"path": ""}), "`path` is empty"),
        (json!({"path": "gone.rs"}), "name a commit that has it as `rev`"),
        (json!({"path": "../outside.rs"}), "leads out of the project"),
        (json!({"path": "/etc/passwd"}), "leads out of the project"),
        (json!({"path": ".env"}), "holds secrets"),
        (json!({"path": "gone/.env", "rev": "HEAD"}), "holds secrets"),
        (json!({"path": "src"}), "name a file in it"),
        (json!({"path": "binary"}), "binary"),
        (json!({"path": "src/valve.rs", "lines": "9"}), "has 1 line, so there is no line 9"),
        (json!({"path": "src/valve.rs", "lines": "0"}), "the first line is 1"),
        (json!({"path": "src/valve.rs", "lines": "3-1"}), "the first line is 1"),
        (json!({"path": "src/valve.rs", "lines": "x"}), "12-20"),
        (json!({"path": "src/valve.rs", "rev": "nowhere"}), "there is no commit `nowhere`"),
        (json!({"path": "gone.rs", "rev": "HEAD"}), "has no file `gone.rs`"),
    ] {
        let error = server.error("explain_lines", arguments.clone());
        assert!(error.contains(said), "{arguments}: {error}");
    }
    assert!(!home.run(&repo.path, &["why", "gone.rs:1"]).is_ok);
    let bare = home.dir("bare");
    std::fs::write(bare.join("a.rs"), "fn a() {}\n").unwrap();
    let error = home.run(&bare, &["why", "a.rs:1"]).stderr;
    assert!(error.contains("in no git repository"), "{error}");
    let empty = home.repo("empty");
    empty.write("a.rs", "fn a() {}\n");
    let error = home.run(&empty.path, &["why", "a.rs:1"]).stderr;
    assert!(error.contains("no commit yet"), "{error}");
}

/// Sessions of SpecStory had no links with commits.
#[test]
fn a_session_of_another_machine_is_linked_by_the_lines_of_its_export() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("src/valve.rs", "fn valve() {}\n", "Begin");
    let export = "<!-- Generated by SpecStory -->\n\n# Valve (2026-02-28 10:00:00Z)\n\n_**User (2026-02-28 10:00:00Z)**_\n\n\
        The valve leaks, so tighten it by a quarter turn.\n\n---\n\n_**Agent**_\n\nI do it.\n\n\
        <tool-use data-tool-type=\"write\" data-tool-name=\"search_replace\"><details>\n\
        <summary>Tool use: **search_replace** • Edit file: /Users/bea/work/crane/src/valve.rs</summary>\n\n**Chunk 1**\n\n```diff\n\
        @@ -1 +1,2 @@\n  fn valve() {}\n+ fn tighten_by_quarter() {}\n+ fn loosen_by_quarter() {}\n```\n\n</details></tool-use>\n\n---\n";
    repo.write(".specstory/history/2026-02-28_10-00Z-valve.md", export);
    repo.write("src/valve.rs", "fn valve() {}\nfn tighten_by_quarter() {}\nfn loosen_by_quarter() {}\n");
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "--author", "Bea <bea@example.org>", "-m", "Tighten"], 1_772_280_000);
    home.json(&repo.path, &["import", "git"]);
    home.json(&repo.path, &["import", "specstory"]);
    let mut server = home.serve(&repo.path);
    let found = groups(&mut server, json!({"path": "src/valve.rs", "lines": "2-3"}));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(reasons(&found[0]), [("asked", "The valve leaks, so tighten it by a quarter turn.")]);
    assert!(found[0]["link"].as_str().unwrap().contains("led to the commit"), "{found:?}");
}

/// An export of an old version: calls are named in a line, and a new file has neither path nor text.
#[test]
fn a_file_whose_making_is_not_recorded_leads_to_the_request_before_it_was_named() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("src/valve.rs", "fn valve() {}\n", "Begin");
    let export = "<!-- Generated by SpecStory -->\n\n# Valve (2026-02-28 10:00:00Z)\n\n_**User (2026-02-28 10:00:00Z)**_\n\n\
        The valve leaks, so tighten it by a quarter turn.\n\n---\n\n_**Assistant**_\n\nI do it.\n\n---\n\n\
        Tool use: **search_replace**\n\n<details><summary>Edit file: /Users/bea/work/crane/src/valve.rs</summary>\n\n```diff\n\
        @@ -1 +1,3 @@\n  fn valve() {}\n+ fn tighten_by_quarter() {}\n+ fn loosen_by_quarter() {}\n+ fn turn_by_quarter() {}\n```\n\n\
        </details>\n\n---\n\n_**User (2026-02-28 10:05:00Z)**_\n\n\
        Now the pump needs a controller that stops it when the tank is full.\n\n---\n\n_**Assistant**_\n\n\
        I write `pump_controller.rs`:\n\n---\n\nTool use: **write**\n\n---\n\nDone.\n\n---\n\n\
        _**User (2026-02-28 10:10:00Z)**_\n\nThe limits of all tanks should come from a table of the maker.\n\n---\n\n\
        _**Assistant**_\n\nLet me create the table:\n\n---\n\n```bash\npython make.py src/limits_of_tanks.rs\n```\n\n```\nok\n```\n\n---\n";
    repo.write(".specstory/history/2026-02-28_10-00Z-valve.md", export);
    let valve = "fn valve() {}\nfn tighten_by_quarter() {}\nfn loosen_by_quarter() {}\nfn turn_by_quarter() {}\n\
        fn rewritten_by_a_formatter() {}\n";
    repo.write("src/valve.rs", valve);
    repo.write("src/pump_controller.rs", "fn stop_at_level() {}\n");
    repo.write("src/limits_of_tanks.rs", "const HIGHEST_LEVEL: u32 = 7;\n");
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "--author", "Bea <bea@example.org>", "-m", "Tighten"], 1_772_280_000);
    home.json(&repo.path, &["import", "git"]);
    home.json(&repo.path, &["import", "specstory"]);
    let mut server = home.serve(&repo.path);
    let valve = "The valve leaks, so tighten it by a quarter turn.";
    for (path, asked, link) in [
        ("src/valve.rs:2-4", valve, "it wrote the lines"),
        ("src/valve.rs:5", valve, "it changed the file, and led to the commit"),
        (
            "src/pump_controller.rs",
            "Now the pump needs a controller that stops it when the tank is full.",
            "it seems to have changed the file",
        ),
        (
            "src/limits_of_tanks.rs",
            "The limits of all tanks should come from a table of the maker.",
            "first mentioned the file after this request",
        ),
    ] {
        let found = groups(&mut server, json!({"path": path}));
        let found = found.last().unwrap();
        assert_eq!(reasons(found), [("asked", asked)], "{found}");
        assert!(found["link"].as_str().unwrap().contains(link), "{found}");
    }
}

/// A line used to lead to the request for the commit before, if that had more of its words. Some exports have no text of
/// the edits.
#[test]
fn a_line_leads_to_a_request_after_the_last_commit_of_the_file() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("src/valve.rs", "fn valve() {}\n", "Begin");
    let commit = |text: &str, time: u64, subject: &str| {
        repo.write("src/valve.rs", text);
        repo.git_at(&["commit", "-q", "-a", "-m", subject], time);
        repo.git(&["rev-parse", "--short", "HEAD"]).trim().to_owned()
    };
    let first = commit("fn valve() {}\nfn tighten_by_quarter() {}\n", 1_772_274_600, "Tighten");
    let second = commit(
        "fn valve() {}\nfn tighten_by_quarter() {}\nfn loosen_valve_by_quarter() {}\n",
        1_772_278_200,
        "Loosen",
    );
    let exchange = |clock: &str, request: &str, committed: &str| {
        format!(
            "_**User (2026-02-28 {clock}:00Z)**_\n\n{request}\n\n---\n\n_**Agent (x 2026-02-28 {clock}:10Z)**_\n\n\
            <tool-use data-tool-type=\"write\" data-tool-name=\"Edit\"><details>\n\
            <summary>Tool use: **Edit** • Edit file: src/valve.rs</summary>\n\n</details></tool-use>\n\n\
            <tool-use data-tool-type=\"shell\" data-tool-name=\"Bash\"><details>\n<summary>Tool use: **Bash**</summary>\n\
            `git commit -a -m x`\n\n```text\n[main {committed}] x\n```\n</details></tool-use>\n\n---\n\n"
        )
    };
    let export = format!(
        "# Valve (2026-02-28 10:00:00Z)\n\n{}{}",
        exchange("10:00", "Loosen or tighten the valve by a quarter, valve by valve.", &first),
        exchange("11:00", "Now loosen it: in winter the valve must give way.", &second),
    );
    repo.write(".specstory/history/2026-02-28_10-00Z-valve.md", &export);
    home.json(&repo.path, &["import", "git"]);
    home.json(&repo.path, &["import", "specstory"]);
    let mut server = home.serve(&repo.path);
    let found = groups(&mut server, json!({"path": "src/valve.rs", "lines": "3"}));
    let asked = reasons(&found[0]);
    assert_eq!(
        asked.last(),
        Some(&("asked", "Now loosen it: in winter the valve must give way.")),
        "{found:?}"
    );
}

#[test]
fn an_answer_about_many_lines_stays_within_its_budget_and_says_what_is_missing() {
    let (_home, repo, mut server) = followed();
    let mut text = String::new();
    for n in 0..60 {
        text += &format!("fn function_number_{n}() {{ work_of_{n}(); }}\n");
        repo.commit(
            "many.rs",
            &text,
            &format!("Add function {n}\n\nIt is here because number {n} was missing."),
        );
    }
    for budget in [200, 500, 1500] {
        let answer = server.data("explain_lines", json!({"path": "many.rs", "max_tokens": budget}));
        let used = answer["tokens_used"].as_u64().unwrap();
        assert!(used <= budget && answer["left_out"].as_u64().unwrap() > 0, "{budget}: {answer}");
    }
    let answer = server.data("explain_lines", json!({"path": "many.rs", "max_tokens": 20_000}));
    assert_eq!((answer["groups"].as_array().unwrap().len(), &answer["left_out"]), (60, &json!(0)));
}
