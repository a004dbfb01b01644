//! The programs whose sessions can be imported.

use std::fmt;

/// A program that stores its sessions on the user's machine.
///
/// Other crates know where its files are, so a new program must break their build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// JSON lines, one file per session.
    ClaudeCode,
    /// JSON lines, one file per session.
    Codex,
    /// An SQLite database. Older versions wrote a JSON file for every part of a
    /// message.
    OpenCode,
    /// JSON lines, one file per session. Older versions wrote one JSON object.
    GeminiCli,
    /// JSON lines, one file per session.
    Pi,
    /// An SQLite database. Older versions wrote JSON lines.
    Goose,
    /// An SQLite database.
    Llm,
}

impl Program {
    /// All programs, in the order of help texts.
    pub const ALL: [Program; 7] = [
        Program::ClaudeCode,
        Program::Codex,
        Program::OpenCode,
        Program::GeminiCli,
        Program::Pi,
        Program::Goose,
        Program::Llm,
    ];

    /// The name of its command.
    pub fn name(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude",
            Program::Codex => "codex",
            Program::OpenCode => "opencode",
            Program::GeminiCli => "gemini",
            Program::Pi => "pi",
            Program::Goose => "goose",
            Program::Llm => "llm",
        }
    }

    /// The program with this command name.
    pub fn parse(name: &str) -> Option<Program> {
        Program::ALL.into_iter().find(|program| program.name() == name)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::ClaudeCode => "Claude Code",
            Program::Codex => "Codex",
            Program::OpenCode => "OpenCode",
            Program::GeminiCli => "Gemini CLI",
            Program::Pi => "pi",
            Program::Goose => "goose",
            Program::Llm => "llm",
        })
    }
}

/// Where an imported session comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportSource {
    /// The program that wrote the session.
    pub program: Program,
    /// The program's own id of the session, if it is known.
    pub session: Option<String>,
    /// The working directory of the session, if it is known.
    pub folder: Option<String>,
    /// Whether the session belongs to a subagent, which the program started for
    /// another session.
    pub is_subagent: bool,
}

impl ImportSource {
    /// A session of this program, about which nothing else is known.
    pub fn new(program: Program) -> ImportSource {
        ImportSource { program, session: None, folder: None, is_subagent: false }
    }
}
