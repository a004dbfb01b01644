//! Every statement on the tables.

use std::collections::{HashMap, HashSet};

use aside_core::block::Time;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::{
    ClientKeyRow, DELETE_BATCH, DELETED, FindQuery, FoundRows, LearnedRow, MAX_CANDIDATES, PART_BYTES, REJECTED,
    ReceiptFilter, ReplyRow, SealedReceipt, SpendRow, TenantRow, WriteRow, day_of, millis, over_quota, time,
};
use crate::tenant::TenantId;

/// The version of the tenants' data keys.
const KEY_VERSION: i64 = 1;

pub(super) fn tenant(db: &Transaction<'_>, new: TenantRow) -> rusqlite::Result<TenantRow> {
    let added = db.execute(
        "INSERT INTO tenant (tenant, name, keyid, sealed, created) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        params![new.id.0, new.name, KEY_VERSION, new.sealed, millis(new.created)],
    )?;
    if added > 0 {
        bump(db)?;
        return Ok(new);
    }
    db.query_row("SELECT tenant, name, sealed, created FROM tenant WHERE tenant = ?1", [new.id.0], read_tenant)
}

pub(super) fn tenants(db: &Connection) -> rusqlite::Result<Vec<TenantRow>> {
    let mut statement = db.prepare_cached("SELECT tenant, name, sealed, created FROM tenant ORDER BY name")?;
    let rows = statement.query_map([], read_tenant)?;
    rows.collect()
}

fn read_tenant(row: &Row<'_>) -> rusqlite::Result<TenantRow> {
    Ok(TenantRow { id: TenantId(row.get(0)?), name: row.get(1)?, sealed: row.get(2)?, created: time(row.get(3)?) })
}

pub(super) fn reseal_tenants(db: &Transaction<'_>, rows: &[TenantRow]) -> rusqlite::Result<()> {
    for row in rows {
        db.execute("UPDATE tenant SET sealed = ?2 WHERE tenant = ?1", params![row.id.0, row.sealed])?;
    }
    bump(db)
}

pub(super) fn forget_tenant(db: &Transaction<'_>, tenant: TenantId) -> rusqlite::Result<bool> {
    let known = db.execute("DELETE FROM tenant WHERE tenant = ?1", [tenant.0])? > 0;
    for table in ["reply", "reply_part", "reply_key", "receipt"] {
        db.execute(&format!("DELETE FROM {table} WHERE tenant = ?1"), [tenant.0])?;
    }
    bump(db)?;
    Ok(known)
}

fn bump(db: &Transaction<'_>) -> rusqlite::Result<()> {
    db.execute("UPDATE meta SET v = v + 1 WHERE k = 'revision'", []).map(drop)
}

pub(super) fn find(db: &Connection, query: &FindQuery) -> rusqlite::Result<FoundRows> {
    let Some(tenant) = query.tenant else { return Ok(FoundRows::default()) };
    let mut found = FoundRows::default();
    let mut wanted: Vec<ReplyId> = query.replies.clone();
    let mut by_key = db.prepare_cached(&format!(
        "SELECT kind, reply FROM reply_key WHERE tenant = ?1 AND key = ?2 LIMIT {}",
        MAX_CANDIDATES + 1
    ))?;
    for key in &query.keys {
        let rows = by_key.query_map(params![tenant.0, key.0], |row| Ok((row.get(0)?, ReplyId(row.get(1)?))))?;
        for row in rows {
            let (kind, reply) = row?;
            let Some(kind) = KeyKind::of_number(kind) else { continue };
            found.matches.push((*key, kind, reply));
            wanted.push(reply);
        }
    }
    let mut seen = HashSet::new();
    for reply in wanted.into_iter().filter(|reply| seen.insert(*reply)) {
        found.rows.extend(read_reply(db, tenant, reply)?);
    }
    Ok(found)
}

