//! Why a server did not take or give changes, in words that are safe to show. Nothing that a server says is repeated.

use std::fmt;
use std::time::Duration;

use crate::page::{FORMAT, Unreadable};
use crate::server::Server;
use tiro_base::error::{Error, Kind};

/// Why a request was in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There was no connection, or it ended early. The text says why.
    Offline(&'static str),
    /// The server has too much to do, or fails. It may ask to wait for some time.
    Busy(Option<Duration>),
    /// The key is unknown or revoked.
    KeyRefused,
    /// The key has expired.
    KeyExpired,
    /// The key may not do this.
    MayNot,
    /// The server answers only its own user without a key, or doesn't know itself by this address.
    Closed,
    /// The project isn't shared with the user, or doesn't exist.
    NotShared,
    /// The server wants to send the request, with the key, to another address.
    Redirects,
    /// What answers is no Tiro that can sync.
    NoTiro,
    /// The server speaks only older formats.
    ServerIsOlder,
    /// The server speaks only later formats.
    ServerIsLater,
    /// A page of the server can't be read.
    Page(Unreadable),
    /// The server refused the request for a reason that this version doesn't know.
    Refused(u16),
}

impl Trouble {
    /// Returns whether the same request may succeed later without anybody doing anything.
    pub fn passes(self) -> bool {
        matches!(self, Trouble::Offline(_) | Trouble::Busy(_) | Trouble::Page(Unreadable::BrokenOff))
    }

    /// Returns how long the server asks to wait.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Trouble::Busy(wait) => wait,
            _ => None,
        }
    }

    /// Returns the error.
    pub fn error(self, server: &Server) -> Error {
        let name = format!("`{server}`");
        let new_key = "ask who runs the server for a key, and run `tiro connect` again";
        let (what, hint) = match self {
            Trouble::Offline(why) => {
                (format!("cannot reach {name}: {why}"), "everything goes on here; changes are sent later")
            }
            Trouble::Busy(_) => (format!("{name} is busy"), "changes are sent later"),
            Trouble::KeyRefused => (format!("{name} refuses the key: it is unknown or revoked"), new_key),
            Trouble::KeyExpired => (format!("{name} refuses the key: it has expired"), new_key),
            Trouble::MayNot => (
                format!("the key may not do this at {name}"),
                "ask who runs the server for the right to write",
            ),
            Trouble::Closed => (
                format!("{name} answers only its own user, or isn't called so"),
                "use the address that the server's owner gives; the owner starts it with `--host NAME`",
            ),
            Trouble::NotShared => (
                format!("the project isn't shared with you at {name}, or doesn't exist there"),
                "the server's owner shares it with `tiro share PROJECT --with TEAM --write`, or `--read`",
            ),
            Trouble::Redirects => (
                format!("{name} sends requests on to another address, and a key isn't sent there"),
                "connect to the address at which the server itself answers",
            ),
            Trouble::NoTiro => (
                format!("what answers at {name} is no Tiro that can sync"),
                "check the address; a server of an older version must be upgraded first",
            ),
            Trouble::ServerIsOlder => (
                format!("{name} runs a version of Tiro that is too old for this one"),
                "ask who runs the server to upgrade it",
            ),
            Trouble::ServerIsLater => (
                format!("{name} runs a later version of Tiro, which no longer understands this one"),
                "upgrade Tiro on this machine",
            ),
            Trouble::Page(why) => (
                format!("an answer of {name} can't be read: {}", why.words()),
                "run `tiro sync` again; if it fails again, upgrade the older of the two versions of Tiro",
            ),
            Trouble::Refused(status) => {
                (format!("{name} refuses the request with status {status}"), "the log of the server says why")
            }
        };
        let kind = match self {
            Trouble::NotShared => Kind::NotFound,
            _ => Kind::Server,
        };
        Error::new(kind, what).hint(hint).with_retry_after(self.wait()).source(self)
    }
}

/// As the cause of an error, it says nothing that the error doesn't say. Callers ask it whether it passes.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Trouble {}

/// Returns the trouble of a server that speaks the formats `oldest` to `newest`; `None` if it speaks ours.
pub(crate) fn of_formats(oldest: u32, newest: u32) -> Option<Trouble> {
    match FORMAT {
        own if own < oldest => Some(Trouble::ServerIsLater),
        own if own > newest => Some(Trouble::ServerIsOlder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_happened_and_what_to_do_and_whether_it_passes() {
        let server = Server::read("https://memory.test").unwrap();
        for (trouble, words, passes) in [
            (Trouble::Offline("the connection was refused"), "cannot reach `https://memory.test`", true),
            (Trouble::Busy(Some(Duration::from_secs(3))), "is busy", true),
            (Trouble::Page(Unreadable::BrokenOff), "ends too early", true),
            (Trouble::Page(Unreadable::Other), "can't be read", false),
            (Trouble::KeyRefused, "unknown or revoked", false),
            (Trouble::KeyExpired, "has expired", false),
            (Trouble::MayNot, "may not", false),
            (Trouble::Closed, "only its own user", false),
            (Trouble::NotShared, "isn't shared", false),
            (Trouble::Redirects, "another address", false),
            (Trouble::NoTiro, "no Tiro", false),
            (Trouble::ServerIsOlder, "too old", false),
            (Trouble::ServerIsLater, "later version", false),
            (Trouble::Refused(418), "418", false),
        ] {
            let error = trouble.error(&server);
            assert!(error.to_string().contains(words) && error.way_out().is_some(), "{error:?}");
            assert!(
                !error.to_string().contains("Trouble") && !error.to_string().contains("Offline"),
                "{error}"
            );
            assert_eq!(error.root::<Trouble>().map(|trouble| trouble.passes()), Some(passes), "{trouble:?}");
            assert_eq!(error.retry_after(), trouble.wait());
        }
        assert_eq!((of_formats(1, 1), of_formats(1, 9)), (None, None));
        assert_eq!(of_formats(2, 3), Some(Trouble::ServerIsLater));
        assert_eq!(of_formats(0, 0), Some(Trouble::ServerIsOlder));
    }
}
