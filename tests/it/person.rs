//! The command line is made for people: results lack the notes for models, an opened item shows its links, and a
//! terminal shows colours, lines of its width and relative dates.

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Repo, Server, feed};
use crate::talk::Talk;

/// A home with a repository and a conversation about a lantern.
fn begin() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("project");
    let mut server = home.serve(&repo.path);
    let said = json!([
        {"id": "1", "role": "user", "speaker": "Ada", "time": "2026-03-01T09:30:00Z",
            "text": "Why does the lantern go out at noon?\nIt never did before."},
        {"id": "2", "role": "assistant", "time": "2026-03-01T09:31:00Z",
            "text": "The lanterns run on a timer in local time, so that they go out whenever summer time begins or ends somewhere else."},
    ]);
    server.data("save_messages", json!({"session_id": "lantern-talk", "messages": said}));
    (home, repo, server)
}

fn is_for_people(what: &str, ran: &Ran) {
    assert!(ran.is_ok, "{what}: {ran:?}");
    assert!(!ran.stdout.contains("data, never instructions"), "{what}: {}", ran.stdout);
    assert!(!ran.stdout.contains("[data ") && !ran.stdout.contains("[/data "), "{what}: {}", ran.stdout);
}

#[test]
fn people_get_no_envelope_and_models_do() {
    let (home, repo, mut server) = begin();
    let forget = ["forget", "--query", "lantern", "--dry-run"];
    for args in [
        &["search", "lantern"][..],
        &["context", "why does the lantern go out?"],
        &["sessions"],
        &["summarize", "lantern-talk"],
        &["show", "lantern-talk"],
        &["show", "lantern-talk#1"],
        &forget,
    ] {
        let ran = home.run(&repo.path, args);
        is_for_people(&args.join(" "), &ran);
        assert!(ran.stdout.contains("lantern") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
        let data = home.json(&repo.path, args);
        assert!(data.is_object(), "{data}");
    }
    let found = home.json(&repo.path, &["search", "lantern"]);
    assert!(found["caution"].as_str().unwrap().contains("data, never instructions"), "{found}");
    let told = server.text("search_project_memory", json!({"query": "lantern"}));
    assert!(told.contains("data, never instructions"), "{told}");
    // A search shows speaker, place, time, and the id that opens the hit.
    let ran = home.run(&repo.path, &["search", "timer"]);
    let id =
        found["hits"].as_array().unwrap().iter().find(|hit| hit["speaker"] == "assistant").unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
    let heading = format!("1. assistant in lantern-talk · 2026-03-01 09:31 · {id}\n   The lanterns run");
    assert!(ran.stdout.starts_with(&heading), "{}", ran.stdout);
}

#[test]
fn show_opens_everything_with_a_name() {
    let (home, repo, mut server) = begin();
    let sha =
        repo.commit("lantern.txt", "on", "lantern: keep the time of the harbour\n\nSummer time moved it.");
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    let show = |args: &[&str]| home.json(&repo.path, &[&["show"], args].concat());
    let ids = server.data(
        "save_messages",
        json!({"session_id": "lantern-talk", "messages": [
        {"id": "1", "role": "user", "text": "ignored: it is there already"}]}),
    )["ids"]
        .clone();
    let first = ids[0].as_str().unwrap();
    let decision = json!({"text": "The lantern keeps the time of the harbour.", "type": "decision", "references": [first]});
    let decision = server.data("store_memory", decision)["id"].as_str().unwrap().to_owned();

    // Links are shown in both directions, from the item and to it.
    let shown = show(&[&decision]);
    assert_eq!(
        (&shown["kind"], &shown["refers_to"][0]["id"]),
        (&json!("decision"), &json!(first)),
        "{shown}"
    );
    let shown = show(&[first]);
    assert_eq!(shown["referred_to_by"][0]["id"], json!(decision), "{shown}");
    assert_eq!((&shown["speaker"], &shown["number"]), (&json!("Ada"), &json!(0)), "{shown}");
    let ran = home.run(&repo.path, &["show", first]);
    assert!(ran.stdout.contains(&format!("referred to by\n decision {decision}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("session lantern-talk#0"), "{}", ran.stdout);

    let commit = show(&[&sha[..8]]);
    assert_eq!((&commit["kind"], &commit["source_id"]), (&json!("commit"), &json!(sha)), "{commit}");
    let ran = home.run(&repo.path, &["show", &sha[..8]]);
    assert!(ran.stdout.starts_with(&format!("commit {sha}\n")), "{}", ran.stdout);
    assert!(ran.stdout.contains("   Summer time moved it."), "{}", ran.stdout);

    // A conversation is opened by its name, by the beginning of its name, and by its title, with its summary and with
    // all of its messages.
    for name in ["lantern-talk", "lantern-t"] {
        let talk = show(&[name]);
        assert_eq!((&talk["session_id"], &talk["messages"]), (&json!("lantern-talk"), &json!(2)), "{talk}");
        assert_eq!(talk["title"], "Why does the lantern go out at noon?", "{talk}");
        assert!(talk["summary"].as_str().unwrap().contains("lantern"), "{talk}");
        assert_eq!(talk["said"], json!([]));
    }
    let talk = show(&["lantern-talk", "--messages"]);
    assert_eq!(
        (&talk["said"][1]["number"], &talk["said"][1]["speaker"]),
        (&json!(1), &json!("assistant")),
        "{talk}"
    );
    assert_eq!(show(&["lantern-talk", "--from", "1"])["said"].as_array().unwrap().len(), 1);
    let summary =
        server.data("summarize_conversation", json!({"session_id": "lantern-talk", "level": "brief"}));
    let id = summary["id"].as_str().unwrap();
    let opened = show(&[id, "--level", "messages"]);
    assert!(opened["text"].as_str().unwrap().contains("#0 Ada: Why does the lantern"), "{opened}");

    let wrong = home.run(&repo.path, &["show", "nothing-like-it"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("nothing is called `nothing-like-it`"), "{wrong:?}");
    assert!(wrong.stderr.contains("hint: `tiro search` shows ids"), "{wrong:?}");
    let wrong = home.run(&repo.path, &["show", "2026-Q1"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("`tiro gc --quarters`"), "{wrong:?}");
    server.data(
        "save_messages",
        json!({"session_id": "lantern-two", "messages": [{"role": "user", "text": "x"}]}),
    );
    let several = home.run(&repo.path, &["show", "lantern"]);
    assert!(!several.is_ok && several.stderr.contains("`lantern-talk`"), "{several:?}");
}

#[test]
fn sessions_are_opened_by_title_and_quarters_by_name() {
    let home = Home::new();
    let repo = home.repo("project");
    let talk = Talk::new(&home, "0d9f2c55-9f7e-4b6a-8a3e-0c1d2e3f4a5b", &repo.path, "main");
    talk.says("user", 1, "The derrick creaks.");
    talk.says("assistant", 2, "It wants oil at the upper bearing, which is dry.");
    talk.put(&json!({"type": "summary", "summary": "Oil for the derrick", "leafUuid": "x"}));
    let other = Talk::new(&home, "other", &repo.path, "main");
    other.says("user", 11, "The winch slips when it rains.");
    other.says("assistant", 12, "The drum is glazed; roughen it.");
    assert!(home.run(&repo.path, &["import", "claude-code"]).is_ok);
    let listed = home.run(&repo.path, &["sessions"]).stdout;
    assert!(listed.contains("2023-11-14 22:13  The winch slips when it rains"), "{listed}");
    let shown = home.json(&repo.path, &["show", "winch slips"]);
    assert_eq!(shown["session_id"], "other", "{shown}");
    assert!(home.run(&repo.path, &["gc", "--quarters"]).is_ok);
    let quarter = home.json(&repo.path, &["show", "2023-Q4"]);
    assert_eq!((&quarter["kind"], &quarter["title"]), (&json!("summary"), &json!("2023-Q4")), "{quarter}");
    assert_eq!(quarter["refers_to"].as_array().unwrap().len(), 2, "{quarter}");
}

#[test]
fn add_and_mark_work_on_the_command_line() {
    const SECRET: &str = "ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w";
    let (home, repo, _server) = begin();
    let added = home.json(
        &repo.path,
        &["add", "--type", "decision", "--topic", "harbour", "The", "quay is for trawlers."],
    );
    assert_eq!((&added["kind"], &added["stored"]), (&json!("decision"), &json!(true)), "{added}");
    let id = added["id"].as_str().unwrap();
    let shown = home.json(&repo.path, &["show", id]);
    assert_eq!(shown["text"], "The quay is for trawlers.");
    assert_eq!((&shown["provenance"], &shown["topic"]), (&json!("user_said"), &json!("harbour")), "{shown}");
    let again = home
        .run(&repo.path, &["add", "--type", "decision", "--topic", "harbour", "The quay is for trawlers."]);
    assert!(again.stdout.starts_with("Already stored as decision"), "{again:?}");

    let text = format!("Trawlers pay with {SECRET} at the gate.\nIt is read aloud.");
    let piped = home.feed(&repo.path, &["add", "--scope", "owner", "-"], text.as_bytes());
    assert!(
        piped.is_ok && piped.stdout.contains("(owner)") && piped.stdout.contains("Secrets replaced"),
        "{piped:?}"
    );
    assert_eq!(home.files_with(SECRET), Vec::<std::path::PathBuf>::new());
    let found = home.json(&repo.path, &["search", "gate aloud"]);
    assert!(found["hits"][0]["text"].as_str().unwrap().ends_with("It is read aloud."), "{found}");
    assert_eq!(home.json(&repo.path, &["show", found["hits"][0]["id"].as_str().unwrap()])["is_owners"], true);
    for (args, input, told) in [
        (&["add", " "][..], &b""[..], "`text` is empty"),
        (&["add", "-"], b"\xff\xfe", "is not UTF-8"),
        (&["add", "x", "--type", "message"], b"", "`--type` can't be message"),
        (&["add", "x", "--scope", "everyone"], b"", "`--scope` can't be `everyone`"),
        (&["mark", "m0123456789abc"], b"", "no memory is called"),
    ] {
        let ran = home.feed(&repo.path, args, input);
        assert!(!ran.is_ok && ran.stderr.contains(told), "{args:?}: {ran:?}");
    }

    let mark = |more: &[&str]| home.run(&repo.path, &[&["mark", id, "lantern-talk#1"], more].concat());
    assert!(mark(&[]).stdout.starts_with("Marked as important"));
    assert_eq!(home.json(&repo.path, &["show", id])["important"], true);
    assert!(mark(&["--off"]).stdout.starts_with("No longer marked"));
    assert_eq!(home.json(&repo.path, &["show", id])["important"], false);
}

#[test]
fn people_are_pointed_to_subcommands_not_to_tools() {
    let (home, repo, _server) = begin();
    let summarised = home.run(&repo.path, &["summarize", "lantern-talk"]);
    let id = home.json(&repo.path, &["summarize", "lantern-talk"])["id"].as_str().unwrap().to_owned();
    assert!(summarised.stdout.contains(&format!("`tiro show {id}` opens it")), "{summarised:?}");
    assert!(!summarised.stdout.contains("expand_detail"), "{summarised:?}");
    let forgot = home.run(&repo.path, &["forget", "--session", "lantern-talk"]);
    assert!(forgot.stdout.contains("To bring them back: `tiro undo f"), "{forgot:?}");
    let removed = home.run(&repo.path, &["forget", "--session", "lantern-talk", "--purge"]);
    assert!(!removed.is_ok || removed.stdout.contains("may still hold them."), "{removed:?}");
}

#[test]
fn a_project_without_a_store_has_no_path_of_one() {
    let home = Home::new();
    let repo = home.repo("project");
    let stats = home.run(&repo.path, &["stats"]);
    assert!(stats.stdout.contains("not made yet") && !stats.stdout.contains("memdb"), "{stats:?}");
}

#[test]
fn an_error_under_json_is_json() {
    let (home, repo, _server) = begin();
    let failed = |args: &[&str], code: i32| -> Value {
        let output = home.tiro(&repo.path, args).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), stdout.as_ref()), (Some(code), ""), "{args:?}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{args:?}: {error}: {stderr}"))
    };
    let unknown = failed(&["show", "m0123456789abc", "--json"], 1);
    assert_eq!(unknown["error"], "no memory is called `m0123456789abc`", "{unknown}");
    assert!(unknown["hint"].as_str().unwrap().contains("can't be opened"), "{unknown}");
    let bound = failed(&["--json", "search", "x", "--k", "99"], 2);
    assert_eq!(bound, json!({"error": "`--k` is not between 1 and 50: 99"}));
    let usage = failed(&["serch", "x", "--json"], 2);
    assert_eq!(usage["error"], "unrecognized subcommand 'serch'", "{usage}");
    assert!(usage["hint"].as_str().unwrap().contains("'search'"), "{usage}");
    let secret = failed(&["search", "--ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w", "--json"], 2);
    assert!(!secret.to_string().contains("Zq8Lk2Vn5"), "{secret}");
    // Without `--json` the text is unchanged.
    let ran = home.run(&repo.path, &["search", "x", "--k", "99"]);
    assert!(ran.stderr.ends_with("error: `--k` is not between 1 and 50: 99\n"), "{ran:?}");
}

#[test]
fn colours_follow_the_flag_and_the_environment() {
    let (home, repo, _server) = begin();
    let search = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = home.tiro(&repo.path, &[&["search", "lantern"], more].concat());
        command.envs(variables.iter().copied());
        feed(command, b"").stdout
    };
    let plain = search(&[], &[]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let coloured = search(&[], &["--color", "always"]);
    assert!(coloured.contains("\u{1b}[1m\u{1b}[32mlantern\u{1b}[0m"), "{coloured:?}");
    // With colours, nothing else changes, since a pipe has no width.
    let mut bare = coloured.clone();
    for code in
        ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"]
    {
        bare = bare.replace(code, "");
    }
    assert_eq!(bare, plain);
    assert!(search(&[("CLICOLOR_FORCE", "1")], &[]).contains('\u{1b}'));
    assert_eq!(search(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]), plain);
    assert_eq!(search(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]), plain);
    assert!(!search(&[], &["--color", "always", "--json"]).contains('\u{1b}'));
}

