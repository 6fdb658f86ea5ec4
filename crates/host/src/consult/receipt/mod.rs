//! The receipt of a turn. It lists what was sent, what was left out, and the cost.

mod brief;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::functions::Ran;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::{counted, thousands};
use tiro_base::thread::Part;
use tiro_inline::{Moved, Plan, Why};

/// The maximum number of paths, and of remarks, of each kind that a receipt lists. The rest is counted.
const LISTED: usize = 20;

/// The text for the caller if the assistant has no files.
const WITHOUT_FILES: &str = "The assistant has no files; `context` names some";

/// The number of some files, and the paths of the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The number of files.
    pub count: usize,
    /// The paths of the first files.
    pub paths: Vec<String>,
}

impl Files {
    /// Returns the number of `paths`, and the first of them.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Files {
        let mut files = Files::default();
        for path in paths {
            files.count += 1;
            if files.paths.len() < LISTED {
                files.paths.push(path.to_owned());
            }
        }
        files
    }

    /// Returns whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A path that was left out, and the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The path.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// The receipt of a turn: what it sent, and the cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The number of the turn in its thread.
    pub turn: u32,
    /// The number of the epoch.
    pub epoch: u32,
    /// The number of tokens of each part of the prompt, as Tiro counts them (o200k).
    pub tokens: BTreeMap<String, usize>,
    /// The context window.
    pub window: usize,
    /// The number of tokens at the beginning of the prompt that are the same as in the previous prompt.
    pub unchanged_prefix: usize,
    /// Files that were sent whole.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub sent: Files,
    /// Files whose changes were sent.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub diffed: Files,
    /// Files that are gone. The assistant was told so.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub removed: Files,
    /// The number of files that the assistant already has in their current form.
    pub unchanged: usize,
    /// Files that can be searched instead of read.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub overflow: Files,
    /// Files that were attached to this turn only.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub attached: Files,
    /// Files that lost their place in the prompt.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub moved: Files,
    /// Paths that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// The number of further paths that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_more: usize,
    /// Secrets that were replaced, by file or part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, usize>,
    /// The reason why everything was sent again, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_epoch: Option<String>,
    /// The number of tokens that this turn saved: the tokens that all files would have taken, minus the tokens that
    /// were added for files.
    pub saved: usize,
    /// The functions that the assistant called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Ran>,
    /// The numbers that the provider reports for all rounds: tokens sent, tokens read from its cache, and tokens
    /// received.
    pub reported: Reported,
    /// Lines that say what was sent where, and its cost.
    pub disclosures: Vec<String>,
    /// Tiro's own time in milliseconds, without the assistant's time.
    pub own_ms: u64,
    /// Whether the assistant has no file and no image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_files: bool,
    /// Other remarks, each of which is a sentence without a full stop. Remarks about the prompt come first, then those
    /// about the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// How many of `notices` are about the prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub about_prompt: usize,
}

/// Returns whether a number is 0, so that it is not stored.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Numbers of tokens that a provider reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Tokens sent.
    pub input: u64,
    /// Tokens sent that the provider read from its cache.
    pub cached: u64,
    /// Tokens received.
    pub output: u64,
    /// Whether a number is Tiro's upper bound, because the provider reported no number or an implausible one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimate: bool,
}

impl Receipt {
    /// Adds the plan's decisions about files. Files that are searched are named only if they are not the same as
    /// before.
    pub fn add_plan(&mut self, plan: &Plan, has_other_overflow: bool) {
        let of = |part: Part| {
            Files::of(plan.sendings.iter().filter(|sent| sent.part == part).map(|sent| sent.path.as_str()))
        };
        self.sent = of(Part::File);
        self.diffed = of(Part::Change);
        self.removed = of(Part::Removal);
        self.unchanged = plan.unchanged.len();
        self.overflow = Files::of(plan.overflow.iter().map(String::as_str));
        if !has_other_overflow {
            self.overflow.paths.clear();
        }
        self.moved = Files::of(plan.moved.iter().map(|Moved { path, .. }| path.as_str()));
        self.new_epoch = plan.new_epoch.filter(|_| !self.sent.is_empty()).map(|why| reason(why).to_owned());
        self.saved = plan.whole.saturating_sub(plan.appended);
    }

    /// Adds the numbers of secrets that were replaced in the files that `plan` sends. `found` contains these numbers,
    /// keyed by path.
    pub fn add_redacted(&mut self, plan: &Plan, found: &BTreeMap<String, usize>) {
        let sent = plan.sendings.iter().filter_map(|sent| found.get_key_value(&sent.path));
        self.redacted.extend(sent.map(|(path, count)| (path.clone(), *count)));
    }

    /// Shortens the lists: the first entries of each list stay, and the rest is counted.
    pub fn shorten(&mut self) {
        self.skipped_more += self.skipped.len().saturating_sub(LISTED);
        self.skipped.truncate(LISTED);
        if let Some((first_of_rest, _)) = self.redacted.iter().nth(LISTED) {
            let rest = self.redacted.split_off(&first_of_rest.clone());
            let places = counted(rest.len(), "other place", "other places");
            self.redacted.insert(places, rest.values().sum());
        }
        let remarks = self.notices.len().saturating_sub(LISTED);
        if remarks > 0 {
            // Remarks about the answer stay as far as there is room for them.
            let of_prompt = remarks.min(self.about_prompt);
            self.notices.drain(self.about_prompt - of_prompt..self.about_prompt);
            self.about_prompt -= of_prompt;
            self.notices.truncate(LISTED);
            self.notices.push(format!("{} are not shown", counted(remarks, "more remark", "more remarks")));
        }
    }
}

