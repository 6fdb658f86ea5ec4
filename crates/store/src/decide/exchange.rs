//! Decides what two stores that exchange memories agree on: which of two states of a memory holds, under which id and
//! session name a memory travels, and which changes of a peer are admitted.
//!
//! The state of a memory has two registers: the mark with the importance, and whether the memory is forgotten. Each
//! register has the [`Stamp`] of its last change, and the later change wins. A purge wins over everything. So the
//! states of two stores become equal in whatever order, and however often, changes arrive. The text of a memory never
//! changes, so there is nothing to decide about it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

pub use crate::exchange::stamp::Stamp;
use crate::{ExchangedState, Incoming, MergeOutcome, MergeRights};
use tiro_base::error::{Error, Result};
use tiro_base::memory::{Kind, MemoryId, Millis, Provenance};
use tiro_base::scope::{AuthorId, Scope, SessionId, Visibility};

/// The longest name of a session, in bytes, as in [`SessionId`].
const LONGEST_NAME: usize = 200;

/// What is put after the name of an author of a peer who has the name of this store's own user.
const ELSEWHERE: &str = "@team";

impl ExchangedState {
    /// Returns the state on which two stores agree that have the states `a` and `b` of a memory.
    ///
    /// For each register, the later change holds. Of two changes with equal stamps, a forgotten memory stays forgotten, a
    /// marked one stays marked, and the larger importance holds. A purge wins over everything. The function is
    /// commutative, associative and idempotent.
    pub fn merged(a: &ExchangedState, b: &ExchangedState) -> ExchangedState {
        let importance = |state: &ExchangedState| state.importance.unwrap_or(-1.0);
        let mark = |state: &ExchangedState| (state.marked_at, state.is_marked);
        let by_mark = mark(a).cmp(&mark(b)).then(importance(a).total_cmp(&importance(b)));
        let mark = if by_mark == Ordering::Less { b } else { a };
        let forgotten = |state: &ExchangedState| (state.forgotten_at, state.is_forgotten);
        let forgotten = if forgotten(a) < forgotten(b) { b } else { a };
        ExchangedState {
            is_marked: mark.is_marked,
            importance: mark.importance,
            marked_at: mark.marked_at,
            is_forgotten: forgotten.is_forgotten,
            forgotten_at: forgotten.forgotten_at,
            is_purged: a.is_purged || b.is_purged,
        }
    }

    /// Returns whether the memory is neither forgotten nor purged.
    pub fn is_living(&self) -> bool {
        !self.is_forgotten && !self.is_purged
    }

    /// Returns whether a stamp of the state can't be believed at `now`. A caller who gets such a state from a peer must
    /// not merge it.
    pub fn is_ahead(&self, now: Millis) -> bool {
        self.marked_at.is_ahead(now) || self.forgotten_at.is_ahead(now)
    }
}

/// The part of a peer's state that is admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admitted {
    /// The state that may be merged with the known one.
    pub state: ExchangedState,
    /// Whether a change was refused that would have changed the known state.
    pub is_refused: bool,
}

/// Returns the part of `incoming` that a peer with `rights` may change in a memory whose state is `known`. `is_own` says
/// that the memory belongs to the one for whom the peer speaks, who may change everything.
pub fn admitted(
    known: &ExchangedState,
    incoming: &ExchangedState,
    is_own: bool,
    rights: MergeRights,
) -> Admitted {
    let mut state = *incoming;
    if !is_own && !rights.marks_others {
        (state.is_marked, state.importance, state.marked_at) =
            (known.is_marked, known.importance, known.marked_at);
    }
    if !is_own && !rights.forgets_others {
        state = as_marked(state, known);
    }
    let all = ExchangedState::merged(known, incoming);
    Admitted { state, is_refused: all != ExchangedState::merged(known, &state) }
}

