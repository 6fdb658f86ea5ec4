//! Two people with memories of their own exchange what they share over a server, and nothing else. Without the server,
//! both go on.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tiro_sync::greeting::HEADER;
use tiro_sync::page::{End, MEDIA_TYPE, Packer};

use crate::harness::{Home, Ran, Repo, eventually, feed};
use crate::web::{Web, new_database, port_of};

/// The server of a team, which shares the project `web` with the team `crew`.
pub struct Team {
    pub home: Home,
    pub place: PathBuf,
    pub web: Web,
    /// The address of the database; `None` if the memory is in files.
    pub database: Option<String>,
}

/// Returns the arguments `args` of a command whose memory is in this database.
pub fn in_database<'a>(database: Option<&'a str>, args: &[&'a str]) -> Vec<&'a str> {
    let set = database.map(|url| ["--database", url]);
    [set.iter().flatten().copied().collect(), args.to_vec()].concat()
}

impl Team {
    pub fn new() -> Team {
        Team::with(None)
    }

    /// Returns a team whose memory is in a database of its own; `None` if no server of PostgreSQL is named.
    pub fn in_database(name: &str) -> Option<Team> {
        new_database(name).map(|url| Team::with(Some(url)))
    }

    fn with(database: Option<String>) -> Team {
        let home = Home::new();
        let place = home.dir("server");
        for args in [&["team", "create", "crew"][..], &["share", "web", "--with", "crew", "--write"]] {
            let ran = home.run(&place, &in_database(database.as_deref(), args));
            assert!(ran.is_ok, "{args:?}: {ran:?}");
        }
        // A key makes the server ask for keys.
        let web = Web::start(&home, &place, &in_database(database.as_deref(), &[]));
        Team { home, place, web, database }
    }

    /// Runs a command of the server's owner.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.home.run(&self.place, &in_database(self.database.as_deref(), args))
    }

    /// Runs a command of the server's owner that succeeds, and returns its answer.
    pub fn json(&self, args: &[&str]) -> Value {
        self.home.json(&self.place, &in_database(self.database.as_deref(), args))
    }

    /// Makes a user of the team, and returns the key.
    pub fn user(&self, name: &str) -> String {
        let key = self.json(&["user", "add", name]);
        self.json(&["team", "add", "crew", name]);
        key["key"].as_str().unwrap().to_owned()
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.web.port)
    }

    /// Ends the server at once.
    fn kill(&mut self) {
        self.web.child.kill().unwrap();
        self.web.child.wait().unwrap();
    }

    /// Starts the server at the same address.
    fn start(&mut self) {
        self.web = Web::start_on(&self.home, &self.place, self.web.port, &[]);
    }
}

/// The machine of a person, with a repository.
pub struct Machine {
    pub home: Home,
    pub repo: Repo,
}

impl Machine {
    pub fn new() -> Machine {
        let home = Home::new();
        let repo = home.repo("web");
        Machine { home, repo }
    }

    /// Returns a machine that is connected with the team's server.
    pub fn of(team: &Team, key: &str, args: &[&str]) -> Machine {
        let machine = Machine::new();
        let ran = machine.connect(&team.address(), key, args);
        assert!(ran.is_ok, "{ran:?}");
        machine
    }

    pub fn connect(&self, address: &str, key: &str, args: &[&str]) -> Ran {
        let words = [&["connect", address], args].concat();
        self.home.feed(&self.repo.path, &words, format!("{key}\n").as_bytes())
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.home.run(&self.repo.path, args)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        self.home.json(&self.repo.path, args)
    }

    /// Exchanges, and returns how many memories were new there and here.
    pub fn sync(&self) -> (u64, u64) {
        let answer = self.json(&["sync"]);
        let added = |way: &str| answer[way]["added"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        (added("sent"), added("received"))
    }

    pub fn decide(&self, text: &str) -> String {
        self.json(&["add", "--type", "decision", text])["id"].as_str().unwrap().to_owned()
    }

    pub fn hits(&self, query: &str) -> Vec<Value> {
        self.json(&["search", query])["hits"].as_array().unwrap().clone()
    }
}

#[test]
fn what_one_decides_others_find_with_the_author_and_a_chat_stays_at_home() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    of_ana.decide("The bridge is built of granite.");
    let mut server = of_ana.home.serve(&of_ana.repo.path);
    server.save("plan", "1", "Between us: the amberfinch sings at night.");
    drop(server);
    of_ana.repo.commit("bridge.txt", "granite\n", "Build the bridge");
    let imported = of_ana.run(&["import", "git"]);
    assert!(imported.is_ok, "{imported:?}");
    // The server that saved the chat may have exchanged already.
    of_ana.sync();
    assert_eq!(of_ben.sync(), (0, 2));
    let hits = of_ben.hits("granite bridge");
    let decision = hits.iter().find(|hit| hit["kind"] == "decision").unwrap_or_else(|| panic!("{hits:?}"));
    assert_eq!(
        (&decision["author"], &decision["text"]),
        (&json!("ana"), &json!("The bridge is built of granite."))
    );
    assert!(hits.iter().any(|hit| hit["kind"] == "commit"), "{hits:?}");
    let shown = of_ben.run(&["search", "granite"]).stdout;
    assert!(shown.contains("by ana"), "{shown}");
    assert!(of_ana.hits("granite").iter().all(|hit| hit["author"].is_null()), "one's own needs no name");
    // So do all commands that show it.
    let id = decision["id"].as_str().unwrap();
    for args in [&["show", id][..], &["list"], &["log"], &["context", "granite bridge"], &["sessions"]] {
        let (own, shown) = (of_ana.run(args).stdout, of_ben.run(args).stdout);
        assert!(!own.contains("by ana"), "{args:?}: {own}");
        assert_eq!(shown.contains("by ana"), args != ["sessions"], "{args:?}: {shown}");
        assert!(!own.contains("uid:") && !shown.contains("uid:"), "{args:?}: {own}{shown}");
    }

