//! Recent prompts of all sessions, for the input history.

use std::collections::HashSet;

use rusqlite::Connection;

use super::error::DbError;
use super::message_reading::read_text;
use super::messages::USER;
use crate::stored::StoredKind;

/// How many recent messages are searched. The user waits for an arrow key.
const MAX_SEARCHED: i64 = 20_000;

/// The first text of each user message, newest first, without duplicates. Skips
/// messages with extra members, such as summaries: the user did not type them.
pub(super) fn prompts(db: &Connection, limit: usize) -> Result<Vec<String>, DbError> {
    let mut statement = db.prepare_cached(
        "SELECT block.text FROM message JOIN block ON block.message = message.id AND block.position = 0
         WHERE message.role = ?1 AND message.extra IS NULL AND block.shape = ?2 AND message.id > (SELECT ifnull(max(id), 0) - ?3 FROM message)
         ORDER BY message.id DESC",
    )?;
    let mut rows = statement.query([USER, StoredKind::Text as i64, MAX_SEARCHED])?;
    let mut prompts = Vec::new();
    let mut seen = HashSet::new();
    while let Some(row) = rows.next()? {
        if prompts.len() >= limit {
            break;
        }
        let text = read_text(row.get_ref(0)?)?.into_owned();
        if !text.trim().is_empty() && seen.insert(text.clone()) {
            prompts.push(text);
        }
    }
    Ok(prompts)
}
