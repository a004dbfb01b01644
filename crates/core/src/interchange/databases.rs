//! How programs lay out their sessions in SQLite databases. Core opens no file:
//! the caller runs these queries and passes the rows to
//! [`import_rows`](super::import_rows).

use super::Program;

/// One version of a program's tables.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DatabaseLayout {
    /// The table that lists the sessions. A file without it has another layout.
    pub table: &'static str,
    /// Queries that list the sessions, oldest first, with the columns `id`,
    /// `updated` (in milliseconds) and `subagent` (0 or 1). The first one that
    /// fits the columns of the file applies.
    pub sessions: &'static [&'static str],
    /// For each table, a query for the rows that belong to the session `?1`. A
    /// table that the file lacks has no rows.
    pub rows: &'static [(&'static str, &'static str)],
}

/// Rows of one table, each as a JSON object with the column names as members.
/// Binary values are strings of hexadecimal digits.
#[derive(Debug, Clone)]
pub struct TableRows {
    /// The name of the table.
    pub table: String,
    /// One JSON object per row.
    pub rows: Vec<String>,
}

/// The layouts of a program's database, the newest first. Empty if the program
/// has no database.
pub fn database_layouts(program: Program) -> &'static [DatabaseLayout] {
    match program {
        Program::OpenCode => &[OPENCODE],
        Program::Goose => &[GOOSE],
        Program::Llm => &[LLM_THREADS, LLM_CONVERSATIONS],
        Program::ClaudeCode | Program::Codex | Program::GeminiCli | Program::Pi => &[],
    }
}

const OPENCODE: DatabaseLayout = DatabaseLayout {
    table: "session",
    sessions: &["SELECT id, time_updated AS updated, parent_id IS NOT NULL AS subagent FROM session
                 ORDER BY time_updated, id"],
    rows: &[
        ("session", "SELECT * FROM session WHERE id = ?1"),
        ("message", "SELECT id, session_id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id"),
        ("part", "SELECT id, message_id, data FROM part WHERE session_id = ?1 ORDER BY id"),
    ],
};

const GOOSE: DatabaseLayout = DatabaseLayout {
    table: "sessions",
    sessions: &[
        "SELECT id, strftime('%s', updated_at) * 1000 AS updated, session_type = 'sub_agent' AS subagent
         FROM sessions WHERE session_type <> 'hidden' ORDER BY updated_at, id",
        "SELECT id, strftime('%s', updated_at) * 1000 AS updated, 0 AS subagent FROM sessions ORDER BY updated_at, id",
    ],
    rows: &[
        ("sessions", "SELECT * FROM sessions WHERE id = ?1"),
        ("messages", "SELECT * FROM messages WHERE session_id = ?1 ORDER BY created_timestamp, id"),
    ],
};

/// Since 0.32. A message is stored once, however many threads contain it.
const LLM_THREADS: DatabaseLayout = DatabaseLayout {
    table: "threads",
    sessions: &["SELECT threads.id AS id, strftime('%s', max(turns.datetime_utc)) * 1000 AS updated, 0 AS subagent
                 FROM threads JOIN turns ON turns.thread_id = threads.id GROUP BY threads.id ORDER BY updated, threads.id"],
    rows: &[
        ("threads", "SELECT * FROM threads WHERE id = ?1"),
        ("turns", "SELECT * FROM turns WHERE thread_id = ?1 ORDER BY datetime_utc, id"),
        (
            "messages",
            "WITH RECURSIVE chain (hash) AS (
               SELECT tip_message_hash FROM turns WHERE thread_id = ?1
               UNION SELECT messages.parent_hash FROM messages JOIN chain ON messages.hash = chain.hash)
             SELECT * FROM messages WHERE hash IN (SELECT hash FROM chain)",
        ),
        (
            "parts",
            "WITH RECURSIVE chain (hash) AS (
               SELECT tip_message_hash FROM turns WHERE thread_id = ?1
               UNION SELECT messages.parent_hash FROM messages JOIN chain ON messages.hash = chain.hash)
             SELECT * FROM parts WHERE message_hash IN (SELECT hash FROM chain) ORDER BY message_hash, position",
        ),
        (
            "fragments",
            "SELECT id, content FROM fragments WHERE id IN (
               SELECT fragment_id FROM turn_fragments JOIN turns ON turns.id = turn_id WHERE thread_id = ?1)",
        ),
        (
            "attachments",
            "WITH RECURSIVE chain (hash) AS (
               SELECT tip_message_hash FROM turns WHERE thread_id = ?1
               UNION SELECT messages.parent_hash FROM messages JOIN chain ON messages.hash = chain.hash)
             SELECT * FROM attachments WHERE id IN (
               SELECT attachment_id FROM part_attachments JOIN parts ON parts.id = part_id
               WHERE message_hash IN (SELECT hash FROM chain))",
        ),
        (
            "tools",
            "SELECT * FROM tools WHERE id IN (
               SELECT tool_id FROM turn_tools JOIN turns ON turns.id = turn_id WHERE thread_id = ?1) ORDER BY id",
        ),
    ],
};

const LLM_CONVERSATIONS: DatabaseLayout = DatabaseLayout {
    table: "conversations",
    sessions: &[
        "SELECT conversations.id AS id, strftime('%s', max(responses.datetime_utc)) * 1000 AS updated, 0 AS subagent
                 FROM conversations JOIN responses ON responses.conversation_id = conversations.id
                 GROUP BY conversations.id ORDER BY updated, conversations.id",
    ],
    rows: &[
        ("conversations", "SELECT * FROM conversations WHERE id = ?1"),
        ("responses", "SELECT * FROM responses WHERE conversation_id = ?1 ORDER BY datetime_utc, id"),
        (
            "tool_calls",
            "SELECT tool_calls.* FROM tool_calls JOIN responses ON responses.id = response_id
             WHERE conversation_id = ?1 ORDER BY tool_calls.id",
        ),
        (
            "tool_results",
            "SELECT tool_results.* FROM tool_results JOIN responses ON responses.id = response_id
             WHERE conversation_id = ?1 ORDER BY tool_results.id",
        ),
        (
            "prompt_fragments",
            "SELECT response_id, content FROM prompt_fragments JOIN fragments ON fragments.id = fragment_id
             JOIN responses ON responses.id = response_id WHERE conversation_id = ?1 ORDER BY \"order\"",
        ),
        (
            "system_fragments",
            "SELECT response_id, content FROM system_fragments JOIN fragments ON fragments.id = fragment_id
             JOIN responses ON responses.id = response_id WHERE conversation_id = ?1 ORDER BY \"order\"",
        ),
        (
            "prompt_attachments",
            "SELECT response_id, type, path, url, content FROM prompt_attachments
             JOIN attachments ON attachments.id = attachment_id
             JOIN responses ON responses.id = response_id WHERE conversation_id = ?1 ORDER BY \"order\"",
        ),
        (
            "tools",
            "SELECT DISTINCT tools.* FROM tools JOIN tool_responses ON tools.id = tool_id
             JOIN responses ON responses.id = response_id WHERE conversation_id = ?1 ORDER BY tools.id",
        ),
    ],
};
