//! The MCP servers of the config, for a session and for the doctor.

use std::path::Path;
use std::sync::Arc;

use aside_confine::Confine;
use aside_engine::tools::Arrived;
use aside_mcp::{Server, Surroundings};
use futures_util::future::BoxFuture;

use crate::mcp_tables::{McpTable, Trouble, Way};
use crate::providers::environment;

/// The servers of a session. Without any, nothing is started.
pub(crate) struct Servers {
    running: Option<aside_mcp::Servers>,
    notes: Vec<String>,
}

impl Servers {
    pub(crate) fn start(tables: &[McpTable], here: &Path, confine: &Arc<Confine>) -> Servers {
        let mut notes = Vec::new();
        let mut servers = Vec::new();
        for (name, server) in enabled(tables) {
            match server {
                Ok(server) => servers.push(server),
                Err(Trouble { what, remedy }) => {
                    notes.push(format!("no tools of the MCP server `{name}`: {what}; {remedy}"));
                }
            }
        }
        let running = (!servers.is_empty()).then(|| aside_mcp::Servers::start(servers, around(here, confine)));
        Servers { running, notes }
    }

    /// What comes of them, if anything does.
    pub(crate) fn tools(&mut self) -> Option<BoxFuture<'static, Arrived>> {
        let notes = std::mem::take(&mut self.notes);
        let tools = self.running.as_mut().map(aside_mcp::Servers::tools);
        if tools.is_none() && notes.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let mut arrived = match tools {
                Some(tools) => tools.await,
                None => Arrived::default(),
            };
            arrived.notes.extend(notes);
            arrived
        }))
    }

    pub(crate) async fn close(self) {
        if let Some(running) = self.running {
            running.close().await;
        }
    }
}

/// Connects to each, and counts its tools.
pub(crate) async fn look(
    tables: &[McpTable],
    here: &Path,
    confine: &Arc<Confine>,
) -> Vec<(String, Result<usize, Trouble>)> {
    let mut findings = Vec::new();
    let mut servers = Vec::new();
    for (name, server) in enabled(tables) {
        match server {
            Ok(server) => servers.push(server),
            Err(trouble) => findings.push((name, Err(trouble))),
        }
    }
    if !servers.is_empty() {
        let looked = aside_mcp::look(servers, around(here, confine)).await;
        let ours = |trouble: aside_mcp::Trouble| Trouble { what: trouble.what, remedy: trouble.remedy };
        findings.extend(looked.into_iter().map(|(name, found)| (name, found.map_err(ours))));
    }
    findings
}

fn around(here: &Path, confine: &Arc<Confine>) -> Surroundings {
    Surroundings::new(here.to_owned(), Arc::clone(confine))
}

fn enabled(tables: &[McpTable]) -> impl Iterator<Item = (String, Result<Server, Trouble>)> {
    tables.iter().filter(|table| table.enabled).map(|table| (table.name.clone(), server(table)))
}

fn server(table: &McpTable) -> Result<Server, Trouble> {
    let way = match &table.way {
        Way::Command { program, arguments, env, want } => aside_mcp::Way::Command {
            program: program.clone(),
            arguments: arguments.clone(),
            variables: filled(env, "env")?,
            want: *want,
        },
        Way::Url { url, headers } => aside_mcp::Way::Url { url: url.clone(), headers: filled(headers, "headers")? },
    };
    Ok(Server { name: table.name.clone(), way })
}

/// The values with every `${NAME}` in them replaced, so that a secret need not
/// stand in the file.
fn filled(pairs: &[(String, String)], table: &str) -> Result<Vec<(String, String)>, Trouble> {
    let one = |(name, value): &(String, String)| {
        let value = fill(value, &environment).map_err(|missing| Trouble {
            what: format!("{table}.{name} wants the variable {missing}, which is not set"),
            remedy: format!("export {missing}=…"),
        })?;
        Ok((name.clone(), value))
    };
    pairs.iter().map(one).collect()
}

fn fill(value: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else { break };
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
            assert_eq!(fill(value, &env), expected.map(str::to_owned).map_err(str::to_owned), "{value}");
        }
    }
}
