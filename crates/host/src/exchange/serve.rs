//! The server's side: says who it is, takes changes and gives changes.
//!
//! The server trusts no line. Its author must be the one whose key came with it, its text is redacted and cut here, and
//! the rights of the author decide where it goes and what it may change. A line that is refused is reported, and spoils
//! no other one.

use std::collections::BTreeSet;

use super::arriving::{Models, ready};
use super::run::MOST_APART;
use crate::caller::WritingCaller;
use crate::engine::{Engine, Installation};
use crate::principals::Access;
use crate::project::WritableProject;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Visibility};
use tiro_store::decide::exchange;
use tiro_store::{Change, Incoming, MergeOutcome, MergeRights, NextChange, WantedChanges};
use tiro_sync::greeting::{Became, Greeting, Project, Received};
use tiro_sync::line::{self, Arrived, Misread, Vectors};
use tiro_sync::page::{End, FORMAT, LARGEST, Packer};

/// How many changes are read from the store at once. Arbitrary.
const BATCH: usize = 100;

/// The most ids and authors that are recorded of a request. Arbitrary.
const MOST_RECORDED: usize = 50;

/// The longest id of a device, in bytes.
const LONGEST_DEVICE: usize = 64;

/// Who exchanges changes of a project, and what they may do there.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The name of the author.
    pub author: AuthorId,
    /// What the key allows.
    pub access: Access,
    /// Whether the author may share memories in the project.
    pub may_write: bool,
    /// The kinds of memories that are shared in the project.
    pub kinds: Vec<Kind>,
    /// The id of the device, as the device says.
    pub device: String,
    /// Whether the author's private memories are exchanged, too.
    pub with_private: bool,
    /// How many pages the device has counted.
    pub pages: u64,
}

impl Guest {
    /// Returns the name under which the store knows the device. Nobody can take the name of another author's device.
    fn peer(&self) -> String {
        format!("{}:{}", self.author.as_str(), self.device)
    }

    /// Returns the changes that are given to the guest.
    fn wanted(&self) -> WantedChanges {
        let kinds = if self.with_private { Kind::ALL.to_vec() } else { self.kinds.clone() };
        WantedChanges { kinds, peer: Some(self.peer()), with_private: self.with_private }
    }

    /// Returns whether what the author saves with this key is taken.
    fn may_save(&self) -> bool {
        self.access >= Access::Write
    }

    /// Returns who sees a memory of this kind that the author sends, or why it isn't taken.
    fn visibility(&self, kind: Kind, shared: Visibility) -> Result<Visibility, &'static str> {
        match () {
            () if !self.may_save() => Err("the key allows only reading"),
            () if self.may_write && self.kinds.contains(&kind) => Ok(shared),
            () if self.with_private => Ok(Visibility::Private),
            () if self.may_write => Err("memories of this kind aren't shared in this project"),
            () => Err("you may only read this project"),
        }
    }
}

/// What a look for changes found.
pub enum Look {
    /// There are changes.
    Changed,
    /// There are none. The future is ready once it is worth looking again.
    Nothing(NextChange),
}

/// The memories that a request wrote or read, for the record of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The ids of the first memories.
    pub ids: Vec<String>,
    /// How many memories there were.
    pub count: usize,
    /// The names of their authors.
    pub authors: BTreeSet<String>,
}

impl Touched {
    fn add(&mut self, id: &MemoryId, author: &AuthorId) {
        self.count += 1;
        if self.ids.len() < MOST_RECORDED {
            self.ids.push(id.to_string());
        }
        if self.authors.len() < MOST_RECORDED {
            self.authors.insert(author.as_str().to_owned());
        }
    }
}

