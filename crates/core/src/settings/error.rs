//! Errors for invalid settings: what is wrong, and what is valid.

use super::registry::{ALIASES, SettingKey};

/// An invalid setting. Nothing was changed. The text lists the valid values
/// (ERR-001).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}; {}", self.what(), self.hint())]
#[non_exhaustive]
pub enum SettingError {
    /// No setting has this name.
    UnknownKey {
        /// The name as given.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// The setting does not take this value.
    BadValue {
        /// The name of the setting.
        name: &'static str,
        /// The value as given, shortened if it is long.
        given: String,
        /// The valid values, in words.
        valid: String,
    },
    /// `K=V` without the `=`.
    NoValue {
        /// The text as given.
        text: String,
    },
}

/// How much of a value is quoted.
const QUOTED: usize = 200;

impl SettingError {
    pub(super) fn unknown(name: &str) -> SettingError {
        SettingError::UnknownKey { name: quoted(name), nearest: nearest(name) }
    }

    pub(super) fn bad_value(name: &'static str, given: &str, valid: String) -> SettingError {
        SettingError::BadValue { name, given: quoted(given), valid }
    }

    /// What is wrong, without the remedy.
    pub fn what(&self) -> String {
        match self {
            SettingError::UnknownKey { name, .. } => format!("unknown setting `{name}`"),
            SettingError::BadValue { name, given, .. } => format!("`{name}` cannot be `{given}`"),
            SettingError::NoValue { text } => format!("`{text}` gives no value"),
        }
    }

    /// What is valid instead.
    pub fn hint(&self) -> String {
        match self {
            SettingError::UnknownKey { name, nearest } => {
                let names: Vec<&str> = SettingKey::ALL.iter().map(|key| key.name()).collect();
                let meant = || nearest.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
                let meant = config_table(name).unwrap_or_else(meant);
                format!("{meant}the settings are: {}", names.join(", "))
            }
            SettingError::BadValue { valid, .. } => format!("use {valid}"),
            SettingError::NoValue { .. } => "write it as KEY=VALUE".to_owned(),
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    if text.len() <= QUOTED {
        return text.to_owned();
    }
    let mut end = QUOTED;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Where to write a key of config.toml that is not a setting.
fn config_table(name: &str) -> Option<String> {
    let (table, key) = name.split_once('.')?;
    let instead = match (table, key) {
        ("tools", "mode") => "; --mode and /mode set it for a run",
        ("permissions", _) => "; /permissions lists the rules",
        ("tools" | "providers" | "mcp" | "keys" | "serve", _) => "",
        _ => return None,
    };
    Some(format!("it is `{key}` in the table `[{table}]` of config.toml{instead}; "))
}

/// The most similar name, including aliases. A name without a prefix is
/// compared with the last components.
fn nearest(given: &str) -> Option<&'static str> {
    let wanted = given.to_lowercase();
    // Larger distances are not typos.
    let allowed = 1 + wanted.chars().count().min(QUOTED) / 4;
    let distance_to = |name: &str| {
        let name = name.to_lowercase();
        let last = name.rsplit('.').next().filter(|_| !wanted.contains('.')).map(|last| distance(&wanted, last));
        last.into_iter().chain([distance(&wanted, &name)]).min().unwrap_or(usize::MAX)
    };
    if wanted.len() > QUOTED {
        return None;
    }
    let names = SettingKey::ALL.iter().map(|key| key.name()).chain(ALIASES.iter().map(|alias| alias.name));
    let scored = names.map(|name| (distance_to(name), name));
    // The first of equals wins: the table is ordered by use.
    let best = scored.reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.filter(|(distance, _)| *distance <= allowed).map(|(_, name)| name)
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut left = i + 1;
        let mut above_left = i;
        let mut next = vec![left];
        for (to, above) in b.chars().zip(row.iter().copied().skip(1)) {
            left = (above_left + usize::from(from != to)).min(left + 1).min(above + 1);
            above_left = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_letters() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("abc", "abc", 0), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_mistyped_name_finds_the_one_that_was_meant() {
        #[rustfmt::skip]
        let cases = [
            ("reasoning.efort",           Some("reasoning.effort")),
            ("reasoning.includeincontext", Some("reasoning.includeInContext")),
            ("effort",                    Some("reasoning.effort")),
            ("temprature",                Some("request.temperature")),
            ("show_thnking",              Some("show_thinking")),
            ("context.compact",           Some("context.compactAt")),
            ("volume.of.the.speakers",    None),
            ("",                          None),
        ];
        for (given, expected) in cases {
            assert_eq!(nearest(given), expected, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000)), None);
    }

    #[test]
    fn a_key_of_another_table_of_the_config_is_told_where_it_belongs() {
        #[rustfmt::skip]
        let cases = [
            ("tools.mode",        "it is `mode` in the table `[tools]` of config.toml; --mode and /mode set it for a run; the settings are: "),
            ("tools.confine",     "it is `confine` in the table `[tools]` of config.toml; the settings are: "),
            ("permissions.shell", "it is `shell` in the table `[permissions]` of config.toml; /permissions lists the rules; the settings are: "),
            ("volume.of",         "the settings are: "),
        ];
        for (name, expected) in cases {
            let hint = SettingError::unknown(name).hint();
            assert!(hint.starts_with(expected), "{name}: {hint}");
        }
    }

    #[test]
    fn an_error_quotes_only_the_start_of_a_long_value() {
        let error = SettingError::bad_value("reasoning.effort", &"é".repeat(10_000), "high".to_owned());
        assert!(error.to_string().len() < 300);
    }
}
