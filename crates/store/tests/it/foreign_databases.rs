//! Databases of other programs. We wrote the tables after what the programs write.

use std::path::Path;

use aside_core::block::Time;
use aside_core::dialect::Dialects;
use aside_core::interchange::{Imported, Program, import_rows};
use aside_store::{ForeignDatabase, ForeignDatabaseError, ForeignSession};
use rusqlite::Connection;

use crate::support::Folder;

const LIMIT: usize = 1 << 20;

const OPENCODE: &str = r#"
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);
INSERT INTO session VALUES ('ses_2', NULL, '/w', 'Weather', 200), ('ses_1', NULL, '/w', 'Old', 100), ('ses_3', 'ses_2', '/w', 'Child', 150);
INSERT INTO message VALUES ('msg_1', 'ses_2', 1, '{"role":"user","time":{"created":1772359200000}}'),
  ('msg_2', 'ses_2', 2, '{"role":"assistant","modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1772359201000}}'),
  ('msg_3', 'ses_1', 1, '{"role":"user"}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_2', '{"type":"text","text":"Weather?"}'),
  ('prt_2', 'msg_2', 'ses_2', '{"type":"reasoning","text":"Look it up.","metadata":{"anthropic":{"signature":"c2ln"}}}'),
  ('prt_3', 'msg_2', 'ses_2', '{"type":"text","text":"Fine."}');
"#;

const OLD_GOOSE: &str = r#"
CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT, updated_at TIMESTAMP);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
INSERT INTO sessions VALUES ('20260301_1', 'Weather', '/w', '2026-03-01 10:00:00');
INSERT INTO messages VALUES (1, '20260301_1', 'user', '[{"type":"text","text":"Weather?"}]', 1772359200),
  (2, '20260301_1', 'assistant', '[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Fine."}]', 1772359201);
"#;

const LLM: &str = r#"
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, tip_message_hash TEXT, model TEXT, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, text TEXT, payload TEXT);
INSERT INTO conversations VALUES ('c1', 'Older', 'm');
INSERT INTO responses VALUES ('r1', 'm', 'What is this?', NULL, 'A picture.', 'c1', '2025-03-01T10:00:00.123456');
INSERT INTO attachments VALUES ('a1', 'image/png', NULL, NULL, x'414243');
INSERT INTO prompt_attachments VALUES ('r1', 'a1', 0);
INSERT INTO threads VALUES ('t1', 'Newer', 'h2');
INSERT INTO turns VALUES ('u1', 't1', 'h2', 'm', '2026-03-01T10:00:00.123456+00:00');
INSERT INTO messages VALUES ('h1', NULL, 'user'), ('h2', 'h1', 'assistant'), ('h3', NULL, 'user');
INSERT INTO parts VALUES (1, 'h1', 0, 'text', 'q', NULL), (2, 'h2', 0, 'reasoning', 'hm', NULL), (3, 'h2', 1, 'text', 'a', NULL), (4, 'h3', 0, 'text', 'x', NULL);
"#;

