//! The full-text index: adds blocks and searches them.

use std::borrow::Cow;
use std::ops::Range;

use aside_core::block::Time;
use aside_core::json_text::split_within;
use rusqlite::{Connection, params};

use super::error::DbError;
use super::message_reading::read_text;
use super::messages::{ASSISTANT, IndexContext};
use super::sessions::{session_row, signed};
use crate::error::{Result, StoreError};
use crate::search::query::{QueryTerm, expression, parse_query, word_expressions};
use crate::search::rank::{HitStats, TermCounter, best_first};
use crate::search::snippet::snippet;
use crate::search::words::IndexText;
use crate::search::{HitCount, HitKind, HitList, HitOrder, SearchHit, SearchQuery, SearchScope};
use crate::session::{MessageId, SessionId};
use crate::stored::{StoredBlock, StoredKind, Unreadable, hit_kind, read_metadata};

/// Up to this many hits are ranked; beyond that, the newest come first.
const MAX_RANKED: usize = 1000;

/// A word is common if at least this many blocks contain it.
const COMMON_FROM: u64 = 10_000;

/// A query may be a pasted page: only this many terms are counted, the rest is assumed common.
const MAX_COUNTED_TERMS: usize = 16;

/// How many of the newest blocks are searched first if all terms are common.
const FIRST_RANGE: i64 = 50_000;

/// How much of one block is indexed. Indexing takes many times the size of the
/// text in memory.
const INDEXED_BYTES: usize = 1 << 20;

/// How much text is read to rank the hits of one search.
const RANKED_BYTES: usize = 8 << 20;

const DAY_MS: i64 = 86_400_000;

/// Metadata words of the index. They are in a column of their own.
fn meta_kind(kind: HitKind) -> &'static str {
    match kind {
        HitKind::Prompt => "kp",
        HitKind::Thinking => "kt",
        HitKind::Answer => "ka",
        HitKind::Tool => "ko",
    }
}

pub(super) fn index_block(
    db: &Connection,
    row: i64,
    stored: &StoredBlock<'_>,
    context: &IndexContext,
    scratch: &mut Vec<u8>,
) -> Result<(), DbError> {
    let Some(kind) = hit_kind(stored.kind, context.by_assistant) else { return Ok(()) };
    let text = searchable(stored);
    if text.is_empty() {
        return Ok(());
    }
    let (text, _) = split_within(&text, INDEXED_BYTES);
    let IndexText { words, pieces } = IndexText::written_into(std::mem::take(scratch), text);
    let mut meta = format!("{} s{}", meta_kind(kind), context.session);
    if let Some(origin) = context.origin {
        meta.push_str(&format!(" m{origin}"));
    }
    db.prepare_cached("INSERT INTO word (rowid, words, pieces, meta) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, words, pieces, meta])?;
    *scratch = words.into_bytes();
    db.prepare_cached(
        "INSERT INTO day (day, first_block) VALUES (?1, ?2)
         ON CONFLICT (day) DO UPDATE SET first_block = excluded.first_block
           WHERE excluded.first_block < first_block",
    )?
    .execute(params![context.stamp.div_euclid(DAY_MS), row])?;
    Ok(())
}

/// The searchable text of a block. A tool call is also found by its tool's name.
fn searchable<'a>(stored: &'a StoredBlock<'a>) -> Cow<'a, str> {
    match stored.kind {
        StoredKind::ToolCall | StoredKind::BrokenToolCall => {
            Cow::Owned(format!("{}{}", name_line(stored.metadata.name()), stored.text))
        }
        StoredKind::Text
        | StoredKind::ThinkingOpen
        | StoredKind::ThinkingSealed
        | StoredKind::ThinkingHidden
        | StoredKind::ToolResult
        | StoredKind::Image
        | StoredKind::Media
        | StoredKind::Unmodelled => Cow::Borrowed(&stored.text),
    }
}

fn name_line(name: Option<&str>) -> String {
    format!("{} ", name.unwrap_or(""))
}

pub(super) fn search(db: &Connection, query: &SearchQuery) -> Result<HitList, DbError> {
    let terms = parse_query(&query.text);
    if terms.is_empty() {
        return Err(StoreError::NothingToFind { query: query.text.clone() }.into());
    }
    let Some(filters) = filters(db, query)? else {
        return Ok(HitList { hits: Vec::new(), order: HitOrder::BestFirst, count: HitCount::Exactly(0) });
    };
    let expression = format!("{}{filters}", expression(&terms));
    let counted = terms.iter().take(MAX_COUNTED_TERMS).map(|term| count_blocks_with(db, term));
    let mut n_having = counted.collect::<Result<Vec<_>, _>>()?;
    n_having.resize(terms.len(), COMMON_FROM);
    // One session has few blocks, however common the words are.
    let all_common = query.session.is_none() && n_having.iter().all(|n| *n >= COMMON_FROM);
    let found = newest_hits(db, &expression, query, all_common)?;
    let (rows, order) = match found.count {
        HitCount::Exactly(n) if n <= MAX_RANKED => (rank_hits(db, found.rows, &terms, &n_having)?, HitOrder::BestFirst),
        HitCount::Exactly(_) | HitCount::AtLeast(_) => (found.rows, HitOrder::NewestFirst),
    };
    let hits = rows.into_iter().take(query.limit).map(|row| hit(db, row, &terms)).collect::<Result<_, _>>()?;
    Ok(HitList { hits, order, count: found.count })
}

/// In how many blocks a term occurs, by its rarest word; counts up to `COMMON_FROM`.
fn count_blocks_with(db: &Connection, term: &QueryTerm) -> Result<u64, DbError> {
    let mut rarest = COMMON_FROM;
    for expression in word_expressions(term) {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM word WHERE word MATCH ?1 LIMIT ?2)";
        let n: i64 =
            db.prepare_cached(sql)?.query_row(params![expression, COMMON_FROM.cast_signed()], |row| row.get(0))?;
        rarest = rarest.min(n.cast_unsigned());
    }
    Ok(rarest)
}

