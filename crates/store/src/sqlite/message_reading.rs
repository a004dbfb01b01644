//! Reads messages from their rows.

use std::borrow::Cow;
use std::collections::HashMap;

use aside_core::block::{Block, Origin, Time};
use aside_core::conversation::Conversation;
use aside_core::event::Usage;
use aside_core::extra::Extra;
use aside_core::history::History;
use aside_core::message::{Message, Role};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

use super::error::DbError;
use super::messages::{check_belongs, head_of, role_of};
use super::replies;
use super::sessions::{self, session_row};
use crate::compression::StoredText;
use crate::error::Result;
use crate::journal::StoredEnding;
use crate::session::{LoadedSession, MessageId, MessagePage, PageQuery, SessionId, SessionMessage};
use crate::stored::{FORMAT, FORMAT_IN_PIECES, StoredBlock, StoredKind, Unreadable, read_metadata};

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
        FORMAT | FORMAT_IN_PIECES => {}
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
