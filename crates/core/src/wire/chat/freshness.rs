//! What is new in a delta that may repeat what came before.

use crate::dialect::DeltaMode;

#[derive(Debug, Default)]
pub(super) struct Freshness {
    mode: DeltaMode,
    seen: String,
    habit: Habit,
}

/// What a server under [`DeltaMode::Auto`] has shown itself to do.
#[derive(Debug, Default, PartialEq, Eq)]
enum Habit {
    #[default]
    Unknown,
    Cumulative,
    Delta,
}

impl Freshness {
    pub(super) fn new(mode: DeltaMode) -> Freshness {
        Freshness { mode, ..Freshness::default() }
    }

    /// Every delta is new; its text need not be looked at.
    pub(super) fn is_plain(&self) -> bool {
        self.mode == DeltaMode::Delta || self.habit == Habit::Delta
    }

    pub(super) fn new_part<'t>(&mut self, text: &'t str) -> &'t str {
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
            DeltaMode::Auto => self.guess(text),
        }
    }

    fn guess<'t>(&mut self, text: &'t str) -> &'t str {
        if self.habit == Habit::Delta {
            return text;
        }
        let rest = text.strip_prefix(self.seen.as_str());
        match rest {
            Some(rest) if self.habit == Habit::Cumulative || !rest.is_empty() => {
                if !self.seen.is_empty() {
                    self.habit = Habit::Cumulative;
                }
                self.seen.push_str(rest);
                rest
            }
            // A first repeat may be a word said twice.
            Some(_) => {
                self.seen.push_str(text);
                text
            }
            None => {
                if !self.seen.is_empty() && self.habit == Habit::Unknown {
                    self.habit = Habit::Delta;
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
            let mut freshness = Freshness::new(*mode);
            let got: String = deltas.iter().map(|delta| freshness.new_part(delta)).collect();
            assert_eq!(got, *expected, "{mode:?} {deltas:?}");
        }
    }
}