fn database(folder: &Folder, sql: &str) -> std::path::PathBuf {
    let path = folder.path().join("foreign.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path
}

fn open(path: &Path) -> ForeignDatabase {
    ForeignDatabase::open(path, LIMIT).unwrap()
}

/// Every session of the file, with its conversation.
fn all(path: &Path, program: Program) -> Vec<(ForeignSession, Imported)> {
    let database = open(path);
    let dialects = Dialects::with_user_files(&[]).unwrap();
    let mut sessions = Vec::new();
    for layout in database.layouts(program).unwrap() {
        for session in database.sessions(layout).unwrap() {
            let rows = database.rows(layout, &session.id).unwrap();
            if let Ok(imported) = import_rows(program, &rows, &dialects) {
                sessions.push((session, imported));
            }
        }
    }
    sessions
}

#[test]
fn p11_the_sessions_of_a_database_are_listed_and_read() {
    #[rustfmt::skip]
    let cases = [
        ("opencode",  OPENCODE,  Program::OpenCode, vec![("ses_1", 100, "Old", 1), ("ses_2", 200, "Weather", 2)]),
        ("old goose", OLD_GOOSE, Program::Goose,    vec![("20260301_1", 1_772_359_200_000, "Weather", 2)]),
        ("llm",       LLM,       Program::Llm,      vec![("t1", 1_772_359_200_000, "Newer", 2), ("c1", 1_740_823_200_000, "Older", 2)]),
    ];
    for (name, sql, program, expected) in cases {
        let folder = Folder::new();
        let found = all(&database(&folder, sql), program);
        let facts: Vec<_> = found
            .iter()
            .map(|(session, imported)| {
                let conversation = &imported.conversation;
                let title = conversation.title.as_deref().unwrap();
                (session.id.as_str(), session.updated.unwrap().0, title, conversation.history.entries().len())
            })
            .collect();
        assert_eq!(facts, expected, "{name}");
        assert!(found.iter().all(|(session, _)| !session.is_subagent), "{name}");
    }
}

#[test]
fn p11_a_child_session_is_marked() {
    let folder = Folder::new();
    let database = open(&database(&folder, OPENCODE));
    let layouts = database.layouts(Program::OpenCode).unwrap();
    let sessions = database.sessions(layouts[0]).unwrap();
    let expected = ForeignSession { id: "ses_3".to_owned(), updated: Some(Time(150)), is_subagent: true };
    assert_eq!(sessions[1], expected);
}

#[test]
fn p11_a_database_is_not_changed_and_may_be_in_use() {
    let folder = Folder::new();
    let path = database(&folder, OPENCODE);
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "journal_mode", "wal").unwrap();
    other
        .execute_batch(
            "INSERT INTO part VALUES ('prt_9', 'msg_3', 'ses_1', '{\"type\":\"text\",\"text\":\"In the log.\"}')",
        )
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let found = all(&path, Program::OpenCode);
    assert_eq!(found[0].1.conversation.title.as_deref(), Some("Old"));
    let text = format!("{:?}", found[0].1.conversation.history.entries());
    assert!(text.contains("In the log."), "the write-ahead log is read too: {text}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn p11_hostile_databases_are_refused() {
    let endless = "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, time_updated INTEGER);
        INSERT INTO session VALUES ('s', NULL, 't', '/w', 1);
        CREATE VIEW message AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
          SELECT x AS id, 's' AS session_id, 1 AS time_created, 'd' AS data FROM n;";
    let large = "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, time_updated INTEGER);
        INSERT INTO session VALUES ('s', NULL, 't', '/w', 1);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 40)
          INSERT INTO message SELECT x, 's', x, hex(zeroblob(20000)) FROM n;";
    let long = "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, time_updated INTEGER);
        INSERT INTO session VALUES ('s', NULL, hex(zeroblob(1000000)), '/w', 1);";
    let wide = "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory BLOB, time_updated INTEGER);
        INSERT INTO session VALUES ('s', NULL, 't', zeroblob(600000), 1);";
    // A few bytes that stand for gigabytes, or for hours.
    let generated = "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, time_updated INTEGER,
          more BLOB GENERATED ALWAYS AS (zeroblob(1000)) VIRTUAL);
        INSERT INTO session VALUES ('s', NULL, 't', '/w', 1);";
    let stored = generated.replace("VIRTUAL", "STORED");
    let generated_rows =
        "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, time_updated INTEGER);
        INSERT INTO session VALUES ('s', NULL, 't', '/w', 1);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT AS (hex(zeroblob(1000))));
        INSERT INTO message VALUES ('m', 's', 1);";
    let odd = "CREATE TABLE session (id BLOB, parent_id TEXT, time_updated TEXT); INSERT INTO session VALUES (x'00ff', NULL, 'soon');";
    let read = |sql: &str| -> Result<(), ForeignDatabaseError> {
        let folder = Folder::new();
        let database = ForeignDatabase::open(&database(&folder, sql), LIMIT)?;
        for layout in database.layouts(Program::OpenCode)? {
            for session in database.sessions(layout)? {
                database.rows(layout, &session.id)?;
            }
        }
        Ok(())
    };
    // A view is not a table, so it has no rows.
    assert!(read(endless).is_ok());
    let named = endless
        .replace("CREATE TABLE session", "CREATE VIEW x AS SELECT 1; CREATE TABLE session")
        .replace("VIEW message", "VIEW part");
    assert!(read(&named).is_ok());
    assert!(matches!(read(large), Err(ForeignDatabaseError::TooLarge { .. })));
    assert!(matches!(read(long), Err(ForeignDatabaseError::TooLarge { .. })));
    assert!(matches!(read(wide), Err(ForeignDatabaseError::TooLarge { .. })), "two digits for each byte");
    for (name, sql) in [("virtual", generated), ("stored", &stored), ("of a message", generated_rows)] {
        let refused = read(sql).map_err(|error| error.to_string());
        assert!(refused.as_ref().is_err_and(|why| why.contains("has computed columns")), "{name}: {refused:?}");
    }
    let unused = format!("{OPENCODE} CREATE TABLE other (a TEXT, b TEXT AS (upper(a)));");
    assert!(read(&unused).is_ok(), "only the tables that are read count");
    assert!(matches!(read(odd), Err(ForeignDatabaseError::Unreadable { .. })));
    assert!(matches!(read("CREATE TABLE t (x)"), Err(ForeignDatabaseError::OtherProgram { .. })));
    let folder = Folder::new();
    let path = folder.path().join("broken.db");
    std::fs::write(&path, [b"SQLite format 3\0".as_slice(), &[7; 5000]].concat()).unwrap();
    assert!(matches!(ForeignDatabase::open(&path, LIMIT), Err(ForeignDatabaseError::Unreadable { .. })));
}
