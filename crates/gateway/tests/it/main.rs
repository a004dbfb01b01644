//! The gateway over real sockets, between clients and scripted providers.

mod matrix;
mod pass_through;
mod safety;
mod support;
