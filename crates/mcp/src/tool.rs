//! A tool of an MCP server.

use std::sync::Arc;

use aside_core::conversation::ToolSpec;
use aside_engine::tools::{AnswerScope, CallTarget, PlannedCall, Risk, Tool, ToolOutcome};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::listing::ListedTool;

pub(crate) struct McpTool {
    /// The name under which it is offered, beginning with the server's name.
    name: String,
    listed: Arc<ListedTool>,
    connection: Arc<Connection>,
}

impl McpTool {
    pub(crate) fn new(name: String, listed: ListedTool, connection: Arc<Connection>) -> McpTool {
        McpTool { name, listed: Arc::new(listed), connection }
    }
}

struct McpCall {
    listed: Arc<ListedTool>,
    connection: Arc<Connection>,
    arguments: Map<String, Value>,
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        let ListedTool { about, parameters, .. } = self.listed.as_ref();
        ToolSpec::new(self.name.clone(), about.clone(), parameters.clone())
    }

    fn server(&self) -> Option<&str> {
        Some(&self.connection.server.name)
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let arguments = match serde_json::from_str(if arguments.trim().is_empty() { "{}" } else { arguments }) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => return Err(format!("{} takes a JSON object: {}", self.name, self.listed.parameters)),
        };
        let (listed, connection) = (Arc::clone(&self.listed), Arc::clone(&self.connection));
        Ok(Box::new(McpCall { listed, connection, arguments }))
    }
}

impl PlannedCall for McpCall {
    fn target(&self) -> CallTarget {
        let subject = Value::Object(self.arguments.clone()).to_string();
        // A server's claim that a tool only reads is not trusted: the user trusts the whole server or is
        // asked.
        CallTarget::new(subject, Risk::Runs, AnswerScope::Server(self.connection.server.name.clone()))
    }

    fn preview(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async {
            let whole = serde_json::to_string_pretty(&self.arguments);
            whole.map(Some).map_err(|error| format!("the arguments cannot be shown: {error}"))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move { self.connection.call(&self.listed.name, self.arguments, &cancel).await })
    }
}
