//! Recognises clients by their `User-Agent`.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

/// The client of a request, as it names itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) version: String,
    /// From a fixed list, so that clients cannot invent metric labels.
    pub(crate) label: &'static str,
}

/// The longest name or version in a receipt.
const MAX_CHARS: usize = 80;

/// Parts of a `User-Agent`, in lower case, and what they stand for. The first match counts.
const KNOWN: [(&str, &str); 26] = [
    ("claude-cli", "claude-code"),
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("gemini-cli", "gemini-cli"),
    ("opencode", "opencode"),
    ("qwen-code", "qwen-code"),
    ("kimi-cli", "kimi-cli"),
    ("goose", "goose"),
    ("cursor", "cursor"),
    ("cline", "cline"),
    ("githubcopilot", "github-copilot"),
    ("zed", "zed"),
    ("open-webui", "open-webui"),
    ("librechat", "librechat"),
    ("aider", "aider"),
    ("litellm", "litellm"),
    ("langchain", "langchain"),
    ("pydantic-ai", "pydantic-ai"),
    ("ai-sdk", "ai-sdk"),
    ("google-genai-sdk", "google-genai"),
    ("openai/", "openai-sdk"),
    ("anthropic/", "anthropic-sdk"),
    ("ollama-", "ollama-sdk"),
    ("aside", "aside"),
    ("curl", "curl"),
];

/// How many are remembered.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Remembers clients, because nearly all requests are from a few.
#[derive(Debug)]
pub(crate) struct Clients(Mutex<LruCache<Box<[u8]>, Client>>);

impl Default for Clients {
    fn default() -> Clients {
        Clients(Mutex::new(LruCache::new(MAX_KNOWN)))
    }
}

impl Clients {
    /// The client with this `User-Agent`.
    pub(crate) fn of(&self, user_agent: &[u8]) -> Client {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(user_agent) {
            Some(client) => client.clone(),
            None => {
                let client = Client::of(&String::from_utf8_lossy(user_agent));
                known.put(Box::from(user_agent), client.clone());
                client
            }
        }
    }
}

impl Client {
    fn of(user_agent: &str) -> Client {
        let product = user_agent.split_whitespace().next().unwrap_or_default();
        let (name, version) = product.split_once('/').unwrap_or((product, ""));
        let lower: String = user_agent.chars().take(400).collect::<String>().to_ascii_lowercase();
        let label = KNOWN.iter().find(|(part, _)| lower.contains(part)).map_or("other", |(_, label)| label);
        let short = |text: &str| text.chars().filter(|one| !one.is_control()).take(MAX_CHARS).collect();
        Client { name: short(name), version: short(version), label }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_name() {
        #[rustfmt::skip]
        let cases = [
            ("claude-cli/2.1.3 (external, cli)", "claude-cli", "2.1.3", "claude-code"),
            ("codex_exec/0.166.0 (Linux)",       "codex_exec", "0.166.0", "codex"),
            ("OpenAI/Python 2.1.0",              "OpenAI", "Python", "openai-sdk"),
            ("made-up/1",                        "made-up", "1", "other"),
            ("",                                 "", "", "other"),
        ];
        for (agent, name, version, label) in cases {
            let expected = Client { name: name.to_owned(), version: version.to_owned(), label };
            assert_eq!(Client::of(agent), expected, "{agent}");
        }
    }
}
