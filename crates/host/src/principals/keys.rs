//! The personal keys of a server's owner, in the private file `keys.json` of the data directory.
//!
//! The file is written as a whole, under a lock, and is on the disk before a change is reported. Every check reads it
//! anew, so that a key that another process revoked is refused by the next request. The file has the hashes of the keys
//! only. If it can't be read, every check fails.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::key::{Key, RANDOM};
use super::{Access, Denied, Principal};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};
use tiro_base::memory::Millis;
use tiro_base::private;
use tiro_base::scope::AuthorId;

/// The name of the file in the data directory.
pub const FILE: &str = "keys.json";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The longest time that a change waits for another process. Arbitrary: a change takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest name of an author, in bytes. Arbitrary.
const LONGEST_NAME: usize = 64;

/// The length of a day.
const DAY: Millis = 24 * 60 * 60 * 1000;

/// The keys in a data directory.
#[derive(Clone, Debug)]
pub struct Keys {
    data_dir: PathBuf,
}

/// A key, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyRow {
    /// The public id.
    pub id: String,
    /// The name of the author.
    pub name: String,
    /// What the author may do with it.
    pub access: Access,
    /// The hash of the key, in hexadecimal digits.
    hash: String,
    /// When it was made.
    pub made: Millis,
    /// When it expires, if it does.
    pub expires: Option<Millis>,
    /// When it was revoked.
    pub revoked: Option<Millis>,
    /// The beginning of the day, in UTC, on which it was used last.
    pub used: Option<Millis>,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    keys: Vec<KeyRow>,
}

/// A key that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The name of the author.
    pub name: &'a str,
    /// What the author may do.
    pub access: Access,
    /// When it expires, if it does.
    pub expires: Option<Millis>,
}

impl Keys {
    /// Returns the keys in `data_dir`. Nothing is read yet.
    pub fn of(data_dir: &Path) -> Keys {
        Keys { data_dir: data_dir.to_owned() }
    }

    /// Returns whether requests need a key: whether any key is not revoked.
    pub fn are_needed(&self) -> Result<bool> {
        Ok(self.read()?.keys.iter().any(|row| row.revoked.is_none()))
    }

    /// Returns every key, by name and the time when it was made.
    pub fn all(&self) -> Result<Vec<KeyRow>> {
        let mut keys = self.read()?.keys;
        keys.sort_by(|a, b| (&a.name, a.made, &a.id).cmp(&(&b.name, b.made, &b.id)));
        Ok(keys)
    }

    /// Returns the principal to whom the key with the text `given` belongs, or why it is refused. Records that the key
    /// was used on this day.
    ///
    /// A refusal takes the same time whether there is such a key or not.
    pub fn principal(&self, given: &str, now: Millis) -> Result<std::result::Result<Principal, Denied>> {
        let content = self.read()?;
        // A text that is no key is compared too, as one that nobody has.
        let key = Key::parse(given).unwrap_or_else(|| Key::new([0; RANDOM]));
        let hash = key.hash();
        let mut found = None;
        for row in &content.keys {
            let is_same = blake3::Hash::from_hex(&row.hash).is_ok_and(|stored| stored == hash);
            if is_same && row.revoked.is_none() {
                found = Some(row);
            }
        }
        let Some(row) = found else { return Ok(Err(Denied::Unknown)) };
        if row.expires.is_some_and(|expires| expires <= now) {
            return Ok(Err(Denied::Expired));
        }
        let today = now - now.rem_euclid(DAY);
        if row.used != Some(today)
            && let Err(error) = self.change(|content| {
                let used = content.keys.iter_mut().find(|each| each.id == row.id);
                used.into_iter().for_each(|each| each.used = Some(today));
                Ok(())
            })
        {
            // Whether a key is valid doesn't depend on this.
            tracing::debug!(%error, "the use of a key is not recorded");
        }
        Ok(Ok(Principal { author: AuthorId::new(&row.name), access: row.access }))
    }

    /// Makes a key and returns it.
    ///
    /// Errors with [`Kind::BadInput`] if the name can't be used, or the author already has a key.
    pub fn add(&self, wanted: Wanted<'_>, random: [u8; RANDOM], now: Millis) -> Result<Key> {
        check_name(wanted.name)?;
        self.change(|content| {
            let is_valid = |row: &KeyRow| {
                row.name == wanted.name
                    && row.revoked.is_none()
                    && row.expires.is_none_or(|expires| expires > now)
            };
            if let Some(row) = content.keys.iter().find(|row| is_valid(row)) {
                let message = format!("`{}` has the key `{}`", quoted(wanted.name), quoted(&row.id));
                return Err(Error::bad_input(message)
                    .hint("`tiro user rotate NAME` replaces a key, `tiro user revoke NAME` revokes it"));
            }
            Ok(insert(content, wanted, random, now))
        })
    }

