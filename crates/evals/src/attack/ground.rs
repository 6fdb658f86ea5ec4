//! The surroundings of the attack: files and a project's memory that no answer may show, and a private repository that
//! Tiro doesn't know.
//!
//! Each of them contains a unique word. The words don't look like secrets, so that redaction can't hide that a file was
//! read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::calls::git;
use crate::client::{Era, Place, Tiro};

/// A word of every line of every file outside the hostile repositories.
pub const FILE_WORD: &str = "quartzlantern";

/// A word of every memory of the known project.
pub const MEMORY_WORD: &str = "velvetanchor";

/// A word of every commit and file of the private repository.
pub const HISTORY_WORD: &str = "copperthistle";

/// A word in the environment of every started process.
pub const ENVIRONMENT_WORD: &str = "pewterorchid";

/// A word of everything that is stored from a hostile repository.
pub const INTRUDER_WORD: &str = "rustyintruder";

/// The words that no answer may contain. Each has the name of the failure that its appearance means.
pub const FORBIDDEN: [(&str, &str); 4] = [
    (FILE_WORD, "a file outside"),
    (MEMORY_WORD, "another project's memory"),
    (HISTORY_WORD, "another repository's history"),
    (ENVIRONMENT_WORD, "the environment"),
];

/// How many memories the known project has.
const MEMORIES: usize = 5;

/// The targets of the hostile repositories.
pub struct Ground {
    /// Private files in a home directory.
    pub secrets: PathBuf,
    /// The known project: a repository with a memory.
    pub known: PathBuf,
    /// A repository that Tiro has never seen.
    pub private: PathBuf,
    /// A harmless repository. Each hostile one begins as a copy of it.
    template: PathBuf,
    /// The original content of the files outside the hostile repositories, by path.
    before: BTreeMap<PathBuf, Vec<u8>>,
    memory_before: Vec<String>,
}

impl Ground {
    /// Makes the surroundings in `root` and stores memories of the known project in `data_dir`.
    pub fn create(root: &Path, data_dir: &Path, tiro: &Tiro) -> Result<Ground> {
        let folder = |name: &str| root.join(name);
        let mut ground = Ground {
            secrets: folder("secrets"),
            known: folder("known"),
            private: folder("private"),
            template: folder("template"),
            before: BTreeMap::new(),
            memory_before: Vec::new(),
        };
        fs::create_dir_all(&ground.secrets)?;
        for name in ["id_key", "credentials", "shadow", "notes.txt", "main", "tiro-project-id", "gitdir"] {
            let line = |number: usize| format!("{FILE_WORD} {name} line {number}\n");
            fs::write(ground.secrets.join(name), (1..=4).map(line).collect::<String>())?;
        }
        repository(&ground.template, "an ordinary change", "ordinary")?;
        repository(&ground.known, "the lighthouse schedule", "schedule")?;
        repository(&ground.private, &format!("{HISTORY_WORD} merger plans"), HISTORY_WORD)?;
        git(&ground.known, &["worktree", "add", "--quiet", "../known-worktree"])?;
        let place = Place { data_dir: data_dir.to_owned(), project: ground.known.clone() };
        let mut server = tiro.serve(&place, Era::Session)?;
        for number in 0..MEMORIES {
            let text = format!("The {MEMORY_WORD} decision {number}: the harbour opens at {number}.");
            server.tool("store_memory", json!({"text": text, "type": "decision"}))?;
        }
        server.close()?;
        ground.before = contents(&ground.secrets)?;
        ground.before.extend(contents(&ground.private)?);
        ground.memory_before = memory(tiro, &place)?;
        Ok(ground)
    }

    /// Copies the harmless repository to `path` and returns its git directory.
    pub fn ordinary(&self, path: &Path) -> Result<PathBuf> {
        copy(&self.template, path)?;
        Ok(path.join(".git"))
    }

    /// Returns the files outside the hostile repositories that have changed.
    pub fn changed_files(&self) -> Result<Vec<PathBuf>> {
        let mut now = contents(&self.secrets)?;
        now.extend(contents(&self.private)?);
        let paths = self.before.keys().chain(now.keys().filter(|path| !self.before.contains_key(*path)));
        Ok(paths.filter(|path| self.before.get(*path) != now.get(*path)).cloned().collect())
    }

    /// Returns the texts that the memory of the known project has lost or gained.
    pub fn changed_memories(&self, tiro: &Tiro, data_dir: &Path) -> Result<Vec<String>> {
        let place = Place { data_dir: data_dir.to_owned(), project: self.known.clone() };
        let now = memory(tiro, &place)?;
        let lost = self.memory_before.iter().filter(|text| !now.contains(text)).cloned();
        let gained = now.iter().filter(|text| text.contains(INTRUDER_WORD)).cloned();
        Ok(lost.chain(gained).collect())
    }
}

/// Returns the texts of the memories of a project. Commits are left out, because they are imported automatically.
fn memory(tiro: &Tiro, place: &Place) -> Result<Vec<String>> {
    let export = tiro.run(place, &["export"], std::time::Duration::from_secs(60))?;
    let lines = export.lines().map(serde_json::from_str::<serde_json::Value>);
    let memories = lines.collect::<Result<Vec<_>, _>>().context("reading the export of the known project")?;
    let texts = memories.iter().filter(|memory| memory["kind"] != "commit");
    Ok(texts.filter_map(|memory| memory["text"].as_str().map(str::to_owned)).collect())
}

/// Makes a repository of three commits whose messages and files contain `word`.
fn repository(path: &Path, subject: &str, word: &str) -> Result<()> {
    fs::create_dir_all(path)?;
    git(path, &["init", "--quiet", "--initial-branch=main"])?;
    for number in 1..=3 {
        fs::write(path.join("notes.txt"), format!("{word} {number}\n"))?;
        git(path, &["add", "."])?;
        commit(path, &["--message", &format!("{subject} {number}")])?;
    }
    Ok(())
}

/// Commits in `path` with a fixed author.
pub fn commit(path: &Path, arguments: &[&str]) -> Result<String> {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgSign=false"];
    git(path, &[&who[..], &["commit", "--quiet", "--allow-empty"], arguments].concat())
}

/// Copies a folder with its subfolders and regular files; anything else is left out.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &target)?,
            kind if kind.is_file() => drop(fs::copy(entry.path(), target)?),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the content of every file below `path`.
fn contents(path: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                let mut bytes = Vec::new();
                fs::File::open(entry.path())?.take(1 << 20).read_to_end(&mut bytes)?;
                files.insert(entry.path(), bytes);
            }
        }
    }
    Ok(files)
}
