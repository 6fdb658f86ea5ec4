//! A project that is shared with a team: what its members see, change and forget, and what is recorded of it.

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Repo};
use crate::web::{Web, call, new_database};

/// A server with users, whose memory is in files or in a database.
struct Ground {
    home: Home,
    repo: Repo,
    database: Option<String>,
}

impl Ground {
    /// Returns a server whose memory is in files.
    fn new() -> Ground {
        let home = Home::new();
        let repo = home.repo("repo");
        Ground { home, repo, database: None }
    }

    /// Returns one whose memory is in a database of its own; `None` if no server of PostgreSQL is named.
    fn in_database(name: &str) -> Option<Ground> {
        let database = Some(new_database(name)?);
        Some(Ground { database, ..Ground::new() })
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.home.tiro(&self.repo.path, args);
        command.envs(self.database.iter().map(|url| ("TIRO_DATABASE", url)));
        Ran::of(&mut command)
    }

    /// Runs a command that succeeds, and returns its answer.
    fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {ran:?}"))
    }

    /// Makes a key and returns it.
    fn key(&self, args: &[&str]) -> String {
        self.json(&[&["user", "add"], args].concat())["key"].as_str().unwrap().to_owned()
    }

    fn serve(&self) -> Web {
        let set = self.database.as_ref().map(|url| format!("--database={url}"));
        let args: Vec<&str> = set.iter().map(String::as_str).collect();
        Web::start(&self.home, &self.repo.path, &args)
    }

    /// Returns the recorded calls, the newest first.
    fn audit(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.run(&[&["audit", "--json"], args].concat());
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A user, who calls tools of a project.
struct User<'a> {
    web: &'a mut Web,
    key: String,
}

impl User<'_> {
    /// Returns the text of a call in the project `maple`, even if it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.web.key = Some(self.key.clone());
        self.web.call_in("/mcp/maple", tool, arguments)
    }

    /// Returns the status of a call in a project.
    fn status(&mut self, project: &str) -> u16 {
        self.web.key = Some(self.key.clone());
        self.web.post_to(&format!("/mcp/{project}"), &call(1, "list_sessions", json!({}))).status
    }

    fn finds(&mut self, query: &str) -> String {
        self.call("search_project_memory", json!({"query": query}))
    }

    /// Stores a memory of a kind, and returns its id.
    fn store(&mut self, kind: &str, text: &str) -> String {
        let stored = self.call("store_memory", json!({"text": text, "type": kind}));
        let is_id = |word: &&str| word.len() == 14 && word.starts_with('m');
        let words = stored.split(|c: char| !c.is_ascii_alphanumeric()).find(is_id).map(str::to_owned);
        words.unwrap_or_else(|| panic!("{stored}"))
    }
}

#[test]
fn a_team_shares_decisions_and_keeps_conversations_private() {
    decisions_are_shared(&Ground::new());
}

#[test]
fn a_team_shares_decisions_in_a_database() {
    match Ground::in_database("decisions") {
        Some(ground) => decisions_are_shared(&ground),
        None => eprintln!("skipped: TIRO_TEST_POSTGRES names no server of PostgreSQL"),
    }
}

