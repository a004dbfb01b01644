//! The commands one can type: one table for parsing, completion and help.

use aside_core::settings::{Change, Display, Effort, Key};

use crate::bindings::{ACTIONS, Bindings};
use crate::seam::{Command, Mouse, ProfileAct, TerminalAct};

pub struct Entry {
    pub name: &'static str,
    /// What may stand behind it.
    pub takes: &'static str,
    pub doc: &'static str,
}

macro_rules! table {
    ($($name:literal, $takes:literal, $doc:literal;)+) => {
        pub const COMMANDS: &[Entry] = &[$(Entry { name: $name, takes: $takes, doc: $doc }),+];
    };
}

table! {
    "help", "", "keys and commands";
    "thinking", "[full|live|collapsed|off]", "how thinking looks, here and from now on; the next view without a word";
    "answer", "", "stop thinking and answer now, with what there is";
    "reader", "", "read the last thought on the whole screen";
    "copy", "[answer|thinking]", "the last answer or thought to the clipboard";
    "sent", "", "what the last request sent of each thought, and why";
    "context", "", "what fills the window, and what is held back";
    "tools", "[on|off [NAME]]", "which tools the model has; all, one, or those of a server on or off";
    "permissions", "[forget RULE]", "what tools may do and who said so; take an answer back";
    "record", "[FILE|off]", "write the raw stream to a file, from the next request on";
    "set", "KEY=VALUE or KEY?", "change a setting for this session, or ask for it";
    "unset", "KEY", "take a setting of this session back";
    "model", "[NAME]", "another model from here on";
    "effort", "[LEVEL]", "how hard to think";
    "profile", "[load|save|delete NAME]", "settings under a name";
    "compact", "", "sum up the older turns now";
    "fork", "", "go on in a copy of this session";
    "undo", "", "take the last turn back";
    "retry", "", "ask the last question again";
    "export", "[FILE]", "the session as a file";
    "sessions", "", "what was said before";
    "resume", "[ID]", "go on with another session";
    "new", "", "a new session";
    "title", "TEXT", "name this session";
    "search", "WORDS", "in all sessions";
    "open", "NUMBER", "go to what /sessions or /search found";
    "usage", "", "tokens and what they cost";
    "mouse", "[on|off]", "clicks and the wheel for aside, or for the terminal to select text";
    "editor", "", "write in your own editor ($VISUAL, $EDITOR)";
    "theme", "[dark|light]", "colours for a dark or a light ground";
    "quit", "", "leave";
}

/// Commands that this screen carries out itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    Help,
    NextView,
    View(Display),
    Reader,
    AnswerNow,
    CopyAnswer,
    CopyThinking,
    Sent,
    Theme(Option<crate::theme::Ground>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Not a command: something to say.
    Text,
    Local(Local),
    Engine(Command),
    Wrong {
        what: String,
        hint: Option<String>,
    },
}

/// What a line means. `:thinking` is a command as `/thinking` is; `:)` is not.
pub fn parse(line: &str) -> Parsed {
    let line = line.trim();
    let (sign, rest) = match (line.strip_prefix('/'), line.strip_prefix(':')) {
        (Some(rest), _) => ('/', rest),
        (None, Some(rest)) => (':', rest),
        (None, None) => return Parsed::Text,
    };
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("toggle", "thinking") => return Parsed::Local(Local::NextView),
        ("exit" | "q", "") => return Parsed::Engine(Command::Quit),
        ("explain", "") => return Parsed::Local(Local::Sent),
        _ => (),
    }
    let is_known = COMMANDS.iter().any(|entry| entry.name == name);
    if !is_known {
        // A path and a smile are no commands.
        let is_text = sign == ':' || name.contains('/') || name.is_empty();
        return if is_text { Parsed::Text } else { unknown(name) };
    }
    known(name, rest)
}

