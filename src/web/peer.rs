//! Who is at the other end of a connection.
//!
//! Every user of a machine reaches its loopback address. On Linux, the system tells whose a connection is, so that a
//! server without keys answers only the user who started it, and root.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// Whether this system tells whose a connection is.
pub const TELLS_USERS: bool = cfg!(target_os = "linux");

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    address: SocketAddr,
    /// The server's address.
    own: SocketAddr,
    owner: Arc<OnceLock<Owner>>,
}

/// Whose a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user of this process, or root.
    User,
    /// Another user of this machine.
    Other,
    /// The system doesn't tell. Such a connection comes from another machine of the same person, as with the host of
    /// WSL, or was closed by the other end.
    Unknown,
}

impl Peer {
    /// Returns the other end of the connection from `address` to the server's address `own`.
    pub fn of(address: SocketAddr, own: SocketAddr) -> Peer {
        Peer { address, own, owner: Arc::default() }
    }

    /// Returns its IP address.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Returns whose the connection is. The first call asks the system.
    pub fn owner(&self) -> Owner {
        *self.owner.get_or_init(|| look(self.address, self.own))
    }
}

#[cfg(target_os = "linux")]
fn look(peer: SocketAddr, own: SocketAddr) -> Owner {
    /// How often the tables are read. A table is read in parts, and if other connections begin or end meanwhile, it may
    /// lack some.
    const TRIES: usize = 5;
    // The system walks all its connections to write a table, so the second one is read only if needed.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let mut tables = tables.into_iter().cycle().take(TRIES * tables.len());
    let found = tables.find_map(|file| entry(&std::fs::read_to_string(file).ok()?, peer, own));
    found.map_or(Owner::Unknown, |entry| owner(entry, rustix::process::getuid().as_raw()))
}

#[cfg(not(target_os = "linux"))]
fn look(_peer: SocketAddr, _own: SocketAddr) -> Owner {
    Owner::Unknown
}

/// A connection in a table of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    user: u32,
    /// Whether both ends are open.
    is_open: bool,
}

/// Returns whose a connection is if this process runs as `user`.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such tables"))]
fn owner(entry: Entry, user: u32) -> Owner {
    match entry {
        // A connection whose process has closed it belongs to nobody, and the system writes that it is root's.
        Entry { user: 0, is_open: false } => Owner::Unknown,
        Entry { user: of, .. } if of == user || of == 0 => Owner::User,
        _ => Owner::Other,
    }
}

/// Returns the connection from `peer` to the server's address `own` in `table`, the content of `/proc/net/tcp` or
/// `/proc/net/tcp6`.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such tables"))]
fn entry(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<Entry> {
    let (local, remote) = (written(peer), written(own));
    let is = |field: Option<&str>, address: &str| {
        // A socket for both versions of IP writes an IPv4 address after this prefix.
        field.is_some_and(|field| field.strip_prefix("0000000000000000FFFF0000").unwrap_or(field) == address)
    };
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        if !is(fields.next(), &local) || !is(fields.next(), &remote) {
            return None;
        }
        let is_open = fields.next()? == "01";
        // Queues, timer and retransmissions come before the user.
        Some(Entry { user: fields.nth(3)?.parse().ok()?, is_open })
    })
}

/// Returns an address as the tables write it: in words of four bytes, each with its last byte first.
fn written(address: SocketAddr) -> String {
    let bytes = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| word.iter().rev().map(|byte| format!("{byte:02X}")));
    format!("{}:{:04X}", words.flatten().collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_connection_is_found_in_the_table() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:101F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:D431 0100007F:101F 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
   2: 0100007F:D432 0100007F:101F 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
   3: 0100007F:D433 0100007F:101F 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0000000000000000FFFF00000100007F:D434 0000000000000000FFFF00000100007F:101F 01 00000000:00000000 00:00000000 00000000  1001        0 5
   5: 00000000000000000000000001000000:D435 00000000000000000000000001000000:101F 05 00000000:00000000 00:00000000 00000000  1002        0 6
   6: 0100007F:D436 0100007F:101F 05 00000000:00000000 00:00000000 00000000     0        0 0
";
        let peer = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let of = |port| entry(table, peer(port), peer(4127)).map(|entry| (entry.user, entry.is_open));
        assert_eq!(
            [0xD431, 0xD432, 0xD433, 0xD434, 0xD435, 0xD436].map(of),
            [
                Some((1001, true)),
                Some((1000, true)),
                Some((0, true)),
                Some((1001, true)),
                None,
                Some((0, false))
            ]
        );
        let six = |port| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
        assert_eq!(entry(table, six(0xD435), six(4127)), Some(Entry { user: 1002, is_open: false }));
        assert_eq!(entry(table, six(0xD435), six(4128)), None);
    }

    #[test]
    fn a_connection_is_the_users_only_if_the_system_says_so() {
        for (user, is_open, own, expected) in [
            (1000, true, 1000, Owner::User),
            (1000, false, 1000, Owner::User),
            (1001, true, 1000, Owner::Other),
            (0, true, 1000, Owner::User),
            (0, false, 1000, Owner::Unknown),
            (0, true, 0, Owner::User),
            (0, false, 0, Owner::Unknown),
        ] {
            assert_eq!(owner(Entry { user, is_open }, own), expected, "{user} {is_open} {own}");
        }
    }
}
