//! Which key does what: one table of actions for dispatch, `/help` and the
//! `[keys]` of the config.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know is no key here")]

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

macro_rules! actions {
    ($($action:ident, $name:literal, [$($key:literal),*], $doc:literal;)+) => {
        /// What a key can do, besides editing the text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($action),+
        }

        pub const ACTIONS: &[Entry] = &[
            $(Entry { action: Action::$action, name: $name, keys: &[$($key),*], doc: $doc }),+
        ];
    };
}

pub struct Entry {
    pub action: Action,
    /// As the config calls it.
    pub name: &'static str,
    /// The keys it has if nobody says otherwise.
    pub keys: &'static [&'static str],
    pub doc: &'static str,
}

actions! {
    Send, "send", ["enter"], "send; queued while an answer comes";
    NewLine, "new_line", ["alt+enter", "shift+enter", "ctrl+j"], "a new line";
    Stop, "stop", ["esc"], "stop the answer; what came is kept";
    Clear, "clear", ["ctrl+c"], "clear the input; twice leaves";
    Leave, "leave", ["ctrl+d"], "leave, from an empty line";
    ToggleThinking, "toggle_thinking", ["ctrl+t"], "the next view of thinking: full, live, collapsed, off";
    FoldLast, "fold_last", ["ctrl+o"], "open or fold the last block";
    ReadLast, "read_last", ["ctrl+r"], "read the last thought on the whole screen";
    Complete, "complete", ["tab"], "complete, or unfold the paste before the cursor; in an empty line: walk over the blocks, o opens, r reads, y copies";
    Editor, "editor", ["ctrl+g"], "write in your own editor ($VISUAL, $EDITOR)";
    PageUp, "page_up", ["pageup"], "a page up";
    PageDown, "page_down", ["pagedown"], "a page down";
    TurnBefore, "turn_before", ["alt+up"], "to what you said before";
    TurnAfter, "turn_after", ["alt+down"], "to what you said after";
    ToStart, "to_start", ["ctrl+home"], "to the start; Home in an empty line too";
    ToEnd, "to_end", ["ctrl+end"], "to the end; End in an empty line too";
    Suspend, "suspend", ["ctrl+z"], "back to the shell, until fg";
}

/// A key with what is held down beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    held: KeyModifiers,
}

/// The keys that have names; letters, digits and signs are their own.
const NAMED: [(&str, &str, KeyCode); 14] = [
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

/// What most terminals send for these is another key.
const TWINS: [(char, &str); 4] = [('i', "tab"), ('m', "enter"), ('[', "esc"), ('h', "backspace")];

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Key {
        let held = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        match event.code {
            // Whether a letter is large says Shift already.
            KeyCode::Char(letter) => {
                Key { code: KeyCode::Char(letter.to_ascii_lowercase()), held: held - KeyModifiers::SHIFT }
            }
            KeyCode::BackTab => Key { code: KeyCode::Tab, held: held | KeyModifiers::SHIFT },
            code => Key { code, held },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadKey {
    Unknown(String),
    /// It types itself.
    Letter(String),
    /// A terminal cannot tell it from the other one.
    Twin(String, &'static str),
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadKey::Unknown(word) => write!(f, "unknown key `{word}`"),
            BadKey::Letter(word) => write!(f, "`{word}` alone types itself"),
            BadKey::Twin(word, other) => write!(f, "to a terminal `{word}` is `{other}`"),
        }
    }
}

impl BadKey {
    pub fn hint(&self) -> String {
        let names: Vec<&str> = NAMED.iter().map(|(name, ..)| *name).chain(["right", "f1 to f12"]).collect();
        format!("ctrl+, alt+ or shift+ before a letter or one of: {}", names.join(", "))
    }
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(word: &str) -> Result<Key, BadKey> {
        let unknown = || BadKey::Unknown(word.to_owned());
        let lower = word.trim().to_ascii_lowercase();
        let mut held = KeyModifiers::NONE;
        let mut rest = lower.as_str();
        while let Some((modifier, behind)) = rest.split_once('+').filter(|(_, behind)| !behind.is_empty()) {
            held |= match modifier.trim() {
                "ctrl" | "control" => KeyModifiers::CONTROL,
                "alt" | "meta" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(unknown()),
            };
            rest = behind.trim();
        }
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next()) {
            (Some(letter), None) => KeyCode::Char(letter),
            _ => named(rest).ok_or_else(unknown)?,
        };
        let with_others = KeyModifiers::CONTROL | KeyModifiers::ALT;
        if let KeyCode::Char(letter) = code {
            if !held.intersects(with_others) {
                return Err(BadKey::Letter(word.to_owned()));
            }
            let twin = TWINS.iter().find(|(twin, _)| *twin == letter && held.contains(KeyModifiers::CONTROL));
            if let Some((_, other)) = twin {
                return Err(BadKey::Twin(word.to_owned(), other));
            }
            held -= KeyModifiers::SHIFT;
        }
        Ok(Key { code, held })
    }
}

fn named(word: &str) -> Option<KeyCode> {
    let function = word.strip_prefix('f').and_then(|number| number.parse().ok());
    match (word, function) {
        ("right", _) => Some(KeyCode::Right),
        (_, Some(number @ 1..=12)) => Some(KeyCode::F(number)),
        _ => NAMED.iter().find(|(name, ..)| *name == word).map(|(.., code)| *code),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")];
        for (modifier, name) in table {
            if self.held.contains(modifier) {
                f.write_str(name)?;
            }
        }
        let name = NAMED.iter().find(|(.., code)| *code == self.code).map(|(_, name, _)| *name);
        match (name, self.code) {
            (Some(name), _) => f.write_str(name),
            (None, KeyCode::Char(letter)) => write!(f, "{}", letter.to_uppercase()),
            (None, KeyCode::F(number)) => write!(f, "F{number}"),
            (None, KeyCode::Right) => f.write_str("Right"),
            (None, other) => write!(f, "{other}"),
        }
    }
}

/// The keys of every action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bindings {
    keys: Vec<(Action, Vec<Key>)>,
}

