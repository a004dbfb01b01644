//! The user's own slash commands: `commands/NAME.md` in the config folder is the prompt that `/NAME` sends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aside_front::OwnCommand;
use aside_front::slash_commands::COMMANDS;

use crate::error::HintedError;

/// A longer file is probably not a prompt.
const MAX_LENGTH: u64 = 256 * 1024;
/// How many commands are offered.
const MAX_COMMANDS: usize = 200;
/// How much of the first line describes a command without a description.
const MAX_ABOUT: usize = 80;

/// The commands of a config folder, and why other files there are not commands.
#[derive(Debug, Default)]
pub(crate) struct OwnCommands {
    pub(crate) commands: Vec<OwnCommand>,
    pub(crate) notes: Vec<String>,
}

/// Lists the commands, sorted by name.
pub(crate) fn list(config: &Path) -> OwnCommands {
    let folder = config.join("commands");
    let mut found = OwnCommands::default();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
        Err(error) => {
            found.notes.push(format!("cannot list {}: {error}", folder.display()));
            return found;
        }
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".md").map(str::to_owned)).collect();
    names.sort();
    for name in names.into_iter().take(MAX_COMMANDS) {
        let path = folder.join(format!("{name}.md"));
        match command(&name, &path) {
            Ok(command) => found.commands.push(command),
            Err(why) => found.notes.push(format!("{} is not a command: {why}", path.display())),
        }
    }
    found
}

fn command(name: &str, path: &Path) -> Result<OwnCommand, String> {
    if !is_name(name) {
        return Err("its name may have only letters, digits, - and _".to_owned());
    }
    if COMMANDS.iter().any(|entry| entry.name == name) {
        return Err(format!("/{name} is built in"));
    }
    let text = read(path)?;
    let file = CommandFile::parse(&text);
    let first_line = file.prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let about = file.description.unwrap_or_else(|| first_line.trim_start_matches(['#', ' ']));
    Ok(OwnCommand { name: name.to_owned(), about: about.chars().take(MAX_ABOUT).collect() })
}

/// The prompt of a command with its arguments.
pub(crate) fn prompt(config: &Path, name: &str, arguments: &str) -> Result<String, HintedError> {
    let path: PathBuf = config.join("commands").join(format!("{name}.md"));
    let text = match is_name(name) {
        true => read(&path),
        false => Err("its name may have only letters, digits, - and _".to_owned()),
    };
    let text = text.map_err(|why| HintedError::new(format!("`/{name}` cannot be used: {why}")))?;
    let prompt = with_arguments(CommandFile::parse(&text).prompt.trim(), arguments);
    if prompt.trim().is_empty() {
        return Err(
            HintedError::new(format!("`/{name}` has no text")).hint(format!("write it into {}", path.display()))
        );
    }
    Ok(prompt)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|one| one.is_ascii_alphanumeric() || "-_".contains(one))
}

fn read(path: &Path) -> Result<String, String> {
    let cannot = |error: io::Error| format!("it cannot be read: {error}");
    let size = fs::metadata(path).map_err(cannot)?;
    match (size.is_file(), size.len()) {
        (false, _) => Err("it is not a file".to_owned()),
        (true, length) if length > MAX_LENGTH => Err(format!("it has {length} bytes; at most {MAX_LENGTH}")),
        (true, _) => fs::read_to_string(path).map_err(cannot),
    }
}

/// A command's file: its prompt, after a header between `---` lines that may describe it.
#[derive(Debug, PartialEq, Eq)]
struct CommandFile<'a> {
    description: Option<&'a str>,
    prompt: &'a str,
}

impl CommandFile<'_> {
    fn parse(text: &str) -> CommandFile<'_> {
        let whole = CommandFile { description: None, prompt: text };
        let Some(rest) = text.strip_prefix("---\n") else { return whole };
        let Some((header, prompt)) = rest.split_once("\n---\n") else { return whole };
        let description = header.lines().find_map(|line| line.strip_prefix("description:"));
        let description = description.map(|text| text.trim().trim_matches(['"', '\''])).filter(|text| !text.is_empty());
        CommandFile { description, prompt }
    }
}

/// The single arguments: words, or words in quotes, which are left out. A quote counts only where an argument begins, and
/// only if another one ends the argument, so that an apostrophe is a letter.
fn single_arguments(arguments: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = arguments.trim_start();
    while !rest.is_empty() {
        let (argument, after) =
            quoted(rest).unwrap_or_else(|| rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())));
        found.push(argument);
        rest = after.trim_start();
    }
    found
}

