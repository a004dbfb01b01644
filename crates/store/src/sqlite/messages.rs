//! Writes and reads messages and their blocks.

use std::borrow::Cow;
use std::collections::HashMap;

use aside_core::block::{Block, Origin, Time};
use aside_core::conversation::Conversation;
use aside_core::event::Usage;
use aside_core::extra::Extra;
use aside_core::history::History;
use aside_core::message::{Message, Role};
use aside_core::tokens::estimate;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::error::DbError;
use super::replies;
use super::search::index_block;
use super::sessions::{self, session_row, signed, touch};
use crate::error::{Result, StoreError};
use crate::journal::StoredEnding;
use crate::session::{
    LoadedSession, MessageId, MessagePage, NewSession, PageQuery, Parent, SessionDates, SessionId, SessionMessage,
    title_of,
};
use crate::stored::{FORMAT, STREAM_FROM, StoredBlock, StoredKind, StoredText, Unreadable, read_metadata};

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

fn role_of(number: i64) -> Result<Role, Unreadable> {
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

fn head_of(db: &Connection, session: i64) -> Result<Option<i64>, DbError> {
    Ok(db.prepare_cached("SELECT head FROM session WHERE id = ?1")?.query_row([session], |row| row.get(0))?)
}

fn check_belongs(db: &Connection, id: &SessionId, session: i64, message: MessageId) -> Result<(), DbError> {
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
    db.prepare_cached(
        "INSERT INTO block (message, position, form, shape, n_bytes, facts, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        message,
        position as i64,
        FORMAT,
        stored.kind as i64,
        stored.text.len() as i64,
        InsertValue::of(&metadata),
        InsertValue::of(&text)
    ])?;
    let row = db.last_insert_rowid();
    for (column, value) in [("facts", metadata), ("text", text)] {
        if let (StoredText::Compressed(bytes), InsertValue::Reserved(_)) = (&value, InsertValue::of(&value)) {
            let mut blob = db.blob_open(rusqlite::MAIN_DB, "block", column, row, false)?;
            blob.write_at(bytes, 0)?;
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
        Ok(ToSqlOutput::Borrowed(match self {
            StoredText::Plain(text) => ValueRef::Text(text.as_bytes()),
            StoredText::Compressed(bytes) => ValueRef::Blob(bytes),
        }))
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

const MESSAGE: &str =
    "SELECT message.id, parent, name, role, ending, has_usage, input, output, reasoning, cached, seen,
   interrupted, at, extra, running, origin, provider, dialect, model, endpoint, account, cache_write, reply_extra
   FROM message LEFT JOIN origin ON origin.id = message.origin";

pub(super) fn page(db: &Connection, id: &SessionId, query: PageQuery) -> Result<MessagePage, DbError> {
    let session = session_row(db, id)?;
    let mut next = match query.from {
        Some(from) => check_belongs(db, id, session, from).map(|()| Some(from.0))?,
        None => head_of(db, session)?,
    };
    let mut messages = Vec::new();
    let mut statement = db.prepare_cached(&format!("{MESSAGE} WHERE message.id = ?1"))?;
    while let Some(row) = next
        && messages.len() < query.limit
    {
        let Some(row_values) = statement.query_row([row], message_row).optional()? else { break };
        let kept = row_values.with_blocks(db)?;
        next = kept.parent.map(|parent| parent.0);
        messages.push(kept);
    }
    messages.reverse();
    Ok(MessagePage { messages, earlier: next.map(MessageId) })
}

/// Loads one message of any session.
pub(super) fn load_message(db: &Connection, id: MessageId) -> Result<Message, DbError> {
    let mut statement = db.prepare_cached(&format!("{MESSAGE} WHERE message.id = ?1"))?;
    Ok(statement.query_row([id.0], message_row)?.with_blocks(db)?.message)
}

pub(super) fn load(db: &Connection, id: &SessionId) -> Result<LoadedSession, DbError> {
    let session = sessions::session(db, id)?;
    let row = session_row(db, id)?;
    let mut statement = db.prepare_cached(&format!("{MESSAGE} WHERE session = ?1 ORDER BY message.id"))?;
    let row_values: Vec<MessageRow> = statement.query_map([row], message_row)?.collect::<Result<_, _>>()?;
    let mut history = History::new();
    let (mut ids, mut entries) = (Vec::new(), HashMap::new());
    for row_values in row_values {
        let kept = row_values.with_blocks(db)?;
        let parent = kept.parent.and_then(|parent| entries.get(&parent).copied());
        let entry = history.append_named(kept.name, parent, kept.message);
        let entry = entry.map_err(|error| Unreadable(error.to_string()))?;
        entries.insert(kept.id, entry);
        ids.push(kept.id);
    }
    let head = session.head.and_then(|head| entries.get(&head).copied());
    history.fork(head).map_err(|error| Unreadable(error.to_string()))?;
    let conversation = Conversation {
        model: session.model,
        title: session.title,
        tools: session.tools,
        settings: session.settings,
        extra: session.extra,
        history,
    };
    Ok(LoadedSession { conversation, ids })
}

/// A message row without its blocks.
pub(super) struct MessageRow {
    kept: SessionMessage,
    role: i64,
    ending: Option<String>,
    unknown_members: Option<String>,
    reply_extra: Option<Value>,
}

/// The origin in five columns from `first` on, in the order of its table.
pub(super) fn origin_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Origin> {
    let text = |column: usize| row.get::<_, Option<String>>(first + column);
    Ok(Origin::default()
        .with_provider(text(0)?)
        .with_dialect(text(1)?)
        .with_model(text(2)?)
        .with_endpoint(text(3)?)
        .with_account(text(4)?))
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    let count = |column: usize| row.get::<_, Option<i64>>(column).map(|count| count.map(i64::cast_unsigned));
    let usage = Usage::default()
        .with_input(count(6)?)
        .with_output(count(7)?)
        .with_thinking(count(8)?)
        .with_cached(count(9)?)
        .with_cache_write(count(21)?);
    let has_usage: bool = row.get(5)?;
    let origin = origin_from(row, 16)?;
    let has_origin = row.get::<_, Option<i64>>(15)?.is_some();
    let message = Message {
        role: Role::User,
        blocks: Vec::new(),
        origin: has_origin.then_some(origin),
        ending: None,
        usage: has_usage.then_some(usage),
        empty_thinking_field: row.get(10)?,
        interrupted: row.get(11)?,
        at: count(12)?.map(Time),
        extra: Extra::default(),
        unknown_members: Vec::new(),
    };
    let parent = row.get::<_, Option<i64>>(1)?.map(MessageId);
    Ok(MessageRow {
        kept: SessionMessage {
            id: MessageId(row.get(0)?),
            parent,
            name: row.get(2)?,
            is_running: row.get(14)?,
            message,
        },
        role: row.get(3)?,
        ending: row.get(4)?,
        unknown_members: row.get(13)?,
        reply_extra: row.get(22)?,
    })
}

impl MessageRow {
    fn with_blocks(self, db: &Connection) -> Result<SessionMessage, DbError> {
        let mut kept = self.kept;
        if kept.is_running {
            // It has no blocks yet; its events are in the journal.
            let Message { origin, at, .. } = kept.message;
            kept.message = replies::replay_journal(db, kept.id, origin, at)?;
            return Ok(kept);
        }
        kept.message.role = role_of(self.role)?;
        kept.message.ending = self.ending.map(|word| StoredEnding(word).ending());
        kept.message.unknown_members =
            self.unknown_members.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json))?;
        if let Some(value) = &self.reply_extra {
            let json = read_text(value.into())?;
            kept.message.extra = Extra::from_json(&json).map_err(|error| Unreadable(error.to_string()))?;
        }
        kept.message.blocks = blocks(db, kept.id)?;
        Ok(kept)
    }
}

fn blocks(db: &Connection, message: MessageId) -> Result<Vec<Block>, DbError> {
    let mut statement =
        db.prepare_cached("SELECT form, shape, facts, text FROM block WHERE message = ?1 ORDER BY position")?;
    let mut rows = statement.query([message.0])?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        blocks.push(block(row)?);
    }
    Ok(blocks)
}

/// Reads a block from the columns `form, shape, facts, text`.
fn block(row: &Row<'_>) -> Result<Block, DbError> {
    let form: i64 = row.get(0)?;
    match form {
        FORMAT => {}
        other => return Err(Unreadable(format!("form {other} is unknown")).into()),
    }
    let kind = row.get(1)?;
    let kind = StoredKind::of_number(kind).ok_or_else(|| Unreadable(format!("shape {kind} is unknown")))?;
    let json = read_text(row.get_ref(2)?)?;
    let text = read_text(row.get_ref(3)?)?;
    let stored = StoredBlock { kind, text, metadata: read_metadata(&json)? };
    Ok(stored.into_block()?)
}

pub(super) fn read_text(value: ValueRef<'_>) -> Result<Cow<'_, str>, Unreadable> {
    match value {
        ValueRef::Blob(bytes) => StoredText::decompress(bytes).map(Cow::Owned),
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| Unreadable(error.to_string()))
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {
            Err(Unreadable("a value is neither text nor bytes".to_owned()))
        }
    }
}
