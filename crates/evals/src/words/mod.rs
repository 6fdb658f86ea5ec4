//! `evals words`: whether search finds identifiers in their exact form, and memories in languages other than English.
//!
//! All memories are in one project: thousands of English commits, and sentences in commits, conversations and notes.
//! For each identifier of `identifiers.txt`, one sentence has the identifier, and several have forms that compete with
//! it: its parts as plain words, another convention, a longer or a shorter identifier. The sentences are otherwise
//! alike. `languages.tsv` has memories in six languages, each with a question whose words are inflected differently.
//!
//! With `--repo`, the commits are those of a repository, and identifiers that are in a few of its commits are looked for
//! instead. A hit is right if the memory, or the message or the patch of the commit, contains the identifier exactly.
//!
//! All questions are asked without the embedding model. If there is a model, they are asked again with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::calls::{self, LONG};
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::{self, Corpus};
use crate::random::Random;
use crate::stats::{Goal, Report, print_table};
use crate::suite::Message;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Repository whose history supplies the commits and more identifiers; may be bare
    #[arg(long)]
    repo: Option<PathBuf>,
    /// English commits, if there is no repository
    #[arg(long, default_value_t = 3000)]
    commits: usize,
    /// Identifiers of the repository to look for
    #[arg(long, default_value_t = 200)]
    identifiers: usize,
    /// Ask only without the embedding model
    #[arg(long)]
    lexical_only: bool,
    /// Print each question whose memory is not the first hit
    #[arg(long)]
    misses: bool,
}

/// How many sentences each form of an identifier is in.
const COPIES: usize = 3;

/// The sentences into which forms are put. `{}` is the form, `%` a random word.
const SENTENCES: [&str; 6] = [
    "we moved {} out of the % % because the % was slow",
    "the % broke after {} changed, so the % reads {} again",
    "fix {} in the % %",
    "{} is now part of the % and the % no longer needs a %",
    "decided to keep {} for the % until the % is replaced",
    "add a test of {} to the % %",
];

/// How the identifiers are asked for.
const QUESTIONS: [&str; 4] = ["{}", "where is {} used?", "what did we decide about {}", "why did {} change?"];

/// Where a memory is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Home {
    Commit,
    Message,
    Note,
}

/// A memory of the corpus.
struct Memory {
    home: Home,
    text: String,
}

/// A question and the memories that answer it, by their numbers or by the ids of commits.
struct Question {
    /// The row of the table.
    row: &'static str,
    text: String,
    right: HashSet<Key>,
}

/// What identifies a memory in the hits: the id or the id in its source.
type Key = String;

/// The ranks of the right memories of a row's questions; `None` if no right memory is among the hits.
type Ranks = BTreeMap<&'static str, Vec<Option<usize>>>;

/// Stores the corpus, asks the questions and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let (memories, asked) = corpus();
    let history = match &args.repo {
        Some(repo) => repository_history(repo, &place)?,
        None => {
            calls::git(&place.project, &["init", "--quiet", "--initial-branch=words"])?;
            generated_history(args.commits)
        }
    };
    let commits = commit(&place.project, &history, &memories)?;
    let lexical = tiro.without_model(root.path())?;
    lexical.run(&place, &["import", "git", "--project", calls::path_text(&place.project)?], LONG)?;
    let mut server = lexical.serve(&place, Era::Session)?;
    let keys = store(&mut server, &memories, &commits)?;
    let is_asked = |row: &str| args.repo.is_none() || !row.starts_with("identifier");
    let mut questions: Vec<Question> = asked
        .into_iter()
        .filter(|(row, ..)| is_asked(row))
        .map(|(row, text, memory)| Question { row, text, right: HashSet::from([keys[memory].clone()]) })
        .collect();
    if args.repo.is_some() {
        questions.extend(identifiers_of(&place.project, args.identifiers, &memories, &keys)?);
    }

    let mut report = Report::default();
    let ranks = ask(&mut server, &questions, args.misses)?;
    add(&mut report, "words only", &ranks);
    drop(server);
    if tiro.model_dir.is_some() && !args.lexical_only {
        calls::index(tiro, &place)?;
        let mut server = tiro.serve(&place, Era::Session)?;
        let ranks = ask(&mut server, &questions, args.misses)?;
        add(&mut report, "with the model", &ranks);
    }
    report.add("memories", memories.len() as f64, "");
    report.add("commits", (history.len() + commits.len()) as f64, "");
    Ok(report)
}

