//! Random bytes from the operating system.

use ring::rand::{SecureRandom, SystemRandom};

/// Without random numbers nothing can be encrypted or named, so this ends the
/// program instead of continuing with predictable ones.
#[expect(clippy::expect_used, reason = "the operating system always has random numbers, once it has started")]
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system's random numbers");
    bytes
}

/// Random letters and digits.
pub(crate) fn base62(n: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = String::with_capacity(n);
    while out.len() < n {
        // The bytes from 248 on would make the first digits more likely.
        let usable = bytes::<32>().into_iter().filter(|byte| *byte < 248);
        let digits = usable.filter_map(|byte| DIGITS.get(usize::from(byte) % 62)).map(|digit| char::from(*digit));
        out.extend(digits.take(n - out.len()));
    }
    out
}
