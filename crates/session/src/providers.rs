//! Resolves `PROVIDER/MODEL`: built-in presets, the user's changes to them, and
//! the user's own providers.

use std::collections::BTreeMap;
use std::time::Duration;

use aside_core::block::Origin;
use aside_core::dialect::{Access, Dialect, Dialects, matches_pattern};
use aside_core::rules::dialect_defaults;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Destination, Encoded, HttpCall, http_call};
use serde_json::{Map, Value};

use crate::error::HintedError;
use crate::model_facts::{ModelFacts, Prices};
use crate::provider_tables::{ModelTable, ProviderTable, SIMULATOR};
use crate::serve_table::parse_time;

/// A provider with one of its models.
#[derive(Debug, Clone)]
pub struct Provider {
    pub id: String,
    pub dialect: Dialect,
    /// The model's name without the provider.
    pub model: String,
    pub endpoint: ProviderEndpoint,
    /// How requests authenticate. It depends on the host, not on the dialect.
    pub access: Access,
    /// Where to look for the key, in order.
    pub keys: Vec<KeySource>,
    pub headers: Vec<(String, String)>,
    pub extra_body: Map<String, Value>,
    /// What is known about the model.
    pub facts: ModelFacts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderEndpoint {
    /// The base URL, without a trailing slash.
    At(String),
    /// The URL is known once the simulator runs.
    BuiltInSimulator,
    /// The URL is incomplete.
    Missing { what: String, remedy: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Env(String),
    /// A command that prints the key, and how long that is valid.
    Command { command: String, ttl: Option<Duration> },
}

impl KeySource {
    /// The name of the environment variable, if it is one.
    pub fn variable(&self) -> Option<&str> {
        match self {
            KeySource::Env(name) => Some(name),
            KeySource::Command { .. } => None,
        }
    }
}

impl Provider {
    /// `PROVIDER/MODEL`
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.id, self.model)
    }

    /// The origin of seals in this provider's replies.
    pub fn origin(&self) -> Origin {
        let endpoint = match &self.endpoint {
            ProviderEndpoint::At(url) => Some(url.clone()),
            ProviderEndpoint::BuiltInSimulator | ProviderEndpoint::Missing { .. } => None,
        };
        Origin::default().with_provider(self.id.clone()).with_endpoint(endpoint)
    }

    /// Sets the defaults of this model, in a layer below all user settings.
    pub fn apply_defaults(&self, settings: &mut Settings) {
        let mut rules = self.dialect.rules(Some(&self.model)).clone();
        rules.ask.context_limit = self.facts.context_limit();
        settings.replace(Layer::Dialect, dialect_defaults(&rules));
    }

    /// The HTTP request: URL, headers and body.
    pub fn http_call(&self, encoded: &Encoded, key: Option<&str>) -> Result<HttpCall, HintedError> {
        let base_url = match &self.endpoint {
            ProviderEndpoint::At(url) => url,
            ProviderEndpoint::BuiltInSimulator => {
                return Err(HintedError::new("the simulator has no URL before it runs").hint("leave --full out"));
            }
            ProviderEndpoint::Missing { what, remedy } => return Err(HintedError::new(what).hint(remedy)),
        };
        let Provider { access, headers, extra_body, .. } = self;
        Ok(http_call(encoded, &Destination { base_url, access, key, headers, extra_body }))
    }
}

const SIMULATOR_NAMES: &str = "say sim/DIALECT[:BEHAVIOUR]; aside models --rules lists the dialects";

/// All providers, built-in and configured.
pub struct Providers<'a> {
    pub dialects: &'a Dialects,
    pub tables: &'a [ProviderTable],
    /// Looks up an environment variable; none if it is empty.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

