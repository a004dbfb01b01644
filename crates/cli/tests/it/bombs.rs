//! Small bodies that unpack to 100 MB, made here, so that no program needs to be installed.

/// The least that each of them unpacks to.
const UNPACKED: usize = 100 << 20;

/// Each encoding, and its bomb.
pub(crate) fn bombs() -> [(&'static str, Vec<u8>); 4] {
    let deflated = deflate();
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    gzip.extend(&deflated);
    let mut zlib = vec![0x78, 0x9c];
    zlib.extend(&deflated);
    [("gzip", gzip), ("deflate", zlib), ("zstd", zstd()), ("br", brotli())]
}

/// Bits of a stream, the lowest of each byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    n_used: usize,
}

impl Bits {
    fn put(&mut self, value: u32, n_bits: usize) {
        for at in 0..n_bits {
            if self.n_used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if value >> at & 1 == 1 {
                *self.bytes.last_mut().unwrap() |= 1 << (self.n_used % 8);
            }
            self.n_used += 1;
        }
    }

    /// A Huffman code, whose highest bit comes first.
    fn put_code(&mut self, code: u32, n_bits: usize) {
        (0..n_bits).rev().for_each(|at| self.put(code >> at & 1, 1));
    }
}

/// One zero, copied 258 at a time with the fixed codes.
fn deflate() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(1, 1);
    bits.put(1, 2);
    bits.put_code(0b0011_0000, 8);
    for _ in 0..UNPACKED / 258 + 1 {
        bits.put_code(0b1100_0101, 8);
        bits.put_code(0, 5);
    }
    bits.put_code(0, 7);
    bits.bytes
}

/// Blocks of one repeated byte.
fn zstd() -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    // The magic number, no options, a window of 128 KiB.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let n_blocks = UNPACKED / BLOCK + 1;
    for at in 1..=n_blocks {
        let header = BLOCK << 3 | 1 << 1 | usize::from(at == n_blocks);
        bytes.extend(&header.to_le_bytes()[..3]);
        bytes.push(b' ');
    }
    bytes
}

/// Meta-blocks of one literal and one copy of almost 16 MiB.
fn brotli() -> Vec<u8> {
    const LENGTH: u32 = 1 << 24;
    let mut bits = Bits::default();
    // A window of 16 MiB: 24 bits.
    bits.put(0b1111, 4);
    for at in 0..UNPACKED as u32 / LENGTH + 1 {
        // Not the last, six digits of length, compressed.
        bits.put(0, 1);
        bits.put(2, 2);
        bits.put(LENGTH - 1, 24);
        bits.put(0, 1);
        // One type of each kind of block, no direct distances, context mode 0, one tree of each kind.
        bits.put(0, 3);
        bits.put(0, 6);
        bits.put(0, 2);
        bits.put(0, 2);
        // Codes of one symbol each: the literal, "insert 1 and copy 2118 or more", and the distance. The last distance
        // is 4 at first; symbol 8 is three less than the last one, and symbol 0 is the same again.
        let distance = if at == 0 { 8 } else { 0 };
        for (symbol, n_bits) in [(u32::from(b' '), 8), (399, 10), (distance, 6)] {
            bits.put(1, 2);
            bits.put(0, 2);
            bits.put(symbol, n_bits);
        }
        bits.put(LENGTH - 1 - 2118, 24);
    }
    // An empty last meta-block.
    bits.put(3, 2);
    bits.bytes
}
