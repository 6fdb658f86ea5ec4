//! Sets up Codex: the server in `config.toml`, and the hooks in `hooks.json`, or in `config.toml` if the user already
//! has hooks there.
//!
//! Codex warns if both files contain hooks, so our hooks go into the file that already contains some. Codex runs no
//! hook before the user approves it in `/hooks`, and Tiro doesn't write this approval for the user. Codex calls a tool
//! without asking if the tool declares that it only reads, so no approval has to be written for such tools.
//!
//! `toml_edit` keeps comments and the order of entries. It writes line feeds only and drops a byte order mark, so both
//! the line ends and the mark are restored afterwards. A file that would still lose something, for example because its
//! line ends are mixed, is not edited.

use std::path::{Path, PathBuf};

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value, value};

use super::Agent;
use crate::clients::edit::{self, Entries, Hook, Ours, json, split_mark};
use crate::clients::{Client, Places, Plan, SERVE, Setup, TOOL_TIMEOUT, cut, quoted};
use tiro_base::error::{Context, Error, Kind, Result};
use tiro_base::file::user_file;

/// Identifies our hooks in `hooks.json`.
const OURS: Ours = Ours { members: &[], command: HOOK, list: None };

/// The end of the command of our hooks. It doesn't depend on the path of the program.
const HOOK: &str = " hook codex";

/// The timeout for starting the server, in seconds.
const STARTUP_TIMEOUT: i64 = 30;

/// The timeout of a hook, in seconds. It is the longest that Codex allows at the end of a session. Our hooks take a
/// tenth of a second.
const HOOK_TIMEOUT: u32 = 3;

/// The environment variables that the server needs in addition to those that Codex passes to every server.
const VARIABLES: [&str; 3] = ["TIRO_DATA_DIR", "TIRO_MODEL_DIR", "XDG_DATA_HOME"];

/// The events that run our hook. At each of them, a transcript may have grown or a session begins.
const EVENTS: [&str; 4] = ["SessionStart", "Stop", "PreCompact", "SessionEnd"];

/// The file with the servers, and the file with the hooks.
const CONFIG: &str = "config.toml";
const HOOKS: &str = "hooks.json";

/// Codex by OpenAI.
pub struct Codex;

impl Agent for Codex {
    fn word(&self) -> &'static str {
        "codex"
    }

    fn name(&self) -> &'static str {
        "Codex"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("CODEX_HOME", ".codex")
    }

    fn project_folder(&self) -> &'static str {
        ".codex"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        [CONFIG, HOOKS].map(|name| self.folder(places).join(name)).into()
    }

    fn server_files(&self, places: &Places, root: Option<&Path>) -> Vec<PathBuf> {
        let project = root.map(|root| root.join(self.project_folder()));
        [Some(self.folder(places)), project].into_iter().flatten().map(|folder| folder.join(CONFIG)).collect()
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        plan_files(setup, plan);
    }

    fn without(
        &self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        _wrote: Option<&str>,
    ) -> Result<Option<String>> {
        without(path, text, before).map(Some)
    }

    fn transcripts(&self, places: &Places) -> Vec<PathBuf> {
        ["sessions", "archived_sessions"].map(|name| self.folder(places).join(name)).into()
    }

    fn writes_documents(&self) -> bool {
        true
    }

    fn next_step(&self) -> Option<&'static str> {
        Some("Codex runs hooks after you approve them: type /hooks there once.")
    }
}

/// Adds the changes for Codex to `plan`.
fn plan_files(setup: &Setup<'_>, plan: &mut Plan) {
    let folder = Codex.folder(setup.places);
    let config = folder.join(CONFIG);
    let hooks = folder.join(HOOKS);
    let command = format!("{}{HOOK}", quoted(setup.binary));
    let is_in_config = match inline_hooks(&config) {
        Inline::Ours => true,
        Inline::Others => !hooks.exists(),
        Inline::None => false,
    };
    let reason = match is_in_config {
        true => "the MCP server `tiro` and hooks that note where conversations are kept",
        false => "the MCP server `tiro`",
    };
    plan.edit(setup, (Client::Codex, &config, reason), 0o600, |text| {
        let text = text.unwrap_or_default();
        let edited = edit(text, |document| {
            insert_server(document, setup)?;
            if is_in_config { insert_hooks(document, &command) } else { Ok(()) }
        })?;
        let mut comments = text.lines().filter(|line| line.trim_start().starts_with('#'));
        if comments.all(|line| edited.contains(line)) { Ok(edited) } else { Err(lossy()) }
    });
    if !is_in_config {
        let hook = |event| {
            let hook = json!({ "type": "command", "command": (command.clone()), "timeout": HOOK_TIMEOUT });
            Hook { event, command: command.clone(), group: json!({ "hooks": [hook] }) }
        };
        let entries = Entries { hooks: EVENTS.into_iter().map(hook).collect(), ..Entries::default() };
        let reason = "hooks that note where conversations are kept; approve them in Codex with /hooks";
        plan.edit(setup, (Client::Codex, &hooks, reason), 0o600, |text| {
            edit::insert(text.unwrap_or_default(), &entries, &OURS)
        });
    }
}

