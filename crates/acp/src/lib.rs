//! The Agent Client Protocol, version 1: an editor drives sessions of aside over JSON-RPC.
//!
//! Nothing here does IO. [`Peer`] takes lines from the client and updates from sessions, and returns
//! [`Effect`]s: lines to write, sessions to open, commands for them. A translator turns updates into
//! notifications, and does so for a running session and a stored one alike.

mod growth;
mod options;
mod peer;
mod permission;
mod prompt;
mod requests;
pub mod rpc;
mod session_update;
mod slash_commands;
mod tool_calls;
mod translator;

pub use peer::{
    ClientFiles, Effect, FileTicket, ListedSession, OpenRequest, OpenedSession, Peer, SessionAccess, SessionKey,
    SessionToOpen,
};
pub use requests::{McpServer, NameValue};
pub use rpc::RequestId;