    /// Revokes the keys that `which` names by an author's name or a key's id. Returns their ids.
    ///
    /// Errors with [`Kind::NotFound`] if there is none.
    pub fn revoke(&self, which: &str, now: Millis) -> Result<Vec<String>> {
        self.change(|content| Ok(revoke(content, which, now)?.into_iter().map(|row| row.id).collect()))
    }

    /// Revokes the keys that `which` names, and makes a new key for the same author with the same scope. It is valid for
    /// as long as the latest of them was, counted from `now`.
    ///
    /// Errors with [`Kind::NotFound`] if there is none.
    pub fn rotate(&self, which: &str, random: [u8; RANDOM], now: Millis) -> Result<Key> {
        self.change(|content| {
            let revoked = revoke(content, which, now)?;
            let last = revoked.iter().max_by_key(|row| row.made).expect("at least one key was revoked");
            let expires = last.expires.map(|expires| now + (expires - last.made));
            Ok(insert(content, Wanted { name: &last.name, access: last.access, expires }, random, now))
        })
    }

    fn path(&self) -> PathBuf {
        self.data_dir.join(FILE)
    }

    fn read(&self) -> Result<Content> {
        let path = self.path();
        let cannot = || format!("cannot read `{}`", quoted(path.display()));
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(error).context(Kind::Io, cannot),
        };
        let content: Content = serde_json::from_slice(&text).context(Kind::Store, cannot)?;
        if content.version > VERSION {
            return Err(Error::new(Kind::Store, cannot()).hint("a later version of Tiro wrote it"));
        }
        Ok(content)
    }

    /// Changes the file as a whole or not at all, while no other process does.
    fn change<T>(&self, change: impl FnOnce(&mut Content) -> Result<T>) -> Result<T> {
        private::create_dir(&self.data_dir)?;
        let _lock = self.lock()?;
        let mut content = self.read()?;
        let changed = change(&mut content)?;
        content.version = VERSION;
        let bytes = serde_json::to_vec_pretty(&content).expect("keys are JSON");
        user_file::replace(&self.path(), &FileSnapshot { bytes: Bytes(bytes), mode: 0o600 })?;
        Ok(changed)
    }

    /// Locks the file for changes until the returned file is dropped or the process ends.
    fn lock(&self) -> Result<File> {
        let path = self.data_dir.join(format!("{FILE}.lock"));
        private::create(&path)?;
        let cannot = || format!("cannot write `{}`", quoted(path.display()));
        let file = File::create(&path).context(Kind::Io, cannot)?;
        let began = Instant::now();
        while let Err(TryLockError::WouldBlock) = file.try_lock() {
            if began.elapsed() > PATIENCE {
                return Err(Error::new(Kind::Busy, "another process is changing the keys")
                    .hint("run this again when it has finished"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(file)
    }
}

impl KeyRow {
    /// Returns whether the key is valid at the time `now`, in a word.
    pub fn state(&self, now: Millis) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now => "expired",
            (None, _) => "valid",
        }
    }
}

fn insert(content: &mut Content, wanted: Wanted<'_>, random: [u8; RANDOM], now: Millis) -> Key {
    let key = Key::new(random);
    content.keys.push(KeyRow {
        id: key.id().to_owned(),
        name: wanted.name.to_owned(),
        access: wanted.access,
        hash: key.hash().to_hex().to_string(),
        made: now,
        expires: wanted.expires,
        revoked: None,
        used: None,
    });
    key
}

fn revoke(content: &mut Content, which: &str, now: Millis) -> Result<Vec<KeyRow>> {
    let named = content.keys.iter_mut();
    let named = named.filter(|row| row.revoked.is_none() && (row.name == which || row.id == which));
    let revoked: Vec<KeyRow> = named
        .map(|row| {
            row.revoked = Some(now);
            row.clone()
        })
        .collect();
    if revoked.is_empty() {
        return Err(Error::not_found(format!(
            "`{}` is neither a name with a key nor a key's id",
            quoted(which)
        ))
        .hint("`tiro user list` shows the keys"));
    }
    Ok(revoked)
}

/// Checks the name of an author. Names have few kinds of characters, so that none looks like another, or like the
/// owner of the data (`uid:1000`).
fn check_name(name: &str) -> Result<()> {
    let fits = (1..=LONGEST_NAME).contains(&name.len());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if fits && begins && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Error::bad_input(format!("`{}` can't be a name", quoted(name)))
        .hint(format!("use up to {LONGEST_NAME} letters, digits and `.`, `_`, `-`, `@`, `+`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (tempfile::TempDir, Keys) {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::of(&folder.path().join("data"));
        (folder, keys)
    }

    fn wanted(name: &str) -> Wanted<'_> {
        Wanted { name, access: Access::Write, expires: None }
    }

    #[test]
    fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let (_folder, keys) = keys();
        assert!(!keys.are_needed().unwrap() && keys.all().unwrap().is_empty());
        let ana = keys.add(Wanted { expires: Some(50), ..wanted("ana") }, [1; RANDOM], 10).unwrap();
        let ben = keys.add(Wanted { access: Access::Read, ..wanted("ben") }, [2; RANDOM], 10).unwrap();
        let principal = |key: &str, now| keys.principal(key, now).unwrap();
        let of = |name: &str, access| Ok(Principal { author: AuthorId::new(name), access });
        assert_eq!(principal(ana.text(), 20), of("ana", Access::Write));
        assert_eq!(principal(ben.text(), 60), of("ben", Access::Read));
        assert_eq!(principal(ana.text(), 50), Err(Denied::Expired));
        for wrong in ["", "tiro_", Key::new([3; RANDOM]).text(), Key::new([0; RANDOM]).text()] {
            assert_eq!(principal(wrong, 20), Err(Denied::Unknown), "{wrong}");
        }
        assert_eq!(keys.revoke("ana", 30).unwrap(), ["01010101"]);
        assert_eq!(principal(ana.text(), 20), Err(Denied::Unknown));
        assert_eq!(keys.revoke("ana", 30).unwrap_err().kind(), Kind::NotFound);
        assert!(keys.are_needed().unwrap());
        keys.revoke(ben.id(), 30).unwrap();
        assert!(!keys.are_needed().unwrap());
    }

    #[test]
    fn a_new_key_replaces_the_old_one_and_lasts_as_long() {
        let (_folder, keys) = keys();
        let old =
            keys.add(Wanted { name: "ana", access: Access::Admin, expires: Some(110) }, [1; RANDOM], 10);
        let new = keys.rotate("ana", [2; RANDOM], 60).unwrap();
        assert_eq!(keys.principal(old.unwrap().text(), 70).unwrap(), Err(Denied::Unknown));
        assert_eq!(keys.principal(new.text(), 70).unwrap().unwrap().access, Access::Admin);
        let rows = keys.all().unwrap();
        assert_eq!((rows[1].expires, rows[0].state(70), rows[1].state(70)), (Some(160), "revoked", "valid"));
        assert_eq!(keys.rotate("ben", [3; RANDOM], 60).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn the_file_is_private_and_has_no_secret() {
        let (folder, keys) = keys();
        let key = keys.add(wanted("ana"), [7; RANDOM], 10).unwrap();
        keys.principal(key.text(), 3 * DAY + 5).unwrap().unwrap();
        assert_eq!(keys.all().unwrap()[0].used, Some(3 * DAY));
        let path = folder.path().join("data").join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(key.id()) && !text.contains(&key.text()[14..]), "{text}");
        assert_eq!(private::openness(&path), None);
        assert!(keys.add(wanted("ana"), [8; RANDOM], 10).is_err());
        for name in ["", "uid:1000", "a b", "-a", "é", &"x".repeat(65)] {
            assert_eq!(keys.add(wanted(name), [9; RANDOM], 10).unwrap_err().kind(), Kind::BadInput, "{name}");
        }
        std::fs::write(&path, "{").unwrap();
        assert!(keys.principal(key.text(), 20).is_err() && keys.are_needed().is_err());
    }

    #[test]
    fn processes_that_change_the_keys_at_the_same_time_lose_none() {
        let (_folder, keys) = keys();
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let keys = &keys;
                scope
                    .spawn(move || keys.add(wanted(&format!("user{number}")), [number; RANDOM], 10).unwrap());
            }
        });
        assert_eq!(keys.all().unwrap().len(), 8);
    }
}
