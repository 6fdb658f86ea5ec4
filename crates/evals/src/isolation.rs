//! `evals isolation`: whether any answer contains a text of another owner or another project.
//!
//! Two owners, each with their own data directory, work in the same two project directories. This makes four scopes; in
//! addition, each owner has one bystander, a scope that makes no random calls. Session names and message ids are the
//! same in all scopes. Every server gets calls of every tool and resource, with arguments made from the tools' schemas.
//! Half of these arguments are foreign: ids, sessions, cursors and resource URIs from another scope's server, and
//! questions in another scope's words.
//!
//! Every text stored in a scope contains a secret word of that scope. Only calls of the same scope contain the word, so
//! if an answer in another scope contains it, that is a leak and no echo of the question. Texts stored for all projects
//! of an owner contain a secret word of the owner instead. At the end the bystanders' memories must be complete, since
//! calls in other scopes must not forget them. Tools and arguments are read from `tools/list`, so a new tool is tested
//! without a change here.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::arguments::{self, Owner, Pool, Scope, Source};
use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::random::Random;
use crate::stats::Report;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Sequences of calls for each process
    #[arg(long, default_value_t = 2000)]
    sequences: usize,
    /// Processes; they take turns at the four scopes
    #[arg(long, default_value_t = 4)]
    processes: usize,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The maximum number of calls in a sequence.
const LONGEST: usize = 8;

/// How many memories each bystander stores.
const WITNESSES: usize = 20;

const OWNER_A: Owner = Owner { name: "owner-a", secret: "marblecompass" };
const OWNER_B: Owner = Owner { name: "owner-b", secret: "woollenbarometer" };

/// The active scopes, then the bystanders.
const SCOPES: [Scope; 6] = [
    Scope { owner: OWNER_A, project: "first", word: "amberfinch", secret: "velvetanchor" },
    Scope { owner: OWNER_A, project: "second", word: "cobaltheron", secret: "granitewhistle" },
    Scope { owner: OWNER_B, project: "first", word: "scarletibis", secret: "paperlighthouse" },
    Scope { owner: OWNER_B, project: "second", word: "jadewren", secret: "silentcarousel" },
    Scope { owner: OWNER_A, project: "bystander", word: "ochrelark", secret: "wovenharpoon" },
    Scope { owner: OWNER_B, project: "bystander", word: "violetgull", secret: "brassmeadow" },
];

/// How many of the scopes make random calls.
const ACTIVE: usize = 4;

