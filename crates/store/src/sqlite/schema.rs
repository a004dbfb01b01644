//! The tables and their migrations.
//!
//! Append migrations here and never change one: files of every version exist. A
//! migration's position in the list is the version it leads to.

use rusqlite::Connection;

use super::error::DbError;

/// `asid`: identifies our files.
pub(super) const APPLICATION: i64 = 0x6173_6964;

/// Rows are long texts, and on small pages each of them wastes space.
pub(super) const PAGE_SIZE: i64 = 16384;

const MIGRATIONS: [Migration; 6] = [
    Migration::Statements(FIRST),
    Migration::Columns(&EXTRA),
    Migration::Columns(&FOLDER),
    Migration::Columns(&REPLY_EXTRA),
    Migration::Statements(LEARNED),
    Migration::Statements(FILE_CHANGES),
];

enum Migration {
    Statements(&'static str),
    /// Columns that tables get, with the table's name. In a new file the tables
    /// have them from the start: changing a table is slow.
    Columns(&'static [(&'static str, &'static str)]),
}

impl Migration {
    fn sql(&self) -> String {
        match self {
            Migration::Statements(sql) => (*sql).to_owned(),
            Migration::Columns(columns) => {
                let add = |(table, column): &(&str, &str)| format!("ALTER TABLE {table} ADD COLUMN {column};\n");
                columns.iter().map(add).collect()
            }
        }
    }
}

/// The statements that make a new file of the newest version.
fn newest_schema() -> String {
    let mut sql = String::new();
    for migration in &MIGRATIONS {
        match migration {
            Migration::Statements(statements) => sql.push_str(statements),
            Migration::Columns(columns) => {
                columns.iter().for_each(|(table, column)| add_column(&mut sql, table, column))
            }
        }
    }
    sql
}

/// Writes a column into the statement that creates its table.
fn add_column(sql: &mut String, table: &str, column: &str) {
    let begin = sql.find(&format!("CREATE TABLE {table} (\n"));
    let end = begin.and_then(|begin| Some(begin + sql.get(begin..)?.find("\n);")?));
    match end {
        Some(end) => sql.insert_str(end, &format!(",\n  {column}")),
        None => sql.push_str(&format!("ALTER TABLE {table} ADD COLUMN {column};\n")),
    }
}

pub(super) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// The repairs that endpoints accepted, until they expire.
const LEARNED: &str = "
CREATE TABLE learned_repair (
  base_url TEXT NOT NULL, dialect TEXT NOT NULL, model TEXT NOT NULL,
  -- JSON: the repair and its details.
  repair TEXT NOT NULL,
  learned INTEGER NOT NULL,
  PRIMARY KEY (base_url, dialect, model, repair)
);";

/// Files that tools changed, and what was undone.
const FILE_CHANGES: &str = "
CREATE TABLE file_content (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES session,
  -- How long it is, unpacked.
  n_bytes INTEGER NOT NULL,
  is_packed INTEGER NOT NULL,
  bytes BLOB NOT NULL
);
CREATE INDEX file_content_session ON file_content (session);
CREATE TABLE file_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session,
  -- The time of the prompt.
  turn INTEGER NOT NULL,
  path TEXT NOT NULL,
  -- Rows of file_content; no `before` means that there was no file.
  before INTEGER, before_mode INTEGER,
  after INTEGER NOT NULL, after_mode INTEGER,
  undone_by INTEGER
);
CREATE INDEX file_change_session ON file_change (session, path);
CREATE TABLE undo_step (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session,
  -- The head of the conversation before, if it was undone.
  head INTEGER
);
CREATE INDEX undo_step_session ON undo_step (session);";

/// Unknown header members of an imported conversation.
const EXTRA: [(&str, &str); 1] = [("session", "extra TEXT")];

/// The folder that a session belongs to, and the root of its repository.
const FOLDER: [(&str, &str); 2] = [("session", "folder TEXT"), ("session", "root TEXT")];

/// Tokens written to the provider's cache, and the members of a reply that have
/// no neutral form. From this version on, blocks may be documents or refer to
/// media elsewhere, and tool results may hold both.
const REPLY_EXTRA: [(&str, &str); 2] = [("message", "cache_write INTEGER"), ("message", "reply_extra TEXT")];

const FIRST: &str = "
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  title TEXT,
  settings TEXT NOT NULL,
  tools TEXT NOT NULL,
  model TEXT,
  head INTEGER,
  n_messages INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  -- Grows with every use, so that the order does not depend on the clock.
  touched INTEGER NOT NULL
);
CREATE INDEX session_touched ON session (touched);

