//! A tool of a server, behind the seam that every tool is behind.

use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use aside_engine::tools::{Job, Likeness, Outcome, Risk, Target, Tool};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::client::Listed;
use crate::connection::Connection;

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
        // What a server says of its own tools is a hint, and it is the user who
        // put the server into the config.
        let risk = if self.listed.only_reads { Risk::Reads } else { Risk::Runs };
        Target::new(subject, risk, Likeness::Tool)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.connection.call(&self.listed.name, self.arguments, &cancel).await })
    }
}
