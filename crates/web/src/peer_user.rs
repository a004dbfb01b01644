//! Which user of this machine is at the other end of a connection.
//!
//! The address with the login token is an argument of the browser's process, which
//! every user of the machine can read. While the server is not running, every user can
//! take its port, and a browser then sends the cookie there. So both work only for the user who owns them.

use std::fs;
use std::net::{IpAddr, SocketAddr};

const ROOT: u32 = 0;

/// Whether a connection from this machine belongs to another user. Systems without
/// the kernel's tables of connections cannot tell.
pub(crate) fn is_other_user(peer: SocketAddr, listen: SocketAddr) -> bool {
    if !peer.ip().to_canonical().is_loopback() {
        return false;
    }
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let Some(own) = own_user() else { return false };
    if tables.is_empty() {
        return false;
    }
    // A connection that is not in the tables is closed, and its answer is not read.
    let user = tables.iter().find_map(|table| owner(table, peer, listen.port()));
    user.is_none_or(|user| user != own && user != ROOT)
}

#[cfg(target_os = "linux")]
fn own_user() -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").ok()?))
}

#[cfg(not(target_os = "linux"))]
fn own_user() -> Option<u32> {
    None
}

/// The owner of the socket with this address that is connected to this port.
fn owner(table: &str, peer: SocketAddr, port: u16) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, remote) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
        let is_ours = local.1 == peer.port() && local.0 == peer.ip().to_canonical() && remote.1 == port;
        fields.get(7).filter(|_| is_ours)?.parse().ok()
    })
}

/// Reads `0100007F:1F90`: words in the machine's byte order, then the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_os = "linux", target_endian = "little"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const HEADER: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    #[test]
    fn w4_the_owner_of_a_connection_is_found_in_both_tables() {
        let line = |local: &str| {
            format!(
                "{HEADER}   0: {local}:9C40 0100007F:1067 01 00000000:00000000 00:00000000 00000000 65534        0 1 1\n"
            )
        };
        let peer = SocketAddr::from(([127, 0, 0, 1], 0x9C40));
        for local in ["0100007F", "0000000000000000FFFF00000100007F"] {
            assert_eq!(owner(&line(local), peer, 0x1067), Some(65534), "{local}");
            assert_eq!(owner(&line(local), peer, 0x1068), None, "another server");
        }
        assert_eq!(owner(&line("0200007F"), peer, 0x1067), None, "another address");
        assert_eq!(owner("junk\n0: x y\n", peer, 1), None);
    }

    #[test]
    fn w4_our_own_connection_is_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap();
        let client = TcpStream::connect(listen).unwrap();
        assert!(!is_other_user(client.local_addr().unwrap(), listen));
        let closed = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(is_other_user(closed, listen), "a connection that does not exist has no owner");
    }
}
