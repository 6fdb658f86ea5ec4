//! Who sees what a caller saves in a project.

use tiro_base::memory::{Draft, Kind, Provenance};
use tiro_base::scope::Visibility;

/// Who sees what a caller saves in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Everyone who sees the project. So it is if the project is shared with nobody.
    #[default]
    Everyone,
    /// The caller alone.
    Alone,
    /// Everyone, if it is of one of these kinds; otherwise the caller alone.
    ByKind(Vec<Kind>),
}

impl Placement {
    /// Returns who sees a memory of this kind that the caller asked to store. `None` leaves it to what the memory comes
    /// from.
    pub fn of_kind(&self, kind: Kind) -> Option<Visibility> {
        match self {
            Placement::Everyone => None,
            Placement::ByKind(kinds) if kinds.contains(&kind) => Some(Visibility::Project),
            Placement::Alone | Placement::ByKind(_) => Some(Visibility::Private),
        }
    }

    /// Returns who sees a draft. What a draft says itself counts if the caller shares memories at all. What is computed
    /// from other memories is as private as they are. What belongs to a conversation is private unless conversations are
    /// shared, whatever its kind is: nobody asked to share a plan that stands in a transcript.
    pub(super) fn of(&self, draft: &Draft) -> Option<Visibility> {
        match self {
            Placement::Everyone => draft.visibility,
            Placement::Alone => Some(Visibility::Private),
            Placement::ByKind(_) if draft.visibility.is_some() => draft.visibility,
            Placement::ByKind(_) if draft.provenance == Provenance::Derived => None,
            Placement::ByKind(kinds) if draft.session.is_some() && !kinds.contains(&Kind::Message) => {
                Some(Visibility::Private)
            }
            Placement::ByKind(_) => self.of_kind(draft.kind),
        }
    }

    /// Returns who sees a draft of a backup that says `said`: what would not be shared now is private.
    pub(super) fn of_restored(&self, kind: Kind, said: Option<Visibility>) -> Option<Visibility> {
        match self.of_kind(kind) {
            Some(Visibility::Private) => Some(Visibility::Private),
            _ => said,
        }
    }

    /// Returns who sees a session of which a client or a backup says `said`.
    pub(super) fn of_session(&self, said: Option<Visibility>) -> Option<Visibility> {
        self.of_restored(Kind::Message, said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::scope::SessionId;

    #[test]
    fn what_is_saved_is_private_unless_its_kind_is_shared() {
        const PRIVATE: Option<Visibility> = Some(Visibility::Private);
        const SHARED: Option<Visibility> = Some(Visibility::Project);
        let by_kind = Placement::ByKind(vec![Kind::Decision, Kind::Commit]);
        let talks = Placement::ByKind(vec![Kind::Message]);
        let draft = |kind, provenance, visibility| {
            let mut draft = Draft::new(kind, provenance, "text", 1);
            draft.visibility = visibility;
            draft
        };
        let said = Provenance::UserSaid;
        let mut of_talk = draft(Kind::Decision, Provenance::Imported, None);
        of_talk.session = SessionId::parse("talk");
        assert_eq!(talks.of(&of_talk), PRIVATE);
        let cases = [
            (of_talk, PRIVATE, PRIVATE),
            // The kind, its provenance and what the draft says, and who sees it: by kind, and alone.
            (draft(Kind::Decision, said, None), SHARED, PRIVATE),
            (draft(Kind::Commit, Provenance::GitCommit, None), SHARED, PRIVATE),
            (draft(Kind::Message, said, None), PRIVATE, PRIVATE),
            (draft(Kind::Message, Provenance::Imported, None), PRIVATE, PRIVATE),
            (draft(Kind::Decision, Provenance::Derived, None), None, PRIVATE),
            (draft(Kind::Summary, Provenance::Derived, None), None, PRIVATE),
            (draft(Kind::Decision, said, PRIVATE), PRIVATE, PRIVATE),
            (draft(Kind::Decision, said, SHARED), SHARED, PRIVATE),
        ];
        for (draft, shared, alone) in cases {
            assert_eq!(by_kind.of(&draft), shared, "{draft:?}");
            assert_eq!(Placement::Alone.of(&draft), alone, "{draft:?}");
            assert_eq!(Placement::Everyone.of(&draft), draft.visibility);
        }
        assert_eq!((by_kind.of_session(None), talks.of_session(None)), (PRIVATE, None));
        assert_eq!(by_kind.of_restored(Kind::Message, SHARED), PRIVATE);
        assert_eq!(by_kind.of_restored(Kind::Decision, SHARED), SHARED);
        assert_eq!(
            (Placement::Alone.of_session(SHARED), Placement::Everyone.of_session(None)),
            (PRIVATE, None)
        );
    }
}
