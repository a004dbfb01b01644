//! Offers the tools of MCP servers as tools of aside.
//!
//! A [`ServerConfig`] describes one server. [`McpServers::start`] connects to all of them concurrently, in
//! the background; [`McpServers::tools`] returns their tools. No other crate depends on rmcp. Without
//! servers, none of this code runs.
//!
//! Reading order: [`server_config`], [`servers`], `connection`, `client`, `tool`.

mod bounded_reader;
mod bounded_transport;
mod client;
mod connection;
mod http_client;
mod http_setup;
mod listing;
mod names;
mod nesting;
mod process;
pub mod server_config;
pub mod servers;
mod tool;
mod tool_result;

pub use server_config::{McpTransport, ServerConfig, ServerEnvironment};
pub use servers::{McpServers, ServerError, check_servers};
