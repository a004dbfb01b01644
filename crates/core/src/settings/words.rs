//! The words a setting may take, where code acts on them.

use std::fmt;
use std::str::FromStr;

/// A word that is none of those a setting takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`; use {}", one_of(words))]
pub struct UnknownWord {
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

/// Declares an enum together with its words, so that the two cannot part.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$on_variant:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$on_variant])* $variant,)+
        }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            pub const WORDS: &'static [&'static str] = &[$($word),+];

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
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<$name, UnknownWord> {
                let found = $name::ALL.iter().copied().find(|one| one.as_str() == word);
                found.ok_or_else(|| UnknownWord { what: $what, given: word.to_owned(), words: $name::WORDS })
            }
        }
    };
}

words! {
    /// How hard to think, as rungs of a ladder. The setting also takes `none`,
    /// which is no rung: it switches thinking off, so nothing can be lowered to it.
    #[derive(PartialOrd, Ord)]
    Effort, "effort" {
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
        Max = "max",
    }
}

words! {
    /// Which stored thinking is dropped before anything else is asked.
    #[derive(Default)]
    Strip, "strip policy" {
        All = "all",
        /// Keeps that of the most recent user turn that has any.
        AllButLast = "allButLast",
        #[default]
        None = "none",
    }
}

words! {
    #[derive(Default)]
    Format, "format" {
        Native = "native",
        #[default]
        Field = "field",
    }
}

words! {
    /// What stands in the field when there is nothing to put there.
    #[derive(Default)]
    SendEmpty, "filler" {
        #[default]
        Omit = "omit",
        Empty = "empty",
        /// One provider refuses the empty string and takes a space.
        Space = "space",
    }
}

words! {
    /// Whether tags in answer text are read as thinking.
    #[derive(Default)]
    TagsMode, "tag handling" {
        #[default]
        Auto = "auto",
        Off = "off",
        /// The template opened the tag itself; only the closing one comes.
        Preopened = "preopened",
    }
}

words! {
    #[derive(Default)]
    Summary, "summary" {
        #[default]
        Auto = "auto",
        Concise = "concise",
        Detailed = "detailed",
        None = "none",
    }
}

words! {
    /// How thinking looks on a screen.
    #[derive(Default)]
    Display, "display" {
        Full = "full",
        /// Unfolded while it streams, folded once it is done.
        #[default]
        Live = "live",
        Collapsed = "collapsed",
        Off = "off",
    }
}

/// What `reasoning.effort` takes: the rungs, and the word that is none of them.
pub(super) const EFFORT_WORDS: &[&str] = &["minimal", "low", "medium", "high", "xhigh", "max", NO_EFFORT];

pub(super) const NO_EFFORT: &str = "none";

impl Effort {
    /// What a model is asked for that has only some of the rungs: the highest
    /// below, else the lowest there is. Without rungs there is nothing to ask.
    pub fn within(self, supported: &[Effort]) -> Option<Effort> {
        let below = supported.iter().copied().filter(|rung| *rung <= self).max();
        below.or_else(|| supported.iter().copied().min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_none_is_refused_with_those_that_are() {
        let error = "xml".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "unknown format `xml`; use native or field");
        let error = "none".parse::<Effort>().unwrap_err();
        assert_eq!(error.to_string(), "unknown effort `none`; use minimal, low, medium, high, xhigh or max");
        // Words are exact; a near miss is told, not guessed.
        assert!("allbutlast".parse::<Strip>().is_err());
    }

    #[test]
    fn every_word_reads_back_as_itself() {
        fn check<T: FromStr + fmt::Display>(words: &[&str]) {
            for word in words {
                assert_eq!(word.parse::<T>().ok().map(|value| value.to_string()).as_deref(), Some(*word));
            }
        }
        check::<Effort>(Effort::WORDS);
        check::<Strip>(Strip::WORDS);
        check::<Format>(Format::WORDS);
        check::<SendEmpty>(SendEmpty::WORDS);
        check::<TagsMode>(TagsMode::WORDS);
        check::<Summary>(Summary::WORDS);
        check::<Display>(Display::WORDS);
    }

    #[test]
    fn the_setting_takes_every_rung_and_none() {
        let (none, rungs) = EFFORT_WORDS.split_last().unwrap();
        assert_eq!((*none, rungs), (NO_EFFORT, Effort::WORDS));
    }

    #[test]
    fn an_effort_a_model_lacks_is_lowered_else_raised_to_the_lowest() {
        use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
        #[rustfmt::skip]
        let cases: &[(&str, Effort, &[Effort], Option<Effort>)] = &[
            ("has it",            High,    &[Low, Medium, High], Some(High)),
            ("lowered",           Max,     &[Low, High],         Some(High)),
            ("lowered past one",  Medium,  &[Xhigh, Low, High],  Some(Low)),
            ("raised to lowest",  Minimal, &[High, Low],         Some(Low)),
            ("no rungs",          High,    &[],                  None),
        ];
        for (name, asked, supported, expected) in cases {
            assert_eq!(asked.within(supported), *expected, "{name}");
        }
        assert!(Minimal < Low && Low < Medium && Medium < High && High < Xhigh && Xhigh < Max);
    }
}
