//! Finds the provider for a model name without one.

use aside_core::model_table::NameMatch;

use crate::error::HintedError;
use crate::key_lookup;
use crate::provider_tables::SIMULATOR;
use crate::providers::Providers;

/// How many models are suggested for a name that no provider has.
const SUGGESTIONS: usize = 3;

/// Fewer letters are not searched in the names of models.
const LEAST_PART: usize = 3;

/// A longer name is not compared with others.
const MAX_COMPARED: usize = 100;

impl Providers<'_> {
    /// The full name of a model: of the provider with a key, the user's own first, then in the order of presets.
    pub(crate) fn find_bare(&self, model: &str) -> Option<String> {
        let own = self.tables.iter().filter(|table| table.models.iter().any(|known| known.pattern == model));
        let own = own.map(|table| (0, table.name.clone()));
        // The part before a slash belongs to the name, or is a misspelt provider.
        let is_same = |row: &str| !model.contains('/') || row.eq_ignore_ascii_case(model);
        let has_row = |id: &str| {
            let found = self.dialects.models().find(id, model);
            found.is_some_and(|found| found.name_match == NameMatch::Same && is_same(found.row.model))
        };
        let presets = self.dialects.iter().filter(|dialect| dialect.table_id() == dialect.id && has_row(&dialect.id));
        let presets = presets.map(|dialect| {
            let order = dialect.access.order.unwrap_or(u32::MAX - 1);
            (order.saturating_add(1), dialect.id.clone())
        });
        let mut found: Vec<(u32, String)> = own.chain(presets).collect();
        found.sort();
        found.dedup_by(|next, kept| next.1 == kept.1);
        let names: Vec<String> = found.into_iter().map(|(_, id)| format!("{id}/{model}")).collect();
        if names.len() <= 1 {
            return names.into_iter().next();
        }
        let has_key =
            |name: &&String| self.resolve(name, None).is_ok_and(|provider| key_lookup::has_key(&provider, self.env));
        names.iter().find(has_key).or(names.first()).cloned()
    }

    /// The error for a name that is neither a provider's nor a model's.
    pub(crate) fn unknown_model(&self, name: &str) -> HintedError {
        if let Some(id) = self.provider_named(name) {
            return self.missing_model(name, &id);
        }
        let alike = self.suggestions(name);
        let what = format!("`{name}` names no provider, and no provider is known to have such a model");
        match alike.as_slice() {
            [] => self.unknown_provider(name),
            alike => HintedError::new(what).hint(format!("did you mean {}?", alike.join(", "))),
        }
    }

    /// The provider with this name, whatever its case.
    fn provider_named(&self, name: &str) -> Option<String> {
        let wanted = name.trim_end_matches('/');
        self.provider_names().find(|id| id.eq_ignore_ascii_case(wanted)).map(str::to_owned)
    }

    /// The names of all providers, the user's own first.
    fn provider_names(&self) -> impl Iterator<Item = &str> {
        let own = self.tables.iter().map(|table| table.name.as_str());
        own.chain(self.dialects.iter().map(|dialect| dialect.id.as_str())).chain([SIMULATOR])
    }

    /// Providers with similar names, the most similar first.
    pub(crate) fn alike_providers(&self, name: &str) -> Vec<String> {
        let wanted = name.to_lowercase();
        if wanted.len() > MAX_COMPARED || wanted.is_empty() {
            return Vec::new();
        }
        let bound = (wanted.chars().count() / 3).clamp(1, 3);
        let distance = |id: &str| match id.starts_with(&wanted) {
            true => Some(0),
            false => edit_distance(&id.to_lowercase(), &wanted, bound),
        };
        let others = self.provider_names().filter(|id| *id != name);
        let mut alike: Vec<(usize, &str)> = others.filter_map(|id| Some((distance(id)?, id))).collect();
        alike.sort();
        alike.dedup();
        alike.into_iter().take(SUGGESTIONS).map(|(_, id)| id.to_owned()).collect()
    }

    /// Models with similar names, the most similar first.
    fn suggestions(&self, name: &str) -> Vec<String> {
        let wanted = name.to_lowercase();
        if wanted.len() > MAX_COMPARED || wanted.is_empty() {
            return Vec::new();
        }
        let bound = (wanted.chars().count() / 3).clamp(1, 4);
        let order = |id: &str| self.dialects.get(id).and_then(|dialect| dialect.access.order).unwrap_or(u32::MAX);
        // Part of a name stands for the model that a provider is used with if none is chosen.
        let defaults = self.dialects.iter().filter_map(|dialect| {
            let model = dialect.access.default_model.as_deref()?;
            let is_part = wanted.len() >= LEAST_PART && last_part(model).to_lowercase().contains(&wanted);
            is_part.then(|| (0, order(&dialect.id), format!("{}/{model}", dialect.id)))
        });
        let mut alike: Vec<(usize, u32, String)> = self
            .dialects
            .models()
            .names()
            .filter_map(|(dialect, model)| {
                let full = format!("{dialect}/{model}");
                let compared = if wanted.contains('/') { &full } else { last_part(model) };
                let distance = edit_distance(&compared.to_lowercase(), &wanted, bound)?;
                Some((distance, order(dialect), full))
            })
            .chain(defaults)
            .filter(|(_, _, full)| full != name)
            .collect();
        alike.sort();
        alike.dedup_by(|next, kept| next.2 == kept.2);
        alike.truncate(SUGGESTIONS);
        alike.into_iter().map(|(_, _, name)| name).collect()
    }
}

