//! The personal keys of a server's owner, in the registry.
//!
//! The registry has the hashes of the keys only. Every check reads it anew, so that a key that another process revoked is
//! refused by the next request. If it can't be read, every check fails.

use super::key::{Key, RANDOM};
use super::{Access, Denied, Principal};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::Millis;
use tiro_base::scope::AuthorId;
use tiro_store::{KeyChange, KeyRow, Registry};

/// The longest name of an author, in bytes. Arbitrary.
const LONGEST_NAME: usize = 64;

/// The length of a day.
const DAY: Millis = 24 * 60 * 60 * 1000;

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

/// Returns whether requests need a key: whether any key is not revoked.
pub async fn are_needed(registry: &dyn Registry) -> Result<bool> {
    Ok(registry.keys().await?.iter().any(|row| row.revoked.is_none()))
}

/// Returns the principal to whom the key with the text `given` belongs, or why it is refused. Records that the key was
/// used on this day.
///
/// The registry is asked for the hash of what is given, whether that is a key or not. So how long a refusal takes says
/// nothing about the keys.
pub async fn principal(
    registry: &dyn Registry,
    given: &str,
    now: Millis,
) -> Result<std::result::Result<Principal, Denied>> {
    let key = Key::parse(given).unwrap_or_else(|| Key::new([0; RANDOM]));
    let found = registry.key_with_hash(key.hash().to_hex().as_str()).await?;
    let Some(row) = found.filter(|row| row.revoked.is_none()) else { return Ok(Err(Denied::Unknown)) };
    if row.expires.is_some_and(|expires| expires <= now) {
        return Ok(Err(Denied::Expired));
    }
    let day = now - now.rem_euclid(DAY);
    if row.used != Some(day)
        && let Err(error) = registry.change_keys(KeyChange::Use { id: row.id, day }).await
    {
        // Whether a key is valid doesn't depend on this.
        tracing::debug!(%error, "the use of a key is not recorded");
    }
    Ok(Ok(Principal { author: AuthorId::new(row.name), access: row.access }))
}

/// Makes a key. Returns it, and what is stored of it.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the name can't be used, or the author already has
/// a key.
pub async fn add(
    registry: &dyn Registry,
    wanted: Wanted<'_>,
    random: [u8; RANDOM],
    now: Millis,
) -> Result<(Key, KeyRow)> {
    check_name(wanted.name)?;
    let key = Key::new(random);
    let row = KeyRow {
        id: key.id().to_owned(),
        name: wanted.name.to_owned(),
        access: wanted.access,
        hash: key.hash().to_hex().to_string(),
        made: now,
        expires: wanted.expires,
        revoked: None,
        used: None,
    };
    registry.change_keys(KeyChange::Add(row.clone())).await?;
    Ok((key, row))
}

/// Revokes the keys that `which` names by an author's name or a key's id. Returns them.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is none.
pub async fn revoke(registry: &dyn Registry, which: &str, now: Millis) -> Result<Vec<KeyRow>> {
    registry.change_keys(KeyChange::Revoke { which: which.to_owned(), now }).await
}

/// Revokes the keys that `which` names, and makes a new key for the same author with the same scope. It is valid for as
/// long as the latest of them was, counted from `now`. Returns it, and what is stored of it.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is none.
pub async fn rotate(
    registry: &dyn Registry,
    which: &str,
    random: [u8; RANDOM],
    now: Millis,
) -> Result<(Key, KeyRow)> {
    let key = Key::new(random);
    let (id, hash) = (key.id().to_owned(), key.hash().to_hex().to_string());
    let mut changed =
        registry.change_keys(KeyChange::Replace { which: which.to_owned(), id, hash, now }).await?;
    let row = changed.pop().ok_or_else(|| Error::not_found("the new key was not stored"))?;
    Ok((key, row))
}

/// Checks the name of an author or a team. Names have few kinds of characters, so that none looks like another, or like
/// the owner of the data (`uid:1000`).
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the name can't be used.
pub fn check_name(name: &str) -> Result<()> {
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
    use tiro_base::error::Kind;
    use tiro_base::scope::TenantId;
    use tiro_sqlite::SqliteRegistry;

    fn registry(name: &str) -> SqliteRegistry {
        SqliteRegistry::blank(&TenantId::new("uid:1000"), name).unwrap()
    }

    fn wanted(name: &str) -> Wanted<'_> {
        Wanted { name, access: Access::Write, expires: None }
    }

    #[tokio::test]
    async fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let registry = &registry("validity");
        assert!(!are_needed(registry).await.unwrap());
        let (ana, _) =
            add(registry, Wanted { expires: Some(50), ..wanted("ana") }, [1; RANDOM], 10).await.unwrap();
        let reads = Wanted { access: Access::Read, ..wanted("ben") };
        let (ben, _) = add(registry, reads, [2; RANDOM], 10).await.unwrap();
        let of = |name: &str, access| Ok(Principal { author: AuthorId::new(name), access });
        let found = async |key: &str, now| principal(registry, key, now).await.unwrap();
        assert_eq!(found(ana.text(), 20).await, of("ana", Access::Write));
        assert_eq!(found(ben.text(), 60).await, of("ben", Access::Read));
        assert_eq!(found(ana.text(), 50).await, Err(Denied::Expired));
        for wrong in ["", "tiro_", Key::new([3; RANDOM]).text(), Key::new([0; RANDOM]).text()] {
            assert_eq!(found(wrong, 20).await, Err(Denied::Unknown), "{wrong}");
        }
        assert_eq!(revoke(registry, "ana", 30).await.unwrap()[0].id, "01010101");
        assert_eq!(found(ana.text(), 20).await, Err(Denied::Unknown));
        assert_eq!(revoke(registry, "ana", 30).await.unwrap_err().kind(), Kind::NotFound);
        assert!(are_needed(registry).await.unwrap());
        revoke(registry, ben.id(), 30).await.unwrap();
        assert!(!are_needed(registry).await.unwrap());
    }

    #[tokio::test]
    async fn a_new_key_replaces_the_old_one() {
        let registry = &registry("rotation");
        let admin = Wanted { name: "ana", access: Access::Admin, expires: Some(110) };
        let (old, _) = add(registry, admin, [1; RANDOM], 10).await.unwrap();
        let (new, row) = rotate(registry, "ana", [2; RANDOM], 60).await.unwrap();
        assert_eq!((row.id.as_str(), row.expires), (new.id(), Some(160)));
        assert_eq!(principal(registry, old.text(), 70).await.unwrap(), Err(Denied::Unknown));
        assert_eq!(principal(registry, new.text(), 70).await.unwrap().unwrap().access, Access::Admin);
    }

    #[tokio::test]
    async fn names_are_plain_and_the_day_of_a_use_is_kept() {
        let registry = &registry("names");
        let (key, row) = add(registry, wanted("ana"), [7; RANDOM], 10).await.unwrap();
        assert!(!row.hash.contains(&key.text()[14..]));
        principal(registry, key.text(), 3 * DAY + 5).await.unwrap().unwrap();
        assert_eq!(tiro_store::Members::keys(registry).await.unwrap()[0].used, Some(3 * DAY));
        for name in ["", "uid:1000", "a b", "-a", "é", &"x".repeat(65)] {
            let refused = add(registry, wanted(name), [9; RANDOM], 10).await;
            assert_eq!(refused.unwrap_err().kind(), Kind::BadInput, "{name}");
        }
    }
}
