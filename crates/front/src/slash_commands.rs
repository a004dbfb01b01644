//! The slash commands: one table for parsing, completion and help, for every front end that reads lines.

use aside_core::settings::{Effort, ScreenTheme, SettingChange, SettingKey, ThinkingDisplay};
use aside_core::tool_mode::{ToolMode, UnknownToolMode};

use crate::command::{Command, MouseMode, ProfileAction, ShellOutput, TerminalAction, UndoPart};
use crate::status::OwnCommand;

/// `/effort default` removes the level of this session.
pub const DEFAULT_EFFORT: &str = "default";

pub struct CommandEntry {
    pub name: &'static str,
    /// The arguments, as shown in help.
    pub arguments: &'static str,
    pub doc: &'static str,
}

macro_rules! table {
    ($($name:literal, $arguments:literal, $doc:literal;)+) => {
        pub const COMMANDS: &[CommandEntry] = &[$(CommandEntry { name: $name, arguments: $arguments, doc: $doc }),+];
    };
}

table! {
    "help", "", "keys and commands";
    "thinking", "[full|live|collapsed|off]", "set the view of thinking; without an argument, switch to the next";
    "answer", "", "stop thinking and answer now";
    "reader", "", "read the last thinking on the whole screen";
    "copy", "[answer|code|thinking]", "copy the last answer, code block or thinking to the clipboard";
    "sent", "", "show which thinking the last request sent back, and why";
    "context", "", "show what uses the context window, and what is held back";
    "tools", "[on|off [NAME]]", "list the model's tools; turn all, one, or those of a server on or off";
    "permissions", "[forget RULE]", "list what tools may do, and why; forget an answer";
    "record", "[FILE|off]", "record the raw stream to a file, starting with the next request";
    "set", "KEY=VALUE or KEY?", "change a setting for this session, or show it";
    "unset", "KEY", "remove a setting of this session";
    "model", "[NAME]", "switch to another model";
    "mode", "[ask|accept-edits|read-only]", "what tools may do without a question; without an argument, switch to the next";
    "effort", "[LEVEL]", "how hard to think";
    "profile", "[load|save|delete NAME]", "load, save or delete a settings profile";
    "compact", "", "summarise older turns now";
    "fork", "", "continue in a copy of this session";
    "undo", "[files|talk] [force]", "undo the last turn, or only its files or only the conversation; force: also files that changed since";
    "redo", "", "redo what was undone";
    "diff", "[FILE]", "show what tools changed in this session";
    "retry", "", "ask the last question again";
    "export", "[FILE]", "export the session to a file";
    "sessions", "", "list earlier sessions";
    "resume", "[ID]", "continue another session";
    "new", "", "start a new session";
    "title", "TEXT", "name this session";
    "find", "[WORDS]", "find words in this session, thinking included";
    "search", "WORDS", "search all sessions for whole words; unit* finds longer ones";
    "open", "NUMBER", "open a result of /sessions or /search";
    "usage", "", "show tokens and cost";
    "mouse", "[on|off]", "give the mouse to aside, or to the terminal for selecting text; later sessions too";
    "editor", "", "write in your own editor ($VISUAL, $EDITOR)";
    "theme", "[auto|dark|light]", "colours for a dark or a light background; later sessions too";
    "quit", "", "leave";
}

/// Commands that the front end carries out itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalCommand {
    Help,
    NextView,
    View(ThinkingDisplay),
    Reader,
    AnswerNow,
    CopyAnswer,
    /// The last code block of an answer.
    CopyCode,
    CopyThinking,
    Sent,
    NextMode,
    Mode(ToolMode),
    /// Find words in what is shown; without words, ask for them.
    Find(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedLine {
    /// Not a command: a prompt.
    Text,
    Local(LocalCommand),
    /// For the session, or for the owner of the terminal.
    Command(Command),
    Invalid {
        what: String,
        hint: Option<String>,
    },
}

/// A line that runs a command: `!command`, or `!!command` if the model gets its output. Text of several lines is
/// a prompt.
pub fn parse_shell(line: &str) -> Option<Command> {
    let rest = line.trim().strip_prefix('!').filter(|rest| !rest.contains('\n'))?;
    let (command, output) = match rest.strip_prefix('!') {
        Some(command) => (command, ShellOutput::Model),
        None => (rest, ShellOutput::User),
    };
    // `!` and `!!!` alone are ordinary text.
    let command = command.trim();
    let is_command = !command.is_empty() && !command.starts_with('!');
    is_command.then(|| Command::Shell { command: command.to_owned(), output })
}

/// A line that begins with the name of one of the user's own commands.
pub fn parse_own(line: &str, own: &[OwnCommand]) -> Option<Command> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let known = own.iter().find(|command| command.name == name)?;
    Some(Command::Own { name: known.name.clone(), arguments: arguments.trim().to_owned() })
}

