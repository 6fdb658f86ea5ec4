//! Writes the answer as text.

use super::{BY_QUERY, Match, Output};
use tiro_base::envelope;
use tiro_base::humanize::{self, counted};

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let memories = counted(self.count, "memory", "memories");
        let what = format!("{memories} ({})", counted(self.tokens, "token", "tokens"));
        let ids = if self.ids.is_empty() { String::new() } else { format!(": {}", self.ids.join(", ")) };
        let operation = self.operation.as_deref().unwrap_or_default();
        let mut text = match self.done.as_str() {
            "undone" => format!("Brought back {what}{ids}."),
            "would_undo" => format!("Would bring back {what}{ids}. Nothing was changed."),
            "would_forget" if !self.matches.is_empty() => {
                let line = |each: &Match| format!("{}: {}\n", each.id, each.text);
                let body: String = self.matches.iter().map(line).collect();
                format!("Would forget {what}:\n{}Nothing was changed.", envelope::wrap(&self.secret, &body))
            }
            "would_forget" => format!("Would forget {what}{ids}. Nothing was changed."),
            "purged" => {
                let before = match self.forgotten_before {
                    0 => String::new(),
                    count => format!(", {count} of them forgotten before"),
                };
                format!(
                    "Removed {what} for good{before}{ids}. Backups and exports that you made yourself may \
                     still hold {}.",
                    if self.count == 1 { "it" } else { "them" }
                )
            }
            _ => format!(
                "Forgot {what}{ids}. To bring {} back: undo `{operation}`.",
                if self.count == 1 { "it" } else { "them" }
            ),
        };
        let others = self.authors.join(", ");
        if self.is_connected && !others.is_empty() && matches!(self.done.as_str(), "forgotten" | "purged") {
            text += &format!(
                "\nSome of this was shared by {others}: it is hidden on this machine. For the others, only who \
                 shared it or an admin forgets it."
            );
        }
        if self.left_out > 0 {
            let others = counted(self.left_out, "match", "matches");
            text += &format!("\nNot forgotten: {others} that fit less well; to forget them, give their ids.");
        }
        if !self.strays.is_empty() {
            let stores = counted(self.strays.len(), "store", "stores");
            let named = humanize::some(&self.strays);
            text += &format!(
                "\n{stores} without a registered project may still hold the text and can be deleted: {named}."
            );
        }
        if self.forgotten_left_out > 0 {
            let others = counted(self.forgotten_left_out, "forgotten memory", "forgotten memories");
            text += &format!(
                "\nNot removed yet: {others} with these words. Repeat the call for the next {BY_QUERY}."
            );
        }
        if !self.kept.is_empty() {
            let kept = humanize::some(&self.kept);
            text += &format!("\nNot forgotten, because only who shared it or an admin does that: {kept}.");
        }
        if !self.unknown.is_empty() {
            text += &format!("\nNo memory is called {}.", humanize::some(&self.unknown));
        }
        text
    }
}
