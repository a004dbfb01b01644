//! A request that is to be answered at once: thinking is off for it where that
//! can be asked for, else as little as there is. What was thought stays.

use super::Cure;
use crate::dialect::{AskRules, Off, Repair};
use crate::settings::{Effort, Key, Layer, Settings};

/// How much thinking a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Haste {
    /// As much as the settings say.
    #[default]
    None,
    /// The user has waited long enough.
    AnswerNow,
}

/// Changes what one request is built from.
pub fn hasten(rules: &AskRules, settings: &mut Settings, cures: &mut Vec<Cure>) {
    if rules.off != Off::Unsupported {
        // Past thoughts stay in the request, so that what was sent before it is
        // sent again as it was.
        cures.push(Repair::OffForTurn.into());
        return;
    }
    let lowest = rules.effort.values.iter().filter_map(|word| word.parse::<Effort>().ok()).min();
    let lowest = lowest.filter(|_| !rules.effort.path.is_empty());
    let least = rules.budget.range.map(|(least, _)| least).filter(|_| !rules.budget.path.is_empty());
    let least = least.filter(|_| lowest.is_none() || settings.max_thinking_tokens().is_some());
    let wishes = [
        (Key::Effort, lowest.map(|lowest| lowest.as_str().to_owned())),
        (Key::MaxTokens, least.map(|least| least.to_string())),
    ];
    for (key, value) in wishes {
        // A level and a number are always taken, so nothing is refused here.
        let _is_set = value.map(|value| settings.set(Layer::Session, key.name(), &value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialects;

    #[test]
    fn a_request_in_haste_asks_for_as_little_thinking_as_there_is() {
        let dialects = Dialects::builtin().expect("it is built in");
        #[rustfmt::skip]
        let cases = [
            // Where it can be switched off, it is, and the settings stay.
            ("deepseek", "deepseek-v4-pro", 1, Some("high"),    Some(5000)),
            // Where it cannot, the lowest level there is.
            ("openai",   "gpt-5",           0, Some("minimal"), Some(5000)),
            ("openai",   "o3",              0, Some("low"),     Some(5000)),
            ("openai",   "gpt-5-pro",       0, Some("high"),    Some(5000)),
            // Or the smallest budget.
            ("gemini",   "gemini-2.5-pro",  0, Some("high"),    Some(128)),
        ];
        for (dialect, model, n_cures, effort, budget) in cases {
            let mut settings = Settings::new();
            settings.set(Layer::Session, "reasoning.effort", "high").expect("a level");
            settings.set(Layer::Session, "reasoning.maxTokens", "5000").expect("a number");
            let mut cures = Vec::new();
            let dialect = dialects.get(dialect).expect("it is built in");
            hasten(&dialect.rules(Some(model)).ask, &mut settings, &mut cures);
            let got = (cures.len(), settings.effort().map(|level| level.as_str()), settings.max_thinking_tokens());
            assert_eq!(got, (n_cures, effort, budget), "{model}");
        }
    }
}
