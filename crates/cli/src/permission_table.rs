//! `[permissions]` of config.toml, checked: what tools may do without a question.

use aside_engine::tools::{KnownTools, Rules};
use toml_edit::{Item, TableLike};

use crate::mcp_tables::McpTable;
use crate::report::Report;
use crate::settings_file::SettingsFile;

const EXPECTED: &str = "expected \"allow\", \"ask\" or \"deny\"";

/// The rules and the servers that are trusted, or the first mistake in them.
pub(crate) fn read(file: &SettingsFile, root: &dyn TableLike, servers: &[McpTable]) -> Result<Rules, Report> {
    let mut rules = Rules::new();
    for server in servers.iter().filter(|server| server.trust) {
        rules.trust_server(&server.name);
    }
    let Some(item) = root.get("permissions") else { return Ok(rules) };
    let table = item.as_table_like().ok_or_else(|| file.mistake_at("permissions", "expected a table"))?;
    let known = KnownTools::new(servers.iter().map(|server| server.name.as_str()));
    for (key, item) in table.iter() {
        let span = item.span().unwrap_or_default();
        let mistake = |problem: &str| file.mistake(span.clone(), &format!("permissions.{key}"), problem);
        let verdict = verdict(item).ok_or_else(|| mistake(EXPECTED))?;
        rules.add(key, verdict).map_err(|error| mistake(&error.to_string()))?;
        let tool = key.split_once(':').map_or(key, |(tool, _)| tool).trim();
        if !known.has(tool) {
            let hint = format!("there are: {}; tools of a server need its table under [mcp]", known.list());
            return Err(mistake(&format!("there is no tool `{tool}`")).hint(hint));
        }
    }
    Ok(rules)
}

/// `"allow"`, or `{ verdict = "allow" }`.
fn verdict(item: &Item) -> Option<&str> {
    match (item.as_str(), item.as_table_like()) {
        (Some(word), _) => Some(word),
        (None, Some(table)) if table.len() == 1 => table.get("verdict")?.as_str(),
        (None, _) => None,
    }
}
