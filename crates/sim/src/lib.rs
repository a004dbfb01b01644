//! A provider in a box: speaks every protocol, enforces every dialect's rules
//! with the data that aside itself works by, and never passes for a model.
//!
//! [`Stage`] decides everything without a socket or a clock: a request in, an
//! [`Answer`] out whose [`Stream`] says which bytes come and when to wait.
//! [`Simulator`] puts it behind a socket.
//!
//! Reading order: `script`, `stage`, `play`, `teller`, `court`, `server`.

mod about;
mod access;
mod beats;
mod court;
mod members;
mod plain_http;
mod play;
mod route;
mod script;
mod seal;
mod server;
mod shape;
mod stage;
mod stream;
mod teller;
mod tools;
mod words;

pub use script::{Behaviour, Options, Script, ScriptError, names};
pub use server::{Bounds, Running, Simulator};
pub use stage::{Answer, Asked, Stage};
pub use stream::{Next, Stream};
