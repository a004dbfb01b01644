//! Tools of MCP servers, as tools of aside. The only crate that knows rmcp.
