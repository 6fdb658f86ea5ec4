//! `evals resend`: how many tokens a thread with an assistant saves while the files of a repository change, and whether
//! the assistant ever has a copy that differs from the file.
//!
//! Each turn is a commit of a real history: its version of a folder is written, then an assistant is asked about the
//! folder, over MCP. A mock receives the prompts. Everything is measured from what it received: the prompt is read as the
//! system prompt tells the assistant to read it, and each copy that results is compared, byte for byte, with the file in
//! the folder after its secrets were replaced. Appended is whatever the prompt has after what it has in common with the
//! prompt before. It is compared with a prompt in which the same files are sent whole in each turn.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::assistant::{Assistant, Message};
use crate::client::{Era, Place, Server, Tiro};
use crate::frames::{self, Known, Piece, Searchable};
use crate::stats::{Goal, Report, percentile, print_table};
use crate::texts::Texts;
use crate::trees::{Commit, Trees};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Repository to replay; may be bare
    #[arg(long)]
    repo: PathBuf,
    /// Folder of it that the assistant is asked about
    #[arg(long)]
    path: String,
    /// Turns: the last commits that changed the folder
    #[arg(long, default_value_t = 60)]
    turns: usize,
    /// Most tokens of files in the first prompt
    #[arg(long, default_value_t = 150_000)]
    inline: usize,
    /// Context window of the assistant, in tokens
    #[arg(long, default_value_t = 200_000)]
    window: usize,
    /// Print a row for each turn
    #[arg(long)]
    all: bool,
}

/// The turns at which the saved share is shown, besides the last.
const SHOWN: [usize; 5] = [1, 2, 5, 10, 20];

/// How many of the most expensive turns are shown.
const DEAREST: usize = 5;

/// A turn, as the assistant received it. Texts are numbers in [`Replay::texts`].
struct Turn {
    commit: Commit,
    /// The files of the folder.
    files: BTreeMap<String, usize>,
    /// The assistant's copies.
    copies: BTreeMap<String, usize>,
    /// The text of each inline file with its frame.
    framed: Vec<usize>,
    searchable: Searchable,
    faults: Vec<String>,
    prefix: usize,
    rest: usize,
    instructions: usize,
    /// What was said about files in this turn: the word, the path, and the text.
    said: Vec<(&'static str, String, usize)>,
    /// Whether the prompt begins with the one before.
    continues: bool,
    /// Whether the offered functions are those of the prompt before.
    same_functions: bool,
    receipt: Value,
}

/// Where a file is, for the assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Prompt,
    Search,
    Skipped,
    Nowhere,
}

#[derive(Default)]
struct Replay {
    texts: Texts,
    /// The files as they are, before secrets are replaced.
    sources: Texts,
    turns: Vec<Turn>,
    /// The prompt before, and its functions.
    before: (String, String),
    unreadable: usize,
}

/// Replays the history and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let place = Place::create(&root)?;
    let assistant = Assistant::start()?;
    let consulting = assistant.configure(tiro, &root, args.window, args.inline)?;
    let repository = std::path::absolute(&args.repo)?;
    let mut trees = Trees::new(&repository, &args.path, &place.project);
    let commits = trees.commits(args.turns)?;
    let mut server = consulting.serve(&place, Era::Session)?;
    let mut replay = Replay::default();
    for commit in commits {
        let paths = trees.write(&commit.id)?;
        replay
            .turn(&args.path, commit, &paths, &place, &assistant, &mut server)
            .with_context(|| format!("in turn {}", replay.turns.len() + 1))?;
    }
    server.close()?;
    let tokens = replay.texts.tokens(tiro, &place, &root)?;
    let redacted = replay.sources.redacted(tiro, &place, &root)?;
    Ok(report(args, &replay, &tokens, &redacted))
}

