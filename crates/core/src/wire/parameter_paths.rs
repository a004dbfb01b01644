//! Where each protocol has a parameter. The reader and the writer use the same
//! table, so that what one writes the other reads.

use crate::protocol::Protocol;

/// The parameters that are a single value in every protocol that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainParameter {
    Temperature,
    TopP,
    TopK,
    Seed,
    PresencePenalty,
    FrequencyPenalty,
    Stop,
    Verbosity,
    ServiceTier,
    Metadata,
    User,
}

impl PlainParameter {
    /// The name in the neutral request and in `ask.forbid`.
    pub(super) fn name(self) -> &'static str {
        match self {
            PlainParameter::Temperature => "temperature",
            PlainParameter::TopP => "top_p",
            PlainParameter::TopK => "top_k",
            PlainParameter::Seed => "seed",
            PlainParameter::PresencePenalty => "presence_penalty",
            PlainParameter::FrequencyPenalty => "frequency_penalty",
            PlainParameter::Stop => "stop",
            PlainParameter::Verbosity => "verbosity",
            PlainParameter::ServiceTier => "service_tier",
            PlainParameter::Metadata => "metadata",
            PlainParameter::User => "user",
        }
    }

    /// Its path in a body, if the protocol has it.
    pub(super) fn path(self, protocol: Protocol) -> Option<&'static str> {
        use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiChat, OpenaiResponses};
        Some(match (self, protocol) {
            (PlainParameter::Temperature, OpenaiChat | OpenaiResponses | Anthropic | Cohere) => "temperature",
            (PlainParameter::Temperature, Gemini) => "generationConfig.temperature",
            (PlainParameter::Temperature, Ollama) => "options.temperature",
            (PlainParameter::Temperature, Bedrock) => "inferenceConfig.temperature",
            (PlainParameter::TopP, OpenaiChat | OpenaiResponses | Anthropic) => "top_p",
            (PlainParameter::TopP, Gemini) => "generationConfig.topP",
            (PlainParameter::TopP, Ollama) => "options.top_p",
            (PlainParameter::TopP, Bedrock) => "inferenceConfig.topP",
            (PlainParameter::TopP, Cohere) => "p",
            (PlainParameter::TopK, Anthropic) => "top_k",
            (PlainParameter::TopK, Gemini) => "generationConfig.topK",
            (PlainParameter::TopK, Ollama) => "options.top_k",
            (PlainParameter::TopK, Cohere) => "k",
            (PlainParameter::TopK, OpenaiChat | OpenaiResponses | Bedrock) => return None,
            (PlainParameter::Seed, OpenaiChat | Cohere) => "seed",
            (PlainParameter::Seed, Gemini) => "generationConfig.seed",
            (PlainParameter::Seed, Ollama) => "options.seed",
            (PlainParameter::Seed, OpenaiResponses | Anthropic | Bedrock) => return None,
            (PlainParameter::PresencePenalty, OpenaiChat | Cohere) => "presence_penalty",
            (PlainParameter::PresencePenalty, Gemini) => "generationConfig.presencePenalty",
            (PlainParameter::PresencePenalty, Ollama) => "options.presence_penalty",
            (PlainParameter::PresencePenalty, OpenaiResponses | Anthropic | Bedrock) => return None,
            (PlainParameter::FrequencyPenalty, OpenaiChat | Cohere) => "frequency_penalty",
            (PlainParameter::FrequencyPenalty, Gemini) => "generationConfig.frequencyPenalty",
            (PlainParameter::FrequencyPenalty, Ollama) => "options.frequency_penalty",
            (PlainParameter::FrequencyPenalty, OpenaiResponses | Anthropic | Bedrock) => return None,
            (PlainParameter::Stop, OpenaiChat) => "stop",
            (PlainParameter::Stop, Anthropic | Cohere) => "stop_sequences",
            (PlainParameter::Stop, Gemini) => "generationConfig.stopSequences",
            (PlainParameter::Stop, Ollama) => "options.stop",
            (PlainParameter::Stop, Bedrock) => "inferenceConfig.stopSequences",
            (PlainParameter::Stop, OpenaiResponses) => return None,
            (PlainParameter::Verbosity, OpenaiChat) => "verbosity",
            (PlainParameter::Verbosity, OpenaiResponses) => "text.verbosity",
            (PlainParameter::Verbosity, Anthropic | Gemini | Ollama | Bedrock | Cohere) => return None,
            (PlainParameter::ServiceTier, OpenaiChat | OpenaiResponses | Anthropic) => "service_tier",
            (PlainParameter::ServiceTier, Bedrock) => "serviceTier.type",
            (PlainParameter::ServiceTier, Gemini | Ollama | Cohere) => return None,
            (PlainParameter::Metadata, OpenaiChat | OpenaiResponses) => "metadata",
            (PlainParameter::Metadata, Bedrock) => "requestMetadata",
            (PlainParameter::Metadata, Anthropic | Gemini | Ollama | Cohere) => return None,
            (PlainParameter::User, OpenaiChat | OpenaiResponses) => "user",
            (PlainParameter::User, Anthropic) => "metadata.user_id",
            (PlainParameter::User, Gemini | Ollama | Bedrock | Cohere) => return None,
        })
    }
}

/// Where clients of a protocol put the output limit.
pub(super) fn max_tokens_paths(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::OpenaiChat => &["max_completion_tokens", "max_tokens"],
        Protocol::OpenaiResponses => &["max_output_tokens"],
        Protocol::Anthropic | Protocol::Cohere => &["max_tokens"],
        Protocol::Gemini => &["generationConfig.maxOutputTokens"],
        Protocol::Ollama => &["options.num_predict"],
        Protocol::Bedrock => &["inferenceConfig.maxTokens"],
    }
}

/// Where clients of a protocol put the effort, if its dialect does not say.
pub(super) fn effort_path(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::OpenaiChat => Some("reasoning_effort"),
        Protocol::OpenaiResponses => Some("reasoning.effort"),
        Protocol::Anthropic => Some("output_config.effort"),
        Protocol::Gemini => Some("generationConfig.thinkingConfig.thinkingLevel"),
        Protocol::Ollama => Some("think"),
        Protocol::Bedrock | Protocol::Cohere => None,
    }
}

/// Where clients of a protocol put the budget, if its dialect does not say.
pub(super) fn budget_path(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Anthropic => Some("thinking.budget_tokens"),
        Protocol::Gemini => Some("generationConfig.thinkingConfig.thinkingBudget"),
        Protocol::Cohere => Some("thinking.token_budget"),
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Bedrock => None,
    }
}

/// The members of a body that are not parameters: the conversation, its tools and
/// how the reply is sent.
pub(super) fn content_members(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => &["model", "stream", "messages", "tools"],
        Protocol::OpenaiResponses => &["model", "stream", "input", "instructions", "tools"],
        Protocol::Anthropic => &["model", "stream", "messages", "system", "tools"],
        Protocol::Gemini => &["model", "contents", "systemInstruction", "system_instruction", "tools"],
        Protocol::Bedrock => &["modelId", "messages", "system"],
    }
}
