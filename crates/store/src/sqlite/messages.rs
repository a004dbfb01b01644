//! Writes and reads messages and their blocks.

use aside_core::block::{Block, Origin, Time};
use aside_core::conversation::Conversation;
use aside_core::message::{Message, Role};
use aside_core::tokens::estimate;
use aside_core::turn::TurnEnd;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::error::DbError;
use super::search::index_block;
use super::sessions::{self, session_row, signed, touch};
use crate::compression::{STREAM_FROM, StoredText};
use crate::error::{Result, StoreError};
use crate::journal::StoredEnding;
use crate::session::{MessageId, NewSession, Parent, SessionDates, SessionId, title_of};
use crate::stored::{FORMAT, FORMAT_IN_PIECES, StoredBlock, Unreadable};

/// The numbers are stored and never change.
pub(super) const USER: i64 = 2;
pub(super) const ASSISTANT: i64 = 3;

fn role_number(role: Role) -> i64 {
    match role {
        Role::System => 1,
        Role::User => USER,
        Role::Assistant => ASSISTANT,
        Role::Tool => 4,
    }
}

pub(super) fn role_of(number: i64) -> Result<Role, Unreadable> {
    Ok(match number {
        1 => Role::System,
        USER => Role::User,
        ASSISTANT => Role::Assistant,
        4 => Role::Tool,
        other => return Err(Unreadable(format!("role {other} is unknown"))),
    })
}

pub(super) fn append(db: &Connection, id: &SessionId, parent: Parent, message: &Message) -> Result<MessageId, DbError> {
    let session = session_row(db, id)?;
    let parent = parent_row(db, id, session, parent)?;
    let row = insert(db, session, parent, None, message)?;
    set_title(db, session, message)?;
    set_head_row(db, session, Some(row))?;
    touch(db, session)?;
    Ok(MessageId(row))
}

pub(super) fn set_head(db: &Connection, id: &SessionId, head: Option<MessageId>) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    if let Some(head) = head {
        check_belongs(db, id, session, head)?;
    }
    set_head_row(db, session, head.map(|head| head.0))?;
    touch(db, session)
}

/// Notes with the head how its turn ended.
pub(super) fn end_turn(db: &Connection, id: &SessionId, end: &TurnEnd) -> Result<(), DbError> {
    let session = session_row(db, id)?;
    let Some(head) = head_of(db, session)?.filter(|_| end.is_kept()) else { return Ok(()) };
    let extra: Option<String> =
        db.prepare_cached("SELECT extra FROM message WHERE id = ?1")?.query_row([head], |row| row.get(0))?;
    let mut message = Message::new(Role::User, Vec::new());
    message.unknown_members = extra.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json))?;
    message.set_turn_end(end);
    let extra = serde_json::to_string(&message.unknown_members)?;
    db.prepare_cached("UPDATE message SET extra = ?2 WHERE id = ?1")?.execute(params![head, extra])?;
    Ok(())
}

pub(super) fn import(db: &Connection, conversation: &Conversation, at: Option<Time>) -> Result<SessionId, DbError> {
    let entries = conversation.history.entries();
    let title = conversation.title.clone().or_else(|| entries.iter().find_map(|entry| title_of(&entry.message)));
    let new = NewSession {
        id: None,
        title,
        model: conversation.model.clone(),
        settings: conversation.settings.clone(),
        tools: conversation.tools.clone(),
        extra: conversation.extra.clone(),
        folder: None,
        at,
    };
    let (session, id) = sessions::create(db, &new)?;
    let mut rows: Vec<i64> = Vec::with_capacity(entries.len());
    for entry in entries {
        let parent = entry.parent.and_then(|parent| rows.get(parent.0).copied());
        rows.push(insert(db, session, parent, entry.name.as_deref(), &entry.message)?);
    }
    let head = conversation.history.head().and_then(|head| rows.get(head.0).copied());
    set_head_row(db, session, head)?;
    Ok(id)
}

/// Imports a session whose place in the list depends on its dates.
pub(super) fn import_dated(
    db: &Connection,
    conversation: &Conversation,
    dates: SessionDates,
) -> Result<SessionId, DbError> {
    let id = import(db, conversation, Some(dates.created))?;
    sessions::set_dates(db, &id, dates)?;
    Ok(id)
}

pub(super) fn parent_row(
    db: &Connection,
    id: &SessionId,
    session: i64,
    parent: Parent,
) -> Result<Option<i64>, DbError> {
    match parent {
        Parent::Nothing => Ok(None),
        Parent::Message(message) => check_belongs(db, id, session, message).map(|()| Some(message.0)),
        Parent::Head => head_of(db, session),
    }
}

