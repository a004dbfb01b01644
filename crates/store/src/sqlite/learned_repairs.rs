//! The repairs that endpoints accepted. They expire, because providers change.

use aside_core::block::Time;
use aside_core::rules::LearnedRepair;
use rusqlite::{Connection, Transaction, params};

use super::error::DbError;

/// How long a repair is known, in milliseconds: seven days.
const LIFETIME: i64 = 7 * 24 * 60 * 60 * 1000;

/// The repairs that have not expired, in the order in which they were learned. A
/// repair that only a newer version knows is skipped.
pub(super) fn learned_repairs(db: &Connection, now: Time) -> Result<Vec<LearnedRepair>, DbError> {
    let mut statement =
        db.prepare_cached("SELECT repair FROM learned_repair WHERE learned > ?1 ORDER BY learned, rowid")?;
    let rows = statement.query_map([millis(now) - LIFETIME], |row| row.get::<_, String>(0))?;
    let rows = rows.collect::<Result<Vec<String>, _>>()?;
    Ok(rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect())
}

/// Adds repairs, and removes the expired ones. A repair that is learned again lasts
/// longer.
pub(super) fn learn(db: &Transaction<'_>, repairs: &[LearnedRepair], now: Time) -> Result<(), DbError> {
    db.execute("DELETE FROM learned_repair WHERE learned <= ?1", [millis(now) - LIFETIME])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO learned_repair (base_url, dialect, model, repair, learned) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET learned = excluded.learned",
    )?;
    for repair in repairs {
        // Its members are strings and words, so this cannot fail.
        let Ok(json) = serde_json::to_string(repair) else { continue };
        insert.execute(params![repair.base_url, repair.dialect, repair.model, json, millis(now)])?;
    }
    Ok(())
}

/// Removes all of them, and returns how many there were.
pub(super) fn forget(db: &Transaction<'_>) -> Result<usize, DbError> {
    Ok(db.execute("DELETE FROM learned_repair", [])?)
}

fn millis(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
