//! Sets up Gemini CLI: the server and the hooks in `settings.json`, a policy that allows the read-only tools, and trust
//! in the folder of the project.
//!
//! The policy is a file of its own. The setting `trust` of a server in Gemini CLI would allow all tools, including
//! those that delete.
//!
//! In a folder that the user doesn't trust, Gemini CLI starts no server and runs no hook. Once a folder is trusted,
//! Gemini CLI also reads the settings in it. So trust is not offered for a folder that has settings: Gemini CLI itself
//! asks the user about such a folder.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Agent;
use crate::clients::edit::{Entries, Hook, Member, Ours, When, insert, json, split_mark, value};
use crate::clients::transcripts::{is_hash_of, open};
use crate::clients::{Client, Places, Plan, SERVE, Setup, TOOL_TIMEOUT, allows, cut, quoted};
use tiro_base::error::{Error, Result};
use tiro_base::file::user_file;

/// Identifies our entries.
pub const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook gemini", list: None };

/// Our policy, as a path in Gemini CLI's directory.
const POLICY: &str = "policies/tiro.toml";

/// The file in which Gemini CLI records the folders that the user trusts.
const TRUSTED: &str = "trustedFolders.json";

/// The first line of our policy.
const MARK: &str = "# Written by `tiro init`; `tiro init --remove` deletes it.";

/// The priority of our rule among the user's policies, which range from 0 to 999. Arbitrary: low, so that the rules of
/// the user come first.
const PRIORITY: u32 = 1;

/// The timeout of a hook in milliseconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5_000;

/// The events that run our hook. At each of them, a transcript may have grown or a prompt is sent. The start of a
/// session is not one of them. If a hook adds text at the start of a session, the text becomes part of the first
/// prompt, and is lost when the session is resumed.
const EVENTS: [&str; 4] = ["BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"];

/// The file with the servers and the hooks.
const SETTINGS: &str = "settings.json";

/// The most bytes that are read from a file that contains a path.
const PATH: u64 = 4096;

/// Gemini CLI by Google.
pub struct Gemini;

impl Agent for Gemini {
    fn word(&self) -> &'static str {
        "gemini"
    }

    fn name(&self) -> &'static str {
        "Gemini CLI"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_CLI_HOME"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("GEMINI_CLI_HOME", "").join(self.project_folder())
    }

    fn project_folder(&self) -> &'static str {
        ".gemini"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        [SETTINGS, POLICY].map(|name| self.folder(places).join(name)).into()
    }

    fn server_files(&self, places: &Places, root: Option<&Path>) -> Vec<PathBuf> {
        let project = root.map(|root| root.join(self.project_folder()));
        let folders = [Some(self.folder(places)), project];
        folders.into_iter().flatten().map(|folder| folder.join(SETTINGS)).collect()
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        plan_files(setup, plan);
    }

    fn without(
        &self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        wrote: Option<&str>,
    ) -> Result<Option<String>> {
        without(path, text, before, wrote)
    }

    fn transcripts(&self, places: &Places) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder(places).join("tmp")).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path().join("chats")).collect();
        folders.sort();
        folders
    }

    fn writes_documents(&self) -> bool {
        true
    }

    fn is_named_after(&self, folder: &str, root: &Path) -> bool {
        is_hash_of(folder, root)
    }

    fn recorded_directory(&self, folder: &Path) -> Option<PathBuf> {
        let mut text = String::new();
        open(&folder.join(".project_root")).ok()?.take(PATH).read_to_string(&mut text).ok()?;
        Some(PathBuf::from(text.trim())).filter(|root| root.is_absolute())
    }

    fn next_step(&self) -> Option<&'static str> {
        Some("Gemini CLI starts servers only in folders that you trust: answer yes when it asks.")
    }
}

