//! The text of a personal key: `tiro_`, the public id of the key, and its secret.
//!
//! The prefix lets programs that look for leaked secrets recognise a key. The id names the key in lists and commands.
//! The secret has 256 random bits, so a plain hash of it can't be guessed from, and only the hash is stored.

use std::fmt;

/// The beginning of every key.
const PREFIX: &str = "tiro_";

/// The number of random bytes of an id.
const ID: usize = 4;

/// The number of random bytes of a secret.
const SECRET: usize = 32;

/// The number of random bytes of a key.
pub const RANDOM: usize = ID + SECRET;

/// The purpose of the hash, so that it is of no use elsewhere.
const PURPOSE: &str = "tiro 2026 personal keys";

/// A personal key. Its text is shown once, when it is made.
pub struct Key(String);

impl Key {
    /// Returns the key of these random bytes.
    pub fn new(random: [u8; RANDOM]) -> Key {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Key(format!("{PREFIX}{}_{}", hex(&random[..ID]), hex(&random[ID..])))
    }

    /// Returns the key with this text, or `None` if no key has such a text.
    pub fn parse(text: &str) -> Option<Key> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |part: &str, bytes: usize| {
            part.len() == 2 * bytes && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        (is_hex(id, ID) && is_hex(secret, SECRET)).then(|| Key(text.to_owned()))
    }

    /// Returns the whole key. It may be shown only to the person for whom it was made.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the public id.
    pub fn id(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + 2 * ID]
    }

    /// Returns the hash that is stored. Comparing two hashes takes the same time wherever they differ.
    pub fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key(PURPOSE);
        hasher.update(self.0.as_bytes()).finalize()
    }
}

/// Shows the id alone.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_shown_and_its_secret_is_in_no_log() {
        let key = Key::new(std::array::from_fn(|place| place as u8));
        assert_eq!(key.text().len(), 78);
        assert!(key.text().starts_with("tiro_00010203_0405"));
        assert_eq!(Key::parse(key.text()).unwrap().hash(), key.hash());
        assert_eq!((key.id(), format!("{key:?}").as_str()), ("00010203", "Key(00010203)"));
        let upper = key.text().to_uppercase();
        for wrong in ["", "tiro_", "tiro_0_1", &key.text()[1..], &key.text()[..77], &upper, "tiro_é"] {
            assert!(Key::parse(wrong).is_none(), "{wrong}");
        }
        let other = Key::parse(&key.text().replace("0405", "0406")).unwrap();
        assert_ne!(other.hash(), key.hash());
    }
}
