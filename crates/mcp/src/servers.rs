//! All servers of a session, started concurrently.

use std::fmt;
use std::sync::Arc;

use aside_engine::tools::{LoadedTools, Tool};
use futures_util::future::{BoxFuture, join_all};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;
use crate::listing::{ListedTool, ToolListing};
use crate::names::ToolNames;
use crate::server_config::{ServerConfig, ServerEnvironment};
use crate::tool::McpTool;

/// Why a server cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    pub what: String,
    pub remedy: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// Servers that run until this value and all their tools are dropped.
pub struct McpServers {
    connections: Vec<Arc<Connection>>,
    opening: Vec<OpeningTask>,
}

type OpeningTask = AbortOnDropHandle<Result<ToolListing, ServerError>>;

impl McpServers {
    /// Starts connecting in the background. Needs a tokio runtime.
    pub fn start(servers: Vec<ServerConfig>, environment: ServerEnvironment) -> McpServers {
        let environment = Arc::new(environment);
        let connect = |server| Arc::new(Connection::new(server, Arc::clone(&environment)));
        let connections: Vec<_> = servers.into_iter().map(connect).collect();
        let open = |connection: &Arc<Connection>| {
            let connection = Arc::clone(connection);
            AbortOnDropHandle::new(tokio::spawn(async move { connection.open().await }))
        };
        let opening = connections.iter().map(open).collect();
        McpServers { connections, opening }
    }

    /// Their tools, once each server has answered or timed out. Only the first call has anything to wait for.
    pub fn tools(&mut self) -> BoxFuture<'static, LoadedTools> {
        let opening = std::mem::take(&mut self.opening);
        let connections = self.connections.clone();
        Box::pin(async move {
            let mut loaded = LoadedTools::default();
            let mut names = ToolNames::default();
            for (connection, opened) in connections.iter().zip(join_all(opening).await) {
                let name = &connection.server.name;
                match opened {
                    Ok(Ok(listing)) => {
                        let note = |note: String| format!("the MCP server `{name}`: {note}");
                        loaded.notes.extend(listing.notes().into_iter().map(note));
                        loaded.tools.extend(mcp_tools(connection, listing.tools, &mut names));
                    }
                    Ok(Err(error)) => loaded.notes.push(format!("MCP server `{name}` has no tools: {error}")),
                    // Only after a panic or during the runtime's shutdown.
                    Err(error) => loaded.notes.push(format!("MCP server `{name}` has no tools: {error}")),
                }
            }
            loaded
        })
    }

    /// Closes all connections and gives each server a moment to end by itself.
    pub async fn close(self) {
        // Cancel connections that are still being opened.
        drop(self.opening);
        join_all(self.connections.iter().map(|connection| connection.close())).await;
    }
}

fn mcp_tools(connection: &Arc<Connection>, listed: Vec<ListedTool>, names: &mut ToolNames) -> Vec<Box<dyn Tool>> {
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    for tool in listed {
        // A tool that is listed twice is offered once.
        if let Some(name) = names.assign(&connection.server.name, &tool.name) {
            tools.push(Box::new(McpTool::new(name, tool, Arc::clone(connection))));
        }
    }
    tools
}

/// Connects to each server, counts its tools and closes the connection.
pub async fn check_servers(
    servers: Vec<ServerConfig>,
    environment: ServerEnvironment,
) -> Vec<(String, Result<usize, ServerError>)> {
    let environment = Arc::new(environment);
    let one = async |server: ServerConfig| {
        let connection = Connection::new(server, Arc::clone(&environment));
        let found = connection.open().await.map(|listing| listing.tools.len());
        connection.close().await;
        (connection.server.name.clone(), found)
    };
    join_all(servers.into_iter().map(one)).await
}