    // What another wants for all is not what the user wants.
    of_ana.decide("Always ask before the bridge is closed.");
    assert_eq!((of_ana.sync(), of_ben.sync()), ((1, 0), (0, 1)));
    let wanted = of_ana.run(&["context", "when is the bridge closed"]).stdout;
    assert!(wanted.contains("what the user wants"), "{wanted}");
    let wanted = of_ben.run(&["context", "when is the bridge closed"]).stdout;
    assert!(wanted.contains("what others want") && wanted.contains("by ana"), "{wanted}");
    assert!(!wanted.contains("what the user wants"), "{wanted}");

    // Neither the server nor the other machine has the chat, in any file.
    assert!(!of_ana.home.files_with("amberfinch").is_empty());
    for home in [&team.home, &of_ben.home] {
        assert!(home.files_with("amberfinch").is_empty());
        assert!(!home.files_with("granite").is_empty());
    }
    // What is known is not told again.
    for machine in [&of_ana, &of_ben, &of_ana] {
        let again = machine.json(&["sync"]);
        for way in ["sent", "received"] {
            assert_eq!(again[way], json!({"added": 0, "changed": 0}), "{again}");
        }
    }
    let told = of_ana.run(&["sync"]).stdout;
    assert!(told.contains("nothing new was sent; nothing new was received"), "{told}");
}

#[test]
fn without_the_server_both_go_on_and_with_it_they_meet() {
    let mut team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    let first = of_ana.decide("The bridge is built of granite.");
    assert_eq!((of_ana.sync(), of_ben.sync()), ((1, 0), (0, 1)));
    team.kill();
    of_ana.decide("The tunnel is dug by hand.");
    of_ben.decide("The gate is painted red.");
    // The search answers from the machine's own file, and says nothing of the network.
    let found = of_ben.run(&["search", "granite"]);
    assert!(found.is_ok && found.stdout.contains("granite"), "{found:?}");
    for machine in [&of_ana, &of_ben] {
        let failed = machine.run(&["sync"]);
        assert!(!failed.is_ok && failed.stderr.contains("cannot reach"), "{failed:?}");
        let state = machine.run(&["connect"]);
        assert!(state.is_ok && state.stdout.contains("No exchange since"), "{state:?}");
        let checked = machine.run(&["doctor"]);
        assert!(checked.stdout.contains("cannot reach"), "{checked:?}");
        for args in [&["search", "granite"][..], &["list"], &["stats"]] {
            let ran = machine.run(args);
            assert!(ran.is_ok && !ran.stdout.contains("cannot reach"), "{args:?}: {ran:?}");
        }
    }
    team.start();
    assert_eq!(of_ana.sync(), (1, 0));
    assert_eq!(of_ben.sync(), (1, 1));
    assert_eq!(of_ana.sync(), (0, 1));
    assert_eq!(of_ben.hits("tunnel")[0]["author"], "ana");
    assert_eq!(of_ana.hits("gate")[0]["author"], "ben");
    assert!(!of_ana.run(&["connect"]).stdout.contains("No exchange since"));

    // What its author forgets, everybody forgets; what another forgets, only this other one.
    let forgotten = of_ana.run(&["forget", &first]);
    assert!(forgotten.is_ok, "{forgotten:?}");
    let sent = of_ana.json(&["sync"]);
    assert_eq!(sent["sent"]["changed"], 1, "{sent}");
    let got = of_ben.json(&["sync"]);
    assert_eq!(got["received"]["changed"], 1, "{got}");
    assert!(of_ben.hits("granite").is_empty());
    let tunnel = of_ben.hits("tunnel")[0]["id"].as_str().unwrap().to_owned();
    assert!(of_ben.run(&["forget", &tunnel]).is_ok);
    let refused = of_ben.json(&["sync"]);
    assert!(refused["refused"].to_string().contains("author"), "{refused}");
    assert_eq!(of_ana.json(&["sync"])["received"]["changed"], 0);
    assert_eq!(of_ana.hits("tunnel").len(), 1);
}