/// Returns whether `device` can be the id of a device.
pub fn is_device(device: &str) -> bool {
    (8..=LONGEST_DEVICE).contains(&device.len()) && device.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the server's greeting for `author`, with the projects that the author may see.
pub fn greet(
    engine: &Engine,
    installation: &Installation,
    author: &AuthorId,
    projects: Vec<Project>,
) -> Greeting {
    // Whoever replaces the database also replaces its secret, of which nothing can be computed from the id.
    let server = blake3::derive_key("tiro 2026 id of a server", &installation.secret);
    Greeting {
        tiro: env!("CARGO_PKG_VERSION").to_owned(),
        format: FORMAT,
        oldest_format: FORMAT,
        server: server[..16].iter().map(|byte| format!("{byte:02x}")).collect(),
        user: author.as_str().to_owned(),
        now: engine.now(),
        waits: true,
        projects,
    }
}

/// Takes a page of changes from `guest`. `caller` is the guest in the project. Returns what became of each line, and which
/// memories were written.
pub async fn take(
    engine: &Engine,
    caller: &WritingCaller,
    guest: &Guest,
    lines: Vec<Result<Arrived, Misread>>,
) -> Result<(Received, Touched)> {
    let project = caller.begin_project(engine).await?;
    let (scope, redactor, models) = (project.scope.clone(), project.redactor.clone(), Models::of(engine));
    let (guest_of_lines, now, shared) = (guest.clone(), engine.now(), scope.project.shared());
    // Redacting and counting long texts takes seconds.
    let read = tokio::task::spawn_blocking(move || {
        let admitted = |line| admit(&guest_of_lines, line, shared, now);
        let prepared = |(arrived, visibility)| ready(&redactor, models, arrived, visibility, now);
        lines.into_iter().map(|line| admitted(line).map(prepared)).collect::<Vec<_>>()
    });
    let read = read.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    let mut outcomes: Vec<Option<Became>> = Vec::with_capacity(read.len());
    let mut incoming: Vec<Incoming> = Vec::with_capacity(read.len());
    let mut touched = Touched::default();
    for line in read {
        match line {
            Ok(ready) => {
                incoming.push(ready);
                outcomes.push(None);
            }
            Err(why) => outcomes.push(Some(Became::refused(why))),
        }
    }
    if !incoming.is_empty() {
        let rights = MergeRights {
            marks_others: guest.may_write && guest.may_save(),
            forgets_others: guest.access >= Access::Admin,
        };
        let named: Vec<_> = incoming.iter().map(|it| (it.id.clone(), it.author.clone())).collect();
        let merged = project.store.merge_changes(&scope, None, &guest.peer(), rights, incoming, now).await?;
        let is_written = |outcome| matches!(outcome, MergeOutcome::Stored | MergeOutcome::Changed);
        let written = named.iter().zip(&merged).filter(|(_, outcome)| is_written(**outcome));
        written.for_each(|((id, author), _)| touched.add(id, author));
        let left = outcomes.iter_mut().filter(|outcome| outcome.is_none());
        left.zip(&merged).for_each(|(left, outcome)| *left = Some(became(*outcome)));
        if touched.count > 0 {
            engine.wrote();
        }
    }
    let unsaid = || Became::refused("the server did not merge it");
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unsaid)).collect();
    let before = count(engine, &project, guest, true).await?;
    Ok((Received { outcomes, before: Some(before) }, touched))
}

/// Returns how many pages were counted for the device of `guest` before the present one, and counts it if it `counts`.
///
/// If the database is replaced by an older copy, the count is smaller than that of the machine. The numbers of changes don't
/// show it: others may have sent more since then. Nothing is counted until the machine has learned it, because
/// answers can be lost.
async fn count(engine: &Engine, project: &WritableProject, guest: &Guest, counts: bool) -> Result<u64> {
    let (scope, source) = (&project.scope, format!("pages of {}", guest.device));
    let counted = project.store.import_cursor(scope, &source).await?;
    let before = counted.and_then(|counted| counted.parse().ok()).unwrap_or(0_u64);
    if counts && before >= guest.pages {
        let count = before.saturating_add(1).to_string();
        project.store.set_import_cursor(scope, &source, &count, engine.now()).await?;
    }
    Ok(before)
}

