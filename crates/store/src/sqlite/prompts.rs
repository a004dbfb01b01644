//! What the user said in all sessions, for the arrow keys of an input.

use std::collections::HashSet;

use rusqlite::Connection;

use super::fault::Fault;
use super::messages::{USER, unpacked};
use crate::stored::Shape;

/// Messages that are looked at. The rest of a long past is not worth the time
/// of whoever waits for an arrow key.
const MOST_LOOKED_AT: i64 = 20_000;

/// The first text of each user message, newest first, each once. A message
/// with more to it than its text, such as a summary, nobody typed.
pub(super) fn prompts(db: &Connection, most: usize) -> Result<Vec<String>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT block.text FROM message JOIN block ON block.message = message.id AND block.position = 0
         WHERE message.role = ?1 AND message.extra IS NULL AND block.shape = ?2 AND message.id > (SELECT ifnull(max(id), 0) - ?3 FROM message)
         ORDER BY message.id DESC",
    )?;
    let mut rows = statement.query([USER, Shape::Text as i64, MOST_LOOKED_AT])?;
    let mut prompts = Vec::new();
    let mut seen = HashSet::new();
    while let Some(row) = rows.next()? {
        if prompts.len() >= most {
            break;
        }
        let text = unpacked(row.get_ref(0)?)?.into_owned();
        if !text.trim().is_empty() && seen.insert(text.clone()) {
            prompts.push(text);
        }
    }
    Ok(prompts)
}
