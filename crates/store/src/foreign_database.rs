//! Reads the SQLite databases of other programs. They are opened read-only, and
//! their schema is untrusted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aside_core::block::Time;
use aside_core::interchange::{DatabaseLayout, Program, TableRows, database_layouts};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement};
use serde_json::{Map, Value};

use crate::sqlite::open_foreign;

/// How many sessions of one database are listed.
const MAX_SESSIONS: usize = 100_000;

/// A database of another program.
pub struct ForeignDatabase {
    connection: Connection,
    path: PathBuf,
    tables: BTreeSet<String>,
    /// Views, virtual tables, and tables with generated columns: reading them runs code from the file.
    computed: BTreeSet<String>,
    max_bytes: usize,
}

/// A session in another program's database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignSession {
    pub id: String,
    pub updated: Option<Time>,
    pub is_subagent: bool,
}

/// A database that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ForeignDatabaseError {
    #[error("cannot read {path}: {detail}")]
    Unreadable { path: PathBuf, detail: String },
    #[error("the session is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("{path} is not a database of {program}")]
    OtherProgram { path: PathBuf, program: Program },
    #[error("{path} has more than {MAX_SESSIONS} sessions")]
    TooMany { path: PathBuf },
}

type Result<T> = std::result::Result<T, ForeignDatabaseError>;

impl ForeignDatabase {
    /// Opens a database. `max_bytes` bounds the memory for one session.
    pub fn open(path: &Path, max_bytes: usize) -> Result<ForeignDatabase> {
        let unreadable = |detail: String| ForeignDatabaseError::Unreadable { path: path.to_owned(), detail };
        let connection = open_foreign(path).map_err(unreadable)?;
        let read = || -> rusqlite::Result<_> {
            connection.pragma_update(None, "trusted_schema", false)?;
            connection.pragma_update(None, "query_only", true)?;
            let most = i32::try_from(max_bytes).unwrap_or(i32::MAX);
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most)?;
            let mut statement =
                connection.prepare("SELECT name, type = 'table' AND sql LIKE 'CREATE TABLE%' FROM sqlite_schema WHERE type IN ('table', 'view')")?;
            let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<bool>>(1)?)))?;
            let (mut tables, mut computed) = (BTreeSet::new(), BTreeSet::new());
            for row in rows {
                match row? {
                    (name, Some(true)) => tables.insert(name),
                    (name, Some(false) | None) => computed.insert(name.to_lowercase()),
                };
            }
            let mut generated =
                connection.prepare("SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden IN (2, 3) LIMIT 1")?;
            for name in &tables {
                if generated.exists([name])? {
                    computed.insert(name.to_lowercase());
                }
            }
            Ok((tables, computed))
        };
        let (tables, computed) = read().map_err(|error| unreadable(error.to_string()))?;
        Ok(ForeignDatabase { connection, path: path.to_owned(), tables, computed, max_bytes })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The layouts of the program that this file has.
    pub fn layouts(&self, program: Program) -> Result<Vec<&'static DatabaseLayout>> {
        let layouts = database_layouts(program).iter().filter(|layout| self.tables.contains(layout.table));
        let layouts: Vec<_> = layouts.collect();
        if layouts.is_empty() {
            return Err(ForeignDatabaseError::OtherProgram { path: self.path.clone(), program });
        }
        Ok(layouts)
    }

    /// All sessions, oldest first.
    pub fn sessions(&self, layout: &DatabaseLayout) -> Result<Vec<ForeignSession>> {
        let mut statement = self.first_fitting(layout.sessions)?;
        let read = |row: &Row<'_>| {
            Ok(ForeignSession {
                id: row.get("id")?,
                updated: row.get::<_, Option<i64>>("updated")?.and_then(|time| u64::try_from(time).ok()).map(Time),
                is_subagent: row.get::<_, Option<bool>>("subagent")?.unwrap_or(false),
            })
        };
        let mut sessions = Vec::new();
        for session in statement.query_map([], read).map_err(|error| self.unreadable(&error))? {
            if sessions.len() == MAX_SESSIONS {
                return Err(ForeignDatabaseError::TooMany { path: self.path.clone() });
            }
            sessions.push(session.map_err(|error| self.unreadable(&error))?);
        }
        Ok(sessions)
    }

    /// The rows of one session.
    pub fn rows(&self, layout: &DatabaseLayout, session: &str) -> Result<Vec<TableRows>> {
        let mut room = self.max_bytes;
        let mut tables = Vec::new();
        for (table, query) in layout.rows {
            if !self.tables.contains(*table) {
                continue;
            }
            let mut statement = match self.prepare(query) {
                // An older version lacks a table that is joined.
                Err(ForeignDatabaseError::Unreadable { detail, .. }) if detail.contains("no such table") => continue,
                prepared => prepared?,
            };
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut found = statement.query([session]).map_err(|error| self.unreadable(&error))?;
            let mut rows = Vec::new();
            while let Some(row) = found.next().map_err(|error| self.unreadable(&error))? {
                let too_large = ForeignDatabaseError::TooLarge { limit: self.max_bytes };
                if size(row, names.len()).map_err(|error| self.unreadable(&error))? > room {
                    return Err(too_large);
                }
                let json = json_row(row, &names).map_err(|error| self.unreadable(&error))?;
                room = room.checked_sub(json.len()).ok_or(too_large)?;
                rows.push(json);
            }
            tables.push(TableRows { table: (*table).to_owned(), rows });
        }
        Ok(tables)
    }

    /// The first query that fits the columns of this file.
    fn first_fitting(&self, queries: &[&str]) -> Result<Statement<'_>> {
        let mut last = None;
        for query in queries {
            match self.prepare(query) {
                Ok(statement) => return Ok(statement),
                Err(error) => last = Some(error),
            }
        }
        let none = || ForeignDatabaseError::Unreadable { path: self.path.clone(), detail: "no query".to_owned() };
        Err(last.unwrap_or_else(none))
    }

    fn prepare(&self, query: &str) -> Result<Statement<'_>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = query.split(|c| !is_name(c));
        if let Some(name) = words.find(|word| self.computed.contains(&word.to_lowercase())) {
            let detail = format!("`{name}` is a view or has computed columns, which are not read");
            return Err(ForeignDatabaseError::Unreadable { path: self.path.clone(), detail });
        }
        self.connection.prepare(query).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &rusqlite::Error) -> ForeignDatabaseError {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::TooBig) {
            return ForeignDatabaseError::TooLarge { limit: self.max_bytes };
        }
        ForeignDatabaseError::Unreadable { path: self.path.clone(), detail: error.to_string() }
    }
}

/// How long the values of a row become at least, before anything is copied.
fn size(row: &Row<'_>, n_columns: usize) -> rusqlite::Result<usize> {
    (0..n_columns).try_fold(0_usize, |sum, at| {
        let length = match row.get_ref(at)? {
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 1,
            ValueRef::Text(text) => text.len(),
            ValueRef::Blob(bytes) => bytes.len().saturating_mul(2),
        };
        Ok(sum.saturating_add(length))
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    text.extend(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)));
    text
}

/// A row as a JSON object. Bytes become hexadecimal digits.
fn json_row(row: &Row<'_>, names: &[String]) -> rusqlite::Result<String> {
    let mut object = Map::new();
    for (at, name) in names.iter().enumerate() {
        let value = match row.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            ValueRef::Blob(bytes) => hexadecimal(bytes).into(),
        };
        object.insert(name.clone(), value);
    }
    Ok(Value::Object(object).to_string())
}
