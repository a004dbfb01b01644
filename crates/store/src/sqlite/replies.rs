//! Replies in progress, and those whose recorder crashed.

use aside_core::block::{Origin, Time};
use aside_core::event::Usage;
use aside_core::message::{Message, Role};
use rusqlite::{Connection, OptionalExtension, params};

use super::error::DbError;
use super::message_reading::load_message;
use super::messages::{insert_message_row, parent_row, set_head_row, write_message};
use super::sessions::{session_row, signed, touch};
use crate::error::{Result, StoreError};
use crate::journal::EventBatch;
use crate::session::{MessageId, NewReply, SessionId};

pub(super) fn begin(db: &Connection, id: &SessionId, reply: &NewReply) -> Result<MessageId, DbError> {
    let session = session_row(db, id)?;
    let parent = parent_row(db, id, session, reply.parent)?;
    let row = insert_message_row(db, session, parent, None, Role::Assistant, reply.at)?;
    // The state if nothing follows: interrupted, with a known origin.
    let mut empty = Message { interrupted: true, at: reply.at, ..Message::new(Role::Assistant, Vec::new()) };
    empty.origin.clone_from(&reply.origin);
    write_message(db, session, row, &empty)?;
    db.prepare_cached("UPDATE message SET running = 1 WHERE id = ?1")?.execute([row])?;
    set_head_row(db, session, Some(row))?;
    touch(db, session)?;
    Ok(MessageId(row))
}

pub(super) fn extend(db: &Connection, reply: MessageId, json: &str) -> Result<(), DbError> {
    let n_rows = db
        .prepare_cached(
            "INSERT INTO journal (message, events) SELECT ?1, ?2 FROM message WHERE id = ?1 AND running = 1",
        )?
        .execute(params![reply.0, json])?;
    if n_rows == 0 { Err(StoreError::NotRunning { message: reply }.into()) } else { Ok(()) }
}

pub(super) fn finish(db: &Connection, reply: MessageId, message: &Message, ended: Option<Time>) -> Result<(), DbError> {
    let running = db
        .prepare_cached("SELECT session, at FROM message WHERE id = ?1 AND running = 1")?
        .query_row([reply.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))
        .optional()?;
    let Some((session, began)) = running else {
        return Err(StoreError::NotRunning { message: reply }.into());
    };
    write_message(db, session, reply.0, message)?;
    let took = began.zip(ended.map(signed)).map(|(began, ended)| (ended - began).max(0));
    db.prepare_cached("UPDATE message SET took_ms = ?2 WHERE id = ?1")?.execute(params![reply.0, took])?;
    db.prepare_cached("DELETE FROM journal WHERE message = ?1")?.execute([reply.0])?;
    touch(db, session)
}

/// Rebuilds a reply from its journal with the code that reads live replies.
pub(super) fn replay_journal(
    db: &Connection,
    reply: MessageId,
    origin: Option<Origin>,
    at: Option<Time>,
) -> Result<Message, DbError> {
    let mut statement = db.prepare_cached("SELECT events FROM journal WHERE message = ?1 ORDER BY id")?;
    let rows = statement.query_map([reply.0], |row| row.get::<_, String>(0))?;
    let reply = EventBatch::replay(rows.collect::<Result<Vec<_>, _>>()?)?;
    let usage = (reply.usage != Usage::default()).then_some(reply.usage);
    // Without `finish` it is interrupted, whatever the last event was.
    let message = Message::from_reply(reply, origin);
    Ok(Message { interrupted: true, usage, at, ..message })
}

pub(super) fn sessions_with_running(db: &Connection) -> Result<Vec<SessionId>, DbError> {
    let mut statement =
        db.prepare("SELECT name FROM session WHERE id IN (SELECT session FROM message WHERE running = 1)")?;
    let rows = statement.query_map([], |row| Ok(SessionId(row.get(0)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Closes running replies of a session as interrupted. The caller holds its lock.
pub(super) fn close_running(db: &Connection, id: &SessionId) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    let running: Vec<i64> = db
        .prepare_cached("SELECT id FROM message WHERE session = ?1 AND running = 1 ORDER BY id")?
        .query_map([session], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for row in running {
        let message = load_message(db, MessageId(row))?;
        write_message(db, session, row, &message)?;
        db.prepare_cached("DELETE FROM journal WHERE message = ?1")?.execute([row])?;
    }
    Ok(())
}
