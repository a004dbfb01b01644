//! `[mcp.NAME]` of config.toml, checked: servers whose tools are offered beside
//! the built-in ones.

use aside_confine::Want;
use toml_edit::{Item, Table};

use crate::provider_tables::Reader;
use crate::report::Report;
use crate::settings_file::SettingsFile;

const KEYS: [&str; 8] = ["command", "url", "env", "headers", "enabled", "trust", "confine", "network"];

/// One server, as the user's file has it.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "checked all the same"))]
pub(crate) struct McpTable {
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) enabled: bool,
    /// Whether its tools are used without a question.
    pub(crate) trust: bool,
}

impl McpTable {
    /// What it is given, by name.
    pub(crate) fn values(&self) -> &[(String, String)] {
        match &self.way {
            Way::Command { env, .. } => env,
            Way::Url { headers, .. } => headers,
        }
    }
}

/// How it is reached. Values may name variables as `${NAME}`.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "checked all the same"))]
pub(crate) enum Way {
    Command { program: String, arguments: Vec<String>, env: Vec<(String, String)>, want: Want },
    Url { url: String, headers: Vec<(String, String)> },
}

/// Why a server is of no use, and what to do about it.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

/// Every table below `[mcp]`, or the first mistake in them.
pub(crate) fn read(file: &SettingsFile, root: &Table) -> Result<Vec<McpTable>, Report> {
    let Some(reader) = Reader::of(file, root, "mcp")? else { return Ok(Vec::new()) };
    reader.tables()?.into_iter().map(|(name, below)| server(name, &below)).collect()
}

fn server(name: &str, reader: &Reader<'_>) -> Result<McpTable, Report> {
    let is_name = !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|one| one.is_ascii_alphanumeric() || b"-_".contains(&one));
    if !is_name {
        let problem = "a server's name is up to 32 letters, digits, - and _; its tools begin with it";
        return Err(reader.mistake_here(problem));
    }
    // Else `a__*` would also be about the tools of a server `a_` or `a__b`.
    if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        let problem = "a server's name has no _ at its ends and no two in a row, which stand before its tools";
        return Err(reader.mistake_here(problem));
    }
    reader.only(&KEYS)?;
    let command = command(reader)?;
    let url = reader.whole_url("url", "http://… or https://…, with the whole path")?;
    let way = match (command, url) {
        (Some((program, arguments)), None) => {
            forbid(reader, "headers", "only a server with a url has headers")?;
            Way::Command { program, arguments, env: env(reader)?, want: want(reader)? }
        }
        (None, Some(url)) => {
            forbid(reader, "env", "only a server with a command has an environment")?;
            forbid(reader, "confine", "only a server with a command is confined")?;
            forbid(reader, "network", "only a server with a command is confined")?;
            Way::Url { url, headers: reader.headers()? }
        }
        (Some(_), Some(_)) => {
            return Err(reader.mistake_here("it has a command and a url").hint("keep one of the two lines"));
        }
        (None, None) => {
            let hint = "command = [\"some-server\", \"--stdio\"], or url = \"https://…\"";
            return Err(reader.mistake_here("it has neither a command nor a url").hint(hint));
        }
    };
    let enabled = flag(reader, "enabled")?.unwrap_or(true);
    let trust = flag(reader, "trust")?.unwrap_or(false);
    Ok(McpTable { name: name.to_owned(), way, enabled, trust })
}

fn flag(reader: &Reader<'_>, key: &str) -> Result<Option<bool>, Report> {
    match reader.table.get(key).map(Item::as_bool) {
        None => Ok(None),
        Some(Some(value)) => Ok(Some(value)),
        Some(None) => Err(reader.mistake(key, "expected true or false")),
    }
}

/// How its process is confined: `confine = "off"` not at all, `network = true` with
/// network.
fn want(reader: &Reader<'_>) -> Result<Want, Report> {
    let is_off = match reader.text("confine")?.as_deref() {
        None => false,
        Some("off") => true,
        Some(_) => {
            let hint = "leave it out, and tools.confine counts";
            return Err(reader.mistake("confine", "expected \"off\"").hint(hint));
        }
    };
    let network = match reader.table.get("network").map(Item::as_bool) {
        None => false,
        Some(Some(network)) => network,
        Some(None) => return Err(reader.mistake("network", "expected true or false")),
    };
    Ok(match (is_off, network) {
        (true, _) => Want::Unconfined,
        (false, true) => Want::Network,
        (false, false) => Want::Usual,
    })
}

fn forbid(reader: &Reader<'_>, key: &str, problem: &str) -> Result<(), Report> {
    match reader.table.get(key) {
        Some(_) => Err(reader.mistake(key, problem).hint("take it out")),
        None => Ok(()),
    }
}

/// The program and its arguments.
fn command(reader: &Reader<'_>) -> Result<Option<(String, Vec<String>)>, Report> {
    let Some(item) = reader.table.get("command") else { return Ok(None) };
    let words = item
        .as_array()
        .and_then(|words| words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>());
    let words = words.filter(|words| words.iter().all(|word| !word.contains('\0'))).map(Vec::into_iter);
    let split =
        words.and_then(|mut words| Some((words.next().filter(|word| !word.trim().is_empty())?, words.collect())));
    split.map(Some).ok_or_else(|| {
        reader
            .mistake("command", "expected the program and its arguments")
            .hint("command = [\"some-server\", \"--stdio\"]")
    })
}

fn env(reader: &Reader<'_>) -> Result<Vec<(String, String)>, Report> {
    let Some(below) = reader.below("env")? else { return Ok(Vec::new()) };
    let pair = |(name, item): (&str, &Item)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        let value = item.as_str().filter(|value| is_name && !value.contains('\0'));
        let value = value.ok_or_else(|| below.mistake(name, "expected a variable, as NAME = \"value\""))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    below.table.iter().map(pair).collect()
}
