//! Watches what the program writes to its terminal, and when.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::program::{ThreadTimes, thread_times};

/// The first letter of the server's deltas. Each letter occurs once, so seeing it
/// means that its delta is visible.
pub(crate) const DELTAS: u32 = 0x4e00;
/// The first letter that is typed.
pub(crate) const KEYS: u32 = 0xac00;
/// The letter in the last answer of the resumed session.
pub(crate) const LAST_ANSWER: u32 = 0xd7a3;

/// The end of a synchronized update, which ends a frame.
const FRAME_END: u64 = u64::from_be_bytes(*b"\x1b[?2026l");
/// The query for the terminal type, which follows the one for the background color.
const ASKED: u64 = 0x1b_5b_63;
const ANSWER: &[u8] = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?62;22c";

#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnFrame {
    pub(crate) at: Instant,
    /// The CPU time of the drawing thread so far.
    pub(crate) times: ThreadTimes,
}

#[derive(Debug, Default)]
pub(crate) struct ScreenLog {
    pub(crate) frames: Vec<DrawnFrame>,
    /// When each letter was first seen.
    pub(crate) letters: HashMap<u32, Instant>,
    pub(crate) bytes: usize,
}

pub(crate) type SharedOutput = Arc<Mutex<ScreenLog>>;

pub(crate) fn lock_output(output: &SharedOutput) -> MutexGuard<'_, ScreenLog> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until the program ends.
pub(crate) fn watch(mut terminal: File, pid: u32, output: &SharedOutput) {
    let mut bytes = [0; 1 << 16];
    let mut last: u64 = 0;
    // Reading fails once the other end of the terminal is closed.
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let now = Instant::now();
        let mut output = lock_output(output);
        output.bytes += count;
        for byte in &bytes[..count] {
            last = last << 8 | u64::from(*byte);
            if last == FRAME_END {
                output.frames.push(DrawnFrame { at: now, times: thread_times(pid, pid) });
            } else if last & 0xff_ffff == ASKED {
                terminal.write_all(ANSWER).ok();
            } else if let Some(letter) = ending_letter(last) {
                output.letters.entry(letter).or_insert(now);
            }
        }
    }
}

/// The three-byte letter that ends here, if any.
fn ending_letter(last: u64) -> Option<u32> {
    let is_letter = last & 0xf0_c0_c0 == 0xe0_80_80;
    let bits = |shift: u32, mask: u64| ((last >> shift) & mask) as u32;
    is_letter.then(|| bits(16, 0x0f) << 12 | bits(8, 0x3f) << 6 | bits(0, 0x3f))
}
