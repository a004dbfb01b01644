//! Asks providers and local servers which models they have, while the user chooses one.

use aside_front::Update;

use super::Driver;
use crate::log::{self, LogLevel};
use crate::model_listing::{self, ListSource, ModelQuery};
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
            let listing = runtime.block_on(model_listing::list(&query, &providers));
            // A provider that gives no list can still be used; its known models are offered.
            for note in listing.notes {
                log::write(LogLevel::Info, || format!("list of models: {note}"));
            }
            let names = listing.entries.into_iter().map(|entry| format!("{}/{}", entry.provider, entry.model));
            // The front end may be gone.
            drop(updates.send(Update::Models(names.collect())));
        });
    }
}