fn read_reply(db: &Connection, tenant: TenantId, reply: ReplyId) -> rusqlite::Result<Option<ReplyRow>> {
    let mut statement = db.prepare_cached(
        "SELECT conv, parent, dialect, model, issuer, status, created, expires, codec, size, parts, body,
                (SELECT kind FROM reply_key x WHERE x.tenant = r.tenant AND x.key = r.reply AND x.reply = r.reply)
         FROM reply r WHERE tenant = ?1 AND reply = ?2",
    )?;
    let row = statement.query_row(params![tenant.0, reply.0], |row| {
        let parent: Option<[u8; 12]> = row.get(1)?;
        let n_parts: i64 = row.get(10)?;
        let mark: Option<u8> = row.get(12)?;
        let whole: Option<Vec<u8>> = row.get(11)?;
        let row = ReplyRow {
            tenant,
            reply,
            conversation: ReplyId(row.get(0)?),
            parent: parent.map(ReplyId),
            dialect: row.get(2)?,
            model: row.get(3)?,
            issuer: row.get(4)?,
            is_interrupted: row.get(5)?,
            created: time(row.get(6)?),
            expires: time(row.get(7)?),
            codec: row.get(8)?,
            size: usize::try_from(row.get::<_, i64>(9)?).unwrap_or(0),
            body: whole.unwrap_or_default(),
            is_rejected: mark.is_some(),
        };
        Ok((mark != Some(DELETED)).then_some((row, n_parts)))
    });
    let Some((mut row, n_parts)) = row.optional()?.flatten() else { return Ok(None) };
    if n_parts > 0 {
        let mut parts = db.prepare_cached("SELECT body FROM reply_part WHERE tenant = ?1 AND reply = ?2 ORDER BY n")?;
        for part in parts.query_map(params![tenant.0, reply.0], |row| row.get::<_, Vec<u8>>(0))? {
            row.body.extend(part?);
        }
    }
    Ok(Some(row))
}

/// Writes rows together. New rows come first, sorted: then neighbours in a table are written one after the other, which is
/// faster. Changes and deletions follow in their order; what they concern is older than they are.
pub(super) fn write(db: &Transaction<'_>, rows: &[WriteRow]) -> rusqlite::Result<()> {
    write_rows(db, &of_known_tenants(db, rows)?)
}

/// Writes rows, apart from replies that were deleted.
pub(super) fn write_late(db: &Transaction<'_>, rows: &[WriteRow]) -> rusqlite::Result<()> {
    let mut marks = db.prepare_cached("SELECT kind FROM reply_key WHERE tenant = ?1 AND key = ?2 AND reply = ?2")?;
    let mut kept = of_known_tenants(db, rows)?;
    let mut failed = None;
    kept.retain(|row| {
        let WriteRow::Reply { row, .. } = row else { return true };
        match marks.query_row(params![row.tenant.0, row.reply.0], |row| row.get::<_, u8>(0)).optional() {
            Ok(mark) => mark != Some(DELETED),
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    });
    failed.map_or_else(|| write_rows(db, &kept), Err)
}

/// The rows of tenants that exist. One may have been deleted while its rows waited.
fn of_known_tenants<'r>(db: &Transaction<'_>, rows: &'r [WriteRow]) -> rusqlite::Result<Vec<&'r WriteRow>> {
    let mut exists = db.prepare_cached("SELECT 1 FROM tenant WHERE tenant = ?1")?;
    let mut known: HashMap<TenantId, bool> = HashMap::new();
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        let tenant = row.tenant();
        let is_known = match known.get(&tenant) {
            Some(is_known) => *is_known,
            None => *known.entry(tenant).or_insert(exists.exists([tenant.0])?),
        };
        kept.extend(is_known.then_some(row));
    }
    Ok(kept)
}

fn write_rows(db: &Transaction<'_>, rows: &[&WriteRow]) -> rusqlite::Result<()> {
    let (mut replies, mut receipts) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            WriteRow::Reply { row, keys } => replies.push((row, keys)),
            WriteRow::Receipt(receipt) => receipts.push(receipt),
            WriteRow::Touch { .. } | WriteRow::Rejected { .. } | WriteRow::Forget { .. } => (),
        }
    }
    replies.sort_unstable_by_key(|(row, _)| (row.tenant, row.reply));
    receipts.sort_unstable_by(|a, b| (a.tenant, &a.id).cmp(&(b.tenant, &b.id)));
    write_replies(db, &replies)?;
    write_keys(db, &replies)?;
    write_receipts(db, &receipts)?;
    rows.iter().try_for_each(|row| change(db, row))
}