/// Asks all questions and prints the table. Returns the ranks of the right memories.
fn ask(server: &mut Server, questions: &[Question], misses: bool) -> Result<Ranks> {
    let mut ranks = Ranks::new();
    for question in questions {
        let answer = calls::search(server, &question.text, 10)?;
        let is_right = |hit: &serde_json::Value| {
            ["id", "source_id"]
                .iter()
                .any(|field| hit[field].as_str().is_some_and(|id| question.right.contains(id)))
        };
        let rank = answer.hits().iter().position(is_right);
        if misses && rank != Some(0) {
            let first = answer.hits().first().and_then(|hit| hit["text"].as_str()).unwrap_or_default();
            let first: String = first.chars().take(80).collect();
            eprintln!("{:?} {}: {} -> {first}", rank.map(|rank| rank + 1), question.row, question.text);
        }
        ranks.entry(question.row).or_default().push(rank);
    }
    let mut rows = vec![["row", "n", "first", "first 3", "first 5", "first 10"].map(String::from).to_vec()];
    for (row, ranks) in &ranks {
        let shares = [1, 3, 5, 10].map(|k| format!("{:.1}", share(ranks, k)));
        rows.push([vec![(*row).to_owned(), ranks.len().to_string()], shares.to_vec()].concat());
    }
    print_table(&rows);
    println!();
    Ok(ranks)
}

/// Adds the figures that have goals.
fn add(report: &mut Report, how: &str, ranks: &Ranks) {
    let is_lexical = how == "words only";
    let mut others: Vec<Option<usize>> = Vec::new();
    for (row, ranks) in ranks {
        if row.starts_with("identifier") {
            report.aim(format!("{row}, {how}: first"), share(ranks, 1), "%", Goal::AtLeast(90.0));
            report.aim(format!("{row}, {how}: in the first 3"), share(ranks, 3), "%", Goal::AtLeast(98.0));
        } else {
            others.extend(ranks);
        }
    }
    let name = format!("six languages, {how}: in the first 5");
    match is_lexical {
        true => report.aim(name, share(&others, 5), "%", Goal::AtLeast(80.0)),
        false => report.add(name, share(&others, 5), "%"),
    }
}

/// Returns the share of ranks among the first `k`, in per cent.
fn share(ranks: &[Option<usize>], k: usize) -> f64 {
    let within = ranks.iter().filter(|rank| rank.is_some_and(|rank| rank < k)).count();
    100.0 * within as f64 / ranks.len().max(1) as f64
}

