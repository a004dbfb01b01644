//! Parses and checks `[providers.NAME]` of config.toml: the user's own providers
//! and changes to built-in ones.

use std::collections::BTreeMap;
use std::time::Duration;

use aside_core::model_table::Price;
use aside_core::protocol::Protocol;
use serde_json::{Map, Value as Json};
use toml_edit::{Item, Table, TableLike, Value};

use crate::error::HintedError;
use crate::serve_table::parse_time;
use crate::settings_file::SettingsFile;

/// The provider id of the built-in simulator. It is reserved.
pub const SIMULATOR: &str = "sim";

const PROVIDER_KEYS: [&str; 10] = [
    "protocol",
    "base_url",
    "path",
    "vars",
    "dialect",
    "api_key_env",
    "api_key_cmd",
    "api_key_ttl",
    "headers",
    "models",
];

const MODEL_KEYS: [&str; 5] = ["dialect", "extra_body", "headers", "context_limit", "price"];

const PRICE_KEYS: [&str; 4] = ["input", "output", "cached", "cache_write"];

/// One `[providers.NAME]` table.
#[derive(Debug, Clone, Default)]
pub struct ProviderTable {
    pub name: String,
    /// File and line, for errors that are found only when the provider is used.
    pub location: String,
    pub protocol: Option<Protocol>,
    pub base_url: Option<String>,
    /// The path after the base URL, with `{model}`, `{verb}` and the names of `vars`.
    pub path: Option<String>,
    /// The values of the names in braces in the URL and the path.
    pub vars: BTreeMap<String, String>,
    pub dialect: Option<String>,
    pub api_key_env: Option<String>,
    pub api_key_cmd: Option<String>,
    /// How long a key that the command printed is valid.
    pub api_key_ttl: Option<Duration>,
    pub headers: Vec<(String, String)>,
    /// The first whose pattern matches the model applies.
    pub models: Vec<ModelTable>,
}

/// Settings for the models of a provider that match a pattern.
#[derive(Debug, Clone, Default)]
pub struct ModelTable {
    pub pattern: String,
    pub dialect: Option<String>,
    pub extra_body: Map<String, Json>,
    pub headers: Vec<(String, String)>,
    pub context_limit: Option<u64>,
    pub price: Option<Price>,
}

/// All tables below `[providers]`, or the first error in them.
pub fn read(file: &SettingsFile, root: &Table) -> Result<Vec<ProviderTable>, HintedError> {
    let Some(reader) = TableReader::top_level(file, root, "providers")? else { return Ok(Vec::new()) };
    reader.tables()?.into_iter().map(|(name, subtable)| provider(name, &subtable)).collect()
}

fn provider(name: &str, reader: &TableReader<'_>) -> Result<ProviderTable, HintedError> {
    if name.is_empty() || name.contains(|one: char| one == '/' || one.is_whitespace() || one.is_control()) {
        return Err(reader.error_here("a provider's name has no space and no `/` in it"));
    }
    if name == SIMULATOR {
        return Err(reader.error_here("this name is the simulator's").hint("give your provider another name"));
    }
    reader.reject_unknown_keys(&PROVIDER_KEYS)?;
    let protocol = reader.string("protocol")?.map(|word| word.parse::<Protocol>().map_err(|error| error.to_string()));
    let models = match reader.subtable("models")? {
        Some(models) => models.tables()?.into_iter().map(|(pattern, subtable)| model(pattern, &subtable)).collect(),
        None => Ok(Vec::new()),
    };
    Ok(ProviderTable {
        name: name.to_owned(),
        location: reader.location(),
        protocol: protocol.transpose().map_err(|problem| reader.error_at("protocol", &problem))?,
        base_url: reader.url("base_url")?,
        path: path(reader)?,
        vars: vars(reader)?,
        dialect: reader.string("dialect")?,
        api_key_env: reader.string("api_key_env")?,
        api_key_cmd: reader.string("api_key_cmd")?,
        api_key_ttl: ttl(reader)?,
        headers: reader.headers()?,
        models: models?,
    })
}

fn path(reader: &TableReader<'_>) -> Result<Option<String>, HintedError> {
    let Some(path) = reader.string("path")? else { return Ok(None) };
    let is_path = path.starts_with('/') && !path.contains(|one: char| one.is_whitespace() || one.is_control());
    match is_path && path.matches('{').count() == path.matches('}').count() {
        true => Ok(Some(path)),
        false => Err(reader
            .error_at("path", &format!("`{path}` is not a path"))
            .hint("such as \"/v1/projects/{project}/models/{model}:{verb}\", with the value of {project} in vars")),
    }
}

