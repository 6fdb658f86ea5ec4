//! Runs Tiro end to end on the current repository and on a long conversation, without an API key.
//!
//! The repository's commits are stored in the repository's project, as `tiro import git` does. The conversation is
//! bundled with Tiro and is about a made-up project. It is stored in a separate project, so that it never mixes with
//! real memories. A second run finds everything stored and adds nothing.

mod consulting;
mod long_conversation;
mod mock;
mod questions;
mod sample;
mod stashing;

use std::time::{Duration, Instant};

use serde::Serialize;

use self::consulting::Consulting;
use self::long_conversation::Assembled;
use self::stashing::Stashing;
use crate::common::short_sha;
use crate::memory::search_project_memory as search;
use crate::memory::search_project_memory::Hit;
use crate::operate::{import_git, index};
use crate::provider::model;
use tiro_base::error::{Kind, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::humanize::counted;
use tiro_base::memory::Kind as MemoryKind;
use tiro_embed::Model;
use tiro_embed::install::Progress;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::{Embedding, Engine};

/// The maximum number of tokens of an answer in the demonstration.
const MAX_TOKENS: usize = 600;

/// The index of the bundled question for which a whole context is assembled. Arbitrary: its answer is far back in the
/// conversation.
const ASSEMBLED: usize = 8;

/// The longest time for embedding. Texts that are not embedded by then are found by keywords only, until the next
/// server or `tiro index` embeds them.
const PATIENCE: Duration = Duration::from_secs(25);

/// The number of newest commits that are considered for questions.
const COMMITS_READ: usize = 2_000;

/// The arguments of `tiro demo`.
#[derive(Debug, Default)]
pub struct Args {
    /// A question to ask in place of the questions made from the history.
    pub ask: Option<String>,
}

/// The answer of `tiro demo`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The questions with their answers.
    pub answers: Vec<Answer>,
    /// The context that an agent would get for a question. Absent if the user gave the question.
    pub assembled: Option<Assembled>,
    /// The older half of a conversation, put aside and brought back. Absent if the user gave the question.
    pub stashing: Option<Stashing>,
    /// Three questions to a mock of an assistant. Absent if the user gave the question.
    pub consulting: Option<Consulting>,
    /// Where the memories are kept.
    pub data_directory: String,
    /// How many milliseconds the whole run took.
    pub milliseconds: u64,
}

/// One step of the demo.
#[derive(Debug, Serialize)]
pub struct Step {
    /// The name of the step.
    pub what: String,
    /// The result on one line.
    pub found: String,
    /// How long the step took, in milliseconds.
    pub milliseconds: u64,
}

/// A question with its hits.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The searched memory: the repository's history, or the conversation.
    pub of: String,
    /// The question.
    pub question: String,
    /// The best hits, with their sources.
    pub hits: Vec<Hit>,
    /// The rank, from 1, of the memory from which the question was made. Absent if no hit is this memory, or if the
    /// user gave the question.
    pub place: Option<usize>,
    /// The source id of the memory from which the question was made, such as a commit's hash. Absent if the user gave
    /// the question.
    #[serde(skip)]
    pub source: Option<String>,
    /// Tokens of the answer.
    pub tokens_used: usize,
    /// The budget of the answer in tokens.
    pub max_tokens: usize,
    /// How long the search took, in milliseconds.
    pub milliseconds: u64,
}

/// Runs the demonstration. Calls `on_step` with each step when the step ends. Calls `progress` while the model is
/// installed.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    on_step: &mut (dyn FnMut(&Step) + Send),
    progress: impl Fn(Progress<'_>) + Send + 'static,
) -> Result<Output> {
    let began = Instant::now();
    let mut steps = Steps { steps: Vec::new(), on_step };
    let sample = caller.in_directory(&sample::folder(engine)?, false);

    steps.timed("embedding model", install_model(engine, progress)).await?;
    let history = steps.timed("history", import_history(engine, caller, &sample)).await?;
    let commits = if history.is_sample { &sample } else { caller };
    steps.timed("conversation", sample::save_conversation(engine, &sample)).await?;
    steps.timed("embedding", embed(engine, caller, &sample, history.is_sample)).await?;

    let (mut answers, mut assembled, mut stashing, mut consulting) = (Vec::new(), None, None, None);
    match args.ask {
        Some(question) => answers.push(ask(engine, commits, &history.name, question, None).await?),
        None => {
            for (question, sha) in questions_of_history(engine, commits).await? {
                answers.push(ask(engine, commits, &history.name, question, Some(&sha)).await?);
            }
            for (number, question) in sample::questions().into_iter().enumerate() {
                let source = question.evidence.first().map_or("", String::as_str);
                match number {
                    0..3 => {
                        let of = "the bundled conversation";
                        answers.push(ask(engine, &sample, of, question.question, Some(source)).await?);
                    }
                    ASSEMBLED => {
                        stashing = stashing::stash(engine, &sample, &question.question, source).await?;
                        assembled = Some(
                            long_conversation::assemble(engine, &sample, question.question, source).await?,
                        );
                    }
                    _ => {}
                }
            }
            consulting = Some(consulting::consult(engine).await?);
        }
    }
    Ok(Output {
        steps: steps.steps,
        answers,
        assembled,
        stashing,
        consulting,
        data_directory: engine.config().data_dir.display().to_string(),
        milliseconds: millis(began),
    })
}