/// Returns `text` without our entries. `before` is the former content of the file. Tables that become empty are
/// removed, unless `before` contained them.
pub(in crate::clients) fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
    match path.extension().is_some_and(|extension| extension == "json") {
        true => cut::remove(text, before, &OURS),
        false => without_tables(text, before),
    }
}

/// Says whose hooks are in `config.toml`.
enum Inline {
    None,
    Ours,
    Others,
}

fn inline_hooks(config: &Path) -> Inline {
    let text = user_file::look(config).ok().and_then(|target| String::from_utf8(target.state?.bytes.0).ok());
    let document = text.and_then(|text| split_mark(&text).1.parse::<DocumentMut>().ok()).unwrap_or_default();
    let mut found = Inline::None;
    for (_, groups) in
        document.get("hooks").and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter)
    {
        for group in groups.as_array_of_tables().into_iter().flatten() {
            let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
            if hooks.into_iter().flatten().any(is_ours) {
                return Inline::Ours;
            }
            found = Inline::Others;
        }
    }
    found
}

fn insert_server(document: &mut DocumentMut, setup: &Setup<'_>) -> Result<()> {
    let server = table(table(document.as_table_mut(), "mcp_servers")?, "tiro")?;
    let list = |words: &[&str]| Value::Array(words.iter().copied().collect::<Array>());
    set(server, "command", setup.binary.into());
    set(server, "args", list(&SERVE));
    set_default(server, "env_vars", list(&VARIABLES));
    set_default(server, "startup_timeout_sec", STARTUP_TIMEOUT.into());
    set_default(server, "tool_timeout_sec", i64::from(TOOL_TIMEOUT).into());
    Ok(())
}

fn insert_hooks(document: &mut DocumentMut, command: &str) -> Result<()> {
    let hooks = table(document.as_table_mut(), "hooks")?;
    for event in EVENTS {
        let groups = hooks.entry(event).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let groups = groups
            .as_array_of_tables_mut()
            .ok_or_else(|| Error::bad_input(format!("`hooks.{event}` is not an array of tables")))?;
        let mut ours = 0;
        for hook in groups.iter_mut().filter_map(hooks_of).flat_map(ArrayOfTables::iter_mut) {
            if is_ours(hook) {
                set(hook, "command", command.into());
                ours += 1;
            }
        }
        if ours == 0 {
            groups.push(group(command));
        }
    }
    Ok(())
}

fn without_tables(text: &str, before: Option<&str>) -> Result<String> {
    let before = before.and_then(|text| split_mark(text).1.parse::<DocumentMut>().ok()).unwrap_or_default();
    edit(text, |document| {
        let mut comments = String::new();
        if let Some(servers) = document.get_mut("mcp_servers").and_then(Item::as_table_like_mut) {
            match before.get("mcp_servers").and_then(|servers| servers.get("tiro")) {
                Some(former) => drop(servers.insert("tiro", former.clone())),
                None => {
                    if let Some(Item::Table(server)) = servers.remove("tiro") {
                        // A comment before the header may be about something else, so it stays.
                        let before =
                            server.decor().prefix().and_then(|text| text.as_str()).unwrap_or_default();
                        comments = before
                            .lines()
                            .filter(|line| line.contains('#'))
                            .map(|line| format!("{line}\n"))
                            .collect();
                    }
                }
            }
            if servers.is_empty() && !before.contains_key("mcp_servers") {
                document.remove("mcp_servers");
            }
        }
        if !comments.is_empty() {
            let trailing = document.trailing().as_str().unwrap_or_default();
            document.set_trailing(format!("{trailing}{comments}"));
        }
        let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_like_mut) else {
            return Ok(());
        };
        let had = |event: &str| before.get("hooks").is_some_and(|hooks| hooks.get(event).is_some());
        let mut emptied = Vec::new();
        for (event, groups) in hooks.iter_mut() {
            let Some(groups) = groups.as_array_of_tables_mut() else { continue };
            for at in (0..groups.len()).rev() {
                let Some(hooks) = groups.get_mut(at).and_then(hooks_of) else { continue };
                let all = hooks.len();
                hooks.retain(|hook| !is_ours(hook));
                if hooks.is_empty() && all > 0 {
                    groups.remove(at);
                }
            }
            if groups.is_empty() && !had(event.get()) {
                emptied.push(event.get().to_owned());
            }
        }
        for event in emptied {
            hooks.remove(&event);
        }
        if hooks.is_empty() && !before.contains_key("hooks") {
            document.remove("hooks");
        }
        Ok(())
    })
}