fn vars(reader: &TableReader<'_>) -> Result<BTreeMap<String, String>, HintedError> {
    let Some(subtable) = reader.subtable("vars")? else { return Ok(BTreeMap::new()) };
    let mut vars = BTreeMap::new();
    for (name, _) in subtable.table.iter() {
        // A value is a part of a URL and must not change the rest of it.
        let is_part = |value: &String| {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) && value != ".."
        };
        if matches!(name, "model" | "verb") {
            return Err(subtable.error_at(name, "this name is filled in for each request"));
        }
        match subtable.string(name)?.filter(is_part) {
            Some(value) => drop(vars.insert(name.to_owned(), value)),
            None => return Err(subtable.error_at(name, "expected letters, digits, `-`, `.`, `_` or `~`")),
        }
    }
    Ok(vars)
}

fn ttl(reader: &TableReader<'_>) -> Result<Option<Duration>, HintedError> {
    let Some(text) = reader.string("api_key_ttl")? else { return Ok(None) };
    match parse_time(&text).filter(|ttl| !ttl.is_zero()) {
        Some(ttl) => Ok(Some(ttl)),
        None => Err(reader.error_at("api_key_ttl", &format!("`{text}` is not a time")).hint("such as \"50m\"")),
    }
}

fn model(pattern: &str, reader: &TableReader<'_>) -> Result<ModelTable, HintedError> {
    reader.reject_unknown_keys(&MODEL_KEYS)?;
    let extra_body = match reader.table.get("extra_body").map(to_json) {
        None => Map::new(),
        Some(Some(Json::Object(members))) => members,
        Some(_) => return Err(reader.error_at("extra_body", "expected a table of JSON values")),
    };
    let context_limit = match reader.table.get("context_limit").map(Item::as_integer) {
        None => None,
        Some(limit) => match limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0) {
            Some(limit) => Some(limit),
            None => return Err(reader.error_at("context_limit", "expected a number of tokens above 0")),
        },
    };
    Ok(ModelTable {
        pattern: pattern.to_owned(),
        dialect: reader.string("dialect")?,
        extra_body,
        headers: reader.headers()?,
        context_limit,
        price: reader.subtable("price")?.map(|subtable| price(&subtable)).transpose()?,
    })
}

fn price(reader: &TableReader<'_>) -> Result<Price, HintedError> {
    reader.reject_unknown_keys(&PRICE_KEYS)?;
    let amount = |key: &str| match reader.table.get(key) {
        None => Ok(None),
        Some(item) => {
            let whole = item.as_integer().and_then(|whole| u32::try_from(whole).ok()).map(f64::from);
            let amount = whole.or(item.as_float()).filter(|amount| amount.is_finite() && *amount >= 0.0);
            amount.map(Some).ok_or_else(|| reader.error_at(key, "expected a price for a million tokens, such as 0.6"))
        }
    };
    let needed = |key: &str| amount(key)?.ok_or_else(|| reader.error_here(&format!("a price needs `{key}`")));
    Ok(Price {
        input: needed("input")?,
        output: needed("output")?,
        cache_read: amount("cached")?,
        cache_write: amount("cache_write")?,
        tiers: Vec::new(),
    })
}

/// Reads a table of the config file. Its errors name the file, line and key.
pub struct TableReader<'a> {
    file: &'a SettingsFile,
    /// The dotted path, as in the table's header.
    path: String,
    pub table: &'a dyn TableLike,
    /// The byte offset where the table begins.
    at: usize,
}

fn start_of(above: &dyn TableLike, key: &str, item: &Item) -> usize {
    let header = item.as_table().filter(|table| !table.is_dotted()).and_then(Table::span);
    let key = above.key(key).and_then(toml_edit::Key::span);
    header.or(key).or(item.span()).map_or(0, |span| span.start)
}