/// The results of the processes.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<String, usize>,
    errors: usize,
    foreign_arguments: usize,
    own_texts: usize,
    leaks: Vec<Value>,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = |scope: &Scope| {
        let place =
            Place { data_dir: root.path().join(scope.owner.name), project: root.path().join(scope.project) };
        std::fs::create_dir_all(&place.data_dir)?;
        std::fs::create_dir_all(&place.project)?;
        anyhow::Ok(place)
    };
    let places = SCOPES.iter().map(place).collect::<Result<Vec<_>>>()?;
    // One of the two directories is a repository, so both owners read the project's id from the same file.
    if let Err(error) = calls::git(&places[0].project, &["init", "--quiet"]) {
        eprintln!("both projects are plain directories: {error:#}");
    }
    let pool = Mutex::new(Pool::default());
    let witnesses: Vec<Vec<String>> = (ACTIVE..SCOPES.len())
        .map(|scope| store_witnesses(tiro, &places[scope], scope, &pool))
        .collect::<Result<_>>()?;
    let seen = Mutex::new(Seen::default());
    thread::scope(|scope| {
        let (pool, seen, places) = (&pool, &seen, &places);
        let workers: Vec<_> = (0..args.processes.max(1))
            .map(|number| {
                scope.spawn(move || {
                    let mut process =
                        Process::start(number, args, tiro, &places[number % ACTIVE], pool, seen)?;
                    process.run(args.sequences).with_context(|| format!("in process {number}"))
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let mut missing = 0;
    for (scope, ids) in (ACTIVE..SCOPES.len()).zip(&witnesses) {
        missing += count_missing(tiro, &places[scope], scope, ids)?;
    }
    let seen = seen.into_inner().expect("no holder panics");
    if seen.own_texts == 0 || seen.foreign_arguments == 0 {
        bail!("no answer held a text of its own scope, or nothing foreign was asked for: nothing was tested");
    }
    let mut report = Report::default();
    report.must_be_zero("foreign texts seen", seen.leaks.len());
    report.must_be_zero("memories of bystanders changed", missing);
    report.add("calls", seen.calls.values().sum::<usize>() as f64, "");
    report.add("  of these with something foreign as argument", seen.foreign_arguments as f64, "");
    report.add("  of these answered with a text of the own scope", seen.own_texts as f64, "");
    report.add("  of these answered with an error", seen.errors as f64, "");
    for (name, count) in &seen.calls {
        report.add(format!("  {name}"), *count as f64, "");
    }
    report.detail = json!({
        "sequences": args.sequences, "processes": args.processes, "seed": args.seed, "leaks": seen.leaks,
    });
    Ok(report)
}

/// One server of a scope and its client.
struct Process<'a> {
    tiro: &'a Tiro,
    place: &'a Place,
    scope: usize,
    server: Server,
    era: Era,
    tools: Vec<Value>,
    random: Random,
    pool: &'a Mutex<Pool>,
    seen: &'a Mutex<Seen>,
}

impl<'a> Process<'a> {
    fn start(
        number: usize,
        args: &Args,
        tiro: &'a Tiro,
        place: &'a Place,
        pool: &'a Mutex<Pool>,
        seen: &'a Mutex<Seen>,
    ) -> Result<Process<'a>> {
        let era = if number.is_multiple_of(2) { Era::Session } else { Era::Stateless };
        let mut server = tiro.serve(place, era)?;
        let list = server.request("tools/list", json!({}))?;
        let tools = list["tools"].as_array().cloned().context("`tools/list` names no tools")?;
        let random = Random::new(args.seed ^ ((number as u64 + 1) << 32));
        Ok(Process { tiro, place, scope: number % ACTIVE, server, era, tools, random, pool, seen })
    }

    fn run(&mut self, sequences: usize) -> Result<()> {
        self.fill()?;
        for _ in 0..sequences {
            // The server is restarted from time to time, so that a cache can't hide what is on the disk.
            if self.random.chance(0.01) {
                self.server = self.tiro.serve(self.place, self.era)?;
            }
            for _ in 0..1 + self.random.below(LONGEST) {
                self.step()?;
            }
        }
        Ok(())
    }

    /// Stores the first texts, so that there is something that can leak.
    fn fill(&mut self) -> Result<()> {
        for session in 0..3 {
            let text = |part| json!({"id": format!("m{part}"), "role": "user", "text": self.own_text(part)});
            let messages: Vec<Value> = (0..10).map(text).collect();
            let arguments = json!({"session_id": format!("session-{session}"), "messages": messages});
            let answer = self.server.tool("save_messages", arguments)?;
            self.pool.lock().expect("no holder panics").harvest(self.scope, &answer.result);
        }
        Ok(())
    }

    fn own_text(&self, number: usize) -> String {
        let mut random = Random::new(number as u64);
        arguments::text_of(&SCOPES[self.scope], &mut random)
    }

    /// Makes one random call and searches the answer for leaks.
    fn step(&mut self) -> Result<()> {
        let mut source = {
            let pool = self.pool.lock().expect("no holder panics").sample(self.scope, &mut self.random);
            Source::new(&SCOPES, self.scope, pool)
        };
        let (name, method, params) = match self.random.below(10) {
            0 => {
                let methods = ["resources/list", "resources/templates/list", "tools/list"];
                let method = *self.random.pick(&methods);
                (method.to_string(), method, json!({}))
            }
            1 => {
                let uri = source.uri(&mut self.random);
                ("resources/read".to_string(), "resources/read", json!({ "uri": uri }))
            }
            _ => {
                let mut tool = self.random.pick(&self.tools);
                if tool["name"] == "forget_context" && self.random.chance(0.7) {
                    tool = self.random.pick(&self.tools);
                }
                let name = tool["name"].as_str().unwrap_or_default().to_string();
                let arguments = source.object(&tool["inputSchema"], &mut self.random);
                let params = json!({"name": name, "arguments": arguments});
                (name, "tools/call", params)
            }
        };
        let reply = self.server.exchange(method, params.clone())?;
        self.note(name, &params, &reply, source.foreign());
        self.pool.lock().expect("no holder panics").harvest(self.scope, &reply);
        Ok(())
    }

    fn note(&self, name: String, params: &Value, reply: &Value, foreign: usize) {
        let text = reply.to_string();
        let mut seen = self.seen.lock().expect("no holder panics");
        *seen.calls.entry(name).or_default() += 1;
        seen.errors += usize::from(reply.get("error").is_some() || reply["result"]["isError"] == true);
        seen.foreign_arguments += usize::from(foreign > 0);
        seen.own_texts += usize::from(text.contains(SCOPES[self.scope].secret));
        let own = &SCOPES[self.scope];
        let leaks = |other: &&Scope| {
            let of_scope = other.secret != own.secret && text.contains(other.secret);
            of_scope || (other.owner.name != own.owner.name && text.contains(other.owner.secret))
        };
        for other in SCOPES.iter().filter(leaks) {
            let [from, to] = [other, own].map(|scope| format!("{}/{}", scope.owner.name, scope.project));
            seen.leaks.push(json!({"from": from, "to": to, "params": params, "reply": reply}));
        }
    }
}

/// Stores the memories of a bystander and returns their ids, which go into the pool as well.
fn store_witnesses(tiro: &Tiro, place: &Place, scope: usize, pool: &Mutex<Pool>) -> Result<Vec<String>> {
    let mut server = tiro.serve(place, Era::Session)?;
    let mut ids = Vec::new();
    for number in 0..WITNESSES {
        let text = arguments::text_of(&SCOPES[scope], &mut Random::new(number as u64));
        let text = format!("{text} Number {number}.");
        let answer = server.tool("store_memory", json!({"text": text, "type": "fact"}))?;
        pool.lock().expect("no holder panics").harvest(scope, &answer.result);
        let id = answer.structured()["id"].as_str().context("`store_memory` gave no id")?;
        ids.push(id.to_string());
    }
    Ok(ids)
}

/// Returns how many memories of a bystander are missing or shortened.
fn count_missing(tiro: &Tiro, place: &Place, scope: usize, ids: &[String]) -> Result<usize> {
    let mut server = tiro.serve(place, Era::Session)?;
    let mut missing = 0;
    for id in ids {
        let answer = server.try_tool("expand_detail", json!({ "id": id }))?;
        missing +=
            usize::from(answer.is_error() || !answer.result.to_string().contains(SCOPES[scope].secret));
    }
    Ok(missing)
}