#[test]
fn a_second_machine_of_the_same_person_has_what_is_private_and_no_other_person_has() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let one = Machine::of(&team, &ana, &["--private"]);
    let mut server = one.home.serve(&one.repo.path);
    server.save("plan", "1", "Between us: the amberfinch sings at night.");
    drop(server);
    one.decide("The bridge is built of granite.");
    one.json(&["add", "--type", "code_block", "fn amberfinch() {}"]);
    one.sync();
    let two = Machine::of(&team, &ana, &["--private"]);
    assert_eq!(two.sync(), (0, 3));
    let hits = two.hits("amberfinch");
    assert!(hits.iter().any(|hit| hit["session_id"] == "plan"), "a session has its own name again: {hits:?}");
    assert!(hits.iter().all(|hit| hit["author"].is_null()), "both machines are ana's: {hits:?}");
    // A third machine that takes only what is shared, and another person.
    let three = Machine::of(&team, &ana, &[]);
    let of_ben = Machine::of(&team, &ben, &["--private"]);
    for machine in [&three, &of_ben] {
        assert_eq!(machine.sync(), (0, 1));
        assert!(machine.home.files_with("amberfinch").is_empty());
    }
    // A mark travels, and so does forgetting, in both directions.
    let hits = two.hits("amberfinch");
    let known = hits.iter().find(|hit| hit["session_id"] == "plan").unwrap()["id"].as_str().unwrap();
    assert!(two.run(&["mark", known]).is_ok && two.run(&["forget", "--session", "plan"]).is_ok);
    assert!(two.json(&["sync"])["sent"]["changed"].as_u64() >= Some(1));
    assert!(one.json(&["sync"])["received"]["changed"].as_u64() >= Some(1));
    assert!(one.hits("amberfinch").iter().all(|hit| hit["kind"] != "message"));
}

/// Marking a message makes it the latest change, so that it is sent after the messages that follow it. It then stood at
/// the end of its session, on the server and on the other machine.
#[test]
fn a_message_that_was_marked_before_it_was_sent_keeps_its_place() {
    let team = Team::new();
    let ana = team.user("ana");
    let one = Machine::new();
    let mut server = one.home.serve(&one.repo.path);
    let first = server.save("plan", "1", "The amberfinch sings at night.");
    server.save("plan", "2", "The bullfinch sings at noon.");
    server.save("plan", "3", "The chaffinch sings at dawn.");
    drop(server);
    assert!(one.run(&["mark", &first]).is_ok);
    assert!(one.connect(&team.address(), &ana, &["--private"]).is_ok);
    assert_eq!(one.sync().0, 3);
    let two = Machine::of(&team, &ana, &["--private"]);
    assert_eq!(two.sync(), (0, 3));
    for (place, bird) in ["amberfinch", "bullfinch", "chaffinch"].into_iter().enumerate() {
        for machine in [&one, &two] {
            let shown = machine.json(&["show", &format!("plan#{place}")]);
            assert!(shown["text"].to_string().contains(bird), "{place}: {shown}");
        }
    }
}

/// Each machine extracted the decisions from all messages, so that both had each decision twice once they had exchanged
/// them. A decision that was forgotten on one came back from the other.
#[test]
fn a_decision_in_a_message_is_one_memory_on_both_machines() {
    let team = Team::new();
    let ana = team.user("ana");
    let one = Machine::of(&team, &ana, &["--private"]);
    let decisions = |machine: &Machine| {
        let listed = machine.json(&["list", "--kind", "decision"]);
        listed["memories"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
    };
    let mut server = one.home.serve(&one.repo.path);
    server.save("plan", "1", "We decided to use granite for the bridge.");
    server.save("plan", "2", "Please draw it.");
    eventually(|| decisions(&one).len() == 1);
    drop(server);
    one.sync();
    let two = Machine::of(&team, &ana, &["--private"]);
    two.sync();
    // There the session goes on, so that its messages are read for decisions.
    let mut server = two.home.serve(&two.repo.path);
    server.save("plan", "3", "We decided to use oak for the gate.");
    server.save("plan", "4", "Please draw it, too.");
    eventually(|| decisions(&two).iter().any(|it| it["line"].to_string().contains("oak")));
    drop(server);
    for machine in [&two, &one, &two] {
        machine.sync();
    }
    for machine in [&one, &two] {
        assert_eq!(decisions(machine).len(), 2, "{:?}", decisions(machine));
    }
    let granite = decisions(&one).into_iter().find(|it| it["line"].to_string().contains("granite")).unwrap();
    assert!(one.run(&["forget", granite["id"].as_str().unwrap()]).is_ok);
    one.sync();
    two.sync();
    assert_eq!(decisions(&two).len(), 1, "{:?}", decisions(&two));
}

/// The idle worker of an agent's server does it: nobody runs `tiro sync`.
#[test]
fn a_running_server_exchanges_by_itself() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    let mut server = of_ana.home.serve(&of_ana.repo.path);
    server.data("store_memory", json!({"text": "The bridge is built of granite.", "type": "decision"}));
    eventually(|| {
        of_ben.sync();
        !of_ben.hits("granite").is_empty()
    });
    eventually(|| of_ana.json(&["connect"])["connection"]["last_sync"].is_string());
    drop(server);
}

/// A server made by hand: it gives the answers in turn to one request each, and passes on what was asked.
fn fake(answers: Vec<String>) -> (String, Receiver<String>) {
    fake_bytes(answers.into_iter().map(String::into_bytes).collect())
}

pub fn fake_bytes(answers: Vec<Vec<u8>>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut buffer = [0; 4096];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count @ 1..) => head.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&head).into_owned());
            let _ = stream.write_all(&answer);
        }
    });
    (address, asked)
}

pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// Returns an answer with a page, of which only `share` bytes of a hundred are sent.
pub fn paged(page: &[u8], share: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{HEADER}: 1\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {}\r\n\r\n",
        page.len()
    );
    [head.as_bytes(), &page[..page.len() * share / 100]].concat()
}