/// Writes a row that changes or deletes others.
fn change(db: &Transaction<'_>, row: &WriteRow) -> rusqlite::Result<()> {
    match row {
        WriteRow::Reply { .. } | WriteRow::Receipt(_) => Ok(()),
        WriteRow::Touch { tenant, reply, keys, expires } => {
            let day = day_of(*expires);
            db.prepare_cached("UPDATE reply SET expires = ?3, day = ?4 WHERE tenant = ?1 AND reply = ?2")?
                .execute(params![tenant.0, reply.0, millis(*expires), day])?;
            let mut update =
                db.prepare_cached("UPDATE reply_key SET day = ?4 WHERE tenant = ?1 AND key = ?2 AND reply = ?3")?;
            keys.iter().try_for_each(|key| update.execute(params![tenant.0, key.0, reply.0, day]).map(drop))
        }
        WriteRow::Rejected { tenant, reply, expires } => db
            .prepare_cached(
                "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES (?1, ?2, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![tenant.0, reply.0, REJECTED, day_of(*expires)])
            .map(drop),
        WriteRow::Forget { tenant, reply, keys, expires } => forget_reply(db, *tenant, *reply, keys, day_of(*expires)),
    }
}

fn write_receipts(db: &Transaction<'_>, receipts: &[&SealedReceipt]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO receipt (tenant, id, at, expires, day, client, model, status, repaired, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
    )?;
    for receipt in receipts {
        insert.execute(params![
            receipt.tenant.0,
            receipt.id,
            millis(receipt.at),
            millis(receipt.expires),
            day_of(receipt.expires),
            receipt.client,
            receipt.model,
            receipt.status,
            receipt.repaired,
            receipt.body
        ])?;
    }
    Ok(())
}

fn forget_reply(
    db: &Transaction<'_>,
    tenant: TenantId,
    reply: ReplyId,
    keys: &[Key],
    day: i64,
) -> rusqlite::Result<()> {
    let mut of_key = db.prepare_cached("DELETE FROM reply_key WHERE tenant = ?1 AND key = ?2 AND reply = ?3")?;
    for key in keys {
        of_key.execute(params![tenant.0, key.0, reply.0])?;
    }
    // It stays deleted if a file that was written before still has it.
    db.prepare_cached(
        "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES (?1, ?2, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET kind = excluded.kind, day = excluded.day",
    )?
    .execute(params![tenant.0, reply.0, DELETED, day])?;
    for table in ["reply_part", "reply"] {
        db.execute(&format!("DELETE FROM {table} WHERE tenant = ?1 AND reply = ?2"), params![tenant.0, reply.0])?;
    }
    Ok(())
}

fn write_replies(db: &Transaction<'_>, replies: &[(&ReplyRow, &Vec<(KeyKind, Key)>)]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO reply (tenant, reply, conv, parent, dialect, model, issuer, status, created, expires, day, codec,
                            keyid, size, parts, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING",
    )?;
    let mut insert_part = db.prepare_cached(
        "INSERT INTO reply_part (tenant, reply, n, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    for (row, _) in replies {
        let parts: Vec<&[u8]> =
            if row.body.len() > PART_BYTES { row.body.chunks(PART_BYTES).collect() } else { vec![] };
        let whole = parts.is_empty().then_some(&row.body);
        insert.execute(params![
            row.tenant.0,
            row.reply.0,
            row.conversation.0,
            row.parent.map(|parent| parent.0),
            row.dialect,
            row.model,
            row.issuer,
            row.is_interrupted,
            millis(row.created),
            millis(row.expires),
            row.day(),
            row.codec,
            KEY_VERSION,
            row.size as i64,
            parts.len() as i64,
            whole
        ])?;
        for (n, part) in parts.iter().enumerate() {
            insert_part.execute(params![row.tenant.0, row.reply.0, n as i64, part])?;
        }
    }
    Ok(())
}

