//! Tools of MCP servers, as tools of aside.
//!
//! A [`Server`] says how one is reached. [`Servers::start`] connects to all of
//! them side by side, in the background; [`Servers::tools`] is what they offer.
//! This crate is the only one that knows rmcp, and `client` the only file of it
//! that names the server's side of things. Without servers none of it runs.
//!
//! Reading order: [`server`], [`servers`], `connection`, `client`, `tool`.

mod answer;
mod client;
mod connection;
mod http_client;
mod limited;
mod listing;
mod names;
mod process;
pub mod server;
pub mod servers;
mod tool;
mod web;

pub use server::{Server, Surroundings, Way};
pub use servers::{Servers, Trouble, look};