impl Replay {
    fn turn(
        &mut self,
        folder: &str,
        commit: Commit,
        paths: &[String],
        place: &Place,
        assistant: &Assistant,
        server: &mut Server,
    ) -> Result<()> {
        let instructions = format!("Review this change, and say what it could break: {}", commit.subject);
        let (answer, asked) = assistant.consult(server, "replay", folder, &instructions)?;
        let (messages, functions) = (asked.messages()?, asked.functions()?);
        let prompt = rendered(&messages);
        let common = common_prefix(&self.before.0, &prompt);
        let continues = !self.turns.is_empty() && common == self.before.0.len();
        let known = frames::read(&messages);
        let mut files = BTreeMap::new();
        for path in paths {
            match String::from_utf8(std::fs::read(place.project.join(path))?) {
                Ok(text) => drop(files.insert(path.clone(), self.sources.add(&text))),
                Err(_) => self.unreadable += 1,
            }
        }
        let latest = if continues { &messages[messages.len() - 1..] } else { &messages[..] };
        let said = self.said(latest);
        let Known { copies, searchable, faults } = known;
        let framed = copies.iter().map(|(path, text)| self.texts.add(&framed(path, text))).collect();
        let copies = copies.into_iter().map(|(path, text)| (path, self.texts.add(&text))).collect();
        self.turns.push(Turn {
            commit,
            files,
            copies,
            framed,
            searchable,
            faults,
            prefix: self.texts.add(&prompt[..common]),
            rest: self.texts.add(&prompt[common..]),
            instructions: self.texts.add(&instructions),
            said,
            continues,
            same_functions: functions == self.before.1,
            receipt: answer.structured()["receipt"].clone(),
        });
        self.before = (prompt, functions);
        Ok(())
    }

    fn said(&mut self, messages: &[Message]) -> Vec<(&'static str, String, usize)> {
        let mut said = Vec::new();
        for message in messages.iter().filter(|message| message.role == "user") {
            for piece in frames::pieces(&message.text) {
                match piece {
                    Piece::File { path, text } => said.push(("file", path.to_owned(), self.texts.add(text))),
                    Piece::Change { path, diff } => {
                        said.push(("diff", path.to_owned(), self.texts.add(diff)));
                    }
                    Piece::Removal { path } => said.push(("removed", path.to_owned(), self.texts.add(""))),
                    Piece::Line(line) => said.push(("note", String::new(), self.texts.add(line))),
                    Piece::Broken(_) => {}
                }
            }
        }
        said
    }
}

/// Returns the messages of a prompt as one text.
fn rendered(messages: &[Message]) -> String {
    messages.iter().map(|message| format!("<{}>\n{}\n", message.role, message.text)).collect()
}

