//! Key bindings: one table of actions, used for dispatch, `/help` and the `[keys]` table of the
//! config.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others cannot be bound")]

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

macro_rules! actions {
    ($($action:ident, $name:literal, [$($key:literal),*], $doc:literal;)+) => {
        /// What a key can do, besides editing text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum KeyAction {
            $($action),+
        }

        pub const ACTIONS: &[ActionEntry] = &[
            $(ActionEntry { action: KeyAction::$action, name: $name, keys: &[$($key),*], doc: $doc }),+
        ];
    };
}

pub struct ActionEntry {
    pub action: KeyAction,
    /// The action's name in the config.
    pub name: &'static str,
    /// The default keys.
    pub keys: &'static [&'static str],
    pub doc: &'static str,
}

actions! {
    Send, "send", ["enter"], "send; during a turn, the message is sent after the current step";
    Queue, "queue", ["ctrl+q"], "send after the turn";
    NewLine, "new_line", ["alt+enter", "shift+enter", "ctrl+j"], "insert a new line";
    Stop, "stop", ["esc"], "stop the turn, and keep what was received";
    Clear, "clear", ["ctrl+c"], "stop what runs, else clear the input; twice on an empty line quits";
    Leave, "leave", ["ctrl+d"], "quit, if the input is empty";
    NextMode, "next_mode", ["shift+tab"], "switch what tools may do without a question: ask, accept-edits, read-only";
    ToggleThinking, "toggle_thinking", ["ctrl+t"], "switch the view of thinking: full, live, collapsed, off";
    FoldLast, "fold_last", ["ctrl+o"], "open or fold the last block";
    ReadLast, "read_last", ["ctrl+r"], "read the last thinking on the whole screen";
    Complete, "complete", ["tab"], "complete, or unfold the paste before the cursor; in an empty line: move between blocks, o opens, r reads, y copies";
    Find, "find", ["ctrl+f"], "find words in this session, thinking included";
    Editor, "editor", ["ctrl+g"], "write in your own editor ($VISUAL, $EDITOR)";
    PageUp, "page_up", ["pageup"], "scroll a page up";
    PageDown, "page_down", ["pagedown"], "scroll a page down";
    TurnBefore, "turn_before", ["alt+up"], "go to your previous message";
    TurnAfter, "turn_after", ["alt+down"], "go to your next message";
    ToStart, "to_start", ["ctrl+home"], "go to the start; also Home in an empty input";
    ToEnd, "to_end", ["ctrl+end"], "go to the end; also End in an empty input";
    Suspend, "suspend", ["ctrl+z"], "suspend to the shell, until fg";
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyChord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Keys that have a name. Letters, digits and signs stand for themselves.
const NAMED_KEYS: [(&str, &str, KeyCode); 14] = [
    ("enter", "Enter", KeyCode::Enter),
    ("tab", "Tab", KeyCode::Tab),
    ("esc", "Esc", KeyCode::Esc),
    ("space", "Space", KeyCode::Char(' ')),
    ("backspace", "Backspace", KeyCode::Backspace),
    ("delete", "Delete", KeyCode::Delete),
    ("insert", "Insert", KeyCode::Insert),
    ("home", "Home", KeyCode::Home),
    ("end", "End", KeyCode::End),
    ("pageup", "PgUp", KeyCode::PageUp),
    ("pagedown", "PgDn", KeyCode::PageDown),
    ("up", "Up", KeyCode::Up),
    ("down", "Down", KeyCode::Down),
    ("left", "Left", KeyCode::Left),
];

/// Most terminals send these Ctrl combinations as another key.
const SAME_AS: [(char, &str); 4] = [('i', "tab"), ('m', "enter"), ('[', "esc"), ('h', "backspace")];

impl From<KeyEvent> for KeyChord {
    fn from(event: KeyEvent) -> KeyChord {
        let modifiers = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        match event.code {
            // The letter's case already implies Shift.
            KeyCode::Char(letter) => KeyChord {
                code: KeyCode::Char(letter.to_ascii_lowercase()),
                modifiers: modifiers - KeyModifiers::SHIFT,
            },
            KeyCode::BackTab => KeyChord { code: KeyCode::Tab, modifiers: modifiers | KeyModifiers::SHIFT },
            code => KeyChord { code, modifiers },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyError {
    Unknown(String),
    /// A bare letter would be typed into the input.
    Letter(String),
    /// Terminals send the same bytes for both keys.
    SameAs(String, &'static str),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Unknown(word) => write!(f, "unknown key `{word}`"),
            KeyError::Letter(word) => write!(f, "`{word}` alone cannot be bound"),
            KeyError::SameAs(word, other) => write!(f, "terminals cannot tell `{word}` from `{other}`"),
        }
    }
}

impl KeyError {
    pub fn hint(&self) -> String {
        let names: Vec<&str> = NAMED_KEYS.iter().map(|(name, ..)| *name).chain(["right", "f1 to f12"]).collect();
        format!("ctrl+, alt+ or shift+ before a letter or one of: {}", names.join(", "))
    }
}

impl FromStr for KeyChord {
    type Err = KeyError;

    fn from_str(word: &str) -> Result<KeyChord, KeyError> {
        let unknown = || KeyError::Unknown(word.to_owned());
        let lower = word.trim().to_ascii_lowercase();
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = lower.as_str();
        while let Some((modifier, after)) = rest.split_once('+').filter(|(_, after)| !after.is_empty()) {
            modifiers |= match modifier.trim() {
                "ctrl" | "control" => KeyModifiers::CONTROL,
                "alt" | "meta" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(unknown()),
            };
            rest = after.trim();
        }
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next()) {
            (Some(letter), None) => KeyCode::Char(letter),
            _ => named(rest).ok_or_else(unknown)?,
        };
        let with_others = KeyModifiers::CONTROL | KeyModifiers::ALT;
        if let KeyCode::Char(letter) = code {
            if !modifiers.intersects(with_others) {
                return Err(KeyError::Letter(word.to_owned()));
            }
            let same = SAME_AS.iter().find(|(same, _)| *same == letter && modifiers.contains(KeyModifiers::CONTROL));
            if let Some((_, other)) = same {
                return Err(KeyError::SameAs(word.to_owned(), other));
            }
            modifiers -= KeyModifiers::SHIFT;
        }
        Ok(KeyChord { code, modifiers })
    }
}

fn named(word: &str) -> Option<KeyCode> {
    let function = word.strip_prefix('f').and_then(|number| number.parse().ok());
    match (word, function) {
        ("right", _) => Some(KeyCode::Right),
        (_, Some(number @ 1..=12)) => Some(KeyCode::F(number)),
        _ => NAMED_KEYS.iter().find(|(name, ..)| *name == word).map(|(.., code)| *code),
    }
}

impl fmt::Display for KeyChord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")];
        for (modifier, name) in table {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        let name = NAMED_KEYS.iter().find(|(.., code)| *code == self.code).map(|(_, name, _)| *name);
        match (name, self.code) {
            (Some(name), _) => f.write_str(name),
            (None, KeyCode::Char(letter)) => write!(f, "{}", letter.to_uppercase()),
            (None, KeyCode::F(number)) => write!(f, "F{number}"),
            (None, KeyCode::Right) => f.write_str("Right"),
            (None, other) => write!(f, "{other}"),
        }
    }
}

/// The keys bound to every action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bindings {
    keys: Vec<(KeyAction, Vec<KeyChord>)>,
}