/// Two users of a team, and one who is in no team, use a project that has no directory.
fn decisions_are_shared(ground: &Ground) {
    let [ana, ben, eve] = ["ana", "ben", "eve"].map(|name| ground.key(&[name]));
    let mut web = ground.serve();
    let mut of = |key: &String, ask: &mut dyn FnMut(&mut User<'_>)| {
        ask(&mut User { web: &mut web, key: key.clone() });
    };
    of(&ana, &mut |ana| assert_eq!(ana.status("maple"), 404, "there is no such project yet"));
    ground.json(&["team", "create", "core"]);
    for user in ["ana", "ben"] {
        ground.json(&["team", "add", "core", user]);
    }
    let shared = ground.json(&["share", "maple", "--with", "core", "--write"]);
    assert_eq!((&shared["created"], &shared["access"]), (&json!(true), &json!("write")), "{shared}");

    // A decision is found by the other user, with its author; a conversation is not.
    let mut id = String::new();
    of(&ana, &mut |ana| {
        id = ana.store("decision", "We paint the heron gate green.");
        let messages = json!([{"role": "user", "text": "The heron gate was never dry."}]);
        ana.call("save_messages", json!({"session_id": "talk", "messages": messages}));
        let found = ana.finds("heron gate");
        assert!(
            found.contains("green") && found.contains("never dry") && !found.contains("by ana"),
            "{found}"
        );
    });
    of(&ben, &mut |ben| {
        let found = ben.finds("heron gate");
        assert!(found.contains("green") && found.contains("by ana"), "{found}");
        assert!(!found.contains("never dry"), "{found}");
        let opened = ben.call("expand_detail", json!({"id": id}));
        assert!(opened.contains("green") && opened.contains("by ana"), "{opened}");
        let sessions = ben.call("list_sessions", json!({}));
        assert!(!sessions.contains("talk"), "{sessions}");
    });
    // For others, the project is unknown, by its name and by its id.
    let project = shared["project"].as_str().unwrap();
    of(&eve, &mut |eve| {
        assert_eq!([eve.status("maple"), eve.status(project), eve.status("none")], [404; 3]);
    });

    // Only its author forgets a memory, or an admin.
    of(&ben, &mut |ben| {
        let tried = ben.call("forget_context", json!({"ids": [id]}));
        assert!(tried.contains("nothing was forgotten") && tried.contains("shared by ana"), "{tried}");
        let dry = ben.call("forget_context", json!({"query": "heron gate green", "dry_run": true}));
        assert!(dry.contains("only who shared it") && !dry.contains("No memory is called"), "{dry}");
        assert!(ben.finds("heron gate").contains("green"));
    });
    let root = ground.key(&["root", "--scope", "admin"]);
    ground.json(&["team", "add", "core", "root"]);
    of(&root, &mut |root| {
        let forgot = root.call("forget_context", json!({"ids": [id]}));
        assert!(forgot.contains("Forgot 1 memory"), "{forgot}");
    });
    of(&ben, &mut |ben| assert!(!ben.finds("heron gate").contains("green")));

    // Whoever leaves the team sees nothing from the next request on, and whose key is revoked is not answered.
    ground.json(&["team", "leave", "core", "ben"]);
    of(&ben, &mut |ben| assert_eq!(ben.status("maple"), 404));
    ground.json(&["user", "revoke", "ana"]);
    of(&ana, &mut |ana| assert_eq!(ana.status("maple"), 401));

    let calls = ground.audit(&["--user", "root"]);
    let forgot = calls.iter().find(|call| call["verb"] == "forget_context").unwrap();
    assert_eq!((&forgot["memories"], &forgot["authors"]), (&json!([id]), &json!(["ana"])), "{forgot}");
    assert_eq!((&forgot["project"], &forgot["outcome"]), (&json!(project), &json!("ok")), "{forgot}");
    let all = ground.audit(&["--in", "maple"]);
    let by_ben = all.iter().find(|call| call["user"] == "ben" && call["verb"] == "expand_detail").unwrap();
    assert_eq!((&by_ben["memories"], &by_ben["authors"]), (&json!([id]), &json!(["ana"])), "{by_ben}");
    let searched = |call: &&Value| call["user"] == "ben" && call["verb"] == "search_project_memory";
    let searched = all.iter().filter(searched).find(|call| call["count"] == 1).unwrap();
    assert_eq!(searched["authors"], json!(["ana"]), "ben stored nothing: {searched}");
    let text = all.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains("heron") && !text.contains("green"), "the record has no texts: {text}");
    let commands: Vec<String> =
        ground.audit(&[]).iter().map(|call| call["verb"].as_str().unwrap().to_owned()).collect();
    for verb in ["user add", "user revoke", "team create", "team add", "team leave", "share"] {
        assert!(commands.iter().any(|each| each == verb), "{verb}: {commands:?}");
    }
}

