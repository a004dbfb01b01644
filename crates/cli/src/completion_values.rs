//! Values that a shell offers for the word under the cursor: models, settings, providers, profiles, sessions.
//!
//! The completion scripts know commands and options. They ask here for what depends on this machine.

use aside_core::settings;
use aside_session::model_listing::{ListSource, ModelQuery, ModelScope, list};
use aside_session::providers::{Providers, env_var};
use aside_session::{UserFolders, session_recorder, stored_session};
use aside_store::Store;
use clap::{Arg, Command};

use crate::override_arguments::OverrideArguments;

/// How many sessions are offered, the most recently used first.
const MAX_SESSIONS: usize = 50;

/// What the word under the cursor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueKind {
    Model,
    /// `KEY=VALUE`
    Assignment,
    SettingKey,
    /// The value of this setting.
    SettingValue(String),
    Profile,
    Provider,
    Dialect,
    Session,
}

/// The word under the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TypedWord {
    kind: ValueKind,
    /// The part of the word before the value, such as `--model=`.
    before: String,
    value: String,
}

/// The words that can stand at the end of a command line. None if the shell knows better.
pub(crate) fn values(root: &Command, line: &str) -> Vec<String> {
    let Some(typed) = typed_word(root, &split_words(line)) else { return Vec::new() };
    let offered = offered(&typed.kind, &typed.value);
    let offered = offered.into_iter().filter(|value| value.starts_with(&typed.value));
    offered.map(|value| format!("{}{value}", typed.before)).collect()
}

/// All values of a kind, at least those that begin with what was typed. What cannot be read is not offered: a
/// shell has no place for an error.
fn offered(kind: &ValueKind, typed: &str) -> Vec<String> {
    let folders = UserFolders::from_environment();
    match kind {
        ValueKind::Model => models(),
        ValueKind::Assignment if typed.contains('=') => settings::complete(typed),
        ValueKind::Assignment => settings::complete(typed).into_iter().map(|key| format!("{key}=")).collect(),
        ValueKind::SettingKey => {
            let keys = settings::SettingKey::ALL.iter().map(|key| key.name().to_owned());
            keys.chain(["model".to_owned(), "profile".to_owned()]).collect()
        }
        ValueKind::SettingValue(key) if key == "model" => models(),
        ValueKind::SettingValue(key) if key == "profile" => offered(&ValueKind::Profile, typed),
        ValueKind::SettingValue(key) => {
            let assignment = format!("{key}=");
            let offered = settings::complete(&assignment);
            offered.iter().filter_map(|word| word.strip_prefix(&assignment)).map(str::to_owned).collect()
        }
        ValueKind::Profile => {
            let names = folders.config.map(|folder| aside_session::settings::profile_names(&folder));
            let names = names.and_then(Result::ok).unwrap_or_default();
            names.iter().map(ToString::to_string).collect()
        }
        ValueKind::Provider => {
            let own = OverrideArguments::default().load().map(|loaded| loaded.providers).unwrap_or_default();
            let own = own.into_iter().map(|table| table.name);
            let mut ids: Vec<String> = own.chain(dialect_ids()).collect();
            ids.sort();
            ids.dedup();
            ids
        }
        ValueKind::Dialect => dialect_ids(),
        ValueKind::Session => sessions(&folders),
    }
}

fn dialect_ids() -> Vec<String> {
    let dialects = UserFolders::from_environment().dialects();
    dialects.map(|dialects| dialects.iter().map(|dialect| dialect.id.clone()).collect()).unwrap_or_default()
}

/// The models that `aside models` lists, and the simulator's.
fn models() -> Vec<String> {
    let loaded = OverrideArguments::default().load();
    let (Ok(dialects), Ok(loaded)) = (UserFolders::from_environment().dialects(), loaded) else { return Vec::new() };
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let query = ModelQuery { words: Vec::new(), scope: ModelScope::Usual, source: ListSource::Known };
    let Ok(runtime) = aside_session::start::runtime() else { return Vec::new() };
    let listing = runtime.block_on(list(&query, &providers));
    let known = listing.entries.into_iter().map(|entry| format!("{}/{}", entry.provider, entry.model));
    known.chain(dialects.iter().map(|dialect| format!("sim/{}", dialect.id))).collect()
}

fn sessions(folders: &UserFolders) -> Vec<String> {
    let Ok(here) = crate::working_directory() else { return Vec::new() };
    let root = stored_session::session_folder(&here).root;
    let store = session_recorder::open_store(folders);
    let sessions = store.ok().and_then(|store| store.sessions_by_folder(&root, MAX_SESSIONS).ok()).unwrap_or_default();
    sessions.into_iter().map(|session| session.id.as_str().to_owned()).collect()
}

/// Splits a command line at spaces that are not quoted. The last word is the one under the cursor.
fn split_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut escaped) = (None, false);
    for letter in line.trim_start().chars() {
        let is_literal = std::mem::take(&mut escaped) || quote.is_some_and(|quote| quote != letter);
        match letter {
            _ if is_literal => words.last_mut().into_iter().for_each(|word| word.push(letter)),
            '\\' => escaped = true,
            '"' | '\'' => quote = if quote.is_some() { None } else { Some(letter) },
            _ if letter.is_whitespace() => {
                if words.last().is_none_or(|word| !word.is_empty()) {
                    words.push(String::new());
                }
            }
            _ => words.last_mut().into_iter().for_each(|word| word.push(letter)),
        }
    }
    words
}

