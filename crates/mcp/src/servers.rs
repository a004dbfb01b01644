//! All servers of a session, started side by side.

use std::fmt;
use std::sync::Arc;

use aside_engine::tools::{Arrived, Tool};
use futures_util::future::{BoxFuture, join_all};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;
use crate::listing::{Listed, Listing};
use crate::names::Names;
use crate::server::{Server, Surroundings};
use crate::tool::McpTool;

/// Why a server is of no use, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub what: String,
    pub remedy: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// Servers that run until this value and all their tools are gone.
pub struct Servers {
    connections: Vec<Arc<Connection>>,
    opening: Vec<Opening>,
}

type Opening = AbortOnDropHandle<Result<Listing, Trouble>>;

impl Servers {
    /// Begins to connect; needs a runtime to do it on.
    pub fn start(servers: Vec<Server>, around: Surroundings) -> Servers {
        let around = Arc::new(around);
        let connect = |server| Arc::new(Connection::new(server, Arc::clone(&around)));
        let connections: Vec<_> = servers.into_iter().map(connect).collect();
        let open = |connection: &Arc<Connection>| {
            let connection = Arc::clone(connection);
            AbortOnDropHandle::new(tokio::spawn(async move { connection.open().await }))
        };
        let opening = connections.iter().map(open).collect();
        Servers { connections, opening }
    }

    /// What they offer, once each has answered or its time is up. Only the
    /// first call has something to wait for.
    pub fn tools(&mut self) -> BoxFuture<'static, Arrived> {
        let opening = std::mem::take(&mut self.opening);
        let connections = self.connections.clone();
        Box::pin(async move {
            let mut arrived = Arrived::default();
            let mut names = Names::default();
            for (connection, opened) in connections.iter().zip(join_all(opening).await) {
                let name = &connection.server.name;
                match opened {
                    Ok(Ok(listing)) => {
                        let note = |note: String| format!("the MCP server `{name}`: {note}");
                        arrived.notes.extend(listing.notes().into_iter().map(note));
                        arrived.tools.extend(offered(connection, listing.tools, &mut names));
                    }
                    Ok(Err(trouble)) => arrived.notes.push(format!("no tools of the MCP server `{name}`: {trouble}")),
                    // Only a panic or a runtime that shuts down comes to this.
                    Err(error) => arrived.notes.push(format!("no tools of the MCP server `{name}`: {error}")),
                }
            }
            arrived
        })
    }

    /// Ends them, with a moment for each to end by itself.
    pub async fn close(self) {
        // Whoever still starts is stopped first.
        drop(self.opening);
        join_all(self.connections.iter().map(|connection| connection.close())).await;
    }
}

fn offered(connection: &Arc<Connection>, listed: Vec<Listed>, names: &mut Names) -> Vec<Box<dyn Tool>> {
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    for tool in listed {
        // The same tool twice is once.
        if let Some(name) = names.offer(&connection.server.name, &tool.name) {
            tools.push(Box::new(McpTool::new(name, tool, Arc::clone(connection))));
        }
    }
    tools
}

/// Connects to each, counts its tools and lets it go.
pub async fn look(servers: Vec<Server>, around: Surroundings) -> Vec<(String, Result<usize, Trouble>)> {
    let around = Arc::new(around);
    let one = async |server: Server| {
        let connection = Connection::new(server, Arc::clone(&around));
        let found = connection.open().await.map(|listing| listing.tools.len());
        connection.close().await;
        (connection.server.name.clone(), found)
    };
    join_all(servers.into_iter().map(one)).await
}