/// Returns the memories, and the questions about them: each has its row, its text and the number of its memory.
fn corpus() -> (Vec<Memory>, Vec<(&'static str, String, usize)>) {
    let mut random = Random::new(20_260_401);
    let words = Corpus::new(3);
    let mut memories: Vec<Memory> = Vec::new();
    let mut questions = Vec::new();
    let homes = [Home::Commit, Home::Message, Home::Note];
    let lines = include_str!("identifiers.txt").lines().filter(|line| !line.starts_with("# "));
    for (number, line) in lines.filter(|line| line.contains('\t')).enumerate() {
        let forms: Vec<&str> = line.split('\t').collect();
        for (place, form) in forms.iter().enumerate() {
            for copy in 0..if place == 0 { 1 } else { COPIES } {
                let sentence = SENTENCES[(number + place + copy) % SENTENCES.len()].replace("{}", form);
                let text = filled(&sentence, &mut random, &words);
                memories.push(Memory { home: homes[(number + place + copy) % homes.len()], text });
            }
            if place == 0 {
                let other = QUESTIONS[1 + number % (QUESTIONS.len() - 1)].replace("{}", form);
                questions.push(("identifier alone", (*form).to_owned(), memories.len() - 1));
                questions.push(("identifier in a question", other, memories.len() - 1));
            }
        }
    }
    for (number, line) in include_str!("languages.tsv").lines().enumerate() {
        let [language, memory, question] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        memories.push(Memory { home: homes[number % homes.len()], text: memory.to_owned() });
        questions.push((language, question.to_owned(), memories.len() - 1));
    }
    // Neighbours in a conversation are random: otherwise the forms of one identifier would stand together.
    let mut order: Vec<usize> = (0..memories.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut place_of = vec![0; order.len()];
    for (place, memory) in order.iter().enumerate() {
        place_of[*memory] = place;
    }
    let mut shuffled: Vec<Option<Memory>> = memories.into_iter().map(Some).collect();
    let memories = order.iter().filter_map(|memory| shuffled[*memory].take()).collect();
    for (_, _, memory) in &mut questions {
        *memory = place_of[*memory];
    }
    (memories, questions)
}

/// Replaces each `%` of `sentence` by a random word.
fn filled(sentence: &str, random: &mut Random, corpus: &Corpus) -> String {
    let mut text = String::new();
    for part in sentence.split_inclusive('%') {
        text.push_str(part.trim_end_matches('%'));
        if part.ends_with('%') {
            text.push_str(corpus.word(random));
        }
    }
    text
}

/// Returns the messages of `count` English commits.
fn generated_history(count: usize) -> Vec<String> {
    let corpus = Corpus::new(5);
    let of = |index: usize| {
        let text = corpus.text(index, index / 20, 10);
        let subject: Vec<&str> = text.split(' ').take(8).collect();
        format!(
            "{}\n\n{}",
            subject.join(" ").trim_end_matches(['.', ',']),
            corpus.text(index + count, index / 20, 40)
        )
    };
    (0..count).map(of).collect()
}

/// Clones `repo` as the project. No commits have to be made then.
fn repository_history(repo: &Path, place: &Place) -> Result<Vec<String>> {
    calls::clone_repository(repo, &place.project, None)?;
    Ok(Vec::new())
}

/// Adds `history` and the memories that are commits to the repository. Returns the ids of the commits of the
/// memories, by their numbers.
fn commit(repository: &Path, history: &[String], memories: &[Memory]) -> Result<HashMap<usize, String>> {
    let head = calls::git(repository, &["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
    let mut stream = String::new();
    let mut mark = 0;
    let mut add = |message: &str| {
        mark += 1;
        let time = 1_700_000_000 + 600 * mark;
        let _ = write!(
            stream,
            "commit refs/heads/words\nmark :{mark}\ncommitter Ada <ada@example.org> {time} +0000\ndata {}\n{message}\n",
            message.len()
        );
        if let (1, Some(head)) = (mark, &head) {
            let _ = writeln!(stream, "from {head}");
        }
        let file = format!("change {mark}");
        let _ = write!(stream, "M 100644 inline notes/n{}.txt\ndata {}\n{file}\n\n", mark % 50, file.len());
        mark
    };
    for message in history {
        add(message);
    }
    let own = memories.iter().enumerate().filter(|(_, memory)| memory.home == Home::Commit);
    let marks: Vec<(usize, usize)> = own.map(|(number, memory)| (number, add(&memory.text))).collect();
    let exported = repository.with_file_name("marks");
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(["fast-import", "--quiet"]);
    command.arg(format!("--export-marks={}", exported.display())).stdin(Stdio::piped());
    let mut child = command.spawn().context("starting `git fast-import`")?;
    std::io::Write::write_all(&mut child.stdin.take().context("no input")?, stream.as_bytes())?;
    if !child.wait()?.success() {
        bail!("`git fast-import` failed");
    }
    calls::git(repository, &["checkout", "--quiet", "--force", "words"])?;
    let text = std::fs::read_to_string(&exported).context("reading the marks")?;
    let shas: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    marks
        .into_iter()
        .map(|(number, mark)| {
            let sha = shas.get(format!(":{mark}").as_str()).context("a commit has no id")?;
            Ok((number, (*sha).to_owned()))
        })
        .collect()
}

/// Stores the memories that are no commits. Returns what identifies each memory in hits.
fn store(server: &mut Server, memories: &[Memory], commits: &HashMap<usize, String>) -> Result<Vec<Key>> {
    let mut keys = vec![String::new(); memories.len()];
    let mut messages: Vec<Message> = Vec::new();
    for (number, memory) in memories.iter().enumerate() {
        match memory.home {
            Home::Commit => keys[number] = commits[&number].clone(),
            Home::Message => {
                keys[number] = format!("message-{number:05}");
                let session = messages.len() / 20;
                let is_user = messages.len().is_multiple_of(2);
                messages.push(Message {
                    project: String::new(),
                    session: format!("session-{session:03}"),
                    id: keys[number].clone(),
                    speaker: None,
                    role: if is_user { "user" } else { "assistant" }.into(),
                    time: Some(corpus::rfc3339(1_704_067_200 + 40 * messages.len() as i64)),
                    text: memory.text.clone(),
                });
            }
            Home::Note => {
                let arguments = json!({"text": memory.text, "type": "research"});
                let answer = server.tool("store_memory", arguments)?;
                keys[number] =
                    answer.structured()["id"].as_str().context("a stored memory has no id")?.to_owned();
            }
        }
    }
    calls::save_messages(server, &messages)?;
    Ok(keys)
}

/// Returns questions for up to `most` identifiers that are in the messages of at most three commits of the
/// repository. `memories` are the other memories, and `keys` identify them.
fn identifiers_of(
    repository: &Path,
    most: usize,
    memories: &[Memory],
    keys: &[Key],
) -> Result<Vec<Question>> {
    const END: &str = "\u{1}";
    let log = |rest: &[&str]| calls::git(repository, &[&["log", "--format=%x01%H%n%B"], rest].concat());
    let messages = log(&["-n", "20000"])?;
    let mut commits_of: BTreeMap<&str, usize> = BTreeMap::new();
    for commit in messages.split(END) {
        let (_, message) = commit.split_once('\n').unwrap_or_default();
        let found: HashSet<&str> = tokens(message).filter(|token| is_identifier(token)).collect();
        for token in found {
            *commits_of.entry(token).or_default() += 1;
        }
    }
    let mut rare: Vec<&str> =
        commits_of.into_iter().filter(|(_, commits)| *commits <= 3).map(|(token, _)| token).collect();
    let mut random = Random::new(11);
    while rare.len() > most {
        rare.swap_remove(random.below(rare.len()));
    }
    let patches = log(&["-p", "-n", "20000", "--no-color"])?;
    let mut right: HashMap<&str, HashSet<Key>> = HashMap::new();
    let wanted: HashSet<&str> = rare.iter().copied().collect();
    for commit in patches.split(END) {
        let (sha, rest) = commit.split_once('\n').unwrap_or_default();
        for token in tokens(rest).filter(|token| wanted.contains(token)) {
            right.entry(token).or_default().insert(sha.to_owned());
        }
    }
    for (memory, key) in memories.iter().zip(keys) {
        for token in tokens(&memory.text) {
            if let Some(token) = wanted.get(token) {
                right.entry(token).or_default().insert(key.clone());
            }
        }
    }
    let question = |token: &str| {
        let right = right.remove(token).unwrap_or_default();
        Question { row: "identifier of the repository", text: token.to_owned(), right }
    };
    Ok(rare.into_iter().map(question).collect())
}

/// Returns the runs of characters that may belong to an identifier, without the punctuation of sentences at their ends.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-.:/#@+$".contains(c)))
        .map(|token| token.trim_end_matches(['.', ':', '-', '/', '+']))
        .map(|token| token.trim_start_matches(['+', ':', '/']))
        .filter(|token| !token.is_empty())
}

/// Returns whether a token has the shape of an identifier.
fn is_identifier(token: &str) -> bool {
    let bytes = token.as_bytes();
    let is_joined =
        token.trim_matches(|c: char| !c.is_alphanumeric()).contains(|c: char| !c.is_alphanumeric());
    let is_camel = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let is_marked = token.starts_with(['_', '#', '.', '-']);
    (4..=48).contains(&bytes.len())
        && bytes.iter().any(u8::is_ascii_alphabetic)
        && !token.contains('@')
        && !token.contains("//")
        && (is_joined || is_camel || is_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_the_same_each_time_and_each_question_has_its_memory() {
        let ((memories, questions), (again, _)) = (corpus(), corpus());
        assert!(memories.iter().zip(&again).all(|(a, b)| a.text == b.text));
        for (row, question, memory) in &questions {
            if *row == "identifier alone" {
                let text = &memories[*memory].text;
                assert!(text.contains(question.as_str()), "{question}: {text}");
            }
        }
        assert_eq!(questions.iter().filter(|(row, ..)| !row.starts_with("identifier")).count(), 120);
    }

    #[test]
    fn identifiers_have_a_shape_that_words_lack() {
        let text =
            "Use `NO_COLOR` (see src/a.rs:12), fixed by #123 in --dry-run. Plain words, well-known e.g. that";
        let found: Vec<&str> = tokens(text).filter(|token| is_identifier(token)).collect();
        assert_eq!(found, ["NO_COLOR", "src/a.rs:12", "--dry-run", "well-known"]);
    }
}
