//! The id of a remembered reply.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::random;

/// The length of a reply's id.
pub(crate) const REPLY_ID_BYTES: usize = 12;

/// Identifies a remembered reply within its tenant. Random, so that rows spread
/// over the ranges of a distributed database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyId(pub(crate) [u8; REPLY_ID_BYTES]);

impl ReplyId {
    pub(crate) fn random() -> ReplyId {
        ReplyId(random::bytes())
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<ReplyId> {
        bytes.try_into().ok().map(ReplyId)
    }
}

impl fmt::Display for ReplyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for ReplyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyId({self})")
    }
}