/// The filters of a query as part of the index expression; none if nothing can match.
fn filters(db: &Connection, query: &SearchQuery) -> Result<Option<String>, DbError> {
    let mut out = String::new();
    if let SearchScope::Only(kind) = query.scope {
        out.push_str(&format!(" AND meta : {}", meta_kind(kind)));
    }
    if let Some(session) = &query.session {
        out.push_str(&format!(" AND meta : s{}", session_row(db, session)?));
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

struct NewestHits {
    rows: Vec<i64>,
    count: HitCount,
}

/// The newest hits. If every term is common, a full search is slow even for few
/// hits, so it stops when it has enough.
fn newest_hits(
    db: &Connection,
    expression: &str,
    query: &SearchQuery,
    all_common: bool,
) -> Result<NewestHits, DbError> {
    let since = query.since.map(signed);
    let Some((first, last)) = bounds(db, since)? else {
        return Ok(NewestHits { rows: Vec::new(), count: HitCount::Exactly(0) });
    };
    let mut rows = Vec::new();
    let (mut end, mut width) = (last + 1, if all_common { FIRST_RANGE } else { i64::MAX });
    while end > first {
        let start = end.saturating_sub(width).max(first);
        search_range(db, expression, since, start..end, &mut rows)?;
        if rows.len() > MAX_RANKED {
            return Ok(NewestHits { rows, count: HitCount::AtLeast(MAX_RANKED + 1) });
        }
        end = start;
        if end > first && rows.len() >= query.limit {
            let count = HitCount::AtLeast(rows.len());
            return Ok(NewestHits { rows, count });
        }
        width = width.saturating_mul(4);
    }
    let count = HitCount::Exactly(rows.len());
    Ok(NewestHits { rows, count })
}

/// The first and last block that can match; none if there is none.
fn bounds(db: &Connection, since: Option<i64>) -> Result<Option<(i64, i64)>, DbError> {
    let last: Option<i64> = db.prepare_cached("SELECT max(id) FROM block")?.query_row([], |row| row.get(0))?;
    let first: Option<i64> = match since {
        None => Some(1),
        Some(since) => db
            .prepare_cached("SELECT min(first_block) FROM day WHERE day >= ?1")?
            .query_row([since.div_euclid(DAY_MS)], |row| row.get(0))?,
    };
    Ok(first.zip(last))
}

/// Hits among a range of blocks, newest first, at most one more than is ranked.
fn search_range(
    db: &Connection,
    expression: &str,
    since: Option<i64>,
    blocks: Range<i64>,
    rows: &mut Vec<i64>,
) -> Result<(), DbError> {
    let most = (MAX_RANKED + 1).saturating_sub(rows.len()) as i64;
    let sql = match since {
        None => {
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid >= ?2 AND rowid < ?3 AND ?4 IS NULL
             ORDER BY rowid DESC LIMIT ?5"
        }
        // Blocks of that day may be earlier than `since`, and imports add old ones late.
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

/// Best first. If there are many hits, only the beginning of each text is read.
fn rank_hits(db: &Connection, rows: Vec<i64>, terms: &[QueryTerm], n_having: &[u64]) -> Result<Vec<i64>, DbError> {
    let most = (RANKED_BYTES / rows.len().max(1)).max(1024);
    let n_blocks: Option<i64> = db.prepare_cached("SELECT max(id) FROM block")?.query_row([], |row| row.get(0))?;
    let mut statement = db.prepare_cached("SELECT n_bytes, text FROM block WHERE id = ?1")?;
    let mut counter = TermCounter::of(terms);
    let mut hits = Vec::with_capacity(rows.len());
    for row in rows {
        let mut found = statement.query([row])?;
        let Some(block) = found.next()? else { continue };
        let n_bytes = block.get::<_, i64>(0)?.cast_unsigned();
        let text = read_text(block.get_ref(1)?)?;
        hits.push(HitStats { row, counts: counter.counts(&text, most), n_bytes });
    }
    Ok(best_first(hits, n_having, n_blocks.unwrap_or(0).cast_unsigned()))
}

fn hit(db: &Connection, row: i64, terms: &[QueryTerm]) -> Result<SearchHit, DbError> {
    let mut statement = db.prepare_cached(
        "SELECT session.name, session.title, message.id, block.position, block.shape, message.role,
           origin.model, message.at, block.facts, block.text, session.head
         FROM block JOIN message ON message.id = block.message JOIN session ON session.id = message.session
           LEFT JOIN origin ON origin.id = message.origin
         WHERE block.id = ?1",
    )?;
    let mut rows = statement.query([row])?;
    let Some(row) = rows.next()? else {
        return Err(Unreadable("the index names a block that is not there".to_owned()).into());
    };
    let kind = row.get(4)?;
    let kind = StoredKind::of_number(kind).ok_or_else(|| Unreadable(format!("shape {kind} is unknown")))?;
    let json = read_text(row.get_ref(8)?)?;
    let metadata = read_metadata(&json)?;
    let stored = StoredBlock { kind, text: read_text(row.get_ref(9)?)?, metadata };
    let whole = searchable(&stored);
    let shown = snippet(&whole, terms);
    // The name precedes the text; `match_range` counts from the text.
    let lead = whole.len() - stored.text.len();
    let match_range = shown.first.and_then(|first| Some(first.start.checked_sub(lead)?..first.end.checked_sub(lead)?));
    let kind = hit_kind(kind, row.get::<_, i64>(5)? == ASSISTANT);
    Ok(SearchHit {
        session: SessionId(row.get(0)?),
        title: row.get(1)?,
        message: MessageId(row.get(2)?),
        block: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
        kind: kind.ok_or_else(|| Unreadable("the index names a block without text".to_owned()))?,
        model: row.get(6)?,
        at: row.get::<_, Option<i64>>(7)?.map(|at| Time(at.cast_unsigned())),
        is_current: is_on_branch(db, row.get(2)?, row.get(10)?)?,
        snippet: shown.text,
        marks: shown.marks,
        match_range,
    })
}

/// Whether this message leads to the head of its session.
fn is_on_branch(db: &Connection, message: i64, head: Option<i64>) -> Result<bool, DbError> {
    // A parent is older than its children, so the way ends at the message or past it.
    let mut statement = db.prepare_cached(
        "WITH RECURSIVE branch (id, parent) AS (
           SELECT id, parent FROM message WHERE id = ?2
           UNION ALL
           SELECT message.id, message.parent FROM branch
             JOIN message ON message.id = branch.parent AND message.id < branch.id
             WHERE branch.id > ?1)
         SELECT 1 FROM branch WHERE id = ?1",
    )?;
    Ok(statement.exists(params![message, head])?)
}
