//! Parses and checks `[serve]` of config.toml: how the gateway listens, who may use
//! it, and what its models are called.

use std::net::SocketAddr;
use std::time::Duration;

use toml_edit::{Item, Table, TableLike};

use crate::error::HintedError;
use crate::provider_tables::TableReader;
use crate::settings_file::SettingsFile;

const KEYS: [&str; 20] = [
    "listen",
    "store",
    "retention",
    "thinking",
    "keys",
    "models",
    "sim",
    "origins",
    "hosts",
    "metrics",
    "drain",
    "durability",
    "store_wait",
    "record",
    "tenant_bytes",
    "receipts",
    "keep_alive",
    "max_body",
    "connections",
    "threads",
];

const KEY_KEYS: [&str; 6] = ["name", "hash", "tenant", "models", "limit", "pass"];

const LIMIT_KEYS: [&str; 4] = ["requests", "tokens", "thinking", "money"];

/// The longest time that a setting may give: ten years.
const MAX_TIME: Duration = Duration::from_secs(10 * 365 * 86_400);

/// More than any machine has cores.
const MAX_THREADS: usize = 1024;

/// The checked `[serve]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeTable {
    pub listen: SocketAddr,
    pub store: StoreChoice,
    /// How long a reply is kept after its last use.
    pub retention: Duration,
    pub thinking: ThinkingShape,
    pub keys: Vec<ServeKey>,
    /// In the order of the file; the first that matches applies.
    pub models: Vec<ModelAlias>,
    /// Whether `sim/…` is served.
    pub sim: bool,
    /// The origins of web pages that may use the gateway.
    pub origins: Vec<String>,
    /// Host names besides loopback and the listen address.
    pub hosts: Vec<String>,
    /// A separate address for `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// How long running streams may continue after the first SIGTERM.
    pub drain: Duration,
    pub durability: Durability,
    /// How long the end of a reply waits for the reply to be stored. None for the default of the store.
    pub store_wait: Option<Duration>,
    pub record: RecordChoice,
    /// How much a tenant's replies may take, before compression; its oldest conversations are deleted first.
    pub tenant_bytes: Option<usize>,
    pub receipts: ReceiptContent,
    /// Silence on a stream after which the client gets a keep-alive.
    pub keep_alive: Duration,
    /// Bytes of a request body after decompression.
    pub max_body: usize,
    /// Clients connected at once.
    pub connections: usize,
    /// Threads that serve connections.
    pub threads: usize,
}

/// Every other core: the store, the kernel's network and whatever else runs there need the rest, and fewer threads take less
/// time for a request.
fn usual_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

impl Default for ServeTable {
    fn default() -> ServeTable {
        ServeTable {
            listen: SocketAddr::from(([127, 0, 0, 1], 4140)),
            store: StoreChoice::Sqlite,
            retention: Duration::from_secs(30 * 86_400),
            thinking: ThinkingShape::Auto,
            keys: Vec::new(),
            models: Vec::new(),
            sim: true,
            origins: Vec::new(),
            hosts: Vec::new(),
            metrics: None,
            drain: Duration::from_secs(600),
            durability: Durability::Process,
            store_wait: None,
            record: RecordChoice::Nobody,
            tenant_bytes: None,
            receipts: ReceiptContent::Decisions,
            keep_alive: Duration::from_secs(10),
            max_body: 64 << 20,
            connections: 1024,
            threads: usual_threads(),
        }
    }
}

/// Where replies are remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreChoice {
    /// `gateway.db` in the data folder.
    Sqlite,
    /// A database for several replicas.
    Postgres(String),
    /// Nothing is stored.
    None,
}

impl StoreChoice {
    pub fn parse(word: &str) -> Option<StoreChoice> {
        match word {
            "sqlite" => Some(StoreChoice::Sqlite),
            "none" => Some(StoreChoice::None),
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Some(StoreChoice::Postgres(url.to_owned()))
            }
            _ => None,
        }
    }
}

/// The form in which a client of another protocol gets thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingShape {
    /// What the client's protocol and habits ask for.
    Auto,
    /// The blocks or items of the client's protocol.
    Native,
    ReasoningContent,
    Reasoning,
    ReasoningDetails,
    /// `<think>` in the answer.
    Tags,
    /// A folded HTML section in the answer.
    Details,
    None,
}

impl ThinkingShape {
    pub const WORDS: [(&'static str, ThinkingShape); 8] = [
        ("auto", ThinkingShape::Auto),
        ("native", ThinkingShape::Native),
        ("reasoning_content", ThinkingShape::ReasoningContent),
        ("reasoning", ThinkingShape::Reasoning),
        ("reasoning_details", ThinkingShape::ReasoningDetails),
        ("tags", ThinkingShape::Tags),
        ("details", ThinkingShape::Details),
        ("none", ThinkingShape::None),
    ];
}

/// Whose conversations become sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordChoice {
    Nobody,
    /// Those of the only tenant.
    TheOnlyTenant,
    Tenants(Vec<String>),
}

