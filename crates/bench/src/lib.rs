//! What decoding costs, against a floor measured in the same run.
//!
//! `generate` makes streams, `floor` does the least that any decoder must,
//! `full` is aside, and `meter` counts what both allocate.

pub mod floor;
pub mod frames;
pub mod generate;
pub mod meter;
pub mod rebuild;
pub mod serve;

use aside_core::block::Reply;
use aside_core::dialect::{Dialects, Rules};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;

/// How a body is cut into reads.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// About one packet.
    Even,
    /// Sizes that fall everywhere.
    Odd,
}

impl Cut {
    pub fn chunks(self, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let sizes: &'static [usize] = match self {
            Cut::Even => &[1400],
            Cut::Odd => &[17, 1021, 3, 409, 2053, 89, 1, 733],
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

/// Bytes to blocks, as every user of aside decodes.
#[inline(never)]
pub fn measured_full(protocol: Protocol, rules: &Rules, cut: Cut, bytes: &[u8]) -> Reply {
    let mut fold = Fold::new();
    let mut decoder = Decoder::new(protocol, rules);
    for chunk in cut.chunks(bytes) {
        decoder.push(chunk, &mut fold);
    }
    decoder.finish(&mut fold).expect("a generated stream is understood");
    fold.finish()
}

/// The least that a decoder must do.
#[inline(never)]
pub fn measured_floor(protocol: Protocol, cut: Cut, bytes: &[u8]) -> (String, String) {
    floor::decode(protocol, cut, bytes)
}