/// Adds the changes for Gemini CLI to `plan`.
fn plan_files(setup: &Setup<'_>, plan: &mut Plan) {
    let folder = Gemini.folder(setup.places);
    let path = folder.join(SETTINGS);
    let reason = "the MCP server `tiro` and hooks that note where conversations are kept";
    let entries = entries(setup.binary);
    plan.edit(setup, (Client::Gemini, &path, reason), 0o600, |text| {
        insert(text.unwrap_or_default(), &entries, &OURS)
    });
    if setup.reading.is_empty() {
        return;
    }
    let path = folder.join(POLICY);
    let policy = policy(setup.reading);
    plan.offer(setup, (Client::Gemini, &path, &allows(setup.reading)), 0o600, |text| match text {
        Some(text) if !text.starts_with(MARK) => Err(Error::bad_input("it is not Tiro's")),
        _ => Ok(policy.clone()),
    });
    let path = folder.join(TRUSTED);
    if let Some(folder) = setup.folder.filter(|folder| needs_trust(folder, &path)) {
        let reason = "trusts this folder, without which Gemini CLI starts no server here";
        let trusted = Member {
            path: vec![folder.to_string_lossy().into()],
            value: "TRUST_FOLDER".into(),
            when: When::Absent,
        };
        let entries = Entries { members: vec![trusted], ..Entries::default() };
        plan.offer(setup, (Client::Gemini, &path, reason), 0o600, |text| {
            insert(text.unwrap_or_default(), &entries, &OURS)
        });
    }
}

/// Returns whether Tiro may offer to trust `folder`. There are two conditions: the user has not yet decided about the
/// folder, and the folder has no settings that Gemini CLI would read once it trusts the folder.
fn needs_trust(folder: &Path, trusted: &Path) -> bool {
    let text = user_file::look(trusted).ok().and_then(|target| String::from_utf8(target.state?.bytes.0).ok());
    let said = text.and_then(|text| value(split_mark(&text).1).ok()).unwrap_or_default();
    let said = said.as_object().into_iter().flatten().any(|(path, word)| {
        let path = Path::new(path);
        folder.starts_with(if word == "TRUST_PARENT" { path.parent().unwrap_or(path) } else { path })
    });
    !said && folder.to_str().is_some() && !folder.join(".gemini").exists()
}

/// Returns `text` without our entries; `None` if nothing else was in the file. `wrote` is the content that we wrote.
fn without(path: &Path, text: &str, before: Option<&str>, wrote: Option<&str>) -> Result<Option<String>> {
    match path {
        path if path.ends_with(POLICY) && text.starts_with(MARK) => Ok(before.map(str::to_owned)),
        path if path.ends_with(POLICY) => Ok(Some(text.to_owned())),
        path if path.ends_with(TRUSTED) => without_trust(text, before, wrote).map(Some),
        _ => cut::remove(text, before, &OURS).map(Some),
    }
}

/// Returns `text` without the folders that Tiro added, which are those in `wrote` that were not in `before`.
fn without_trust(text: &str, before: Option<&str>, wrote: Option<&str>) -> Result<String> {
    let folders =
        |text: &str| Ok::<_, Error>(value(split_mark(text).1)?.as_object().cloned().unwrap_or_default());
    let before_of = before.map(folders).transpose()?.unwrap_or_default();
    let mut text = text.to_owned();
    for (folder, word) in wrote.map(folders).transpose()?.unwrap_or_default() {
        if !before_of.contains_key(&folder) && folders(&text)?.get(&folder) == Some(&word) {
            text = cut::member(&text, &[&folder])?;
        }
    }
    Ok(text)
}

fn policy(reading: &[String]) -> String {
    let names: String = reading.iter().map(|name| format!("  \"{name}\",\n")).collect();
    format!(
        "{MARK}\n[[rule]]\nmcpName = \"tiro\"\ntoolName = [\n{names}]\ndecision = \"allow\"\npriority = {PRIORITY}\n"
    )
}

/// Returns our entries in the settings.
pub fn entries(binary: &str) -> Entries {
    let command = format!("{}{}", quoted(binary), OURS.command);
    let member = |key: &str, value, when| Member::new(&["mcpServers", "tiro", key], value, when);
    let hook = |event| {
        let hook = json!({
            "name": "tiro",
            "type": "command",
            "command": (command.clone()),
            "timeout": HOOK_TIMEOUT,
        });
        Hook { event, command: command.clone(), group: json!({ "hooks": [hook] }) }
    };
    Entries {
        members: vec![
            member("command", binary.into(), When::Always),
            member("args", json!([(SERVE[0])]), When::Always),
            member("timeout", (TOOL_TIMEOUT * 1000).into(), When::Absent),
        ],
        hooks: EVENTS.into_iter().map(hook).collect(),
        ..Entries::default()
    }
}
