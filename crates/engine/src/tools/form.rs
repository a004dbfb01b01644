//! How a tool introduces itself, and how its arguments are read.

use aside_core::conversation::Tool as Spec;
use serde::de::DeserializeOwned;

pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// A JSON schema.
    pub(crate) parameters: &'static str,
}

impl Form {
    pub(crate) fn spec(&self) -> Spec {
        Spec { name: self.name.to_owned(), description: self.about.to_owned(), parameters: self.parameters.to_owned() }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, arguments: &str) -> Result<T, String> {
        serde_json::from_str(arguments)
            .map_err(|error| format!("bad arguments for `{}`: {error}; it takes {}", self.name, self.parameters))
    }
}
