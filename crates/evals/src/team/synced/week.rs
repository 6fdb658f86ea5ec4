//! What a person does on one of two machines in a week without a network.
//!
//! Some sessions go on on both machines, but on one of them in a week: where a session is continued on both at the same
//! time, each machine has its own messages first, by design.
//!
//! The choices depend only on the seed. The texts are those of the corpus, and some messages decide or correct
//! something. Ids are read from the machine itself, because what came from elsewhere may have another id there.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Machine;
use crate::calls;
use crate::client::{Era, Server};
use crate::corpus::{Corpus, rfc3339};
use crate::random::Random;

/// How many things are done in a week.
const STEPS: usize = 60;

/// How many sessions go on on both machines, in turns.
const TOGETHER: usize = 4;

/// When the first week begins, in seconds since 1970.
const BEGINNING: i64 = 1_790_000_000;

/// The kinds of memories that are marked, forgotten and replaced.
const CHANGED: [&str; 5] = ["message", "decision", "fact", "finding", "preference"];

/// A person at one of the machines.
pub struct Worker<'w> {
    /// The machine.
    pub machine: &'w Machine,
    name: &'static str,
    corpus: &'w Corpus,
    random: Random,
    /// How many texts were made.
    count: usize,
    time: i64,
    week: usize,
    /// How often each thing was done.
    pub done: BTreeMap<&'static str, usize>,
}

impl<'w> Worker<'w> {
    /// Returns the worker called `name`, who stands for a machine with a repository.
    pub fn new(machine: &'w Machine, name: &'static str, corpus: &'w Corpus, seed: u64) -> Worker<'w> {
        let random = Random::new(seed ^ u64::from(name.as_bytes()[0]) << 32);
        Worker { machine, name, corpus, random, count: 0, time: BEGINNING, week: 0, done: BTreeMap::new() }
    }

    /// Works for a week.
    pub fn week(&mut self, week: usize) -> Result<()> {
        (self.week, self.time) = (week, BEGINNING + 7 * 86_400 * week as i64);
        let known = self.machine.memories()?;
        let known: Vec<Value> =
            known.into_iter().filter(|it| CHANGED.iter().any(|kind| it["kind"] == **kind)).collect();
        let mut server = self.machine.tiro.serve(&self.machine.place, Era::Session)?;
        let mut own: Vec<String> = Vec::new();
        for _ in 0..STEPS {
            self.time += 60 + self.random.below(3600) as i64;
            let id = match own.is_empty() || (self.random.chance(0.6) && !known.is_empty()) {
                false => Some(self.random.pick(&own).clone()),
                true if known.is_empty() => None,
                true => self.random.pick(&known)["id"].as_str().map(str::to_owned),
            };
            let what = self
                .step(&mut server, id, &mut own)
                .with_context(|| format!("on the machine {}", self.name))?;
            *self.done.entry(what).or_default() += 1;
        }
        server.close()?;
        Ok(())
    }

    /// Does one thing, perhaps to the memory `id`. Returns what it was.
    fn step(
        &mut self,
        server: &mut Server,
        id: Option<String>,
        own: &mut Vec<String>,
    ) -> Result<&'static str> {
        let draw = self.random.below(100);
        let Some(id) = id.filter(|_| draw >= 60) else {
            return match draw % 60 {
                0..40 => self.talk(server, own),
                40..54 => self.note(server, own, None),
                _ => self.commit(),
            };
        };
        match draw {
            60..72 => self.note(server, own, Some(id)),
            72..84 => {
                let mark = match self.random.below(3) {
                    0 => json!({"ids": [id], "important": false}),
                    1 => json!({"ids": [id], "importance": 0.7}),
                    _ => json!({"ids": [id]}),
                };
                // What was forgotten meanwhile isn't found.
                server.try_tool("mark_important", mark)?;
                Ok("marks")
            }
            84..92 => {
                server.try_tool("forget_context", json!({"ids": [id]}))?;
                Ok("forgotten")
            }
            92..95 => {
                server.try_tool("forget_context", json!({"undo": "last"}))?;
                Ok("undone")
            }
            _ => {
                server.try_tool("forget_context", json!({"ids": [id], "purge": true}))?;
                Ok("purged")
            }
        }
    }

    /// Saves some messages of a session: one that goes on on both machines, and on this one in this week, or one of this
    /// machine.
    fn talk(&mut self, server: &mut Server, own: &mut Vec<String>) -> Result<&'static str> {
        let number = self.random.below(2 * TOGETHER);
        let is_here = (number + self.week).is_multiple_of(2) == (self.name == "a");
        let (session, topic) = match number < TOGETHER && is_here {
            true => (format!("together-{number}"), number),
            false => (format!("{}-{number}", self.name), number),
        };
        let count = 2 + self.random.below(5);
        let messages: Vec<Value> = (0..count).map(|place| self.message(place, topic)).collect();
        let answer = server.tool("save_messages", json!({"session_id": session, "messages": messages}))?;
        let ids = answer.structured()["ids"].as_array().into_iter().flatten();
        own.extend(ids.filter_map(|id| id.as_str().map(str::to_owned)));
        Ok("messages saved")
    }

    fn message(&mut self, place: usize, topic: usize) -> Value {
        self.time += 30;
        let words = 5 + self.random.below(40);
        let mut text = self.text(topic, words);
        let role = if place.is_multiple_of(2) { "user" } else { "assistant" };
        if role == "user" && self.random.chance(0.2) {
            let (one, other) = (self.word(), self.word());
            text = match self.random.below(3) {
                0 => format!("We decided to use the {one} for the {other}. {text}"),
                1 => format!("No, don't use the {one}, use the {other} instead. {text}"),
                _ => format!("From now on, always run the {one} before the {other}. {text}"),
            };
        }
        json!({"id": format!("{}{}", self.name, self.count), "role": role, "text": text, "time": rfc3339(self.time)})
    }

    /// Stores a note, which may replace the memory `older`.
    fn note(
        &mut self,
        server: &mut Server,
        own: &mut Vec<String>,
        older: Option<String>,
    ) -> Result<&'static str> {
        let (topic, kind) = (self.random.below(TOGETHER), *self.random.pick(&CHANGED[1..]));
        let text = self.text(topic, 12);
        let mut note = json!({"text": text, "type": kind});
        if self.random.chance(0.3) {
            note["importance"] = json!(0.5);
        }
        let is_replacement = older.is_some();
        if let Some(older) = older {
            note["supersedes"] = json!([older]);
        }
        let answer = server.try_tool("store_memory", note)?;
        own.extend(answer.structured()["id"].as_str().map(str::to_owned));
        Ok(if is_replacement { "replaced" } else { "notes stored" })
    }

    /// Commits a change to the repository.
    fn commit(&mut self) -> Result<&'static str> {
        let (file, text) = (format!("{}-{}.txt", self.name, self.random.below(8)), self.text(0, 10));
        let repository = &self.machine.place.project;
        std::fs::write(repository.join(&file), &text).with_context(|| format!("writing `{file}`"))?;
        calls::git(repository, &["add", "--all"])?;
        calls::git(repository, &["commit", "--quiet", "--allow-empty", "-m", &text])?;
        Ok("commits")
    }

    /// Returns a text that no other text is equal to.
    fn text(&mut self, topic: usize, words: usize) -> String {
        self.count += 1;
        let index = 2 * self.count + usize::from(self.name == "b");
        self.corpus.text(index, topic, words)
    }

    fn word(&mut self) -> &'static str {
        self.corpus.word(&mut self.random)
    }
}
