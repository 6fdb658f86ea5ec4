//! What one shares, the machines of the others have within seconds, while an agent runs there. Without a server that says
//! so, they ask every minute.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiro_sync::greeting::HEADER;

use crate::harness::{Server, eventually};
use crate::syncs::{Machine, Team, answer, decision, fake_bytes, greeting, in_database, page, paged};
use crate::web::{Answer, Web, port_of, read};

/// How long something may take that takes a few seconds. Arbitrary: machines of tests are busy, but it must be clearly
/// shorter than the minute after which everything arrives anyway.
const SOON: Duration = Duration::from_secs(25);

/// Returns the number of machines that wait for changes at the server.
fn waiting(web: &Web) -> u64 {
    let port = port_of(web.metrics.as_ref().unwrap());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").unwrap();
    let body = read(stream).body;
    let line = body.lines().find_map(|line| line.strip_prefix("tiro_waiting_machines "));
    line.unwrap_or_else(|| panic!("{body}")).parse().unwrap()
}

/// Starts a replica of the team's server that tells how many machines wait.
fn replica(team: &Team) -> Web {
    let args = in_database(team.database.as_deref(), &["--metrics", "0"]);
    Web::start(&team.home, &team.place, &args)
}

/// Returns a machine that is connected with a replica.
fn machine_at(web: &Web, key: &str, args: &[&str]) -> Machine {
    let machine = Machine::new();
    let ran = machine.connect(&format!("http://127.0.0.1:{}", web.port), key, args);
    assert!(ran.is_ok, "{ran:?}");
    machine
}

/// Starts an agent's server on a machine that is connected with `web`, and returns once it waits for changes.
fn agent(machine: &Machine, web: &Web) -> Server {
    let before = waiting(web);
    let mut server = machine.home.serve(&machine.repo.path);
    // A call opens the project.
    server.data("store_memory", json!({"text": "The gate is painted red.", "type": "fact"}));
    eventually(|| waiting(web) > before);
    server
}

/// Lets `from` share a decision, and returns how long it takes until `to` has it.
fn shared(from: &Machine, to: &Machine, word: &str) -> Duration {
    from.decide(&format!("The bridge is built of {word}."));
    from.sync();
    let began = Instant::now();
    eventually(|| !to.hits(word).is_empty());
    began.elapsed()
}

/// Begins to wait for changes after the number `after`, as a machine with `key` does, and passes on the answer.
fn wait(web: &Web, key: &str, (project, after): (&str, i64), more: &str) -> Receiver<Answer> {
    let mut stream = web.connect();
    let path = format!("/sync/{project}/wait?device=0123456789abcdef&after={after}{more}");
    let head = web.head("GET", &path, &[&format!("Authorization: Bearer {key}")]);
    write!(stream, "{head}\r\n").unwrap();
    let (sender, answered) = channel();
    std::thread::spawn(move || sender.send(read(stream)));
    answered
}

/// Returns the id of the team's project, and a number that comes after all changes.
fn now(web: &Web, key: &str) -> (String, i64) {
    let greeted = web.ask("GET", "/sync", &[&format!("Authorization: Bearer {key}")], b"").json();
    assert_eq!(greeted["waits"], json!(true), "{greeted}");
    let project = greeted["projects"][0]["id"].as_str().unwrap().to_owned();
    let machine = machine_at(web, key, &[]);
    machine.sync();
    let folder = machine.home.data().join("connections");
    let progress = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let progress = progress.into_iter().find(|path| path.to_string_lossy().ends_with(".progress.json"));
    let progress: Value = serde_json::from_slice(&std::fs::read(progress.unwrap()).unwrap()).unwrap();
    (project, progress["received"].as_i64().unwrap())
}

#[test]
fn what_one_shares_arrives_on_the_other_machine_within_seconds() {
    let team = Team::new();
    let web = replica(&team);
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (machine_at(&web, &ana, &[]), machine_at(&web, &ben, &[]));
    let agent = agent(&of_ben, &web);
    for word in ["granite", "basalt"] {
        let took = shared(&of_ana, &of_ben, word);
        assert!(took < SOON, "{took:?}");
        eventually(|| waiting(&web) == 1);
    }
    // A second agent in the same project doesn't wait, too, and takes over when the first one ends.
    let mut second = of_ben.home.serve(&of_ben.repo.path);
    second.data("store_memory", json!({"text": "The gate has two wings.", "type": "fact"}));
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(waiting(&web), 1);
    drop(agent);
    eventually(|| waiting(&web) == 1);
    let took = shared(&of_ana, &of_ben, "limestone");
    assert!(took < SOON, "{took:?}");
}

