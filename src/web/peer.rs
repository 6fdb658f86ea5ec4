//! Who is at the other end of a connection.
//!
//! Every user of a machine reaches its loopback address. On Linux, the system tells whose a connection is, so that a
//! server without keys answers only the user who started it, and root.

use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it is another user of this machine, as far as the system tells.
    pub is_another_user: bool,
}

/// Whether this system tells whose a connection is.
pub const TELLS_USERS: bool = cfg!(target_os = "linux");

impl Peer {
    /// Returns the other end of the connection from `address` to the server's address `own`.
    pub fn of(address: SocketAddr, own: SocketAddr) -> Peer {
        Peer { address, is_another_user: is_of_another_user(address, own) }
    }
}

/// Returns whether the connection is of another user of this machine, as far as the system tells.
fn is_of_another_user(peer: SocketAddr, own: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    {
        // The system walks all its connections to write a table, so the second one is read only if needed.
        let mut tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
        let owner = tables.find_map(|file| owner(&std::fs::read_to_string(file).ok()?, peer, own));
        owner.is_some_and(|owner| owner != rustix::process::getuid().as_raw() && owner != 0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (peer, own);
        false
    }
}

/// Returns the user to whom the connection from `peer` to the server's address `own` belongs, by `table`, the content of
/// `/proc/net/tcp` or `/proc/net/tcp6`. A connection that is in neither table comes from another machine of the same person,
/// such as the host of WSL.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such tables"))]
fn owner(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (local, remote) = (written(peer), written(own));
    let is = |field: Option<&str>, address: &str| {
        // A socket for both versions of IP writes an IPv4 address after this prefix.
        field.is_some_and(|field| field.strip_prefix("0000000000000000FFFF0000").unwrap_or(field) == address)
    };
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_this = is(fields.next(), &local) && is(fields.next(), &remote);
        // State, queues, timer and retransmissions come before the user.
        is_this.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

/// Returns an address as the tables write it: in words of four bytes, each with its last byte first.
fn written(address: SocketAddr) -> String {
    let bytes = match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
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
   5: 00000000000000000000000001000000:D435 00000000000000000000000001000000:101F 01 00000000:00000000 00:00000000 00000000  1002        0 6
";
        let peer = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let owner_of = |port| owner(table, peer(port), peer(4127));
        assert_eq!(
            [0xD431, 0xD432, 0xD433, 0xD434, 0xD435].map(owner_of),
            [Some(1001), Some(1000), Some(0), Some(1001), None]
        );
        let six = |port| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
        assert_eq!(owner(table, six(0xD435), six(4127)), Some(1002));
        assert_eq!(owner(table, six(0xD435), six(4128)), None);
    }
}
