//! Requests that must be answered at once: thinking is switched off if
//! possible, else reduced to the minimum. Past thinking is kept.

use super::AppliedRepair;
use crate::dialect::{AskRules, Off, Repair};
use crate::settings::{Effort, Layer, SettingKey, Settings};

/// How much thinking a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnswerMode {
    /// As much as the settings say.
    #[default]
    Normal,
    /// The user wants the answer now.
    AnswerNow,
}

/// Changes the settings and repairs of one request.
pub fn apply_answer_now(rules: &AskRules, settings: &mut Settings, repairs: &mut Vec<AppliedRepair>) {
    if rules.off != Off::Unsupported {
        // Past thinking stays in the request, so that its prefix does not
        // change.
        repairs.push(Repair::OffForTurn.into());
        return;
    }
    let lowest = rules.effort.values.iter().filter_map(|word| word.parse::<Effort>().ok()).min();
    let lowest = lowest.filter(|_| !rules.effort.path.is_empty());
    let least = rules.budget.range.map(|(least, _)| least).filter(|_| !rules.budget.path.is_empty());
    let least = least.filter(|_| lowest.is_none() || settings.max_thinking_tokens().is_some());
    let preferences = [
        (SettingKey::Effort, lowest.map(|lowest| lowest.as_str().to_owned())),
        (SettingKey::MaxTokens, least.map(|least| least.to_string())),
    ];
    for (key, value) in preferences {
        // A level and a number are always valid, so this cannot fail.
        let _is_set = value.map(|value| settings.set(Layer::Session, key.name(), &value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialects;

    #[test]
    fn answer_now_requests_as_little_thinking_as_possible() {
        let dialects = Dialects::builtin().expect("it is built in");
        #[rustfmt::skip]
        let cases = [
            // Switched off where possible; the settings stay unchanged.
            ("deepseek", "deepseek-v4-pro", 1, Some("high"),    Some(5000)),
            // Otherwise the lowest level.
            ("openai",   "gpt-5",           0, Some("minimal"), Some(5000)),
            ("openai",   "o3",              0, Some("low"),     Some(5000)),
            ("openai",   "gpt-5-pro",       0, Some("high"),    Some(5000)),
            // Or the smallest budget.
            ("gemini",   "gemini-2.5-pro",  0, Some("high"),    Some(128)),
        ];
        for (dialect, model, n_repairs, effort, budget) in cases {
            let mut settings = Settings::new();
            settings.set(Layer::Session, "reasoning.effort", "high").expect("a level");
            settings.set(Layer::Session, "reasoning.maxTokens", "5000").expect("a number");
            let mut repairs = Vec::new();
            let dialect = dialects.get(dialect).expect("it is built in");
            apply_answer_now(&dialect.rules(Some(model)).ask, &mut settings, &mut repairs);
            let got = (repairs.len(), settings.effort().map(|level| level.as_str()), settings.max_thinking_tokens());
            assert_eq!(got, (n_repairs, effort, budget), "{model}");
        }
    }
}