#[test]
fn half_a_page_changes_nothing_and_the_next_exchange_continues() {
    let machine = Machine::new();
    let key = format!("tiro_{}_{}", "0".repeat(8), "1".repeat(64));
    let memories =
        [decision(1, "ben", "The bridge is built of granite."), decision(2, "ben", "The gate is red.")];
    let [first, second] = memories.map(|memory| page(&[memory]));
    let hello = || greeting(|_| {}).into_bytes();
    let (address, asked) = fake_bytes(vec![
        hello(),
        hello(),
        paged(&first, 100),
        hello(),
        paged(&second, 50),
        hello(),
        paged(&second, 100),
    ]);
    assert!(machine.connect(&address, &key, &[]).is_ok);
    assert_eq!(machine.sync(), (0, 1));
    let broken = machine.run(&["sync"]);
    assert!(!broken.is_ok && broken.stderr.contains("closed before the answer"), "{broken:?}");
    assert!(machine.hits("gate").is_empty() && machine.hits("granite").len() == 1);
    assert_eq!(machine.sync(), (0, 1));
    assert_eq!(machine.hits("gate")[0]["author"], "ben");
    let asked: Vec<String> = asked.try_iter().filter(|head| head.contains("/pull")).collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
}

pub fn greeting(change: impl FnOnce(&mut Value)) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut greeting = json!({
        "tiro": "9.9.9", "format": 1, "oldest_format": 1, "server": "s", "user": "ana", "now": now,
        "projects": [{"id": "p1", "name": "web", "may_write": true, "kinds": ["decision"], "colour": "new"}],
    });
    change(&mut greeting);
    answer("200 OK", &format!("{HEADER}: 1\r\n"), &greeting.to_string())
}

#[test]
fn a_wrong_address_or_server_is_named_and_gets_no_second_request() {
    let machine = Machine::new();
    let key = format!("tiro_{}_{}", "0".repeat(8), "1".repeat(64));
    let tried = |address: &str, key: &str| {
        let ran = machine.connect(address, key, &[]);
        assert!(!ran.is_ok, "{address}: {ran:?}");
        assert!(!format!("{ran:?}").contains(&"1".repeat(64)), "the key is in no error and no log: {ran:?}");
        ran.stderr
    };
    for address in ["http://memory.example.org", "http://10.1.2.3:8137"] {
        assert!(tried(address, &key).contains("unencrypted"));
    }
    assert!(tried("https://ana:secret@memory.example.org", &key).contains("has a user or a password"));
    assert!(tried("http://127.0.0.1:9", "").contains("no key was given"));
    assert!(tried("http://127.0.0.1:9", "sk-123").contains("is no key of a server"));
    assert!(tried("http://127.0.0.1:9", &key).contains("cannot reach"));
    let ours = format!("{HEADER}: 1\r\n");
    let expired =
        format!("{ours}WWW-Authenticate: Bearer error=\"invalid_token\", error_description=\"expired\"\r\n");
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let redirect = format!("Location: http://{}/sync\r\n{ours}", elsewhere.local_addr().unwrap());
    for (answer, expected) in [
        (answer("200 OK", "", "<html>Welcome</html>"), "is no Tiro that can sync"),
        (answer("404 Not Found", "", ""), "is no Tiro that can sync"),
        (answer("307 Temporary Redirect", &redirect, ""), "another address"),
        (answer("200 OK", &ours, "{"), "can't be read"),
        (answer("200 OK", &ours, "[1]"), "can't be read"),
        (answer("401 Unauthorized", &ours, ""), "unknown or revoked"),
        (answer("401 Unauthorized", &expired, ""), "has expired"),
        (answer("403 Forbidden", "tiro-sync: closed\r\n", ""), "only its own user"),
        (answer("503 Service Unavailable", &ours, ""), "is busy"),
        (greeting(|it| (it["format"], it["oldest_format"]) = (json!(9), json!(2))), "later version of Tiro"),
        (greeting(|it| (it["format"], it["oldest_format"]) = (json!(0), json!(0))), "too old"),
        (greeting(|it| it["now"] = json!(4_070_908_800_000_u64)), "behind that of"),
        (greeting(|it| it["now"] = json!(0)), "ahead of that of"),
        (greeting(|it| it["projects"] = json!([])), "shares no project with you"),
        (greeting(|it| it["projects"][0]["name"] = json!("api")), "shares no project called `web`"),
        (format!("HTTP/1.1 200 OK\r\n{ours}Content-Length: 100\r\n\r\n{{"), "cannot reach"),
        (String::new(), "cannot reach"),
    ] {
        let (address, asked) = fake(vec![answer.clone()]);
        let error = tried(&address, &key);
        assert!(error.contains(expected), "{expected}: {error}");
        let head = asked.recv_timeout(Duration::from_secs(9)).unwrap();
        assert!(head.starts_with("GET /sync HTTP/1.1") && head.contains(&format!("Bearer {key}")), "{head}");
    }
    assert!(elsewhere.accept().is_err(), "the key was not sent elsewhere");
    assert!(machine.home.files_with(&"1".repeat(64)).is_empty(), "a key that does not work is not kept");
    let unknown = machine.run(&["sync"]);
    assert!(!unknown.is_ok && unknown.stderr.contains("tiro connect URL"), "{unknown:?}");
}

