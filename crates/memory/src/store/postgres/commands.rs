//! Every statement, with its parameters.

use std::sync::Arc;

use aside_core::block::Time;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::{
    ClientKeyRow, DELETE_BATCH, DELETED, FindQuery, LearnedRow, MAX_CANDIDATES, PART_BYTES, REJECTED, ReceiptFilter,
    ReplyRow, SCHEMA, SealedReceipt, SpendRow, TenantRow, WriteRow, day_of, millis,
};
use crate::tenant::TenantId;

/// The version of the tenants' data keys.
const KEY_VERSION: i16 = 1;

pub(super) const META: &str = "CREATE TABLE IF NOT EXISTS meta (k text PRIMARY KEY, v bigint NOT NULL)";

/// One statement each, because some databases take only one in a transaction.
pub(super) const TABLES: [&str; 12] = [
    "CREATE TABLE IF NOT EXISTS reply (
       tenant bytea NOT NULL, reply bytea NOT NULL, conv bytea NOT NULL, parent bytea,
       dialect text NOT NULL, model text NOT NULL, issuer bytea NOT NULL,
       status smallint NOT NULL, created bigint NOT NULL, expires bigint NOT NULL, day integer NOT NULL,
       codec smallint NOT NULL, keyid smallint NOT NULL, size integer NOT NULL, parts smallint NOT NULL, body bytea,
       PRIMARY KEY (tenant, reply))",
    "CREATE TABLE IF NOT EXISTS reply_part (
       tenant bytea NOT NULL, reply bytea NOT NULL, n smallint NOT NULL, body bytea NOT NULL,
       PRIMARY KEY (tenant, reply, n))",
    "CREATE TABLE IF NOT EXISTS reply_key (
       tenant bytea NOT NULL, key bytea NOT NULL, reply bytea NOT NULL, kind smallint NOT NULL, day integer NOT NULL,
       PRIMARY KEY (tenant, key, reply))",
    "CREATE INDEX IF NOT EXISTS reply_day ON reply (day, tenant)",
    "CREATE INDEX IF NOT EXISTS reply_key_day ON reply_key (day, tenant)",
    "CREATE TABLE IF NOT EXISTS receipt (
       tenant bytea NOT NULL, id text NOT NULL, at bigint NOT NULL, expires bigint NOT NULL, day integer NOT NULL,
       client text NOT NULL, model text NOT NULL, status integer NOT NULL, repaired text NOT NULL, body bytea NOT NULL,
       PRIMARY KEY (tenant, id))",
    "CREATE INDEX IF NOT EXISTS receipt_at ON receipt (tenant, at)",
    "CREATE INDEX IF NOT EXISTS receipt_day ON receipt (day)",
    "CREATE TABLE IF NOT EXISTS tenant (
       tenant bytea PRIMARY KEY, name text NOT NULL, keyid smallint NOT NULL, sealed bytea NOT NULL,
       created bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS client_key (
       name text PRIMARY KEY, hash text NOT NULL UNIQUE, tenant text NOT NULL, settings text NOT NULL,
       created bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS learned (
       endpoint text NOT NULL, repair text NOT NULL, expires bigint NOT NULL, PRIMARY KEY (endpoint, repair))",
    "CREATE TABLE IF NOT EXISTS spend (
       name text NOT NULL, kind text NOT NULL, win bigint NOT NULL, replica text NOT NULL, total bigint NOT NULL,
       PRIMARY KEY (name, kind, win, replica))",
];

type Parameter = (Arc<dyn ToSql + Sync + Send>, Type);

/// A statement with its parameters. It is not prepared, so that poolers need not
/// keep state.
#[derive(Clone)]
pub(super) struct Command {
    sql: &'static str,
    parameters: Vec<Parameter>,
}

impl Command {
    fn new(sql: &'static str) -> Command {
        Command { sql, parameters: Vec::new() }
    }

    fn with(mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> Command {
        self.parameters.push((Arc::new(value), kind));
        self
    }

    fn bytes(self, bytes: &[u8]) -> Command {
        self.with(bytes.to_vec(), Type::BYTEA)
    }

    /// PostgreSQL has no NUL in text; clients may send one in the name of a model.
    fn text(self, text: impl Into<String>) -> Command {
        let text: String = text.into();
        let text = if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text };
        self.with(text, Type::TEXT)
    }

    fn big(self, number: i64) -> Command {
        self.with(number, Type::INT8)
    }

