//! The slash commands that an editor offers, and their output as Markdown.

use aside_front::slash_commands::{COMMANDS, LocalCommand, ParsedLine, parse};
use aside_front::{Command, CommandOutput, ToolMode};

use crate::session_update::{AvailableCommand, CommandInput};

/// The commands that make sense without a screen and keep the session the one that the editor opened.
const OFFERED: &[&str] = &[
    "help",
    "sent",
    "context",
    "tools",
    "permissions",
    "record",
    "set",
    "unset",
    "model",
    "effort",
    "mode",
    "profile",
    "compact",
    "undo",
    "redo",
    "diff",
    "retry",
    "export",
    "title",
    "search",
    "usage",
];

pub(crate) fn available() -> Vec<AvailableCommand> {
    let offered = COMMANDS.iter().filter(|entry| OFFERED.contains(&entry.name));
    let command = |entry: &aside_front::slash_commands::CommandEntry| AvailableCommand {
        name: entry.name,
        description: entry.doc,
        input: Some(CommandInput { hint: entry.arguments }).filter(|input| !input.hint.is_empty()),
    };
    offered.map(command).collect()
}

/// What a prompt asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedPrompt {
    /// It is for the model.
    Prompt,
    Command(Command),
    /// `/sent`, which the front end answers.
    Sent,
    /// Answered with this text.
    Reply(String),
}

pub(crate) fn parse_prompt(text: &str) -> ParsedPrompt {
    // A word with a colon is a command only in a terminal.
    let Some(rest) = text.trim_start().strip_prefix('/') else { return ParsedPrompt::Prompt };
    let name = rest.split(char::is_whitespace).next().unwrap_or_default();
    match parse(text) {
        ParsedLine::Text => ParsedPrompt::Prompt,
        ParsedLine::Local(LocalCommand::Sent) => ParsedPrompt::Sent,
        ParsedLine::Local(LocalCommand::Mode(mode)) => ParsedPrompt::Command(Command::Mode(mode)),
        ParsedLine::Local(LocalCommand::NextMode) => ParsedPrompt::Reply(error(
            "no mode is named",
            Some(&format!("/mode and one of: {}", ToolMode::WORDS.join(", "))),
        )),
        ParsedLine::Local(LocalCommand::Help) => ParsedPrompt::Reply(help()),
        ParsedLine::Invalid { what, hint } => ParsedPrompt::Reply(error(&what, hint.as_deref())),
        ParsedLine::Command(command) if OFFERED.contains(&name) => ParsedPrompt::Command(command),
        ParsedLine::Command(_) | ParsedLine::Local(_) => {
            ParsedPrompt::Reply(format!("`/{name}` works only in the terminal; /help lists the commands here"))
        }
    }
}

fn help() -> String {
    let line = |command: AvailableCommand| {
        let arguments = command.input.map(|input| format!(" {}", input.hint)).unwrap_or_default();
        format!("- `/{}{arguments}`: {}", command.name, command.description)
    };
    available().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn error(what: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("\n\nHint: {hint}")).unwrap_or_default();
    format!("Error: {what}{hint}")
}

pub(crate) fn markdown(output: &CommandOutput) -> String {
    match output {
        CommandOutput::Line(text) => text.replace('\n', "  \n"),
        CommandOutput::Markdown(text) => text.clone(),
        CommandOutput::Error { what, hint } => error(what, hint.as_deref()),
        CommandOutput::Titled { page, .. } => markdown(page),
        CommandOutput::Table { head, rows } => {
            let cell = |cell: &String| cell.replace('|', "\\|").replace(['\n', '\r'], " ");
            let row = |cells: &[String]| format!("| {} |", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
            let rule = format!("|{}", " --- |".repeat(head.len()));
            let lines = [row(head), rule].into_iter().chain(rows.iter().map(|cells| row(cells)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_every_offered_command_exists_and_has_a_description() {
        assert_eq!(available().len(), OFFERED.len());
        assert!(available().iter().all(|command| !command.description.is_empty()));
    }

    #[test]
    fn a1_a_prompt_is_for_the_model_or_a_command() {
        let reply = |text: &str| ParsedPrompt::Reply(text.to_owned());
        #[rustfmt::skip]
        let cases = [
            ("hello",               ParsedPrompt::Prompt),
            ("/usr/bin is full",    ParsedPrompt::Prompt),
            (":thinking is fine",   ParsedPrompt::Prompt),
            ("/sent",               ParsedPrompt::Sent),
            ("/undo",               ParsedPrompt::Command(Command::Undo)),
            ("/effort low",         ParsedPrompt::Command(Command::Effort(Some("low".into())))),
            ("/quit",               reply("`/quit` works only in the terminal; /help lists the commands here")),
            ("/mouse on",           reply("`/mouse` works only in the terminal; /help lists the commands here")),
            ("/undoo",              reply("Error: unknown command `/undoo`\n\nHint: /undo")),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_prompt(text), expected, "{text}");
        }
    }

    #[test]
    fn a_table_becomes_markdown() {
        let table =
            CommandOutput::Table { head: vec!["a".into(), "b".into()], rows: vec![vec!["1|2".into(), "x\ny".into()]] };
        assert_eq!(markdown(&table), "| a | b |\n| --- | --- |\n| 1\\|2 | x y |");
    }
}
