//! A tool of a server, behind the seam that every tool is behind.

use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use aside_engine::tools::{Job, Likeness, Outcome, Risk, Target, Tool};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::listing::Listed;

pub(crate) struct McpTool {
    /// As it is offered, with the server's name in front.
    name: String,
    listed: Arc<Listed>,
    connection: Arc<Connection>,
}

impl McpTool {
    pub(crate) fn new(name: String, listed: Listed, connection: Arc<Connection>) -> McpTool {
        McpTool { name, listed: Arc::new(listed), connection }
    }
}

struct Call {
    listed: Arc<Listed>,
    connection: Arc<Connection>,
    arguments: Map<String, Value>,
}

impl Tool for McpTool {
    fn spec(&self) -> Spec {
        let Listed { about, parameters, .. } = self.listed.as_ref();
        Spec { name: self.name.clone(), description: about.clone(), parameters: parameters.clone() }
    }

    fn server(&self) -> Option<&str> {
        Some(&self.connection.server.name)
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let arguments = match serde_json::from_str(if arguments.trim().is_empty() { "{}" } else { arguments }) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => return Err(format!("{} takes a JSON object: {}", self.name, self.listed.parameters)),
        };
        let (listed, connection) = (Arc::clone(&self.listed), Arc::clone(&self.connection));
        Ok(Box::new(Call { listed, connection, arguments }))
    }
}

impl Job for Call {
    fn target(&self) -> Target {
        let subject = Value::Object(self.arguments.clone()).to_string();
        // What a server says of its own tools, that they only read, is its word.
        // The user trusts the server or is asked.
        Target::new(subject, Risk::Runs, Likeness::Server(self.connection.server.name.clone()))
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async {
            let whole = serde_json::to_string_pretty(&self.arguments);
            whole.map(Some).map_err(|error| format!("the arguments cannot be shown: {error}"))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.connection.call(&self.listed.name, self.arguments, &cancel).await })
    }
}