/// Parses an input line. `:thinking` is a command like `/thinking`; `:)` is not.
pub fn parse(line: &str) -> ParsedLine {
    let line = line.trim();
    let (sign, rest) = match (line.strip_prefix('/'), line.strip_prefix(':')) {
        (Some(rest), _) => ('/', rest),
        (None, Some(rest)) => (':', rest),
        (None, None) => return ParsedLine::Text,
    };
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("toggle", "thinking") => return ParsedLine::Local(LocalCommand::NextView),
        ("exit" | "q", "") => return ParsedLine::Command(Command::Quit),
        ("explain", "") => return ParsedLine::Local(LocalCommand::Sent),
        _ => (),
    }
    let is_known = COMMANDS.iter().any(|entry| entry.name == name);
    if !is_known {
        // A path or a smiley is not a command.
        let is_text = sign == ':' || name.contains('/') || name.is_empty();
        return if is_text { ParsedLine::Text } else { unknown(name) };
    }
    parse_known(name, rest)
}

fn parse_known(name: &str, rest: &str) -> ParsedLine {
    let given = (!rest.is_empty()).then(|| rest.to_owned());
    let command = ParsedLine::Command;
    match name {
        "help" => ParsedLine::Local(LocalCommand::Help),
        "thinking" => thinking(rest),
        "reader" => ParsedLine::Local(LocalCommand::Reader),
        "answer" => ParsedLine::Local(LocalCommand::AnswerNow),
        "copy" => match rest {
            "" | "answer" => ParsedLine::Local(LocalCommand::CopyAnswer),
            "code" => ParsedLine::Local(LocalCommand::CopyCode),
            "thinking" => ParsedLine::Local(LocalCommand::CopyThinking),
            other => invalid(format!("cannot copy `{other}`"), "answer, code or thinking"),
        },
        "editor" => command(Command::Terminal(TerminalAction::Edit(String::new()))),
        "sent" => ParsedLine::Local(LocalCommand::Sent),
        "mouse" => match rest {
            "" | "off" => command(Command::Mouse(MouseMode::Released)),
            "on" => command(Command::Mouse(MouseMode::Captured)),
            other => invalid(format!("the mouse is on or off, not `{other}`"), "/mouse on, /mouse off"),
        },
        "theme" => match (rest, rest.parse::<ScreenTheme>()) {
            ("", _) => command(Command::Theme(None)),
            (_, Ok(theme)) => command(Command::Theme(Some(theme))),
            (_, Err(_)) => invalid(format!("unknown theme `{rest}`"), &ScreenTheme::WORDS.join(", ")),
        },
        "find" => ParsedLine::Local(LocalCommand::Find(rest.to_owned())),
        "mode" => match (rest, rest.parse()) {
            ("", _) => ParsedLine::Local(LocalCommand::NextMode),
            (_, Ok(mode)) => ParsedLine::Local(LocalCommand::Mode(mode)),
            (_, Err(UnknownToolMode(word))) => invalid(format!("unknown mode `{word}`"), &ToolMode::WORDS.join(", ")),
        },
        "set" => set(rest),
        "unset" => match rest.parse::<SettingKey>() {
            Ok(key) => command(Command::Unset(key.name().to_owned())),
            Err(error) => ParsedLine::Invalid { what: error.to_string(), hint: None },
        },
        "model" => command(Command::Model(given)),
        "effort" if rest == DEFAULT_EFFORT => command(Command::Unset(SettingKey::Effort.name().to_owned())),
        "effort" => match SettingChange::parse(SettingKey::Effort.name(), rest) {
            Ok(_) => command(Command::Effort(given)),
            Err(_) if rest.is_empty() => command(Command::Effort(None)),
            Err(error) => ParsedLine::Invalid { what: error.to_string(), hint: None },
        },
        "profile" => profile(rest),
        "compact" => command(Command::Compact),
        "fork" => command(Command::Fork),
        "undo" => undo(rest),
        "redo" => command(Command::Redo),
        "diff" => command(Command::Diff(given)),
        "retry" => command(Command::Retry),
        "export" => command(Command::Export(given)),
        "quit" => command(Command::Quit),
        other => command(Command::Other { name: other.to_owned(), rest: rest.to_owned() }),
    }
}

