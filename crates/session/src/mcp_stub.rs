//! Replaces `mcp` in a build without MCP: tells the user that servers are not started.

use std::path::Path;
use std::sync::Arc;

use aside_confine::Confine;
use aside_engine::tools::LoadedTools;
use futures_util::future::BoxFuture;

use crate::mcp_tables::{McpTable, ServerProblem};

const WHAT: &str = "this aside was built without MCP";
const REMEDY: &str = "build it with the feature `mcp`, or set enabled = false";

pub struct Servers {
    notes: Vec<String>,
}

impl Servers {
    pub fn start(tables: &[McpTable], _here: &Path, _confine: &Arc<Confine>) -> Servers {
        let enabled = tables.iter().filter(|table| table.enabled);
        let note = |table: &McpTable| format!("MCP server `{}` has no tools: {WHAT}; {REMEDY}", table.name);
        Servers { notes: enabled.map(note).collect() }
    }

    pub fn tools(&mut self) -> Option<BoxFuture<'static, LoadedTools>> {
        let notes = std::mem::take(&mut self.notes);
        if notes.is_empty() {
            return None;
        }
        Some(Box::pin(async { LoadedTools { notes, ..LoadedTools::default() } }))
    }

    pub async fn close(self) {}
}

pub async fn count_tools(
    tables: &[McpTable],
    _here: &Path,
    _confine: &Arc<Confine>,
) -> Vec<(String, Result<usize, ServerProblem>)> {
    let problem = || ServerProblem { what: WHAT.to_owned(), remedy: REMEDY.to_owned() };
    tables.iter().filter(|table| table.enabled).map(|table| (table.name.clone(), Err(problem()))).collect()
}
