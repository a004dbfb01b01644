//! The parameters of a request in neutral terms: what a client may ask for besides
//! messages and tools.
//!
//! Real numbers are `f64` and compare by value, so `1` and `1.0` are the same. A
//! number that is not finite, and any value that has no neutral form, is kept as
//! JSON in [`ProtocolMembers`].

use std::collections::BTreeMap;

use serde_json::Value;

use crate::protocol::Protocol;
use crate::settings::{Effort, SummaryMode};

/// What a request asks for. Absent members leave the decision to the settings of
/// the user, then to the provider.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Whether a tool must be called.
    pub tool_choice: ToolChoice,
    /// Whether one reply may contain several calls.
    pub parallel_tool_calls: Option<bool>,
    /// The most tokens of the reply.
    pub max_output_tokens: Option<u64>,
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// The form of the answer.
    pub response_format: ResponseFormat,
    /// How long the answer should be.
    pub verbosity: Option<Verbosity>,
    /// Which capacity serves the request.
    pub service_tier: Option<ServiceTier>,
    /// Labels that the provider stores with the request.
    pub metadata: BTreeMap<String, String>,
    /// Identifies the end user to the provider.
    pub user: Option<String>,
    /// What the request says about thinking.
    pub thinking: ThinkingParameters,
    /// Up to where the provider should store the request for later ones.
    pub cache_hints: Vec<CacheHint>,
    /// Names the conversation to the provider's cache, where the dialect has a
    /// parameter for it.
    pub cache_key: Option<String>,
    /// Tools that the provider runs itself, as JSON of one protocol.
    pub native_tools: Vec<NativeTool>,
    /// Members without a neutral form.
    pub extra: Option<ProtocolMembers>,
}

/// How the next token is chosen, and where the reply stops.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// 0 always takes the most likely token.
    pub temperature: Option<f64>,
    /// Samples from the most likely tokens that together have this share.
    pub top_p: Option<f64>,
    /// Samples from this many tokens.
    pub top_k: Option<u64>,
    /// Equal seeds should give equal replies.
    pub seed: Option<i64>,
    /// Against tokens that occurred.
    pub presence_penalty: Option<f64>,
    /// Against tokens that occurred often.
    pub frequency_penalty: Option<f64>,
    /// The reply ends before any of these texts.
    pub stop: Vec<String>,
}

/// Whether the model may, must or must not call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool may be called.
    Never,
    /// Any tool must be called.
    Required,
    /// The tool of this name must be called.
    Named(String),
    /// Only these tools may be called. One tool that must be called is
    /// [`ToolChoice::Named`].
    Allowed {
        /// The names of the tools.
        names: Vec<String>,
        /// Whether one of them must be called.
        required: bool,
    },
}

impl ToolChoice {
    /// Restricts the calls to these tools.
    pub fn allowed(mut names: Vec<String>, required: bool) -> ToolChoice {
        match names.len() {
            1 if required => names.pop().map_or(ToolChoice::Required, ToolChoice::Named),
            _ => ToolChoice::Allowed { names, required },
        }
    }

    /// Whether the reply must contain a call.
    pub fn forces_a_call(&self) -> bool {
        match self {
            ToolChoice::Required | ToolChoice::Named(_) => true,
            ToolChoice::Allowed { required, .. } => *required,
            ToolChoice::Auto | ToolChoice::Never => false,
        }
    }
}

/// The form of the answer.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema(ResponseSchema),
}

/// The JSON schema of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ResponseSchema {
    /// A name for it, which some protocols require.
    pub name: Option<String>,
    /// Tells the model what the answer is for.
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
    /// Whether the answer must fit exactly.
    pub strict: Option<bool>,
}

impl ResponseSchema {
    /// A schema without a name.
    pub fn new(schema: Value) -> ResponseSchema {
        ResponseSchema { schema, ..ResponseSchema::default() }
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$on:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$on])* $variant,)+
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The usual word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }
    };
}