impl RecordChoice {
    pub fn includes(&self, tenant: &str) -> bool {
        match self {
            RecordChoice::Nobody => false,
            RecordChoice::TheOnlyTenant => true,
            RecordChoice::Tenants(tenants) => tenants.iter().any(|name| name == tenant),
        }
    }
}

/// What a receipt contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptContent {
    /// What was done and why, without any text of the conversation.
    Decisions,
    /// Also what the client sent and what the provider got.
    Full,
}

/// What a stored reply survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    Process,
    /// The loss of power.
    Power,
}

/// A key that clients use.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeKey {
    pub name: String,
    /// The SHA-256 hash of the key.
    pub hash: [u8; 32],
    pub tenant: String,
    /// Patterns of the models it may use; all if empty.
    pub models: Vec<String>,
    pub limits: Vec<Limit>,
    /// The providers that it may reach under `/pass`.
    pub pass: Vec<String>,
}

/// At most this much in each window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    pub kind: LimitKind,
    pub amount: f64,
    pub window: LimitWindow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    Requests,
    Tokens,
    Thinking,
    /// In US dollars.
    Money,
}

impl LimitKind {
    pub fn as_str(self) -> &'static str {
        match self {
            LimitKind::Requests => "requests",
            LimitKind::Tokens => "tokens",
            LimitKind::Thinking => "thinking",
            LimitKind::Money => "money",
        }
    }

    pub fn parse(word: &str) -> Option<LimitKind> {
        let all = [LimitKind::Requests, LimitKind::Tokens, LimitKind::Thinking, LimitKind::Money];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A calendar window in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitWindow {
    Second,
    Minute,
    Hour,
    Day,
}

impl LimitWindow {
    pub fn as_str(self) -> &'static str {
        match self {
            LimitWindow::Second => "s",
            LimitWindow::Minute => "m",
            LimitWindow::Hour => "h",
            LimitWindow::Day => "day",
        }
    }

    pub fn parse(word: &str) -> Option<LimitWindow> {
        let all = [LimitWindow::Second, LimitWindow::Minute, LimitWindow::Hour, LimitWindow::Day];
        all.into_iter().find(|window| window.as_str() == word)
    }

    pub const fn seconds(self) -> u64 {
        match self {
            LimitWindow::Second => 1,
            LimitWindow::Minute => 60,
            LimitWindow::Hour => 3600,
            LimitWindow::Day => 86_400,
        }
    }
}

impl Limit {
    /// `60/m`, `2M/day` or `0.5/h`.
    pub fn parse(kind: LimitKind, text: &str) -> Option<Limit> {
        let (amount, window) = text.trim().split_once('/')?;
        let (digits, factor) = match amount.strip_suffix('k') {
            Some(digits) => (digits, 1e3),
            None => amount.strip_suffix('M').map_or((amount, 1.0), |digits| (digits, 1e6)),
        };
        let amount = digits.parse::<f64>().ok()? * factor;
        let window = LimitWindow::parse(window)?;
        (amount.is_finite() && amount >= 0.0).then_some(Limit { kind, amount, window })
    }

    /// `KIND=NUMBER/WINDOW`, as on the command line.
    pub fn parse_pair(text: &str) -> Option<Limit> {
        let (kind, rest) = text.split_once('=')?;
        Limit::parse(LimitKind::parse(kind)?, rest)
    }
}

/// What a client may call a model, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAlias {
    pub pattern: String,
    /// `PROVIDER/MODEL`, tried in this order.
    pub targets: Vec<String>,
}

