//! Recognises the entries of a forked session that are copies of another session's entries.
//!
//! Clients fork a session by copying its entries into a new file. Codex does the same for a sub-agent. Some clients
//! mark each copy with the id of the original session and of the original entry. Other clients only record which
//! session was forked, and give the copies new times. A copy is stored for the original session. So it is stored only
//! once, whether or not the original is imported, and in any order. If a copy and its original have no common id, the
//! copy is recognised by its text.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::import::transcript::{About, TranscriptEntry};
use tiro_base::error::Result;
use tiro_base::memory::{Identity, Kind, MemoryId, Millis, Role};
use tiro_base::scope::SessionId;
use tiro_intake::{Intake, session_id};
use tiro_redact::Redactor;

/// The entries of a copy can have times up to this long after the copy was made, in milliseconds. The reason is that
/// some versions of clients give all copies a new time.
const COPYING: Millis = 1000;

/// A forked session begins with a copy of its original. This is the state of reading the copy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Prefix {
    /// Whether an entry was found in the original session.
    is_known: bool,
    /// Whether the fork's own entries have begun.
    is_over: bool,
}

/// The entries of a session, divided by the session to which they belong. Each entry comes with the offset of the line
/// that completed it.
#[derive(Default)]
pub struct Divided {
    /// Entries of the session itself.
    pub own: Vec<(u64, TranscriptEntry)>,
    /// Copies, keyed by the name of the original session.
    pub copies: BTreeMap<String, Vec<(u64, TranscriptEntry)>>,
    /// The number of copies that are already stored.
    pub stored: usize,
}

/// The place to which an entry belongs.
enum Belongs {
    /// The entry belongs to the session itself.
    Here,
    /// The entry is a copy of a stored entry.
    Stored,
    /// The entry is a copy, and is stored under `key` for the original session named `session`.
    There { session: String, key: String },
}

/// The stored content of the sessions whose entries were copied.
#[derive(Default)]
pub struct Originals {
    sessions: HashMap<String, Original>,
    /// How often each text was read, keyed by the hash of the text.
    read: HashMap<String, usize>,
    /// The own ids of all copies that this import met. If a copy is copied again, the new copy names this id.
    pub copies: HashSet<String>,
}

/// The stored content of a session.
#[derive(Default)]
struct Original {
    ids: HashSet<MemoryId>,
    texts: HashSet<String>,
}

impl Originals {
    /// Loads the stored content of the sessions to which entries may belong. Sessions that were loaded before are
    /// skipped.
    pub async fn load(
        &mut self,
        (redactor, intake): (&Redactor, &dyn Intake),
        session: &SessionId,
        about: &About,
        said: &[(u64, TranscriptEntry)],
    ) -> Result<()> {
        let mut names: Vec<&str> = vec![session.as_str()];
        names.extend(said.iter().filter_map(|(_, said)| Some(said.copy_of.as_ref()?.session.as_str())));
        if let Some(forked) = &about.forked {
            names.extend([forked.from.as_str()].into_iter().chain(about.aliases.iter().map(String::as_str)));
        }
        for name in names {
            if self.sessions.contains_key(name) {
                continue;
            }
            let mut original = Original::default();
            let id = session_id(redactor, "session", name)?;
            if id == *session {
                // Of the session itself, only the ids are needed: they show which copies were stored for it before.
                original.ids = intake.messages_of(&id).await?.into_iter().collect();
            } else {
                for (id, role, text) in intake.texts_of(&id).await? {
                    original.texts.extend(role.map(|role| hash(role, &text)));
                    original.ids.insert(id);
                }
            }
            self.sessions.insert(name.to_owned(), original);
        }
        Ok(())
    }

    /// Divides entries by the session to which they belong. `elsewhere` are the keys of entries that are stored in
    /// other sessions.
    pub fn divide(
        &mut self,
        redactor: &Redactor,
        (session, about, prefix): (&SessionId, &About, &mut Prefix),
        said: Vec<(u64, TranscriptEntry)>,
        elsewhere: &HashSet<String>,
    ) -> Divided {
        let mut divided = Divided::default();
        for (end, said) in said {
            match self.place(redactor, (session, about, &mut *prefix), &said, elsewhere) {
                Belongs::Here => divided.own.push((end, said)),
                Belongs::Stored => divided.stored += 1,
                Belongs::There { session, key } => {
                    divided.copies.entry(session).or_default().push((end, TranscriptEntry { key, ..said }));
                }
            }
        }
        divided
    }

