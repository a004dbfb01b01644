//! Random bytes from the operating system.

use std::cell::RefCell;

use ring::rand::{SecureRandom, SystemRandom};

/// How many bytes each thread asks for at once. A request needs several short values, and asking for each would cost
/// more than using it.
const POOL_BYTES: usize = 1024;

/// Bytes that were not used yet are at the end.
struct Pool {
    bytes: [u8; POOL_BYTES],
    n_used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], n_used: POOL_BYTES }) };
}

impl Pool {
    /// Bytes that are not in the pool any more.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        if self.n_used + N > POOL_BYTES {
            self.bytes = from_system();
            self.n_used = 0;
        }
        let mut taken = [0; N];
        for (to, from) in taken.iter_mut().zip(self.bytes.iter_mut().skip(self.n_used)) {
            *to = std::mem::take(from);
        }
        self.n_used += N;
        taken
    }
}

/// Random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    if N > POOL_BYTES { from_system() } else { POOL.with_borrow_mut(Pool::take) }
}

/// Without random numbers nothing can be encrypted or named, so this ends the
/// program instead of continuing with predictable ones.
#[expect(clippy::expect_used, reason = "the operating system always has random numbers, once it has started")]
fn from_system<const N: usize>() -> [u8; N] {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_given_out_twice() {
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(bytes::<12>().to_vec()));
            assert!(seen.insert(bytes::<32>().to_vec()));
            assert!(seen.insert(bytes::<{ POOL_BYTES }>().to_vec()));
            assert!(seen.insert(bytes::<{ POOL_BYTES + 1 }>().to_vec()));
        }
        let other_thread = std::thread::spawn(|| bytes::<32>().to_vec()).join().unwrap();
        assert!(seen.insert(other_thread));
        assert!(seen.iter().all(|value| value.iter().any(|byte| *byte != 0)));
    }
}
