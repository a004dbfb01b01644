//! Files that tools changed. See [`crate::file_changes`].

use std::borrow::Cow;

use aside_core::block::Time;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::error::DbError;
use super::sessions::session_row;
use crate::compression::decompress_bytes;
use crate::file_changes::{
    ChangeKept, ContentId, FileChange, FileChangeId, FileVersion, NewFileChange, StoredVersion, UndoStep, UndoStepId,
    UnkeptChange, WhyUnkept,
};
use crate::session::{MessageId, SessionId};

/// `file_change.after` of changes without a content: the file was gone, or the content is not kept.
const GONE: i64 = -1;
const TOO_LARGE: i64 = -2;
const NO_ROOM: i64 = -3;

/// Records a change, and removes the oldest ones if the session then has more than `most` bytes.
pub(super) fn record(
    db: &Transaction<'_>,
    id: &SessionId,
    change: &NewFileChange<'_>,
    most: u64,
) -> Result<ChangeKept, DbError> {
    let session = session_row(db, id)?;
    let last = last_version(db, session, change.path)?;
    let before = change.before.map(|version| insert_version(db, session, version, last)).transpose()?;
    let same = before.map(|(content, _)| content);
    let after = change.after.map(|version| insert_version(db, session, version, same)).transpose()?;
    db.prepare_cached(
        "INSERT INTO file_change (session, turn, path, before, before_mode, after, after_mode)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        session,
        turn_number(change.turn),
        change.path,
        before.map(|(content, _)| content.0),
        before.and_then(|(_, mode)| mode),
        after.map_or(GONE, |(content, _)| content.0),
        after.and_then(|(_, mode)| mode),
    ])?;
    let newest = db.last_insert_rowid();
    make_room(db, session, newest, most)
}

pub(super) fn record_too_large(db: &Transaction<'_>, id: &SessionId, turn: Time, path: &str) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    db.prepare_cached("INSERT INTO file_change (session, turn, path, after) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![session, turn_number(turn), path, TOO_LARGE])?;
    Ok(())
}

fn turn_number(Time(at): Time) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// The content that the last change of this file left, to be shared with the next one.
fn last_version(db: &Connection, session: i64, path: &str) -> Result<Option<ContentId>, DbError> {
    let sql = "SELECT after FROM file_change WHERE session = ?1 AND path = ?2 AND after > 0 ORDER BY id DESC LIMIT 1";
    let found = db.prepare_cached(sql)?.query_row(params![session, path], |row| row.get(0)).optional()?;
    Ok(found.map(ContentId))
}

/// Stores a version, unless `same` has its content.
fn insert_version(
    db: &Connection,
    session: i64,
    version: FileVersion<'_>,
    same: Option<ContentId>,
) -> Result<(ContentId, Option<u32>), DbError> {
    if let Some(same) = same
        && content(db, same)? == version.content
    {
        return Ok((same, version.mode));
    }
    let packed = lz4_flex::compress_prepend_size(version.content);
    let (is_packed, bytes) = match packed.len() < version.content.len() {
        true => (true, Cow::Owned(packed)),
        false => (false, Cow::Borrowed(version.content)),
    };
    let n_bytes = i64::try_from(version.content.len()).unwrap_or(i64::MAX);
    db.prepare_cached("INSERT INTO file_content (session, n_bytes, is_packed, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![session, n_bytes, is_packed, bytes])?;
    Ok((ContentId(db.last_insert_rowid()), version.mode))
}

fn make_room(db: &Connection, session: i64, newest: i64, most: u64) -> Result<ChangeKept, DbError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let sql = "SELECT sum(length(bytes)) FROM file_content
               WHERE id IN (SELECT before FROM file_change WHERE id = ?1 UNION SELECT after FROM file_change WHERE id = ?1)";
    let needed: i64 = db.prepare_cached(sql)?.query_row([newest], |row| row.get(0))?;
    if needed > most {
        drop_content(db, newest, TOO_LARGE)?;
        drop_unused_content(db, session)?;
        return Ok(ChangeKept::TooLarge);
    }
    let mut dropped = Vec::new();
    while stored_bytes(db, session)? > most {
        let sql = "SELECT id, path FROM file_change
                   WHERE session = ?1 AND (after > 0 OR before > 0) ORDER BY id LIMIT 1";
        let (oldest, path): (i64, String) =
            db.prepare_cached(sql)?.query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        drop_content(db, oldest, NO_ROOM)?;
        drop_unused_content(db, session)?;
        dropped.push(path);
    }
    Ok(ChangeKept::Kept { dropped })
}

/// Forgets the versions of a change, but not that there was one: `/undo` names what it cannot put back.
fn drop_content(db: &Connection, change: i64, why: i64) -> Result<(), DbError> {
    db.prepare_cached("UPDATE file_change SET before = NULL, after = ?2 WHERE id = ?1")?.execute([change, why])?;
    Ok(())
}

fn stored_bytes(db: &Connection, session: i64) -> Result<i64, DbError> {
    let sql = "SELECT ifnull(sum(length(bytes)), 0) FROM file_content WHERE session = ?1";
    Ok(db.prepare_cached(sql)?.query_row([session], |row| row.get(0))?)
}

