//! Extracts the new text from deltas that may repeat earlier text.

use crate::dialect::DeltaMode;

#[derive(Debug, Default)]
pub(super) struct DeltaModeReader {
    mode: DeltaMode,
    seen: String,
    observed: ObservedMode,
}

/// The mode that a server under [`DeltaMode::Auto`] appears to use.
#[derive(Debug, Default, PartialEq, Eq)]
enum ObservedMode {
    #[default]
    Unknown,
    Cumulative,
    Delta,
}

impl DeltaModeReader {
    pub(super) fn new(mode: DeltaMode) -> DeltaModeReader {
        DeltaModeReader { mode, ..DeltaModeReader::default() }
    }

    /// Every delta is new text, so it need not be inspected.
    pub(super) fn is_incremental(&self) -> bool {
        self.mode == DeltaMode::Delta || self.observed == ObservedMode::Delta
    }

    pub(super) fn new_text<'t>(&mut self, text: &'t str) -> &'t str {
        match self.mode {
            DeltaMode::Delta => text,
            DeltaMode::Dedupe => {
                if self.seen == text {
                    return "";
                }
                text.clone_into(&mut self.seen);
                text
            }
            DeltaMode::Cumulative => match text.strip_prefix(self.seen.as_str()) {
                Some(rest) => {
                    self.seen.push_str(rest);
                    rest
                }
                None => {
                    self.seen.push_str(text);
                    text
                }
            },
            DeltaMode::Auto => self.detect_mode(text),
        }
    }

    fn detect_mode<'t>(&mut self, text: &'t str) -> &'t str {
        if self.observed == ObservedMode::Delta {
            return text;
        }
        let rest = text.strip_prefix(self.seen.as_str());
        match rest {
            Some(rest) if self.observed == ObservedMode::Cumulative || !rest.is_empty() => {
                if !self.seen.is_empty() {
                    self.observed = ObservedMode::Cumulative;
                }
                self.seen.push_str(rest);
                rest
            }
            // The first repetition may be a word that really occurs twice.
            Some(_) => {
                self.seen.push_str(text);
                text
            }
            None => {
                if !self.seen.is_empty() && self.observed == ObservedMode::Unknown {
                    self.observed = ObservedMode::Delta;
                    self.seen = String::new();
                } else {
                    self.seen.push_str(text);
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_on_the_same_words() {
        #[rustfmt::skip]
        let cases: &[(DeltaMode, &[&str], &str)] = &[
            (DeltaMode::Delta,      &["ha", "ha", "!"],                    "haha!"),
            (DeltaMode::Dedupe,     &["ha", "ha", "!"],                    "ha!"),
            (DeltaMode::Cumulative, &["Look", "Look up", "Look up."],      "Look up."),
            (DeltaMode::Auto,       &["Look", "Look up", "Look up."],      "Look up."),
            (DeltaMode::Auto,       &["Look", "Look up", "Look up"],       "Look up"),
            (DeltaMode::Auto,       &["Look", " up", "."],                 "Look up."),
            (DeltaMode::Auto,       &["ha", "ha", "!"],                    "haha!"),
        ];
        for (mode, deltas, expected) in cases {
            let mut reader = DeltaModeReader::new(*mode);
            let got: String = deltas.iter().map(|delta| reader.new_text(delta)).collect();
            assert_eq!(got, *expected, "{mode:?} {deltas:?}");
        }
    }
}
