//! The profile for `sandbox-exec` on macOS. Written from its documentation and from other
//! projects' profiles; not yet tested on macOS.

use std::fmt::Write;
use std::path::Path;

use crate::policy::{DEVICES, NetworkPolicy, Policy};

/// The text of the profile. Later rules override earlier ones, and `literal` and
/// `subpath` are compared after resolving links.
pub fn profile(policy: &Policy) -> String {
    let mut text = String::from(
        "(version 1)\n\
         (deny default)\n\
         (allow process-exec process-fork)\n\
         (allow signal (target same-sandbox))\n\
         (allow process-info* (target same-sandbox))\n\
         (allow sysctl-read)\n\
         (allow file-read*)\n\
         (allow ipc-posix-sem)\n\
         (allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n",
    );
    let devices = DEVICES.iter().map(|device| format!(" (literal \"{device}\")")).collect::<String>();
    let _ = writeln!(text, "(allow file-write*{devices})");
    for path in &policy.writable {
        let _ = writeln!(text, "(allow file-write* (subpath {}))", quoted(path));
    }
    for path in &policy.protected {
        let _ = writeln!(text, "(deny file-write* (subpath {}))", quoted(path));
    }
    // Moving a parent folder would also move the protected path.
    for path in policy.protected.iter().filter_map(|path| path.parent()) {
        let _ = writeln!(text, "(deny file-write-unlink (literal {}))", quoted(path));
    }
    for path in &policy.unreadable {
        let _ = writeln!(text, "(deny file-read-data file-write* (subpath {}))", quoted(path));
    }
    // The deeper path takes precedence.
    for path in policy.writable.iter().filter(|path| policy.unreadable.iter().any(|above| path.starts_with(above))) {
        let _ = writeln!(text, "(allow file-read* file-write* (subpath {}))", quoted(path));
    }
    text.push_str("(deny file-read* file-write* (literal \"/dev/tty\") (regex #\"^/dev/ttys[0-9]+$\"))\n");
    match policy.network {
        NetworkPolicy::Off => text.push_str("(deny network*)\n"),
        NetworkPolicy::On => {
            text.push_str("(allow network-outbound (remote ip))\n");
            text.push_str("(allow network-bind network-inbound (local ip))\n");
            text.push_str("(allow mach-lookup (global-name \"com.apple.dnssd.service\"))\n");
            text.push_str("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n");
        }
    }
    text
}

/// Quotes a path for the profile. A path that is not UTF-8 cannot be written; it then
/// matches nothing, so it is not opened.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for one in path.to_string_lossy().chars() {
        if one == '"' || one == '\\' {
            text.push('\\');
        }
        text.push(one);
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(network: NetworkPolicy) -> Policy {
        Policy {
            writable: vec!["/Users/ann/a \"b\\".into(), "/private/tmp".into()],
            protected: vec!["/Users/ann/a \"b\\/.git/hooks".into()],
            unreadable: vec!["/Users/ann/.ssh".into()],
            network,
        }
    }

    const COMMON: &str = r##"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/full") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write* (subpath "/Users/ann/a \"b\\"))
(allow file-write* (subpath "/private/tmp"))
(deny file-write* (subpath "/Users/ann/a \"b\\/.git/hooks"))
(deny file-write-unlink (literal "/Users/ann/a \"b\\/.git"))
(deny file-read-data file-write* (subpath "/Users/ann/.ssh"))
(deny file-read* file-write* (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$"))
"##;

    #[test]
    fn k1_a_profile_denies_what_it_does_not_name() {
        assert_eq!(profile(&policy(NetworkPolicy::Off)), format!("{COMMON}(deny network*)\n"));
    }

    #[test]
    fn k1_network_is_opened_for_addresses_and_not_for_sockets_in_the_file_system() {
        let expected = r#"(allow network-outbound (remote ip))
(allow network-bind network-inbound (local ip))
(allow mach-lookup (global-name "com.apple.dnssd.service"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"#;
        assert_eq!(profile(&policy(NetworkPolicy::On)), format!("{COMMON}{expected}"));
    }
}