fn invalid(what: String, hint: &str) -> ParsedLine {
    ParsedLine::Invalid { what, hint: Some(hint.to_owned()) }
}

fn thinking(rest: &str) -> ParsedLine {
    match rest {
        "" => ParsedLine::Local(LocalCommand::NextView),
        word => match word.parse() {
            Ok(view) => ParsedLine::Local(LocalCommand::View(view)),
            Err(_) => invalid(format!("unknown view `{word}`"), &ThinkingDisplay::WORDS.join(", ")),
        },
    }
}

fn set(rest: &str) -> ParsedLine {
    if rest.is_empty() {
        return ParsedLine::Command(Command::Query(None));
    }
    if let Some(key) = rest.strip_suffix('?') {
        return match key.trim().parse::<SettingKey>() {
            Ok(key) => ParsedLine::Command(Command::Query(Some(key.name().to_owned()))),
            Err(error) => ParsedLine::Invalid { what: error.to_string(), hint: None },
        };
    }
    let pair = rest.split_once('=').or_else(|| rest.split_once(char::is_whitespace));
    let Some((key, value)) = pair else {
        return invalid(format!("no value for `{rest}`"), "/set KEY=VALUE, or /set KEY? to ask");
    };
    // Validated here, so that an invalid value changes nothing.
    match SettingChange::parse(key.trim(), value.trim()) {
        Ok(_) => ParsedLine::Command(Command::Set { key: key.trim().to_owned(), value: value.trim().to_owned() }),
        Err(error) => ParsedLine::Invalid { what: error.to_string(), hint: None },
    }
}

fn undo(rest: &str) -> ParsedLine {
    let part = |part, force| ParsedLine::Command(Command::UndoOnly { part, force });
    match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => ParsedLine::Command(Command::Undo),
        ["files"] => part(UndoPart::Files, false),
        ["files", "force"] => part(UndoPart::Files, true),
        ["talk"] | ["talk", "force"] => part(UndoPart::Talk, false),
        _ => invalid(format!("cannot undo `{rest}`"), "/undo, /undo files, /undo files force, /undo talk"),
    }
}