    fn int(self, number: i64) -> Command {
        self.with(i32::try_from(number).unwrap_or(i32::MAX), Type::INT4)
    }

    fn small(self, number: i16) -> Command {
        self.with(number, Type::INT2)
    }

    pub(super) async fn run(&self, client: &Client) -> Result<Vec<Row>, tokio_postgres::Error> {
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            self.parameters.iter().map(|(value, kind)| (value.as_ref() as &(dyn ToSql + Sync), kind.clone())).collect();
        client.query_typed(self.sql, &parameters).await
    }
}

pub(super) fn schema() -> Command {
    Command::new("SELECT v FROM meta WHERE k = 'schema'")
}

pub(super) fn first_rows() -> Vec<Command> {
    let insert = "INSERT INTO meta (k, v) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    vec![Command::new(insert).text("schema").big(SCHEMA), Command::new(insert).text("revision").big(1)]
}

pub(super) fn bump() -> Command {
    Command::new("UPDATE meta SET v = v + 1 WHERE k = 'revision'")
}

pub(super) fn revision() -> Command {
    Command::new("SELECT v FROM meta WHERE k = 'revision'")
}

/// Adds a tenant, and reads it.
pub(super) fn add_tenant(new: &TenantRow) -> (Command, Command) {
    let add = Command::new(
        "INSERT INTO tenant (tenant, name, keyid, sealed, created) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING RETURNING name",
    );
    let add = add.bytes(&new.id.0).text(&*new.name).small(KEY_VERSION).bytes(&new.sealed).big(millis(new.created));
    let read = Command::new("SELECT tenant, name, sealed, created FROM tenant WHERE tenant = $1");
    (add, read.bytes(&new.id.0))
}

pub(super) fn tenants() -> Command {
    Command::new("SELECT tenant, name, sealed, created FROM tenant ORDER BY name")
}

pub(super) fn reseal_tenant(row: &TenantRow) -> Command {
    Command::new("UPDATE tenant SET sealed = $2 WHERE tenant = $1").bytes(&row.id.0).bytes(&row.sealed)
}

pub(super) fn delete_tenant(tenant: TenantId) -> Command {
    Command::new("DELETE FROM tenant WHERE tenant = $1 RETURNING name").bytes(&tenant.0)
}

pub(super) fn delete_rows_of(tenant: TenantId) -> [Command; 4] {
    let delete = |sql: &'static str| Command::new(sql).bytes(&tenant.0).big(DELETE_BATCH as i64);
    [
        delete(
            "DELETE FROM reply_key WHERE tenant = $1 AND (key, reply) IN
             (SELECT key, reply FROM reply_key WHERE tenant = $1 LIMIT $2) RETURNING 1",
        ),
        delete(
            "DELETE FROM reply_part WHERE tenant = $1 AND (reply, n) IN
             (SELECT reply, n FROM reply_part WHERE tenant = $1 LIMIT $2) RETURNING 1",
        ),
        delete(
            "DELETE FROM reply WHERE tenant = $1 AND reply IN
             (SELECT reply FROM reply WHERE tenant = $1 LIMIT $2) RETURNING 1",
        ),
        delete(
            "DELETE FROM receipt WHERE tenant = $1 AND id IN
             (SELECT id FROM receipt WHERE tenant = $1 LIMIT $2) RETURNING 1",
        ),
    ]
}

