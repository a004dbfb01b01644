//! The index: how blocks get into it and how they are found.

use std::borrow::Cow;

use aside_core::block::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::messages::{ASSISTANT, Said, facts_json};
use super::sessions::{row_of, signed};
use crate::error::{Result, StoreError};
use crate::search::query::{Unit, expression, units};
use crate::search::snippet::snippet;
use crate::search::words::Indexed;
use crate::search::{Count, Found, Hit, Kind, Order, Query, Scope};
use crate::session::{MessageId, SessionId};
use crate::stored::{Shape, StoredBlock, Unreadable, facts_of, kind_of};

/// Up to here hits are ranked; beyond, the newest come first.
const MOST_RANKED: usize = 1000;

const DAY_MS: i64 = 86_400_000;

/// Words about a block that no text can contain.
fn meta_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Prompt => "kp",
        Kind::Thinking => "kt",
        Kind::Answer => "ka",
        Kind::Tool => "ko",
    }
}

pub(super) fn index_block(db: &Connection, row: i64, stored: &StoredBlock<'_>, said: &Said) -> Result<(), Fault> {
    let Some(kind) = kind_of(stored.shape, said.by_assistant) else { return Ok(()) };
    let text = searchable(stored);
    if text.is_empty() {
        return Ok(());
    }
    let Indexed { words, pieces } = Indexed::of(&text);
    let mut meta = format!("{} s{}", meta_kind(kind), said.session);
    if let Some(origin) = said.origin {
        meta.push_str(&format!(" m{origin}"));
    }
    db.prepare_cached("INSERT INTO word (rowid, words, pieces, meta) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, words, pieces, meta])?;
    db.prepare_cached("INSERT OR IGNORE INTO day (day, first_block) VALUES (?1, ?2)")?
        .execute(params![said.stamp.div_euclid(DAY_MS), row])?;
    Ok(())
}

/// What of a block can be found. A call is found by its name too.
fn searchable<'a>(stored: &'a StoredBlock<'a>) -> Cow<'a, str> {
    match stored.shape {
        Shape::ToolCall | Shape::BrokenToolCall => {
            Cow::Owned(format!("{}{}", name_line(stored.facts.name()), stored.text))
        }
        Shape::Text
        | Shape::ThinkingOpen
        | Shape::ThinkingSealed
        | Shape::ThinkingHidden
        | Shape::ToolResult
        | Shape::Image
        | Shape::Unmodelled => Cow::Borrowed(&stored.text),
    }
}

fn name_line(name: Option<&str>) -> String {
    format!("{} ", name.unwrap_or(""))
}

pub(super) fn search(db: &Connection, query: &Query) -> Result<Found, Fault> {
    let units = units(&query.text);
    if units.is_empty() {
        return Err(StoreError::NothingToFind { query: query.text.clone() }.into());
    }
    let Some(filters) = filters(db, query)? else {
        return Ok(Found { hits: Vec::new(), order: Order::BestFirst, count: Count::Exactly(0) });
    };
    let expression = format!("{}{filters}", expression(&units));
    let newest = newest(db, &expression, query.since)?;
    let (rows, order, count) = if newest.len() > MOST_RANKED {
        (newest, Order::NewestFirst, Count::MoreThan(MOST_RANKED))
    } else {
        let count = Count::Exactly(newest.len());
        (ranked(db, &expression, newest)?, Order::BestFirst, count)
    };
    let hits = rows.into_iter().take(query.most).map(|row| hit(db, row, &units)).collect::<Result<_, _>>()?;
    Ok(Found { hits, order, count })
}

/// The part of the expression that no text decides; none where nothing can match.
fn filters(db: &Connection, query: &Query) -> Result<Option<String>, Fault> {
    let mut out = String::new();
    if let Scope::Only(kind) = query.scope {
        out.push_str(&format!(" AND meta : {}", meta_kind(kind)));
    }
    if let Some(session) = &query.session {
        out.push_str(&format!(" AND meta : s{}", row_of(db, session)?));
    }
    if let Some(model) = &query.model {
        let mut statement = db.prepare_cached("SELECT id FROM origin WHERE instr(lower(model), lower(?1)) > 0")?;
        let origins = statement.query_map([model], |row| row.get::<_, i64>(0))?;
        let origins: Vec<String> = origins.map(|row| row.map(|row| format!("m{row}"))).collect::<Result<_, _>>()?;
        if origins.is_empty() {
            return Ok(None);
        }
        out.push_str(&format!(" AND meta : ({})", origins.join(" OR ")));
    }
    Ok(Some(out))
}

/// The newest hits, one more than are ranked.
fn newest(db: &Connection, expression: &str, since: Option<Time>) -> Result<Vec<i64>, Fault> {
    let most = MOST_RANKED as i64 + 1;
    let Some(since) = since.map(signed) else {
        let mut statement =
            db.prepare_cached("SELECT rowid FROM word WHERE word MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
        let rows = statement.query_map(params![expression, most], |row| row.get(0))?;
        return Ok(rows.collect::<Result<_, _>>()?);
    };
    let first: Option<i64> = db
        .prepare_cached("SELECT min(first_block) FROM day WHERE day >= ?1")?
        .query_row([since.div_euclid(DAY_MS)], |row| row.get(0))
        .optional()?
        .flatten();
    let Some(first) = first else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(
        "SELECT word.rowid FROM word
           CROSS JOIN block ON block.id = word.rowid CROSS JOIN message ON message.id = block.message
         WHERE word MATCH ?1 AND word.rowid >= ?2 AND message.stamp >= ?3
         ORDER BY word.rowid DESC LIMIT ?4",
    )?;
    let rows = statement.query_map(params![expression, first, since, most], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn ranked(db: &Connection, expression: &str, newest: Vec<i64>) -> Result<Vec<i64>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT rowid FROM word WHERE word MATCH ?1 ORDER BY bm25(word, 1.0, 0.5, 0.0)")?;
    let rows = statement.query_map(params![expression], |row| row.get(0))?;
    let rows: Vec<i64> = rows.collect::<Result<_, _>>()?;
    let known: std::collections::HashSet<i64> = newest.into_iter().collect();
    Ok(rows.into_iter().filter(|row| known.contains(row)).collect())
}

fn hit(db: &Connection, row: i64, units: &[Unit]) -> Result<Hit, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT session.name, session.title, message.id, block.position, block.shape, message.role,
           origin.model, message.at, block.facts, block.text
         FROM block JOIN message ON message.id = block.message JOIN session ON session.id = message.session
           LEFT JOIN origin ON origin.id = message.origin
         WHERE block.id = ?1",
    )?;
    let mut rows = statement.query([row])?;
    let Some(row) = rows.next()? else {
        return Err(Unreadable("the index names a block that is not there".to_owned()).into());
    };
    let shape = row.get(4)?;
    let shape = Shape::of_number(shape).ok_or_else(|| Unreadable(format!("shape {shape} is unknown")))?;
    let json = facts_json(row.get_ref(8)?)?;
    let facts = facts_of(&json)?;
    let text: String = row.get(9)?;
    let stored = StoredBlock { shape, text: Cow::Owned(text), facts };
    let whole = searchable(&stored);
    let shown = snippet(&whole, units);
    // The name stands before the text; a place is one in the text.
    let lead = whole.len() - stored.text.len();
    let place = shown.first.and_then(|first| Some(first.start.checked_sub(lead)?..first.end.checked_sub(lead)?));
    let kind = kind_of(shape, row.get::<_, i64>(5)? == ASSISTANT);
    Ok(Hit {
        session: SessionId(row.get(0)?),
        title: row.get(1)?,
        message: MessageId(row.get(2)?),
        block: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
        kind: kind.ok_or_else(|| Unreadable("the index names a block without text".to_owned()))?,
        model: row.get(6)?,
        at: row.get::<_, Option<i64>>(7)?.map(|at| Time(at.cast_unsigned())),
        snippet: shown.text,
        marks: shown.marks,
        place,
    })
}
