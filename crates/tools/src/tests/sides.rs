//! What passes from the side with a user's files to the side with the memory.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::{ProjectId, SessionId};
use tiro_capture::follow::catch_up::{Following, while_idle};
use tiro_capture::follow::commits;
use tiro_capture::spool::Reference;
use tiro_git::testing::Fixture;
use tiro_intake::{Intake, Prompt, ReadIntake};
use tiro_recall::store_intake::StoreIntake;
use tiro_store::{
    AuthorRow, CallRow, ChunkRange, CommitLinks, CommitRow, GraphRow, Origin, PreparedMemory, Receipt,
    Renamed, Sizes, Store, WriteRow,
};

use tiro_host::caller::WritingCaller;
use tiro_host::config::Config;
use tiro_host::engine::Engine;
use tiro_sqlite::SqliteFiles;

/// An intake that writes down everything that passes to it.
struct Listener {
    intake: StoreIntake<dyn Store>,
    heard: Mutex<Vec<(&'static str, String)>>,
}

/// Passes each method on, and writes down its arguments.
macro_rules! listen {
    ($as:ident: $($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $as for Listener {
            $(async fn $name(&self, $($given: $type),*) -> Result<$answer> {
                self.heard.lock().unwrap().push((stringify!($name), format!("{:?}", ($(&$given,)*))));
                self.intake.$name($($given),*).await
            })*
        }
    };
}

#[async_trait]
impl ReadIntake for Listener {
    fn project(&self) -> &ProjectId {
        self.intake.project()
    }

    async fn cursor(&self, source: &str) -> Result<Option<String>> {
        self.heard.lock().unwrap().push(("cursor", source.to_owned()));
        self.intake.cursor(source).await
    }

    async fn known_commits(&self) -> Result<Vec<String>> {
        self.intake.known_commits().await
    }

    async fn commits_made(&self, from: Millis, until: Millis, limit: usize) -> Result<Vec<CommitRow>> {
        self.intake.commits_made(from, until, limit).await
    }

    async fn commit_graph(&self) -> Result<Vec<GraphRow>> {
        self.intake.commit_graph().await
    }
}

listen! { Intake:
    await_turn(patience: Duration) -> ();
    remember(memories: Vec<PreparedMemory>) -> Receipt;
    describe_session(session: &SessionId, origin: Origin) -> ();
    keep_cursor(source: &str, cursor: &str) -> ();
    has_cursor(end: &str) -> bool;
    stash_compacted(session: &SessionId, rest: &[String]) -> ();
    known_elsewhere(session: &SessionId, ids: Vec<String>) -> HashSet<String>;
    messages_of(session: &SessionId) -> Vec<MemoryId>;
    texts_of(session: &SessionId) -> Vec<(MemoryId, Option<Role>, String)>;
    known_prompts(prompts: Vec<Prompt>) -> Vec<bool>;
    commits_before(places: Vec<(String, Millis)>) -> Vec<Option<String>>;
    time_of_commit(sha: &str) -> Option<Millis>;
    commit_authors(before: Option<MemoryKey>, limit: usize) -> Vec<AuthorRow>;
    memories(keys: Vec<MemoryKey>) -> Vec<(Memory, Vec<ChunkRange>)>;
    rename_authors(renamed: Vec<Renamed>) -> ();
    first_evidence() -> Option<Millis>;
    work_between(from: Millis, until: Millis) -> (Vec<WriteRow>, Vec<CallRow>);
    links_of(commits: Vec<MemoryKey>) -> Vec<CommitLinks>;
    link_commits(links: Vec<CommitLinks>) -> ();
    replaced_commits() -> Vec<(MemoryKey, String)>;
    replace_commits(
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>
    ) -> ();
    add_to_commit_graph(part: GraphRow) -> bool;
    sizes() -> Sizes;
}

#[tokio::test]
async fn no_secret_passes_to_the_memory() {
    let secret = ["ghp", "R8kfQz2mT5vXw9LbN4cJ7hYd1sPaG6uEo3Bi"].join("_");
    let fixture = Fixture::new();
    fixture.commit("press.txt", "The press runs.\n", &format!("Rent the press, with {secret}"));
    fixture.git(&["checkout", "-q", "-b", &format!("topic/{secret}")]);
    fixture.commit(&format!("{secret}.txt"), format!("token = \"{secret}\"\n"), "Keep the casks");
    let name = format!("{secret} <ada@example.org>\n");
    fixture.commit(".mailmap", name, "Name the authors");

    let mut settings = Config::of_test(fixture.path.parent().unwrap());
    settings.current_dir = Some(fixture.path.clone());
    let caller = WritingCaller::of_process(&settings);
    let engine = Engine::new(settings.clone(), std::sync::Arc::new(SqliteFiles::new(settings.data_dir)));
    let project = caller.begin_project(&engine).await.unwrap();
    let sources = project.sources(caller.machine(&engine));
    let listener = Listener { intake: project.intake(engine.clock()), heard: Mutex::default() };

    let path = fixture.path.parent().unwrap().join(format!("{secret}.jsonl"));
    let entry = |n: usize, role: &str, content: Value| {
        json!({"type": role, "uuid": format!("00000000-0000-0000-0000-{n:012}"), "sessionId": format!("t-{secret}"),
            "timestamp": format!("2026-03-02T09:00:{n:02}Z"), "cwd": fixture.path, "gitBranch": format!("topic/{secret}"),
            "message": {"role": role, "content": content}})
        .to_string()
    };
    let written = json!({"type": "tool_use", "id": "toolu_0000000000000001", "name": "Write",
        "input": {"file_path": format!("{}/{secret}.txt", fixture.path.display()), "content": secret}});
    let lines = [
        json!({"type": "summary", "summary": format!("The key {secret}"),
            "leafUuid": format!("00000000-0000-0000-0000-{:012}", 4)})
        .to_string(),
        entry(1, "user", json!(format!("The key is {secret}. Keep it."))),
        entry(2, "assistant", json!([written])),
        entry(
            3,
            "user",
            json!([{"type": "tool_result", "tool_use_id": "toolu_0000000000000001", "content": secret}]),
        ),
        entry(4, "assistant", json!(format!("Kept {secret}."))),
    ];
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let reference = Reference {
        client: "claude-code".into(),
        event: "Stop".into(),
        session: "t-1".into(),
        transcript: Some(path),
        commit: None,
        directory: fixture.path.clone(),
        at: engine.now(),
        trouble: None,
    };
    engine.spool(&project).leave(&reference).unwrap();

    let args = commits::Args { threads: 1, ..commits::Args::default() };
    let imported = commits::import((&sources, &listener), args, |_, _| {}).await.unwrap();
    let followed =
        while_idle((&sources, &listener), &Following::default(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(imported.imported, 3);
    assert!(followed.imported >= 3, "{followed:?}");

    let heard = listener.heard.into_inner().unwrap();
    let methods: HashSet<&str> = heard.iter().map(|(method, _)| *method).collect();
    for method in ["remember", "describe_session", "keep_cursor", "add_to_commit_graph"] {
        assert!(methods.contains(method), "{method} is not among {methods:?}");
    }
    for (method, given) in &heard {
        assert!(!given.contains(&secret), "{method} was given the secret: {given}");
    }
    let remembered: String =
        heard.iter().filter(|(method, _)| *method == "remember").map(|(_, given)| given.as_str()).collect();
    for kept in ["Keep the casks", "The key is ", "Rent the press"] {
        assert!(remembered.contains(kept), "`{kept}` has passed");
    }
}
