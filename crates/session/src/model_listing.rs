//! The list of models: those of the providers with a key, or all that are known.

use aside_core::dialect::{Dialect, FactSource};
use aside_core::wire::Destination;
use aside_engine::model_list::{ListedModel, list_models};
use futures_util::future::join_all;
use serde_json::Map;

use crate::error::HintedError;
use crate::key_lookup::{self, FoundKey};
use crate::model_facts::{ModelFacts, Sourced};
use crate::providers::{Provider, ProviderEndpoint, Providers};

/// Which models to list.
#[derive(Debug, Clone, Default)]
pub struct ModelQuery {
    /// All of them must occur in `PROVIDER/MODEL`; case is ignored.
    pub words: Vec<String>,
    pub scope: ModelScope,
    pub source: ListSource,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelScope {
    /// Of the providers with a key, or of all if none has one; without deprecated models.
    #[default]
    Usual,
    /// Of all providers, under every protocol they speak, deprecated models included.
    All,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListSource {
    /// What aside knows.
    #[default]
    Known,
    /// The providers' own lists.
    Live,
}

/// A model of a provider.
#[derive(Debug, Clone)]
pub struct ModelEntry {
    pub provider: String,
    pub dialect: String,
    pub model: String,
    pub facts: ModelFacts,
}

/// The models found, and what went wrong.
#[derive(Debug, Default)]
pub struct ModelListing {
    pub entries: Vec<ModelEntry>,
    pub notes: Vec<String>,
}

impl ModelQuery {
    fn matches(&self, provider: &str, model: &str) -> bool {
        let name = format!("{provider}/{model}").to_lowercase();
        self.words.iter().all(|word| name.contains(&word.to_lowercase()))
    }

    /// Whether a word is the name of this provider.
    fn names(&self, id: &str) -> bool {
        self.words.iter().any(|word| word == id)
    }
}

/// Lists the models that the query asks for.
pub async fn list(query: &ModelQuery, providers: &Providers<'_>) -> ModelListing {
    let mut ids = provider_ids(query, providers);
    if query.scope == ModelScope::Usual {
        let usable: Vec<String> = ids.iter().filter(|id| is_usable(providers, id)).cloned().collect();
        if !usable.is_empty() && query.source == ListSource::Known {
            ids = usable;
        }
    }
    let mut listing = match query.source {
        ListSource::Known => known(&ids, providers),
        ListSource::Live => live(query, &ids, providers).await,
    };
    listing.entries.retain(|entry| {
        query.matches(&entry.provider, &entry.model) && (query.scope == ModelScope::All || !is_deprecated(entry))
    });
    listing
}

/// The models that can be used now: of providers with a key, and of the user's own that need none.
pub fn usable(query: &ModelQuery, providers: &Providers<'_>) -> Vec<ModelEntry> {
    let ids: Vec<String> = provider_ids(query, providers).into_iter().filter(|id| is_usable(providers, id)).collect();
    let mut listing = known(&ids, providers);
    listing.entries.retain(|entry| !is_deprecated(entry));
    listing.entries
}

fn is_deprecated(entry: &ModelEntry) -> bool {
    entry.facts.status.as_ref().is_some_and(|status| status.value == "deprecated")
}

/// The user's providers, then the built-in ones in their order. A provider's further protocols are listed only if they
/// are asked for: they have the same models.
fn provider_ids(query: &ModelQuery, providers: &Providers<'_>) -> Vec<String> {
    let own = providers.tables.iter().map(|table| table.name.clone());
    let mut known: Vec<&Dialect> = providers
        .dialects
        .iter()
        .filter(|dialect| providers.tables.iter().all(|table| table.name != dialect.id))
        .filter(|dialect| {
            query.scope == ModelScope::All || dialect.table_id() == dialect.id || query.names(&dialect.id)
        })
        .collect();
    known.sort_by_key(|dialect| dialect.access.order.unwrap_or(u32::MAX));
    own.chain(known.into_iter().map(|dialect| dialect.id.clone())).collect()
}

/// A provider without its model; none if it is not configured completely.
fn provider(providers: &Providers<'_>, id: &str) -> Option<Provider> {
    providers.resolve(&format!("{id}/*"), None).ok()
}

/// Whether a provider has its key, or is the user's own and needs none.
fn is_usable(providers: &Providers<'_>, id: &str) -> bool {
    let is_own = providers.tables.iter().any(|table| table.name == id);
    provider(providers, id)
        .is_some_and(|provider| (is_own && provider.keys.is_empty()) || key_lookup::has_key(&provider, providers.env))
}

fn entry(providers: &Providers<'_>, id: &str, model: &str) -> Option<ModelEntry> {
    let Provider { dialect, facts, .. } = providers.resolve(&format!("{id}/{model}"), None).ok()?;
    Some(ModelEntry { provider: id.to_owned(), dialect: dialect.id, model: model.to_owned(), facts })
}

fn known(ids: &[String], providers: &Providers<'_>) -> ModelListing {
    let mut listing = ModelListing::default();
    for id in ids {
        let models = known_models(providers, id);
        listing.entries.extend(models.iter().filter_map(|model| entry(providers, id, model)));
    }
    listing
}

/// The models that the table, the config and the dialect name.
fn known_models(providers: &Providers<'_>, id: &str) -> Vec<String> {
    let table = providers.tables.iter().find(|table| table.name == id);
    let configured = table.into_iter().flat_map(|table| &table.models).map(|model| model.pattern.as_str());
    let mut models: Vec<String> =
        configured.filter(|pattern| !pattern.contains(['*', '?'])).map(str::to_owned).collect();
    if let Some(provider) = provider(providers, id) {
        let dialect = &provider.dialect;
        // A server of the user's own that only speaks a dialect has models of its own.
        let is_preset = providers.dialects.get(id).is_some();
        if is_preset {
            models.extend(dialect.access.default_model.clone());
            let rows = providers.dialects.models().rows(dialect.table_id());
            models.extend(rows.iter().map(|found| found.row.model.to_owned()));
        }
    }
    models.sort();
    models.dedup();
    models
}

/// Asks all providers at once. A provider without a key is asked only if it needs none or is named.
async fn live(query: &ModelQuery, ids: &[String], providers: &Providers<'_>) -> ModelListing {
    let named: Vec<&String> = ids.iter().filter(|id| query.names(id)).collect();
    let ids: Vec<&String> = if named.is_empty() { ids.iter().collect() } else { named };
    let is_named = |id: &str| query.names(id);
    let asked = ids.iter().filter_map(|id| {
        let provider = provider(providers, id)?;
        let needs_no_key = provider.keys.is_empty();
        let wanted = is_named(id) || needs_no_key || key_lookup::has_key(&provider, providers.env);
        wanted.then(|| ask(provider, needs_no_key && !is_named(id)))
    });
    let answers = join_all(asked).await;
    let mut listing = ModelListing::default();
    for (id, answer) in answers {
        match answer {
            Ok(models) => {
                let entries = models.into_iter().filter_map(|model| {
                    let entry = entry(providers, &id, &model.name)?;
                    Some(ModelEntry { facts: entry.facts.with_live(live_facts(model)), ..entry })
                });
                listing.entries.extend(entries);
            }
            Err(Some(note)) => listing.notes.push(format!("{id}: {note}")),
            // A local server that is not running is not reported.
            Err(None) => (),
        }
    }
    listing.entries.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
    if listing.entries.is_empty() && listing.notes.is_empty() {
        listing.notes.push("no provider has a key, and no local server answers".to_owned());
    }
    listing
}

type Answer = Result<Vec<ListedModel>, Option<String>>;

async fn ask(provider: Provider, may_be_absent: bool) -> (String, Answer) {
    let id = provider.id.clone();
    let answer = ask_provider(&provider).await;
    (id, answer.map_err(|error| (!may_be_absent).then(|| error.to_string())))
}

async fn ask_provider(provider: &Provider) -> Result<Vec<ListedModel>, HintedError> {
    let base_url = match &provider.endpoint {
        ProviderEndpoint::At(url) => url,
        ProviderEndpoint::BuiltInSimulator => return Ok(Vec::new()),
        ProviderEndpoint::Missing { what, remedy } => return Err(HintedError::new(what).hint(remedy)),
    };
    let key = key_lookup::find(provider)?;
    let to = Destination {
        base_url,
        access: &provider.access,
        key: key.as_ref().map(FoundKey::expose),
        headers: &provider.headers,
        extra_body: &Map::new(),
    };
    list_models(provider.dialect.protocol, &to).await.map_err(|error| HintedError::new(error.to_string()))
}

fn live_facts(model: ListedModel) -> ModelFacts {
    fn live<T>(value: Option<T>) -> Option<Sourced<T>> {
        value.map(|value| Sourced { value, source: FactSource::Live, date: None })
    }
    ModelFacts {
        context: live(model.context),
        input: live(model.input),
        output: live(model.output),
        price: live(model.price),
        images: live(model.images),
        efforts: live(model.efforts),
        thinks: live(model.thinks),
        status: None,
    }
}