/// Decides whether a line is taken, and who is to see its memory.
fn admit(
    guest: &Guest,
    line: Result<Arrived, Misread>,
    shared: Visibility,
    now: i64,
) -> Result<(Arrived, Visibility), &'static str> {
    let mut arrived = line.map_err(Misread::words)?;
    // A machine refuses what is ahead of its clock, which may be behind that of the server.
    if arrived.state.is_ahead(now.saturating_sub(2 * MOST_APART)) {
        return Err("its time is in the future");
    }
    if arrived.state.is_purged {
        arrived.content = None;
    }
    let Some(content) = &mut arrived.content else {
        // The store decides what a state may change. If it doesn't know the memory, the state waits where only the guest's
        // own devices see it.
        return match guest.may_save() {
            true => Ok((arrived, Visibility::Private)),
            false => Err("the key allows only reading"),
        };
    };
    if arrived.author != guest.author {
        return Err("it names another author");
    }
    // Nobody speaks in a session of somebody else.
    let session = content.draft.session.take().map(|session| exchange::kept_session(&guest.author, &session));
    content.draft.session = session.map(|session| exchange::sent_session(&guest.author, &session));
    let visibility = guest.visibility(arrived.kind, shared)?;
    Ok((arrived, visibility))
}

fn became(outcome: MergeOutcome) -> Became {
    match outcome {
        MergeOutcome::Stored => Became::of("stored"),
        MergeOutcome::Changed => Became::of("changed"),
        MergeOutcome::Known | MergeOutcome::Remembered => Became::of("known"),
        MergeOutcome::Conflict => Became::of("conflict"),
        MergeOutcome::Purged => Became::refused("it was removed for good on the server"),
        MergeOutcome::Refused => Became::refused("only its author may change it so"),
    }
}

/// Returns a page with the changes after the number `after` that `guest` may see and doesn't have from this device, and the
/// memories in it.
pub async fn give(
    engine: &Engine,
    caller: &WritingCaller,
    guest: &Guest,
    after: i64,
) -> Result<(Vec<u8>, Touched)> {
    let project = caller.begin_project(engine).await?;
    let (page, end, touched) = packed(&project, guest, after).await?;
    let before = count(engine, &project, guest, end.next != after).await?;
    Ok((page.finish(End { before: Some(before), ..end }), touched))
}

/// Returns a page that isn't finished, its end, and the memories in it.
async fn packed(project: &WritableProject, guest: &Guest, after: i64) -> Result<(Packer, End, Touched)> {
    let wanted = guest.wanted();
    let mut page = Packer::default();
    let mut touched = Touched::default();
    let mut next = after;
    let end = |next, more| End { next, more, before: None };
    loop {
        let changes = project.store.changes(&project.scope, None, &wanted, next, BATCH).await?;
        let mut last = next;
        for change in &changes.changes {
            let line = short(change);
            if !page.fits(line.len()) {
                return Ok((page, end(last, true), touched));
            }
            page.add(&line);
            touched.add(&change.id, &change.author);
            last = change.number;
        }
        next = changes.next;
        if changes.is_last {
            return Ok((page, end(next, false), touched));
        }
    }
}

/// Looks for changes after the number `after` that `guest` may see and doesn't have from this device.
pub async fn look(engine: &Engine, caller: &WritingCaller, guest: &Guest, after: i64) -> Result<Look> {
    let project = caller.project(engine).await?;
    let scope = &project.scope;
    // A change during the look is noticed by one of the two.
    let next = engine.next_change(&scope.project);
    let found = project.store.changes(scope, None, &guest.wanted(), after, 1).await?;
    Ok(if found.changes.is_empty() { Look::Nothing(next) } else { Look::Changed })
}

