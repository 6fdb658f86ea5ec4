//! Writes the pointer: a line that tells the next session how much is remembered.

use crate::sources::Sources;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_intake::Intake;

/// Writes the pointer for the next session, with the counts of the project's memories.
pub async fn point(sources: &Sources, intake: &dyn Intake) -> Result<()> {
    let sizes = intake.sizes().await?;
    let mut parts = Vec::new();
    for (count, one, several) in [
        (sizes.commits, "commit", "commits"),
        (sizes.messages, "message", "messages"),
        (sizes.notes, "note", "notes"),
        (sizes.stashed, "stashed segment", "stashed segments"),
    ] {
        if count > 0 {
            parts.push(counted(count, one, several));
        }
    }
    if sizes.sessions > 0 && sizes.messages > 0 {
        let sessions = counted(sizes.sessions, "session", "sessions");
        let place = usize::from(sizes.commits > 0);
        parts[place] = format!("{} in {sessions}", parts[place]);
    }
    let text = if parts.is_empty() { "nothing yet".to_owned() } else { parts.join(", ") };
    sources.spool().set_pointer(&text)
}