/// Finds the argument that the last word belongs to. The first word is the program.
fn typed_word(root: &Command, words: &[String]) -> Option<TypedWord> {
    let (last, complete) = words.split_last().filter(|(_, complete)| !complete.is_empty())?;
    let mut command = root;
    let mut path = Vec::new();
    let mut positionals: Vec<&str> = Vec::new();
    let mut option: Option<&Arg> = None;
    for word in complete.iter().skip(1) {
        if option.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix("--") {
            option = find_long(command, name).filter(|_| !name.contains('='));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            option = letters.chars().last().and_then(|letter| find_short(command, letter));
        } else if let Some(subcommand) = command.find_subcommand(word).filter(|_| positionals.is_empty()) {
            command = subcommand;
            path.push(subcommand.get_name());
        } else {
            positionals.push(word);
        }
    }
    let kind = |argument: &Arg| value_kind(&path, argument, &positionals);
    if let Some(option) = option {
        return Some(TypedWord { kind: kind(option)?, before: String::new(), value: last.clone() });
    }
    if let Some((name, value)) = last.strip_prefix("--").and_then(|rest| rest.split_once('=')) {
        let kind = kind(find_long(command, name)?)?;
        return Some(TypedWord { kind, before: format!("--{name}="), value: value.to_owned() });
    }
    if last.starts_with('-') {
        return None;
    }
    let positional = command.get_positionals().nth(positionals.len())?;
    Some(TypedWord { kind: kind(positional)?, before: String::new(), value: last.clone() })
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values() && !argument.is_positional()
}

fn find_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| takes_value(argument) && argument.get_long() == Some(name))
}

fn find_short(command: &Command, letter: char) -> Option<&Arg> {
    command.get_arguments().find(|argument| takes_value(argument) && argument.get_short() == Some(letter))
}

/// The kind of an argument's values, by the name that `--help` shows for them.
fn value_kind(path: &[&str], argument: &Arg, positionals: &[&str]) -> Option<ValueKind> {
    let shown = argument.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    match (path, shown) {
        (_, "MODEL" | "M") => Some(ValueKind::Model),
        (_, "K=V") if argument.get_long() == Some("set") => Some(ValueKind::Assignment),
        (["config", _], "KEY") => Some(ValueKind::SettingKey),
        (["config", _], "VALUE") => positionals.first().map(|key| ValueKind::SettingValue((*key).to_owned())),
        (_, "PROFILE") | (["profile", "load" | "show" | "delete"], "NAME") => Some(ValueKind::Profile),
        (_, "PROVIDER") => Some(ValueKind::Provider),
        (_, "D") => Some(ValueKind::Dialect),
        // A request of the gateway has an id too, but not a session's.
        (_, "ID") if argument.get_long() != Some("request") => Some(ValueKind::Session),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn typed(line: &str) -> Option<(ValueKind, String, String)> {
        let mut root = crate::Arguments::command();
        root.build();
        typed_word(&root, &split_words(line)).map(|TypedWord { kind, before, value }| (kind, before, value))
    }

    #[test]
    fn the_word_under_the_cursor_belongs_to_an_argument() {
        let effort = || ValueKind::SettingValue("reasoning.effort".to_owned());
        #[rustfmt::skip]
        let cases = [
            ("aside ask -m ",                                 Some((ValueKind::Model,      "",         ""))),
            ("aside ask -cm deep",                            Some((ValueKind::Model,      "",         "deep"))),
            ("aside ask \"what is -m\" --model op",           Some((ValueKind::Model,      "",         "op"))),
            ("aside --model=op",                              Some((ValueKind::Model,      "--model=", "op"))),
            ("aside ask --set reasoning.eff",                 Some((ValueKind::Assignment, "",         "reasoning.eff"))),
            ("aside ask --set=reasoning.effort=h",            Some((ValueKind::Assignment, "--set=",   "reasoning.effort=h"))),
            ("aside config set ",                             Some((ValueKind::SettingKey, "",         ""))),
            ("aside config set reasoning.effort h",           Some((effort(),              "",         "h"))),
            ("aside config explain -m sim/kimi reas",         Some((ValueKind::SettingKey, "",         "reas"))),
            ("aside -p ",                                     Some((ValueKind::Profile,    "",         ""))),
            ("aside profile load d",                          Some((ValueKind::Profile,    "",         "d"))),
            ("aside key set deep",                            Some((ValueKind::Provider,   "",         "deep"))),
            ("aside judge --dialect ",                        Some((ValueKind::Dialect,    "",         ""))),
            ("aside sessions show ",                          Some((ValueKind::Session,    "",         ""))),
            ("aside -r ",                                     Some((ValueKind::Session,    "",         ""))),
            ("aside explain --request ",                      None),
            ("aside ask ",                                    None),
            ("aside ask -",                                   None),
            ("aside ask --schema ",                           None),
            ("aside profile save ",                           None),
            ("aside",                                         None),
            ("",                                              None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|(kind, before, value)| (kind, before.to_owned(), value.to_owned()));
            assert_eq!(typed(line), expected, "{line}");
        }
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 5] = [
            ("aside  ask ",      &["aside", "ask", ""]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            ("a b\\ c",          &["a", "b c"]),
            ("a 'open -m ",      &["a", "open -m "]),
            ("",                 &[""]),
        ];
        for (line, expected) in cases {
            assert_eq!(split_words(line), expected, "{line}");
        }
    }
}