#[test]
fn the_key_is_kept_apart_and_leaves_with_the_connection() {
    let team = Team::new();
    let ana = team.user("ana");
    let of_ana = Machine::of(&team, &ana, &["--name", "web"]);
    let secret = &ana[14..];
    let files = of_ana.home.files_with(secret);
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].extension().is_some_and(|it| it == "key"), "{files:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Others who can read it could use it.
        std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = of_ana.run(&["sync"]);
        assert!(!refused.is_ok && refused.stderr.contains("others can read it"), "{refused:?}");
        std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    of_ana.decide("The bridge is built of granite.");
    let ran = of_ana.run(&["sync"]);
    assert!(ran.is_ok && !format!("{ran:?}").contains(secret), "{ran:?}");
    // The key as a variable, for programs.
    let mut command = of_ana.home.tiro(&of_ana.repo.path, &["connect", &team.address()]);
    command.env("TIRO_KEY", &ana);
    let ran = feed(command, b"");
    assert!(ran.is_ok && !format!("{ran:?}").contains(secret), "{ran:?}");
    // A revoked key is named, and replaced by a new connection.
    assert!(team.home.run(&team.place, &["user", "revoke", "ana"]).is_ok);
    let revoked = of_ana.run(&["sync"]);
    assert!(!revoked.is_ok && revoked.stderr.contains("unknown or revoked"), "{revoked:?}");
    let other = team.user("ben");
    assert!(of_ana.connect(&team.address(), &other, &[]).is_ok);
    assert_eq!(of_ana.json(&["connect"])["connection"]["user"], "ben");
    let off = of_ana.run(&["connect", "--off"]);
    assert!(off.is_ok && of_ana.home.files_with(&other[14..]).is_empty(), "{off:?}");
    assert!(of_ana.run(&["connect"]).stdout.contains("no server"));
    // A project that is no longer shared.
    let carl = team.user("carl");
    let of_carl = Machine::of(&team, &carl, &[]);
    assert!(team.home.run(&team.place, &["team", "leave", "crew", "carl"]).is_ok);
    let refused = of_carl.run(&["sync"]);
    assert!(!refused.is_ok && refused.stderr.contains("isn't shared with you"), "{refused:?}");
}

/// Returns a page with these lines.
pub fn page(lines: &[Value]) -> Vec<u8> {
    let mut packer = Packer::default();
    lines.iter().for_each(|line| packer.add(&line.to_string()));
    packer.finish(End::default())
}

pub fn decision(number: u64, author: &str, text: &str) -> Value {
    let memory = json!({"text": text, "provenance": "user_said", "time": 1_700_000_000_000_u64});
    json!({"id": format!("m{number:013}"), "kind": "decision", "author": author, "memory": memory})
}

/// Sends bytes as a page of changes, and returns the status and the body.
fn push(web: &Web, project: &str, body: &[u8]) -> (u16, String) {
    let path = format!("/sync/{project}/push?device=0123456789abcdef");
    let answer = web.ask("POST", &path, &[&format!("Accept: {MEDIA_TYPE}")], body);
    (answer.status, answer.body)
}

