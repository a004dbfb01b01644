//! The endpoint of a provider with its URL and key, and the keys that no one may see.

use aside_core::dialect::Dialects;
use aside_engine::Endpoint;
use aside_sim::{RunningSimulator, ScriptOptions, Service, Simulator};

use crate::error::HintedError;
use crate::key_lookup::{self, FoundKey};
use crate::mcp_tables::McpTable;
use crate::provider_tables::ProviderTable;
use crate::providers::{Provider, ProviderEndpoint, env_var};
use crate::settings::LoadedSettings;

/// The effort levels that the provider's model accepts. The table of models may know levels for which the dialect has
/// no parameter; they would not be sent.
pub(crate) fn efforts(provider: &Provider) -> Vec<String> {
    let parameter = &provider.dialect.rules(Some(&provider.model)).ask.effort;
    if provider.dialect.unknown || parameter.path.is_empty() || parameter.values.is_empty() {
        return Vec::new();
    }
    provider.facts.efforts.as_ref().map(|efforts| efforts.value.clone()).unwrap_or_default()
}

/// All known keys except the endpoint's own, to be redacted wherever they appear.
pub(crate) fn secrets(variables: &[String], loaded: &LoadedSettings, endpoint: &Endpoint) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "authorization", "cookie"].iter().any(|word| name.contains(word))
    };
    let mut secrets: Vec<String> = variables.iter().filter_map(|name| env_var(name)).collect();
    let servers = loaded.mcp.iter().flat_map(McpTable::values);
    let named = endpoint.headers.iter().chain(servers).filter(|(name, _)| is_secret(name));
    secrets.extend(named.flat_map(|(_, value)| secrets_in_value(value)));
    secrets
}

/// The secrets in a header or variable: the word after `Bearer`, or the values of
/// its `${NAME}` variables.
fn secrets_in_value(value: &str) -> Vec<String> {
    if !value.contains("${") {
        return vec![value.rsplit(' ').next().unwrap_or(value).to_owned()];
    }
    let named = value.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    named.filter_map(|(name, _)| env_var(name)).collect()
}

/// The engine's endpoint for a provider, with key and URL.
pub fn endpoint(provider: Provider, simulator: Option<&RunningSimulator>) -> Result<Endpoint, HintedError> {
    let key = key_lookup::find(&provider)?;
    let (base_url, origin_url) = match (provider.endpoint, simulator) {
        (ProviderEndpoint::At(url), _) => (url.clone(), Some(url)),
        // The port differs on every run, but seals stay valid, so it is not part of the origin.
        (ProviderEndpoint::BuiltInSimulator, Some(running)) => (format!("http://{}", running.address()), None),
        (ProviderEndpoint::BuiltInSimulator, None) => return Err(HintedError::new("the simulator does not run")),
        (ProviderEndpoint::Missing { what, remedy }, _) => return Err(HintedError::new(what).hint(remedy)),
    };
    let Provider { id, dialect, model, access, headers, extra_body, .. } = provider;
    let account = key.as_ref().map(FoundKey::account);
    let key = key.map(FoundKey::into_api_key);
    Ok(Endpoint { provider: id, dialect, model, base_url, origin_url, access, key, headers, extra_body, account })
}

/// Starts the simulator in this process, on a free local port.
pub async fn simulator(dialects: &Dialects, rate: Option<f64>) -> Result<RunningSimulator, HintedError> {
    let service = Service::new(dialects.clone(), ScriptOptions { rate, ..ScriptOptions::default() });
    let bound = Simulator::bind(([127, 0, 0, 1], 0).into(), service).await;
    let failed = |error| HintedError::new(format!("the built-in simulator cannot listen: {error}"));
    Ok(bound.map_err(failed)?.spawn())
}

/// The environment variables of providers' keys, to be hidden from child processes.
pub fn key_variables(dialects: &Dialects, tables: &[ProviderTable]) -> Vec<String> {
    let known = dialects.iter().filter_map(|dialect| dialect.api_key_env.clone());
    known.chain(tables.iter().filter_map(|table| table.api_key_env.clone())).collect()
}
