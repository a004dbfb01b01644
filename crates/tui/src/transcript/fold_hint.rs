//! Says how to open what is folded, and how to come back to the end.

use crate::bindings::{Bindings, KeyAction, KeyChord};
use crate::text::width_of;

use super::BottomHint;

/// The keys that hints name; none where the user bound none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HintKeys {
    /// Opens the last block.
    fold_last: Option<KeyChord>,
    /// Moves to a block, where `o` opens it.
    browse: Option<KeyChord>,
    to_end: Option<KeyChord>,
}

/// From this width on there is room for a key as well as for the words.
const ROOM_FOR_KEY: usize = 60;

impl HintKeys {
    pub fn of(bindings: &Bindings) -> HintKeys {
        let first = |action| bindings.keys(action).first().copied();
        HintKeys {
            fold_last: first(KeyAction::FoldLast),
            browse: first(KeyAction::Complete),
            to_end: first(KeyAction::ToEnd),
        }
    }

    /// How to open a block: by one key if it is the last that can be opened.
    pub(super) fn to_open(self, is_last: bool) -> OpenHint {
        let last = self.fold_last.filter(|_| is_last).map(|key| key.to_string());
        let keys = match (last, self.browse) {
            (Some(last), _) => vec![last],
            (None, Some(browse)) => vec![format!("{browse}, then o"), browse.to_string()],
            (None, None) => Vec::new(),
        };
        OpenHint { keys }
    }

    /// The hint that leads to the end.
    pub(super) fn end_hint(self, bottom_hint: BottomHint, width: usize) -> String {
        let word = match bottom_hint {
            BottomHint::Live => "live",
            BottomHint::End => "end",
        };
        match self.to_end.filter(|_| width >= ROOM_FOR_KEY) {
            Some(key) => format!(" ↓ {word} · {key} "),
            None => format!(" ↓ {word} "),
        }
    }
}

/// How to open a folded block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenHint {
    /// In words, the longest first.
    keys: Vec<String>,
}

impl OpenHint {
    /// The hint in its forms, the longest first.
    fn forms(&self) -> Vec<String> {
        let both = self.keys.first().map(|keys| format!("{MOUSE} · {keys}"));
        let by_keys = self.keys.iter().map(|keys| format!("({keys})"));
        both.into_iter().chain([MOUSE.to_owned()]).chain(by_keys).collect()
    }

    /// The longest form in this room, otherwise the shortest.
    pub(super) fn fitting(&self, room: usize) -> String {
        let mut forms = self.forms();
        let fits = forms.iter().position(|form| width_of(form) <= room).unwrap_or(forms.len() - 1);
        forms.swap_remove(fits)
    }

    /// The same, but a key is worth more than the words about the mouse.
    pub(super) fn fitting_with_key(&self, room: usize) -> String {
        let mut forms = self.forms();
        forms.retain(|form| form != MOUSE || self.keys.is_empty());
        let fits = forms.iter().position(|form| width_of(form) <= room).unwrap_or(forms.len() - 1);
        forms.swap_remove(fits)
    }
}

const MOUSE: &str = "(click to expand)";