pub fn read(file: &SettingsFile, root: &Table) -> Result<ServeTable, HintedError> {
    let usual = ServeTable::default();
    let Some(reader) = TableReader::top_level(file, root, "serve")? else { return Ok(usual) };
    reader.reject_unknown_keys(&KEYS)?;
    Ok(ServeTable {
        listen: address(&reader, "listen")?.unwrap_or(usual.listen),
        store: choice(&reader, "store", StoreChoice::parse, "\"sqlite\", \"none\" or \"postgres://…\"")?
            .unwrap_or(usual.store),
        retention: time(&reader, "retention")?.unwrap_or(usual.retention),
        thinking: choice(
            &reader,
            "thinking",
            thinking,
            "auto, native, reasoning_content, reasoning, reasoning_details, tags, details or none",
        )?
        .unwrap_or(usual.thinking),
        keys: keys(&reader)?,
        models: aliases(&reader)?,
        sim: flag(&reader, "sim")?.unwrap_or(usual.sim),
        origins: words(&reader, "origins")?,
        hosts: words(&reader, "hosts")?,
        metrics: address(&reader, "metrics")?,
        drain: time(&reader, "drain")?.unwrap_or(usual.drain),
        durability: choice(&reader, "durability", |word| (word == "power").then_some(Durability::Power), "\"power\"")?
            .unwrap_or(usual.durability),
        store_wait: time(&reader, "store_wait")?,
        record: record(&reader)?,
        tenant_bytes: count(&reader, "tenant_bytes")?,
        receipts: choice(&reader, "receipts", |word| (word == "full").then_some(ReceiptContent::Full), "\"full\"")?
            .unwrap_or(usual.receipts),
        keep_alive: time(&reader, "keep_alive")?.unwrap_or(usual.keep_alive),
        max_body: count(&reader, "max_body")?.unwrap_or(usual.max_body),
        connections: count(&reader, "connections")?.unwrap_or(usual.connections),
        threads: threads(&reader)?.unwrap_or(usual.threads),
    })
}

fn thinking(word: &str) -> Option<ThinkingShape> {
    ThinkingShape::WORDS.iter().find(|(known, _)| *known == word).map(|(_, shape)| *shape)
}

fn choice<T>(
    reader: &TableReader<'_>,
    key: &str,
    parse: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Option<T>, HintedError> {
    let Some(word) = reader.string(key)? else { return Ok(None) };
    let bad = || reader.error_at(key, &format!("unknown value `{word}`")).hint(format!("use {expected}"));
    parse(&word).map(Some).ok_or_else(bad)
}

fn address(reader: &TableReader<'_>, key: &str) -> Result<Option<SocketAddr>, HintedError> {
    choice(reader, key, |word| word.parse().ok(), "an address with a port, such as \"127.0.0.1:4140\"")
}

fn time(reader: &TableReader<'_>, key: &str) -> Result<Option<Duration>, HintedError> {
    choice(reader, key, parse_time, "a time such as \"30d\", \"12h\", \"10m\", \"2s\" or \"50ms\"")
}

/// `30d`, `12h`, `10m`, `2s`, `50ms` or `0`.
pub(crate) fn parse_time(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits)?;
    let number: u64 = digits.parse().ok()?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(milliseconds)?)).filter(|time| *time <= MAX_TIME)
}

fn flag(reader: &TableReader<'_>, key: &str) -> Result<Option<bool>, HintedError> {
    let Some(item) = reader.table.get(key) else { return Ok(None) };
    item.as_bool().map(Some).ok_or_else(|| reader.error_at(key, "expected true or false"))
}

fn record(reader: &TableReader<'_>) -> Result<RecordChoice, HintedError> {
    let Some(item) = reader.table.get("record") else { return Ok(RecordChoice::Nobody) };
    let expected = || reader.error_at("record", "expected true, false or a list of tenants");
    match (item.as_bool(), word_list(item)) {
        (Some(true), _) => Ok(RecordChoice::TheOnlyTenant),
        (Some(false), _) => Ok(RecordChoice::Nobody),
        (None, Some(tenants)) => Ok(RecordChoice::Tenants(tenants)),
        (None, None) => Err(expected()),
    }
}

fn count(reader: &TableReader<'_>, key: &str) -> Result<Option<usize>, HintedError> {
    let Some(item) = reader.table.get(key) else { return Ok(None) };
    let number = item.as_integer().and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| reader.error_at(key, "expected a number above 0"))
}

fn threads(reader: &TableReader<'_>) -> Result<Option<usize>, HintedError> {
    match count(reader, "threads")? {
        Some(number) if number > MAX_THREADS => {
            Err(reader.error_at("threads", &format!("expected a number up to {MAX_THREADS}")))
        }
        number => Ok(number),
    }
}

fn words(reader: &TableReader<'_>, key: &str) -> Result<Vec<String>, HintedError> {
    let Some(item) = reader.table.get(key) else { return Ok(Vec::new()) };
    word_list(item).ok_or_else(|| reader.error_at(key, "expected a list of texts in quotes"))
}

