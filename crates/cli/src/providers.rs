//! Who a model is asked of: the providers aside knows, with what the user's
//! config says over them, and the user's own.

use aside_core::block::Origin;
use aside_core::dialect::{Access, Dialect, Dialects, fits_pattern};
use aside_core::rules::defaults;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Call, Destination, Encoded, call};
use serde_json::{Map, Value};

use crate::provider_tables::{ModelTable, Price, ProviderTable, SIMULATOR};
use crate::report::Report;

/// One provider with one of its models, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) id: String,
    pub(crate) dialect: Dialect,
    /// As the provider knows it.
    pub(crate) model: String,
    pub(crate) endpoint: Endpoint,
    /// What opens its door, which is not a matter of the dialect spoken there.
    pub(crate) access: Access,
    /// Where its key may be, in the order to be asked.
    pub(crate) keys: Vec<KeySource>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) context_limit: Option<u64>,

    pub(crate) price: Option<Price>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The base URL, without a slash at its end.
    At(String),
    /// Filled in by whoever runs the simulator.
    BuiltInSimulator,
    /// Something is still needed, and what.
    Missing { what: String, remedy: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// A variable of the environment.
    Env(String),
    /// A command that prints it.
    Command(String),
}

impl Provider {
    /// Whom opaque data of its answers belongs to.
    pub(crate) fn origin(&self) -> Origin {
        let endpoint = match &self.endpoint {
            Endpoint::At(url) => Some(url.clone()),
            Endpoint::BuiltInSimulator | Endpoint::Missing { .. } => None,
        };
        Origin { provider: Some(self.id.clone()), endpoint, ..Origin::default() }
    }

    /// What is known of this model, below everything the user says.
    pub(crate) fn lay_defaults(&self, settings: &mut Settings) {
        let mut rules = self.dialect.rules(Some(&self.model)).clone();
        rules.ask.context_limit = self.context_limit.or(rules.ask.context_limit);
        settings.replace(Layer::Dialect, defaults(&rules));
    }

    /// The request as it goes over the line.
    pub(crate) fn call(&self, encoded: &Encoded, key: Option<&str>) -> Result<Call, Report> {
        let base_url = match &self.endpoint {
            Endpoint::At(url) => url,
            Endpoint::BuiltInSimulator => {
                return Err(Report::new("the simulator has no URL before it runs").hint("leave --full out"));
            }
            Endpoint::Missing { what, remedy } => return Err(Report::new(what).hint(remedy)),
        };
        let Provider { access, headers, extra_body, .. } = self;
        Ok(call(encoded, &Destination { base_url, access, key, headers, extra_body }))
    }
}

/// Everybody who can be asked.
pub(crate) struct Providers<'a> {
    pub(crate) dialects: &'a Dialects,
    pub(crate) tables: &'a [ProviderTable],
    /// A variable of the environment, where it holds something.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
}