/// Returns the reason for a new epoch, in words for the caller.
fn reason(why: Why) -> &'static str {
    match why {
        Why::Outdated => {
            "outdated copies and diffs took more than a third of the window, so all files were sent again"
        }
        Why::Full => {
            "the prompt would not have fitted, so outdated copies were dropped and all files were sent again"
        }
        Why::Evicted => "stored copies had been removed to save space, so all files were sent again",
    }
}

impl Files {
    /// Returns the number of files and the first paths as text: `3 files (a.rs, b.rs, c.rs)`.
    fn text(&self) -> String {
        let count = counted(self.count, "file", "files");
        if self.paths.is_empty() {
            return count;
        }
        let more = if self.count > self.paths.len() { ", …" } else { "" };
        format!("{count} ({}{more})", envelope::names(&self.paths))
    }
}

impl Receipt {
    /// Returns the receipt as lines of text.
    pub fn text(&self) -> String {
        let total: usize = self.tokens.values().sum();
        let parts: Vec<String> =
            self.tokens.iter().map(|(name, count)| format!("{name} {}", thousands(*count as u64))).collect();
        let mut text = format!(
            "Turn {}: {} of {} tokens of the window ({})",
            self.turn,
            thousands(total as u64),
            thousands(self.window as u64),
            parts.join(", ")
        );
        if self.unchanged_prefix > 0 {
            text += &format!("; the first {} are the prompt before", thousands(self.unchanged_prefix as u64));
        }
        text.push('.');
        let files = [
            ("sent whole", &self.sent),
            ("sent as changes", &self.diffed),
            ("reported as gone", &self.removed),
            ("to be searched, because the room that is left is kept for later turns", &self.overflow),
            ("attached to this turn only, to be searched", &self.attached),
            ("moved from the prompt to the search", &self.moved),
        ];
        for (said, files) in files.iter().filter(|(_, files)| !files.is_empty()) {
            text += &format!("\n{}: {}.", capitalised(said), files.text());
        }
        if self.unchanged > 0 {
            text += &format!(
                "\nUnchanged, so not added to the prompt again: {}; {} tokens saved.",
                counted(self.unchanged, "file", "files"),
                thousands(self.saved as u64)
            );
        }
        for Skipped { path, why } in &self.skipped {
            text += &format!("\nLeft out: {}: {}.", envelope::name(path), envelope::name(why));
        }
        if self.skipped_more > 0 {
            text += &format!("\nLeft out: {} more.", self.skipped_more);
        }
        if !self.redacted.is_empty() {
            let all: usize = self.redacted.values().sum();
            let places: Vec<String> = self
                .redacted
                .iter()
                .map(|(place, count)| format!("{} {count}", envelope::name(place)))
                .collect();
            text += &format!("\nSecrets replaced: {all} ({}).", places.join(", "));
        }
        if let Some(why) = &self.new_epoch {
            text += &format!("\nSent again: {why}.");
        }
        self.functions.iter().for_each(|ran| text += &called(ran));
        if self.without_files {
            text += &format!("\n{WITHOUT_FILES}.");
        }
        let Reported { input, cached, output, is_estimate } = self.reported;
        if input > 0 {
            let cached = if cached > 0 {
                format!(", {} of them from its cache", thousands(cached))
            } else {
                String::new()
            };
            let (input, output) = (thousands(input), thousands(output));
            text += &match is_estimate {
                true => format!(
                    "\nAt most {input} tokens were sent and {output} received; the provider reported no usable count."
                ),
                false => format!("\nThe provider counted {input} tokens sent{cached}, {output} received."),
            };
        }
        for disclosure in &self.disclosures {
            text += &format!("\n{}.", capitalised(disclosure));
        }
        for notice in partial::others(&self.notices) {
            text += &format!("\nNote: {notice}.");
        }
        text
    }
}

/// Returns `text` with its first letter in upper case.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the line that describes a call of a function.
fn called(ran: &Ran) -> String {
    let result = match &ran.error {
        Some(why) => format!("failed: {why}"),
        None => format!("{} tokens", thousands(ran.tokens as u64)),
    };
    let (about, result) = (envelope::name(&ran.about), envelope::name(&result));
    format!("\nIt called {} ({about}): {result}.", ran.function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened_and_the_rest_is_counted() {
        let skipped = |n: usize| Skipped { path: format!("{n}.bin"), why: "is binary".to_owned() };
        let mut receipt = Receipt {
            skipped: (0..100).map(skipped).collect(),
            redacted: (0..100).map(|n| (format!("{n:03}.rs"), 2)).collect(),
            notices: (0..100).map(|n| format!("remark {n}")).collect(),
            ..Receipt::default()
        };
        receipt.shorten();
        assert_eq!((receipt.skipped.len(), receipt.skipped_more), (LISTED, 80));
        assert_eq!((receipt.redacted.len(), receipt.redacted["80 other places"]), (LISTED + 1, 160));
        assert_eq!(
            (receipt.notices.len(), receipt.notices[LISTED].as_str()),
            (LISTED + 1, "80 more remarks are not shown")
        );
        let text = receipt.text();
        assert!(
            text.contains("\nLeft out: 80 more.") && text.contains("\nSecrets replaced: 200 ("),
            "{text}"
        );
        let mut receipt = Receipt {
            notices: (0..30)
                .map(|n| format!("remark {n}"))
                .chain(["the answer was cut".to_owned()])
                .collect(),
            about_prompt: 30,
            ..Receipt::default()
        };
        receipt.shorten();
        assert_eq!((receipt.about_prompt, receipt.notices[19].as_str()), (19, "the answer was cut"));
        let short = Receipt { redacted: BTreeMap::from([("a".to_owned(), 1)]), ..Receipt::default() };
        let mut same = short.clone();
        same.shorten();
        assert_eq!(same, short);
    }
}
