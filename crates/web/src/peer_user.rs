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
    // A connection without a row of a socket is closed, and its answer is not read.
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

/// The owner of the socket with this address that is connected to this port. After the socket is closed, the kernel
/// keeps a row for a while with the user 0 instead of its owner; such a row has no inode.
fn owner(table: &str, peer: SocketAddr, port: u16) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, remote) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
        let is_ours = local.1 == peer.port() && local.0 == peer.ip().to_canonical() && remote.1 == port;
        let has_socket = fields.get(9)?.parse::<u64>().ok()? != 0;
        fields.get(7).filter(|_| is_ours && has_socket)?.parse().ok()
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

    fn row(local: &str, state: &str, user: u32, inode: u32) -> String {
        let times = "00000000:00000000 00:00000000 00000000";
        format!("{HEADER}   0: {local}:9C40 0100007F:1067 {state} {times} {user}        0 {inode} 1\n")
    }

    #[test]
    fn w4_a_closed_socket_has_no_owner() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 0x9C40));
        #[rustfmt::skip]
        let cases = [
            // state         in the table  user  inode  owner
            ("established",       "01",    1000, 7,     Some(1000)),
            ("established, root", "01",    0,    7,     Some(0)),
            ("the server closed", "08",    1000, 7,     Some(1000)),
            ("half closed",       "05",    1000, 7,     Some(1000)),
            ("orphaned",          "04",    0,    0,     None),
            ("orphaned",          "05",    0,    0,     None),
            ("time wait",         "06",    0,    0,     None),
            ("last ack",          "09",    0,    0,     None),
        ];
        for (name, state, user, inode, expected) in cases {
            assert_eq!(owner(&row("0100007F", state, user, inode), peer, 0x1067), expected, "{name}");
        }
        let reused = format!("{}{}", row("0100007F", "06", 0, 0), row("0100007F", "01", 1000, 7));
        assert_eq!(owner(&reused, peer, 0x1067), Some(1000), "the port is in use again");
    }

    #[test]
    fn w4_a_real_connection_has_no_owner_once_its_socket_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap();
        let client = TcpStream::connect(listen).unwrap();
        let peer = client.local_addr().unwrap();
        let _accepted = listener.accept().unwrap();
        assert!(!is_other_user(peer, listen));
        drop(client);
        assert!(is_other_user(peer, listen), "the kernel keeps a row without a socket");
    }

    #[test]
    fn w4_the_owner_of_a_connection_is_found_in_both_tables() {
        let line = |local: &str| row(local, "01", 65534, 1);
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