/// Runs a command on a terminal of 50 columns and returns its output without carriage returns.
#[cfg(target_os = "linux")]
fn on_a_terminal(
    home: &Home,
    directory: &std::path::Path,
    variables: &[(&str, &str)],
    args: &[&str],
) -> String {
    use std::process::{Command, Stdio};
    let quoted: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("stty cols 50 rows 30 && exec '{}' {}", env!("CARGO_BIN_EXE_tiro"), quoted.join(" "));
    let like = home.tiro(directory, &[]);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(directory).env_clear();
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("TERM", "xterm-256color").env("TIRO_LOG", "off").envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().expect("this test needs `script` of util-linux");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_colours_its_width_and_relative_dates() {
    let (home, repo, mut server) = begin();
    let hostile = "lantern \u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}gnp \
        2. commit 0123456789 by Ada in a text that is long enough to be broken";
    server.data("save_messages", json!({"session_id": "hostile", "messages": [
        {"id": "1", "role": "user", "speaker": format!("Eve {}", "2. commit 0123456789 ".repeat(6)), "text": hostile}]}));
    let shown = on_a_terminal(&home, &repo.path, &[], &["search", "lantern"]);
    assert!(shown.contains("\u{1b}[1m\u{1b}[32mlantern\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("ago") && !shown.contains("2026-03-01"), "{shown:?}");
    let plain = on_a_terminal(&home, &repo.path, &[("NO_COLOR", "1")], &["search", "lantern"]);
    let commands = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!plain.contains(commands), "{plain:?}");
    assert!(plain.contains("\\u{1b}[2J"), "{plain:?}");
    assert!(plain.lines().all(|line| line.chars().count() <= 50), "{plain}");
    assert!(plain.lines().count() > 10, "it is broken at the width: {plain}");
    // Lines that are not indented are the program's own: hits in order, and notes.
    let headings: Vec<&str> =
        plain.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    for (place, heading) in headings.iter().enumerate() {
        assert!(heading.starts_with(&format!("{}. ", place + 1)), "{plain}");
    }
    assert_eq!(
        headings.len(),
        home.json(&repo.path, &["search", "lantern"])["hits"].as_array().unwrap().len()
    );
    for args in [
        &["show", "hostile"][..],
        &["show", "hostile", "--messages"],
        &["sessions"],
        &["context", "lantern"],
        &["stats"],
    ] {
        let plain = on_a_terminal(&home, &repo.path, &[("NO_COLOR", "1")], args);
        assert!(!plain.contains(commands), "{args:?}: {plain:?}");
        assert!(plain.lines().all(|line| line.chars().count() <= 50), "{args:?}: {plain}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn progress_names_the_counted_items() {
    let home = Home::new();
    let repo = home.repo("project");
    for number in 0..30 {
        repo.commit("a.txt", &number.to_string(), &format!("Change {number}"));
    }
    let shown = on_a_terminal(&home, &repo.path, &[], &["import", "git"]);
    assert!(shown.contains("of 30 commits"), "{shown:?}");
}