CREATE TABLE origin (
  id INTEGER PRIMARY KEY,
  provider TEXT, dialect TEXT, model TEXT, endpoint TEXT, account TEXT
);

CREATE TABLE message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session,
  parent INTEGER,
  name TEXT,
  role INTEGER NOT NULL,
  origin INTEGER REFERENCES origin,
  ending TEXT,
  -- Whether there were counters at all; each may still be unknown.
  has_usage INTEGER NOT NULL DEFAULT 0,
  input INTEGER, output INTEGER, reasoning INTEGER, cached INTEGER,
  seen TEXT,
  interrupted INTEGER NOT NULL DEFAULT 0,
  at INTEGER,
  extra TEXT,
  -- When it was said, or stored where nobody said.
  stamp INTEGER NOT NULL,
  -- The user message that began the turn.
  turn INTEGER,
  -- 1 while it is being recorded: its text is in the journal.
  running INTEGER NOT NULL DEFAULT 0,
  took_ms INTEGER, thought_ms INTEGER,
  thinking_guess INTEGER NOT NULL DEFAULT 0,
  answer_guess INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX message_session ON message (session);
CREATE INDEX message_running ON message (session) WHERE running = 1;

CREATE TABLE block (
  id INTEGER PRIMARY KEY,
  message INTEGER NOT NULL REFERENCES message,
  position INTEGER NOT NULL,
  form INTEGER NOT NULL,
  shape INTEGER NOT NULL,
  -- How long the text is, unpacked.
  n_bytes INTEGER NOT NULL,
  -- Text while they are small, packed bytes where that saves room.
  facts NOT NULL,
  text NOT NULL
);
CREATE INDEX block_message ON block (message, position);

CREATE TABLE journal (
  id INTEGER PRIMARY KEY,
  message INTEGER NOT NULL REFERENCES message,
  events TEXT NOT NULL
);
CREATE INDEX journal_message ON journal (message);

-- The first block of each day, so that a search by time need not look at all.
CREATE TABLE day (day INTEGER PRIMARY KEY, first_block INTEGER NOT NULL);

-- Holds no text: words are looked up here and shown from block.
CREATE VIRTUAL TABLE word USING fts5 (
  words, pieces, meta,
  content = '', contentless_delete = 1, detail = full,
  tokenize = \"ascii tokenchars '_'\"
);
";

/// What the header of a database file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStatus {
    Empty,
    Ours { version: i64 },
    Foreign,
}

pub(super) fn file_status(connection: &Connection) -> rusqlite::Result<FileStatus> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION {
        return Ok(FileStatus::Ours { version });
    }
    let n_tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if n_tables == 0 && application == 0 { FileStatus::Empty } else { FileStatus::Foreign })
}

/// Migrates a file to the newest version in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), DbError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
    // Another process may have done it while we waited.
    let version = match file_status(&transaction)? {
        FileStatus::Ours { version } => version,
        FileStatus::Empty | FileStatus::Foreign => 0,
    };
    if version == 0 {
        transaction.execute_batch(&newest_schema())?;
    }
    let done = if version == 0 { MIGRATIONS.len() } else { usize::try_from(version).unwrap_or(0) };
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(&migration.sql())?;
    }
    if version < NEWEST {
        transaction.pragma_update(None, "user_version", NEWEST)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every column of every table, and every index.
    fn columns(connection: &Connection) -> Vec<String> {
        let sql = "SELECT t.name || ' ' || t.type || ' ' || ifnull(c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\", '')
             FROM sqlite_schema t LEFT JOIN pragma_table_xinfo(t.name) c ORDER BY t.name, c.cid";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_new_file_has_the_tables_of_one_that_was_migrated_through_all_versions() {
        let stepwise = Connection::open_in_memory().unwrap();
        for migration in &MIGRATIONS {
            stepwise.execute_batch(&migration.sql()).unwrap();
        }
        let mut new = Connection::open_in_memory().unwrap();
        migrate(&mut new).unwrap();
        assert_eq!(columns(&new), columns(&stepwise));
        assert_eq!(file_status(&new).unwrap(), FileStatus::Ours { version: NEWEST });
        let changes = newest_schema().matches("ALTER TABLE").count();
        assert_eq!(changes, 0, "no table is changed after it was made");
    }
}