impl Providers<'_> {
    /// Resolves `PROVIDER/MODEL`, or the bare name of a model that a provider is known to have. A dialect from the
    /// command line overrides every other, and is the provider if `name` has none.
    pub fn resolve(&self, name: &str, dialect: Option<&str>) -> Result<Provider, HintedError> {
        let dialect_override = dialect.map(|id| self.dialect(id)).transpose()?;
        let (id, model) = match name.split_once('/') {
            Some((SIMULATOR, model)) => return self.resolve_simulator(model, dialect_override),
            Some((id, model)) if self.knows(id) => (id, model),
            _ => match dialect {
                Some(id) => (id, name),
                None => match self.find_bare(name) {
                    Some(full) => return self.resolve(&full, None),
                    None => return Err(self.unknown_model(name)),
                },
            },
        };
        if model.is_empty() {
            return Err(self.missing_model(name, id));
        }
        match self.tables.iter().find(|table| table.name == id) {
            Some(table) => self.resolve_table(table, model, dialect_override),
            None => self.resolve_preset(id, model, dialect_override),
        }
    }

    /// The environment variable of this provider's key: of its table, else of the
    /// preset.
    pub(crate) fn key_variable(&self, dialect: &Dialect) -> Option<String> {
        let table = self.tables.iter().find(|table| table.name == dialect.id);
        table.and_then(|table| table.api_key_env.clone()).or_else(|| dialect.api_key_env.clone())
    }

    fn knows(&self, id: &str) -> bool {
        self.dialects.get(id).is_some() || self.tables.iter().any(|table| table.name == id)
    }

    /// The error for a name that is only a provider's.
    pub(crate) fn missing_model(&self, name: &str, id: &str) -> HintedError {
        let dialect =
            self.tables.iter().find(|table| table.name == id).map_or(Some(id), |table| table.dialect.as_deref());
        let default = dialect.and_then(|dialect| self.dialects.get(dialect)?.access.default_model.as_deref());
        let list = format!("aside models --all {id} lists its models");
        let hint = match default {
            _ if id == SIMULATOR => SIMULATOR_NAMES.to_owned(),
            Some(model) => format!("did you mean {id}/{model}? {list}"),
            None => format!("say {id}/MODEL; {list}"),
        };
        HintedError::new(format!("`{name}` names no model")).hint(hint)
    }

    /// The error for a name whose provider is unknown. It names a few with similar spelling, not all.
    pub(crate) fn unknown_provider(&self, name: &str) -> HintedError {
        let wanted = name.split('/').next().unwrap_or(name);
        let alike = self.alike_providers(wanted);
        let hint = match alike.as_slice() {
            [] => "say PROVIDER/MODEL; aside models --all lists the providers and their models".to_owned(),
            alike => format!("did you mean {}? aside models --all lists them all", alike.join(", ")),
        };
        HintedError::new(format!("`{name}` names no provider")).hint(hint)
    }

    fn dialect(&self, id: &str) -> Result<Dialect, HintedError> {
        let dialect = self.dialects.get(id).cloned();
        dialect
            .ok_or_else(|| HintedError::new(format!("unknown dialect `{id}`")).hint("aside models --rules lists them"))
    }

    fn resolve_simulator(&self, model: &str, dialect_override: Option<Dialect>) -> Result<Provider, HintedError> {
        let id = model.split(':').next().unwrap_or(model);
        let dialect = match dialect_override {
            Some(dialect) => dialect,
            None => self.dialects.get(id).cloned().ok_or_else(|| {
                let mut alike = self.alike_providers(id);
                alike.retain(|id| self.dialects.get(id).is_some());
                let hint = match alike.as_slice() {
                    [] => SIMULATOR_NAMES.to_owned(),
                    alike => format!("did you mean {SIMULATOR}/{}?", alike.join(&format!(", {SIMULATOR}/"))),
                };
                HintedError::new(format!("the simulator knows no dialect `{id}`")).hint(hint)
            })?,
        };
        // The simulator's models have their dialect's window, and no price.
        let facts = ModelFacts::gather(self.dialects, &dialect, model, &ModelTable::default(), Prices::Unknown);
        let access = dialect.access.clone().at_the_protocols_path();
        let endpoint = ProviderEndpoint::BuiltInSimulator;
        Ok(Provider { endpoint, access, facts, ..with_dialect(SIMULATOR, model, dialect) })
    }

    fn resolve_preset(
        &self,
        id: &str,
        model: &str,
        dialect_override: Option<Dialect>,
    ) -> Result<Provider, HintedError> {
        let preset = self.dialect(id)?;
        // A provider serves another protocol at another URL.
        let home = dialect_override
            .as_ref()
            .filter(|dialect_override| dialect_override.protocol != preset.protocol)
            .unwrap_or(&preset);
        let dialect = dialect_override.clone().unwrap_or_else(|| preset.clone());
        let address = Address { id, base_url: home.base_url.as_deref(), path: None, vars: &BTreeMap::new() };
        let (endpoint, access) = self.endpoint(&address, home, home.access.clone());
        let env = home.api_key_env.iter().cloned().map(KeySource::Env);
        Ok(Provider {
            endpoint,
            access,
            keys: env.chain(preset_command(home)).collect(),
            facts: ModelFacts::gather(self.dialects, &dialect, model, &ModelTable::default(), Prices::Apply),
            ..with_dialect(id, model, dialect)
        })
    }

    /// Resolves a provider with a table in the config. Missing values come from the
    /// preset of the same name, else from the dialect that the table names.
    fn resolve_table(
        &self,
        table: &ProviderTable,
        model: &str,
        dialect_override: Option<Dialect>,
    ) -> Result<Provider, HintedError> {
        let models =
            table.models.iter().find(|known| matches_pattern(&known.pattern, model)).cloned().unwrap_or_default();
        let same_protocol = |dialect: &&Dialect| table.protocol.is_none_or(|protocol| protocol == dialect.protocol);
        let preset = self.dialects.get(&table.name);
        let named = self.named_dialect(table, &models)?;
        // Missing values come from this dialect.
        let template = match (preset, named) {
            (Some(preset), Some(named)) if preset.protocol != named.protocol => Some(named),
            (Some(preset), _) => Some(preset),
            (None, named) => named,
        };
        let base_url = table.base_url.as_deref().or_else(|| template?.base_url.as_deref());
        let dialect = match (dialect_override, named.or(preset.filter(same_protocol))) {
            (Some(dialect), _) => dialect,
            (None, Some(dialect)) => dialect.clone(),
            (None, None) => self.guess_dialect(table, base_url, model)?,
        };
        if !same_protocol(&&dialect) {
            let what = format!(
                "{}: providers.{}: dialect `{}` speaks {}",
                table.location, table.name, dialect.id, dialect.protocol
            );
            return Err(HintedError::new(what).hint("leave `protocol` out, or name a dialect that speaks it"));
        }
        // Never send a preset's key to a URL that is not the preset's.
        let inherits = preset.is_some() || table.base_url.is_none();
        let known_key = template.filter(|_| inherits).and_then(|dialect| dialect.api_key_env.clone());
        let env = table.api_key_env.clone().or(known_key).map(KeySource::Env);
        let command = match &table.api_key_cmd {
            Some(command) => Some(KeySource::Command { command: command.clone(), ttl: table.api_key_ttl }),
            None => template.filter(|_| inherits).and_then(preset_command),
        };
        let by_url = base_url.and_then(|url| self.dialects.by_url(dialect.protocol, url));
        let home = preset.filter(|preset| preset.protocol == dialect.protocol).or(by_url).unwrap_or(&dialect);
        let vars = &table.vars;
        let address = Address { id: &table.name, base_url, path: table.path.as_deref(), vars };
        let (endpoint, access) = self.endpoint(&address, template.unwrap_or(&dialect), home.access.clone());
        // A price belongs to a provider, not to a dialect that others speak too.
        let is_its_own = preset.is_some() || by_url.is_some_and(|known| known.table_id() == dialect.table_id());
        let prices = if is_its_own { Prices::Apply } else { Prices::Unknown };
        let facts = ModelFacts::gather(self.dialects, &dialect, model, &models, prices);
        let mut headers = table.headers.clone();
        headers.retain(|(name, _)| !models.headers.iter().any(|(other, _)| other == name));
        headers.extend(models.headers);
        Ok(Provider {
            endpoint,
            access,
            keys: env.into_iter().chain(command).collect(),
            headers,
            extra_body: models.extra_body,
            facts,
            ..with_dialect(&table.name, model, dialect)
        })
    }

    fn named_dialect(&self, table: &ProviderTable, models: &ModelTable) -> Result<Option<&Dialect>, HintedError> {
        let Some(id) = models.dialect.as_ref().or(table.dialect.as_ref()) else { return Ok(None) };
        let unknown = || {
            let known: Vec<&str> = self.dialects.iter().map(|dialect| dialect.id.as_str()).collect();
            let below = models.dialect.as_ref().map_or(String::new(), |_| format!(".models.{:?}", models.pattern));
            let what = format!("{}: providers.{}{below}.dialect: unknown dialect `{id}`", table.location, table.name);
            HintedError::new(what).hint(format!("one of: {}", known.join(", ")))
        };
        self.dialects.get(id).map(Some).ok_or_else(unknown)
    }

    /// Guesses the dialect from the base URL, then from the model's name, else takes
    /// the generic one.
    fn guess_dialect(
        &self,
        table: &ProviderTable,
        base_url: Option<&str>,
        model: &str,
    ) -> Result<Dialect, HintedError> {
        let Some(protocol) = table.protocol else {
            let what = format!("{}: providers.{}: it needs a protocol or a dialect", table.location, table.name);
            return Err(HintedError::new(what).hint("such as protocol = \"openai-chat\""));
        };
        let by_url = base_url.and_then(|url| self.dialects.by_url(protocol, url));
        let known = by_url.or_else(|| self.dialects.made_by(protocol, model)).cloned();
        let stranger = || self.dialects.generic(protocol).map(Dialect::for_unknown_provider);
        known.or_else(stranger).ok_or_else(|| HintedError::new(format!("no dialect speaks {protocol}")))
    }

    /// The base URL and the access of a provider, with the variables of its URL and path filled in.
    fn endpoint(&self, address: &Address<'_>, dialect: &Dialect, mut access: Access) -> (ProviderEndpoint, Access) {
        let Address { id, base_url, path, vars } = address;
        let in_config = format!("[providers.{id}] base_url = \"https://…\" in config.toml");
        let Some(url) = base_url else {
            let what = format!("`{id}` has no base URL of its own");
            return (ProviderEndpoint::Missing { what, remedy: format!("give it one: {in_config}") }, access);
        };
        let value_of = |name: &str| {
            let variables = dialect.access.vars_env.get(name).into_iter().flatten();
            let from_env = || variables.clone().find_map(|variable| (self.env)(variable));
            vars.get(name).cloned().or_else(from_env).map(|value| value.trim().to_owned())
        };
        let template = path.map(str::to_owned).or(access.path.take());
        let fill = |text: &str| -> Result<String, String> {
            let mut filled = text.to_owned();
            for name in Access::variables(text) {
                let value = value_of(name).ok_or_else(|| name.to_owned())?;
                filled = filled.replace(&format!("{{{name}}}"), &value);
            }
            Ok(filled)
        };
        // The user's own URL is used as it is.
        let is_preset_url = dialect.base_url.as_deref() == Some(*url);
        let region = value_of("region").filter(|_| is_preset_url);
        let url = region.and_then(|region| access.region_urls.get(&region)).map_or(*url, String::as_str);
        match (fill(url.trim_end_matches('/')), template.as_deref().map(fill).transpose()) {
            (Ok(url), Ok(path)) => {
                access.path = path;
                (ProviderEndpoint::At(url), access)
            }
            (Err(name), _) | (_, Err(name)) => {
                let in_vars = format!("[providers.{id}.vars] {name} = \"…\" in config.toml");
                let remedy = match dialect.access.vars_env.get(&name) {
                    Some(variables) => format!("set {}, or {in_vars}", variables.join(" or ")),
                    None => format!("give it one: {in_vars}"),
                };
                (ProviderEndpoint::Missing { what: format!("`{id}` needs a {name}"), remedy }, access)
            }
        }
    }
}

/// Where the config and the preset say that a provider is.
struct Address<'a> {
    id: &'a str,
    base_url: Option<&'a str>,
    /// The user's own path.
    path: Option<&'a str>,
    vars: &'a BTreeMap<String, String>,
}

/// The command of a preset that prints its key.
fn preset_command(preset: &Dialect) -> Option<KeySource> {
    let Access { api_key_cmd, api_key_ttl, .. } = &preset.access;
    let ttl = api_key_ttl.as_deref().and_then(parse_time);
    api_key_cmd.clone().map(|command| KeySource::Command { command, ttl })
}

fn with_dialect(id: &str, model: &str, dialect: Dialect) -> Provider {
    Provider {
        id: id.to_owned(),
        access: dialect.access.clone(),
        dialect,
        model: model.to_owned(),
        endpoint: ProviderEndpoint::BuiltInSimulator,
        keys: Vec::new(),
        headers: Vec::new(),
        extra_body: Map::new(),
        facts: ModelFacts::default(),
    }
}

/// A non-empty environment variable.
pub fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