/// Returns what `state` changes in a memory that it may not forget: its mark, and nothing if it purges another person's
/// memory with the same id.
fn as_marked(state: ExchangedState, known: &ExchangedState) -> ExchangedState {
    if state.is_purged {
        return *known;
    }
    let ExchangedState { is_forgotten, forgotten_at, is_purged, .. } = *known;
    ExchangedState { is_forgotten, forgotten_at, is_purged, ..state }
}

/// Checks that changes can be merged by a reader whom the peer knows by `name`, if there is a name.
///
/// # Errors
///
/// [`BadInput`](tiro_base::error::Kind::BadInput) if a prepared memory has another id or another kind than its change,
/// and if there is a name but the reader isn't the tenant.
pub fn check(scope: &Scope, name: Option<&AuthorId>, incoming: &[Incoming]) -> Result<()> {
    if name.is_some() && !scope.is_own() {
        return Err(Error::bad_input("only the user of a store can exchange memories under another name"));
    }
    let is_other = |each: &&Incoming| {
        let content = each.content.as_ref();
        content.is_some_and(|content| content.memory.id != each.id || content.memory.draft.kind != each.kind)
    };
    match incoming.iter().find(is_other) {
        Some(each) => {
            Err(Error::bad_input(format!("the content of the change of `{}` is of another memory", each.id)))
        }
        None => Ok(()),
    }
}

/// Returns how many of the first changes can be merged in one transaction. A memory that one of them purges has to be gone
/// before another person's memory with its id comes.
pub fn at_once(incoming: &[Incoming]) -> usize {
    let mut purged = HashMap::new();
    for (place, Incoming { id, author, state, content, .. }) in incoming.iter().enumerate() {
        if content.is_some() && purged.get(id).is_some_and(|by| *by != author) {
            return place;
        }
        if state.is_purged {
            purged.insert(id, author);
        }
    }
    incoming.len()
}

/// Returns whether a memory that is not known here is the reader's own. Returns `None` if it must not be stored: something
/// private of others never is, and neither is anything of others for a reader who sees only what is private.
pub fn is_own(scope: &Scope, author: &AuthorId, visibility: Visibility) -> Option<bool> {
    let is_own = *author == scope.reader;
    (is_own || (visibility != Visibility::Private && !scope.hides_shared())).then_some(is_own)
}

/// What a store knows of the memory of an incoming change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownState {
    /// Its state.
    pub state: ExchangedState,
    /// Whether its content is here, living or forgotten.
    pub is_here: bool,
    /// Whether the change comes in the name of the memory's author.
    pub is_by_author: bool,
    /// Whether the content that came, if any, has the text that is stored here.
    pub is_same: bool,
    /// Whether the peer's last change set the state, so that the peer doesn't get it.
    pub is_of_peer: bool,
}

impl KnownState {
    /// Returns what is known of a memory that is not here: only its state.
    pub fn absent(state: ExchangedState, is_of_peer: bool) -> KnownState {
        KnownState { state, is_here: false, is_by_author: true, is_same: true, is_of_peer }
    }

    /// Returns what is known of a memory that was purged before stores exchanged memories. Peers were not told of it.
    pub fn purged() -> KnownState {
        KnownState::absent(ExchangedState { is_purged: true, ..ExchangedState::default() }, true)
    }

    /// Returns what is known of a commit that is here under another id. Nothing is merged with it.
    pub fn under_another_id() -> KnownState {
        let absent = KnownState::absent(ExchangedState::default(), false);
        KnownState { is_here: true, is_same: false, ..absent }
    }
}

/// What a store does with an incoming change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What becomes of the change.
    pub outcome: MergeOutcome,
    /// The state that the memory gets, under a new number; `None` if nothing is written.
    pub state: Option<ExchangedState>,
    /// Whether the content that came is stored.
    pub is_stored: bool,
    /// Whether the state is the one that came, so that the peer doesn't get it back.
    pub is_of_peer: bool,
}

/// Returns the form of a text in which the texts of two stores are compared. A store that can't store U+0000 has U+001A in
/// its place, and gives that out.
pub fn comparable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{1a}")) } else { Cow::Borrowed(text) }
}

