//! Keeps the head and the tail of output of any length, in bounded memory.

use std::collections::VecDeque;

/// The head and the tail of the output, and the number of bytes omitted between them.
#[derive(Debug)]
pub struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The limit for each of the two.
    max: usize,
    omitted: u64,
    /// The line ends among the omitted bytes.
    omitted_lines: u64,
}

impl BoundedOutput {
    /// Keeps at most this many bytes.
    pub fn new(max: usize) -> BoundedOutput {
        BoundedOutput { head: Vec::new(), tail: VecDeque::new(), max: max / 2, omitted: 0, omitted_lines: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.max - self.head.len();
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        // Skip bytes that would be dropped again at once.
        let (passed, rest) = rest.split_at_checked(rest.len().saturating_sub(self.max)).unwrap_or((&[], rest));
        let over = (self.tail.len() + rest.len()).saturating_sub(self.max);
        let line_ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.omitted_lines += line_ends(passed) + self.tail.drain(..over).filter(|byte| *byte == b'\n').count() as u64;
        self.tail.extend(rest);
        self.omitted += passed.len() as u64 + over as u64;
    }

    /// The output as text, with a note of how many bytes were omitted. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.omitted == 0 {
            return lossy(&[self.head.as_slice(), &tail].concat());
        }
        let (head, broken_head) = until_whole_character(&self.head);
        let (broken_tail, tail) = from_whole_character(&tail);
        let omitted = self.omitted + broken_head as u64 + broken_tail as u64;
        // Front ends read the number of line ends to count the lines of the whole output.
        let lines = match self.omitted_lines {
            0 => String::new(),
            lines => format!(" with {lines} line ends"),
        };
        format!("{}\n[… {omitted} bytes{lines} left out …]\n{}", lossy(head), lossy(tail))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Drops an incomplete character at the end, and returns the number of its bytes.
fn until_whole_character(bytes: &[u8]) -> (&[u8], usize) {
    let begins = bytes.iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80).map_or(0, |back| back + 1);
    let (before, last) = bytes.split_at_checked(bytes.len() - begins).unwrap_or((bytes, &[]));
    let wants = match last.first() {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        Some(_) | None => last.len(),
    };
    if last.len() < wants { (before, last.len()) } else { (bytes, 0) }
}

fn from_whole_character(bytes: &[u8]) -> (usize, &[u8]) {
    let broken = bytes.iter().take(3).take_while(|byte| *byte & 0xC0 == 0x80).count();
    bytes.split_at_checked(broken).map_or((0, bytes), |(_, rest)| (broken, rest))
}

/// The first characters of a line without its line ending. The line may be very long or invalid UTF-8.
pub(crate) fn truncated_line(line: &[u8], max: usize) -> String {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let line = line.get(..end).unwrap_or(line);
    // A character takes at most four bytes; an invalid byte counts as one.
    let (beginning, rest) = line.split_at_checked(max * 4 + 4).unwrap_or((line, &[]));
    let text = String::from_utf8_lossy(beginning);
    let shown = match text.char_indices().nth(max) {
        None if rest.is_empty() => return text.into_owned(),
        None => text.as_ref(),
        Some((end, _)) => text.get(..end).unwrap_or(&text),
    };
    let valid = shown.chars().map(|c| if c == '\u{fffd}' { 1 } else { c.len_utf8() }).sum::<usize>();
    format!("{shown} [… {} bytes of this line left out]", line.len().saturating_sub(valid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l4_the_head_and_the_tail_are_kept_whatever_the_pieces() {
        let all: Vec<u8> = (b'a'..=b'z').collect();
        for size in [1, 2, 3, 5, 7, 26] {
            let mut output = BoundedOutput::new(8);
            all.chunks(size).for_each(|chunk| output.push(chunk));
            assert_eq!(output.text(), "abcd\n[… 18 bytes left out …]\nwxyz", "pieces of {size}");
        }
        let mut output = BoundedOutput::new(8);
        output.push(b"abcdefgh");
        assert_eq!(output.text(), "abcdefgh");
    }

    #[test]
    fn l4_a_cut_does_not_go_through_a_character() {
        let mut output = BoundedOutput::new(10);
        output.push("aaaaé".as_bytes());
        output.push("bbbbbbbbbb".as_bytes());
        output.push("€dddd".as_bytes());
        // One byte of each of `é` and `€` would have been kept.
        assert_eq!(output.text(), "aaaa\n[… 15 bytes left out …]\ndddd");
    }

    #[test]
    fn a_long_line_says_that_it_is_cut() {
        let line = |text: &str, max| truncated_line(text.as_bytes(), max);
        assert_eq!(line("short\r\n", 10), "short");
        assert_eq!(line("ééééé", 3), "ééé [… 4 bytes of this line left out]");
        assert_eq!(line(&"é".repeat(1000), 3), "ééé [… 1994 bytes of this line left out]");
        assert_eq!(truncated_line(b"a\xffb", 10), "a\u{fffd}b");
    }
}