pub(super) fn head_of(db: &Connection, session: i64) -> Result<Option<i64>, DbError> {
    Ok(db.prepare_cached("SELECT head FROM session WHERE id = ?1")?.query_row([session], |row| row.get(0))?)
}

pub(super) fn check_belongs(db: &Connection, id: &SessionId, session: i64, message: MessageId) -> Result<(), DbError> {
    let there = db
        .prepare_cached("SELECT 1 FROM message WHERE id = ?1 AND session = ?2")?
        .exists(params![message.0, session])?;
    if there { Ok(()) } else { Err(StoreError::NoSuchMessage { session: id.clone(), message }.into()) }
}

pub(super) fn set_head_row(db: &Connection, session: i64, head: Option<i64>) -> Result<(), DbError> {
    db.prepare_cached("UPDATE session SET head = ?2 WHERE id = ?1")?.execute(params![session, head])?;
    Ok(())
}

/// Sets the title from the first prompt, unless the session has one.
fn set_title(db: &Connection, session: i64, message: &Message) -> Result<(), DbError> {
    if let Some(title) = title_of(message) {
        db.prepare_cached("UPDATE session SET title = ?2 WHERE id = ?1 AND title IS NULL")?
            .execute(params![session, title])?;
    }
    Ok(())
}

fn insert(
    db: &Connection,
    session: i64,
    parent: Option<i64>,
    name: Option<&str>,
    message: &Message,
) -> Result<i64, DbError> {
    let row = insert_message_row(db, session, parent, name, message.role, message.at)?;
    write_message(db, session, row, message)?;
    Ok(row)
}

/// Inserts a message without content.
pub(super) fn insert_message_row(
    db: &Connection,
    session: i64,
    parent: Option<i64>,
    name: Option<&str>,
    role: Role,
    at: Option<Time>,
) -> Result<i64, DbError> {
    db.prepare_cached(
        "INSERT INTO message (session, parent, name, role, at, stamp, turn)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6,
           (SELECT CASE WHEN role = 2 THEN id ELSE turn END FROM message WHERE id = ?2 AND ?4 <> 2))",
    )?
    .execute(params![
        session,
        parent,
        name,
        role_number(role),
        at.map(signed),
        signed(at.unwrap_or_else(super::now))
    ])?;
    let row = db.last_insert_rowid();
    // Only older versions of aside read it.
    db.prepare_cached("UPDATE session SET n_messages = n_messages + 1 WHERE id = ?1")?.execute([session])?;
    Ok(row)
}

/// Writes the content of a message into its row. If it has no time or origin,
/// those already in the row stay.
pub(super) fn write_message(db: &Connection, session: i64, row: i64, message: &Message) -> Result<(), DbError> {
    let origin = message.origin.as_ref().map(|origin| origin_row(db, origin)).transpose()?;
    let usage = message.usage.unwrap_or_default();
    let unknown = &message.unknown_members;
    let extra = (!unknown.is_empty()).then(|| serde_json::to_string(unknown)).transpose()?;
    let reply_extra = (!message.extra.is_empty()).then(|| StoredText::owned(message.extra.to_json()));
    let (thinking_guess, answer_guess) = estimated_tokens(message);
    let count = |count: Option<u64>| count.map(u64::cast_signed);
    db.prepare_cached(
        "UPDATE message SET role = ?2, origin = coalesce(?3, origin), ending = ?4, has_usage = ?5, input = ?6, output = ?7,
           reasoning = ?8, cached = ?9, seen = ?10, interrupted = ?11, at = coalesce(?12, at), extra = ?13, thought_ms = ?14,
           thinking_guess = ?15, answer_guess = ?16, cache_write = ?17, reply_extra = ?18, running = 0 WHERE id = ?1",
    )?
    .execute(params![
        row,
        role_number(message.role),
        origin,
        message.ending.as_ref().map(|ending| StoredEnding::of(ending).0),
        message.usage.is_some(),
        count(usage.input),
        count(usage.output),
        count(usage.reasoning),
        count(usage.cached),
        message.empty_thinking_field,
        message.interrupted,
        message.at.map(signed),
        extra,
        thinking_ms(message),
        thinking_guess.cast_signed(),
        answer_guess.cast_signed(),
        count(usage.cache_write),
        reply_extra,
    ])?;
    let stamp = db.prepare_cached("SELECT stamp FROM message WHERE id = ?1")?.query_row([row], |row| row.get(0))?;
    let context = IndexContext { session, origin, stamp, by_assistant: message.role == Role::Assistant };
    // Compressing and indexing a block need as much memory as its text, so they share it.
    let mut scratch = Vec::new();
    for (position, block) in message.blocks.iter().enumerate() {
        let stored = StoredBlock::of(block);
        let block = insert_block(db, row, position, &stored, &mut scratch)?;
        index_block(db, block, &stored, &context, &mut scratch)?;
    }
    Ok(())
}

