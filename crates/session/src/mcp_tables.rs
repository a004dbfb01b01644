//! Parses and checks `[mcp.NAME]` of config.toml: MCP servers whose tools are
//! offered next to the built-in ones.

use aside_confine::RequestedAccess;
use toml_edit::{Item, Table};

use crate::error::HintedError;
use crate::provider_tables::TableReader;
use crate::settings_file::SettingsFile;

const KEYS: [&str; 8] = ["command", "url", "env", "headers", "enabled", "trust", "confine", "network"];

/// One `[mcp.NAME]` table.
#[derive(Debug, Clone)]
pub struct McpTable {
    pub name: String,
    pub transport: ServerTransport,
    pub enabled: bool,
    /// Whether its tools run without asking.
    pub trust: bool,
}

impl McpTable {
    /// The environment variables or headers of the server.
    pub fn values(&self) -> &[(String, String)] {
        match &self.transport {
            ServerTransport::Command { env, .. } => env,
            ServerTransport::Url { headers, .. } => headers,
        }
    }
}

/// How to reach a server. Values may contain `${NAME}` for environment variables.
#[derive(Debug, Clone)]
pub enum ServerTransport {
    Command { program: String, arguments: Vec<String>, env: Vec<(String, String)>, want: RequestedAccess },
    Url { url: String, headers: Vec<(String, String)> },
}

/// Why a server cannot be used, and the remedy.
#[derive(Debug)]
pub struct ServerProblem {
    pub what: String,
    pub remedy: String,
}

/// All tables below `[mcp]`, or the first error in them.
pub fn read(file: &SettingsFile, root: &Table) -> Result<Vec<McpTable>, HintedError> {
    let Some(reader) = TableReader::top_level(file, root, "mcp")? else { return Ok(Vec::new()) };
    reader.tables()?.into_iter().map(|(name, subtable)| server(name, &subtable)).collect()
}

fn server(name: &str, reader: &TableReader<'_>) -> Result<McpTable, HintedError> {
    let is_name = !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|one| one.is_ascii_alphanumeric() || b"-_".contains(&one));
    if !is_name {
        let problem = "a server's name is up to 32 letters, digits, - and _; its tools begin with it";
        return Err(reader.error_here(problem));
    }
    // Otherwise `a__*` would also match the tools of a server `a_` or `a__b`.
    if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        let problem = "a server's name has no _ at its ends and no two in a row, which stand before its tools";
        return Err(reader.error_here(problem));
    }
    reader.reject_unknown_keys(&KEYS)?;
    let command = command(reader)?;
    let url = reader.full_url("url", "http://… or https://…, with the whole path")?;
    let transport = match (command, url) {
        (Some((program, arguments)), None) => {
            forbid(reader, "headers", "only a server with a url has headers")?;
            ServerTransport::Command { program, arguments, env: env(reader)?, want: want(reader)? }
        }
        (None, Some(url)) => {
            forbid(reader, "env", "only a server with a command has an environment")?;
            forbid(reader, "confine", "only a server with a command is confined")?;
            forbid(reader, "network", "only a server with a command is confined")?;
            ServerTransport::Url { url, headers: reader.headers()? }
        }
        (Some(_), Some(_)) => {
            return Err(reader.error_here("it has a command and a url").hint("keep one of the two lines"));
        }
        (None, None) => {
            let hint = "command = [\"some-server\", \"--stdio\"], or url = \"https://…\"";
            return Err(reader.error_here("it has neither a command nor a url").hint(hint));
        }
    };
    let enabled = flag(reader, "enabled")?.unwrap_or(true);
    let trust = flag(reader, "trust")?.unwrap_or(false);
    Ok(McpTable { name: name.to_owned(), transport, enabled, trust })
}

fn flag(reader: &TableReader<'_>, key: &str) -> Result<Option<bool>, HintedError> {
    match reader.table.get(key).map(Item::as_bool) {
        None => Ok(None),
        Some(Some(value)) => Ok(Some(value)),
        Some(None) => Err(reader.error_at(key, "expected true or false")),
    }
}

/// How the server's process is confined: `confine = "off"` means not at all,
/// `network = true` grants network access.
fn want(reader: &TableReader<'_>) -> Result<RequestedAccess, HintedError> {
    let is_off = match reader.string("confine")?.as_deref() {
        None => false,
        Some("off") => true,
        Some(_) => {
            let hint = "leave it out, and tools.confine counts";
            return Err(reader.error_at("confine", "expected \"off\"").hint(hint));
        }
    };
    let network = match reader.table.get("network").map(Item::as_bool) {
        None => false,
        Some(Some(network)) => network,
        Some(None) => return Err(reader.error_at("network", "expected true or false")),
    };
    Ok(match (is_off, network) {
        (true, _) => RequestedAccess::Unconfined,
        (false, true) => RequestedAccess::Network,
        (false, false) => RequestedAccess::Standard,
    })
}

fn forbid(reader: &TableReader<'_>, key: &str, problem: &str) -> Result<(), HintedError> {
    match reader.table.get(key) {
        Some(_) => Err(reader.error_at(key, problem).hint("remove it")),
        None => Ok(()),
    }
}

/// The program and its arguments.
fn command(reader: &TableReader<'_>) -> Result<Option<(String, Vec<String>)>, HintedError> {
    let Some(item) = reader.table.get("command") else { return Ok(None) };
    let words = item
        .as_array()
        .and_then(|words| words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>());
    let words = words.filter(|words| words.iter().all(|word| !word.contains('\0'))).map(Vec::into_iter);
    let split =
        words.and_then(|mut words| Some((words.next().filter(|word| !word.trim().is_empty())?, words.collect())));
    split.map(Some).ok_or_else(|| {
        reader
            .error_at("command", "expected the program and its arguments")
            .hint("command = [\"some-server\", \"--stdio\"]")
    })
}

fn env(reader: &TableReader<'_>) -> Result<Vec<(String, String)>, HintedError> {
    let Some(subtable) = reader.subtable("env")? else { return Ok(Vec::new()) };
    let pair = |(name, item): (&str, &Item)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        let value = item.as_str().filter(|value| is_name && !value.contains('\0'));
        let value = value.ok_or_else(|| subtable.error_at(name, "expected a variable, as NAME = \"value\""))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    subtable.table.iter().map(pair).collect()
}