/// Returns whether what is remembered of a memory that is not here counts for a change of `author`. It came in the name
/// `by`. A purge by the reader also keeps out what others have under the id.
pub fn counts(remembered: &ExchangedState, by: &AuthorId, author: &AuthorId, reader: &AuthorId) -> bool {
    by == author || (remembered.is_purged && by == reader)
}

/// Decides what a store does with an incoming change. `known` is what the store knows of the memory, and `is_own`
/// whether the memory belongs to the one for whom the peer speaks.
///
/// A memory is only forgotten in its author's name. Two people who both imported a commit have the same id for it, and
/// each keeps it until that person, or an administrator in that person's name, forgets it.
pub fn verdict(
    known: Option<KnownState>,
    incoming: &ExchangedState,
    has_content: bool,
    is_own: bool,
    rights: MergeRights,
) -> Verdict {
    let nothing = |outcome| Verdict { outcome, state: None, is_stored: false, is_of_peer: false };
    let may_store = is_own || rights.forgets_others;
    let Some(known) = known else {
        if !may_store {
            return nothing(MergeOutcome::Refused);
        }
        if !has_content && !is_own {
            // There is nothing to forget, and a memory of the reader that gets this id later must not be lost by it.
            return nothing(MergeOutcome::Known);
        }
        let is_stored = has_content && !incoming.is_purged;
        let outcome = if is_stored { MergeOutcome::Stored } else { MergeOutcome::Remembered };
        return Verdict { outcome, state: Some(*incoming), is_stored, is_of_peer: true };
    };
    if has_content && known.is_here && !known.is_same {
        return nothing(MergeOutcome::Conflict);
    }
    let incoming = match may_store && known.is_here && !known.is_by_author {
        true => &as_marked(*incoming, &known.state),
        false => incoming,
    };
    let Admitted { state: admitted, is_refused } = admitted(&known.state, incoming, is_own, rights);
    let state = ExchangedState::merged(&known.state, &admitted);
    let is_new = has_content && !known.is_here;
    let is_stored = is_new && may_store && !state.is_purged;
    let is_changed = state != known.state;
    // The peer may have another person's memory under this id, and lack this one.
    let is_of_peer = known.is_by_author && state == *incoming;
    let outcome = match () {
        () if is_refused || (is_new && !may_store) => MergeOutcome::Refused,
        () if is_stored => MergeOutcome::Stored,
        () if is_new => MergeOutcome::Purged,
        () if is_changed && known.is_here => MergeOutcome::Changed,
        () if is_changed => MergeOutcome::Remembered,
        () => MergeOutcome::Known,
    };
    // If the peer set the state that is known here and says something older now, it has lost what it said.
    let is_written = is_changed || is_stored || (known.is_of_peer && !is_of_peer);
    Verdict { outcome, state: is_written.then_some(state), is_stored, is_of_peer }
}

/// Returns whether memories of this kind and provenance are exchanged at all. The memory that stands for a session, and
/// the summary of a quarter or a commit, are not: each store makes its own from what it has, and replaces them.
pub fn is_exchanged(kind: Kind, provenance: Provenance) -> bool {
    !(provenance == Provenance::Derived && matches!(kind, Kind::Conversation | Kind::Summary))
}

/// Returns the id under which the memory `id` of the author that a peer calls `name` travels.
///
/// The same commit of two people is shown once, so commits keep their id. For other memories, the id depends on the name:
/// the first messages of two people's sessions `auth` have the same id on the machine of each.
pub fn exchange_id(name: &AuthorId, kind: Kind, id: &MemoryId) -> MemoryId {
    match kind {
        Kind::Commit => id.clone(),
        _ => {
            let name = name.as_str();
            MemoryId::derive(kind, None, &format!("exchanged:{}:{name}:{id}", name.len()))
        }
    }
}