fn drop_unused_content(db: &Connection, session: i64) -> Result<(), DbError> {
    db.prepare_cached(
        "DELETE FROM file_content WHERE session = ?1
           AND id NOT IN (SELECT before FROM file_change WHERE session = ?1 AND before IS NOT NULL)
           AND id NOT IN (SELECT after FROM file_change WHERE session = ?1)",
    )?
    .execute([session])?;
    Ok(())
}

/// The changes of a session, the oldest first.
pub(super) fn changes(db: &Connection, id: &SessionId) -> Result<Vec<FileChange>, DbError> {
    let session = session_row(db, id)?;
    let mut statement = db.prepare_cached(
        "SELECT c.id, c.turn, c.path, c.before, c.before_mode, b.n_bytes, c.after, c.after_mode, a.n_bytes, c.undone_by
         FROM file_change c LEFT JOIN file_content a ON a.id = c.after LEFT JOIN file_content b ON b.id = c.before
         WHERE c.session = ?1 AND (a.id IS NOT NULL OR c.after = ?2) ORDER BY c.id",
    )?;
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    let version = |row: &Row<'_>, from: usize| {
        let content: Option<i64> = row.get(from)?;
        let Some(content) = content.filter(|content| *content > 0) else { return Ok(None) };
        let (mode, n_bytes) = (row.get(from + 1)?, number(row.get(from + 2)?));
        Ok::<_, rusqlite::Error>(Some(StoredVersion { content: ContentId(content), mode, n_bytes }))
    };
    let rows = statement.query_map([session, GONE], |row| {
        Ok(FileChange {
            id: FileChangeId(row.get(0)?),
            turn: Time(number(row.get(1)?)),
            path: row.get(2)?,
            before: version(row, 3)?,
            after: version(row, 6)?,
            undone_by: row.get::<_, Option<i64>>(9)?.map(UndoStepId),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The changes of a session that cannot be undone, the oldest first.
pub(super) fn unkept(db: &Connection, id: &SessionId) -> Result<Vec<UnkeptChange>, DbError> {
    let session = session_row(db, id)?;
    let mut statement = db.prepare_cached(
        "SELECT turn, path, after FROM file_change
         WHERE session = ?1 AND after IN (?2, ?3) AND undone_by IS NULL ORDER BY id",
    )?;
    let rows = statement.query_map([session, TOO_LARGE, NO_ROOM], |row| {
        let why = if row.get::<_, i64>(2)? == TOO_LARGE { WhyUnkept::TooLarge } else { WhyUnkept::NoRoom };
        let turn = Time(u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0));
        Ok(UnkeptChange { turn, path: row.get(1)?, why })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn content(db: &Connection, ContentId(id): ContentId) -> Result<Vec<u8>, DbError> {
    let sql = "SELECT is_packed, bytes FROM file_content WHERE id = ?1";
    let (is_packed, bytes): (bool, Vec<u8>) =
        db.prepare_cached(sql)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match is_packed {
        true => Ok(decompress_bytes(&bytes)?),
        false => Ok(bytes),
    }
}

/// Records that changes were undone, and the head of the conversation before, if it was undone too.
pub(super) fn record_undo(
    db: &Transaction<'_>,
    id: &SessionId,
    head: Option<MessageId>,
    undone: &[FileChangeId],
) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    db.prepare_cached("INSERT INTO undo_step (session, head) VALUES (?1, ?2)")?
        .execute(params![session, head.map(|head| head.0)])?;
    let step = db.last_insert_rowid();
    let mut mark = db.prepare_cached("UPDATE file_change SET undone_by = ?1 WHERE id = ?2")?;
    for change in undone {
        mark.execute([step, change.0])?;
    }
    Ok(())
}

pub(super) fn last_undo(db: &Connection, id: &SessionId) -> Result<Option<UndoStep>, DbError> {
    let session = session_row(db, id)?;
    let sql = "SELECT id, head FROM undo_step WHERE session = ?1 ORDER BY id DESC LIMIT 1";
    let step = db.prepare_cached(sql)?.query_row([session], |row| {
        let head: Option<i64> = row.get(1)?;
        Ok(UndoStep { id: UndoStepId(row.get(0)?), head: head.map(MessageId) })
    });
    Ok(step.optional()?)
}

/// The step was done again.
pub(super) fn record_redo(db: &Transaction<'_>, UndoStepId(step): UndoStepId) -> Result<(), DbError> {
    db.prepare_cached("UPDATE file_change SET undone_by = NULL WHERE undone_by = ?1")?.execute([step])?;
    db.prepare_cached("DELETE FROM undo_step WHERE id = ?1")?.execute([step])?;
    Ok(())
}

/// What was undone cannot be done again from here on: the conversation went on.
pub(super) fn forget_undone(db: &Transaction<'_>, id: &SessionId) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    let n_steps = db.prepare_cached("DELETE FROM undo_step WHERE session = ?1")?.execute([session])?;
    if n_steps > 0 {
        db.prepare_cached("DELETE FROM file_change WHERE session = ?1 AND undone_by IS NOT NULL")?
            .execute([session])?;
        drop_unused_content(db, session)?;
    }
    Ok(())
}