/// The name of a model without its maker.
fn last_part(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// How many letters must change, or change places with the next, to turn one name into the other; none if more
/// than `most`.
fn edit_distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut two_above: Vec<usize> = Vec::new();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let changed = cell(&above, j) + usize::from(letter != other);
            let added = (cell(&row, j) + 1).min(cell(&above, j + 1) + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(other) && b.get(j - 1) == Some(letter);
            let swapped = if is_swap { cell(&two_above, j - 1) + 1 } else { usize::MAX };
            row.push(changed.min(added).min(swapped));
        }
        two_above = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use aside_core::dialect::Dialects;

    use super::*;
    use crate::provider_tables::{ModelTable, ProviderTable};

    #[test]
    fn a_bare_name_belongs_to_a_provider_with_a_key_then_to_the_first_preset() {
        let dialects = Dialects::builtin().unwrap();
        let own = ProviderTable {
            name: "work".to_owned(),
            dialect: Some("kimi".to_owned()),
            models: vec![ModelTable { pattern: "mine-1".to_owned(), ..ModelTable::default() }],
            ..ProviderTable::default()
        };
        #[rustfmt::skip]
        let cases: [(&str, &[&str], Option<&str>); 8] = [
            ("gpt-5",            &[],                       Some("openai/gpt-5")),
            ("gpt-5",            &["AZURE_OPENAI_API_KEY"], Some("azure/gpt-5")),
            ("gpt-5-2025-08-07", &[],                       Some("openai/gpt-5-2025-08-07")),
            ("claude-sonnet-5",  &[],                       Some("anthropic/claude-sonnet-5")),
            ("mine-1",           &[],                       Some("work/mine-1")),
            ("moonshotai/kimi-k2", &[],                     Some("openrouter/moonshotai/kimi-k2")),
            ("gpt-99",           &[],                       None),
            ("opnai/gpt-5",      &[],                       None),
        ];
        for (model, set, expected) in cases {
            let env = |variable: &str| set.contains(&variable).then(|| "k".to_owned());
            let tables = [own.clone()];
            let providers = Providers { dialects: &dialects, tables: &tables, env: &env };
            assert_eq!(providers.find_bare(model).as_deref(), expected, "{model} {set:?}");
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        let dialects = Dialects::builtin().unwrap();
        let providers = Providers { dialects: &dialects, tables: &[], env: &|_| None };
        assert_eq!(providers.suggestions("gpt-5.55").first().map(String::as_str), Some("openai/gpt-5.5"));
        assert!(providers.suggestions("claude-sonet-5").contains(&"anthropic/claude-sonnet-5".to_owned()));
        assert!(providers.suggestions("gtp-5").contains(&"openai/gpt-5".to_owned()));
        assert_eq!(providers.suggestions("opnai/gpt-5").first().map(String::as_str), Some("openai/gpt-5"));
        assert!(providers.suggestions("gpt-5").len() <= SUGGESTIONS);
        assert_eq!(providers.suggestions("nobody"), Vec::<String>::new());
        assert_eq!(providers.suggestions(&"x".repeat(1000)), Vec::<String>::new());
    }

    #[test]
    fn the_hint_for_an_unknown_name_is_another_name_that_works() {
        let dialects = Dialects::builtin().unwrap();
        let own = ProviderTable { name: "work".to_owned(), ..ProviderTable::default() };
        let tables = [own];
        let providers = Providers { dialects: &dialects, tables: &tables, env: &|_| None };
        #[rustfmt::skip]
        let cases = [
            ("openai",     "did you mean openai/"),
            ("OpenAI",     "did you mean openai/"),
            ("openai/",    "did you mean openai/"),
            ("anthropic/", "did you mean anthropic/claude"),
            ("work",       "say work/MODEL"),
            ("work/",      "say work/MODEL"),
            ("sim",        "say sim/DIALECT"),
            ("sim/sim",    "say sim/DIALECT"),
            ("sim/x",      "did you mean sim/xai"),
            ("sim/depseek", "did you mean sim/deepseek"),
            ("claude",     "did you mean anthropic/claude"),
            ("GPT-5",      "did you mean openai/gpt-5"),
            ("opena",      "did you mean openai"),
            ("x/y",        "did you mean xai"),
            ("unheard-of", "say PROVIDER/MODEL"),
        ];
        for (name, expected) in cases {
            let error = providers.resolve(name, None).map(drop).unwrap_err();
            let hint = error.hint_text().unwrap_or_default();
            assert!(hint.starts_with(expected), "{name}: {error} ({hint})");
            let suggested =
                hint.strip_prefix("did you mean ").and_then(|hint| hint.split('?').next()).unwrap_or_default();
            assert!(!suggested.split(", ").any(|suggested| suggested == name), "{name}: {hint}");
        }
    }

    #[test]
    fn the_distance_counts_changed_letters() {
        #[rustfmt::skip]
        let cases = [("abc", "abc", Some(0)), ("abc", "abd", Some(1)), ("abc", "ab", Some(1)), ("", "ab", Some(2)), ("abcd", "wxyz", None), ("gtp-5", "gpt-5", Some(1)), ("abcd", "badc", Some(2))];
        for (a, b, expected) in cases {
            assert_eq!(edit_distance(a, b, 2), expected, "{a} {b}");
        }
    }
}
