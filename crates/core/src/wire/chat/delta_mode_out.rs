//! Writes text in the delta mode that the dialect's reader expects: the next
//! fragment, or all text so far.

use crate::dialect::DeltaMode;

#[derive(Debug, Default)]
pub(super) struct DeltaModeWriter {
    mode: DeltaMode,
    /// All text so far, or what an `Auto` reader remembers of it.
    written: String,
    /// An `Auto` reader has recognised the mode.
    decided: bool,
}

impl DeltaModeWriter {
    pub(super) fn new(mode: DeltaMode) -> DeltaModeWriter {
        DeltaModeWriter { mode, ..DeltaModeWriter::default() }
    }

    /// Passes on the deltas that make up a fragment.
    pub(super) fn deltas(&mut self, piece: &str, mut take: impl FnMut(&str)) {
        match self.mode {
            DeltaMode::Delta => take(piece),
            DeltaMode::Auto if self.decided => take(piece),
            DeltaMode::Cumulative => {
                self.written.push_str(piece);
                take(&self.written);
            }
            DeltaMode::Auto => self.write_unambiguous(piece, take),
            DeltaMode::Dedupe => {
                // A fragment equal to the last one would be dropped, so it is
                // split in two; that fails only if both halves are the same
                // character.
                let half = (1..piece.len()).find(|at| piece.is_char_boundary(*at));
                match half.filter(|_| self.written == piece) {
                    Some(at) => {
                        let (first, second) = piece.split_at(at);
                        take(first);
                        take(second);
                        second.clone_into(&mut self.written);
                    }
                    None => {
                        take(piece);
                        piece.clone_into(&mut self.written);
                    }
                }
            }
        }
    }

    /// A delta that begins with all text so far would look like a repetition,
    /// unless it is nothing but that text.
    fn write_unambiguous(&mut self, piece: &str, mut take: impl FnMut(&str)) {
        let mut rest = piece;
        while !self.written.is_empty() && rest.len() > self.written.len() && rest.starts_with(self.written.as_str()) {
            let (again, after) = rest.split_at(self.written.len());
            take(again);
            self.written.push_str(again);
            rest = after;
        }
        if rest.is_empty() {
            return;
        }
        take(rest);
        self.decided = !self.written.is_empty() && self.written != rest;
        self.written.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chat::delta_mode_in::DeltaModeReader;

    #[test]
    fn a_reader_of_the_same_mode_reads_what_was_written() {
        let texts: [&[&str]; 6] = [
            &["Look", " up", "."],
            &["a", "ab", "abc"],
            &["a", "aab"],
            &["ha", "ha", "ha!"],
            &["a", "aaaaa", "a"],
            &["éé!", "éé!"],
        ];
        for mode in [DeltaMode::Delta, DeltaMode::Auto, DeltaMode::Cumulative, DeltaMode::Dedupe] {
            for pieces in texts {
                let (mut writer, mut reader, mut read) =
                    (DeltaModeWriter::new(mode), DeltaModeReader::new(mode), String::new());
                for piece in pieces {
                    writer.deltas(piece, |delta| read.push_str(reader.new_text(delta)));
                }
                assert_eq!(read, pieces.concat(), "{mode:?} {pieces:?}");
            }
        }
    }
}