#[test]
fn a_server_trusts_no_line_and_loses_none_because_of_another() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let of_ben = Machine::of(&team, &ben, &[]);
    let mut web = Web::start(&team.home, &team.place, &["--metrics", "0"]);
    let greeted = web.ask("GET", "/sync", &[], b"");
    assert_eq!((greeted.status, greeted.header(HEADER)), (401, Some("1")), "{greeted:?}");
    web.key = Some(ana);
    let greeting = web.ask("GET", "/sync", &[], b"").json();
    assert_eq!((&greeting["user"], &greeting["projects"][0]["name"]), (&json!("ana"), &json!("web")));
    let id = greeting["projects"][0]["id"].as_str().unwrap();
    let secret = "ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w";
    let mut ahead = decision(4, "ana", "From the future");
    ahead["state"] = json!({"marked": true, "marked_at": (4_070_908_800_000_i64) << 16});
    let mut chat = decision(6, "ana", "A message");
    chat["kind"] = json!("message");
    let mut lying = decision(8, "ana", "With a vector that lies");
    lying["memory"]["chunks"] =
        json!([{"start": 0, "end": 5, "space": "all-MiniLM-L6-v2/mean/l2", "vector": "AAAA"}]);
    let purge =
        json!({"id": "m0000000000099", "kind": "decision", "author": "ben", "state": {"purged": true}});
    let lines = [
        decision(1, "ana", "The bridge is built of granite."),
        decision(2, "ben", "Ben never said this"),
        decision(3, "ana", &format!("The token is {secret}.")),
        ahead,
        json!({"id": 7}),
        chat,
        json!({"id": "m0000000000007", "kind": "opinion", "author": "ana"}),
        lying,
        purge,
    ];
    let (status, body) = push(&web, id, &page(&lines));
    assert_eq!(status, 200, "{body}");
    let outcomes: Value = serde_json::from_str(&body).unwrap();
    let outcomes: Vec<String> =
        outcomes["outcomes"].as_array().unwrap().iter().map(Value::to_string).collect();
    let expected = [
        "stored",
        "another author",
        "stored",
        "in the future",
        "malformed",
        "kind",
        "later version",
        "stored",
        "refused",
    ];
    assert_eq!(outcomes.len(), expected.len(), "{outcomes:?}");
    for (outcome, expected) in outcomes.iter().zip(expected) {
        assert!(outcome.contains(expected), "{expected}: {outcome}");
    }
    assert!(team.home.files_with(secret).is_empty(), "what comes is redacted");
    let (_, again) = push(&web, id, &page(&lines[..1]));
    assert!(again.contains("known"), "{again}");
    let mut other = lines[0].clone();
    other["memory"]["text"] = json!("The bridge is built of wood.");
    assert!(push(&web, id, &page(&[other])).1.contains("conflict"));
    assert_eq!(of_ben.sync(), (0, 3));
    assert_eq!(of_ben.hits("granite")[0]["author"], "ana");

    // Pages that are none, or only half, change nothing.
    let whole = page(&[decision(20, "ana", "Half a page")]);
    for (body, expected) in [
        (&b""[..], 400),
        (b"{}", 400),
        (&whole[..whole.len() / 2], 400),
        (&whole[..whole.len() - 4], 400),
        (&vec![b'x'; 5 << 20][..], 413),
    ] {
        assert_eq!(push(&web, id, body).0, expected, "{} bytes", body.len());
    }
    let mut bomb = Packer::default();
    bomb.add(&"0".repeat(40 << 20));
    let bomb = bomb.finish(End::default());
    assert!(bomb.len() < 1 << 20);
    assert_eq!(push(&web, id, &bomb).0, 413);
    // A connection that ends in the middle of a page.
    let mut stream: TcpStream = web.connect();
    let path = format!("/sync/{id}/push?device=0123456789abcdef");
    let head = web.head("POST", &path, &[&format!("Content-Length: {}", whole.len())]);
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    stream.write_all(&whole[..whole.len() / 2]).unwrap();
    drop(stream);
    assert_eq!(of_ben.sync(), (0, 0));

    for (path, status) in [
        ("/sync/nothing/push?device=0123456789abcdef".to_owned(), 404),
        (format!("/sync/{id}/push"), 400),
        (format!("/sync/{id}/push?device=a%20b"), 400),
        (format!("/sync/{id}/pull?device=0123456789abcdef"), 405),
    ] {
        assert_eq!(web.ask("POST", &path, &[], &whole).status, status, "{path}");
    }
    let later = web.ask(
        "POST",
        &format!("/sync/{id}/push?device=0123456789abcdef"),
        &[&format!("{HEADER}: 9")],
        &whole,
    );
    assert_eq!(later.status, 501);
    let mut metrics = Web::start(&team.home, &team.place, &[]);
    metrics.port = port_of(web.metrics.as_ref().unwrap());
    let metrics = metrics.ask("GET", "/metrics", &[], b"").body;
    for line in ["method=\"sync push\",status=\"200\"", "method=\"sync greeting\",status=\"200\""] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

/// A commit has the same id on all machines, so that another one can name it before it is sent.
#[test]
fn nobody_else_removes_a_commit_from_the_machine_that_imported_it() {
    let team = Team::new();
    let [ana, ben, carl] = ["ana", "ben", "carl"].map(|name| team.user(name));
    let of_ana = Machine::of(&team, &ana, &[]);
    for name in ["granite", "larch"] {
        of_ana.repo.commit("a.txt", name, &format!("Build the bridge of {name}"));
    }
    of_ana.json(&["import", "git"]);
    let ids: Vec<String> =
        of_ana.hits("bridge").iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    let mut web = Web::start(&team.home, &team.place, &[]);
    web.key = Some(ben);
    let id = web.ask("GET", "/sync", &[], b"").json()["projects"][0]["id"].as_str().unwrap().to_owned();
    let gone = |author: &str, state: Value| -> Vec<Value> {
        ids.iter().map(|id| json!({"id": id, "kind": "commit", "author": author, "state": state})).collect()
    };
    let purged = || gone("ben", json!({"purged": true}));
    // What is sent in another's name is refused, and so is what comes after the memory is known.
    assert_eq!(push(&web, &id, &page(&gone("ana", json!({"purged": true})))).1.matches("refused").count(), 2);
    assert_eq!(push(&web, &id, &page(&purged())).0, 200);
    let with_content = purged().into_iter().map(|mut line| {
        let commit = json!({"sha": "a".repeat(40)});
        line["memory"] =
            json!({"text": "It says nothing", "provenance": "user_said", "time": 5, "commit": commit});
        line
    });
    let with_content: Vec<Value> = with_content.collect();
    assert_eq!(push(&web, &id, &page(&with_content)).0, 200);
    assert_eq!(of_ana.sync(), (2, 0));
    assert_eq!(push(&web, &id, &page(&purged())).1.matches("refused").count(), 2);
    assert_eq!(of_ana.sync(), (0, 0));
    assert_eq!(of_ana.hits("bridge").len(), 2);
    let of_carl = Machine::of(&team, &carl, &[]);
    assert_eq!(of_carl.sync(), (0, 2));
    // Their author removes one everywhere.
    of_ana.json(&["forget", &ids[0], "--purge", "--yes"]);
    of_ana.sync();
    of_carl.sync();
    assert_eq!((of_ana.hits("bridge").len(), of_carl.hits("bridge").len()), (1, 1));
}

