//! The ledger, read from the counters beside each reply.

use aside_core::block::Origin;
use aside_core::event::Usage;
use rusqlite::{Connection, params};

use super::fault::Fault;
use super::messages::ASSISTANT;
use super::sessions::{row_of, signed};
use crate::error::Result;
use crate::ledger::{Book, By, Entry, Group, LedgerLine, LedgerQuery};
use crate::session::{MessageId, SessionId};

const DAY_MS: i64 = 86_400_000;

pub(super) fn ledger(db: &Connection, query: &LedgerQuery<'_>) -> Result<Vec<LedgerLine>, Fault> {
    let session = query.session.as_ref().map(|id| row_of(db, id)).transpose()?;
    let mut statement = db.prepare_cached(
        "SELECT message.id, turn, stamp, session.name, session.title, input, output, reasoning, cached,
           thinking_guess, answer_guess, took_ms, thought_ms,
           provider, dialect, origin.model, endpoint, account
         FROM message JOIN session ON session.id = message.session LEFT JOIN origin ON origin.id = message.origin
         WHERE role = ?1 AND (?2 IS NULL OR message.session = ?2) AND stamp >= ?3
         ORDER BY message.id",
    )?;
    let since = query.since.map_or(0, signed);
    let mut rows = statement.query(params![ASSISTANT, session, since])?;
    let mut book = Book::default();
    while let Some(row) = rows.next()? {
        let count = |column: usize| row.get::<_, Option<i64>>(column).map(|count| count.map(i64::cast_unsigned));
        let entry = Entry {
            origin: Origin {
                provider: row.get(13)?,
                dialect: row.get(14)?,
                model: row.get(15)?,
                endpoint: row.get(16)?,
                account: row.get(17)?,
            },
            usage: Usage { input: count(5)?, output: count(6)?, reasoning: count(7)?, cached: count(8)? },
            thinking_guess: count(9)?.unwrap_or(0),
            answer_guess: count(10)?.unwrap_or(0),
            took_ms: count(11)?,
            thought_ms: count(12)?,
        };
        let id = || row.get(3).map(SessionId);
        let group = match query.by {
            By::Turn => {
                // A reply that no prompt began is a turn of its own.
                let turn = row.get::<_, Option<i64>>(1)?.unwrap_or(row.get(0)?);
                Group::Turn { session: id()?, turn: MessageId(turn) }
            }
            By::Model => Group::Model(entry.origin.model.clone()),
            By::Day => {
                let local = row.get::<_, i64>(2)?.saturating_add(i64::from(query.minutes_ahead) * 60_000);
                Group::Day(local.div_euclid(DAY_MS))
            }
            By::Session => Group::Session { id: id()?, title: row.get(4)? },
        };
        let terms = (query.terms)(&entry.origin);
        book.add(group, &entry, terms);
    }
    Ok(book.into_lines())
}
