//! `[providers.NAME]` of config.toml, checked: what a user says about a
//! provider of their own, or about one that aside knows.

use aside_core::protocol::Protocol;
use serde_json::{Map, Value as Json};
use toml_edit::{Item, Table, TableLike, Value};

use crate::report::Report;
use crate::settings_file::SettingsFile;

/// The name of the built-in simulator, which no table may take.
pub(crate) const SIMULATOR: &str = "sim";

const PROVIDER_KEYS: [&str; 7] = ["protocol", "base_url", "dialect", "api_key_env", "api_key_cmd", "headers", "models"];

const MODEL_KEYS: [&str; 5] = ["dialect", "extra_body", "headers", "context_limit", "price"];

const PRICE_KEYS: [&str; 3] = ["input", "output", "cached"];

/// One provider, as the user's file has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderTable {
    pub(crate) name: String,
    /// File and line, for mistakes that show only when it is used.
    pub(crate) place: String,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) base_url: Option<String>,
    pub(crate) dialect: Option<String>,
    pub(crate) api_key_env: Option<String>,
    pub(crate) api_key_cmd: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    /// By pattern; the first that fits a model counts.
    pub(crate) models: Vec<ModelTable>,
}

/// What holds for some models of a provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelTable {
    pub(crate) pattern: String,
    pub(crate) dialect: Option<String>,
    pub(crate) extra_body: Map<String, Json>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) context_limit: Option<u64>,
    pub(crate) price: Option<Price>,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cached: Option<f64>,
}

/// Every table below `[providers]`, or the first mistake in them.
pub(crate) fn read(file: &SettingsFile, root: &Table) -> Result<Vec<ProviderTable>, Report> {
    let Some(reader) = Reader::of(file, root, "providers")? else { return Ok(Vec::new()) };
    reader.tables()?.into_iter().map(|(name, below)| provider(name, &below)).collect()
}

fn provider(name: &str, reader: &Reader<'_>) -> Result<ProviderTable, Report> {
    if name.is_empty() || name.contains(|one: char| one == '/' || one.is_whitespace() || one.is_control()) {
        return Err(reader.mistake_here("a provider's name has no space and no `/` in it"));
    }
    if name == SIMULATOR {
        return Err(reader.mistake_here("this name is the simulator's").hint("give your provider another name"));
    }
    reader.only(&PROVIDER_KEYS)?;
    let protocol = reader.text("protocol")?.map(|word| word.parse::<Protocol>().map_err(|error| error.to_string()));
    let models = match reader.below("models")? {
        Some(models) => models.tables()?.into_iter().map(|(pattern, below)| model(pattern, &below)).collect(),
        None => Ok(Vec::new()),
    };
    Ok(ProviderTable {
        name: name.to_owned(),
        place: reader.place(),
        protocol: protocol.transpose().map_err(|problem| reader.mistake("protocol", &problem))?,
        base_url: reader.url("base_url")?,
        dialect: reader.text("dialect")?,
        api_key_env: reader.text("api_key_env")?,
        api_key_cmd: reader.text("api_key_cmd")?,
        headers: reader.headers()?,
        models: models?,
    })
}

fn model(pattern: &str, reader: &Reader<'_>) -> Result<ModelTable, Report> {
    reader.only(&MODEL_KEYS)?;
    let extra_body = match reader.table.get("extra_body").map(to_json) {
        None => Map::new(),
        Some(Some(Json::Object(members))) => members,
        Some(_) => return Err(reader.mistake("extra_body", "expected a table of what JSON has words for")),
    };
    let context_limit = match reader.table.get("context_limit").map(Item::as_integer) {
        None => None,
        Some(limit) => match limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0) {
            Some(limit) => Some(limit),
            None => return Err(reader.mistake("context_limit", "expected a number of tokens above 0")),
        },
    };
    Ok(ModelTable {
        pattern: pattern.to_owned(),
        dialect: reader.text("dialect")?,
        extra_body,
        headers: reader.headers()?,
        context_limit,
        price: reader.below("price")?.map(|below| price(&below)).transpose()?,
    })
}

fn price(reader: &Reader<'_>) -> Result<Price, Report> {
    reader.only(&PRICE_KEYS)?;
    let amount = |key: &str| match reader.table.get(key) {
        None => Ok(None),
        Some(item) => {
            let whole = item.as_integer().and_then(|whole| u32::try_from(whole).ok()).map(f64::from);
            let amount = whole.or(item.as_float()).filter(|amount| amount.is_finite() && *amount >= 0.0);
            amount.map(Some).ok_or_else(|| reader.mistake(key, "expected a price for a million tokens, such as 0.6"))
        }
    };
    let needed = |key: &str| amount(key)?.ok_or_else(|| reader.mistake_here(&format!("a price needs `{key}`")));
    Ok(Price { input: needed("input")?, output: needed("output")?, cached: amount("cached")? })
}