/// Returns the line of a change. If it is too long for any page, it has no vectors, or only the state.
fn short(change: &Change) -> String {
    let fits = |line: &String| line.len() < LARGEST / 2;
    let kept = Some(line::write(change, Vectors::Kept)).filter(fits);
    let without = || Some(line::write(change, Vectors::LeftOut)).filter(fits);
    kept.or_else(without)
        .unwrap_or_else(|| line::write(&Change { content: None, ..change.clone() }, Vectors::LeftOut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{Draft, Provenance};
    use tiro_store::ExchangedState;
    use tiro_store::decide::exchange::Stamp;
    use tiro_sync::line::ArrivedMemory;

    fn guest() -> Guest {
        Guest {
            author: AuthorId::new("ana"),
            access: Access::Write,
            may_write: true,
            kinds: vec![Kind::Decision, Kind::Commit],
            device: "0123456789abcdef".into(),
            with_private: false,
            pages: 0,
        }
    }

    fn arrived(author: &str, kind: Kind, has_content: bool) -> Arrived {
        let draft = Draft::new(kind, Provenance::UserSaid, "text", 5);
        let content = ArrivedMemory {
            draft,
            ordinal: None,
            superseded_by: Vec::new(),
            is_indexed: true,
            embedded: Vec::new(),
        };
        Arrived {
            id: MemoryId::derive(kind, None, "1"),
            kind,
            author: AuthorId::new(author),
            state: ExchangedState::default(),
            content: has_content.then(|| Box::new(content)),
        }
    }

    #[test]
    fn a_line_is_taken_only_from_its_author_and_shared_only_if_its_kind_is() {
        let tried = |guest: &Guest, arrived: Arrived| {
            admit(guest, Ok(arrived), Visibility::Project, 1_000).map(|(_, visibility)| visibility)
        };
        let own = |kind| arrived("ana", kind, true);
        assert_eq!(tried(&guest(), own(Kind::Decision)), Ok(Visibility::Project));
        assert!(tried(&guest(), own(Kind::Message)).unwrap_err().contains("kind"));
        assert!(
            tried(&guest(), arrived("ben", Kind::Decision, true)).unwrap_err().contains("another author")
        );
        let private = Guest { with_private: true, ..guest() };
        assert_eq!(tried(&private, own(Kind::Message)), Ok(Visibility::Private));
        assert_eq!(tried(&private, own(Kind::Decision)), Ok(Visibility::Project));
        let reader = Guest { may_write: false, ..guest() };
        assert!(tried(&reader, own(Kind::Decision)).unwrap_err().contains("only read"));
        let both = Guest { with_private: true, ..reader.clone() };
        assert_eq!(tried(&both, own(Kind::Decision)), Ok(Visibility::Private));
        let weak = Guest { access: Access::Read, ..private.clone() };
        assert!(tried(&weak, own(Kind::Decision)).is_err());
        assert!(tried(&weak, arrived("ana", Kind::Decision, false)).is_err());
        // A state alone is for the store to decide about, also that of another's memory.
        assert_eq!(tried(&guest(), arrived("ben", Kind::Decision, false)), Ok(Visibility::Private));
        assert_eq!(tried(&reader, arrived("ben", Kind::Message, false)), Ok(Visibility::Private));
    }

    #[test]
    fn a_time_in_the_future_is_refused() {
        const YEAR: i64 = 365 * 24 * 60 * 60 * 1000;
        for has_content in [true, false] {
            let mut arrived = arrived("ana", Kind::Decision, has_content);
            arrived.state.forgotten_at = Stamp::NEVER.next(129 * YEAR);
            let tried = admit(&guest(), Ok(arrived), Visibility::Project, 57 * YEAR);
            assert!(tried.unwrap_err().contains("future"));
        }
        let misread = admit(&guest(), Err(Misread::Later), Visibility::Project, 0);
        assert!(misread.unwrap_err().contains("later version"));
    }

    #[test]
    fn a_device_has_a_plain_id_and_belongs_to_its_author() {
        assert!(is_device("0123456789abcdef"));
        for wrong in ["", "short", "has space0", "ben:01234567", &"a".repeat(65)] {
            assert!(!is_device(wrong), "{wrong}");
        }
        let ben = Guest { author: AuthorId::new("ben"), ..guest() };
        assert_ne!(ben.peer(), guest().peer());
    }
}