impl Default for Bindings {
    fn default() -> Bindings {
        let keys_of = |entry: &ActionEntry| entry.keys.iter().filter_map(|key| key.parse().ok()).collect();
        Bindings { keys: ACTIONS.iter().map(|entry| (entry.action, keys_of(entry))).collect() }
    }
}

/// Why a line of `[keys]` is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingError {
    pub what: String,
    pub hint: String,
}

impl Bindings {
    /// The action bound to this key.
    pub fn action(&self, key: KeyEvent) -> Option<KeyAction> {
        let key = KeyChord::from(key);
        self.keys.iter().find(|(_, keys)| keys.contains(&key)).map(|(action, _)| *action)
    }

    pub fn keys(&self, action: KeyAction) -> &[KeyChord] {
        self.keys.iter().find(|(one, _)| *one == action).map_or(&[], |(_, keys)| keys)
    }

    /// The keys of an action, as shown in `/help`.
    pub fn keys_text(&self, action: KeyAction) -> String {
        self.keys(action).iter().map(KeyChord::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Replaces the keys of an action.
    pub fn bind(&mut self, name: &str, words: &[&str]) -> Result<(), BindingError> {
        let Some(entry) = ACTIONS.iter().find(|entry| entry.name == name) else {
            let names: Vec<&str> = ACTIONS.iter().map(|entry| entry.name).collect();
            let hint = format!("the actions are: {}", names.join(", "));
            return Err(BindingError { what: format!("unknown action `{name}`"), hint });
        };
        if words.is_empty() && entry.action == KeyAction::Send {
            let what = "nothing could be sent without a key for it".to_owned();
            return Err(BindingError { what, hint: "send = \"enter\"".to_owned() });
        }
        let keys: Result<Vec<KeyChord>, KeyError> = words.iter().map(|word| word.parse()).collect();
        let keys = keys.map_err(|bad| BindingError { what: bad.to_string(), hint: bad.hint() })?;
        if let Some((_, bound)) = self.keys.iter_mut().find(|(action, _)| *action == entry.action) {
            *bound = keys;
        }
        Ok(())
    }

    /// Reports a key of this action that another action has too. Call it once everything is bound.
    pub fn conflict(&self, name: &str) -> Option<BindingError> {
        let own = ACTIONS.iter().find(|entry| entry.name == name)?;
        let keys = self.keys(own.action);
        let other = |other: &&ActionEntry| other.action != own.action;
        ACTIONS.iter().filter(other).find_map(|other| {
            let key = keys.iter().find(|key| self.keys(other.action).contains(key))?;
            let what = format!("{key} is the key of `{}` as well", other.name);
            Some(BindingError { what, hint: format!("give `{}` another key, or [] for none", other.name) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_keys_are_valid_and_do_not_conflict() {
        let bindings = Bindings::default();
        for entry in ACTIONS {
            assert_eq!(bindings.keys(entry.action).len(), entry.keys.len(), "{}", entry.name);
            assert_eq!(bindings.conflict(entry.name), None);
        }
    }

    #[test]
    fn keys_are_parsed_and_shown_in_the_usual_notation() {
        #[rustfmt::skip]
        let cases = [
            ("ctrl+t",         Ok("Ctrl+T")),
            ("Ctrl+Shift+Up",  Ok("Ctrl+Shift+Up")),
            ("alt+enter",      Ok("Alt+Enter")),
            ("meta+x",         Ok("Alt+X")),
            ("shift+tab",      Ok("Shift+Tab")),
            ("f5",             Ok("F5")),
            ("pagedown",       Ok("PgDn")),
            ("right",          Ok("Right")),
            ("ctrl+space",     Ok("Ctrl+Space")),
            ("ctrl++",         Ok("Ctrl++")),
            ("t",              Err("`t` alone cannot be bound")),
            ("shift+t",        Err("`shift+t` alone cannot be bound")),
            ("ctrl+i",         Err("terminals cannot tell `ctrl+i` from `tab`")),
            ("f13",            Err("unknown key `f13`")),
            ("hyper+t",        Err("unknown key `hyper+t`")),
            ("",               Err("unknown key ``")),
        ];
        for (word, expected) in cases {
            let got = word.parse::<KeyChord>().map(|key| key.to_string()).map_err(|bad| bad.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{word}");
        }
    }

    #[test]
    fn a_key_from_the_terminal_matches_its_binding() {
        let event = |code, modifiers| KeyChord::from(KeyEvent::new(code, modifiers));
        #[rustfmt::skip]
        let cases = [
            ("ctrl+t",    KeyCode::Char('t'), KeyModifiers::CONTROL),
            ("ctrl+t",    KeyCode::Char('T'), KeyModifiers::CONTROL | KeyModifiers::SHIFT),
            ("shift+tab", KeyCode::BackTab,   KeyModifiers::SHIFT),
            ("shift+tab", KeyCode::BackTab,   KeyModifiers::NONE),
            ("alt+up",    KeyCode::Up,        KeyModifiers::ALT),
            ("f5",        KeyCode::F(5),      KeyModifiers::NONE),
        ];
        for (word, code, modifiers) in cases {
            assert_eq!(word.parse(), Ok(event(code, modifiers)), "{word}");
        }
    }

    #[test]
    fn an_invalid_binding_is_refused_with_a_hint() {
        let refused = |name: &str, keys: &[&str]| Bindings::default().bind(name, keys).unwrap_err();
        assert!(refused("toggle_thought", &["ctrl+t"]).hint.contains("toggle_thinking"));
        assert!(refused("editor", &["ctrl+hyper"]).hint.contains("pageup"));
        assert_eq!(refused("send", &[]).hint, "send = \"enter\"");
        let mut bindings = Bindings::default();
        bindings.bind("toggle_thinking", &["ctrl+r"]).unwrap();
        let conflict = bindings.conflict("toggle_thinking").unwrap();
        assert_eq!(conflict.what, "Ctrl+R is the key of `read_last` as well");
        bindings.bind("read_last", &[]).unwrap();
        assert_eq!(bindings.conflict("toggle_thinking"), None);
        assert_eq!(
            (bindings.keys_text(KeyAction::ToggleThinking), bindings.keys_text(KeyAction::ReadLast)),
            ("Ctrl+R".into(), "".into())
        );
    }
}
