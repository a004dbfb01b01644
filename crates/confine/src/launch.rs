//! What the helper is told to start, and what it reports.
//!
//! Both are JSON behind their length in four bytes, on the helper's standard
//! input: arguments and environment of a process can be read by others.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// A policy has some hundred paths at the most.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A frame of this length is taken by any socket or pipe before it is read.
pub const FITS: usize = 48 * 1024;

/// One command and how it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub program: Text,
    pub arguments: Vec<Text>,
    pub folder: Text,
    pub barrier: Barrier,
    pub policy: Policy,
    pub input: Input,
    /// A change to a protected path was approved by the person, so it stays.
    pub protection: Protection,
}

/// What keeps the command inside its policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Barrier {
    None,
    /// Landlock of this ABI, and seccomp.
    Kernel {
        abi: i32,
    },
    /// This bubblewrap, and seccomp.
    Bubblewrap {
        program: Text,
    },
    /// `sandbox-exec` of macOS.
    Seatbelt,
}

/// What the command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Nothing. The helper's own input is a socket: it hears there that it should
    /// end, and reports there.
    Nothing,
    /// What follows the launch on the helper's own input. No report is written.
    Passed,
}

/// What happens to a protected path that the command changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protection {
    Restore,
    Keep,
}

/// What came of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub end: End,
    /// Something it had put into the background was still running.
    pub ended_others: bool,
    /// Processes that could not be ended.
    pub left: Vec<i32>,
    /// Protected paths that it changed and that are as they were before.
    pub restored: Vec<String>,
    /// Protected paths that it changed and that stay changed.
    pub changed: Vec<String>,
    /// What could not be restored, and why.
    pub troubles: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    Signalled(i32),
    /// It was ended because whoever started it asked for that, or is gone.
    Stopped,
    /// Nothing was started, for this reason.
    NotStarted(String),
}

impl Report {
    pub(crate) fn not_started(why: impl Into<String>) -> Report {
        Report {
            end: End::NotStarted(why.into()),
            ended_others: false,
            left: Vec::new(),
            restored: Vec::new(),
            changed: Vec::new(),
            troubles: Vec::new(),
        }
    }
}

/// Bytes that are mostly text: a path or an argument. JSON has no bytes, so what
/// is not UTF-8 is written as a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Plain(String),
    Bytes(Vec<u8>),
}

impl Text {
    pub fn to_os(&self) -> OsString {
        match self {
            Text::Plain(text) => text.into(),
            Text::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }

    pub fn to_path(&self) -> PathBuf {
        self.to_os().into()
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Text {
    fn from(text: &T) -> Text {
        let text = text.as_ref();
        match text.to_str() {
            Some(text) => Text::Plain(text.to_owned()),
            None => Text::Bytes(text.as_bytes().to_vec()),
        }
    }
}

/// Paths in JSON.
pub(crate) mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Text;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        paths.iter().map(|path| Text::from(path.as_path())).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<Text>::deserialize(from)?;
        Ok(texts.iter().map(Text::to_path).collect())
    }
}

/// The value behind its length.
pub fn framed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length as usize <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the policy is too long"))?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(json);
    Ok(frame)
}

pub(crate) fn write(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    to.write_all(&framed(value)?)
}

/// Reads one value, and nothing of what follows it.
pub fn read<T: for<'a> Deserialize<'a>>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MOST_BYTES {
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
    fn paths_that_are_no_text_arrive_as_they_are() {
        let odd = OsString::from_vec(b"/tmp/\xff\n\"x".to_vec());
        for path in [OsString::from("/tmp/a b"), odd] {
            let json = serde_json::to_string(&Text::from(&path)).unwrap();
            let back: Text = serde_json::from_str(&json).unwrap();
            assert_eq!(back.to_os(), path, "{json}");
        }
    }

    #[test]
    fn a_value_is_read_without_what_follows_it() {
        let mut bytes = framed(&Report::not_started("x")).unwrap();
        bytes.extend(b"rest");
        let mut from = bytes.as_slice();
        assert_eq!(read::<Report>(&mut from).unwrap(), Report::not_started("x"));
        assert_eq!(from, b"rest");
        let mut long: &[u8] = &[0xff; 8];
        assert!(read::<Report>(&mut long).is_err());
    }
}
