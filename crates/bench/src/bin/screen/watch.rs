//! What the program writes to its terminal, and when.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::program::{Ran, ran};

/// The letters of the server's deltas; each comes once, so seeing it is
/// seeing the delta.
pub(crate) const DELTAS: u32 = 0x4e00;
/// The letters that are typed.
pub(crate) const KEYS: u32 = 0xac00;
/// The letter in the last answer of the session that is resumed.
pub(crate) const LAST_ANSWER: u32 = 0xd7a3;

/// The end of a synchronized update, which is the end of a frame.
const FRAME_END: u64 = u64::from_be_bytes(*b"\x1b[?2026l");
/// The question for the kind of terminal, behind the one for its background.
const ASKED: u64 = 0x1b_5b_63;
const ANSWER: &[u8] = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?62;22c";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) at: Instant,
    /// The thread that draws, so far.
    pub(crate) ran: Ran,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) frames: Vec<Frame>,
    /// When a letter was seen first.
    pub(crate) letters: HashMap<u32, Instant>,
    pub(crate) bytes: usize,
}

pub(crate) type Shared = Arc<Mutex<Seen>>;

pub(crate) fn look(seen: &Shared) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until the program is gone.
pub(crate) fn watch(mut terminal: File, pid: u32, seen: &Shared) {
    let mut bytes = [0; 1 << 16];
    let mut last: u64 = 0;
    // An error is how a terminal says that nobody holds its other end.
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let now = Instant::now();
        let mut seen = look(seen);
        seen.bytes += count;
        for byte in &bytes[..count] {
            last = last << 8 | u64::from(*byte);
            if last == FRAME_END {
                seen.frames.push(Frame { at: now, ran: ran(pid, pid) });
            } else if last & 0xff_ffff == ASKED {
                terminal.write_all(ANSWER).ok();
            } else if let Some(letter) = letter(last) {
                seen.letters.entry(letter).or_insert(now);
            }
        }
    }
}

/// A letter of three bytes that ends here.
fn letter(last: u64) -> Option<u32> {
    let is_letter = last & 0xf0_c0_c0 == 0xe0_80_80;
    let bits = |shift: u32, mask: u64| ((last >> shift) & mask) as u32;
    is_letter.then(|| bits(16, 0x0f) << 12 | bits(8, 0x3f) << 6 | bits(0, 0x3f))
}