impl Default for Bindings {
    fn default() -> Bindings {
        let keys_of = |entry: &Entry| entry.keys.iter().filter_map(|key| key.parse().ok()).collect();
        Bindings { keys: ACTIONS.iter().map(|entry| (entry.action, keys_of(entry))).collect() }
    }
}

/// Why a line of `[keys]` does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub what: String,
    pub hint: String,
}

impl Bindings {
    /// What this key does.
    pub fn action(&self, key: KeyEvent) -> Option<Action> {
        let key = Key::from(key);
        self.keys.iter().find(|(_, keys)| keys.contains(&key)).map(|(action, _)| *action)
    }

    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.iter().find(|(one, _)| *one == action).map_or(&[], |(_, keys)| keys)
    }

    /// The keys of an action, as `/help` shows them.
    pub fn shown(&self, action: Action) -> String {
        self.keys(action).iter().map(Key::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Gives an action other keys than it had.
    pub fn bind(&mut self, name: &str, words: &[&str]) -> Result<(), Refused> {
        let Some(entry) = ACTIONS.iter().find(|entry| entry.name == name) else {
            let names: Vec<&str> = ACTIONS.iter().map(|entry| entry.name).collect();
            let hint = format!("the actions are: {}", names.join(", "));
            return Err(Refused { what: format!("unknown action `{name}`"), hint });
        };
        if words.is_empty() && entry.action == Action::Send {
            let what = "nothing could be sent without a key for it".to_owned();
            return Err(Refused { what, hint: "send = \"enter\"".to_owned() });
        }
        let keys: Result<Vec<Key>, BadKey> = words.iter().map(|word| word.parse()).collect();
        let keys = keys.map_err(|bad| Refused { what: bad.to_string(), hint: bad.hint() })?;
        if let Some((_, bound)) = self.keys.iter_mut().find(|(action, _)| *action == entry.action) {
            *bound = keys;
        }
        Ok(())
    }

    /// An action whose keys another one has as well, once all are bound.
    pub fn conflict(&self, name: &str) -> Option<Refused> {
        let own = ACTIONS.iter().find(|entry| entry.name == name)?;
        let keys = self.keys(own.action);
        let other = |other: &&Entry| other.action != own.action;
        ACTIONS.iter().filter(other).find_map(|other| {
            let key = keys.iter().find(|key| self.keys(other.action).contains(key))?;
            let what = format!("{key} is the key of `{}` as well", other.name);
            Some(Refused { what, hint: format!("give `{}` another key, or [] for none", other.name) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_the_table_are_keys_and_nobody_has_two_masters() {
        let bindings = Bindings::default();
        for entry in ACTIONS {
            assert_eq!(bindings.keys(entry.action).len(), entry.keys.len(), "{}", entry.name);
            assert_eq!(bindings.conflict(entry.name), None);
        }
    }

    #[test]
    fn keys_are_read_and_shown_as_people_write_them() {
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
            ("t",              Err("`t` alone types itself")),
            ("shift+t",        Err("`shift+t` alone types itself")),
            ("ctrl+i",         Err("to a terminal `ctrl+i` is `tab`")),
            ("f13",            Err("unknown key `f13`")),
            ("hyper+t",        Err("unknown key `hyper+t`")),
            ("",               Err("unknown key ``")),
        ];
        for (word, expected) in cases {
            let got = word.parse::<Key>().map(|key| key.to_string()).map_err(|bad| bad.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{word}");
        }
    }

    #[test]
    fn what_a_terminal_sends_is_the_key_that_was_bound() {
        let event = |code, modifiers| Key::from(KeyEvent::new(code, modifiers));
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
    fn what_cannot_be_bound_is_refused_with_what_could() {
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
            (bindings.shown(Action::ToggleThinking), bindings.shown(Action::ReadLast)),
            ("Ctrl+R".into(), "".into())
        );
    }
}
