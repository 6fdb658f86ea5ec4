//! The part of the demonstration that asks an assistant three times about the same files. The assistant is a mock on
//! this machine, so this part shows which data is sent, not how well a model answers.
//!
//! Everything happens in a temporary directory, so nothing remains afterwards.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::mock::Mock;
use tiro_base::error::{Context, Kind, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_base::scope::SessionId;
use tiro_base::thread::ThreadName;
use tiro_host::caller::WritingCaller;
use tiro_host::config::{Config, Configured, Limits, Origin, Use};
use tiro_host::consult::{self, Consulted, Question};
use tiro_host::engine::Engine;
use tiro_llm::{Key, Provider, Service};

/// The files of the made-up project: parts of Tiro's own source.
const FILES: [(&str, &str); 5] = [
    ("src/diff.rs", include_str!("../../../assets/demo/sources/diff.rs")),
    ("src/frame.rs", include_str!("../../../assets/demo/sources/frame.rs")),
    ("src/prompt.rs", include_str!("../../../assets/demo/sources/prompt.rs")),
    ("src/thread.rs", include_str!("../../../assets/demo/sources/thread.rs")),
    ("src/plan.rs", include_str!("../../../assets/demo/sources/plan.rs")),
];

/// A file that is attached to the last question.
const ATTACHED: (&str, &str) = (
    "notes.md",
    "# Notes\n\nA thread is re-based once outdated copies take more than a third of the window.\n",
);

/// The window of the mock, in tokens. The largest file doesn't fit into it.
const WINDOW: usize = 16_000;

/// The questions.
const QUESTIONS: [&str; 3] = [
    "Which of these files decides how a diff is written?",
    "I changed the number of lines around a change. Is that consistent?",
    "Find when a thread is re-based",
];

/// The tokens that the turns sent and saved.
#[derive(Debug, Serialize)]
pub struct Consulting {
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// The tokens that were added to the prompts by all turns.
    pub sent: u64,
    /// The tokens that would have been added if each turn had sent all its files whole.
    pub whole: u64,
}

/// A turn.
#[derive(Debug, Serialize)]
pub struct Turn {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// How many files were sent whole.
    pub sent: usize,
    /// How many files were sent as changes.
    pub diffed: usize,
    /// How many files were not sent again.
    pub unchanged: usize,
    /// The number of files that are searched because they don't fit into the prompt.
    pub overflow: usize,
    /// The queries with which the assistant searched.
    pub searched: Vec<String>,
    /// The tokens that were not sent again.
    pub saved: usize,
    /// The tokens of the prompt.
    pub prompt: usize,
}

/// Asks the questions.
pub async fn consult(engine: &Engine) -> Result<Consulting> {
    let scratch =
        tempfile::tempdir().context(Kind::Io, || "cannot create a temporary directory".to_owned())?;
    let project = scratch.path().join("project");
    for (path, text) in FILES.iter().chain([&ATTACHED]) {
        write(&project.join(path), text)?;
    }
    let mock = Mock::start().await?;
    let config = Config { data_dir: scratch.path().join("data"), ..engine.config().clone() };
    let stores = engine.stores().in_folder(&config.data_dir);
    let caller = WritingCaller::of_process(&config).in_directory(&project, true);
    let apart = Arc::new(Engine::new(config, stores));
    let assistant = assistant(&mock.endpoint);
    let mut consulting = Consulting { turns: Vec::new(), sent: 0, whole: 0 };
    for (number, question) in QUESTIONS.iter().enumerate() {
        if number == 1 {
            let changed = FILES[0].1.replace("const AROUND: usize = 3;", "const AROUND: usize = 4;");
            write(&project.join(FILES[0].0), &changed)?;
        }
        let attachments = if number == 2 { vec![ATTACHED.0.to_owned()] } else { Vec::new() };
        let asked = Question {
            name: ThreadName {
                session: SessionId::parse("demo").expect("a plain word is the name of a session"),
                assistant: assistant.provider.name.clone(),
            },
            instructions: (*question).to_owned(),
            context: vec!["src".to_owned()],
            priority: Vec::new(),
            attachments,
            images: Vec::new(),
            format: None,
            schema: None,
            effort: None,
            temperature: None,
            call_id: format!("demo-{number}"),
            head: (None, None),
            allowed: Vec::new(),
            is_preview: false,
        };
        let told: consult::Listener = Arc::new(|_| {});
        let consulted = consult::consult(&apart, &caller, &assistant, asked, Vec::new(), &told).await?;
        consulting.turns.push(turn(question, consulted));
    }
    let rows = {
        let project = caller.project(&apart).await?;
        project.store.threads(&project.scope, None).await?
    };
    for row in rows {
        consulting.sent += row.spent.appended;
        consulting.whole += row.spent.whole;
    }
    caller.close();
    Ok(consulting)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = || "cannot write a temporary file".to_owned();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).context(Kind::Io, cannot)?;
    }
    std::fs::write(path, text).context(Kind::Io, cannot)
}

fn assistant(endpoint: &str) -> Configured {
    Configured {
        provider: Provider {
            name: "mock".to_owned(),
            service: Service::OpenaiCompatible,
            endpoint: Some(endpoint.to_owned()),
            model: "mock".to_owned(),
            key: Key::None,
            max_output: None,
            temperature: None,
            window: Some(WINDOW),
            price: None,
        },
        uses: vec![Use::Consult],
        memory: false,
        limits: Limits::default(),
        origin: Origin::File,
        place: None,
    }
}

fn turn(question: &str, Consulted { answer, receipt, .. }: Consulted) -> Turn {
    Turn {
        question: question.to_owned(),
        answer,
        sent: receipt.sent.count,
        diffed: receipt.diffed.count,
        unchanged: receipt.unchanged,
        overflow: receipt.overflow.count,
        searched: receipt.functions.iter().map(|ran| ran.about.clone()).collect(),
        saved: receipt.saved,
        prompt: receipt.tokens.values().sum(),
    }
}

impl Consulting {
    /// Returns the result as text. `first_words` shortens an answer to one line.
    pub fn text(&self, first_words: fn(&str) -> String) -> String {
        let files = |count: usize| counted(count, "file", "files");
        let mut text =
            "\nThree questions to an assistant, about five files. A mock on this machine stands for it.\n"
                .to_owned();
        for (number, turn) in self.turns.iter().enumerate() {
            text += &format!("  {}. {}\n", number + 1, turn.question);
            let mut parts = Vec::new();
            for (count, said) in [
                (turn.sent, "sent whole"),
                (turn.diffed, "sent as changes"),
                (turn.unchanged, "not sent again"),
            ] {
                if count > 0 {
                    parts.push(format!("{} {said}", files(count)));
                }
            }
            if turn.overflow > 0 {
                parts.push(format!("{} to be searched, because it does not fit", files(turn.overflow)));
            }
            text +=
                &format!("     {}; {} tokens in the prompt", parts.join(", "), thousands(turn.prompt as u64));
            if turn.saved > 0 {
                text += &format!(", {} saved", thousands(turn.saved as u64));
            }
            text.push('\n');
            for query in &turn.searched {
                text += &format!("     It searched: {query}\n");
            }
            text += &format!("     It answered: {}\n", first_words(&turn.answer));
        }
        let saved = 100.0 * (1.0 - self.sent as f64 / self.whole.max(1) as f64);
        text += &format!(
            "  In all, {} tokens were added to the prompts; sending all files at every question would have added {} ({saved:.0}% \
             saved).\n",
            thousands(self.sent),
            thousands(self.whole)
        );
        text
    }
}