fn profile(rest: &str) -> ParsedLine {
    let (act, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim().to_owned();
    let act = match (act, name.is_empty()) {
        ("" | "list", true) => ProfileAction::List,
        ("load", false) => ProfileAction::Load(name),
        ("save", false) => ProfileAction::Save(name),
        ("delete", false) => ProfileAction::Delete(name),
        _ => return invalid(format!("cannot read `/profile {rest}`"), "/profile load NAME, save NAME or delete NAME"),
    };
    ParsedLine::Command(Command::Profile(act))
}

fn unknown(name: &str) -> ParsedLine {
    let mut near: Vec<(usize, &str)> = COMMANDS
        .iter()
        .map(|entry| (distance(name, entry.name), entry.name))
        .filter(|(far, entry)| *far <= 2 || entry.starts_with(name))
        .collect();
    near.sort();
    let near: Vec<String> = near.iter().take(3).map(|(_, entry)| format!("/{entry}")).collect();
    let hint = if near.is_empty() { "/help lists all commands".to_owned() } else { near.join(", ") };
    invalid(format!("unknown command `/{name}`"), &hint)
}

/// The edit distance between two words.
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

/// The words a command accepts as its argument, for completion.
pub fn argument_words(name: &str) -> &'static [&'static str] {
    match name {
        "thinking" => ThinkingDisplay::WORDS,
        "effort" => Effort::WORDS,
        "mode" => ToolMode::WORDS,
        "copy" => &["answer", "code", "thinking"],
        "mouse" => &["on", "off"],
        "theme" => ScreenTheme::WORDS,
        "profile" => &["load", "save", "delete", "list"],
        "tools" => &["on", "off"],
        "permissions" => &["forget"],
        "record" => &["off"],
        "undo" => &["files", "talk"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t10_lines_are_parsed_as_text_or_commands() {
        let set = |key: &str, value: &str| ParsedLine::Command(Command::Set { key: key.into(), value: value.into() });
        #[rustfmt::skip]
        let cases = [
            ("hello",                          ParsedLine::Text),
            ("/usr/bin is full",               ParsedLine::Text),
            (":) thanks",                      ParsedLine::Text),
            ("/thinking",                      ParsedLine::Local(LocalCommand::NextView)),
            ("/thinking full",                 ParsedLine::Local(LocalCommand::View(ThinkingDisplay::Full))),
            (":thinking",                      ParsedLine::Local(LocalCommand::NextView)),
            (":toggle thinking",               ParsedLine::Local(LocalCommand::NextView)),
            ("/set reasoning.effort=high",     set("reasoning.effort", "high")),
            ("/set reasoning.effort high",     set("reasoning.effort", "high")),
            ("/set show_thinking=false",       set("show_thinking", "false")),
            ("/set reasoning.effort?",         ParsedLine::Command(Command::Query(Some("reasoning.effort".into())))),
            ("/set",                           ParsedLine::Command(Command::Query(None))),
            ("/unset reasoning.effort",        ParsedLine::Command(Command::Unset("reasoning.effort".into()))),
            ("/model a/b",                     ParsedLine::Command(Command::Model(Some("a/b".into())))),
            ("/effort default",                ParsedLine::Command(Command::Unset("reasoning.effort".into()))),
            ("/effort low",                    ParsedLine::Command(Command::Effort(Some("low".into())))),
            ("/profile load work",             ParsedLine::Command(Command::Profile(ProfileAction::Load("work".into())))),
            ("/export",                        ParsedLine::Command(Command::Export(None))),
            ("/search two words",              ParsedLine::Command(Command::Other { name: "search".into(), rest: "two words".into() })),
            ("/mouse off",                     ParsedLine::Command(Command::Mouse(MouseMode::Released))),
            ("/theme",                         ParsedLine::Command(Command::Theme(None))),
            ("/theme light",                   ParsedLine::Command(Command::Theme(Some(ScreenTheme::Light)))),
            ("/find a phrase",                 ParsedLine::Local(LocalCommand::Find("a phrase".into()))),
            ("/sent",                          ParsedLine::Local(LocalCommand::Sent)),
            ("/explain",                       ParsedLine::Local(LocalCommand::Sent)),
            ("/exit",                          ParsedLine::Command(Command::Quit)),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn t10_an_invalid_command_is_reported_with_a_hint() {
        #[rustfmt::skip]
        let cases = [
            ("/thinkng",                 "unknown command `/thinkng`", Some("/thinking")),
            ("/frobnicate",              "unknown command `/frobnicate`", Some("/help lists all commands")),
            ("/thinking loud",           "unknown view `loud`", Some("full, live, collapsed, off")),
            ("/set reasoning.effort",    "no value for `reasoning.effort`", Some("/set KEY=VALUE, or /set KEY? to ask")),
        ];
        for (line, what, hint) in cases {
            let expected = ParsedLine::Invalid { what: what.into(), hint: hint.map(str::to_owned) };
            assert_eq!(parse(line), expected, "{line}");
        }
        let ParsedLine::Invalid { what, .. } = parse("/set reasoning.effort=loud") else { panic!("must be refused") };
        assert!(what.contains("loud") && what.contains("minimal"), "{what}");
    }

    #[test]
    fn t24_an_exclamation_mark_runs_a_command_line() {
        let shell = |command: &str, output| Some(Command::Shell { command: command.into(), output });
        #[rustfmt::skip]
        let cases = [
            ("!ls -l",       shell("ls -l", ShellOutput::User)),
            (" ! ls",        shell("ls", ShellOutput::User)),
            ("!!cargo test", shell("cargo test", ShellOutput::Model)),
            ("!",            None),
            ("!!",           None),
            ("!!! now",      None),
            ("hello!",       None),
            ("!a\n!b",       None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_shell(line), expected, "{line:?}");
        }
    }

    #[test]
    fn t24_own_commands_are_known_by_their_names() {
        let own = [OwnCommand { name: "review".into(), about: "Review a file".into() }];
        let command = |arguments: &str| Some(Command::Own { name: "review".into(), arguments: arguments.into() });
        assert_eq!(parse_own("/review src/main.rs  fast", &own), command("src/main.rs  fast"));
        assert_eq!(parse_own("/review", &own), command(""));
        assert_eq!(parse_own("/reviews", &own), None);
        assert_eq!(parse_own("review", &own), None);
    }
}
