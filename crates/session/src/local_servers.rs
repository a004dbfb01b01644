//! Finds model servers on this machine (Ollama, LM Studio, llama.cpp, vLLM).

use aside_core::dialect::{Dialect, Dialects};
use aside_engine::probe::{LocalServer, ServerCandidate, probe};

/// The servers that answer on their usual ports, in order of preference.
pub async fn servers(dialects: &Dialects) -> Vec<LocalServer> {
    probe(&candidates(dialects)).await
}

/// A preset that needs no key and has an `order` is a server that users run
/// themselves.
fn candidates(dialects: &Dialects) -> Vec<ServerCandidate> {
    let needs_no_key = |dialect: &&Dialect| dialect.api_key_env.is_none() && dialect.access.order.is_some();
    let mut local: Vec<&Dialect> = dialects.iter().filter(needs_no_key).collect();
    local.sort_by_key(|dialect| dialect.access.order);
    let candidate = |dialect: &Dialect| {
        let base_url = dialect.base_url.clone()?;
        Some(ServerCandidate { id: dialect.id.clone(), protocol: dialect.protocol, base_url })
    };
    local.into_iter().filter_map(candidate).collect()
}

/// The default model among the servers found, as PROVIDER/MODEL.
pub fn first_model(found: &[LocalServer]) -> Option<String> {
    found.iter().find_map(|server| server.models.first().map(|model| format!("{}/{model}", server.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_looked_for_in_the_order_the_product_names() {
        let dialects = Dialects::builtin().unwrap();
        let ids: Vec<String> = candidates(&dialects).into_iter().map(|candidate| candidate.id).collect();
        assert_eq!(ids, ["ollama", "lmstudio", "llamacpp", "vllm"]);
    }

    #[test]
    fn a_server_without_a_model_is_skipped() {
        let server = |id: &str, models: &[&str]| LocalServer {
            id: id.to_owned(),
            base_url: String::new(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
        };
        assert_eq!(first_model(&[]), None);
        let found = [server("a", &[]), server("b", &["m:8b", "n"])];
        assert_eq!(first_model(&found).as_deref(), Some("b/m:8b"));
    }
}
