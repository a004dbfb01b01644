//! Output of any length in bounded memory: how it began and how it ended.

use std::collections::VecDeque;

/// The head and the tail of what was pushed, and how much lies between.
#[derive(Debug)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// For each of the two.
    most: usize,
    lost: u64,
}

impl Kept {
    /// Of at most so many bytes.
    pub fn new(most: usize) -> Kept {
        Kept { head: Vec::new(), tail: VecDeque::new(), most: most / 2, lost: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.most - self.head.len();
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        // What would be pushed out at once need not go in.
        let (passed, rest) = rest.split_at_checked(rest.len().saturating_sub(self.most)).unwrap_or((&[], rest));
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most);
        self.tail.drain(..over);
        self.tail.extend(rest);
        self.lost += passed.len() as u64 + over as u64;
    }

    /// As text. What is no UTF-8 is replaced, and a cut says how much it took.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.lost == 0 {
            return lossy(&[self.head.as_slice(), &tail].concat());
        }
        let (head, broken_head) = until_whole_character(&self.head);
        let (broken_tail, tail) = from_whole_character(&tail);
        let lost = self.lost + broken_head as u64 + broken_tail as u64;
        format!("{}\n[… {lost} bytes left out …]\n{}", lossy(head), lossy(tail))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Leaves off a character that the cut went through, and says how many bytes
/// of it there were.
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

/// The first characters of a line that may be very long and no UTF-8, without
/// its end.
pub(crate) fn bytes_of_line(line: &[u8], most: usize) -> String {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let line = line.get(..end).unwrap_or(line);
    // A character has at most four bytes, or is one byte that stands for none.
    let (beginning, rest) = line.split_at_checked(most * 4 + 4).unwrap_or((line, &[]));
    let text = String::from_utf8_lossy(beginning);
    let shown = match text.char_indices().nth(most) {
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
        let whole: Vec<u8> = (b'a'..=b'z').collect();
        for size in [1, 2, 3, 5, 7, 26] {
            let mut kept = Kept::new(8);
            whole.chunks(size).for_each(|piece| kept.push(piece));
            assert_eq!(kept.text(), "abcd\n[… 18 bytes left out …]\nwxyz", "pieces of {size}");
        }
        let mut kept = Kept::new(8);
        kept.push(b"abcdefgh");
        assert_eq!(kept.text(), "abcdefgh");
    }

    #[test]
    fn l4_a_cut_does_not_go_through_a_character() {
        let mut kept = Kept::new(10);
        kept.push("aaaaé".as_bytes());
        kept.push("bbbbbbbbbb".as_bytes());
        kept.push("€dddd".as_bytes());
        // Of `é` and `€` one byte each would have been kept.
        assert_eq!(kept.text(), "aaaa\n[… 15 bytes left out …]\ndddd");
    }

    #[test]
    fn a_long_line_says_that_it_is_cut() {
        let line = |text: &str, most| bytes_of_line(text.as_bytes(), most);
        assert_eq!(line("short\r\n", 10), "short");
        assert_eq!(line("ééééé", 3), "ééé [… 4 bytes of this line left out]");
        assert_eq!(line(&"é".repeat(1000), 3), "ééé [… 1994 bytes of this line left out]");
        assert_eq!(bytes_of_line(b"a\xffb", 10), "a\u{fffd}b");
    }
}