/// Two replicas know of each other only by the database. A connection that is lost is opened again.
#[test]
fn what_one_shares_with_a_replica_arrives_from_another_one() {
    let Some(team) = Team::in_database("arrives") else {
        return eprintln!("skipped: TIRO_TEST_POSTGRES names no server of PostgreSQL");
    };
    let web = replica(&team);
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (of_ana, of_ben) = (machine_at(&team.web, &ana, &[]), machine_at(&web, &ben, &[]));
    let _agent = agent(&of_ben, &web);
    let took = shared(&of_ana, &of_ben, "granite");
    assert!(took < SOON, "{took:?}");

    let url = team.database.as_ref().unwrap();
    let listeners = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'";
    let ask = |what: &str| {
        let sql = format!("SELECT {what} {listeners}");
        let ran = std::process::Command::new("psql").args([url, "-At", "-c", &sql]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    let first = ask("pid");
    assert!(first.parse::<u32>().is_ok(), "one connection listens: {first:?}");
    assert_eq!(ask("pg_terminate_backend(pid)"), "t");
    eventually(|| ask("pid").parse::<u32>().is_ok_and(|pid| pid.to_string() != first));
    eventually(|| waiting(&web) == 1);
    let took = shared(&of_ana, &of_ben, "basalt");
    assert!(took < SOON, "{took:?}");
}

#[test]
fn who_may_not_see_a_change_is_not_told_of_it() {
    for team in [Some(Team::new()), Team::in_database("told")].into_iter().flatten() {
        only_who_may_see_is_told(&team);
    }
}

fn only_who_may_see_is_told(team: &Team) {
    let web = replica(team);
    let [ana, ben, carl] = ["ana", "ben", "carl"].map(|name| team.user(name));
    team.json(&["team", "leave", "crew", "carl"]);
    // Only a database tells other replicas of changes.
    let of_ana = machine_at(if team.database.is_some() { &team.web } else { &web }, &ana, &["--private"]);
    of_ana.decide("The gate is painted red.");
    of_ana.sync();
    let (project, after) = now(&web, &ben);
    let place = (project.as_str(), after);
    // Another project of the server, which is shared with nobody, and one that doesn't exist.
    for (key, project) in [(&carl, place.0), (&ben, "0123456789abcdef"), (&ben, "web")] {
        let refused = wait(&web, key, (project, 0), "").recv_timeout(SOON).unwrap();
        assert_eq!(refused.status, 404, "{refused:?}");
    }
    let keyless = web.ask("GET", &format!("/sync/{project}/wait?device=0123456789abcdef"), &[], b"");
    assert_eq!((keyless.status, keyless.header(HEADER)), (401, Some("1")));
    let evil = [format!("Authorization: Bearer {ben}"), "Origin: https://evil.example".to_owned()];
    let evil: Vec<&str> = evil.iter().map(String::as_str).collect();
    let path = format!("/sync/{project}/wait?device=0123456789abcdef");
    assert_eq!(web.ask("GET", &path, &evil, b"").status, 403);

    // A private message of another, and what the machine sent itself.
    let both = ["", "&private=true"].map(|more| wait(&web, &ben, place, more));
    let mut server = of_ana.home.serve(&of_ana.repo.path);
    server.save("plan", "1", "Between us: the amberfinch sings at night.");
    drop(server);
    of_ana.sync();
    let own = page(&[decision(1, "ben", "The lamp is lit at dusk.")]);
    let path = format!("/sync/{project}/push?device=0123456789abcdef");
    let pushed = web.ask("POST", &path, &[&format!("Authorization: Bearer {ben}")], &own);
    assert!(pushed.body.contains("stored"), "{pushed:?}");
    std::thread::sleep(Duration::from_secs(3));
    assert!(both.iter().all(|answered| answered.try_recv().is_err()));
    of_ana.decide("The bridge is built of granite.");
    of_ana.sync();
    for answered in both {
        let told = answered.recv_timeout(SOON).unwrap();
        assert_eq!((told.status, &told.json()), (200, &json!({"changed": true})), "{told:?}");
    }

    // Who loses the right or the key while waiting learns nothing of what comes later.
    for (change, status) in [(&["team", "leave", "crew", "ben"][..], 404), (&["user", "revoke", "ben"], 401)]
    {
        let (_, after) = now(&web, &ben);
        let answered = wait(&web, &ben, (place.0, after), "");
        eventually(|| waiting(&web) == 1);
        std::thread::sleep(Duration::from_secs(1));
        assert!(answered.try_recv().is_err());
        team.json(change);
        of_ana.decide(&format!("The tunnel is dug by hand, {status} feet of it."));
        of_ana.sync();
        let told = answered.recv_timeout(SOON).unwrap();
        assert_eq!(told.status, status, "{told:?}");
        // The second time, there is no such user any more.
        team.run(&["team", "add", "crew", "ben"]);
    }
}

#[test]
fn machines_that_wait_hold_up_neither_calls_nor_the_end() {
    let team = Team::new();
    let mut web = replica(&team);
    let [ana, ben] = ["ana", "ben"].map(|name| team.user(name));
    let (project, after) = now(&web, &ana);
    let place = (project.as_str(), after);
    // Clients that go away leave nothing behind.
    let path = format!("/sync/{project}/wait?device=0123456789abcdef&after={after}");
    let head = web.head("GET", &path, &[&format!("Authorization: Bearer {ana}")]);
    let gone: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = web.connect();
            write!(stream, "{head}\r\n").unwrap();
            stream
        })
        .collect();
    eventually(|| waiting(&web) == 8);
    drop(gone);
    eventually(|| waiting(&web) == 0);

    let waits: Vec<Receiver<Answer>> = (0..32).map(|_| wait(&web, &ana, place, "")).collect();
    eventually(|| waiting(&web) == 32);
    let refused = wait(&web, &ana, place, "").recv_timeout(SOON).unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")), "{refused:?}");
    let other = wait(&web, &ben, place, "");
    eventually(|| waiting(&web) == 33);
    // Twice as many machines wait as a user may have calls open.
    for _ in 0..20 {
        let answered = web.ask("GET", "/sync", &[&format!("Authorization: Bearer {ana}")], b"");
        assert_eq!(answered.status, 200, "{answered:?}");
    }
    let took = web.end();
    assert!(took < Duration::from_secs(2), "{took:?}");
    for answered in waits.into_iter().chain([other]) {
        let told = answered.recv_timeout(SOON).unwrap();
        assert_eq!((told.status, &told.json()), (200, &json!({"changed": false})), "{told:?}");
    }
}