#[test]
fn who_may_only_read_shares_nothing_and_marks_nothing() {
    let ground = Ground::new();
    let [ana, ben] = ["ana", "ben"].map(|name| ground.key(&[name]));
    for team in ["core", "readers"] {
        ground.json(&["team", "create", team]);
    }
    ground.json(&["team", "add", "core", "ana"]);
    ground.json(&["team", "add", "readers", "ben"]);
    ground.json(&["share", "maple", "--with", "core", "--write"]);
    ground.json(&["share", "maple", "--with", "readers", "--read"]);
    let mut web = ground.serve();
    let id = User { web: &mut web, key: ana.clone() }.store("decision", "The heron gate stays green.");
    let mut as_ben = User { web: &mut web, key: ben.clone() };
    assert!(as_ben.finds("heron gate").contains("by ana"));
    as_ben.store("decision", "The heron gate shall be yellow.");
    let marked = as_ben.call("mark_important", json!({"ids": [id]}));
    assert!(as_ben.finds("heron gate").contains("yellow"), "it is private");
    let mut as_ana = User { web: &mut web, key: ana.clone() };
    assert!(!as_ana.finds("heron gate").contains("yellow"));
    assert!(marked.contains("was shared by ana") && marked.contains("only read"), "{marked}");
    // From the next request on, ben may write.
    ground.json(&["share", "maple", "--with", "readers", "--write"]);
    User { web: &mut web, key: ben.clone() }.store("decision", "The heron gate gets a bell.");
    let found = User { web: &mut web, key: ana }.finds("heron gate");
    assert!(found.contains("bell") && found.contains("by ben") && !found.contains("yellow"), "{found}");
    // And when it is no longer shared, ben is alone again.
    ground.json(&["share", "maple", "--off"]);
    assert_eq!(User { web: &mut web, key: ben }.status("maple"), 404);
}

/// What was said before a project was shared would be seen by the team, so that it isn't shared by accident.
#[test]
fn a_project_with_conversations_is_not_shared_by_accident() {
    let ground = Ground::new();
    let (home, repo) = (&ground.home, &ground.repo);
    home.json(&repo.path, &["add", "The heron gate is green.", "--type", "decision"]);
    home.serve(&repo.path).save("talk", "m1", "The heron gate was never dry.");
    let ana = ground.key(&["ana"]);
    ground.json(&["team", "create", "core"]);
    ground.json(&["team", "add", "core", "ana"]);
    let refused = ground.run(&["share", "repo", "--with", "core", "--write"]);
    assert!(refused.stderr.contains("message") && refused.stderr.contains("--kinds"), "{refused:?}");
    assert_eq!(ground.json(&["share", "list"])["shares"], json!([]));
    home.json(&repo.path, &["forget", "--session", "talk"]);
    ground.json(&["share", "repo", "--with", "core", "--write"]);
    // What the owner says from now on is private, and what the owner decides is shared.
    let mut stdio = home.serve(&repo.path);
    stdio.save("talk again", "m2", "The heron gate creaks.");
    stdio.call("store_memory", json!({"text": "The heron gate gets oil.", "type": "decision"}));
    let own = serde_json::to_string(&stdio.search("heron gate")).unwrap();
    assert!(own.contains("creaks") && own.contains("oil"), "{own}");
    drop(stdio);
    let mut web = ground.serve();
    web.key = Some(ana);
    let found = web.call("search_project_memory", json!({"query": "heron gate"}));
    assert!(found.contains("green") && found.contains("oil") && !found.contains("creaks"), "{found}");
    assert!(found.contains("by the server's owner") && !found.contains("uid:"), "{found}");
    let record = ground.run(&["audit"]).stdout;
    assert!(record.contains("the server's owner  team create") && !record.contains("uid:"), "{record}");
    let sessions = web.call("list_sessions", json!({}));
    assert!(!sessions.contains("talk"), "{sessions}");
}

