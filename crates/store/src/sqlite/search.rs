//! The index: how blocks get into it and how they are found.

use std::borrow::Cow;
use std::ops::Range;

use aside_core::block::Time;
use aside_core::text::split_within;
use rusqlite::{Connection, params};

use super::fault::Fault;
use super::messages::{ASSISTANT, Said, unpacked};
use super::sessions::{row_of, signed};
use crate::error::{Result, StoreError};
use crate::search::query::{Unit, expression, units, word_expressions};
use crate::search::rank::{Counter, Weighed, best_first};
use crate::search::snippet::snippet;
use crate::search::words::Indexed;
use crate::search::{Count, Found, Hit, Kind, Order, Query, Scope};
use crate::session::{MessageId, SessionId};
use crate::stored::{Shape, StoredBlock, Unreadable, facts_of, kind_of};

/// Up to here hits are ranked; beyond, the newest come first.
const MOST_RANKED: usize = 1000;

/// A word in so many blocks is common.
const COMMON: u64 = 10_000;

/// A pasted page is not counted word by word; the rest is taken for common.
const MOST_COUNTED: usize = 16;

/// How many of the newest blocks are looked at first where all words are common.
const FIRST_STRETCH: i64 = 50_000;

/// How much of one block can be found. The index of a text takes many times its
/// size in memory while it is made; this much is a long book.
const INDEXED_BYTES: usize = 1 << 20;

/// How much text is weighed to rank the hits of one search.
const WEIGHED_BYTES: usize = 8 << 20;

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
    let (text, _) = split_within(&text, INDEXED_BYTES);
    let Indexed { words, pieces } = Indexed::of(text);
    let mut meta = format!("{} s{}", meta_kind(kind), said.session);
    if let Some(origin) = said.origin {
        meta.push_str(&format!(" m{origin}"));
    }
    db.prepare_cached("INSERT INTO word (rowid, words, pieces, meta) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, words, pieces, meta])?;
    db.prepare_cached(
        "INSERT INTO day (day, first_block) VALUES (?1, ?2)
         ON CONFLICT (day) DO UPDATE SET first_block = excluded.first_block
           WHERE excluded.first_block < first_block",
    )?
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
    let counted = units.iter().take(MOST_COUNTED).map(|unit| n_having(db, unit));
    let mut n_having = counted.collect::<Result<Vec<_>, _>>()?;
    n_having.resize(units.len(), COMMON);
    // One session is few blocks, however common the words are.
    let all_common = query.session.is_none() && n_having.iter().all(|n| *n >= COMMON);
    let found = newest(db, &expression, query, all_common)?;
    let (rows, order) = match found.count {
        Count::Exactly(n) if n <= MOST_RANKED => (ranked(db, found.rows, &units, &n_having)?, Order::BestFirst),
        Count::Exactly(_) | Count::AtLeast(_) => (found.rows, Order::NewestFirst),
    };
    let hits = rows.into_iter().take(query.most).map(|row| hit(db, row, &units)).collect::<Result<_, _>>()?;
    Ok(Found { hits, order, count: found.count })
}

/// In how many blocks a unit stands, by its rarest word; counted up to where a
/// word is common.
fn n_having(db: &Connection, unit: &Unit) -> Result<u64, Fault> {
    let mut rarest = COMMON;
    for expression in word_expressions(unit) {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM word WHERE word MATCH ?1 LIMIT ?2)";
        let n: i64 = db.prepare_cached(sql)?.query_row(params![expression, COMMON.cast_signed()], |row| row.get(0))?;
        rarest = rarest.min(n.cast_unsigned());
    }
    Ok(rarest)
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

struct Newest {
    rows: Vec<i64>,
    count: Count,
}