/// A colleague's commit is found before it is fetched, and says so. Who forgets it hides it.
#[test]
fn a_commit_of_another_clone_is_neither_gone_nor_ones_own() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    of_ben.repo.commit("b.txt", "larch", "Build a gate of larch");
    of_ana.repo.commit("a.txt", "granite", "Build the bridge of granite");
    of_ana.json(&["import", "git"]);
    assert_eq!(of_ana.sync(), (1, 0));
    assert_eq!(of_ben.sync(), (0, 1));
    let hit = &of_ben.hits("granite")[0];
    assert_eq!((&hit["author"], &hit["freshness"]), (&json!("ana"), &json!("not_in_clone")), "{hit}");
    let shown = of_ben.run(&["search", "granite"]).stdout;
    assert!(shown.contains("shared by ana") && shown.contains("not in this clone"), "{shown}");
    let context = of_ben.run(&["context", "granite"]).stdout;
    assert!(context.contains(", shared by ana] Build the bridge"), "{context}");
    let forgotten = of_ben.run(&["forget", hit["id"].as_str().unwrap()]).stdout;
    assert!(forgotten.contains("shared by ana: it is hidden on this machine"), "{forgotten}");
    assert_eq!((of_ben.hits("granite").len(), of_ana.hits("granite").len()), (0, 1));
}

/// A database that is replaced by an older copy has lost what came later. Those who have it bring it back, also if others
/// have sent more since then, so that the numbers of changes are as large as before.
#[test]
fn what_a_restored_server_lost_comes_back_from_those_who_have_it() {
    let mut team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    of_ana.decide("The bridge is built of granite.");
    assert_eq!(of_ana.sync(), (1, 0));
    assert!(team.web.end() < Duration::from_secs(5));
    let copy = team.home.path().join("copy");
    copied(&team.home.data(), &copy);
    team.start();
    for number in 0..5 {
        of_ana.decide(&format!("Tunnel {number} is dug by hand."));
    }
    assert_eq!(of_ana.sync(), (5, 0));
    assert_eq!(of_ben.sync(), (0, 6));
    // The last state of this one comes from the server. It is sent again all the same.
    let marked = of_ben.hits("tunnel")[0]["id"].as_str().unwrap().to_owned();
    assert!(of_ben.run(&["mark", &marked]).is_ok);
    of_ben.sync();
    of_ana.sync();
    team.web.end();
    std::fs::remove_dir_all(team.home.data()).unwrap();
    copied(&copy, &team.home.data());
    team.start();
    let carl = team.user("carl");
    let of_carl = Machine::of(&team, &carl, &[]);
    for number in 0..20 {
        of_carl.decide(&format!("Gate {number} is painted red."));
    }
    assert_eq!(of_carl.sync(), (20, 1));
    of_ana.decide("The tower leans.");
    assert_eq!(of_ana.sync(), (6, 20), "what the server lost is sent again");
    assert_eq!(of_ben.sync(), (0, 21));
    assert_eq!(of_carl.sync(), (0, 6));
    assert_eq!((of_ben.hits("tunnel").len(), of_carl.hits("tunnel").len()), (5, 5));
    assert_eq!(of_ana.sync(), (0, 0));
}

/// A machine whose own memory is gone gets back what it had sent itself.
#[test]
fn a_machine_that_lost_its_memory_gets_its_own_back() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    of_ben.decide("The gate is painted red.");
    of_ben.sync();
    of_ana.decide("The bridge is built of granite.");
    assert_eq!((of_ana.sync(), of_ana.sync()), ((1, 1), (0, 0)));
    std::fs::remove_dir_all(of_ana.home.data().join("projects")).unwrap();
    assert_eq!(of_ana.sync(), (0, 2));
    assert_eq!((of_ana.hits("granite").len(), of_ana.hits("painted").len()), (1, 1));
    assert_eq!((of_ana.sync(), of_ben.sync()), ((0, 0), (0, 1)));
}

