//! Messages as they were written the last time: a request of a long
//! conversation repeats almost all of the one before it.

use std::cell::RefCell;
use std::collections::HashMap;

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
    json: String,
    tokens: u64,
}

impl Pieces {
    pub(super) fn forget(&mut self) {
        self.written.borrow_mut().clear();
    }

    /// Appends a message to a list, written now or before; its tokens.
    pub(super) fn append(
        &self,
        entry: Option<EntryId>,
        step: &Step,
        list: &mut String,
        write: impl FnOnce() -> String,
    ) -> u64 {
        let mut written = self.written.borrow_mut();
        if let Some(piece) = entry.and_then(|entry| written.get(&entry)).filter(|piece| piece.step == *step) {
            push(&piece.json, list);
            return piece.tokens;
        }
        let json = write();
        let tokens = tokens::estimate(&json);
        push(&json, list);
        if let Some(entry) = entry {
            written.insert(entry, Piece { step: step.clone(), json, tokens });
        }
        tokens
    }

    /// About how long a list of everything written will be.
    pub(super) fn size(&self) -> usize {
        self.written.borrow().values().map(|piece| piece.json.len() + 1).sum()
    }
}

/// A message may have nothing to say; then nothing separates it.
fn push(json: &str, list: &mut String) {
    if !json.is_empty() {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(json);
    }
}
