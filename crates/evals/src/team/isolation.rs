//! Whether an answer over HTTP ever has a text that isn't for its reader.
//!
//! Three users work in a project that is shared with none of them, in one that they may only read, and two of them in one
//! to which both may write. Each has a word in all texts of a project, so a text that reaches somebody else, or another
//! project, is recognised. What the two share are notes; all other texts have another word. The users make random calls
//! of all tools, half of them with ids, sessions and cursors from answers to others. At the end, the owner exports all
//! projects. The owner must not see what users keep private either.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Sizes;
use super::ground::Ground;
use super::http::Caller;
use super::walls;
use crate::arguments::{self, Owner, Pool, Scope, Source};
use crate::calls::path_text;
use crate::client::Tiro;
use crate::random::Random;
use crate::stats::Report;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The project that is shared with all users, to be read.
const OTHER: &str = "elsewhere";

/// The project to which Ana and Ben may write, and which Chi may not know.
const COMMONS: &str = "commons";

/// What makes the projects.
const SHARES: [&[&str]; 8] = [
    &["team", "create", "all"],
    &["team", "add", "all", "ana"],
    &["team", "add", "all", "ben"],
    &["team", "add", "all", "chi"],
    &["team", "create", "pair"],
    &["team", "add", "pair", "ana"],
    &["team", "add", "pair", "ben"],
    &["share", COMMONS, "--with", "pair", "--write"],
];

const ANA: Owner = Owner { name: "ana", secret: "marblecompass" };
const BEN: Owner = Owner { name: "ben", secret: "woollenbarometer" };
const CHI: Owner = Owner { name: "chi", secret: "copperlantern" };

/// The users in their projects.
const SCOPES: [Scope; 8] = [
    Scope { owner: ANA, project: "project", word: "amberfinch", secret: "velvetanchor" },
    Scope { owner: ANA, project: OTHER, word: "cobaltheron", secret: "granitewhistle" },
    Scope { owner: BEN, project: "project", word: "scarletibis", secret: "paperlighthouse" },
    Scope { owner: BEN, project: OTHER, word: "jadewren", secret: "silentcarousel" },
    Scope { owner: CHI, project: "project", word: "ochrelark", secret: "wovenharpoon" },
    Scope { owner: CHI, project: OTHER, word: "violetgull", secret: "brassmeadow" },
    Scope { owner: ANA, project: COMMONS, word: "indigocrane", secret: "quietturbine" },
    Scope { owner: BEN, project: COMMONS, word: "umberthrush", secret: "hollowsextant" },
];

/// What was seen of the calls.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<String, usize>,
    failed: usize,
    foreign_arguments: usize,
    own_texts: usize,
    shared: usize,
    leaks: Vec<Value>,
}