fn write_keys(db: &Transaction<'_>, replies: &[(&ReplyRow, &Vec<(KeyKind, Key)>)]) -> rusqlite::Result<()> {
    let mut keys: Vec<(TenantId, Key, ReplyId, KeyKind, i64)> = Vec::new();
    for (row, of_reply) in replies {
        keys.extend(of_reply.iter().map(|(kind, key)| (row.tenant, *key, row.reply, *kind, row.day())));
    }
    // The sort is stable: of two equal keys of a reply, the first counts.
    keys.sort_by_key(|(tenant, key, reply, ..)| (*tenant, *key, *reply));
    let mut insert = db.prepare_cached(
        "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    for (tenant, key, reply, kind, day) in keys {
        insert.execute(params![tenant.0, key.0, reply.0, kind as i64, day])?;
    }
    Ok(())
}

pub(super) fn expire_some(db: &Transaction<'_>, before_day: i64) -> rusqlite::Result<u64> {
    let parameters = params![before_day, DELETE_BATCH as i64];
    let mut deleted = db.execute(
        "DELETE FROM reply_key WHERE (tenant, key, reply) IN
         (SELECT tenant, key, reply FROM reply_key WHERE day < ?1 LIMIT ?2)",
        parameters,
    )?;
    let mut replies = db.prepare_cached("SELECT tenant, reply FROM reply WHERE day < ?1 LIMIT ?2")?;
    let replies = replies.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for reply in replies.collect::<rusqlite::Result<Vec<([u8; 16], [u8; 12])>>>()? {
        db.execute("DELETE FROM reply_part WHERE tenant = ?1 AND reply = ?2", params![reply.0, reply.1])?;
        deleted += db.execute("DELETE FROM reply WHERE tenant = ?1 AND reply = ?2", params![reply.0, reply.1])?;
    }
    deleted += db.execute(
        "DELETE FROM receipt WHERE (tenant, id) IN (SELECT tenant, id FROM receipt WHERE day < ?1 LIMIT ?2)",
        parameters,
    )?;
    deleted += db.execute("DELETE FROM learned WHERE expires < ?1", [before_day.saturating_mul(86_400_000)])?;
    // A window of a month is the longest.
    deleted += db.execute("DELETE FROM spend WHERE win < ?1", [(before_day - 32).saturating_mul(86_400)])?;
    Ok(deleted as u64)
}

pub(super) fn trim(db: &Transaction<'_>, tenant: TenantId, max_bytes: u64) -> rusqlite::Result<u64> {
    let mut sizes = db.prepare_cached(
        "SELECT conv, sum(size) FROM reply WHERE tenant = ?1 GROUP BY conv ORDER BY max(expires), conv",
    )?;
    let sizes =
        sizes.query_map([tenant.0], |row| Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0))))?;
    let sizes: Vec<([u8; 12], u64)> = sizes.collect::<rusqlite::Result<_>>()?;
    let mut deleted = 0;
    for conversation in over_quota(sizes, max_bytes) {
        for table in ["reply_key", "reply_part"] {
            db.execute(
                &format!(
                    "DELETE FROM {table} WHERE tenant = ?1 AND reply IN
                     (SELECT reply FROM reply WHERE tenant = ?1 AND conv = ?2)"
                ),
                params![tenant.0, conversation],
            )?;
        }
        deleted += db.execute("DELETE FROM reply WHERE tenant = ?1 AND conv = ?2", params![tenant.0, conversation])?;
    }
    Ok(deleted as u64)
}

pub(super) fn receipt(db: &Connection, tenant: TenantId, id: &str) -> rusqlite::Result<Option<SealedReceipt>> {
    let mut statement = db.prepare_cached(
        "SELECT id, at, expires, client, model, status, repaired, body FROM receipt WHERE tenant = ?1 AND id = ?2",
    )?;
    statement.query_row(params![tenant.0, id], |row| read_receipt(tenant, row)).optional()
}

