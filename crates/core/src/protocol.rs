//! The supported wire formats. Each provider uses a dialect of one of them.

use std::fmt;
use std::str::FromStr;

/// A wire format, named after the API that defined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// OpenAI Chat Completions, which most providers imitate.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini `generateContent`.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
    /// Amazon Bedrock Converse.
    Bedrock,
    /// Cohere Chat, version 2.
    Cohere,
}

impl Protocol {
    /// All protocols, in a fixed order.
    pub const ALL: [Protocol; 7] = [
        Protocol::OpenaiChat,
        Protocol::OpenaiResponses,
        Protocol::Anthropic,
        Protocol::Gemini,
        Protocol::Ollama,
        Protocol::Bedrock,
        Protocol::Cohere,
    ];

    /// The name in dialect files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
            Protocol::Anthropic => "anthropic",
            Protocol::Gemini => "gemini",
            Protocol::Ollama => "ollama",
            Protocol::Bedrock => "bedrock",
            Protocol::Cohere => "cohere",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no protocol. The text lists those that exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol `{0}`; use openai-chat, openai-responses, anthropic, gemini, ollama, bedrock or cohere")]
pub struct UnknownProtocol(String);

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(word: &str) -> Result<Protocol, UnknownProtocol> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.as_str() == word)
            .ok_or_else(|| UnknownProtocol(word.to_owned()))
    }
}
