//! Parses and checks `[permissions]` of config.toml: what tools may do without
//! asking.

use aside_core::permission_question::Network;
use aside_engine::tools::{KnownTools, PermissionRules};
use toml_edit::{Item, TableLike};

use crate::error::HintedError;
use crate::mcp_tables::McpTable;
use crate::settings_file::SettingsFile;

const NETWORK_HINT: &str =
    "\"shell:cargo *\" = { verdict = \"allow\", network = true } lets commands reach the network";
const EXPECTED: &str = "expected \"allow\", \"ask\" or \"deny\"";

/// The permission rules with the trusted MCP servers, or the first error in them.
pub(crate) fn read(
    file: &SettingsFile,
    root: &dyn TableLike,
    servers: &[McpTable],
) -> Result<PermissionRules, HintedError> {
    let mut rules = PermissionRules::new();
    for server in servers.iter().filter(|server| server.trust) {
        rules.trust_server(&server.name);
    }
    let Some(item) = root.get("permissions") else { return Ok(rules) };
    let table = item.as_table_like().ok_or_else(|| file.error_at_key("permissions", "expected a table"))?;
    let known = KnownTools::new(servers.iter().map(|server| server.name.as_str()));
    for (key, item) in table.iter() {
        let span = item.span().unwrap_or_default();
        let rule_error = |problem: &str| file.error_at(span.clone(), &format!("permissions.{key}"), problem);
        let (verdict, network) = verdict(item).ok_or_else(|| rule_error(EXPECTED).hint(NETWORK_HINT))?;
        let added = match network {
            Network::Off => rules.add(key, verdict),
            Network::On => rules.add_with_network(key),
        };
        added.map_err(|error| rule_error(&error.to_string()))?;
        let tool = key.split_once(':').map_or(key, |(tool, _)| tool).trim();
        // An editor may provide the server. `unmatched` reports rules that apply to no tool in the end.
        if !known.has(tool) && !KnownTools::may_be_of_a_server(tool) {
            let hint = format!("there are: {}; tools of a server need its table under [mcp]", known.list());
            return Err(rule_error(&format!("there is no tool `{tool}`")).hint(hint));
        }
    }
    Ok(rules)
}

/// A notice for each rule that applies to no tool, now that all servers are known.
pub(crate) fn unmatched(rules: &PermissionRules, servers: &[McpTable]) -> Vec<String> {
    let known = KnownTools::new(servers.iter().map(|server| server.name.as_str()));
    let mut unknown: Vec<&str> = rules.tools().filter(|tool| !known.has(tool)).collect();
    unknown.dedup();
    let line = |tool| format!("note: permissions.{tool} applies to nothing: there is no MCP server of that name here");
    unknown.into_iter().map(line).collect()
}

/// `"allow"`, or `{ verdict = "allow", network = true }`. Only `allow` can grant
/// network access.
fn verdict(item: &Item) -> Option<(&str, Network)> {
    if let Some(word) = item.as_str() {
        return Some((word, Network::Off));
    }
    let table = item.as_table_like()?;
    let is_known = table.iter().all(|(key, _)| key == "verdict" || key == "network");
    let verdict = table.get("verdict")?.as_str().filter(|_| is_known)?;
    match (verdict, table.get("network").map(Item::as_bool)) {
        (_, None | Some(Some(false))) => Some((verdict, Network::Off)),
        ("allow", Some(Some(true))) => Some((verdict, Network::On)),
        (_, Some(Some(true) | None)) => None,
    }
}
