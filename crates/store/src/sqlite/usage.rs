//! Usage, read from the token counts stored with each reply.

use aside_core::block::Origin;
use aside_core::event::Usage;
use rusqlite::{Connection, params};

use super::error::DbError;
use super::message_reading::origin_from;
use super::messages::ASSISTANT;
use super::sessions::{session_row, signed};
use crate::error::Result;
use crate::session::{MessageId, SessionId};
use crate::usage::{BillingRules, GroupBy, ReplyUsage, UsageGroup, UsageQuery, UsageRow, UsageTotals};

const DAY_MS: i64 = 86_400_000;

pub(super) fn usage(db: &Connection, query: &UsageQuery<'_>) -> Result<Vec<UsageRow>, DbError> {
    let session = query.session.as_ref().map(|id| session_row(db, id)).transpose()?;
    let mut statement = db.prepare_cached(
        "SELECT message.id, turn, stamp, session.name, session.title, input, output, reasoning, cached, cache_write,
           thinking_guess, answer_guess, took_ms, thought_ms,
           provider, dialect, origin.model, endpoint, account
         FROM message JOIN session ON session.id = message.session LEFT JOIN origin ON origin.id = message.origin
         WHERE role = ?1 AND (?2 IS NULL OR message.session = ?2) AND stamp >= ?3
         ORDER BY message.id",
    )?;
    let since = query.since.map_or(0, signed);
    let mut rows = statement.query(params![ASSISTANT, session, since])?;
    let mut totals = UsageTotals::default();
    let mut billing: Option<(Origin, BillingRules)> = None;
    while let Some(row) = rows.next()? {
        let count = |column: usize| row.get::<_, Option<i64>>(column).map(|count| count.map(i64::cast_unsigned));
        let reply = ReplyUsage {
            origin: origin_from(row, 14)?,
            usage: Usage::default()
                .with_input(count(5)?)
                .with_output(count(6)?)
                .with_thinking(count(7)?)
                .with_cached(count(8)?)
                .with_cache_write(count(9)?),
            thinking_guess: count(10)?.unwrap_or(0),
            answer_guess: count(11)?.unwrap_or(0),
            took_ms: count(12)?,
            thought_ms: count(13)?,
        };
        let id = || row.get(3).map(SessionId);
        let group = match query.group_by {
            GroupBy::Turn => {
                // A reply without a prompt is a turn of its own.
                let turn = row.get::<_, Option<i64>>(1)?.unwrap_or(row.get(0)?);
                UsageGroup::Turn { session: id()?, turn: MessageId(turn) }
            }
            GroupBy::Model => UsageGroup::Model(reply.origin.model.clone()),
            GroupBy::Day => {
                let local = row.get::<_, i64>(2)?.saturating_add(i64::from(query.utc_offset_minutes) * 60_000);
                UsageGroup::Day(local.div_euclid(DAY_MS))
            }
            GroupBy::Session => UsageGroup::Session { id: id()?, title: row.get(4)? },
        };
        // Replies of one model follow each other, so that prices are rarely looked up.
        let billing = match billing.take() {
            Some((origin, rules)) if origin == reply.origin => billing.insert((origin, rules)),
            Some(_) | None => billing.insert((reply.origin.clone(), (query.billing)(&reply.origin))),
        };
        totals.add(group, &reply, &billing.1);
    }
    Ok(totals.into_lines())
}