    fn place(
        &mut self,
        redactor: &Redactor,
        (session, about, prefix): (&SessionId, &About, &mut Prefix),
        said: &TranscriptEntry,
        elsewhere: &HashSet<String>,
    ) -> Belongs {
        let is_known = elsewhere.contains(&said.key) || self.copies.contains(&said.key);
        if let Some(copy) = &said.copy_of {
            self.copies.extend(copy.own.clone());
            let there = Belongs::There { session: copy.session.clone(), key: said.key.clone() };
            return match self.holds(redactor, &copy.session, said) {
                // The entry is passed on, so that the copy's own id is recorded with the original.
                Some(Held::Id) => there,
                Some(Held::Text) => Belongs::Stored,
                None if is_known => Belongs::Stored,
                None => there,
            };
        }
        let is_new = self.sessions.get(session.as_str()).is_none_or(|own| own.ids.is_empty());
        if is_new && (about.forked.is_none() || prefix.is_over) {
            return if is_known { Belongs::Stored } else { Belongs::Here };
        }
        let text = redactor.redact(&said.text).text;
        let hash = hash(role(said), &text);
        let times = self.read.entry(hash.clone()).or_default();
        *times += 1;
        let key = format!("copy:{hash}:{times}");
        if let Some(forked) = about.forked.as_ref().filter(|_| !prefix.is_over) {
            let family = [&forked.from].into_iter().chain(&about.aliases);
            let mut family = family.filter(|name| name.as_str() != session.as_str());
            if is_known || family.any(|name| self.holds(redactor, name, said).is_some()) {
                prefix.is_known = true;
                return Belongs::Stored;
            }
            let is_before = |slack| said.time.zip(forked.at).is_some_and(|(time, at)| time < at + slack);
            if is_before(0) || (is_before(COPYING) && !prefix.is_known) {
                let is_place = ["at:", "ordinal:"].iter().any(|kind| said.key.starts_with(kind));
                let key = if is_place { key } else { said.key.clone() };
                return Belongs::There { session: forked.from.clone(), key };
            }
            // A tool call doesn't end the copy, because the original may have left it out as a repeat.
            prefix.is_over = said.role == Role::User;
            return Belongs::Here;
        }
        let of_copy = MemoryId::derive(kind(said), Some(session), &format!("id:{key}"));
        let is_copied = self.sessions.get(session.as_str()).is_some_and(|own| own.ids.contains(&of_copy));
        if is_known || is_copied { Belongs::Stored } else { Belongs::Here }
    }

    fn holds(&self, redactor: &Redactor, session: &str, said: &TranscriptEntry) -> Option<Held> {
        let original = self.sessions.get(session)?;
        let id = session_id(redactor, "session", session).ok()?;
        let Identity::Named(name) = identity(said) else { return None };
        if original.ids.contains(&MemoryId::derive(kind(said), Some(&id), &name)) {
            return Some(Held::Id);
        }
        let text = redactor.redact(&said.text).text;
        original.texts.contains(&hash(role(said), &text)).then_some(Held::Text)
    }
}

enum Held {
    Id,
    Text,
}

/// Returns the identity of an entry within its session.
pub fn identity(said: &TranscriptEntry) -> Identity {
    match said.fingerprint {
        Some(fingerprint) => Identity::Named(format!("like:{fingerprint:016x}")),
        None => Identity::Named(format!("id:{}", said.key)),
    }
}

/// Returns the kind of memory that an entry becomes.
pub fn kind(said: &TranscriptEntry) -> Kind {
    if said.is_summary { Kind::Summary } else { Kind::Message }
}

/// Returns the role of the memory that an entry becomes. Clients write a summary of the conversation as a user message,
/// but it counts as written by the assistant.
pub fn role(said: &TranscriptEntry) -> Role {
    if said.is_summary { Role::Assistant } else { said.role }
}

/// Returns a hash of a redacted text and its speaker's role.
fn hash(role: Role, text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(role.as_str().as_bytes()).update(&[0]).update(text.as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}