/// The newest hits. Where every word is common, even those that stand in few
/// blocks together take long to find, so the search stops when it has enough.
fn newest(db: &Connection, expression: &str, query: &Query, all_common: bool) -> Result<Newest, Fault> {
    let since = query.since.map(signed);
    let Some((first, last)) = bounds(db, since)? else {
        return Ok(Newest { rows: Vec::new(), count: Count::Exactly(0) });
    };
    let mut rows = Vec::new();
    let (mut end, mut width) = (last + 1, if all_common { FIRST_STRETCH } else { i64::MAX });
    while end > first {
        let start = end.saturating_sub(width).max(first);
        stretch(db, expression, since, start..end, &mut rows)?;
        if rows.len() > MOST_RANKED {
            return Ok(Newest { rows, count: Count::AtLeast(MOST_RANKED + 1) });
        }
        end = start;
        if end > first && rows.len() >= query.most {
            let count = Count::AtLeast(rows.len());
            return Ok(Newest { rows, count });
        }
        width = width.saturating_mul(4);
    }
    let count = Count::Exactly(rows.len());
    Ok(Newest { rows, count })
}

/// The first and last block that can be a hit; none where there is none.
fn bounds(db: &Connection, since: Option<i64>) -> Result<Option<(i64, i64)>, Fault> {
    let last: Option<i64> = db.prepare_cached("SELECT max(id) FROM block")?.query_row([], |row| row.get(0))?;
    let first: Option<i64> = match since {
        None => Some(1),
        Some(since) => db
            .prepare_cached("SELECT min(first_block) FROM day WHERE day >= ?1")?
            .query_row([since.div_euclid(DAY_MS)], |row| row.get(0))?,
    };
    Ok(first.zip(last))
}

/// Hits among some of the blocks, newest first, one more than are ranked.
fn stretch(
    db: &Connection,
    expression: &str,
    since: Option<i64>,
    blocks: Range<i64>,
    rows: &mut Vec<i64>,
) -> Result<(), Fault> {
    let most = (MOST_RANKED + 1).saturating_sub(rows.len()) as i64;
    let sql = match since {
        None => {
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid >= ?2 AND rowid < ?3 AND ?4 IS NULL
             ORDER BY rowid DESC LIMIT ?5"
        }
        // A day has hits before its hour, and an import brings old ones later.
        Some(_) => {
            "SELECT word.rowid FROM word
               CROSS JOIN block ON block.id = word.rowid CROSS JOIN message ON message.id = block.message
             WHERE word MATCH ?1 AND word.rowid >= ?2 AND word.rowid < ?3 AND message.stamp >= ?4
             ORDER BY word.rowid DESC LIMIT ?5"
        }
    };
    let mut statement = db.prepare_cached(sql)?;
    let found = statement.query_map(params![expression, blocks.start, blocks.end, since, most], |row| row.get(0))?;
    for row in found {
        rows.push(row?);
    }
    Ok(())
}

/// Best first. Of long texts only the beginning is weighed when there are many.
fn ranked(db: &Connection, rows: Vec<i64>, units: &[Unit], n_having: &[u64]) -> Result<Vec<i64>, Fault> {
    let most = (WEIGHED_BYTES / rows.len().max(1)).max(1024);
    let n_blocks: Option<i64> = db.prepare_cached("SELECT max(id) FROM block")?.query_row([], |row| row.get(0))?;
    let mut statement = db.prepare_cached("SELECT n_bytes, text FROM block WHERE id = ?1")?;
    let mut counter = Counter::of(units);
    let mut hits = Vec::with_capacity(rows.len());
    for row in rows {
        let mut found = statement.query([row])?;
        let Some(block) = found.next()? else { continue };
        let n_bytes = block.get::<_, i64>(0)?.cast_unsigned();
        let text = unpacked(block.get_ref(1)?)?;
        hits.push(Weighed { row, counts: counter.counts(&text, most), n_bytes });
    }
    Ok(best_first(hits, n_having, n_blocks.unwrap_or(0).cast_unsigned()))
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
    let json = unpacked(row.get_ref(8)?)?;
    let facts = facts_of(&json)?;
    let stored = StoredBlock { shape, text: unpacked(row.get_ref(9)?)?, facts };
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