fn known(name: &str, rest: &str) -> Parsed {
    let given = (!rest.is_empty()).then(|| rest.to_owned());
    let engine = Parsed::Engine;
    match name {
        "help" => Parsed::Local(Local::Help),
        "thinking" => thinking(rest),
        "reader" => Parsed::Local(Local::Reader),
        "answer" => Parsed::Local(Local::AnswerNow),
        "copy" => match rest {
            "" | "answer" => Parsed::Local(Local::CopyAnswer),
            "thinking" => Parsed::Local(Local::CopyThinking),
            other => wrong(format!("cannot copy `{other}`"), "answer or thinking"),
        },
        "editor" => engine(Command::Terminal(TerminalAct::Edit(String::new()))),
        "sent" => Parsed::Local(Local::Sent),
        "mouse" => match rest {
            "" | "off" => engine(Command::Terminal(TerminalAct::Mouse(Mouse::Terminals))),
            "on" => engine(Command::Terminal(TerminalAct::Mouse(Mouse::Ours))),
            other => wrong(format!("the mouse is on or off, not `{other}`"), "/mouse on, /mouse off"),
        },
        "theme" => match rest {
            "" => Parsed::Local(Local::Theme(None)),
            "dark" => Parsed::Local(Local::Theme(Some(crate::theme::Ground::Dark))),
            "light" => Parsed::Local(Local::Theme(Some(crate::theme::Ground::Light))),
            other => wrong(format!("unknown theme `{other}`"), "dark or light"),
        },
        "set" => set(rest),
        "unset" => match rest.parse::<Key>() {
            Ok(key) => engine(Command::Unset(key.name().to_owned())),
            Err(error) => Parsed::Wrong { what: error.to_string(), hint: None },
        },
        "model" => engine(Command::Model(given)),
        "effort" => match Change::parse(Key::Effort.name(), rest) {
            Ok(_) => engine(Command::Effort(given)),
            Err(_) if rest.is_empty() => engine(Command::Effort(None)),
            Err(error) => Parsed::Wrong { what: error.to_string(), hint: None },
        },
        "profile" => profile(rest),
        "compact" => engine(Command::Compact),
        "fork" => engine(Command::Fork),
        "undo" => engine(Command::Undo),
        "retry" => engine(Command::Retry),
        "export" => engine(Command::Export(given)),
        "quit" => engine(Command::Quit),
        other => engine(Command::Other { name: other.to_owned(), rest: rest.to_owned() }),
    }
}

fn wrong(what: String, hint: &str) -> Parsed {
    Parsed::Wrong { what, hint: Some(hint.to_owned()) }
}

fn thinking(rest: &str) -> Parsed {
    match rest {
        "" => Parsed::Local(Local::NextView),
        word => match word.parse() {
            Ok(view) => Parsed::Local(Local::View(view)),
            Err(_) => wrong(format!("unknown view `{word}`"), &Display::WORDS.join(", ")),
        },
    }
}

fn set(rest: &str) -> Parsed {
    if rest.is_empty() {
        return Parsed::Engine(Command::Query(None));
    }
    if let Some(key) = rest.strip_suffix('?') {
        return match key.trim().parse::<Key>() {
            Ok(key) => Parsed::Engine(Command::Query(Some(key.name().to_owned()))),
            Err(error) => Parsed::Wrong { what: error.to_string(), hint: None },
        };
    }
    let pair = rest.split_once('=').or_else(|| rest.split_once(char::is_whitespace));
    let Some((key, value)) = pair else {
        return wrong(format!("no value for `{rest}`"), "/set KEY=VALUE, or /set KEY? to ask");
    };
    // Refused here, it changes nothing anywhere.
    match Change::parse(key.trim(), value.trim()) {
        Ok(_) => Parsed::Engine(Command::Set { key: key.trim().to_owned(), value: value.trim().to_owned() }),
        Err(error) => Parsed::Wrong { what: error.to_string(), hint: None },
    }
}

fn profile(rest: &str) -> Parsed {
    let (act, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim().to_owned();
    let act = match (act, name.is_empty()) {
        ("" | "list", true) => ProfileAct::List,
        ("load", false) => ProfileAct::Load(name),
        ("save", false) => ProfileAct::Save(name),
        ("delete", false) => ProfileAct::Delete(name),
        _ => return wrong(format!("cannot read `/profile {rest}`"), "/profile load NAME, save NAME or delete NAME"),
    };
    Parsed::Engine(Command::Profile(act))
}

fn unknown(name: &str) -> Parsed {
    let mut near: Vec<(usize, &str)> = COMMANDS
        .iter()
        .map(|entry| (distance(name, entry.name), entry.name))
        .filter(|(far, entry)| *far <= 2 || entry.starts_with(name))
        .collect();
    near.sort();
    let near: Vec<String> = near.iter().take(3).map(|(_, entry)| format!("/{entry}")).collect();
    let hint = if near.is_empty() { "/help lists what there is".to_owned() } else { near.join(", ") };
    wrong(format!("unknown command `/{name}`"), &hint)
}

/// How many letters one must change, add or leave out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (above, other) in row.iter().skip(1).zip(&b) {
            let change = diagonal + usize::from(letter != *other);
            diagonal = *above;
            left = change.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// The words of a setting that takes one of a few, for completion.
pub(crate) fn words_behind(name: &str) -> &'static [&'static str] {
    match name {
        "thinking" => Display::WORDS,
        "effort" => Effort::WORDS,
        "copy" => &["answer", "thinking"],
        "mouse" => &["on", "off"],
        "theme" => &["dark", "light"],
        "profile" => &["load", "save", "delete", "list"],
        "tools" => &["on", "off"],
        "permissions" => &["forget"],
        "record" => &["off"],
        _ => &[],
    }
}

