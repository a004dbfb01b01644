//! Session rows, without messages.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use aside_core::block::Time;
use aside_core::conversation::ToolSpec;
use aside_core::interchange::{Program, imported_from};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::{Deserialize, Serialize};

use super::error::DbError;
use super::messages::USER;
use crate::error::{Result, SessionCandidate, StoreError};
use crate::session::{
    BranchLength, ImportedSession, MessageId, NewSession, SessionChange, SessionDates, SessionFolder, SessionId,
    SessionInfo, SessionSummary,
};

/// The most recently used session first. Sessions that were imported by date
/// share a number with the session before them.
const NEWEST_FIRST: &str = "touched DESC, changed DESC, id DESC";

/// A tool as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredTool {
    name: String,
    description: String,
    parameters: String,
}

pub(super) fn create(db: &Connection, new: &NewSession) -> Result<(i64, SessionId), DbError> {
    let at = signed(new.at.unwrap_or_else(super::now));
    let id = match &new.id {
        Some(id) => id.clone(),
        None => fresh_id(db)?,
    };
    db.prepare_cached(
        "INSERT INTO session (name, title, settings, tools, model, extra, folder, root, created, changed, touched)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, (SELECT coalesce(max(touched), 0) + 1 FROM session))",
    )?
    .execute(params![
        id.as_str(),
        new.title,
        serde_json::to_string(&new.settings)?,
        tools_json(&new.tools)?,
        new.model,
        (!new.extra.is_empty()).then(|| serde_json::to_string(&new.extra)).transpose()?,
        new.folder.as_ref().map(|folder| folder.path.as_str()),
        new.folder.as_ref().map(|folder| folder.root.as_str()),
        at
    ])?;
    Ok((db.last_insert_rowid(), id))
}

/// Random letters, so that sessions of several machines can be merged.
pub(super) fn fresh_id(db: &Connection) -> Result<SessionId, DbError> {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    loop {
        let mut random = RandomState::new().build_hasher().finish();
        let mut id = String::new();
        for _ in 0..10 {
            let letter = LETTERS.get(usize::try_from(random & 31).unwrap_or(0)).copied().unwrap_or(b'0');
            id.push(char::from(letter));
            random >>= 5;
        }
        let taken = db.prepare_cached("SELECT 1 FROM session WHERE name = ?1")?.exists([&id])?;
        if !taken {
            return Ok(SessionId(id));
        }
    }
}

pub(super) fn session_row(db: &Connection, id: &SessionId) -> Result<i64, DbError> {
    let mut statement = db.prepare_cached("SELECT id FROM session WHERE name = ?1")?;
    let row = statement.query_row([id.as_str()], |row| row.get(0)).optional()?;
    row.ok_or_else(|| StoreError::NoSuchSession { word: id.to_string() }.into())
}

/// Marks a session as the most recently used one, independent of the clock.
pub(super) fn touch(db: &Connection, session: i64) -> Result<(), DbError> {
    db.prepare_cached(&format!(
        "UPDATE session SET changed = ?2,
           touched = (SELECT max(touched) FROM session)
             + (id <> (SELECT id FROM session ORDER BY {NEWEST_FIRST} LIMIT 1))
         WHERE id = ?1",
    ))?
    .execute(params![session, signed(super::now())])?;
    Ok(())
}

/// Moves a new session above the sessions that were last used before it.
pub(super) fn set_dates(db: &Connection, id: &SessionId, dates: SessionDates) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    db.prepare_cached(
        "UPDATE session SET created = ?2, changed = ?3,
           touched = coalesce((SELECT max(touched) FROM session WHERE id <> ?1 AND changed <= ?3), 0)
         WHERE id = ?1",
    )?
    .execute(params![session, signed(dates.created), signed(dates.changed)])?;
    Ok(())
}

pub(super) fn imported(db: &Connection, program: Program) -> Result<BTreeMap<String, ImportedSession>, DbError> {
    let mut statement = db.prepare_cached("SELECT name, title, extra FROM session WHERE extra IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let extra: Vec<(String, String)> = serde_json::from_str(&row.get::<_, String>(2)?)?;
        if let Some((_, session)) = imported_from(&extra).filter(|(from, _)| *from == program) {
            found.insert(session, ImportedSession { id: SessionId(row.get(0)?), title: row.get(1)? });
        }
    }
    Ok(found)
}