/// Whoever reads what another shared learns in every answer who that was. Nobody is told their own name.
#[test]
fn every_answer_says_who_shared_what_it_shows() {
    let ground = Ground::new();
    let [ana, ben] = ["ana", "ben"].map(|name| ground.key(&[name]));
    ground.json(&["team", "create", "core"]);
    for user in ["ana", "ben"] {
        ground.json(&["team", "add", "core", user]);
    }
    ground.json(&["share", "maple", "--with", "core", "--write", "--kinds", "all"]);
    let mut web = ground.serve();
    let mut as_ana = User { web: &mut web, key: ana.clone() };
    let id = as_ana.store("decision", "The heron gate is painted green because of the moss.");
    let messages = json!([
        {"role": "user", "text": "Why does the heron gate creak in the morning?"},
        {"role": "assistant", "text": "The heron gate creaks because its hinge is dry. Oil it every week."},
    ]);
    as_ana.call("save_messages", json!({"session_id": "talk", "messages": messages}));
    let calls = [
        ("search_project_memory", json!({"query": "heron gate"})),
        ("retrieve_context", json!({"query": "why is the heron gate green"})),
        ("retrieve_context", json!({"query": "why does the heron gate creak", "session_id": "talk"})),
        ("retrieve_context", json!({"query": "heron gate", "include_level": "summary"})),
        ("get_relevant_snippets", json!({"query": "heron gate creaks"})),
        ("get_context_summary", json!({"query": "heron gate creaks"})),
        ("summarize_conversation", json!({"session_id": "talk"})),
        ("expand_detail", json!({"id": id})),
        ("expand_detail", json!({"id": "talk#0"})),
        ("expand_detail", json!({"id": "talk"})),
    ];
    for (tool, arguments) in &calls {
        let own = User { web: &mut web, key: ana.clone() }.call(tool, arguments.clone());
        assert!(own.contains("heron gate") && !own.contains("by ana"), "{tool} {arguments}: {own}");
        let read = User { web: &mut web, key: ben.clone() }.call(tool, arguments.clone());
        assert!(read.contains("heron gate") && read.contains("by ana"), "{tool} {arguments}: {read}");
    }
    let mut as_ben = User { web: &mut web, key: ben };
    let near = json!({"text": "The heron gate is painted blue because of the moss.", "type": "decision"});
    let near = as_ben.call("store_memory", near);
    assert!(near.contains("Near it") && near.contains("by ana"), "{near}");
}

/// A mistyped name would join the team silently, and the user would wait in vain.
#[test]
fn only_users_with_a_valid_key_join_a_team() {
    let ground = Ground::new();
    ground.key(&["ana"]);
    ground.key(&["ben"]);
    ground.json(&["user", "revoke", "ben"]);
    ground.json(&["team", "create", "core"]);
    for name in ["anna", "ben", "an a"] {
        let tried = ground.run(&["team", "add", "core", name]);
        let way = format!("tiro user add {name}");
        assert!(
            !tried.is_ok && tried.stderr.contains("valid key") && tried.stderr.contains(&way),
            "{tried:?}"
        );
    }
    assert_eq!(ground.json(&["team", "list"])["teams"][0]["members"], json!([]));
    let said = |args: &[&str], words: &str| {
        let tried = ground.run(args);
        assert!(!tried.is_ok && tried.stderr.contains(words), "{args:?}: {tried:?}");
    };
    said(&["team", "add", "cor", "ana"], "no team `cor`");
    said(&["team", "leave", "core", "ana"], "`ana` is not in the team `core`");
    said(&["team", "leave", "cor", "ana"], "no team `cor`");
    said(&["team", "remove", "cor"], "no team `cor`");
    ground.json(&["team", "add", "core", "ana"]);
    said(&["team", "add", "core", "ana"], "`ana` is in the team `core`");
    said(&["team", "leave", "core", "anna"], "in it: ana");
    said(&["share", "mapel", "--off"], "no project");
    said(&["share", "maple", "--with", "cor", "--write"], "no team `cor`");
    let shared = ground.run(&["share", "maple", "--with", "core", "--write"]);
    assert!(shared.stdout.contains("No project was called maple, so it is made"), "{shared:?}");
}
