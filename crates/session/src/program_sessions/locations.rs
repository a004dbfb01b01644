//! Where programs keep their sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aside_core::interchange::Program;
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

/// The folders and variables that programs look at.
pub struct ProgramFolders {
    home: Option<PathBuf>,
    /// `XDG_DATA_HOME`, else its default.
    data: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, else its default.
    config: Option<PathBuf>,
    variable: fn(&str) -> Option<OsString>,
}

/// A folder with sessions, or a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchPath {
    pub(super) path: PathBuf,
    /// How many folders deep the files are.
    pub(super) depth: usize,
}

impl ProgramFolders {
    pub fn from_environment() -> ProgramFolders {
        let xdg = Xdg::new().ok();
        ProgramFolders {
            home: etcetera::home_dir().ok(),
            data: xdg.as_ref().map(Xdg::data_dir),
            config: xdg.as_ref().map(Xdg::config_dir),
            variable: |name| std::env::var_os(name).filter(|value| !value.is_empty()),
        }
    }

    /// The places of a program, whether they exist or not.
    pub(super) fn places(&self, program: Program) -> Vec<SearchPath> {
        let at = |folder: Option<PathBuf>, name: &str, depth: usize| {
            folder.map(|folder| SearchPath { path: folder.join(name), depth })
        };
        let variable = |name: &str| (self.variable)(name).map(PathBuf::from);
        let home = |name: &str| self.home.as_ref().map(|home| home.join(name));
        let below = |folder: &Option<PathBuf>, name: &str| folder.as_ref().map(|folder| folder.join(name));
        let places = match program {
            Program::ClaudeCode => {
                let folders = match variable("CLAUDE_CONFIG_DIR") {
                    Some(folder) => vec![Some(folder)],
                    None => vec![home(".claude"), below(&self.config, "claude")],
                };
                folders.into_iter().map(|folder| at(folder, "projects", 1)).collect()
            }
            Program::Codex => {
                let folder = variable("CODEX_HOME").or_else(|| home(".codex"));
                vec![at(folder.clone(), "sessions", 3), at(folder, "archived_sessions", 3)]
            }
            Program::OpenCode => {
                let folder = below(&self.data, "opencode");
                let database = variable("OPENCODE_DB").map(|name| folder.clone().unwrap_or_default().join(name));
                vec![
                    database.map(|path| SearchPath { path, depth: 0 }),
                    // The databases, then the files of older versions.
                    folder.clone().map(|path| SearchPath { path, depth: 0 }),
                    at(folder, "storage/session", 1),
                ]
            }
            Program::GeminiCli => {
                let folder = variable("GEMINI_CLI_HOME").or_else(|| self.home.clone());
                vec![at(folder, ".gemini/tmp", 2)]
            }
            Program::Pi => {
                let agent = variable("PI_CODING_AGENT_DIR").or_else(|| home(".pi/agent"));
                let sessions = variable("PI_CODING_AGENT_SESSION_DIR").or_else(|| below(&agent, "sessions"));
                vec![sessions.map(|path| SearchPath { path, depth: 1 })]
            }
            Program::Goose => {
                let root = variable("GOOSE_PATH_ROOT").map(|root| root.join("data"));
                vec![at(root.or_else(|| below(&self.data, "goose")), "sessions", 0)]
            }
            Program::Llm => {
                let folders = match variable("LLM_USER_PATH") {
                    Some(folder) => vec![Some(folder)],
                    None => vec![
                        below(&self.config, "io.datasette.llm"),
                        home("Library/Application Support/io.datasette.llm"),
                    ],
                };
                folders.into_iter().map(|folder| at(folder, "logs.db", 0)).collect()
            }
        };
        places.into_iter().flatten().collect()
    }
}

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Session,
    Database,
    Other,
}

pub(super) fn file_kind(program: Program, path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has = |start: &str, end: &str| name.starts_with(start) && name.ends_with(end);
    let folder = |up: usize| path.ancestors().nth(up).and_then(Path::file_name).unwrap_or_default();
    let (is_session, is_database) = match program {
        // Subagents have files of their own.
        Program::ClaudeCode => (has("", ".jsonl") && !has("agent-", ""), false),
        Program::Codex => (has("rollout-", ".jsonl"), false),
        Program::OpenCode => (has("", ".json") && folder(2) == "session", has("opencode", ".db")),
        Program::GeminiCli => {
            let is_chat = has("session-", ".jsonl") || has("session-", ".json");
            (is_chat && folder(1) == "chats", false)
        }
        Program::Pi => (has("", ".jsonl"), false),
        Program::Goose => (has("", ".jsonl"), has("sessions", ".db")),
        Program::Llm => (false, has("logs", ".db")),
    };
    match (is_session, is_database) {
        (_, true) => FileKind::Database,
        (true, false) => FileKind::Session,
        (false, false) => FileKind::Other,
    }
}

