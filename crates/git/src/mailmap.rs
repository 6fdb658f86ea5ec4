//! Reads `.mailmap`, a file that lists the current names of the authors of commits, and applies it in the same way as
//! `git log`.

use gix::actor::SignatureRef;
use gix::mailmap::Snapshot;

use tiro_base::encoding;

/// The current names of a repository's people.
#[derive(Default)]
pub struct Mailmap {
    snapshot: Snapshot,
    /// A text that identifies the content. The text is empty if nobody has another name.
    pub stamp: String,
}

impl Mailmap {
    /// Parses the bytes of the file.
    pub(super) fn of(bytes: Vec<u8>) -> Mailmap {
        let text = encoding::text(bytes).map(|read| read.text).unwrap_or_default();
        let snapshot = Snapshot::from_bytes(text.trim_start_matches('\u{feff}').as_bytes());
        let is_empty = snapshot.iter().next().is_none();
        let stamp =
            if is_empty { String::new() } else { blake3::hash(text.as_bytes()).to_hex()[..16].to_owned() };
        Mailmap { snapshot, stamp }
    }

    /// Returns the current name of the person whom commits call `name`.
    pub(super) fn current(&self, name: &str, address: &str) -> Option<String> {
        let written = SignatureRef { name: name.into(), email: address.into(), time: "0 +0000" };
        let current = self.snapshot.try_resolve_ref(written)?.name?;
        Some(String::from_utf8_lossy(current).into_owned())
    }
}
