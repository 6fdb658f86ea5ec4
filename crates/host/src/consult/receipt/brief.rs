//! Makes a short receipt, which an agent gets with each answer. It contains the most important remarks and the number
//! of other remarks.

use super::{Files, Receipt, Reported, Skipped, WITHOUT_FILES, capitalised};
use crate::consult::functions::Ran;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::{counted, thousands};
use tiro_text::tokens;

/// The maximum number of items that a remark of a short receipt lists. Arbitrary.
const SHORT_LIST: usize = 4;

/// The maximum number of tokens of a remark in a short receipt, except the first remark. Arbitrary.
const SHORT_REMARK: usize = 40;

/// A part of a sentence is shown only if it has at least this many tokens. Arbitrary.
const LEAST_PART: usize = 6;

/// The number of tokens that a part of a sentence takes in addition to its own tokens.
const SLACK: usize = 3;

/// The number of tokens of the last line, which says that some remarks are not shown.
const REST_TOKENS: usize = 16;

/// A remark of a short receipt: a sentence, and a list of the things that it counts.
struct Remark {
    /// The sentence without a full stop.
    head: String,
    /// The things that the sentence counts, as far as they are known. Each is a text.
    listed: Vec<String>,
    /// A shorter version of `listed`, for little room; empty if there is none.
    short: Vec<String>,
    /// Whether `listed` contains everything.
    is_whole: bool,
}

impl Remark {
    fn of(head: String) -> Remark {
        Remark { head, listed: Vec::new(), short: Vec::new(), is_whole: true }
    }

    /// Returns the remark about `files`; `None` if there are none.
    fn files(said: &str, files: &Files) -> Option<Remark> {
        let head = format!("{said}: {}", counted(files.count, "file", "files"));
        let listed: Vec<String> = files.paths.iter().map(|path| envelope::name(path).into_owned()).collect();
        (!files.is_empty()).then_some(Remark {
            is_whole: listed.len() == files.count,
            listed,
            ..Remark::of(head)
        })
    }

    /// Returns the line with as much of the list as fits into `room` tokens. Also returns whether the line shows
    /// everything. Returns `None` if not even the sentence fits.
    fn line(&self, room: usize) -> Option<(String, bool)> {
        let of = |list: &[String], is_full: bool| {
            let lines = (1..=list.len().min(SHORT_LIST)).rev().map(|shown| {
                let is_all = shown == list.len() && self.is_whole;
                let more = if is_all { "" } else { "; …" };
                (format!("\n{} ({}{more}).", self.head, list[..shown].join("; ")), is_all && is_full)
            });
            lines.collect::<Vec<_>>()
        };
        let bare = (format!("\n{}.", self.head), self.listed.is_empty() && self.is_whole);
        let lines = of(&self.listed, true).into_iter().chain(of(&self.short, false)).chain([bare]);
        if let Some(fits) = lines.into_iter().find(|(line, _)| tokens::count(line) <= room) {
            return Some(fits);
        }
        // A sentence without a list may itself be long, for example if it names a call.
        let part = tokens::truncate(&self.head, room.saturating_sub(SLACK));
        let is_worth_it = tokens::count(part) >= LEAST_PART;
        is_worth_it.then(|| (format!("\n{}…", part.trim_end()), false))
    }
}

impl Receipt {
    /// Returns the receipt as text of at most `most` tokens (o200k). If the whole receipt doesn't fit, the text
    /// contains the most important remarks, the number of other remarks, and the name of the tool that shows them.
    pub fn brief(&self, most: usize) -> String {
        let whole = self.text();
        if tokens::count(&whole) <= most {
            return whole;
        }
        let mut text = format!("Turn {}.", self.turn);
        let (mut left, all) = (0, self.remarks());
        for (place, remark) in all.iter().enumerate() {
            // The first remark says what was sent and how much it cost, so it may take more room than the others.
            let share = if place == 0 { most } else { SHORT_REMARK };
            let room = most.saturating_sub(tokens::count(&text) + REST_TOKENS).min(share);
            match remark.line(room) {
                Some((line, is_whole)) => {
                    text += &line;
                    left += usize::from(!is_whole);
                }
                None => left += 1,
            }
        }
        let rest = match left {
            0 => "More: describe_session.".to_owned(),
            _ => format!("{} in part or not shown: describe_session.", counted(left, "remark", "remarks")),
        };
        text += &format!("\n{rest}");
        text
    }

    /// Returns the remarks of a short receipt, the most important first.
    fn remarks(&self) -> Vec<Remark> {
        let sentence = |text: &String| Remark::of(capitalised(text));
        let mut remarks: Vec<Remark> = self.disclosures.iter().map(sentence).collect();
        // Notices about the answer come before those about the prompt, because there may be many notices about single
        // files in the prompt.
        let (about_prompt, about_answer) = self.notices.split_at(self.about_prompt.min(self.notices.len()));
        remarks.extend(partial::others(about_answer).rev().map(sentence));
        if !self.redacted.is_empty() {
            // The list of places with secrets would take too much room.
            let all: usize = self.redacted.values().sum();
            remarks.push(Remark { is_whole: false, ..Remark::of(format!("Secrets replaced: {all}")) });
        }
        let skipped = self.skipped.len() + self.skipped_more;
        if skipped > 0 {
            let said = |skipped: &Skipped| {
                let why = skipped.why.split("; ").next().unwrap_or_default();
                format!("{} {}", envelope::name(&skipped.path), envelope::name(why))
            };
            let names = self.skipped.iter().map(|skipped| envelope::name(&skipped.path).into_owned());
            remarks.push(Remark {
                head: format!("Left out: {}", counted(skipped, "path", "paths")),
                listed: self.skipped.iter().map(said).collect(),
                short: names.collect(),
                is_whole: self.skipped_more == 0,
            });
        }
        if self.without_files {
            remarks.push(Remark::of(WITHOUT_FILES.to_owned()));
        }
        remarks.extend(about_prompt.iter().rev().map(sentence));
        remarks.extend(self.new_epoch.iter().map(|why| Remark::of(format!("Sent again: {why}"))));
        remarks.extend(Remark::files("Moved to the search", &self.moved));
        let failed = self.functions.iter().filter(|ran| ran.error.is_some()).count();
        if !self.functions.is_empty() {
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            let calls = counted(self.functions.len(), "function call", "function calls");
            let about = |ran: &Ran| format!("{} {}", ran.function, envelope::name(&ran.about));
            remarks.push(Remark {
                head: format!("It made {calls}{failed}"),
                listed: self.functions.iter().map(about).collect(),
                short: Vec::new(),
                is_whole: true,
            });
        }
        for (said, files) in [
            ("Sent whole", &self.sent),
            ("Sent as changes", &self.diffed),
            ("Reported as gone", &self.removed),
            ("To be searched", &self.overflow),
            ("Attached", &self.attached),
        ] {
            remarks.extend(Remark::files(said, files));
        }
        if self.unchanged > 0 {
            let (files, saved) = (counted(self.unchanged, "file", "files"), thousands(self.saved as u64));
            remarks.push(Remark::of(format!("Unchanged: {files}; {saved} tokens saved")));
        }
        let total: usize = self.tokens.values().sum();
        let (total, window) = (thousands(total as u64), thousands(self.window as u64));
        remarks.push(Remark::of(format!("The prompt has {total} of {window} tokens")));
        let Reported { input, output, .. } = self.reported;
        if input > 0 {
            let (input, output) = (thousands(input), thousands(output));
            remarks.push(Remark::of(format!("The provider counted {input} tokens sent, {output} received")));
        }
        remarks
    }
}
