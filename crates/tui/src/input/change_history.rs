//! Undo and redo for the input.

/// How many steps can be undone.
const MAX_STEPS: usize = 200;

/// The text and the cursor at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditorState {
    pub(super) text: String,
    pub(super) at: usize,
}

/// What changes the text. Letters that follow each other are one step, up to the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Letter,
    Space,
    Removal,
    Other,
}

#[derive(Debug, Default)]
pub(super) struct ChangeHistory {
    before: Vec<EditorState>,
    after: Vec<EditorState>,
    last: Option<ChangeKind>,
}

impl ChangeHistory {
    /// Call it before a change.
    pub(super) fn before(&mut self, kind: ChangeKind, text: &str, at: usize) {
        let continues = match (self.last, kind) {
            (Some(ChangeKind::Letter), ChangeKind::Letter | ChangeKind::Space) => true,
            (Some(ChangeKind::Space), ChangeKind::Space) => true,
            (Some(ChangeKind::Removal), ChangeKind::Removal) => true,
            (None | Some(ChangeKind::Letter | ChangeKind::Space | ChangeKind::Removal | ChangeKind::Other), _) => false,
        };
        self.last = Some(kind);
        self.after.clear();
        if continues {
            return;
        }
        if self.before.len() >= MAX_STEPS {
            self.before.remove(0);
        }
        self.before.push(EditorState { text: text.to_owned(), at });
    }

    /// The state before the last step; none if there is none.
    pub(super) fn undo(&mut self, text: &str, at: usize) -> Option<EditorState> {
        self.last = None;
        let state = self.before.pop()?;
        self.after.push(EditorState { text: text.to_owned(), at });
        Some(state)
    }

    /// The state before the last undo; none if something changed since.
    pub(super) fn redo(&mut self, text: &str, at: usize) -> Option<EditorState> {
        self.last = None;
        let state = self.after.pop()?;
        self.before.push(EditorState { text: text.to_owned(), at });
        Some(state)
    }
}