impl<'a> TableReader<'a> {
    /// A top-level table of the file.
    pub(crate) fn top_level(
        file: &'a SettingsFile,
        root: &'a Table,
        key: &str,
    ) -> Result<Option<TableReader<'a>>, HintedError> {
        let Some(item) = root.get(key) else { return Ok(None) };
        let at = start_of(root, key, item);
        match item.as_table_like() {
            Some(table) => Ok(Some(TableReader { file, path: key.to_owned(), table, at })),
            None => Err(file.error_at(at..at, key, "expected a table")),
        }
    }

    pub(crate) fn error_at(&self, key: &str, problem: &str) -> HintedError {
        let at = self.table.get(key).map_or(self.at, |item| start_of(self.table, key, item));
        self.file.error_at(at..at, &format!("{}.{key}", self.path), problem)
    }

    pub(crate) fn error_here(&self, problem: &str) -> HintedError {
        self.file.error_at(self.at..self.at, &self.path, problem)
    }

    fn location(&self) -> String {
        self.file.location(self.at)
    }

    /// The subtables with their names.
    pub fn tables(&self) -> Result<Vec<(&'a str, TableReader<'a>)>, HintedError> {
        let mut all = Vec::new();
        for (name, item) in self.table.iter() {
            let path = format!("{}.{}", self.path, toml_edit::Key::new(name));
            let at = start_of(self.table, name, item);
            let Some(table) = item.as_table_like() else {
                return Err(self.file.error_at(at..at, &path, "expected a table"));
            };
            all.push((name, TableReader { file: self.file, path, table, at }));
        }
        Ok(all)
    }

    pub(crate) fn subtable(&self, key: &str) -> Result<Option<TableReader<'a>>, HintedError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let Some(table) = item.as_table_like() else { return Err(self.error_at(key, "expected a table")) };
        let at = start_of(self.table, key, item);
        Ok(Some(TableReader { file: self.file, path: format!("{}.{key}", self.path), table, at }))
    }

    pub(crate) fn reject_unknown_keys(&self, known: &[&str]) -> Result<(), HintedError> {
        let Some((name, _)) = self.table.iter().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
        let hint = match name {
            "api_key" => {
                "keys are never stored in a file; name the variable with api_key_env, or a command with api_key_cmd"
                    .to_owned()
            }
            _ => format!("the keys are: {}", known.join(", ")),
        };
        Err(self.error_at(name, "unknown key").hint(hint))
    }

    pub fn string(&self, key: &str) -> Result<Option<String>, HintedError> {
        match self.table.get(key).map(Item::as_str) {
            None => Ok(None),
            Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            Some(Some(_)) => Err(self.error_at(key, "it is empty").hint("remove the line")),
            Some(None) => Err(self.error_at(key, "expected text in quotes")),
        }
    }

    /// A base URL without a trailing slash, so that a path can be appended.
    fn url(&self, key: &str) -> Result<Option<String>, HintedError> {
        let url = self.full_url(key, "http://… or https://…, up to the path of the protocol")?;
        Ok(url.map(|url| url.trim_end_matches('/').to_owned()))
    }

    pub(crate) fn full_url(&self, key: &str, hint: &str) -> Result<Option<String>, HintedError> {
        let Some(url) = self.string(key)? else { return Ok(None) };
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_url = host.is_some_and(|host| !host.starts_with(['/', '?', ':']) && !host.is_empty())
            && !url.contains(|one: char| one.is_whitespace() || one.is_control());
        match is_url {
            true => Ok(Some(url)),
            false => Err(self.error_at(key, &format!("`{url}` is not a URL")).hint(hint)),
        }
    }

    pub fn headers(&self) -> Result<Vec<(String, String)>, HintedError> {
        let Some(subtable) = self.subtable("headers")? else { return Ok(Vec::new()) };
        let mut headers = Vec::new();
        for (name, item) in subtable.table.iter() {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let value = item.as_str().filter(|value| !value.contains(char::is_control));
            match value.filter(|_| is_name) {
                Some(value) => headers.push((name.to_lowercase(), value.to_owned())),
                None => return Err(subtable.error_at(name, "expected a header, as \"name\" = \"value\"")),
            }
        }
        Ok(headers)
    }
}

/// None for a value that JSON cannot represent.
fn to_json(item: &Item) -> Option<Json> {
    if let Some(table) = item.as_table_like() {
        let members = table.iter().map(|(name, item)| Some((name.to_owned(), to_json(item)?)));
        return members.collect::<Option<Map<_, _>>>().map(Json::Object);
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables
            .iter()
            .map(|table| to_json(&Item::Table(table.clone())))
            .collect::<Option<Vec<_>>>()
            .map(Json::Array);
    }
    match item.as_value()? {
        Value::String(text) => Some(Json::from(text.value().as_str())),
        Value::Integer(number) => Some(Json::from(*number.value())),
        Value::Float(number) => serde_json::Number::from_f64(*number.value()).map(Json::Number),
        Value::Boolean(flag) => Some(Json::from(*flag.value())),
        Value::Array(items) => {
            let items = items.iter().map(|value| to_json(&Item::Value(value.clone())));
            items.collect::<Option<Vec<_>>>().map(Json::Array)
        }
        Value::Datetime(_) | Value::InlineTable(_) => None,
    }
}
