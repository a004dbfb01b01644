//! The checked config, and the providers that it names. A reload replaces
//! all of it at once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use aside_core::dialect::{Dialects, matches_pattern};
use aside_core::model_table::Price;
use aside_core::protocol::Protocol;
use aside_core::settings::{Layer, Settings};
use aside_engine::{Endpoint, Http, Redactor, Timeouts};
use aside_session::model_listing::{self, ModelQuery};
use aside_session::provider_tables::{ProviderTable, SIMULATOR};
use aside_session::providers::{ProviderEndpoint, Providers, env_var};
use aside_session::serve_table::{ServeTable, StoreChoice};
use aside_session::{HintedError, Overrides, UserFolders, start};
use aside_sim::RunningSimulator;
use tokio::sync::OnceCell;

use crate::connection_threads;
use crate::error_response::{ErrorKind, GatewayError};
use crate::reply_shape::ClientShape;

/// The prefix under which other models are listed for clients that show only names with `claude` in them.
pub(crate) const CLAUDE_PREFIX: &str = "claude-via-aside/";

/// How many resolved names are kept. Clients choose the names.
const MAX_TARGETS: usize = 1000;

/// How to start the gateway.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    pub folders: UserFolders,
    pub overrides: Overrides,
    /// Instead of the address in the config.
    pub listen: Option<SocketAddr>,
    /// Instead of the store in the config.
    pub store: Option<StoreChoice>,
    /// Changes nothing, and only reports what it would change.
    pub shadow: bool,
}

/// The checked config, with everything that depends on it.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) dialects: Arc<Dialects>,
    pub(crate) settings: Settings,
    pub(crate) serve: ServeTable,
    http: Http,
    /// Those of the threads that serve connections.
    https: Vec<Http>,
    /// The keys of all providers in the environment and in headers.
    pub(crate) redactor: Redactor,
    tables: Vec<ProviderTable>,
    targets: Mutex<HashMap<String, Arc<Target>>>,
    /// How replies are written to the clients of each protocol.
    shapes: Mutex<HashMap<Protocol, Arc<ClientShape>>>,
    listed: OnceCell<Arc<Vec<ListedModel>>>,
}

/// A model of a provider, ready to be called.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: Arc<Settings>,
    pub(crate) price: Option<Price>,
    pub(crate) redactor: Redactor,
}

impl Target {
    pub(crate) fn protocol(&self) -> Protocol {
        self.endpoint.dialect.protocol
    }

    /// `PROVIDER/MODEL`
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.endpoint.provider, self.endpoint.model)
    }
}

/// A model that clients are told about.
#[derive(Debug, Clone)]
pub(crate) struct ListedModel {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) context: Option<u64>,
    pub(crate) output: Option<u64>,
    /// Empty if unknown.
    pub(crate) efforts: Vec<String>,
    pub(crate) images: Option<bool>,
}

impl ListedModel {
    /// A model about which nothing is known.
    pub(crate) fn named(id: &str, owner: &str) -> ListedModel {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        ListedModel { id, owner, context: None, output: None, efforts: Vec::new(), images: None }
    }
}

impl Config {
    pub(crate) fn load(options: &GatewayOptions) -> Result<Config, HintedError> {
        let loaded = options.overrides.load(&options.folders)?;
        let dialects = Arc::new(options.folders.dialects()?);
        let variables = start::key_variables(&dialects, &loaded.providers);
        let secrets = variables.iter().filter_map(|name| env_var(name));
        let mut serve = loaded.serve;
        serve.listen = options.listen.unwrap_or(serve.listen);
        serve.store = options.store.clone().unwrap_or(serve.store);
        let timeouts = Timeouts::of(&loaded.settings);
        Ok(Config {
            http: Http::new(timeouts),
            https: (0..serve.threads).map(|_| Http::new(timeouts)).collect(),
            redactor: Redactor::new(secrets),
            dialects,
            settings: loaded.settings,
            serve,
            tables: loaded.providers,
            targets: Mutex::default(),
            shapes: Mutex::default(),
            listed: OnceCell::new(),
        })
    }

    /// The connections to providers that belong to this thread.
    pub(crate) fn http(&self) -> &Http {
        connection_threads::number().and_then(|number| self.https.get(number)).unwrap_or(&self.http)
    }