/// Measures each step, reports it when it ends, and keeps it for the answer.
struct Steps<'s> {
    steps: Vec<Step>,
    on_step: &'s mut (dyn FnMut(&Step) + Send),
}

impl Steps<'_> {
    async fn timed<T: StepOutcome>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let began = Instant::now();
        let done = work.await?;
        let step = Step { what: what.to_owned(), found: done.found(), milliseconds: millis(began) };
        (self.on_step)(&step);
        self.steps.push(step);
        Ok(done)
    }
}

/// A result of a step that can be shown on one line.
trait StepOutcome {
    fn found(&self) -> String;
}

impl StepOutcome for String {
    fn found(&self) -> String {
        self.clone()
    }
}

/// The origin of the commits.
struct History {
    name: String,
    is_sample: bool,
    found: String,
}

impl StepOutcome for History {
    fn found(&self) -> String {
        self.found.clone()
    }
}

async fn install_model(engine: &Engine, progress: impl Fn(Progress<'_>) + Send + 'static) -> Result<String> {
    let models = engine.config().models.list();
    if let Some(found) = models.iter().find(|model| model.problem.is_none()) {
        return Ok(format!("{}, installed already", found.model.name()));
    }
    Ok(match model::install(engine, Model::MiniLm, None, progress).await {
        Ok(installed) => {
            let origin = installed.origin.unwrap_or_else(|| "this machine".to_owned());
            format!("{}, {} bytes, installed from {origin}", Model::MiniLm.name(), installed.bytes)
        }
        Err(error) => {
            format!("none: {error}. The demo searches by keywords only; `tiro model install` tries again")
        }
    })
}

/// Imports the repository's commits. If there is no complete repository to import, imports the sample history.
async fn import_history(engine: &Engine, caller: &WritingCaller, sample: &WritingCaller) -> Result<History> {
    let why_not = match caller.begin_project(engine).await {
        Err(error) if error.kind() == Kind::NoProject => Some(error.to_string()),
        Err(error) => return Err(error),
        Ok(project) => match &project.repository {
            None => Some(format!("`{}` is not a git repository", quoted(project.root.display()))),
            Some(repository) if repository.is_shallow() => Some("the clone is shallow".to_owned()),
            Some(repository) if repository.is_empty() => Some("the repository has no commits".to_owned()),
            Some(_) => None,
        },
    };
    if let Some(why_not) = why_not {
        let (new, known) = sample::save_commits(engine, sample).await?;
        let found = format!(
            "{why_not}: a sample of {} instead, {new} new",
            counted(new + known, "commit", "commits")
        );
        return Ok(History { name: "the sample history".to_owned(), is_sample: true, found });
    }
    let imported =
        import_git::run(engine, caller, import_git::Args { threads: 2, ..Default::default() }, |_, _| {})
            .await?;
    let stats = crate::operate::stats::run(engine, caller).await?;
    let commits = stats.kinds.iter().find(|each| each.kind == MemoryKind::Commit.as_str());
    let found = format!(
        "{} of {}, {} new, {} of text",
        counted(commits.map_or(0, |each| each.memories), "commit", "commits"),
        stats.project,
        imported.imported,
        counted(commits.map_or(0, |each| each.bytes), "byte", "bytes"),
    );
    Ok(History { name: format!("the history of {}", stats.project), is_sample: false, found })
}

async fn embed(
    engine: &Engine,
    caller: &WritingCaller,
    sample: &WritingCaller,
    is_sample: bool,
) -> Result<String> {
    if let Embedding::Missing(notice) = engine.embedding().await {
        return Ok(notice);
    }
    let callers: &[&WritingCaller] = if is_sample { &[sample] } else { &[sample, caller] };
    let (mut embedded, mut pending) = (0, 0);
    for each in callers {
        let args = index::Args { threads: 2, patience: Some(PATIENCE) };
        match index::run(engine, each, args, |_, _| {}).await {
            Ok(done) => {
                embedded += done.embedded;
                pending += done.pending;
            }
            // Another process is already computing the project's embeddings.
            Err(error) if error.kind() == Kind::Busy => {}
            Err(error) => return Err(error),
        }
    }
    let later = if pending > 0 { format!(", {pending} left for `tiro index`") } else { String::new() };
    Ok(counted(embedded, "piece", "pieces") + &later)
}

/// Returns up to three questions made from the subjects of commits. Each comes with the commit from which it was made.
async fn questions_of_history(engine: &Engine, caller: &Caller) -> Result<Vec<(String, String)>> {
    let project = caller.project(engine).await?;
    let filter = Filter { kinds: Some(vec![MemoryKind::Commit]), ..Filter::default() };
    let commits = project.store.list(&project.scope, &filter, None, COMMITS_READ).await?;
    let commits: Vec<(&str, &str, &str)> = commits
        .iter()
        .filter_map(|commit| Some((commit.title.as_deref()?, &*commit.text, commit.source_id.as_deref()?)))
        .collect();
    let questions = questions::of_history(&commits);
    Ok(questions.into_iter().map(|(question, sha)| (question, sha.to_owned())).collect())
}

async fn ask(
    engine: &Engine,
    caller: &Caller,
    of: &str,
    question: String,
    source: Option<&str>,
) -> Result<Answer> {
    let began = Instant::now();
    let args = search::Args {
        query: question.clone(),
        k: Some(5),
        max_tokens: Some(MAX_TOKENS),
        ..search::Args::default()
    };
    let found = search::search(engine, caller, args).await?;
    let place = found.hits.iter().position(|hit| source.is_some() && hit.source_id.as_deref() == source);
    Ok(Answer {
        of: of.to_owned(),
        question,
        hits: found.hits,
        place: place.map(|place| place + 1),
        source: source.map(str::to_owned),
        tokens_used: found.tokens_used,
        max_tokens: MAX_TOKENS,
        milliseconds: millis(began),
    })
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Answer {
    /// Returns the end of a sentence that names the commit from which a question about the history was made.
    fn origin(&self) -> String {
        let is_commit = |id: &&str| id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match self.source.as_deref().filter(is_commit) {
            Some(sha) => format!("; made from the subject of commit {}", &sha[..10]),
            None => String::new(),
        }
    }

    /// Returns the rank of the right answer as text, or the number of hits if the right answer is unknown.
    fn rank(&self) -> String {
        const RANKS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
        let hits = counted(self.hits.len(), "hit", "hits");
        match self.place.and_then(|place| RANKS.get(place - 1)) {
            Some(rank) => format!("Right answer ranked {rank} of {hits}"),
            None if self.source.is_some() => format!("Right answer not among {hits}"),
            None => hits,
        }
    }
}

impl Output {
    /// Returns the answers as text. The steps are left out, because each step was printed when it ended.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for answer in &self.answers {
            text += &format!("\n? {}\n  Asked of {}{}.\n", answer.question, answer.of, answer.origin());
            if answer.hits.is_empty() {
                text += "  nothing found\n";
            }
            for (number, hit) in answer.hits.iter().take(2).enumerate() {
                let cited = match (&hit.session_id, &hit.source_id) {
                    (Some(session), Some(source)) => format!("{session}, message {source}"),
                    _ if hit.path.is_some() => hit.path.clone().unwrap_or_default(),
                    (_, Some(source)) => format!("commit {}", short_sha(source)),
                    _ => hit.id.clone(),
                };
                let date = hit.time.get(..10).unwrap_or(&hit.time);
                let speaker = hit.speaker.as_deref().unwrap_or(&hit.kind);
                text +=
                    &format!("  {}. [{cited}] {date} {speaker}: {}\n", number + 1, first_words(&hit.text));
            }
            let Answer { tokens_used, max_tokens, milliseconds, .. } = answer;
            let rank = answer.rank();
            text += &format!("  {rank}; {tokens_used} of {max_tokens} tokens used, {milliseconds} ms\n");
        }
        if let Some(assembled) = &self.assembled {
            text += &assembled.text(first_words);
        }
        if let Some(stashing) = &self.stashing {
            text += &stashing.text(first_words);
        }
        if let Some(consulting) = &self.consulting {
            text += &consulting.text(first_words);
        }
        text += &format!("\nMemories are kept in {}. Next:\n", self.data_directory);
        text += "  tiro search \"your question\"        searches this project's memory\n";
        text += "  tiro demo --ask \"your question\"    searches the history above, with citations\n";
        text += "  tiro init                           connects Tiro to the agents on this machine";
        text
    }
}

/// Returns the beginning of `text` on one line.
fn first_words(text: &str) -> String {
    const SHOWN: usize = 220;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The demo used to recommend `claude mcp add`, which sets up one client and no hooks.
    #[test]
    fn the_next_step_is_init() {
        let data_directory = "/data".to_owned();
        let output = Output {
            steps: vec![],
            answers: vec![],
            assembled: None,
            stashing: None,
            consulting: None,
            data_directory,
            milliseconds: 1,
        };
        let text = output.text();
        assert!(text.contains("\n  tiro init ") && !text.contains("mcp add"), "{text}");
    }
}
