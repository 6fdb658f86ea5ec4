//! The answers about providers as text.

use super::{Changed, Output, Shown, Tested, word};
use crate::provider::spending::table;
use tiro_base::humanize::counted;

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.providers.is_empty() {
            return "No provider is configured: nothing leaves this machine, and summaries are made without a model.\n\
                    `tiro provider add NAME` adds one."
                .to_owned();
        }
        let mut text = String::new();
        for each in &self.providers {
            let role = match &each.name {
                name if *name == self.default => ", the default",
                name if *name == self.fallback => ", the fallback",
                _ => "",
            };
            let Shown { name, place, model, key, limits, discloses, .. } = each;
            let uses: Vec<&str> = each.uses.iter().map(|purpose| word(*purpose)).collect();
            let uses = if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") };
            if self.is_brief {
                text += &format!("{name:14} {model:28} {place:32} {uses}{role}\n");
                continue;
            }
            text += &format!(
                "{name}{role}\n  model {model} at {place}\n  asked for {uses}\n  leaves this machine: {discloses}\n  key {key}\n  limits {limits}\n"
            );
        }
        if self.is_brief {
            return text.trim_end().to_owned();
        }
        text += &match &self.summaries {
            Some(name) => format!("\nsummaries are made by {name}\n"),
            None => "\nsummaries are made without a model\n".to_owned(),
        };
        text += &match &self.embeddings {
            [prose, code] if prose == code => format!("texts are embedded by {prose}\n"),
            [prose, code] => format!("prose is embedded by {prose}, code by {code}\n"),
        };
        for fault in &self.idle {
            text += &format!("{fault}\n");
        }
        let limits = if self.limits.is_empty() { "none".to_owned() } else { self.limits.join(", ") };
        text += &format!("\nlimits for all: {limits}\n");
        match self.spending.is_empty() {
            true => text += "no requests so far",
            false => text += &format!("\n{}", table(&self.spending)),
        }
        text.trim_end().to_owned()
    }
}

impl Changed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Changed { name, file, changed, is_new, notices } = self;
        let mut text = match (changed, is_new) {
            (true, true) => format!("Provider {name}: added to {file}."),
            (true, false) => format!("Provider {name}: changed in {file}."),
            (false, _) => format!("Provider {name}: {file} has these settings already."),
        };
        for notice in notices {
            text += &format!("\n{notice}");
        }
        text
    }
}

impl Tested {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Tested { name, answer, ms, input, output, disclosure, .. } = self;
        let mut text = format!(
            "{name} answered `{answer}` after {ms} ms ({}, {output} received).\n{disclosure}",
            counted(*input as i64, "token sent", "tokens sent"),
        );
        for notice in &self.notices {
            text += &format!("\n{notice}");
        }
        text
    }
}
