//! Formats context usage for a status line.

use super::TokenCount;
use crate::dialect::AskRules;
use crate::settings::Settings;

/// The context window: the user's setting, else the dialect's.
pub fn context_limit(settings: &Settings, ask: &AskRules) -> Option<u64> {
    settings.context_limit().or(ask.context_limit)
}

/// `12.3k/200k`. An estimate gets a `~`; an unknown limit is left out.
pub fn format_usage(count: TokenCount, limit: Option<u64>) -> String {
    let about = if count.is_estimate() { "~" } else { "" };
    let limit = limit.map(|limit| format!("/{}", short(limit))).unwrap_or_default();
    format!("{about}{}{limit}", short(count.tokens()))
}

/// One decimal below a hundred, unless it is zero.
fn short(tokens: u64) -> String {
    // `1000k` is written as `1M`.
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_500 => in_units(tokens, 1_000, "k"),
        _ => in_units(tokens, 1_000_000, "M"),
    }
}

fn in_units(tokens: u64, unit: u64, name: &str) -> String {
    let rounded = |step: u64| tokens.saturating_add(step / 2) / step;
    let tenths = rounded(unit / 10);
    match (tenths / 10, tenths % 10) {
        (whole, 0) if whole < 100 => format!("{whole}{name}"),
        (whole, tenth) if whole < 100 => format!("{whole}.{tenth}{name}"),
        _ => format!("{}{name}", rounded(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layer;

    #[test]
    fn c2_usage_is_formatted_compactly() {
        use TokenCount::{Estimated, Exact};
        #[rustfmt::skip]
        let cases = [
            (Exact(12_300),            Some(200_000),   "12.3k/200k"),
            (Estimated(12_300),        Some(200_000),   "~12.3k/200k"),
            (Exact(0),                 Some(8_192),     "0/8.2k"),
            (Exact(999),               None,            "999"),
            (Exact(1_000),             Some(1_048_576), "1k/1M"),
            (Exact(1_049),             Some(1_050_000), "1k/1.1M"),
            (Exact(99_949),            Some(272_000),   "99.9k/272k"),
            (Exact(99_950),            Some(131_072),   "100k/131k"),
            (Exact(999_499),           None,            "999k"),
            (Exact(999_500),           None,            "1M"),
            (Estimated(u64::MAX),      None,            "~18446744073709M"),
        ];
        for (count, limit, expected) in cases {
            assert_eq!(format_usage(count, limit), expected, "{count:?} of {limit:?}");
        }
    }

    #[test]
    fn c2_the_users_limit_wins_over_the_dialects() {
        let dialects = crate::dialect::Dialects::builtin().expect("they are valid");
        let known = dialects.get("groq").expect("it is there").rules(None).ask.clone();
        let unknown = AskRules { context_limit: None, ..known.clone() };
        let mut settings = Settings::new();
        assert_eq!(context_limit(&settings, &known), Some(131_072));
        assert_eq!(context_limit(&settings, &unknown), None);
        settings.set(Layer::Config, "context.limit", "50000").expect("a setting");
        assert_eq!(context_limit(&settings, &known), Some(50_000));
        assert_eq!(context_limit(&settings, &unknown), Some(50_000));
    }
}