/// Returns how many bytes at the beginning of both texts are the same; both can be split there.
fn common_prefix(before: &str, now: &str) -> usize {
    let same = before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same).rev().find(|at| now.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns a file as a prompt shows it.
fn framed(path: &str, text: &str) -> String {
    format!("[file {path} | 0123456789abcdef]\n{text}[/file | 0123456789abcdef]\n")
}

impl Turn {
    fn spot(&self, path: &str) -> Spot {
        let is_skipped = || {
            let skipped = self.receipt["skipped"].as_array().into_iter().flatten();
            skipped.filter_map(|each| each["path"].as_str()).any(|said| said.contains(path))
        };
        if self.copies.contains_key(path) {
            Spot::Prompt
        } else if self.searchable.covers(path) {
            Spot::Search
        } else if is_skipped() {
            Spot::Skipped
        } else {
            Spot::Nowhere
        }
    }

    /// Returns the copies that differ from the redacted files, and what could not be read of the prompt.
    fn stale(&self, redacted: &[String], texts: &[&str]) -> Vec<String> {
        let mut stale = self.faults.clone();
        for (path, copy) in &self.copies {
            match self.files.get(path) {
                None => stale.push(format!("the assistant has a copy of `{path}`, which is not there")),
                Some(file) => {
                    if frames::without_digits(texts[*copy]) != frames::without_digits(&redacted[*file]) {
                        stale.push(format!("the copy of `{path}` is not the file"));
                    }
                }
            }
        }
        stale
    }

    /// Returns the files whose spot is not that of the turn `before`, or unknown, although the receipt does not say so.
    fn silent(&self, before: Option<&Turn>) -> Vec<String> {
        let listed = &self.receipt["moved"]["paths"];
        let count = self.receipt["moved"]["count"].as_u64().unwrap_or(0) as usize;
        let paths = listed.as_array().map_or(&[][..], Vec::as_slice);
        let is_cut = count > paths.len();
        let mut silent = Vec::new();
        for path in self.files.keys() {
            let now = self.spot(path);
            if now == Spot::Nowhere {
                silent.push(format!("`{path}` is not in the prompt and cannot be searched"));
            }
            if now == Spot::Prompt && self.searchable.names(path) {
                silent.push(format!("`{path}` is in the prompt and said to be left out"));
            }
            let Some(before) = before.filter(|before| before.files.contains_key(path)) else { continue };
            let then = before.spot(path);
            if then != now && !is_cut && !paths.iter().any(|moved| moved == path) {
                silent.push(format!("`{path}` went from {then:?} to {now:?}"));
            }
        }
        silent
    }
}

/// The sums over the turns so far.
#[derive(Clone, Copy, Default)]
struct Sums {
    appended: usize,
    whole: usize,
}

fn report(args: &Args, replay: &Replay, tokens: &[usize], redacted: &[String]) -> Report {
    let texts = replay.texts.all();
    let mut report = Report::default();
    let (mut sums, mut rows) = (Sums::default(), vec![header()]);
    let (mut stale, mut silent) = (Vec::new(), Vec::new());
    let (mut occupied, mut shares, mut epochs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut prefix_sum, mut all_sum) = (0, 0);
    let mut saved: BTreeMap<usize, f64> = BTreeMap::new();
    for (at, turn) in replay.turns.iter().enumerate() {
        let (prefix, rest) = (tokens[turn.prefix], tokens[turn.rest]);
        let whole = turn.framed.iter().map(|text| tokens[*text]).sum::<usize>() + tokens[turn.instructions];
        sums = Sums { appended: sums.appended + rest, whole: sums.whole + whole };
        let share = 100.0 * (1.0 - sums.appended as f64 / sums.whole as f64);
        let alone = 100.0 * (1.0 - rest as f64 / whole as f64);
        occupied.push((prefix + rest) as f64);
        saved.insert(at + 1, share);
        if turn.continues {
            shares.push(100.0 * prefix as f64 / (prefix + rest) as f64);
            (prefix_sum, all_sum) = (prefix_sum + prefix, all_sum + prefix + rest);
        } else if at > 0 {
            let why = turn.receipt["new_epoch"].as_str();
            epochs.push((at + 1, why.map(str::to_owned)));
        }
        stale.extend(turn.stale(redacted, &texts).into_iter().map(|what| format!("turn {}: {what}", at + 1)));
        let before = at.checked_sub(1).map(|before| &replay.turns[before]);
        silent.extend(turn.silent(before).into_iter().map(|what| format!("turn {}: {what}", at + 1)));
        if args.all || SHOWN.contains(&(at + 1)) || at + 1 == replay.turns.len() {
            rows.push(row(at + 1, turn, rest, whole, alone, share, prefix + rest));
        }
    }
    print_table(&rows);
    print_dearest(replay, tokens);
    for (turn, why) in &epochs {
        println!("turn {turn}: {}", why.as_deref().unwrap_or("everything was sent again without a reason"));
    }
    for what in stale.iter().chain(&silent).take(20) {
        println!("{what}");
    }
    println!();
    let end = replay.turns.len();
    report.add("turns", end as f64, "");
    report.add("files, last turn", replay.turns[end - 1].files.len() as f64, "");
    report.add("  of them in the prompt", replay.turns[end - 1].copies.len() as f64, "");
    let at = |turn: usize| saved.get(&turn).copied().unwrap_or(f64::NAN);
    report.aim("tokens saved until turn 10", at(10), "%", Goal::AtLeast(75.0));
    report.aim("tokens saved until the end", at(end), "%", Goal::AtLeast(90.0));
    report.add("prompt in turn 1", occupied[0], "tokens");
    report.add("prompt in the last turn", occupied[end - 1], "tokens");
    let largest = percentile(&occupied, 1.0);
    report.add("prompt, largest", largest, "tokens");
    report.aim("  against turn 1", largest / occupied[0], "x", Goal::AtMost(2.0));
    let identical = 100.0 * prefix_sum as f64 / all_sum.max(1) as f64;
    report.aim("same as the prompt before, without new epochs", identical, "%", Goal::AtLeast(95.0));
    report.add("  the lowest share of a prompt", percentile(&shares, 0.0), "%");
    let input: f64 = occupied.iter().sum();
    let repeated: usize = replay.turns.iter().map(|turn| tokens[turn.prefix]).sum();
    report.add("tokens of all prompts", input, "");
    report.add("  the same as in the prompt before", repeated as f64, "");
    report.add("  others", input - repeated as f64, "");
    report.add("new epochs after the first", epochs.len() as f64, "");
    let other = replay.turns.iter().skip(1).filter(|turn| !turn.same_functions).count();
    report.add("prompts with other functions than the one before", other as f64, "");
    report.add("files that are not UTF-8, not compared", replay.unreadable as f64, "");
    report.must_be_zero("stale reads", stale.len());
    report.must_be_zero("silent moves", silent.len());
    report
        .must_be_zero("new epochs without a reason", epochs.iter().filter(|(_, why)| why.is_none()).count());
    report.detail = json!({
        "path": args.path, "inline": args.inline, "window": args.window, "saved": saved, "prompts": occupied,
        "epochs": epochs, "stale": stale, "silent": silent, "first": replay.turns[0].commit.id,
        "last": replay.turns[end - 1].commit.id,
    });
    report
}

fn header() -> Vec<String> {
    let names = ["turn", "appended", "whole", "saved, turn", "saved so far", "prompt", "what"];
    names.map(String::from).to_vec()
}

fn row(
    number: usize,
    turn: &Turn,
    rest: usize,
    whole: usize,
    alone: f64,
    share: f64,
    all: usize,
) -> Vec<String> {
    let count = |word: &str| turn.said.iter().filter(|(said, ..)| *said == word).count();
    let what = format!("{} files, {} diffs, {} removed", count("file"), count("diff"), count("removed"));
    vec![
        number.to_string(),
        rest.to_string(),
        whole.to_string(),
        format!("{alone:.1}%"),
        format!("{share:.1}%"),
        all.to_string(),
        what,
    ]
}

/// Prints the turns after the first that appended the most, with what was said about files.
fn print_dearest(replay: &Replay, tokens: &[usize]) {
    let mut turns: Vec<usize> = (1..replay.turns.len()).collect();
    turns.sort_by_key(|at| std::cmp::Reverse(tokens[replay.turns[*at].rest]));
    for at in turns.into_iter().take(DEAREST) {
        let turn = &replay.turns[at];
        println!(
            "turn {} ({} {}): {} tokens appended",
            at + 1,
            &turn.commit.id[..8],
            turn.commit.subject,
            tokens[turn.rest]
        );
        let mut said: Vec<_> = turn.said.iter().filter(|(word, ..)| *word != "note").collect();
        said.sort_by_key(|(_, _, text)| std::cmp::Reverse(tokens[*text]));
        for (word, path, text) in said.iter().take(DEAREST) {
            println!("    {word} {path}: {}", tokens[*text]);
        }
        if said.len() > DEAREST {
            println!("    {} more", said.len() - DEAREST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(files: &[&str], copies: &[&str], note: &str, receipt: Value) -> Turn {
        let note = Message { role: "user".into(), text: note.into() };
        let numbered = |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), 0)).collect();
        Turn {
            commit: Commit { id: "0123456789".into(), subject: String::new() },
            files: numbered(files),
            copies: numbered(copies),
            framed: Vec::new(),
            searchable: frames::read(&[note]).searchable,
            faults: Vec::new(),
            prefix: 0,
            rest: 0,
            instructions: 0,
            said: Vec::new(),
            continues: true,
            same_functions: true,
            receipt,
        }
    }

    const NOTE: &str = "[not shown because they don't fit; search them:\n b.rs (9 tokens)]\n";

    #[test]
    fn a_move_is_silent_unless_the_receipt_names_it() {
        let before = turn(&["a.rs", "b.rs"], &["a.rs", "b.rs"], "", json!({}));
        let unsaid = turn(&["a.rs", "b.rs"], &["a.rs"], NOTE, json!({}));
        assert_eq!(unsaid.silent(Some(&before)).len(), 1);
        let said = json!({"moved": {"count": 1, "paths": ["b.rs"]}});
        assert_eq!(
            turn(&["a.rs", "b.rs"], &["a.rs"], NOTE, said).silent(Some(&before)),
            Vec::<String>::new()
        );
        let lost = turn(&["a.rs", "c.rs"], &["a.rs"], NOTE, json!({}));
        assert_eq!(lost.silent(Some(&before)).len(), 1);
        let skipped = json!({"skipped": [{"path": "c.rs", "why": "it is binary"}]});
        assert_eq!(turn(&["a.rs", "c.rs"], &["a.rs"], NOTE, skipped).silent(None), Vec::<String>::new());
    }

    #[test]
    fn a_copy_is_stale_if_it_differs_from_the_redacted_file() {
        let one = turn(&["a.rs"], &["a.rs"], "", json!({}));
        assert_eq!(one.stale(&["[REDACTED:aws:000]".into()], &["[REDACTED:aws:1f3]"]), Vec::<String>::new());
        assert_eq!(one.stale(&["a\n".into()], &["a"]).len(), 1);
        assert_eq!(turn(&[], &["a.rs"], "", json!({})).stale(&[], &["a"]).len(), 1);
    }

    #[test]
    fn the_common_prefix_ends_between_characters() {
        assert_eq!(common_prefix("aé", "aè"), 1);
        assert_eq!(common_prefix("ab", "abc"), 2);
        assert_eq!(common_prefix("", "abc"), 0);
    }
}