/// Two statements: by keys and by id. Of a reply that several keys find, the body
/// is sent once; of a key with many replies, only a limited number.
pub(super) fn find(tenant: TenantId, query: &FindQuery) -> Vec<Command> {
    let by_key = Command::new(
        "SELECT k.key, k.kind, r.reply, r.conv, r.parent, r.dialect, r.model, r.issuer, r.status, r.created, r.expires,
                r.codec, r.size, r.parts, CASE WHEN k.m = 1 THEN r.body END,
                (SELECT x.kind FROM reply_key x WHERE x.tenant = r.tenant AND x.key = r.reply AND x.reply = r.reply)
         FROM (SELECT key, kind, reply, row_number() OVER (PARTITION BY reply ORDER BY key) AS m
               FROM (SELECT key, kind, reply, row_number() OVER (PARTITION BY key ORDER BY reply) AS n
                     FROM reply_key WHERE tenant = $1 AND key = ANY($2)) AS all_of
               WHERE n <= $3) AS k
         JOIN reply r ON r.tenant = $1 AND r.reply = k.reply",
    );
    let by_id = Command::new(
        "SELECT NULL::bytea, NULL::smallint, r.reply, r.conv, r.parent, r.dialect, r.model, r.issuer, r.status,
                r.created, r.expires, r.codec, r.size, r.parts, r.body,
                (SELECT x.kind FROM reply_key x WHERE x.tenant = r.tenant AND x.key = r.reply AND x.reply = r.reply)
         FROM reply r WHERE r.tenant = $1 AND r.reply = ANY($2)",
    );
    let mut commands = Vec::new();
    if !query.keys.is_empty() {
        let keys: Vec<Vec<u8>> = query.keys.iter().map(|key| key.0.to_vec()).collect();
        let most = MAX_CANDIDATES as i64 + 1;
        commands.push(by_key.bytes(&tenant.0).with(keys, Type::BYTEA_ARRAY).big(most));
    }
    if !query.replies.is_empty() {
        let replies: Vec<Vec<u8>> = query.replies.iter().map(|reply| reply.0.to_vec()).collect();
        commands.push(by_id.bytes(&tenant.0).with(replies, Type::BYTEA_ARRAY));
    }
    commands
}

/// Two statements: those of the tenants that exist, and those of their replies that were deleted.
pub(super) fn existing(tenants: &[TenantId], replies: &[ReplyId]) -> Vec<Command> {
    let tenants: Vec<Vec<u8>> = tenants.iter().map(|tenant| tenant.0.to_vec()).collect();
    let replies: Vec<Vec<u8>> = replies.iter().map(|reply| reply.0.to_vec()).collect();
    let marks =
        "SELECT tenant, reply FROM reply_key WHERE tenant = ANY($1) AND key = ANY($2) AND reply = key AND kind = $3";
    let marks = Command::new(marks).with(tenants.clone(), Type::BYTEA_ARRAY).with(replies, Type::BYTEA_ARRAY);
    let known = Command::new("SELECT tenant FROM tenant WHERE tenant = ANY($1)").with(tenants, Type::BYTEA_ARRAY);
    vec![known, marks.small(DELETED.into())]
}

pub(super) fn parts(tenant: TenantId, reply: ReplyId) -> Command {
    Command::new("SELECT body FROM reply_part WHERE tenant = $1 AND reply = $2 ORDER BY n")
        .bytes(&tenant.0)
        .bytes(&reply.0)
}

pub(super) fn write(row: &WriteRow) -> Vec<Command> {
    match row {
        WriteRow::Reply { row, keys } => write_reply(row, keys),
        WriteRow::Touch { tenant, reply, keys, expires } => {
            let of_reply = Command::new("UPDATE reply SET expires = $3, day = $4 WHERE tenant = $1 AND reply = $2")
                .bytes(&tenant.0)
                .bytes(&reply.0)
                .big(millis(*expires))
                .int(day_of(*expires));
            let of_key = |key: &Key| {
                Command::new("UPDATE reply_key SET day = $4 WHERE tenant = $1 AND key = $2 AND reply = $3")
                    .bytes(&tenant.0)
                    .bytes(&key.0)
                    .bytes(&reply.0)
                    .int(day_of(*expires))
            };
            std::iter::once(of_reply).chain(keys.iter().map(of_key)).collect()
        }
        WriteRow::Rejected { tenant, reply, expires } => vec![
            Command::new(
                "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES ($1, $2, $2, $3, $4)
                 ON CONFLICT DO NOTHING",
            )
            .bytes(&tenant.0)
            .bytes(&reply.0)
            .small(REJECTED.into())
            .int(day_of(*expires)),
        ],
        WriteRow::Forget { tenant, reply, keys, expires } => forget_reply(*tenant, *reply, keys, day_of(*expires)),
        WriteRow::Receipt(receipt) => vec![put_receipt(receipt)],
    }
}