pub(super) fn receipts(
    db: &Connection,
    tenant: TenantId,
    filter: &ReceiptFilter,
) -> rusqlite::Result<Vec<SealedReceipt>> {
    let (before, id) = filter.before.clone().map_or((i64::MAX, String::new()), |(at, id)| (millis(at), id));
    let mut statement = db.prepare_cached(
        "SELECT id, at, expires, client, model, status, repaired, x'' FROM receipt
         WHERE tenant = ?1 AND (at < ?2 OR (at = ?2 AND id < ?3)) AND (?4 IS NULL OR client = ?4)
         ORDER BY at DESC, id DESC LIMIT ?5",
    )?;
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rows =
        statement.query_map(params![tenant.0, before, id, filter.client, limit], |row| read_receipt(tenant, row))?;
    rows.collect()
}

fn read_receipt(tenant: TenantId, row: &Row<'_>) -> rusqlite::Result<SealedReceipt> {
    Ok(SealedReceipt {
        tenant,
        id: row.get(0)?,
        at: time(row.get(1)?),
        expires: time(row.get(2)?),
        client: row.get(3)?,
        model: row.get(4)?,
        status: row.get(5)?,
        repaired: row.get(6)?,
        body: row.get(7)?,
    })
}

pub(super) fn client_keys(db: &Connection) -> rusqlite::Result<Vec<ClientKeyRow>> {
    let mut statement =
        db.prepare_cached("SELECT name, hash, tenant, settings, created FROM client_key ORDER BY name")?;
    let rows = statement.query_map([], |row| {
        Ok(ClientKeyRow {
            name: row.get(0)?,
            hash: row.get(1)?,
            tenant: row.get(2)?,
            settings: row.get(3)?,
            created: time(row.get(4)?),
        })
    })?;
    rows.collect()
}

pub(super) fn add_client_key(db: &Transaction<'_>, key: &ClientKeyRow) -> rusqlite::Result<bool> {
    let added = db.execute(
        "INSERT INTO client_key (name, hash, tenant, settings, created) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        params![key.name, key.hash, key.tenant, key.settings, millis(key.created)],
    )?;
    bump(db)?;
    Ok(added > 0)
}

pub(super) fn revoke_client_key(db: &Transaction<'_>, name: &str) -> rusqlite::Result<bool> {
    let removed = db.execute("DELETE FROM client_key WHERE name = ?1", [name])?;
    bump(db)?;
    Ok(removed > 0)
}

pub(super) fn learned(db: &Connection, now: Time) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        db.prepare_cached("SELECT repair FROM learned WHERE expires > ?1 ORDER BY expires, endpoint, repair")?;
    let rows = statement.query_map([millis(now)], |row| row.get(0))?;
    rows.collect()
}

pub(super) fn learn(db: &Transaction<'_>, rows: &[LearnedRow]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO learned (endpoint, repair, expires) VALUES (?1, ?2, ?3)
         ON CONFLICT (endpoint, repair) DO UPDATE SET expires = excluded.expires",
    )?;
    for row in rows {
        insert.execute(params![row.endpoint, row.repair, millis(row.expires)])?;
    }
    bump(db)
}

pub(super) fn forget_learned(db: &Transaction<'_>) -> rusqlite::Result<u64> {
    let removed = db.execute("DELETE FROM learned", [])?;
    bump(db)?;
    Ok(removed as u64)
}

pub(super) fn put_spend(db: &Transaction<'_>, rows: &[SpendRow]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO spend (name, kind, win, replica, total) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (name, kind, win, replica) DO UPDATE SET total = excluded.total",
    )?;
    for row in rows {
        let total = i64::try_from(row.total).unwrap_or(i64::MAX);
        insert.execute(params![row.key, row.kind, row.window, row.replica, total])?;
    }
    Ok(())
}

pub(super) fn spend(db: &Connection, since_window: i64) -> rusqlite::Result<Vec<SpendRow>> {
    let mut statement = db.prepare_cached(
        "SELECT name, kind, win, replica, total FROM spend WHERE win >= ?1 ORDER BY name, kind, win, replica",
    )?;
    let rows = statement.query_map([since_window], |row| {
        Ok(SpendRow {
            key: row.get(0)?,
            kind: row.get(1)?,
            window: row.get(2)?,
            replica: row.get(3)?,
            total: u64::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
        })
    })?;
    rows.collect()
}
