//! The messages to and from the helper: what to start, and its report.
//!
//! Both are JSON with a four-byte length prefix on the helper's standard input, because
//! other processes can read a process's arguments and environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// A policy has a few hundred paths at most.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// One command and its confinement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub program: OsText,
    pub arguments: Vec<OsText>,
    pub folder: OsText,
    pub mechanism: Mechanism,
    pub policy: Policy,
    pub input: CommandInput,
    /// What to do if the command changes a protected path.
    pub on_protected_change: OnProtectedChange,
}

/// The mechanism that enforces the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    None,
    /// Landlock with this ABI, and seccomp.
    Kernel {
        abi: i32,
    },
    /// The bubblewrap at this path, and seccomp.
    Bubblewrap {
        program: OsText,
    },
    /// `sandbox-exec` of macOS.
    Seatbelt,
}

/// The command's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandInput {
    /// Empty. The helper's own input is a socket: closing it ends the command, and the
    /// report is written to it.
    Empty,
    /// What follows the launch on the helper's own input. No report is written.
    Forwarded,
}

/// What to do with a protected path that the command changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnProtectedChange {
    Restore,
    Keep,
}

/// The outcome of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchReport {
    pub end: CommandEnd,
    /// A background process was still running and was killed.
    pub killed_background: bool,
    /// Processes that could not be killed.
    pub survivors: Vec<i32>,
    /// Protected paths that it changed and that were restored.
    pub restored: Vec<String>,
    /// Protected paths that it changed and that stay changed.
    pub changed: Vec<String>,
    /// Paths that could not be watched or restored, and why.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnd {
    Exited(i32),
    Signalled(i32),
    /// The parent asked for it to end, or is gone.
    Stopped,
    /// It was not started, for this reason.
    NotStarted(String),
}

impl LaunchReport {
    pub(crate) fn not_started(why: impl Into<String>) -> LaunchReport {
        LaunchReport {
            end: CommandEnd::NotStarted(why.into()),
            killed_background: false,
            survivors: Vec::new(),
            restored: Vec::new(),
            changed: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// A path or an argument. JSON has no bytes, so anything that is not UTF-8 becomes a list
/// of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OsText {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl OsText {
    pub(crate) fn to_os(&self) -> OsString {
        match self {
            OsText::Utf8(text) => text.into(),
            OsText::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        self.to_os().into()
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for OsText {
    fn from(text: &T) -> OsText {
        let text = text.as_ref();
        match text.to_str() {
            Some(text) => OsText::Utf8(text.to_owned()),
            None => OsText::Bytes(text.as_bytes().to_vec()),
        }
    }
}

/// Serializes lists of paths.
pub(crate) mod path_list {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::OsText;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        paths.iter().map(|path| OsText::from(path.as_path())).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<OsText>::deserialize(from)?;
        Ok(texts.iter().map(OsText::to_path).collect())
    }
}

/// Encodes a value with its length prefix.
pub fn encode_frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length as usize <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the policy is too long"))?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(json);
    Ok(frame)
}

pub(crate) fn write_frame(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode_frame(value)?)
}

/// Reads one value and nothing after it.
pub fn read_frame<T: for<'a> Deserialize<'a>>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the policy is too long"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_utf8_survive_a_round_trip() {
        let odd = OsString::from_vec(b"/tmp/\xff\n\"x".to_vec());
        for path in [OsString::from("/tmp/a b"), odd] {
            let json = serde_json::to_string(&OsText::from(&path)).unwrap();
            let back: OsText = serde_json::from_str(&json).unwrap();
            assert_eq!(back.to_os(), path, "{json}");
        }
    }

    #[test]
    fn reading_a_value_leaves_the_bytes_after_it() {
        let mut bytes = encode_frame(&LaunchReport::not_started("x")).unwrap();
        bytes.extend(b"rest");
        let mut from = bytes.as_slice();
        assert_eq!(read_frame::<LaunchReport>(&mut from).unwrap(), LaunchReport::not_started("x"));
        assert_eq!(from, b"rest");
        let mut long: &[u8] = &[0xff; 8];
        assert!(read_frame::<LaunchReport>(&mut long).is_err());
    }
}
