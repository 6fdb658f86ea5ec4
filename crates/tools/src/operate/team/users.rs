//! Makes, lists, revokes and replaces the personal keys of a server over HTTP.

use serde::Serialize;

use super::audit;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::Millis;
use tiro_base::times;
use tiro_host::engine::Engine;
use tiro_host::principals::Access;
use tiro_host::principals::key::Key;
use tiro_host::principals::keys::{self, Wanted};
use tiro_store::KeyRow;

/// The longest time for which a key can be valid, in days. Arbitrary: ten years.
const LONGEST: i64 = 3650;

/// The answer of `tiro user add` and `tiro user rotate`.
#[derive(Serialize)]
pub struct Made {
    /// The name of the author.
    pub name: String,
    /// The public id of the key.
    pub id: String,
    /// What the author may do.
    pub scope: String,
    /// When the key expires, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The whole key. It is not stored, so nothing shows it again.
    pub key: String,
}

/// The answer of `tiro user list`.
#[derive(Serialize)]
pub struct Listed {
    /// The keys, by name and the time when they were made.
    pub keys: Vec<Listing>,
}

/// A key, as the list shows it.
#[derive(Serialize)]
pub struct Listing {
    /// The name of the author.
    pub name: String,
    /// The public id.
    pub id: String,
    /// What the author may do.
    pub scope: String,
    /// `valid`, `expired` or `revoked`.
    pub state: &'static str,
    /// The day on which it was made.
    pub made: String,
    /// When it expires, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The day on which it was used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

/// The answer of `tiro user revoke`.
#[derive(Serialize)]
pub struct Revoked {
    /// The ids of the keys.
    pub revoked: Vec<String>,
}

/// Makes a key for the author `name`. `expires` is the time for which it is valid, such as `90d`.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if an argument is wrong, or the author has a key.
pub async fn add(engine: &Engine, name: &str, access: Access, expires: Option<&str>) -> Result<Made> {
    let now = engine.now();
    let expires = expires.map(valid_for).transpose()?.map(|time| now + time);
    let registry = engine.begin_installation().await?.registry;
    let made = keys::add(registry.as_ref(), Wanted { name, access, expires }, engine.random(), now).await;
    audit::note_command(engine, "user add", None, &[name], made.as_ref().err()).await?;
    Ok(shown(made?))
}

/// Revokes the keys of the author or with the id `which`, and makes a new one that is valid for as long.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is none.
pub async fn rotate(engine: &Engine, which: &str) -> Result<Made> {
    let registry = engine.begin_installation().await?.registry;
    let made = keys::rotate(registry.as_ref(), which, engine.random(), engine.now()).await;
    audit::note_command(engine, "user rotate", None, &[which], made.as_ref().err()).await?;
    Ok(shown(made?))
}

/// Revokes the keys of the author or with the id `which`. A running server refuses them from its next request on.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is none.
pub async fn revoke(engine: &Engine, which: &str) -> Result<Revoked> {
    let registry = engine.begin_installation().await?.registry;
    let revoked = keys::revoke(registry.as_ref(), which, engine.now()).await;
    audit::note_command(engine, "user revoke", None, &[which], revoked.as_ref().err()).await?;
    Ok(Revoked { revoked: revoked?.into_iter().map(|row| row.id).collect() })
}

/// Returns all keys, also those that are no longer valid.
pub async fn list(engine: &Engine) -> Result<Listed> {
    let now = engine.now();
    let listing = |row: KeyRow| Listing {
        state: row.state(now),
        scope: row.access.to_string(),
        made: times::day(row.made),
        expires: row.expires.map(times::minute),
        // The day is that of UTC.
        last_used: row.used.map(|used| times::show_time(used).chars().take(10).collect()),
        name: row.name,
        id: row.id,
    };
    let rows = engine.installation().await?.registry.keys().await?;
    Ok(Listed { keys: rows.into_iter().map(listing).collect() })
}

fn shown((key, row): (Key, KeyRow)) -> Made {
    Made {
        name: row.name,
        id: row.id,
        scope: row.access.to_string(),
        expires: row.expires.map(times::minute),
        key: key.text().to_owned(),
    }
}

/// Reads a length of time, such as `90d`, `12w` or `8h`.
fn valid_for(text: &str) -> Result<Millis> {
    let wrong = || {
        Error::bad_input(format!("`{}` is no length of time", quoted(text)))
            .hint(format!("write a number of hours, days or weeks, such as 90d, and at most {LONGEST}d"))
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let hours =
        count.checked_mul(hours).filter(|hours| (1..=LONGEST * 24).contains(hours)).ok_or_else(wrong)?;
    Ok(hours * 60 * 60 * 1000)
}

impl Made {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Made { name, id, scope, expires, key } = self;
        let expires = expires.as_ref().map_or(String::new(), |time| format!(", until {time}"));
        format!("Key {id} of {name}, scope {scope}{expires}. It is shown only now:\n{key}")
    }
}

impl Listed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.keys.is_empty() {
            return "No keys yet. `tiro user add NAME` makes one.".to_owned();
        }
        let line = |key: &Listing| {
            let Listing { name, id, scope, state, made, expires, last_used } = key;
            let expires = expires.as_ref().map_or(String::new(), |time| format!(", until {time}"));
            let used = last_used.as_ref().map_or("never used".to_owned(), |day| format!("last used {day}"));
            format!("{id}  {name}  {scope}  {state}, made {made}{expires}, {used}")
        };
        self.keys.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Revoked {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        format!("Revoked: {}.", self.revoked.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit_and_an_end() {
        const HOUR: i64 = 60 * 60 * 1000;
        for (text, expected) in [
            ("90d", Some(90 * 24 * HOUR)),
            ("2w", Some(14 * 24 * HOUR)),
            ("8h", Some(8 * HOUR)),
            ("3650d", Some(3650 * 24 * HOUR)),
            ("3651d", None),
            ("0d", None),
            ("-1d", None),
            ("d", None),
            ("90", None),
            ("9é", None),
            ("", None),
            ("9223372036854775807w", None),
        ] {
            assert_eq!(valid_for(text).ok(), expected, "{text}");
        }
    }
}
