//! The two ends of a gateway, for `scripts/gateway_speed`.
//!
//! `gateway provider` is a bare server that answers in the protocol of the path. The
//! model's name says how: `d200` is a reply of 200 deltas, sent as fast as possible;
//! `d200p50` pauses 50 µs before each delta; `idle` sends one delta and stays silent;
//! `turn` is a short reply that depends on the number of messages. It prints its
//! address as the first line.
//!
//! `gateway load ADDRESS PROTOCOL MODEL REQUESTS CONNECTIONS stream|whole MESSAGES`
//! sends requests and prints times as JSON. `gateway history ADDRESS PROTOCOL MODEL
//! MESSAGES` plays a conversation from its first turn on. `gateway idle ADDRESS
//! PROTOCOL MODEL STREAMS` opens streams, prints a line, and holds them until its
//! standard input ends.

mod body;
mod client;
mod provider;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use crate::body::{Delivery, request_body};
use crate::client::{Connection, Load};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["provider"] => provider::serve(),
        ["load", address, protocol, model, requests, connections, delivery, messages] => {
            let load = || {
                Some(Load {
                    address: (*address).to_owned(),
                    protocol: protocol.parse().ok()?,
                    model: (*model).to_owned(),
                    n_requests: requests.parse().ok()?,
                    n_connections: connections.parse().ok()?,
                    delivery: Delivery::parse(delivery)?,
                    n_messages: messages.parse().ok()?,
                })
            };
            load().ok_or_else(usage).and_then(|load| load.run())
        }
        ["history", address, protocol, model, messages] => {
            let parsed = || Some((protocol.parse().ok()?, messages.parse().ok()?));
            parsed().ok_or_else(usage).and_then(|(protocol, n)| client::play_history(address, protocol, model, n))
        }
        ["idle", address, protocol, model, streams] => {
            let parsed = || Some((protocol.parse().ok()?, streams.parse().ok()?));
            parsed().ok_or_else(usage).and_then(|(protocol, n)| idle(address, protocol, model, n))
        }
        _ => Err(usage()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> io::Error {
    io::Error::other("wrong arguments; the head of the source lists them")
}

/// Opens streams of which only the first delta arrives, and holds them.
fn idle(address: &str, protocol: aside_core::protocol::Protocol, model: &str, n_streams: usize) -> io::Result<()> {
    let request = request_body(protocol, model, Delivery::Stream, 1);
    let mut held = Vec::with_capacity(n_streams);
    for _ in 0..n_streams {
        let mut connection = Connection::open(address)?;
        connection.send(&request)?;
        connection.read_first_bytes()?;
        held.push(connection);
    }
    let mut out = io::stdout();
    writeln!(out, "{}", held.len())?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