/// Returns the id under which a store keeps a memory that travels under the id `id`, if the store has another memory with
/// this id that travels under another one.
pub fn id_beside(kind: Kind, id: &MemoryId) -> MemoryId {
    MemoryId::derive(kind, None, &format!("elsewhere:{id}"))
}

/// Returns the name under which the session `session` of the author that a peer calls `name` travels: `name/session`. If
/// that is too long for a name, its end is replaced by a hash.
pub fn sent_session(name: &AuthorId, session: &SessionId) -> SessionId {
    let whole = format!("{}/{session}", name.as_str());
    if let Some(fits) = SessionId::parse(&whole).filter(|parsed| parsed.as_str() == whole) {
        return fits;
    }
    let hash = blake3::hash(whole.as_bytes()).to_hex();
    let end = format!("~{}", &hash[..16]);
    let is_plain = |char: &char| !char.is_control();
    let mut cut: String = whole.chars().filter(is_plain).collect::<String>().trim_start().to_owned();
    while cut.len() + end.len() > LONGEST_NAME {
        cut.pop();
    }
    SessionId::parse(&(cut + &end)).expect("the name is short, not empty, and has no control characters")
}

/// Returns the name that a session, sent as `session`, gets in a store whose user the peer calls `name`. The user's own
/// sessions lose the prefix that [`sent_session`] adds.
pub fn kept_session(name: &AuthorId, session: &SessionId) -> SessionId {
    let own = session.as_str().strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('/'));
    own.and_then(SessionId::parse).unwrap_or_else(|| session.clone())
}

/// Returns the name by which a store knows the author whom a peer calls `author`. `name` is the peer's name for `user`,
/// whose store it is.
///
/// The user's own memories have the user's name. If the peer knows somebody else by that name, this other author is
/// called by the name with `@team`, so that nobody's memories pass for those of the user.
pub fn kept_author(name: &AuthorId, user: &AuthorId, author: &AuthorId) -> AuthorId {
    if author == name {
        return user.clone();
    }
    match is_ambiguous(user, author) {
        true => AuthorId::new(format!("{}{ELSEWHERE}", author.as_str())),
        false => author.clone(),
    }
}

/// Returns the name by which a peer knows the author whom a store calls `author`. The inverse of [`kept_author`].
pub fn sent_author(name: &AuthorId, user: &AuthorId, author: &AuthorId) -> AuthorId {
    if author == user {
        return name.clone();
    }
    let other = author.as_str().strip_suffix(ELSEWHERE).map(AuthorId::new);
    other.filter(|other| is_ambiguous(user, other)).unwrap_or_else(|| author.clone())
}