/// Measures, and adds the figures. The leaks are returned.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<Vec<Value>> {
    let ground = Ground::new("isolation", url, tiro)?;
    let people = [ANA, BEN, CHI].map(|owner| owner.name.to_owned());
    let people = ground.callers(&people)?;
    for words in SHARES {
        ground.tiro.run(&ground.place, words, PATIENCE)?;
    }
    // This one has a directory, and is registered when it is first used.
    let other = ground.directory(OTHER)?;
    let begin = ["add", "A project begins.", "--project", path_text(&other)?];
    ground.tiro.run(&ground.place, &begin, PATIENCE)?;
    ground.tiro.run(&ground.place, &["share", OTHER, "--with", "all", "--read"], PATIENCE)?;
    let replicas = ground.replicas(2.min(sizes.replicas))?;
    let ports: Vec<u16> = replicas.iter().map(|replica| replica.port).collect();
    let callers: Vec<Caller> = SCOPES
        .iter()
        .map(|scope| {
            let caller = people.iter().find(|caller| caller.name == scope.owner.name);
            let path = match scope.project {
                "project" => "/mcp".into(),
                other => format!("/mcp/{other}"),
            };
            caller.map(|caller| Caller { path, ..caller.clone() }).context("every user has a key")
        })
        .collect::<Result<_>>()?;
    let (pool, seen) = (Mutex::new(Pool::default()), Mutex::new(Seen::default()));
    std::thread::scope(|threads| {
        let workers: Vec<_> = callers
            .iter()
            .enumerate()
            .map(|(scope, caller)| {
                let random = Random::new(sizes.seed ^ ((scope as u64 + 1) << 32));
                let (ports, pool, seen) = (&ports, &pool, &seen);
                let mut reader = Reader { scope, caller, ports, tools: Vec::new(), random, pool, seen };
                threads.spawn(move || reader.run(sizes.calls))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let stranger = Caller { path: format!("/mcp/{COMMONS}"), ..people[2].clone() };
    let answered = stranger.request(ports[0], "tools/list", json!({}), PATIENCE);
    let mut seen = seen.into_inner().expect("no holder panics");
    if seen.own_texts == 0 || seen.foreign_arguments == 0 {
        bail!("no answer held a text of its own scope, or nothing foreign was asked for: nothing was tested");
    }
    for project in [&ground.place.project, &other] {
        let exported =
            ground.tiro.run(&ground.place, &["export", "--project", path_text(project)?], PATIENCE)?;
        let shown =
            SCOPES.iter().filter(|scope| exported.contains(scope.secret) || exported.contains(&hush(scope)));
        seen.leaks.extend(shown.map(|scope| json!({"from": scope.secret, "to": "the owner's export"})));
    }
    report.must_be_zero("texts of others in answers", seen.leaks.len());
    report.must_be_zero(
        "answers to a user who may not know the project",
        usize::from(answered.result().is_some()),
    );
    report.must_be_zero("shared notes that the other member never saw", usize::from(seen.shared == 0));
    report.add("  calls", seen.calls.values().sum::<usize>() as f64, "");
    report.add("  with something foreign as argument", seen.foreign_arguments as f64, "");
    report.add("  answered with a text of the own scope", seen.own_texts as f64, "");
    report.add("  answered with a note that another member shared", seen.shared as f64, "");
    report.add("  answered with an error", seen.failed as f64, "");
    // What is shared may also be in cached answers of other members.
    let private = SCOPES.into_iter().filter(|scope| scope.project != COMMONS).collect::<Vec<_>>();
    walls::measure(&ground.database()?, &private, report)?;
    Ok(seen.leaks)
}

/// A user in a project, who makes random calls.
struct Reader<'a> {
    scope: usize,
    caller: &'a Caller,
    ports: &'a [u16],
    tools: Vec<Value>,
    random: Random,
    pool: &'a Mutex<Pool>,
    seen: &'a Mutex<Seen>,
}

impl Reader<'_> {
    fn run(&mut self, calls: usize) -> Result<()> {
        let listed = self.caller.request(self.ports[0], "tools/list", json!({}), PATIENCE);
        let tools = listed.result().and_then(|result| result["tools"].as_array());
        self.tools = tools.cloned().with_context(|| format!("`tools/list` names no tools: {listed:?}"))?;
        for session in 0..2 {
            let text = |part| {
                let text = self.own_text(part).replace(SCOPES[self.scope].secret, &self.private_word());
                json!({"id": format!("m{part}"), "role": "user", "text": text})
            };
            let messages: Vec<Value> = (0..5).map(text).collect();
            let arguments = json!({"session_id": format!("session-{session}"), "messages": messages});
            let saved = self.caller.insist(self.ports[0], "save_messages", &arguments, PATIENCE);
            let result = saved.result().with_context(|| format!("nothing was saved: {saved:?}"))?;
            self.pool.lock().expect("no holder panics").harvest(self.scope, result);
        }
        (0..calls).for_each(|_| self.step());
        Ok(())
    }

    /// Returns the word of the user's private texts: in the project to which others write, another one than that of notes.
    fn private_word(&self) -> String {
        let own = &SCOPES[self.scope];
        if own.project == COMMONS { hush(own) } else { own.secret.to_owned() }
    }

    fn own_text(&self, number: usize) -> String {
        arguments::text_of(&SCOPES[self.scope], &mut Random::new(number as u64))
    }

    /// Makes one random call, and searches the answer for texts of others.
    fn step(&mut self) {
        let sample = self.pool.lock().expect("no holder panics").sample(self.scope, &mut self.random);
        let mut source = Source::new(&SCOPES, self.scope, sample);
        let (name, method, params) = match self.random.below(10) {
            0 => {
                let uri = source.uri(&mut self.random);
                ("resources/read".to_owned(), "resources/read", json!({ "uri": uri }))
            }
            _ => {
                let mut tool = self.random.pick(&self.tools);
                if tool["name"] == "forget_context" && self.random.chance(0.8) {
                    tool = self.random.pick(&self.tools);
                }
                let name = tool["name"].as_str().unwrap_or_default().to_owned();
                let mut arguments = source.object(&tool["inputSchema"], &mut self.random);
                if name != "store_memory" {
                    let text = arguments.to_string().replace(SCOPES[self.scope].secret, &self.private_word());
                    arguments = serde_json::from_str(&text).expect("a word was replaced by another");
                }
                (name.clone(), "tools/call", json!({"name": name, "arguments": arguments}))
            }
        };
        let foreign = source.foreign();
        let port = *self.random.pick(self.ports);
        let outcome = self.caller.request(port, method, params.clone(), PATIENCE);
        let text = format!("{outcome:?}");
        let own = &SCOPES[self.scope];
        let is_shared = |other: &Scope| own.project == COMMONS && other.project == COMMONS;
        let is_leak = |other: &&Scope| {
            let is_other = other.secret != own.secret;
            let of_scope = is_other && !is_shared(other) && text.contains(other.secret);
            let is_private = is_other && text.contains(&hush(other));
            of_scope
                || is_private
                || (other.owner.name != own.owner.name && text.contains(other.owner.secret))
        };
        let mut seen = self.seen.lock().expect("no holder panics");
        for other in SCOPES.iter().filter(is_leak) {
            let [from, to] = [other, own].map(|scope| format!("{} in {}", scope.owner.name, scope.project));
            seen.leaks.push(json!({"from": from, "to": to, "params": params, "answer": text}));
        }
        *seen.calls.entry(name).or_default() += 1;
        seen.failed += usize::from(outcome.result().is_none());
        seen.foreign_arguments += usize::from(foreign > 0);
        seen.own_texts += usize::from(text.contains(own.secret) || text.contains(&self.private_word()));
        let shared =
            |other: &Scope| is_shared(other) && other.secret != own.secret && text.contains(other.secret);
        seen.shared += usize::from(SCOPES.iter().any(shared));
        drop(seen);
        if let Some(result) = outcome.result() {
            self.pool.lock().expect("no holder panics").harvest(self.scope, result);
        }
    }
}

/// Returns the word of private texts in the project to which several users write.
fn hush(scope: &Scope) -> String {
    scope.secret.chars().rev().collect()
}
