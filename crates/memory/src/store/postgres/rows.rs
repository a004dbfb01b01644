//! Reads rows.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::StoreError;
use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::{ClientKeyRow, DELETED, FoundRows, ReplyRow, SealedReceipt, SpendRow, TenantRow, time};
use crate::tenant::TenantId;

/// A row that we did not write.
pub(super) fn malformed() -> StoreError {
    StoreError::Down("a row has an unknown form".to_owned())
}

pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| StoreError::Down(error.to_string()))
}

fn fixed<const N: usize>(row: &Row, at: usize) -> Result<[u8; N], StoreError> {
    get::<&[u8]>(row, at)?.try_into().map_err(|_| malformed())
}

pub(super) fn tenant(row: &Row) -> Result<TenantRow, StoreError> {
    Ok(TenantRow {
        id: TenantId(fixed(row, 0)?),
        name: get(row, 1)?,
        sealed: get(row, 2)?,
        created: time(get(row, 3)?),
    })
}

/// What rows that waited in a file may belong to.
pub(super) struct Existing {
    pub(super) tenants: HashSet<TenantId>,
    /// Replies that were deleted.
    pub(super) deleted: HashSet<(TenantId, ReplyId)>,
}

pub(super) fn existing(answers: &[Vec<Row>]) -> Result<Existing, StoreError> {
    let [tenants, deleted] = answers else { return Err(malformed()) };
    let tenants = tenants.iter().map(|row| Ok(TenantId(fixed(row, 0)?)));
    let deleted = deleted.iter().map(|row| Ok((TenantId(fixed(row, 0)?), ReplyId(fixed(row, 1)?))));
    Ok(Existing {
        tenants: tenants.collect::<Result<_, StoreError>>()?,
        deleted: deleted.collect::<Result<_, StoreError>>()?,
    })
}

/// All matches and rows, and the replies whose bodies are in parts.
pub(super) fn found(tenant: TenantId, answers: &[Vec<Row>]) -> Result<(FoundRows, Vec<ReplyId>), StoreError> {
    let (mut found, mut in_parts) = (FoundRows::default(), Vec::new());
    let mut by_id: HashMap<ReplyId, ReplyRow> = HashMap::new();
    for row in answers.iter().flatten() {
        let reply = ReplyId(fixed(row, 2)?);
        if let (Some(key), Some(kind)) = (get::<Option<&[u8]>>(row, 0)?, get::<Option<i16>>(row, 1)?) {
            let key = Key(key.try_into().map_err(|_| malformed())?);
            found.matches.extend(KeyKind::of_number(i64::from(kind)).map(|kind| (key, kind, reply)));
        }
        // A file of another process brought it back.
        if get::<Option<i16>>(row, 15)? == Some(DELETED.into()) {
            continue;
        }
        let (n_parts, body) = (get::<i16>(row, 13)?, get::<Option<Vec<u8>>>(row, 14)?);
        if n_parts > 0 && !in_parts.contains(&reply) {
            in_parts.push(reply);
        }
        if body.is_some() || (n_parts > 0 && !by_id.contains_key(&reply)) {
            by_id.insert(reply, reply_row(tenant, reply, row, body.unwrap_or_default())?);
        }
    }
    found.rows = by_id.into_values().collect();
    Ok((found, in_parts))
}

fn reply_row(tenant: TenantId, reply: ReplyId, row: &Row, body: Vec<u8>) -> Result<ReplyRow, StoreError> {
    let parent = get::<Option<&[u8]>>(row, 4)?.and_then(ReplyId::from_slice);
    Ok(ReplyRow {
        tenant,
        reply,
        conversation: ReplyId(fixed(row, 3)?),
        parent,
        dialect: get(row, 5)?,
        model: get(row, 6)?,
        issuer: get(row, 7)?,
        is_interrupted: get::<i16>(row, 8)? != 0,
        created: time(get(row, 9)?),
        expires: time(get(row, 10)?),
        codec: get(row, 11)?,
        size: usize::try_from(get::<i32>(row, 12)?).unwrap_or(0),
        body,
        is_rejected: get::<Option<i16>>(row, 15)?.is_some(),
    })
}

pub(super) fn join_parts(found: &mut FoundRows, in_parts: &[ReplyId], parts: &[Vec<Row>]) -> Result<(), StoreError> {
    for (reply, parts) in in_parts.iter().zip(parts) {
        let Some(row) = found.rows.iter_mut().find(|row| row.reply == *reply) else { continue };
        row.body.clear();
        for part in parts {
            row.body.extend_from_slice(get::<&[u8]>(part, 0)?);
        }
    }
    Ok(())
}

pub(super) fn receipt(tenant: TenantId, row: &Row) -> Result<SealedReceipt, StoreError> {
    Ok(SealedReceipt {
        tenant,
        id: get(row, 0)?,
        at: time(get(row, 1)?),
        expires: time(get(row, 2)?),
        client: get(row, 3)?,
        model: get(row, 4)?,
        status: u16::try_from(get::<i32>(row, 5)?).unwrap_or(0),
        repaired: get(row, 6)?,
        body: get(row, 7)?,
    })
}

pub(super) fn client_key(row: &Row) -> Result<ClientKeyRow, StoreError> {
    Ok(ClientKeyRow {
        name: get(row, 0)?,
        hash: get(row, 1)?,
        tenant: get(row, 2)?,
        settings: get(row, 3)?,
        created: time(get(row, 4)?),
    })
}

pub(super) fn spend(row: &Row) -> Result<SpendRow, StoreError> {
    Ok(SpendRow {
        key: get(row, 0)?,
        kind: get(row, 1)?,
        window: get(row, 2)?,
        replica: get(row, 3)?,
        total: u64::try_from(get::<i64>(row, 4)?).unwrap_or(0),
    })
}
