//! Files that the tools of a session changed, with their content before and after, so that the changes can be
//! undone and made again. They belong to the session and are never exported.

use aside_core::block::Time;

use crate::session::MessageId;

/// How much content is kept for one session, in compressed bytes. The oldest changes go first.
pub const MAX_CONTENT_BYTES: u64 = 64 << 20;

/// A version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion<'a> {
    pub content: &'a [u8],
    /// The permission bits; none for the default of a new file.
    pub mode: Option<u32>,
}

/// A change that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewFileChange<'a> {
    /// The time of the prompt whose turn changes the file. It identifies the turn even after a compaction.
    pub turn: Time,
    /// The absolute path, with all links followed.
    pub path: &'a str,
    /// None if the file does not exist yet.
    pub before: Option<FileVersion<'a>>,
    /// None if the file is gone.
    pub after: Option<FileVersion<'a>>,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKept {
    Kept {
        /// The files whose older changes were dropped to make room, one for each change.
        dropped: Vec<String>,
    },
    /// It needs more room than a session has.
    TooLarge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileChangeId(pub i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub i64);

/// A stored version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVersion {
    pub content: ContentId,
    pub mode: Option<u32>,
    pub n_bytes: u64,
}

/// A stored change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub id: FileChangeId,
    pub turn: Time,
    pub path: String,
    /// None if the file did not exist.
    pub before: Option<StoredVersion>,
    /// None if the file was gone.
    pub after: Option<StoredVersion>,
    pub undone_by: Option<UndoStepId>,
}

/// A change whose content is not kept, so that it cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnkeptChange {
    pub turn: Time,
    pub path: String,
    pub why: WhyUnkept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnkept {
    TooLarge,
    /// It made room for newer changes.
    NoRoom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoStepId(pub i64);

/// Something that was undone and can be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoStep {
    pub id: UndoStepId,
    /// The head of the conversation before; none if the conversation stayed.
    pub head: Option<MessageId>,
}