/// The text between the quotes at the beginning, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|letter| ['"', '\''].contains(letter))?;
    let inside = text.get(1..)?;
    let ends_argument = |after: &str| after.is_empty() || after.starts_with(char::is_whitespace);
    inside.match_indices(quote).find_map(|(at, _)| {
        let (argument, after) = (inside.get(..at)?, inside.get(at + 1..)?);
        ends_argument(after).then_some((argument, after))
    })
}

/// Puts the arguments in: `$ARGUMENTS` is all of them as they were typed, `$1` to `$9` are single ones. A prompt without
/// either gets them at its end.
fn with_arguments(prompt: &str, arguments: &str) -> String {
    let words = single_arguments(arguments);
    let (mut out, mut rest, mut is_used) = (String::new(), prompt, false);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let digit = after.chars().next().and_then(|letter| letter.to_digit(10)).filter(|digit| *digit > 0);
        (rest, is_used) = match (after.strip_prefix("ARGUMENTS"), digit) {
            (Some(after), _) => {
                out.push_str(arguments);
                (after, true)
            }
            (None, Some(digit)) => {
                out.push_str(words.get(digit as usize - 1).copied().unwrap_or_default());
                (after.get(1..).unwrap_or_default(), true)
            }
            (None, None) => {
                out.push('$');
                (after, is_used)
            }
        };
    }
    out.push_str(rest);
    if !is_used && !arguments.is_empty() {
        out.push_str("\n\n");
        out.push_str(arguments);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t24_arguments_go_where_the_prompt_names_them() {
        #[rustfmt::skip]
        let cases = [
            ("Review $ARGUMENTS.",   "a.rs b.rs", "Review a.rs b.rs."),
            ("From $1 to $2 ($3)",   "one two",   "From one to two ()"),
            ("Review it.",           "fast",      "Review it.\n\nfast"),
            ("Review it.",           "",          "Review it."),
            ("costs $5? $ and $0",   "a",         "costs ? $ and $0"),
            ("$ARGUMENTS",           "$1 $2",     "$1 $2"),
            ("[$1] [$2]",            "\"two words\" three", "[two words] [three]"),
            ("[$1] [$2]",            "'a \"b\"' \"it's\"", "[a \"b\"] [it's]"),
            ("[$1] [$2] [$3]",       "don't say it's", "[don't] [say] [it's]"),
            ("[$1] [$2]",            "\"not closed",  "[\"not] [closed]"),
            ("[$1] [$2]",            "\"a\"b c\" d",  "[a\"b c] [d]"),
            ("[$1] [$2]",            "\"\" 漢字",      "[] [漢字]"),
            ("All: $ARGUMENTS",      "\"two words\" x", "All: \"two words\" x"),
        ];
        for (prompt, arguments, expected) in cases {
            assert_eq!(with_arguments(prompt, arguments), expected, "{prompt}");
        }
    }

    #[test]
    fn t24_a_header_describes_a_command() {
        #[rustfmt::skip]
        let cases = [
            ("---\ndescription: \"Reviews\"\n---\nDo it.\n", Some("Reviews"), "Do it.\n"),
            ("---\nmodel: x\n---\nDo it.\n",                 None,            "Do it.\n"),
            ("Do it.\n---\n",                                None,            "Do it.\n---\n"),
        ];
        for (text, description, prompt) in cases {
            assert_eq!(CommandFile::parse(text), CommandFile { description, prompt }, "{text}");
        }
    }

    #[test]
    fn t24_files_that_cannot_be_commands_are_named() {
        let config = std::env::temp_dir().join(format!("aside-test-commands-{}", std::process::id()));
        let folder = config.join("commands");
        fs::create_dir_all(folder.join("sub.md")).unwrap();
        fs::write(folder.join("review.md"), "# Review\nLook at $1").unwrap();
        fs::write(folder.join("help.md"), "mine").unwrap();
        fs::write(folder.join("two words.md"), "x").unwrap();
        fs::write(folder.join("notes.txt"), "x").unwrap();
        let found = list(&config);
        assert_eq!(found.commands, [OwnCommand { name: "review".into(), about: "Review".into() }]);
        let notes = found.notes.join("\n");
        let expected = ["help.md is not a command: /help is built in", "sub.md is not a command: it is not a file"];
        assert!(expected.iter().all(|note| notes.contains(note)) && notes.contains("two words.md"), "{notes}");
        assert_eq!(prompt(&config, "review", "a.rs").unwrap(), "# Review\nLook at a.rs");
        assert!(prompt(&config, "../secret", "").is_err());
        fs::remove_dir_all(&config).unwrap();
        assert!(list(&config).notes.is_empty(), "no folder is no problem");
    }
}