pub(super) fn list(db: &Connection, limit: usize) -> Result<Vec<SessionSummary>, DbError> {
    summaries(db, &format!("ORDER BY {NEWEST_FIRST} LIMIT ?1"), params![row_limit(limit)])
}

pub(super) fn list_by_folder(db: &Connection, root: &str, limit: usize) -> Result<Vec<SessionSummary>, DbError> {
    let order =
        format!("ORDER BY CASE WHEN root = ?2 THEN 0 WHEN root IS NOT NULL THEN 1 ELSE 2 END, {NEWEST_FIRST} LIMIT ?1");
    summaries(db, &order, params![row_limit(limit), root])
}

fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn summaries(db: &Connection, order: &str, params: &[&dyn ToSql]) -> Result<Vec<SessionSummary>, DbError> {
    let sql = format!("SELECT name, title, model, folder, root, created, changed FROM session {order}");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params, |row| {
        Ok(SessionSummary {
            id: SessionId(row.get(0)?),
            title: row.get(1)?,
            model: row.get(2)?,
            folder: folder(row, 3)?,
            created: time(row, 5)?,
            changed: time(row, 6)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn n_sessions(db: &Connection) -> Result<u64, DbError> {
    Ok(db.query_row("SELECT count(*) FROM session", [], |row| count(row, 0))?)
}

/// How long the current branch is. The column `n_messages` counts the messages of other branches too.
pub(super) fn branch_length(db: &Connection, id: &SessionId) -> Result<BranchLength, DbError> {
    // A parent is older than its children; a damaged file must not loop.
    let mut statement = db.prepare_cached(
        "WITH RECURSIVE branch (id, parent, is_prompt) AS (
           SELECT message.id, message.parent, message.role = ?2 AND instr(coalesce(message.extra, ''), ?3) = 0
                  AND instr(coalesce(message.extra, ''), ?4) = 0
             FROM session JOIN message ON message.id = session.head WHERE session.name = ?1
           UNION ALL
           SELECT message.id, message.parent, message.role = ?2 AND instr(coalesce(message.extra, ''), ?3) = 0
                  AND instr(coalesce(message.extra, ''), ?4) = 0
             FROM branch JOIN message ON message.id = branch.parent AND message.id < branch.id)
         SELECT count(*), coalesce(sum(is_prompt), 0) FROM branch",
    )?;
    // The user has written neither a summary nor the request to answer now.
    let [is_summary, is_answer_now] =
        [aside_core::compaction::MARK, aside_core::message::ANSWER_NOW_MEMBER].map(|mark| format!("\"{mark}\""));
    Ok(statement.query_row(params![id.as_str(), USER, is_summary, is_answer_now], |row| {
        Ok(BranchLength { n_messages: count(row, 0)?, n_prompts: count(row, 1)? })
    })?)
}

/// The folder in this column, with the root in the next.
fn folder(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<SessionFolder>> {
    let (path, root): (Option<String>, Option<String>) = (row.get(column)?, row.get(column + 1)?);
    Ok(path.zip(root).map(|(path, root)| SessionFolder { path, root }))
}

pub(super) fn find(db: &Connection, word: &str) -> Result<SessionId, DbError> {
    let word = word.trim();
    let candidates = |condition: &str| -> Result<Vec<SessionCandidate>, DbError> {
        let sql = format!("SELECT name, title FROM session WHERE {condition} ORDER BY {NEWEST_FIRST}");
        let mut statement = db.prepare_cached(&sql)?;
        let rows = statement
            .query_map([word], |row| Ok(SessionCandidate { id: SessionId(row.get(0)?), title: row.get(1)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    // From exact to vague: the first condition with a match decides.
    let conditions = [
        "name = ?1",
        "title = ?1",
        "length(?1) > 0 AND substr(name, 1, length(?1)) = lower(?1)",
        "length(?1) > 0 AND (lower(title) = lower(?1) OR lower(substr(title, 1, length(?1))) = lower(?1))",
    ];
    for condition in conditions {
        let mut found = candidates(condition)?;
        match found.len() {
            0 => {}
            1 => return found.pop().map(|one| one.id).ok_or_else(|| no_session(word)),
            _ => return Err(StoreError::Ambiguous { word: word.to_owned(), candidates: found }.into()),
        }
    }
    Err(no_session(word))
}

fn no_session(word: &str) -> DbError {
    StoreError::NoSuchSession { word: word.to_owned() }.into()
}

pub(super) fn session(db: &Connection, id: &SessionId) -> Result<SessionInfo, DbError> {
    let mut statement = db.prepare_cached(
        "SELECT title, model, settings, tools, head, created, changed, extra, folder, root FROM session WHERE name = ?1",
    )?;
    let row = statement
        .query_row([id.as_str()], |row| {
            let (settings, tools): (String, String) = (row.get(2)?, row.get(3)?);
            let extra: Option<String> = row.get(7)?;
            let head: Option<i64> = row.get(4)?;
            let session = SessionInfo {
                id: id.clone(),
                title: row.get(0)?,
                model: row.get(1)?,
                settings: BTreeMap::new(),
                tools: Vec::new(),
                extra: Vec::new(),
                folder: folder(row, 8)?,
                head: head.map(MessageId),
                created: time(row, 5)?,
                changed: time(row, 6)?,
            };
            Ok((session, settings, tools, extra))
        })
        .optional()?;
    let (session, settings, tools, extra) = row.ok_or_else(|| no_session(id.as_str()))?;
    let extra = extra.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json))?;
    Ok(SessionInfo { settings: serde_json::from_str(&settings)?, tools: read_tools(&tools)?, extra, ..session })
}

pub(super) fn change(db: &Connection, id: &SessionId, change: &SessionChange) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    let set = |column: &str, value: Option<&str>| -> Result<(), DbError> {
        db.prepare_cached(&format!("UPDATE session SET {column} = ?2 WHERE id = ?1"))?
            .execute(params![session, value])?;
        Ok(())
    };
    match change {
        SessionChange::Title(title) => set("title", Some(title)),
        SessionChange::Model(model) => set("model", model.as_deref()),
        SessionChange::Settings(settings) => set("settings", Some(&serde_json::to_string(settings)?)),
        SessionChange::Tools(tools) => set("tools", Some(&tools_json(tools)?)),
        SessionChange::Folder(SessionFolder { path, root }) => {
            set("folder", Some(path))?;
            set("root", Some(root))
        }
    }
}

pub(super) fn delete(db: &Connection, id: &SessionId) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    for sql in [
        "DELETE FROM word WHERE rowid IN
           (SELECT block.id FROM message JOIN block ON block.message = message.id WHERE message.session = ?1)",
        "DELETE FROM block WHERE message IN (SELECT id FROM message WHERE session = ?1)",
        "DELETE FROM journal WHERE message IN (SELECT id FROM message WHERE session = ?1)",
        "DELETE FROM message WHERE session = ?1",
        "DELETE FROM file_change WHERE session = ?1",
        "DELETE FROM file_content WHERE session = ?1",
        "DELETE FROM undo_step WHERE session = ?1",
        "DELETE FROM session WHERE id = ?1",
    ] {
        db.prepare_cached(sql)?.execute([session])?;
    }
    Ok(())
}

fn tools_json(tools: &[ToolSpec]) -> Result<String, serde_json::Error> {
    let stored: Vec<StoredTool> = tools
        .iter()
        .cloned()
        .map(|ToolSpec { name, description, parameters, .. }| StoredTool { name, description, parameters })
        .collect();
    serde_json::to_string(&stored)
}

fn read_tools(json: &str) -> Result<Vec<ToolSpec>, serde_json::Error> {
    let stored: Vec<StoredTool> = serde_json::from_str(json)?;
    let tool = |StoredTool { name, description, parameters }| ToolSpec::new(name, description, parameters);
    Ok(stored.into_iter().map(tool).collect())
}

/// SQLite integers are signed; the bits are kept.
pub(super) fn signed(time: Time) -> i64 {
    time.0.cast_signed()
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    row.get::<_, i64>(column).map(|time| Time(time.cast_unsigned()))
}

pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
