//! Messages as they were written the last time: a request of a long
//! conversation repeats almost all of the one before it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::history::EntryId;
use crate::rules::Step;
use crate::tokens;

/// What was written for each message, while what it depends on stays the same.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    written: RefCell<HashMap<EntryId, Piece>>,
}

#[derive(Debug)]
struct Piece {
    step: Step,
    json: Arc<str>,
    tokens: u64,
}

impl Pieces {
    pub(super) fn forget(&mut self) {
        self.written.borrow_mut().clear();
    }

    /// A message, written now or before, and its tokens.
    pub(super) fn of(&self, entry: Option<EntryId>, step: &Step, write: impl FnOnce() -> String) -> (Arc<str>, u64) {
        let mut written = self.written.borrow_mut();
        if let Some(piece) = entry.and_then(|entry| written.get(&entry)).filter(|piece| piece.step == *step) {
            return (Arc::clone(&piece.json), piece.tokens);
        }
        let json: Arc<str> = write().into();
        let tokens = tokens::estimate(&json);
        if let Some(entry) = entry {
            written.insert(entry, Piece { step: step.clone(), json: Arc::clone(&json), tokens });
        }
        (json, tokens)
    }

    /// About how long a list of everything written will be.
    pub(super) fn size(&self) -> usize {
        self.written.borrow().values().map(|piece| piece.json.len() + 1).sum()
    }
}