/// The id of the session, if the name of its file contains it.
pub(super) fn session_id(program: Program, path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    match program {
        Program::ClaudeCode | Program::OpenCode | Program::Goose => Some(stem.to_owned()),
        // `rollout-2026-03-01T10-00-00-UUID`
        Program::Codex => stem.get(stem.len().checked_sub(36)?..).filter(|id| id.contains('-')).map(str::to_owned),
        // `2026-03-01T10-00-00-000Z_ID`
        Program::Pi => stem.split_once('_').map(|(_, id)| id.to_owned()),
        Program::GeminiCli | Program::Llm => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(variable: fn(&str) -> Option<OsString>) -> ProgramFolders {
        let folder = |name: &str| Some(PathBuf::from(name));
        ProgramFolders { home: folder("/h"), data: folder("/d"), config: folder("/c"), variable }
    }

    #[test]
    fn p11_programs_are_looked_for_in_their_own_folders() {
        #[rustfmt::skip]
        let cases: [(Program, &[&str], &[&str]); 7] = [
            (Program::ClaudeCode, &["/h/.claude/projects", "/c/claude/projects"],            &["/v/projects"]),
            (Program::Codex,      &["/h/.codex/sessions", "/h/.codex/archived_sessions"],    &["/v/sessions", "/v/archived_sessions"]),
            (Program::OpenCode,   &["/d/opencode", "/d/opencode/storage/session"],           &["/v", "/d/opencode", "/d/opencode/storage/session"]),
            (Program::GeminiCli,  &["/h/.gemini/tmp"],                                       &["/v/.gemini/tmp"]),
            (Program::Pi,         &["/h/.pi/agent/sessions"],                                &["/v"]),
            (Program::Goose,      &["/d/goose/sessions"],                                    &["/v/data/sessions"]),
            (Program::Llm,        &["/c/io.datasette.llm/logs.db", "/h/Library/Application Support/io.datasette.llm/logs.db"], &["/v/logs.db"]),
        ];
        for (program, usual, with_variable) in cases {
            let paths = |folders: &ProgramFolders| -> Vec<PathBuf> {
                folders.places(program).into_iter().map(|place| place.path).collect()
            };
            assert_eq!(paths(&folders(|_| None)), usual.iter().map(PathBuf::from).collect::<Vec<_>>(), "{program}");
            let set = folders(|_| Some("/v".into()));
            assert_eq!(paths(&set), with_variable.iter().map(PathBuf::from).collect::<Vec<_>>(), "{program}");
        }
    }

    #[test]
    fn p11_files_are_told_apart_by_their_names() {
        use FileKind::{Database, Other, Session};
        #[rustfmt::skip]
        let cases = [
            (Program::ClaudeCode, "p/3227c0c3.jsonl",                  Session,  Some("3227c0c3")),
            (Program::ClaudeCode, "p/agent-1.jsonl",                   Other,    Some("agent-1")),
            (Program::Codex,      "rollout-2026-11-16T05-57-06-01a1e2ee-3b9a-7ac3-a83a-07074bc12c81.jsonl", Session, Some("01a1e2ee-3b9a-7ac3-a83a-07074bc12c81")),
            (Program::OpenCode,   "opencode.db",                       Database, Some("opencode")),
            (Program::OpenCode,   "opencode.db-wal",                   Other,    Some("opencode")),
            (Program::OpenCode,   "storage/session/p/ses_1.json",      Session,  Some("ses_1")),
            (Program::OpenCode,   "storage/message/ses_1/msg_1.json",  Other,    Some("msg_1")),
            (Program::GeminiCli,  "p/chats/session-2026.jsonl",        Session,  None),
            (Program::GeminiCli,  "p/logs.json",                       Other,    None),
            (Program::Pi,         "2026-03-01T10-00-00-000Z_a-b.jsonl", Session, Some("a-b")),
            (Program::Goose,      "sessions.db",                       Database, Some("sessions")),
            (Program::Goose,      "20250301_100000.jsonl",             Session,  Some("20250301_100000")),
            (Program::Llm,        "logs.db",                           Database, None),
        ];
        for (program, name, kind, id) in cases {
            assert_eq!(file_kind(program, Path::new(name)), kind, "{program} {name}");
            assert_eq!(session_id(program, Path::new(name)).as_deref(), id, "{program} {name}");
        }
    }
}