/// Returns whether a peer's author has the name of the user, or could be taken for a name that [`kept_author`] makes.
fn is_ambiguous(user: &AuthorId, author: &AuthorId) -> bool {
    author.as_str().trim_end_matches(ELSEWHERE) == user.as_str().trim_end_matches(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::stamp::MOST_AHEAD;
    use proptest::prelude::*;

    fn state() -> impl Strategy<Value = ExchangedState> {
        let stamp = || (0_i64..3).prop_map(Stamp::from_number);
        let importance = prop_oneof![Just(None), Just(Some(0.0)), Just(Some(0.5))];
        (any::<bool>(), importance, stamp(), any::<bool>(), stamp(), any::<bool>()).prop_map(
            |(is_marked, importance, marked_at, is_forgotten, forgotten_at, is_purged)| ExchangedState {
                is_marked,
                importance,
                marked_at,
                is_forgotten,
                forgotten_at,
                is_purged,
            },
        )
    }

    proptest! {
        #[test]
        fn states_merge_in_any_order_and_any_number_of_times(a in state(), b in state(), c in state()) {
            let merged = ExchangedState::merged;
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
            prop_assert_eq!(merged(&a, &a), a);
            prop_assert_eq!(merged(&merged(&a, &b), &b), merged(&a, &b));
        }

        #[test]
        fn a_later_change_of_one_register_leaves_the_other(a in state(), b in state(), now in 1_i64..9) {
            let forgotten = ExchangedState { is_forgotten: true, forgotten_at: b.forgotten_at.next(now), ..a };
            let all = ExchangedState::merged(&forgotten, &b);
            prop_assert!(all.is_forgotten);
            prop_assert_eq!(all.marked_at, a.marked_at.max(b.marked_at));
        }

        #[test]
        fn every_author_of_a_peer_has_a_name_of_their_own(author in "(ana|ines|bob)(@team){0,2}") {
            let (name, user) = (AuthorId::new("ana"), AuthorId::new("ines"));
            let author = AuthorId::new(author);
            let kept = kept_author(&name, &user, &author);
            prop_assert_eq!(kept == user, author == name);
            prop_assert_eq!(sent_author(&name, &user, &kept), author);
        }

        #[test]
        fn a_session_gets_its_name_back(name in "[a-z/]{1,8}", session in "[a-zé/ ]{1,90}") {
            prop_assume!(SessionId::parse(&session).is_some_and(|parsed| parsed.as_str() == session));
            let (name, session) = (AuthorId::new(name), SessionId::parse(&session).unwrap());
            let sent = sent_session(&name, &session);
            prop_assert!(sent.as_str().len() <= LONGEST_NAME);
            let whole = format!("{}/{session}", name.as_str());
            if whole.len() <= LONGEST_NAME {
                prop_assert_eq!(kept_session(&name, &sent), session);
            }
        }
    }

    #[test]
    fn a_stamp_is_later_than_the_last_one_whatever_the_clock_says() {
        let first = Stamp::NEVER.next(1000);
        assert_eq!(first.time(), 1000);
        assert!(first.next(1000) > first && first.next(5) > first && first.next(1001) > first.next(1000));
        assert!(Stamp::NEVER.next(-5) > Stamp::NEVER);
        assert_eq!(Stamp::from_number(first.number()), first);
        let last = Stamp::from_number(i64::MAX);
        assert_eq!(last.next(i64::MAX), last);
        assert!(last.is_ahead(1000) && !first.is_ahead(1000) && !Stamp::NEVER.next(MOST_AHEAD).is_ahead(0));
        assert!(Stamp::NEVER.next(MOST_AHEAD + 1).is_ahead(0));
    }

    #[test]
    fn others_marks_need_a_right_and_so_does_forgetting_what_is_others() {
        let known = ExchangedState::default();
        let at = Stamp::NEVER.next(7);
        let incoming = ExchangedState {
            is_marked: true,
            marked_at: at,
            is_forgotten: true,
            forgotten_at: at,
            ..ExchangedState::default()
        };
        let rights = |marks_others, forgets_others| MergeRights { marks_others, forgets_others };
        for (is_own, rights, marked, forgotten) in [
            (true, rights(false, false), true, true),
            (false, rights(false, false), false, false),
            (false, rights(true, false), true, false),
            (false, rights(false, true), false, true),
            (false, rights(true, true), true, true),
        ] {
            let Admitted { state, is_refused } = admitted(&known, &incoming, is_own, rights);
            assert_eq!((state.is_marked, state.is_forgotten), (marked, forgotten), "{is_own} {rights:?}");
            assert_eq!(is_refused, !(marked && forgotten), "{is_own} {rights:?}");
        }
        let same = admitted(&incoming, &incoming, false, rights(false, false));
        assert!(!same.is_refused, "nothing would change");
    }

    #[test]
    fn a_change_is_stored_remembered_or_given_back() {
        use MergeOutcome::{Changed, Conflict, Known, Purged, Refused, Remembered, Stored};
        let living = ExchangedState::default();
        let at = Stamp::NEVER.next(7);
        let forgotten = ExchangedState { is_forgotten: true, forgotten_at: at, ..living };
        let purged = ExchangedState { is_purged: true, ..living };
        let known = |state, is_here| KnownState {
            state,
            is_here,
            is_by_author: true,
            is_same: true,
            is_of_peer: false,
        };
        let in_anothers_name = KnownState { is_by_author: false, ..known(living, true) };
        let marked = ExchangedState { is_marked: true, marked_at: at, ..living };
        let purged_with_mark = ExchangedState { is_purged: true, ..marked };
        let other = KnownState { is_same: false, ..known(living, true) };
        let lost = KnownState { is_of_peer: true, ..known(forgotten, true) };
        for (known, incoming, has_content, is_own, outcome, state, is_stored, is_of_peer) in [
            (None, living, true, true, Stored, Some(living), true, true),
            (None, forgotten, false, true, Remembered, Some(forgotten), false, true),
            (None, living, true, false, Refused, None, false, false),
            (None, purged, false, false, Refused, None, false, false),
            (Some(in_anothers_name), purged, false, true, Known, None, false, false),
            (Some(in_anothers_name), forgotten, true, true, Known, None, false, false),
            (Some(in_anothers_name), marked, false, true, Changed, Some(marked), false, false),
            (Some(in_anothers_name), purged_with_mark, false, true, Known, None, false, false),
            (Some(in_anothers_name), forgotten, false, false, Refused, None, false, false),
            (Some(known(living, true)), purged_with_mark, false, false, Refused, None, false, false),
            (Some(known(living, true)), living, true, true, Known, None, false, true),
            (Some(known(living, true)), forgotten, false, true, Changed, Some(forgotten), false, true),
            (Some(known(forgotten, true)), living, true, true, Known, None, false, false),
            (Some(known(living, true)), forgotten, false, false, Refused, None, false, false),
            (Some(known(forgotten, false)), living, true, true, Stored, Some(forgotten), true, false),
            (Some(known(forgotten, false)), living, true, false, Refused, None, false, false),
            (Some(known(purged, false)), living, true, true, Purged, None, false, false),
            (Some(known(living, false)), forgotten, false, true, Remembered, Some(forgotten), false, true),
            (Some(other), forgotten, true, true, Conflict, None, false, false),
            (Some(lost), living, true, true, Known, Some(forgotten), false, false),
        ] {
            let rights = MergeRights { marks_others: false, forgets_others: false };
            let got = verdict(known, &incoming, has_content, is_own, rights);
            assert_eq!(got, Verdict { outcome, state, is_stored, is_of_peer }, "{known:?} {incoming:?}");
        }
    }

    #[test]
    fn a_commit_is_one_memory_and_what_two_people_said_is_not() {
        let [ana, bob] = ["ana", "bob"].map(AuthorId::new);
        let id = MemoryId::derive(Kind::Message, SessionId::parse("auth").as_ref(), "1");
        assert_eq!(exchange_id(&ana, Kind::Commit, &id), exchange_id(&bob, Kind::Commit, &id));
        assert_ne!(exchange_id(&ana, Kind::Message, &id), exchange_id(&bob, Kind::Message, &id));
        assert_ne!(exchange_id(&ana, Kind::Message, &id), id);
        assert_eq!(exchange_id(&ana, Kind::Message, &id), exchange_id(&ana, Kind::Message, &id));
    }

    #[test]
    fn the_sessions_of_two_people_stay_apart_however_long_their_names() {
        let [ana, bob] = ["ana", "bob"].map(AuthorId::new);
        let long = SessionId::parse(&"é".repeat(100)).unwrap();
        assert_ne!(sent_session(&ana, &long), sent_session(&bob, &long));
        let other = SessionId::parse(&format!("{}x", "é".repeat(99))).unwrap();
        assert_ne!(sent_session(&ana, &long), sent_session(&ana, &other));
        let auth = SessionId::parse("auth").unwrap();
        assert_eq!(sent_session(&ana, &auth).as_str(), "ana/auth");
        assert_eq!(kept_session(&bob, &sent_session(&ana, &auth)).as_str(), "ana/auth");
    }
}