fn copied(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copied(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// One command for all connected projects: each has a line, and a failure of one stops no other.
#[test]
fn all_connected_projects_are_exchanged_and_a_failure_of_one_stops_no_other() {
    let team = Team::new();
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    let nowhere = Machine::new();
    let none = nowhere.run(&["sync", "--all"]);
    assert!(none.is_ok && none.stdout.contains("No project"), "{none:?}");
    for name in ["api", "docs"] {
        let shared = team.home.run(&team.place, &["share", name, "--with", "crew", "--write"]);
        assert!(shared.is_ok, "{shared:?}");
    }
    let [api, docs] = ["api", "docs"].map(|name| of_ana.home.repo(name));
    let decide = |repo: &Repo, text: &str| {
        of_ana.home.json(&repo.path, &["add", "--type", "decision", text]);
    };
    for repo in [&api, &docs] {
        let words = ["connect", &team.address()];
        let ran = of_ana.home.feed(&repo.path, &words, format!("{ana}\n").as_bytes());
        assert!(ran.is_ok, "{ran:?}");
    }
    of_ana.decide("The bridge is built of granite.");
    decide(&api, "The API speaks JSON.");
    decide(&docs, "The manual is in English.");
    // In a directory without a project, too.
    let elsewhere = of_ana.home.dir("elsewhere");
    let done = of_ana.home.run(&elsewhere, &["sync", "--all"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(done.is_ok && lines.len() == 3, "{done:?}");
    for (line, name) in lines.iter().zip(["api", "docs", "web"]) {
        assert!(line.starts_with(&format!("{name}: ")) && line.contains("1 new memory"), "{line}");
    }
    let ran =
        of_ben.home.feed(&of_ben.repo.path, &["connect", &team.address()], format!("{ben}\n").as_bytes());
    assert!(ran.is_ok, "{ran:?}");
    assert_eq!(of_ben.sync(), (0, 1), "what was sent is there");

    // One project is no longer shared: the others are exchanged, and the command fails.
    let off = team.home.run(&team.place, &["share", "docs", "--off"]);
    assert!(off.is_ok, "{off:?}");
    of_ana.decide("The gate is painted red.");
    decide(&api, "The API answers in a second.");
    let failed = of_ana.home.run(&elsewhere, &["sync", "--all"]);
    let lines: Vec<&str> = failed.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(!failed.is_ok && lines.len() == 3 && lines[1].starts_with("docs: "), "{failed:?}");
    assert!(lines[0].contains("1 new memory") && lines[2].contains("1 new memory"), "{failed:?}");
    assert_eq!(of_ben.sync(), (0, 1));
    let failed = of_ana.home.run(&elsewhere, &["sync", "--all", "--json"]);
    let answer: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert!(!failed.is_ok && answer["failed"] == 1, "{answer}");
    assert!(
        answer["projects"][1]["error"].is_string() && answer["projects"][0]["error"].is_null(),
        "{answer}"
    );
}

/// PostgreSQL can't store U+0000, and has another character in its place. The text that came back was reported as another
/// text, and its mark was lost.
#[test]
fn a_text_that_the_servers_database_stores_otherwise_is_the_same_text() {
    let Some(team) = Team::in_database("nul") else {
        return eprintln!("skipped: TIRO_TEST_POSTGRES names no server of PostgreSQL");
    };
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (Machine::of(&team, &ana, &[]), Machine::of(&team, &ben, &[]));
    let mut server = of_ana.home.serve(&of_ana.repo.path);
    let text = "The log of the bridge\0begins with a zero.";
    server.data("store_memory", json!({"text": text, "type": "decision"}));
    drop(server);
    of_ana.sync();
    assert_eq!(of_ben.sync(), (0, 1));
    let id = of_ben.hits("bridge")[0]["id"].as_str().unwrap().to_owned();
    assert!(of_ben.run(&["mark", &id]).is_ok);
    assert_eq!(of_ben.json(&["sync"])["sent"], json!({"added": 0, "changed": 1}));
    let got = of_ana.json(&["sync"]);
    assert_eq!(got["received"], json!({"added": 0, "changed": 1}), "{got}");
    let id = of_ana.hits("bridge")[0]["id"].as_str().unwrap().to_owned();
    assert!(of_ana.run(&["show", &id]).stdout.contains("important"));
    for machine in [&of_ana, &of_ben] {
        let again = machine.json(&["sync"]);
        for way in ["sent", "received"] {
            assert_eq!(again[way], json!({"added": 0, "changed": 0}), "{again}");
        }
    }
}

/// The same transcript may lie on both machines of a person, and both may have read it before they meet.
#[test]
fn a_session_that_both_machines_have_read_is_there_once() {
    let team = Team::new();
    let ana = team.user("ana");
    let (one, two) = (Machine::of(&team, &ana, &["--private"]), Machine::of(&team, &ana, &["--private"]));
    for machine in [&one, &two] {
        let mut server = machine.home.serve(&machine.repo.path);
        server.save("plan", "1", "Between us: the amberfinch sings at night.");
        server.save("plan", "2", "It is fed at noon.");
    }
    for _ in 0..2 {
        one.sync();
        assert_eq!(two.sync(), (0, 0), "the other machine has the same messages");
    }
    for machine in [&one, &two] {
        let listed = machine.json(&["list", "--kind", "message"]);
        assert_eq!(listed["memories"].as_array().unwrap().len(), 2, "{listed}");
    }
}

/// Both machines of a person extract what a session decides. It was sent by both, so everybody had it twice.
#[test]
fn what_both_machines_of_a_person_extract_is_sent_once() {
    let team = Team::new();
    let ana = team.user("ana");
    let (one, two) = (Machine::of(&team, &ana, &["--private"]), Machine::of(&team, &ana, &["--private"]));
    let decided = "We decided: always feed the amberfinch at noon.";
    one.home.serve(&one.repo.path).save("plan", "1", decided);
    one.sync();
    assert_eq!(two.sync(), (0, 1));
    let decisions = |machine: &Machine| {
        let listed = machine.json(&["list", "--kind", "decision"]);
        listed["memories"].as_array().unwrap().len()
    };
    let question = || json!({"query": "amberfinch", "session_id": "plan"});
    // The worker of a server extracts it, on the machine on which it was said.
    let mut server = one.home.serve(&one.repo.path);
    eventually(|| {
        server.call("retrieve_context", question());
        decisions(&one) == 1
    });
    for _ in 0..2 {
        one.sync();
        two.sync();
        two.home.serve(&two.repo.path).call("retrieve_context", question());
    }
    assert_eq!((decisions(&one), decisions(&two)), (1, 1));
}
