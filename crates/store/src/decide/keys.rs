//! Decides how a change affects the personal keys.

use crate::{KeyChange, KeyRow};
use tiro_base::error::{Error, Result, quoted};

/// The most calls that the record of calls has. Arbitrary: years of a team's work, in some hundred megabytes.
pub const MOST_CALLS: i64 = 1_000_000;

/// Returns the keys that `change` affects, as they are afterwards. A new key is the last.
///
/// # Errors
///
/// [`BadInput`](tiro_base::error::Kind::BadInput) if a key is added for a user who has a valid one, or with the id of
/// another. [`NotFound`](tiro_base::error::Kind::NotFound) if there is no key to revoke.
pub fn changed(keys: &[KeyRow], change: &KeyChange) -> Result<Vec<KeyRow>> {
    match change {
        KeyChange::Add(new) => {
            let is_valid = |row: &&KeyRow| row.name == new.name && row.state(new.made) == "valid";
            if let Some(row) = keys.iter().find(is_valid) {
                let message = format!("`{}` has the key `{}`", quoted(&new.name), quoted(&row.id));
                return Err(Error::bad_input(message)
                    .hint("`tiro user rotate NAME` replaces a key, `tiro user revoke NAME` revokes it"));
            }
            Ok(vec![fresh(keys, new.clone())?])
        }
        KeyChange::Revoke { which, now } => revoked(keys, which, *now),
        KeyChange::Replace { which, id, hash, now } => {
            let mut changed = revoked(keys, which, *now)?;
            let last = changed.iter().max_by_key(|row| row.made).expect("at least one key was revoked");
            let new = KeyRow {
                id: id.clone(),
                hash: hash.clone(),
                made: *now,
                expires: last.expires.map(|expires| now + (expires - last.made)),
                revoked: None,
                used: None,
                ..last.clone()
            };
            changed.push(fresh(keys, new)?);
            Ok(changed)
        }
        KeyChange::Use { id, day } => {
            let used = keys.iter().filter(|row| row.id == *id && row.used != Some(*day));
            Ok(used.map(|row| KeyRow { used: Some(*day), ..row.clone() }).collect())
        }
    }
}

/// Returns the new key, unless another has its id.
fn fresh(keys: &[KeyRow], new: KeyRow) -> Result<KeyRow> {
    match keys.iter().any(|row| row.id == new.id) {
        false => Ok(new),
        true => Err(Error::bad_input(format!("there is a key `{}`", quoted(&new.id)))
            .hint("repeat the command; the next key gets another id")),
    }
}

fn revoked(keys: &[KeyRow], which: &str, now: i64) -> Result<Vec<KeyRow>> {
    let named = keys.iter().filter(|row| row.revoked.is_none() && (row.name == which || row.id == which));
    let revoked: Vec<KeyRow> = named.map(|row| KeyRow { revoked: Some(now), ..row.clone() }).collect();
    if revoked.is_empty() {
        return Err(Error::not_found(format!(
            "`{}` is neither a name with a key nor a key's id",
            quoted(which)
        ))
        .hint("`tiro user list` shows the keys"));
    }
    Ok(revoked)
}