fn insert_block(
    db: &Connection,
    message: i64,
    position: usize,
    stored: &StoredBlock<'_>,
    scratch: &mut Vec<u8>,
) -> Result<i64, DbError> {
    let (metadata, text) = (stored.metadata.to_stored_text(), StoredText::of(&stored.text, scratch));
    let form = match text {
        StoredText::Plain(_) | StoredText::Compressed(_) => FORMAT,
        StoredText::InPieces(_) => FORMAT_IN_PIECES,
    };
    db.prepare_cached(
        "INSERT INTO block (message, position, form, shape, n_bytes, facts, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        message,
        position as i64,
        form,
        stored.kind as i64,
        stored.text.len() as i64,
        InsertValue::of(&metadata),
        InsertValue::of(&text)
    ])?;
    let row = db.last_insert_rowid();
    for (column, value) in [("facts", metadata), ("text", text)] {
        if let InsertValue::Reserved(_) = InsertValue::of(&value) {
            let mut blob = db.blob_open(rusqlite::MAIN_DB, "block", column, row, false)?;
            match &value {
                StoredText::Plain(text) => blob.write_at(text.as_bytes(), 0)?,
                StoredText::Compressed(bytes) => blob.write_at(bytes, 0)?,
                StoredText::InPieces(pieces) => {
                    let mut at = 0;
                    pieces.write(|bytes| {
                        blob.write_at(bytes, at)?;
                        at += bytes.len();
                        Ok::<_, rusqlite::Error>(())
                    })?;
                }
            }
        }
    }
    Ok(row)
}

/// A value to insert. SQLite copies a bound value twice. For a long one the row is
/// inserted with a zero blob of its length, and the bytes are written into that.
enum InsertValue<'a> {
    Whole(&'a StoredText<'a>),
    Reserved(u64),
}

impl<'a> InsertValue<'a> {
    fn of(packed: &'a StoredText<'a>) -> InsertValue<'a> {
        match packed {
            StoredText::Compressed(bytes) if bytes.len() >= STREAM_FROM => InsertValue::Reserved(bytes.len() as u64),
            StoredText::InPieces(pieces) => InsertValue::Reserved(pieces.n_bytes()),
            StoredText::Compressed(_) | StoredText::Plain(_) => InsertValue::Whole(packed),
        }
    }
}

impl ToSql for InsertValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            InsertValue::Whole(packed) => packed.to_sql(),
            InsertValue::Reserved(length) => Ok(ToSqlOutput::ZeroBlob(*length)),
        }
    }
}

/// What the search index needs to know about the message of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexContext {
    pub(super) session: i64,
    pub(super) origin: Option<i64>,
    pub(super) stamp: i64,
    pub(super) by_assistant: bool,
}

impl ToSql for StoredText<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            StoredText::Plain(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            StoredText::Compressed(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            StoredText::InPieces(pieces) => ToSqlOutput::Owned(Value::Blob(pieces.to_bytes())),
        })
    }
}

/// Estimates the tokens of thinking and of the rest of a message from its text.
fn estimated_tokens(message: &Message) -> (u64, u64) {
    let (mut thinking, mut answer) = (0, 0);
    for block in &message.blocks {
        match block {
            Block::Thinking(block) => thinking += estimate(block.text()),
            Block::Text(block) => answer += estimate(&block.text),
            Block::ToolCall(call) => match &call.arguments {
                aside_core::block::Arguments::Json(text) | aside_core::block::Arguments::Broken(text) => {
                    answer += estimate(text);
                }
            },
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {}
        }
    }
    (thinking, answer)
}

/// How long the model was thinking; none if that was not measured.
fn thinking_ms(message: &Message) -> Option<i64> {
    let spans = message.thinking().filter_map(|thinking| thinking.span);
    spans.map(|span| span.ended.0.saturating_sub(span.started.0).cast_signed()).reduce(i64::saturating_add)
}

fn origin_row(db: &Connection, origin: &Origin) -> Result<i64, DbError> {
    let Origin { provider, dialect, model, endpoint, account, .. } = origin;
    let values = params![provider, dialect, model, endpoint, account];
    let known = db
        .prepare_cached(
            "SELECT id FROM origin WHERE provider IS ?1 AND dialect IS ?2 AND model IS ?3 AND endpoint IS ?4 AND account IS ?5",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(row) = known {
        return Ok(row);
    }
    db.prepare_cached("INSERT INTO origin (provider, dialect, model, endpoint, account) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(values)?;
    Ok(db.last_insert_rowid())
}