    fn providers(&self) -> Providers<'_> {
        Providers { dialects: &self.dialects, tables: &self.tables, env: &env_var }
    }

    /// The targets that a client's name for a model stands for, in the order in which to try them.
    pub(crate) fn names_for(&self, asked: &str) -> Vec<String> {
        let asked = asked.strip_prefix(CLAUDE_PREFIX).unwrap_or(asked);
        let is_provider = |id: &str| {
            id == SIMULATOR || self.dialects.get(id).is_some() || self.tables.iter().any(|table| table.name == id)
        };
        if asked.split_once('/').is_some_and(|(id, _)| is_provider(id)) {
            return vec![asked.to_owned()];
        }
        let same = self.serve.models.iter().find(|alias| alias.pattern == asked);
        let alias = same.or_else(|| self.serve.models.iter().find(|alias| matches_pattern(&alias.pattern, asked)));
        alias.map_or_else(|| vec![asked.to_owned()], |alias| alias.targets.clone())
    }

    /// Finds a provider, its key and its rules.
    pub(crate) async fn target(
        self: &Arc<Config>,
        name: &str,
        simulator: &OnceCell<Arc<RunningSimulator>>,
    ) -> Result<Arc<Target>, GatewayError> {
        if let Some(target) = self.known_target(name) {
            return Ok(target);
        }
        let unknown = |what: String| GatewayError::new(ErrorKind::UnknownModel, what);
        let provider = self.providers().resolve(name, None).map_err(|error| unknown(with_hint(&error)))?;
        let simulator = match &provider.endpoint {
            ProviderEndpoint::BuiltInSimulator if !self.serve.sim => {
                return Err(unknown("the simulator is switched off by [serve] sim = false".to_owned()));
            }
            ProviderEndpoint::BuiltInSimulator => {
                let start = || async { start::simulator(&self.dialects, None).await.map(Arc::new) };
                let failed = |error: HintedError| GatewayError::new(ErrorKind::UpstreamUnreachable, error.to_string());
                Some(Arc::clone(simulator.get_or_try_init(start).await.map_err(failed)?))
            }
            ProviderEndpoint::Missing { what, remedy } => return Err(unknown(format!("{what}; {remedy}"))),
            ProviderEndpoint::At(_) => None,
        };
        let mut settings = self.settings.clone();
        provider.apply_defaults(&mut settings);
        let price = provider.facts.price.clone().map(|price| price.value);
        // Finding a key may run a command.
        let found = tokio::task::spawn_blocking(move || start::endpoint(provider, simulator.as_deref())).await;
        let endpoint = match found {
            Ok(Ok(endpoint)) => endpoint,
            Ok(Err(error)) => return Err(GatewayError::new(ErrorKind::NoProviderKey, with_hint(&error))),
            Err(_) => return Err(GatewayError::new(ErrorKind::NoProviderKey, "the provider's key cannot be read")),
        };
        let redactor = self.redactor.with_key(endpoint.key.as_ref());
        let target = Arc::new(Target { endpoint, settings: Arc::new(settings), price, redactor });
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.len() >= MAX_TARGETS {
            targets.clear();
        }
        targets.insert(name.to_owned(), Arc::clone(&target));
        Ok(target)
    }

    /// How replies are written to clients of a protocol. None if no dialect speaks it.
    pub(crate) fn client_shape(&self, protocol: Protocol) -> Option<Arc<ClientShape>> {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = shapes.get(&protocol) {
            return Some(Arc::clone(shape));
        }
        let shape = Arc::new(ClientShape::of(&self.dialects, protocol, self.serve.thinking)?);
        shapes.insert(protocol, Arc::clone(&shape));
        Some(shape)
    }

    fn known_target(&self, name: &str) -> Option<Arc<Target>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The models of the providers with a key, the user's own names for them, or else the simulator's.
    pub(crate) async fn listed(self: &Arc<Config>) -> Arc<Vec<ListedModel>> {
        let list = self.listed.get_or_init(|| async {
            let config = Arc::clone(self);
            let found = tokio::task::spawn_blocking(move || config.find_listed()).await;
            Arc::new(found.unwrap_or_default())
        });
        Arc::clone(list.await)
    }

    fn find_listed(&self) -> Vec<ListedModel> {
        let providers = self.providers();
        let entries = model_listing::usable(&ModelQuery::default(), &providers);
        let mut models: Vec<ListedModel> = entries
            .into_iter()
            .map(|entry| ListedModel {
                id: format!("{}/{}", entry.provider, entry.model),
                owner: entry.provider,
                context: entry.facts.context.map(|context| context.value),
                output: entry.facts.output.map(|output| output.value),
                efforts: entry.facts.efforts.map(|efforts| efforts.value).unwrap_or_default(),
                images: entry.facts.images.map(|images| images.value),
            })
            .collect();
        let names = self.serve.models.iter().filter(|alias| !alias.pattern.contains(['*', '?']));
        models.extend(names.map(|alias| ListedModel::named(&alias.pattern, "aside")));
        if models.is_empty() && self.serve.sim {
            let ids = self.dialects.iter().map(|dialect| format!("{SIMULATOR}/{}", dialect.id));
            models.extend(ids.map(|id| ListedModel::named(&id, SIMULATOR)));
        }
        models
    }

    /// The settings of one request: those of the target, and what the client sets by header.
    pub(crate) fn settings_for(&self, target: &Target, wanted: &[String]) -> Result<Arc<Settings>, GatewayError> {
        if wanted.is_empty() {
            return Ok(Arc::clone(&target.settings));
        }
        let mut settings = Settings::clone(&target.settings);
        for text in wanted {
            let change: aside_core::settings::SettingChange = text
                .parse()
                .map_err(|error: aside_core::settings::SettingError| GatewayError::bad_request(error.what()))?;
            if !change.key().is_about_thinking() {
                let message = format!("aside-set: `{}` cannot be set by a client; use reasoning.…", change.key());
                return Err(GatewayError::bad_request(message));
            }
            settings.apply(Layer::Session, change);
        }
        Ok(Arc::new(settings))
    }
}

pub(crate) fn no_keys(listen: SocketAddr) -> HintedError {
    HintedError::new(format!("listening on {listen} without a key would let everybody use your providers"))
        .hint("create a key with aside serve key new NAME, or listen on 127.0.0.1")
}

fn with_hint(error: &HintedError) -> String {
    match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
