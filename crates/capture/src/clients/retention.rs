//! Finds out how long Claude Code keeps transcripts, and offers to keep them longer.

use std::path::{Path, PathBuf};

use super::edit::{Entries, Member, Ours, When, insert, json, value};
use super::{Applied, Client, Places, Plan, Setup, cut, record};
use tiro_base::error::Result;
use tiro_base::file::user_file;

/// The file of the user's settings in Claude Code's folder.
pub(super) const SETTINGS: &str = "settings.json";

/// The name of the setting in that file.
pub const SETTING: &str = "cleanupPeriodDays";

/// The number of days that Claude Code keeps transcripts if the setting is missing.
const DEFAULT: u64 = 30;

/// The number of days that Tiro offers: ten years. No other program writes this number, so it shows that Tiro wrote the
/// setting.
pub const OFFERED: u64 = 3653;

/// If Claude Code keeps transcripts for at least this many days, Tiro offers no change.
const ENOUGH: u64 = 365;

/// Our entry.
const OURS: Ours = Ours { members: &[&[SETTING]], command: " hook claude-code", list: None };

/// The time for which Claude Code keeps transcripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The number of days.
    pub days: u64,
    /// Whether the user's settings contain this number.
    pub is_set: bool,
    /// The path of the settings file.
    pub path: PathBuf,
}

/// Returns how long Claude Code keeps transcripts; `None` if it is not installed.
pub fn of(places: &Places) -> Option<Retention> {
    let folder = places.folder(Client::ClaudeCode).filter(|folder| super::is_directory(folder))?;
    let path = folder.join(SETTINGS);
    let state = user_file::look(&path).ok().and_then(|target| target.state);
    let days = state.and_then(|state| {
        let text = String::from_utf8(state.bytes.0).ok()?;
        value(&text).ok()?.get(SETTING)?.as_u64()
    });
    Some(Retention { days: days.unwrap_or(DEFAULT), is_set: days.is_some(), path })
}

impl Retention {
    /// Returns whether transcripts are deleted so early that Tiro offers to keep them longer.
    pub fn is_short(&self) -> bool {
        self.days < ENOUGH
    }

    /// Returns a sentence, without a full stop, that says how long Claude Code keeps transcripts.
    pub fn text(&self) -> String {
        let whence = if self.is_set { "set by" } else { "the default of" };
        format!(
            "Claude Code deletes transcripts after {} days ({whence} `{SETTING}`); what is imported stays in the memory",
            self.days
        )
    }
}

/// Makes Claude Code keep transcripts for [`OFFERED`] days. Records the former content in `dir`, so that the change can
/// be undone.
///
/// # Errors
///
/// The errors of [`super::apply`].
pub fn raise(places: &Places, dir: &Path) -> Result<Applied> {
    let setup = Setup { places, binary: "", reading: &[], folder: None };
    let mut plan = Plan::default();
    let member = Member::new(&[SETTING], json!(OFFERED), When::Always);
    let entries = Entries { members: vec![member], ..Entries::default() };
    let reason = "keeps transcripts for ten years";
    let path = places.folder(Client::ClaudeCode).unwrap_or_default().join(SETTINGS);
    plan.edit(&setup, (Client::ClaudeCode, &path, reason), 0o600, |text| {
        insert(text.unwrap_or_default(), &entries, &OURS)
    });
    let mut applied = record::apply(&plan.changes, dir)?;
    applied.findings.extend(plan.findings);
    Ok(applied)
}

/// Returns the settings in `text` without our entry.
pub(super) fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
    let is_ours = path.ends_with(SETTINGS)
        && value(text).is_ok_and(|settings| settings[SETTING].as_u64() == Some(OFFERED));
    if is_ours { cut::remove(text, before, &OURS) } else { Ok(text.to_owned()) }
}