/// A table of the file with what an error about it must name.
pub(crate) struct Reader<'a> {
    file: &'a SettingsFile,
    /// Dotted, as the table's header would have it.
    path: String,
    pub(crate) table: &'a dyn TableLike,
    /// Where it begins.
    at: usize,
}

fn start_of(above: &dyn TableLike, key: &str, item: &Item) -> usize {
    let header = item.as_table().filter(|table| !table.is_dotted()).and_then(Table::span);
    let key = above.key(key).and_then(toml_edit::Key::span);
    header.or(key).or(item.span()).map_or(0, |span| span.start)
}

impl<'a> Reader<'a> {
    /// A table at the top of the file.
    pub(crate) fn of(file: &'a SettingsFile, root: &'a Table, key: &str) -> Result<Option<Reader<'a>>, Report> {
        let Some(item) = root.get(key) else { return Ok(None) };
        let at = start_of(root, key, item);
        match item.as_table_like() {
            Some(table) => Ok(Some(Reader { file, path: key.to_owned(), table, at })),
            None => Err(file.mistake(at..at, key, "expected a table")),
        }
    }

    pub(crate) fn mistake(&self, key: &str, problem: &str) -> Report {
        let at = self.table.get(key).map_or(self.at, |item| start_of(self.table, key, item));
        self.file.mistake(at..at, &format!("{}.{key}", self.path), problem)
    }

    pub(crate) fn mistake_here(&self, problem: &str) -> Report {
        self.file.mistake(self.at..self.at, &self.path, problem)
    }

    fn place(&self) -> String {
        self.file.place(self.at)
    }

    /// The tables within, each with its name.
    pub(crate) fn tables(&self) -> Result<Vec<(&'a str, Reader<'a>)>, Report> {
        let mut all = Vec::new();
        for (name, item) in self.table.iter() {
            let path = format!("{}.{}", self.path, toml_edit::Key::new(name));
            let at = start_of(self.table, name, item);
            let Some(table) = item.as_table_like() else {
                return Err(self.file.mistake(at..at, &path, "expected a table"));
            };
            all.push((name, Reader { file: self.file, path, table, at }));
        }
        Ok(all)
    }

    pub(crate) fn below(&self, key: &str) -> Result<Option<Reader<'a>>, Report> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let Some(table) = item.as_table_like() else { return Err(self.mistake(key, "expected a table")) };
        let at = start_of(self.table, key, item);
        Ok(Some(Reader { file: self.file, path: format!("{}.{key}", self.path), table, at }))
    }

    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Report> {
        let Some((name, _)) = self.table.iter().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
        let hint = match name {
            "api_key" => {
                "a key never stands in a file; name the variable with api_key_env, or a command with api_key_cmd"
                    .to_owned()
            }
            _ => format!("what may stand there: {}", known.join(", ")),
        };
        Err(self.mistake(name, "unknown key").hint(hint))
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, Report> {
        match self.table.get(key).map(Item::as_str) {
            None => Ok(None),
            Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            Some(Some(_)) => Err(self.mistake(key, "there is nothing in it").hint("take the line out")),
            Some(None) => Err(self.mistake(key, "expected text in quotes")),
        }
    }

    /// Without the slash at its end, so that a path can be put behind it.
    fn url(&self, key: &str) -> Result<Option<String>, Report> {
        let url = self.whole_url(key, "http://… or https://…, up to the path of the protocol")?;
        Ok(url.map(|url| url.trim_end_matches('/').to_owned()))
    }

    pub(crate) fn whole_url(&self, key: &str, hint: &str) -> Result<Option<String>, Report> {
        let Some(url) = self.text(key)? else { return Ok(None) };
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_url = host.is_some_and(|host| !host.starts_with(['/', '?', ':']) && !host.is_empty())
            && !url.contains(|one: char| one.is_whitespace() || one.is_control());
        match is_url {
            true => Ok(Some(url)),
            false => Err(self.mistake(key, &format!("`{url}` is no URL")).hint(hint)),
        }
    }

    pub(crate) fn headers(&self) -> Result<Vec<(String, String)>, Report> {
        let Some(below) = self.below("headers")? else { return Ok(Vec::new()) };
        let mut headers = Vec::new();
        for (name, item) in below.table.iter() {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let value = item.as_str().filter(|value| !value.contains(char::is_control));
            match value.filter(|_| is_name) {
                Some(value) => headers.push((name.to_lowercase(), value.to_owned())),
                None => return Err(below.mistake(name, "expected a header, as \"name\" = \"value\"")),
            }
        }
        Ok(headers)
    }
}

/// Nothing for what JSON has no word for.
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