fn word_list(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

fn aliases(reader: &TableReader<'_>) -> Result<Vec<ModelAlias>, HintedError> {
    let Some(models) = reader.subtable("models")? else { return Ok(Vec::new()) };
    let mut aliases = Vec::new();
    for (pattern, item) in models.table.iter() {
        let targets = item.as_str().map(|target| vec![target.to_owned()]).or_else(|| word_list(item));
        let targets = targets.filter(|targets| !targets.is_empty() && targets.iter().all(|name| name.contains('/')));
        let Some(targets) = targets else {
            let problem = "expected \"PROVIDER/MODEL\", or a list of them in the order in which they are tried";
            return Err(models.error_at(pattern, problem));
        };
        aliases.push(ModelAlias { pattern: pattern.to_owned(), targets });
    }
    Ok(aliases)
}

fn keys(reader: &TableReader<'_>) -> Result<Vec<ServeKey>, HintedError> {
    let Some(item) = reader.table.get("keys") else { return Ok(Vec::new()) };
    let expected = || reader.error_at("keys", "expected [[serve.keys]] tables");
    let tables: Vec<&dyn TableLike> = match (item.as_array_of_tables(), item.as_array()) {
        (Some(tables), _) => tables.iter().map(|table| table as &dyn TableLike).collect(),
        (None, Some(array)) => array
            .iter()
            .map(|value| value.as_inline_table().map(|table| table as &dyn TableLike))
            .collect::<Option<_>>()
            .ok_or_else(expected)?,
        (None, None) => return Err(expected()),
    };
    let keys: Vec<ServeKey> = tables
        .into_iter()
        .map(|table| key(table).map_err(|problem| reader.error_at("keys", &problem)))
        .collect::<Result<_, _>>()?;
    for (at, key) in keys.iter().enumerate() {
        if keys.iter().take(at).any(|other| other.name == key.name) {
            return Err(reader.error_at("keys", &format!("the name `{}` is used twice", key.name)));
        }
    }
    Ok(keys)
}

fn key(table: &dyn TableLike) -> Result<ServeKey, String> {
    if let Some((name, _)) = table.iter().find(|(name, _)| !KEY_KEYS.contains(name)) {
        return Err(format!("unknown key `{name}`; the keys are: {}", KEY_KEYS.join(", ")));
    }
    let text = |name: &str| table.get(name).and_then(Item::as_str).filter(|text| !text.is_empty());
    let list = |name: &str| match table.get(name) {
        None => Ok(Vec::new()),
        Some(item) => word_list(item).ok_or_else(|| format!("{name}: expected a list of texts in quotes")),
    };
    let name = text("name").ok_or("a key needs a name")?;
    let hash = text("hash").and_then(parse_hash).ok_or_else(|| {
        format!("the key `{name}` needs hash = \"sha256:…\" with 64 digits; aside serve key new makes one")
    })?;
    Ok(ServeKey {
        name: name.to_owned(),
        hash,
        tenant: text("tenant").unwrap_or(name).to_owned(),
        models: list("models")?,
        limits: limits(table.get("limit"))?,
        pass: list("pass")?,
    })
}

fn limits(item: Option<&Item>) -> Result<Vec<Limit>, String> {
    let Some(item) = item else { return Ok(Vec::new()) };
    let table = item.as_table_like().ok_or("limit: expected a table such as { requests = \"60/m\" }")?;
    let mut limits = Vec::new();
    for (name, item) in table.iter() {
        let kind = LimitKind::parse(name).ok_or_else(|| format!("limit: use {}", LIMIT_KEYS.join(", ")))?;
        let limit = item.as_str().and_then(|text| Limit::parse(kind, text));
        limits.push(
            limit.ok_or_else(|| format!("limit.{name}: expected NUMBER/WINDOW, such as \"60/m\" or \"2M/day\""))?,
        );
    }
    Ok(limits)
}

/// `sha256:` and 64 hexadecimal digits.
pub fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_a_limit_is_a_number_and_a_window() {
        let limit = |amount, window| Some(Limit { kind: LimitKind::Tokens, amount, window });
        #[rustfmt::skip]
        let cases = [
            ("60/m",    limit(60.0, LimitWindow::Minute)),
            ("2M/day",  limit(2e6, LimitWindow::Day)),
            ("500k/h",  limit(5e5, LimitWindow::Hour)),
            ("0.5/s",   limit(0.5, LimitWindow::Second)),
            ("60",      None),
            ("60/week", None),
            ("-1/s",    None),
            ("NaN/s",   None),
        ];
        for (text, expected) in cases {
            assert_eq!(Limit::parse(LimitKind::Tokens, text), expected, "{text}");
        }
        assert_eq!(Limit::parse_pair("tokens=60/m"), limit(60.0, LimitWindow::Minute));
        assert_eq!(Limit::parse_pair("words=60/m"), None);
    }

    #[test]
    fn times_have_a_unit() {
        #[rustfmt::skip]
        let cases = [("50ms", Some(50)), ("2s", Some(2000)), ("10m", Some(600_000)), ("30d", Some(2_592_000_000)), ("0", Some(0)), ("5", None), ("1y", None), ("999999999999d", None)];
        for (text, expected) in cases {
            assert_eq!(parse_time(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
