//! Sets up opencode: the server in its settings, and a plugin that runs our hook.
//!
//! opencode merges several files of settings. Those in its folder are always among them, whatever `OPENCODE_CONFIG` and
//! `OPENCODE_CONFIG_DIR` add, so our entries go there. It has no hooks, but runs plugins in its own process. Our plugin
//! is a file of its own. It runs `tiro hook` when the agent is idle, and adds the text for the start of a session to the
//! system instructions, which opencode doesn't store. opencode asks before a call only if the user's settings say so.
//! Only then does `tiro init` offer to allow the read-only tools.

use std::path::{Path, PathBuf};

use super::Agent;
use crate::clients::edit::{Entries, Member, Ours, When, insert, json, split_mark, value};
use crate::clients::programs::PROGRAM;
use crate::clients::{Client, Places, Plan, SERVE, Setup, TOOL_TIMEOUT, allows, cut, servers};
use tiro_base::error::{Error, Result};

/// Identifies our entries in the settings.
const OURS: Ours = Ours { members: &[&["mcp", "tiro"]], command: " hook opencode", list: None };

/// The beginning of the names that opencode gives to our tools.
const TOOLS: &str = "tiro_";

/// Our plugin, as a path in opencode's folder.
const PLUGIN: &str = "plugin/tiro.js";

/// The text of the plugin, in which the program is missing.
const PLUGIN_TEXT: &str = include_str!("opencode.js");

/// The beginning of the plugin's first line. All versions write it.
const MARK: &str = "// Written by `tiro init`";

/// The files of settings, the one that counts most first.
const SETTINGS: [&str; 2] = ["opencode.jsonc", "opencode.json"];

/// opencode by Anomaly.
pub struct Opencode;

impl Agent for Opencode {
    fn word(&self) -> &'static str {
        "opencode"
    }

    fn name(&self) -> &'static str {
        "opencode"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["XDG_CONFIG_HOME", "XDG_DATA_HOME", "OPENCODE_DB"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("XDG_CONFIG_HOME", ".config").join("opencode")
    }

    fn project_folder(&self) -> &'static str {
        ".opencode"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        vec![settings(&self.folder(places)), self.folder(places).join(PLUGIN)]
    }

    fn made(&self, places: &Places) -> Vec<PathBuf> {
        self.folder(places).join(PLUGIN).parent().map(Path::to_owned).into_iter().collect()
    }

    fn server_files(&self, places: &Places, root: Option<&Path>) -> Vec<PathBuf> {
        let own = self.folder(places);
        let folders =
            [Some(own), root.map(Path::to_owned), root.map(|root| root.join(self.project_folder()))];
        folders.into_iter().flatten().flat_map(|folder| SETTINGS.map(|name| folder.join(name))).collect()
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        let folder = self.folder(setup.places);
        let path = settings(&folder);
        let entered =
            |entries: Entries| move |text: Option<&str>| insert(text.unwrap_or_default(), &entries, &OURS);
        let about = (Client::Opencode, path.as_path(), "the MCP server `tiro`");
        plan.edit(setup, about, 0o600, entered(entries(setup.binary, &[])));
        let plugin = plugin(setup.binary);
        let reason = "a plugin that notes where conversations are kept";
        let about = (Client::Opencode, &*folder.join(PLUGIN), reason);
        plan.edit(setup, about, 0o600, |text| match text {
            Some(text) if !text.starts_with(MARK) => Err(Error::bad_input("it is not Tiro's")),
            _ => Ok(plugin),
        });
        if !setup.reading.is_empty() && asks(&path) {
            let about = (Client::Opencode, path.as_path(), &*allows(setup.reading));
            plan.offer(setup, about, 0o600, entered(entries(setup.binary, setup.reading)));
        }
    }

    fn without(
        &self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        _wrote: Option<&str>,
    ) -> Result<Option<String>> {
        match path.ends_with(PLUGIN) {
            true if text.starts_with(MARK) => Ok(before.map(str::to_owned)),
            true => Ok(Some(text.to_owned())),
            false => without_rules(cut::remove(text, before, &OURS)?, before).map(Some),
        }
    }

    fn transcripts(&self, _places: &Places) -> Vec<PathBuf> {
        Vec::new()
    }

    fn database(&self, places: &Places) -> Option<PathBuf> {
        let data = places.set_or("XDG_DATA_HOME", ".local/share").join("opencode");
        let name = places.variables.get("OPENCODE_DB").cloned().unwrap_or_else(|| "opencode.db".into());
        Some(data.join(name))
    }

    fn transcript_of(&self, places: &Places, session: &str) -> Option<PathBuf> {
        self.database(places).map(|database| database.join(format!("{session}.jsonl")))
    }
}

/// Returns the file of settings in `folder` to which our entries are added.
fn settings(folder: &Path) -> PathBuf {
    let [counts_most, usual] = SETTINGS.map(|name| folder.join(name));
    if counts_most.symlink_metadata().is_ok() { counts_most } else { usual }
}

/// Returns whether the settings say before which tools opencode asks.
fn asks(path: &Path) -> bool {
    let settings = servers::read(path).and_then(|text| value(split_mark(&text).1).ok());
    settings.is_some_and(|settings| settings["permission"].is_object())
}

/// Returns the entries in the settings. `allowed` are the tools that the agent may call without asking.
fn entries(binary: &str, allowed: &[String]) -> Entries {
    let server = |key: &str, value, when| Member::new(&["mcp", "tiro", key], value, when);
    let rule =
        |name: &String| Member::new(&["permission", &format!("{TOOLS}{name}")], "allow".into(), When::Absent);
    let members = vec![
        server("type", "local".into(), When::Always),
        server("command", json!([(binary), (SERVE[0])]), When::Always),
        server("timeout", (TOOL_TIMEOUT * 1000).into(), When::Absent),
    ];
    Entries { members: members.into_iter().chain(allowed.iter().map(rule)).collect(), ..Entries::default() }
}

fn plugin(binary: &str) -> String {
    let program = serde_json::Value::from(binary);
    PLUGIN_TEXT.replacen(&format!("{PROGRAM}PROGRAM"), &format!("{PROGRAM}{program}"), 1)
}

/// Returns `text` without the rules that allow our tools, except those in `before`.
fn without_rules(mut text: String, before: Option<&str>) -> Result<String> {
    let rules = |text: &str| Ok::<_, Error>(value(split_mark(text).1)?["permission"].take());
    let before = before.and_then(|text| rules(text).ok()).unwrap_or_default();
    for (name, word) in rules(&text)?.as_object().cloned().unwrap_or_default() {
        if name.starts_with(TOOLS) && word == "allow" && before.get(&name).is_none() {
            text = cut::member(&text, &["permission", &name])?;
        }
    }
    Ok(text)
}