/// Applies `change` to `text`, then restores the byte order mark and the line ends. The result ends in a line end
/// only if `text` does.
fn edit(text: &str, change: impl FnOnce(&mut DocumentMut) -> Result<()>) -> Result<String> {
    let (mark, body) = split_mark(text);
    let is_crlf = body.contains("\r\n");
    let dress = |plain: String, ends: bool| {
        let plain = if is_crlf { plain.replace("\r\n", "\n").replace('\n', "\r\n") } else { plain };
        let plain = if ends { plain } else { plain.trim_end_matches(['\n', '\r']).to_owned() };
        format!("{mark}{plain}")
    };
    let ends = body.is_empty() || body.ends_with('\n');
    let mut document: DocumentMut =
        body.parse().context(Kind::BadInput, || "the configuration is not valid TOML".to_owned())?;
    if dress(document.to_string(), ends) != text {
        return Err(lossy());
    }
    let plain = document.to_string();
    change(&mut document)?;
    let edited = document.to_string();
    if edited == plain {
        return Ok(text.to_owned());
    }
    edited.parse::<DocumentMut>().map_err(|error| lossy().source(error))?;
    Ok(dress(edited, ends))
}

fn lossy() -> Error {
    Error::bad_input("it can't be edited without losing something").hint(
        "write `mcp_servers` and `hooks` as tables and all line ends the same, then run `tiro init` again",
    )
}

/// Returns the table `key` of `parent`, and creates it if it is missing. In an inline table, the new table is
/// inline too.
fn table<'a>(parent: &'a mut dyn TableLike, key: &str) -> Result<&'a mut dyn TableLike> {
    let mut new = Table::new();
    // A table that contains only tables needs no header.
    new.set_implicit(true);
    parent
        .entry(key)
        .or_insert(Item::Table(new))
        .as_table_like_mut()
        .ok_or_else(|| Error::bad_input(format!("`{key}` is not a table")))
}

/// Sets `key` to `new`, unless it already has that value. The comments and spaces around it stay.
fn set(table: &mut dyn TableLike, key: &str, new: Value) {
    let text = |value: &Value| value.clone().decorated("", "").to_string();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(now) if text(now) == text(&new) => {}
        Some(now) => {
            let decor = now.decor().clone();
            *now = new;
            *now.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(new))),
    }
}

/// Sets `key` if it is missing; a value that the user set stays.
fn set_default(table: &mut dyn TableLike, key: &str, new: Value) {
    if !table.contains_key(key) {
        table.insert(key, Item::Value(new));
    }
}

fn group(command: &str) -> Table {
    let mut hook = Table::new();
    hook["type"] = value("command");
    hook["command"] = value(command);
    hook["timeout"] = value(i64::from(HOOK_TIMEOUT));
    let mut hooks = ArrayOfTables::new();
    hooks.push(hook);
    let mut group = Table::new();
    group["hooks"] = Item::ArrayOfTables(hooks);
    group
}

fn hooks_of(group: &mut Table) -> Option<&mut ArrayOfTables> {
    group.get_mut("hooks")?.as_array_of_tables_mut()
}

fn is_ours(hook: &Table) -> bool {
    hook.get("command").and_then(Item::as_str).is_some_and(|command| command.trim_end().ends_with(HOOK))
}
