//! The settings with a fixed set of values, as enums.

use std::fmt;
use std::str::FromStr;

/// A word that is not among the valid values of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`; use {}", one_of(words))]
pub struct UnknownChoice {
    what: &'static str,
    given: String,
    words: &'static [&'static str],
}

/// `a, b or c`.
pub(super) fn one_of(words: &[&str]) -> String {
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// Declares an enum together with its words, so that they stay in sync.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$on_variant:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$on_variant])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All values, in the order of help texts.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// The words for all values, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in files and on the command line.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownChoice;

            fn from_str(word: &str) -> Result<$name, UnknownChoice> {
                let found = $name::ALL.iter().copied().find(|one| one.as_str() == word);
                found.ok_or_else(|| UnknownChoice { what: $what, given: word.to_owned(), words: $name::WORDS })
            }
        }
    };
}

choices! {
    /// The effort levels, lowest first. The setting also accepts `none`, which
    /// is not a level: it switches thinking off, so no level is ever lowered to
    /// it.
    #[derive(PartialOrd, Ord)]
    Effort, "effort" {
        /// `minimal`, the lowest level.
        Minimal = "minimal",
        /// `low`
        Low = "low",
        /// `medium`
        Medium = "medium",
        /// `high`
        High = "high",
        /// `xhigh`, above high.
        Xhigh = "xhigh",
        /// `max`, the highest level.
        Max = "max",
    }
}

choices! {
    /// How the screen calls a user who looks elsewhere.
    #[derive(Default)]
    Notify, "notification" {
        /// Not at all.
        Off = "off",
        /// Rings the terminal's bell.
        #[default]
        Bell = "bell",
        /// A notification of the terminal, as in iTerm2.
        Osc9 = "osc9",
        /// A notification of the terminal, as in rxvt.
        Osc777 = "osc777",
    }
}

choices! {
    /// The colours of the screen.
    #[derive(Default)]
    ScreenTheme, "theme" {
        /// For the background that the terminal reports.
        #[default]
        Auto = "auto",
        /// For a dark background.
        Dark = "dark",
        /// For a light background.
        Light = "light",
    }
}

choices! {
    /// Which stored thinking is dropped before any other rule applies.
    #[derive(Default)]
    StripThinking, "strip policy" {
        /// All of it, except that of an open tool loop.
        All = "all",
        /// Keeps the thinking of the most recent user turn that has any.
        AllButLast = "allButLast",
        /// None of it.
        #[default]
        None = "none",
    }
}

choices! {
    /// How thinking is sent back. Protocols with native thinking blocks always
    /// use those.
    #[derive(Default)]
    ThinkingFormat, "format" {
        /// The provider's own blocks or items.
        Native = "native",
        /// Text in a field next to the content.
        #[default]
        Field = "field",
    }
}

choices! {
    /// The value of the field if there is no thinking for it.
    #[derive(Default)]
    SendEmpty, "filler" {
        /// No field at all.
        #[default]
        Omit = "omit",
        /// An empty string.
        Empty = "empty",
        /// One provider refuses the empty string but accepts a space.
        Space = "space",
    }
}

choices! {
    /// Whether tags in the answer text are parsed as thinking.
    #[derive(Default)]
    TagsMode, "tag handling" {
        /// As the dialect says.
        #[default]
        Auto = "auto",
        /// Tags are text.
        Off = "off",
        /// The template opens the tag, so only the closing tag arrives.
        Preopened = "preopened",
    }
}

choices! {
    /// Which summary of the thinking is requested, where a provider offers one.
    #[derive(Default)]
    SummaryMode, "summary" {
        /// The provider chooses.
        #[default]
        Auto = "auto",
        /// A short one.
        Concise = "concise",
        /// A long one.
        Detailed = "detailed",
        /// No summary.
        None = "none",
    }
}

choices! {
    /// How thinking is displayed.
    #[derive(Default)]
    ThinkingDisplay, "display" {
        /// Always expanded.
        Full = "full",
        /// Expanded while it streams, folded when it is done.
        #[default]
        Live = "live",
        /// Always folded.
        Collapsed = "collapsed",
        /// Not shown.
        Off = "off",
    }
}

/// The values of `reasoning.effort`: the levels and `none`.
pub(super) const EFFORT_WORDS: &[&str] = &["minimal", "low", "medium", "high", "xhigh", "max", NO_EFFORT];

pub(super) const NO_EFFORT: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_refused_with_the_valid_ones() {
        let error = "xml".parse::<ThinkingFormat>().unwrap_err();
        assert_eq!(error.to_string(), "unknown format `xml`; use native or field");
        let error = "none".parse::<Effort>().unwrap_err();
        assert_eq!(error.to_string(), "unknown effort `none`; use minimal, low, medium, high, xhigh or max");
        // Words must match exactly. A near miss is an error, not a guess.
        assert!("allbutlast".parse::<StripThinking>().is_err());
    }

    #[test]
    fn every_word_reads_back_as_itself() {
        fn check<T: FromStr + fmt::Display>(words: &[&str]) {
            for word in words {
                assert_eq!(word.parse::<T>().ok().map(|value| value.to_string()).as_deref(), Some(*word));
            }
        }
        check::<Effort>(Effort::WORDS);
        check::<Notify>(Notify::WORDS);
        check::<ScreenTheme>(ScreenTheme::WORDS);
        check::<StripThinking>(StripThinking::WORDS);
        check::<ThinkingFormat>(ThinkingFormat::WORDS);
        check::<SendEmpty>(SendEmpty::WORDS);
        check::<TagsMode>(TagsMode::WORDS);
        check::<SummaryMode>(SummaryMode::WORDS);
        check::<ThinkingDisplay>(ThinkingDisplay::WORDS);
    }

    #[test]
    fn the_setting_accepts_every_level_and_none() {
        let (none, rungs) = EFFORT_WORDS.split_last().unwrap();
        assert_eq!((*none, rungs), (NO_EFFORT, Effort::WORDS));
    }

    #[test]
    fn effort_levels_are_ordered() {
        use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
        assert!(Minimal < Low && Low < Medium && Medium < High && High < Xhigh && Xhigh < Max);
    }
}
