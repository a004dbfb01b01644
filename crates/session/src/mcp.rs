//! Starts the configured MCP servers, for a session and for `aside doctor`.

use std::path::Path;
use std::sync::Arc;

use aside_confine::Confine;
use aside_engine::tools::LoadedTools;
use aside_mcp::{ServerConfig, ServerEnvironment};
use futures_util::future::BoxFuture;

use crate::mcp_tables::{McpTable, ServerProblem, ServerTransport};
use crate::providers::env_var;

/// The MCP servers of a session.
pub struct Servers {
    running: Option<aside_mcp::McpServers>,
    notes: Vec<String>,
}

impl Servers {
    pub fn start(tables: &[McpTable], here: &Path, confine: &Arc<Confine>) -> Servers {
        let mut notes = Vec::new();
        let mut servers = Vec::new();
        for (name, server) in enabled(tables) {
            match server {
                Ok(server) => servers.push(server),
                Err(ServerProblem { what, remedy }) => {
                    notes.push(format!("MCP server `{name}` has no tools: {what}; {remedy}"));
                }
            }
        }
        let running =
            (!servers.is_empty()).then(|| aside_mcp::McpServers::start(servers, server_environment(here, confine)));
        Servers { running, notes }
    }

    /// The tools of the servers, once they have started; none without servers and notes.
    pub fn tools(&mut self) -> Option<BoxFuture<'static, LoadedTools>> {
        let notes = std::mem::take(&mut self.notes);
        let tools = self.running.as_mut().map(aside_mcp::McpServers::tools);
        if tools.is_none() && notes.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let mut loaded = match tools {
                Some(tools) => tools.await,
                None => LoadedTools::default(),
            };
            loaded.notes.extend(notes);
            loaded
        }))
    }

    pub async fn close(self) {
        if let Some(running) = self.running {
            running.close().await;
        }
    }
}

/// Connects to each server and counts its tools.
pub async fn count_tools(
    tables: &[McpTable],
    here: &Path,
    confine: &Arc<Confine>,
) -> Vec<(String, Result<usize, ServerProblem>)> {
    let mut findings = Vec::new();
    let mut servers = Vec::new();
    for (name, server) in enabled(tables) {
        match server {
            Ok(server) => servers.push(server),
            Err(problem) => findings.push((name, Err(problem))),
        }
    }
    if !servers.is_empty() {
        let checked = aside_mcp::check_servers(servers, server_environment(here, confine)).await;
        let problem = |error: aside_mcp::ServerError| ServerProblem { what: error.what, remedy: error.remedy };
        findings.extend(checked.into_iter().map(|(name, found)| (name, found.map_err(problem))));
    }
    findings
}

fn server_environment(here: &Path, confine: &Arc<Confine>) -> ServerEnvironment {
    ServerEnvironment::new(here.to_owned(), Arc::clone(confine))
}

fn enabled(tables: &[McpTable]) -> impl Iterator<Item = (String, Result<ServerConfig, ServerProblem>)> {
    tables.iter().filter(|table| table.enabled).map(|table| (table.name.clone(), server(table)))
}

fn server(table: &McpTable) -> Result<ServerConfig, ServerProblem> {
    let transport = match &table.transport {
        ServerTransport::Command { program, arguments, env, want } => aside_mcp::McpTransport::Command {
            program: program.clone(),
            arguments: arguments.clone(),
            variables: expand_all(env, "env")?,
            access: *want,
        },
        ServerTransport::Url { url, headers } => {
            aside_mcp::McpTransport::Url { url: url.clone(), headers: expand_all(headers, "headers")? }
        }
    };
    Ok(ServerConfig { name: table.name.clone(), transport })
}

/// Replaces every `${NAME}` with the environment variable, so that secrets can
/// stay out of the config file.
fn expand_all(pairs: &[(String, String)], table: &str) -> Result<Vec<(String, String)>, ServerProblem> {
    let one = |(name, value): &(String, String)| {
        let value = expand_variables(value, &env_var).map_err(|missing| ServerProblem {
            what: format!("{table}.{name} refers to `${missing}`, which is not set"),
            remedy: format!("export {missing}=…"),
        })?;
        Ok((name.clone(), value))
    };
    pairs.iter().map(one).collect()
}

fn expand_variables(value: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, reference)) = rest.split_once("${") {
        let Some((name, after)) = reference.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(&env(name).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_name_variables() {
        let env = |name: &str| (name == "TOKEN").then(|| "hush".to_owned());
        #[rustfmt::skip]
        let cases = [
            ("plain",             Ok("plain")),
            ("Bearer ${TOKEN}",   Ok("Bearer hush")),
            ("${TOKEN}${TOKEN}!", Ok("hushhush!")),
            ("$TOKEN ${TOKEN",    Ok("$TOKEN ${TOKEN")),
            ("${OTHER}",          Err("OTHER")),
        ];
        for (value, expected) in cases {
            assert_eq!(expand_variables(value, &env), expected.map(str::to_owned).map_err(str::to_owned), "{value}");
        }
    }
}