/// Starts an agent on a machine whose server gives these answers in turn, and returns what was asked within `time`.
fn asked_of(answers: Vec<Vec<u8>>, time: Duration) -> Vec<String> {
    let machine = Machine::new();
    let key = format!("tiro_{}_{}", "0".repeat(8), "1".repeat(64));
    let (address, asked) = fake_bytes(answers);
    assert!(machine.connect(&address, &key, &[]).is_ok);
    let mut server = machine.home.serve(&machine.repo.path);
    server.data("search_project_memory", json!({"query": "bridge"}));
    std::thread::sleep(time);
    assert!(machine.hits("granite").len() == 1);
    let line = |head: String| head.lines().next().unwrap_or_default().to_owned();
    asked.try_iter().map(line).collect()
}

/// Returns the greeting of a server that says this about waiting.
fn hello(waits: Option<bool>) -> Vec<u8> {
    let say = |greeting: &mut Value| {
        if let Some(waits) = waits {
            greeting["waits"] = json!(waits);
        }
    };
    greeting(say).into_bytes()
}

/// Returns the answers to a machine that connects and exchanges once.
fn first_exchange(waits: Option<bool>) -> Vec<Vec<u8>> {
    let pulled = paged(&page(&[decision(1, "ben", "The bridge is built of granite.")]), 100);
    vec![hello(waits), hello(waits), pulled]
}

#[test]
fn a_server_of_an_older_version_is_not_asked_to_let_anybody_wait() {
    let asked = asked_of(first_exchange(None), Duration::from_secs(12));
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked.iter().all(|line| !line.contains("/wait")), "{asked:?}");
}

/// A server that was replaced by an older version doesn't know the request.
#[test]
fn a_server_that_refuses_to_let_anybody_wait_is_not_asked_again_and_again() {
    refuses(&answer("404 Not Found", &format!("{HEADER}: 1\r\n"), ""));
}

#[test]
fn a_server_that_never_lets_anybody_wait_is_not_asked_again_and_again() {
    refuses(&answer("200 OK", &format!("{HEADER}: 1\r\n"), "{\"changed\": false}"));
}

fn refuses(answered: &str) {
    let mut answers = first_exchange(Some(true));
    answers.extend((0..20).map(|_| answered.as_bytes().to_vec()));
    let asked = asked_of(answers, Duration::from_secs(20));
    let waits = asked.iter().filter(|line| line.contains("/wait")).count();
    assert!((1..=3).contains(&waits), "{asked:?}");
}

#[test]
fn a_server_that_promises_what_is_not_there_gets_one_more_exchange() {
    let mut answers = first_exchange(Some(true));
    answers.push(answer("200 OK", &format!("{HEADER}: 1\r\n"), "{\"changed\": true}").into_bytes());
    answers.extend([hello(Some(true)), paged(&page(&[]), 100)]);
    answers.extend((0..9).map(|_| hello(Some(true))));
    let asked = asked_of(answers, Duration::from_secs(20));
    assert_eq!(asked.len(), 6, "{asked:?}");
}
