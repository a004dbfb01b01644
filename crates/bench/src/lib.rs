//! Measures the cost of decoding against a floor in the same run.
//!
//! `generate` makes streams, `baseline_decoder` does the minimum work of any decoder,
//! `measured_full` is aside, and `alloc_counter` counts the allocations of both.

pub mod alloc_counter;
pub mod baseline_decoder;
pub mod data_flow;
pub mod frames;
pub mod generate;
pub mod request_encoding;
pub mod serve;

use aside_core::block::Reply;
use aside_core::dialect::{Dialects, Rules};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;

/// How a body is split into reads.
#[derive(Debug, Clone, Copy)]
pub enum Chunking {
    /// About one network packet.
    Even,
    /// Sizes that split frames anywhere.
    Odd,
}

impl Chunking {
    pub fn chunks(self, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let sizes: &'static [usize] = match self {
            Chunking::Even => &[1400],
            Chunking::Odd => &[17, 1021, 3, 409, 2053, 89, 1, 733],
        };
        let mut rest = bytes;
        sizes.iter().cycle().map_while(move |size| {
            let (chunk, after) = rest.split_at_checked(*size).unwrap_or((rest, &[]));
            rest = after;
            (!chunk.is_empty()).then_some(chunk)
        })
    }
}

pub fn rules(protocol: Protocol) -> Rules {
    let dialects = Dialects::builtin().expect("the built-in dialects are valid");
    dialects.generic(protocol).expect("every protocol has a generic dialect").rules(None).clone()
}

/// Decodes bytes to blocks, as every user of aside does.
#[inline(never)]
pub fn measured_full(protocol: Protocol, rules: &Rules, chunking: Chunking, bytes: &[u8]) -> Reply {
    let mut fold = Fold::new();
    let mut decoder = Decoder::new(protocol, rules);
    for chunk in chunking.chunks(bytes) {
        decoder.push(chunk, &mut fold);
    }
    decoder.finish(&mut fold).expect("a generated stream is understood");
    fold.finish()
}

/// Does the minimum work of any decoder.
#[inline(never)]
pub fn measured_floor(protocol: Protocol, chunking: Chunking, bytes: &[u8]) -> (String, String) {
    baseline_decoder::decode(protocol, chunking, bytes)
}
