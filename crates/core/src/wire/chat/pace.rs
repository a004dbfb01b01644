//! Text in the deltas that a dialect's reader expects: the next piece, or all
//! of it so far.

use crate::dialect::DeltaMode;

#[derive(Debug, Default)]
pub(super) struct Pace {
    mode: DeltaMode,
    /// All of it, or what a reader that guesses has seen.
    said: String,
    /// A reader that guesses has made up its mind.
    settled: bool,
}

impl Pace {
    pub(super) fn new(mode: DeltaMode) -> Pace {
        Pace { mode, ..Pace::default() }
    }

    /// Hands out the deltas that a piece becomes.
    pub(super) fn deltas(&mut self, piece: &str, mut take: impl FnMut(&str)) {
        match self.mode {
            DeltaMode::Delta => take(piece),
            DeltaMode::Auto if self.settled => take(piece),
            DeltaMode::Cumulative => {
                self.said.push_str(piece);
                take(&self.said);
            }
            DeltaMode::Auto => self.unmistakable(piece, take),
            DeltaMode::Dedupe => {
                // A piece that repeats the last one would be dropped; its two
                // parts are not, unless they are the same letter.
                let half = (1..piece.len()).find(|at| piece.is_char_boundary(*at));
                match half.filter(|_| self.said == piece) {
                    Some(at) => {
                        let (first, second) = piece.split_at(at);
                        take(first);
                        take(second);
                        second.clone_into(&mut self.said);
                    }
                    None => {
                        take(piece);
                        piece.clone_into(&mut self.said);
                    }
                }
            }
        }
    }

    /// A delta that begins with everything said so far reads as a repetition,
    /// unless it is nothing else.
    fn unmistakable(&mut self, piece: &str, mut take: impl FnMut(&str)) {
        let mut rest = piece;
        while !self.said.is_empty() && rest.len() > self.said.len() && rest.starts_with(self.said.as_str()) {
            let (again, after) = rest.split_at(self.said.len());
            take(again);
            self.said.push_str(again);
            rest = after;
        }
        if rest.is_empty() {
            return;
        }
        take(rest);
        self.settled = !self.said.is_empty() && self.said != rest;
        self.said.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chat::freshness::Freshness;

    #[test]
    fn a_reader_of_the_same_mode_reads_what_was_said() {
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
                let (mut pace, mut reader, mut read) = (Pace::new(mode), Freshness::new(mode), String::new());
                for piece in pieces {
                    pace.deltas(piece, |delta| read.push_str(reader.new_part(delta)));
                }
                assert_eq!(read, pieces.concat(), "{mode:?} {pieces:?}");
            }
        }
    }
}