words!(
    /// How long the answer should be.
    Verbosity {
        /// Short.
        Low = "low",
        /// As usual.
        Medium = "medium",
        /// Long.
        High = "high",
    }
);

words!(
    /// Which capacity serves the request.
    ServiceTier {
        /// The provider decides.
        Auto = "auto",
        /// The standard capacity only.
        Default = "default",
        /// Cheaper and slower.
        Flex = "flex",
        /// Dearer and faster.
        Priority = "priority",
    }
);

/// What a request says about thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinkingParameters {
    /// Switches thinking on or off.
    pub enabled: Option<bool>,
    /// How hard the model should think.
    pub effort: Option<Effort>,
    /// The most tokens of thinking.
    pub budget: Option<u64>,
    /// Which summary of the thinking is wanted.
    pub summary: Option<SummaryMode>,
}

/// A point up to which the provider should store the request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHint {
    /// What comes right before the point.
    pub after: CachePosition,
    /// How long to store it, as the provider writes it: `5m`, `1h`.
    pub ttl: Option<String>,
}

impl CacheHint {
    /// A hint that leaves the time to the provider.
    pub fn new(after: CachePosition) -> CacheHint {
        CacheHint { after, ttl: None }
    }
}

/// What comes before a cache point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CachePosition {
    /// The last tool.
    Tools,
    /// The end of the system prompt.
    System,
    /// A block of a message.
    Block {
        /// The index of the message in the request.
        message: usize,
        /// The index of the block in the message.
        block: usize,
    },
}

/// A tool that the provider runs itself, such as a web search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NativeTool {
    /// The protocol that knows it.
    pub protocol: Protocol,
    /// The element of the list of tools, as JSON.
    pub json: String,
}

impl NativeTool {
    /// An element of the list of tools.
    pub fn new(protocol: Protocol, json: impl Into<String>) -> NativeTool {
        NativeTool { protocol, json: json.into() }
    }
}

/// Members that only one protocol knows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProtocolMembers {
    /// The protocol that knows them.
    pub protocol: Protocol,
    /// Their names and values.
    pub members: BTreeMap<String, Value>,
}

impl ProtocolMembers {
    /// Members of this protocol.
    pub fn new(protocol: Protocol, members: BTreeMap<String, Value>) -> ProtocolMembers {
        ProtocolMembers { protocol, members }
    }
}

/// A request that asks for nothing.
pub(crate) static NO_PARAMETERS: Parameters = Parameters {
    tool_choice: ToolChoice::Auto,
    parallel_tool_calls: None,
    max_output_tokens: None,
    sampling: Sampling {
        temperature: None,
        top_p: None,
        top_k: None,
        seed: None,
        presence_penalty: None,
        frequency_penalty: None,
        stop: Vec::new(),
    },
    response_format: ResponseFormat::Text,
    verbosity: None,
    service_tier: None,
    metadata: BTreeMap::new(),
    user: None,
    thinking: ThinkingParameters { enabled: None, effort: None, budget: None, summary: None },
    cache_hints: Vec::new(),
    cache_key: None,
    native_tools: Vec::new(),
    extra: None,
};

impl Parameters {
    /// Asks for nothing.
    pub fn new() -> Parameters {
        Parameters::default()
    }

    /// Sets the tool choice.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Parameters {
        self.tool_choice = choice;
        self
    }

    /// Sets the output limit.
    #[must_use]
    pub fn with_max_output_tokens(mut self, limit: u64) -> Parameters {
        self.max_output_tokens = Some(limit);
        self
    }

    /// Sets how tokens are chosen.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Parameters {
        self.sampling = sampling;
        self
    }

    /// Sets the form of the answer.
    #[must_use]
    pub fn with_response_format(mut self, format: ResponseFormat) -> Parameters {
        self.response_format = format;
        self
    }

    /// Sets what the request says about thinking.
    #[must_use]
    pub fn with_thinking(mut self, thinking: ThinkingParameters) -> Parameters {
        self.thinking = thinking;
        self
    }
}