impl Providers<'_> {
    /// Whom `PROVIDER/MODEL` means. A dialect that the command line names wins
    /// over every other, and stands for a provider where none is named.
    pub(crate) fn resolve(&self, name: &str, dialect: Option<&str>) -> Result<Provider, Report> {
        let said = dialect.map(|id| self.dialect(id)).transpose()?;
        let (id, model) = match name.split_once('/') {
            Some((SIMULATOR, model)) => return self.simulator(model, said),
            Some((id, model)) if self.knows(id) => (id, model),
            _ => match dialect {
                Some(id) => (id, name),
                None => return Err(self.names_nobody(name)),
            },
        };
        if model.is_empty() {
            return Err(Report::new(format!("`{name}` names no model")).hint("say PROVIDER/MODEL"));
        }
        match self.tables.iter().find(|table| table.name == id) {
            Some(table) => self.own(table, model, said),
            None => self.preset(id, model, said),
        }
    }

    /// A variable that holds this provider's key, by the table over the preset.
    pub(crate) fn key_variable(&self, dialect: &Dialect) -> Option<String> {
        let table = self.tables.iter().find(|table| table.name == dialect.id);
        table.and_then(|table| table.api_key_env.clone()).or_else(|| dialect.api_key_env.clone())
    }

    fn knows(&self, id: &str) -> bool {
        self.dialects.get(id).is_some() || self.tables.iter().any(|table| table.name == id)
    }

    fn names_nobody(&self, name: &str) -> Report {
        let own = self.tables.iter().map(|table| table.name.as_str());
        let known = self.dialects.iter().map(|dialect| dialect.id.as_str());
        let mut all: Vec<&str> = own.chain(known).chain([SIMULATOR]).collect();
        let mut seen = std::collections::HashSet::new();
        all.retain(|id| seen.insert(*id));
        Report::new(format!("`{name}` names no provider"))
            .hint(format!("say -m PROVIDER/MODEL or --dialect D, with one of: {}", all.join(", ")))
    }

    fn dialect(&self, id: &str) -> Result<Dialect, Report> {
        let known = self.dialects.get(id).cloned();
        known.ok_or_else(|| Report::new(format!("unknown dialect `{id}`")).hint("aside models lists them"))
    }

    fn simulator(&self, model: &str, said: Option<Dialect>) -> Result<Provider, Report> {
        let id = model.split(':').next().unwrap_or(model);
        let dialect = match said {
            Some(dialect) => dialect,
            None => self.dialects.get(id).cloned().ok_or_else(|| {
                let known: Vec<&str> = self.dialects.iter().map(|dialect| dialect.id.as_str()).collect();
                let hint = format!("say {SIMULATOR}/DIALECT[:BEHAVIOUR], with one of: {}", known.join(", "));
                Report::new(format!("the simulator knows no dialect `{id}`")).hint(hint)
            })?,
        };
        Ok(Provider { endpoint: Endpoint::BuiltInSimulator, ..plain(SIMULATOR, model, dialect) })
    }

    fn preset(&self, id: &str, model: &str, said: Option<Dialect>) -> Result<Provider, Report> {
        let preset = self.dialect(id)?;
        // Another protocol of a provider is spoken at another of its doors.
        let home = said.as_ref().filter(|said| said.protocol != preset.protocol).unwrap_or(&preset);
        Ok(Provider {
            endpoint: self.endpoint(id, home.base_url.as_deref(), home),
            access: home.access.clone(),
            keys: home.api_key_env.iter().cloned().map(KeySource::Env).collect(),
            ..plain(id, model, said.clone().unwrap_or_else(|| preset.clone()))
        })
    }

    /// A provider the user's config has a table for. What the table leaves out
    /// is the preset's of that name, else the one of the dialect it names.
    fn own(&self, table: &ProviderTable, model: &str, said: Option<Dialect>) -> Result<Provider, Report> {
        let models = table.models.iter().find(|known| fits_pattern(&known.pattern, model)).cloned().unwrap_or_default();
        let same_protocol = |dialect: &&Dialect| table.protocol.is_none_or(|protocol| protocol == dialect.protocol);
        let preset = self.dialects.get(&table.name);
        let named = self.named_dialect(table, &models)?;
        // Whom the table leaves the rest to.
        let template = match (preset, named) {
            (Some(preset), Some(named)) if preset.protocol != named.protocol => Some(named),
            (Some(preset), _) => Some(preset),
            (None, named) => named,
        };
        let base_url = table.base_url.as_deref().or_else(|| template?.base_url.as_deref());
        let dialect = match (said, named.or(preset.filter(same_protocol))) {
            (Some(dialect), _) => dialect,
            (None, Some(dialect)) => dialect.clone(),
            (None, None) => self.guess(table, base_url, model)?,
        };
        if !same_protocol(&&dialect) {
            let what = format!(
                "{}: providers.{}: dialect `{}` speaks {}",
                table.place, table.name, dialect.id, dialect.protocol
            );
            return Err(Report::new(what).hint("leave `protocol` out, or name a dialect that speaks it"));
        }
        // A key goes where its owner said, never to a URL of another.
        let inherits = preset.is_some() || table.base_url.is_none();
        let known_key = template.filter(|_| inherits).and_then(|dialect| dialect.api_key_env.clone());
        let env = table.api_key_env.clone().or(known_key).map(KeySource::Env);
        let command = table.api_key_cmd.clone().map(KeySource::Command);
        let by_url = base_url.and_then(|url| self.dialects.at(dialect.protocol, url));
        let home = preset.filter(|preset| preset.protocol == dialect.protocol).or(by_url).unwrap_or(&dialect);
        let access = home.access.clone();
        let mut headers = table.headers.clone();
        headers.retain(|(name, _)| !models.headers.iter().any(|(other, _)| other == name));
        headers.extend(models.headers);
        Ok(Provider {
            endpoint: self.endpoint(&table.name, base_url, template.unwrap_or(&dialect)),
            access,
            keys: env.into_iter().chain(command).collect(),
            headers,
            extra_body: models.extra_body,
            context_limit: models.context_limit,
            price: models.price,
            ..plain(&table.name, model, dialect)
        })
    }

    fn named_dialect(&self, table: &ProviderTable, models: &ModelTable) -> Result<Option<&Dialect>, Report> {
        let Some(id) = models.dialect.as_ref().or(table.dialect.as_ref()) else { return Ok(None) };
        let unknown = || {
            let known: Vec<&str> = self.dialects.iter().map(|dialect| dialect.id.as_str()).collect();
            let below = models.dialect.as_ref().map_or(String::new(), |_| format!(".models.{:?}", models.pattern));
            let what = format!("{}: providers.{}{below}.dialect: unknown dialect `{id}`", table.place, table.name);
            Report::new(what).hint(format!("one of: {}", known.join(", ")))
        };
        self.dialects.get(id).map(Some).ok_or_else(unknown)
    }

    /// By base URL, then by the model's name, else a stranger.
    fn guess(&self, table: &ProviderTable, base_url: Option<&str>, model: &str) -> Result<Dialect, Report> {
        let Some(protocol) = table.protocol else {
            let what = format!("{}: providers.{}: it needs a protocol or a dialect", table.place, table.name);
            return Err(Report::new(what).hint("such as protocol = \"openai-chat\""));
        };
        let by_url = base_url.and_then(|url| self.dialects.at(protocol, url));
        let known = by_url.or_else(|| self.dialects.made_by(protocol, model)).cloned();
        let stranger = || self.dialects.generic(protocol).map(Dialect::of_a_stranger);
        known.or_else(stranger).ok_or_else(|| Report::new(format!("no dialect speaks {protocol}")))
    }

    fn endpoint(&self, id: &str, base_url: Option<&str>, dialect: &Dialect) -> Endpoint {
        let in_config = format!("[providers.{id}] base_url = \"https://…\" in config.toml");
        let Some(url) = base_url else {
            let what = format!("`{id}` has no base URL of its own");
            return Endpoint::Missing { what, remedy: format!("give it one: {in_config}") };
        };
        let url = url.trim_end_matches('/');
        if !url.contains("{region}") {
            return Endpoint::At(url.to_owned());
        }
        match dialect.access.region_env.iter().find_map(|name| (self.env)(name)) {
            Some(region) => Endpoint::At(url.replace("{region}", region.trim())),
            None => {
                let names = dialect.access.region_env.join(" or ");
                let what = format!("`{id}` needs a region");
                Endpoint::Missing { what, remedy: format!("set {names}, or give it a URL: {in_config}") }
            }
        }
    }
}

fn plain(id: &str, model: &str, dialect: Dialect) -> Provider {
    Provider {
        id: id.to_owned(),
        access: dialect.access.clone(),
        dialect,
        model: model.to_owned(),
        endpoint: Endpoint::BuiltInSimulator,
        keys: Vec::new(),
        headers: Vec::new(),
        extra_body: Map::new(),
        context_limit: None,
        price: None,
    }
}

/// A variable that holds something.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
