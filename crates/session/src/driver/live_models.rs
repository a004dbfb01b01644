//! Asks providers and local servers which models they have, while the user chooses one.

use aside_front::Update;

use super::Driver;
use crate::log::{self, LogLevel};
use crate::model_listing::{self, ListSource, ModelEntry, ModelQuery};
use crate::providers::{Providers, env_var};
use crate::start;

impl Driver {
    /// Asks on a thread of its own: an answer may take seconds, and so may the command that prints a key.
    pub(super) fn list_models(&self) {
        let (updates, dialects) = (self.front.updates(), self.dialects());
        let tables = self.active.provider_tables().to_vec();
        std::thread::spawn(move || {
            let runtime = match start::runtime() {
                Ok(runtime) => runtime,
                Err(error) => return log::write(LogLevel::Warn, || format!("models cannot be listed: {error}")),
            };
            let providers = Providers { dialects: &dialects, tables: &tables, env: &env_var };
            let query = ModelQuery { source: ListSource::Live, ..ModelQuery::default() };
            // What is known can be chosen while the providers are asked.
            let known = model_listing::usable(&query, &providers);
            if !known.is_empty() {
                drop(updates.send(Update::Models(names(&[], &known))));
            }
            let listing = runtime.block_on(model_listing::list(&query, &providers));
            // A provider that gives no list can still be used; its known models are offered.
            for note in listing.notes {
                log::write(LogLevel::Info, || format!("list of models: {note}"));
            }
            // The front end may be gone.
            drop(updates.send(Update::Models(names(&listing.entries, &known))));
        });
    }
}

/// The models that the providers listed, and the known ones of providers that gave no list.
fn names(live: &[ModelEntry], known: &[ModelEntry]) -> Vec<String> {
    let has_list = |provider: &str| live.iter().any(|entry| entry.provider == provider);
    let unlisted = known.iter().filter(|entry| !has_list(&entry.provider));
    live.iter().chain(unlisted).map(|entry| format!("{}/{}", entry.provider, entry.model)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_facts::ModelFacts;

    #[test]
    fn t19_the_known_models_of_a_provider_count_unless_it_lists_its_own() {
        let entry = |provider: &str, model: &str| ModelEntry {
            provider: provider.to_owned(),
            dialect: provider.to_owned(),
            model: model.to_owned(),
            facts: ModelFacts::default(),
        };
        let known = [entry("acme", "old"), entry("beta", "one"), entry("beta", "two")];
        assert_eq!(names(&[], &known), ["acme/old", "beta/one", "beta/two"]);
        assert_eq!(names(&[entry("acme", "new")], &known), ["acme/new", "beta/one", "beta/two"]);
    }
}
