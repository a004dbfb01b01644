//! Chooses the model: the named one, else one whose key is set, else one of a local
//! server, else the simulator.

use aside_core::dialect::{Carrier, Dialect, Duty};

use crate::provider_tables::SIMULATOR;
use crate::providers::Providers;

/// The places that may name a model, in order of precedence.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedModels<'a> {
    pub flag: Option<&'a str>,
    pub session: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub config: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// `PROVIDER/MODEL`
    pub name: String,
    /// The reason, for the notice about the choice.
    pub why: String,
}

impl ModelChoice {
    pub(crate) fn is_simulated(&self) -> bool {
        self.name.split('/').next() == Some(SIMULATOR)
    }
}

impl NamedModels<'_> {
    pub fn first(&self) -> Option<ModelChoice> {
        let sources = [
            (self.flag, "the command line names it"),
            (self.session, "the conversation names it"),
            (self.profile, "the profile names it"),
            (self.config, "config.toml names it"),
        ];
        let (name, why) = sources.into_iter().find_map(|(name, why)| Some((name?, why)))?;
        Some(ModelChoice { name: name.to_owned(), why: why.to_owned() })
    }
}

/// Chooses a model; there always is one. `local` is the model of a local server, as
/// `PROVIDER/MODEL`.
pub fn choose_model(named: &NamedModels<'_>, providers: &Providers<'_>, local: Option<&str>) -> ModelChoice {
    let mut presets: Vec<&Dialect> =
        providers.dialects.iter().filter(|dialect| dialect.access.order.is_some()).collect();
    presets.sort_by_key(|dialect| dialect.access.order);
    let by_key = || {
        presets.iter().find_map(|dialect| {
            let model = dialect.access.default_model.as_deref()?;
            let variable = providers.key_variable(dialect)?;
            (providers.env)(&variable)?;
            Some(ModelChoice { name: format!("{}/{model}", dialect.id), why: format!("{variable} is set") })
        })
    };
    let on_this_machine = || {
        let why = "a server on this machine answers".to_owned();
        local.map(|name| ModelChoice { name: name.to_owned(), why })
    };
    // Simulate a provider whose thinking is readable and must be sent back: it
    // demonstrates the most.
    let shows_most = |dialect: &&&Dialect| {
        let echo = &dialect.rules(None).echo;
        echo.carrier == Carrier::Field && echo.loop_duty == Duty::Must
    };
    let simulated = || ModelChoice {
        name: format!("{SIMULATOR}/{}", presets.iter().find(shows_most).map_or("generic", |dialect| &dialect.id)),
        why: "no model chosen, no API key set and no local server found; using the simulator".to_owned(),
    };
    named.first().or_else(by_key).or_else(on_this_machine).unwrap_or_else(simulated)
}

#[cfg(test)]
mod tests {
    use aside_core::dialect::Dialects;

    use super::*;
    use crate::provider_tables::ProviderTable;

    /// The named models, the variables set, the local server's model; the choice and why.
    type Case<'a> = (NamedModels<'a>, &'a [&'a str], Option<&'a str>, &'a str, &'a str);

    #[test]
    fn what_is_named_comes_first_then_keys_then_a_local_server_then_the_simulator() {
        let dialects = Dialects::builtin().unwrap();
        let all = NamedModels { flag: Some("a/1"), session: Some("b/2"), profile: Some("c/3"), config: Some("d/4") };
        let table = ProviderTable {
            name: "mistral".to_owned(),
            api_key_env: Some("MY_MISTRAL".to_owned()),
            ..ProviderTable::default()
        };
        #[rustfmt::skip]
        let cases: [Case<'_>; 9] = [
            (all,                                  &["OPENAI_API_KEY"],                    None,               "a/1", "the command line names it"),
            (NamedModels { flag: None, ..all },          &["OPENAI_API_KEY"],                    None,               "b/2", "the conversation names it"),
            (NamedModels { flag: None, session: None, ..all }, &[],                              None,               "c/3", "the profile names it"),
            (NamedModels { config: Some("d/4"), ..NamedModels::default() }, &[],                       Some("ollama/q"),   "d/4", "config.toml names it"),
            (NamedModels::default(), &["DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY"],                 Some("ollama/q"),   "anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY is set"),
            (NamedModels::default(), &["DEEPSEEK_API_KEY", "MOONSHOT_API_KEY"],                  None,               "deepseek/deepseek-v4-pro", "DEEPSEEK_API_KEY is set"),
            (NamedModels::default(), &["AZURE_OPENAI_API_KEY"],                                  Some("ollama/q"),   "ollama/q", "a server on this machine answers"),
            (NamedModels::default(), &["MISTRAL_API_KEY"],                                       None,               "sim/deepseek", "no model chosen, no API key set and no local server found; using the simulator"),
            (NamedModels::default(), &["MY_MISTRAL"],                                            None,               "mistral/magistral-medium-latest", "MY_MISTRAL is set"),
        ];
        for (named, set, local, name, why) in &cases {
            let env = |variable: &str| set.contains(&variable).then(|| "k".to_owned());
            let tables = [table.clone()];
            let providers = Providers { dialects: &dialects, tables: &tables, env: &env };
            let choice = choose_model(named, &providers, *local);
            assert_eq!((choice.name.as_str(), choice.why.as_str()), (*name, *why));
        }
    }

    #[test]
    fn preset_orders_are_unique_and_every_preset_with_a_default_model_has_one() {
        let dialects = Dialects::builtin().unwrap();
        let mut orders: Vec<u32> = dialects.iter().filter_map(|dialect| dialect.access.order).collect();
        let count = orders.len();
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), count);
        for dialect in dialects.iter().filter(|dialect| dialect.access.default_model.is_some()) {
            assert!(dialect.access.order.is_some() && dialect.api_key_env.is_some(), "{}", dialect.id);
        }
    }
}