fn write_reply(row: &ReplyRow, keys: &[(KeyKind, Key)]) -> Vec<Command> {
    let parts: Vec<&[u8]> = if row.body.len() > PART_BYTES { row.body.chunks(PART_BYTES).collect() } else { vec![] };
    let whole = parts.is_empty().then(|| row.body.clone());
    let reply = Command::new(
        "INSERT INTO reply (tenant, reply, conv, parent, dialect, model, issuer, status, created, expires, day, codec,
                            keyid, size, parts, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING",
    )
    .bytes(&row.tenant.0)
    .bytes(&row.reply.0)
    .bytes(&row.conversation.0)
    .with(row.parent.map(|parent| parent.0.to_vec()), Type::BYTEA)
    .text(&*row.dialect)
    .text(&*row.model)
    .bytes(&row.issuer)
    .small(i16::from(row.is_interrupted))
    .big(millis(row.created))
    .big(millis(row.expires))
    .int(row.day())
    .small(row.codec)
    .small(KEY_VERSION)
    .int(i64::try_from(row.size).unwrap_or(i64::MAX))
    .small(i16::try_from(parts.len()).unwrap_or(i16::MAX))
    .with(whole, Type::BYTEA);
    let part = |(n, part): (usize, &&[u8])| {
        Command::new("INSERT INTO reply_part (tenant, reply, n, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
            .bytes(&row.tenant.0)
            .bytes(&row.reply.0)
            .small(i16::try_from(n).unwrap_or(i16::MAX))
            .bytes(part)
    };
    let key = |(kind, key): &(KeyKind, Key)| {
        Command::new(
            "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bytes(&row.tenant.0)
        .bytes(&key.0)
        .bytes(&row.reply.0)
        .small(*kind as i16)
        .int(row.day())
    };
    let parts = parts.iter().enumerate().map(part);
    std::iter::once(reply).chain(parts).chain(keys.iter().map(key)).collect()
}

fn forget_reply(tenant: TenantId, reply: ReplyId, keys: &[Key], day: i64) -> Vec<Command> {
    let of_reply = |sql: &'static str| Command::new(sql).bytes(&tenant.0).bytes(&reply.0);
    let of_key = |key: &Key| {
        Command::new("DELETE FROM reply_key WHERE tenant = $1 AND key = $2 AND reply = $3")
            .bytes(&tenant.0)
            .bytes(&key.0)
            .bytes(&reply.0)
    };
    let mut commands: Vec<Command> = keys.iter().map(of_key).collect();
    // It stays deleted if a file that was written before still has it.
    let mark = of_reply(
        "INSERT INTO reply_key (tenant, key, reply, kind, day) VALUES ($1, $2, $2, $3, $4)
         ON CONFLICT (tenant, key, reply) DO UPDATE SET kind = excluded.kind, day = excluded.day",
    );
    commands.push(mark.small(DELETED.into()).int(day));
    commands.push(of_reply("DELETE FROM reply_part WHERE tenant = $1 AND reply = $2"));
    commands.push(of_reply("DELETE FROM reply WHERE tenant = $1 AND reply = $2"));
    commands
}

fn put_receipt(receipt: &SealedReceipt) -> Command {
    Command::new(
        "INSERT INTO receipt (tenant, id, at, expires, day, client, model, status, repaired, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
    )
    .bytes(&receipt.tenant.0)
    .text(&*receipt.id)
    .big(millis(receipt.at))
    .big(millis(receipt.expires))
    .int(day_of(receipt.expires))
    .text(&*receipt.client)
    .text(&*receipt.model)
    .int(i64::from(receipt.status))
    .text(&*receipt.repaired)
    .bytes(&receipt.body)
}

/// Each deletes a batch, and is repeated until nothing is left.
pub(super) fn expire(before_day: i64) -> Vec<Command> {
    let batch = |sql: &'static str| Command::new(sql).int(before_day).big(DELETE_BATCH as i64);
    vec![
        batch(
            "DELETE FROM reply_key WHERE (tenant, key, reply) IN
             (SELECT tenant, key, reply FROM reply_key WHERE day < $1 LIMIT $2) RETURNING 1",
        ),
        batch(
            "DELETE FROM reply_part WHERE (tenant, reply, n) IN
             (SELECT p.tenant, p.reply, p.n FROM reply_part p JOIN reply r ON r.tenant = p.tenant AND r.reply = p.reply
              WHERE r.day < $1 LIMIT $2) RETURNING 1",
        ),
        batch(
            "DELETE FROM reply WHERE (tenant, reply) IN
             (SELECT tenant, reply FROM reply WHERE day < $1 LIMIT $2) RETURNING 1",
        ),
        batch(
            "DELETE FROM receipt WHERE (tenant, id) IN
             (SELECT tenant, id FROM receipt WHERE day < $1 LIMIT $2) RETURNING 1",
        ),
        Command::new("DELETE FROM learned WHERE expires < $1 RETURNING 1").big(before_day.saturating_mul(86_400_000)),
        // A window of a month is the longest.
        Command::new("DELETE FROM spend WHERE win < $1 RETURNING 1").big((before_day - 32).saturating_mul(86_400)),
    ]
}

/// The least recently used conversation comes first.
pub(super) fn conversation_sizes(tenant: TenantId) -> Command {
    Command::new(
        "SELECT conv, sum(size)::bigint FROM reply WHERE tenant = $1 GROUP BY conv ORDER BY max(expires), conv",
    )
    .bytes(&tenant.0)
}

/// The first statement returns a row for each reply; the others delete the replies and what belongs to them.
pub(super) fn delete_conversation(tenant: TenantId, conversation: &[u8]) -> Vec<Command> {
    let delete = |sql: &'static str| Command::new(sql).bytes(&tenant.0).bytes(conversation);
    vec![
        delete("SELECT reply FROM reply WHERE tenant = $1 AND conv = $2"),
        delete(
            "DELETE FROM reply_key WHERE tenant = $1 AND reply IN
             (SELECT reply FROM reply WHERE tenant = $1 AND conv = $2)",
        ),
        delete(
            "DELETE FROM reply_part WHERE tenant = $1 AND reply IN
             (SELECT reply FROM reply WHERE tenant = $1 AND conv = $2)",
        ),
        delete("DELETE FROM reply WHERE tenant = $1 AND conv = $2"),
    ]
}

pub(super) fn receipt(tenant: TenantId, id: String) -> Command {
    Command::new(
        "SELECT id, at, expires, client, model, status, repaired, body FROM receipt WHERE tenant = $1 AND id = $2",
    )
    .bytes(&tenant.0)
    .text(id)
}

pub(super) fn receipts(tenant: TenantId, filter: ReceiptFilter) -> Command {
    let (before, id) = filter.before.map_or((i64::MAX, String::new()), |(at, id)| (millis(at), id));
    Command::new(
        "SELECT id, at, expires, client, model, status, repaired, ''::bytea FROM receipt
         WHERE tenant = $1 AND (at < $2 OR (at = $2 AND id < $3)) AND ($4 IS NULL OR client = $4)
         ORDER BY at DESC, id DESC LIMIT $5",
    )
    .bytes(&tenant.0)
    .big(before)
    .text(id)
    .with(filter.client.map(|client| client.replace('\0', "\u{FFFD}")), Type::TEXT)
    .big(i64::try_from(filter.limit).unwrap_or(i64::MAX))
}

pub(super) fn client_keys() -> Command {
    Command::new("SELECT name, hash, tenant, settings, created FROM client_key ORDER BY name")
}

pub(super) fn add_client_key(key: ClientKeyRow) -> Command {
    Command::new(
        "INSERT INTO client_key (name, hash, tenant, settings, created) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING RETURNING name",
    )
    .text(key.name)
    .text(key.hash)
    .text(key.tenant)
    .text(key.settings)
    .big(millis(key.created))
}

pub(super) fn revoke_client_key(name: String) -> Command {
    Command::new("DELETE FROM client_key WHERE name = $1 RETURNING name").text(name)
}

pub(super) fn learned(now: Time) -> Command {
    Command::new("SELECT repair FROM learned WHERE expires > $1 ORDER BY expires, endpoint, repair").big(millis(now))
}

pub(super) fn learn(row: LearnedRow) -> Command {
    Command::new(
        "INSERT INTO learned (endpoint, repair, expires) VALUES ($1, $2, $3)
         ON CONFLICT (endpoint, repair) DO UPDATE SET expires = excluded.expires",
    )
    .text(row.endpoint)
    .text(row.repair)
    .big(millis(row.expires))
}

pub(super) fn forget_learned() -> Command {
    Command::new("DELETE FROM learned RETURNING 1")
}

pub(super) fn put_spend(row: SpendRow) -> Command {
    Command::new(
        "INSERT INTO spend (name, kind, win, replica, total) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (name, kind, win, replica) DO UPDATE SET total = excluded.total",
    )
    .text(row.key)
    .text(row.kind)
    .big(row.window)
    .text(row.replica)
    .big(i64::try_from(row.total).unwrap_or(i64::MAX))
}

pub(super) fn spend(since_window: i64) -> Command {
    Command::new("SELECT name, kind, win, replica, total FROM spend WHERE win >= $1 ORDER BY name, kind, win, replica")
        .big(since_window)
}
