//! The name, description and parameters of a built-in tool.

use aside_core::conversation::ToolSpec;
use serde::de::DeserializeOwned;

pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// A JSON schema.
    pub(crate) parameters: &'static str,
}

impl ToolDefinition {
    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name.to_owned(), self.description.to_owned(), self.parameters.to_owned())
    }

    pub(crate) fn parse_arguments<T: DeserializeOwned>(&self, arguments: &str) -> Result<T, String> {
        serde_json::from_str(arguments)
            .map_err(|error| format!("bad arguments for `{}`: {error}; it takes {}", self.name, self.parameters))
    }
}