/// The page of `/help`, from the tables.
pub fn help(bindings: &Bindings) -> String {
    // Two columns: a third leaves no room for words where there is little.
    let mut out = String::from("**Keys**\n\n| key | does (name in `[keys]`) |\n|---|---|\n");
    for entry in ACTIONS {
        let keys = bindings.shown(entry.action);
        let keys = if keys.is_empty() { "none" } else { keys.as_str() };
        out.push_str(&format!("| {keys} | {} ({}) |\n", entry.doc, entry.name));
    }
    for (key, does) in KEYS {
        out.push_str(&format!("| {key} | {does} |\n"));
    }
    out.push_str("\n**Commands**\n\n| command | does |\n|---|---|\n");
    for entry in COMMANDS {
        let takes = entry.takes.replace('|', "\\|");
        let name = format!("/{} {takes}", entry.name);
        out.push_str(&format!("| {} | {} |\n", name.trim_end(), entry.doc));
    }
    out
}

/// What keys and the mouse do besides, whatever is bound.
pub const KEYS: &[(&str, &str)] = &[
    ("Up, Down", "what was sent before, in other sessions too; what is queued comes back first"),
    ("in the reader", "/ searches, n and N go on, o lists the titles, ← and → other thoughts, y copies, q leaves"),
    ("Alt+Enter in an empty line", "while it thinks: stop thinking and answer now"),
    ("mouse wheel", "scroll"),
    ("click on a header", "open or fold the block; long output opens in two steps"),
    ("Shift and drag", "select text, as the terminal does; /mouse off does without Shift"),
    ("@", "name a file"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t10_lines_are_read_as_what_they_are() {
        let set = |key: &str, value: &str| Parsed::Engine(Command::Set { key: key.into(), value: value.into() });
        #[rustfmt::skip]
        let cases = [
            ("hello",                          Parsed::Text),
            ("/usr/bin is full",               Parsed::Text),
            (":) thanks",                      Parsed::Text),
            ("/thinking",                      Parsed::Local(Local::NextView)),
            ("/thinking full",                 Parsed::Local(Local::View(Display::Full))),
            (":thinking",                      Parsed::Local(Local::NextView)),
            (":toggle thinking",               Parsed::Local(Local::NextView)),
            ("/set reasoning.effort=high",     set("reasoning.effort", "high")),
            ("/set reasoning.effort high",     set("reasoning.effort", "high")),
            ("/set show_thinking=false",       set("show_thinking", "false")),
            ("/set reasoning.effort?",         Parsed::Engine(Command::Query(Some("reasoning.effort".into())))),
            ("/set",                           Parsed::Engine(Command::Query(None))),
            ("/unset reasoning.effort",        Parsed::Engine(Command::Unset("reasoning.effort".into()))),
            ("/model a/b",                     Parsed::Engine(Command::Model(Some("a/b".into())))),
            ("/effort low",                    Parsed::Engine(Command::Effort(Some("low".into())))),
            ("/profile load work",             Parsed::Engine(Command::Profile(ProfileAct::Load("work".into())))),
            ("/export",                        Parsed::Engine(Command::Export(None))),
            ("/search two words",              Parsed::Engine(Command::Other { name: "search".into(), rest: "two words".into() })),
            ("/mouse off",                     Parsed::Engine(Command::Terminal(TerminalAct::Mouse(Mouse::Terminals)))),
            ("/sent",                          Parsed::Local(Local::Sent)),
            ("/explain",                       Parsed::Local(Local::Sent)),
            ("/exit",                          Parsed::Engine(Command::Quit)),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn t10_what_is_wrong_is_said_with_what_would_be_right() {
        #[rustfmt::skip]
        let cases = [
            ("/thinkng",                 "unknown command `/thinkng`", Some("/thinking")),
            ("/frobnicate",              "unknown command `/frobnicate`", Some("/help lists what there is")),
            ("/thinking loud",           "unknown view `loud`", Some("full, live, collapsed, off")),
            ("/set reasoning.effort",    "no value for `reasoning.effort`", Some("/set KEY=VALUE, or /set KEY? to ask")),
        ];
        for (line, what, hint) in cases {
            let expected = Parsed::Wrong { what: what.into(), hint: hint.map(str::to_owned) };
            assert_eq!(parse(line), expected, "{line}");
        }
        let Parsed::Wrong { what, .. } = parse("/set reasoning.effort=loud") else { panic!("must be refused") };
        assert!(what.contains("loud") && what.contains("minimal"), "{what}");
    }
}
