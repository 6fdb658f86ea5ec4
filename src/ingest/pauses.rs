//! What was said while capture was paused, and what tells of it later.
//!
//! It stands in transcripts and is known by its time. In doubt it is kept out: a line without a time that may lie in a
//! pause, what a tool printed that ran into one, and a summary or title of a session that one lies in, which repeats what
//! was said before it.

use crate::engine::Engine;
use crate::import::transcript::Entry;
use crate::memory::Millis;
use crate::project::OpenProject;
use crate::spool::Spool;

/// How far back a summary may reach that a transcript begins with, in milliseconds: Claude Code keeps a session that can
/// be gone on with for 30 days.
const REACH: Millis = 30 * 24 * 60 * 60 * 1000;

/// The pauses of a project and of all.
pub(crate) struct KeptOut {
    pauses: Vec<(Millis, Millis)>,
}

impl KeptOut {
    /// Reads the pauses.
    pub(crate) fn of(engine: &Engine, project: &OpenProject) -> KeptOut {
        let mut pauses = engine.spool(project).pauses();
        pauses.extend(Spool::everywhere(&engine.config().data_dir).pauses());
        KeptOut { pauses }
    }

    /// Whether something is kept out that was said in a session which began at `first`.
    pub(crate) fn said(&self, said: &Entry, first: Option<Millis>) -> bool {
        // It repeats what was said since then.
        let since = if said.is_summary { said.since.min(first) } else { said.since };
        self.between(since, said.until)
    }

    /// Whether the title is kept out of a session that began at `first` and was read to `last`.
    pub(crate) fn title(&self, first: Option<Millis>, last: Option<Millis>) -> bool {
        self.between(first, last)
    }

    /// Whether a pause lies between these times, which may be the same; `None` is as far away as can be.
    fn between(&self, since: Option<Millis>, until: Option<Millis>) -> bool {
        let (since, until) = (since.unwrap_or(Millis::MIN), until.unwrap_or(Millis::MAX));
        // Clocks are set back.
        let (since, until) = (since.min(until), since.max(until));
        self.pauses.iter().any(|(from, to)| *from <= until && since < *to)
    }
}

/// Returns when a session began whose transcript begins with `said`.
pub(crate) fn began(said: &Entry) -> Option<Millis> {
    match said.is_summary {
        // Of another session, that this one goes on from.
        true => said.since.map(|since| since.saturating_sub(REACH)),
        false => said.since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_lie_in_a_pause_is_kept_out() {
        let kept_out = KeptOut { pauses: vec![(100, 200)] };
        for (since, until, expected) in [
            (Some(99), Some(99), false),
            (Some(100), Some(100), true),
            (Some(200), Some(200), false),
            (Some(50), Some(150), true),
            (Some(50), Some(300), true),
            (Some(300), Some(150), true),
            (Some(200), None, false),
            (Some(50), None, true),
            (None, Some(99), false),
            (None, Some(100), true),
            (None, None, true),
        ] {
            assert_eq!(kept_out.between(since, until), expected, "{since:?} {until:?}");
        }
        assert!(!KeptOut { pauses: Vec::new() }.between(None, None));
    }
}
