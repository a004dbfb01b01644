//! The files as they are written: everything optional, nothing unknown.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::DialectError;
use super::{FinishRules, ReadRules, Rules as Settled, Source, UsageRules};
use crate::protocol::Protocol;
use crate::tags::{Pair, Reach, Start, StrayClose, TagRules};

/// More names than any provider uses; the decoder keeps a slot for each.
pub(crate) const MOST_TEXT_FIELDS: usize = 8;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DialectFile {
    pub(super) id: String,
    #[serde(default, deserialize_with = "protocol")]
    pub(super) protocol: Option<Protocol>,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    #[serde(default)]
    pub(super) generic: bool,
    #[serde(default)]
    pub(super) makes: Vec<String>,
    #[serde(default)]
    read: Read,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    finish: Finish,
    #[serde(default)]
    pub(super) model: Vec<ModelTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    #[serde(rename = "match")]
    pub(super) pattern: String,
    #[serde(default)]
    pub(super) read: Read,
    #[serde(default)]
    pub(super) usage: Usage,
    #[serde(default)]
    pub(super) finish: Finish,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) read: Read,
    pub(super) usage: Usage,
    pub(super) finish: Finish,
}

/// Declares a table whose keys are all optional and can be laid over another.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $key:ident: $kind:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$field_meta])* $key: Option<$kind>,)*
        }

        impl $name {
            /// What the other says wins, key by key.
            fn lay_over(&mut self, other: $name) {
                $(if other.$key.is_some() { self.$key = other.$key; })*
            }
        }
    };
}

table!(Read {
    text: Vec<String>,
    details: Details,
    opaque: Vec<String>,
    call_extra: Vec<String>,
    content_chunks: bool,
    delta_mode: DeltaMode,
    tags: Vec<String>,
    tags_start: TagsStart,
    tags_reach: TagsReach,
    tags_close_at: Vec<String>,
    tags_stray_close: TagsStrayClose,
    assemble_by: AssembleBy,
    final_from: FinalFrom,
    tool_markers: Vec<String>,
});

table!(Usage { path: String, included: bool, stream: UsageStream });

table!(Finish {
    errors: Vec<String>,
    calls_override: bool,
});

/// An array of structured thinking beside the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Details {
    #[default]
    None,
    /// `reasoning_details`
    Openrouter,
    /// `thinking_blocks`
    Litellm,
    /// Whichever comes.
    Any,
}

/// What one delta of thinking text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaMode {
    /// The next piece.
    #[default]
    Delta,
    /// All of it so far.
    Cumulative,
    /// All of it so far if it begins with what is known, else the next piece.
    Auto,
    /// The next piece, unless it repeats the last one exactly.
    Dedupe,
}

/// What tells the pieces of one thought from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssembleBy {
    /// Neighbours of one type belong together.
    #[default]
    None,
    Index,
    OutputIndex,
    DetailIndexType,
}

/// Where the final value of a thought is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalFrom {
    #[default]
    Stream,
    ItemDone,
}

/// Whether usage counters of later chunks replace or add to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageStream {
    #[default]
    Last,
    Sum,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TagsStart {
    #[default]
    Explicit,
    Prefilled,
    Auto,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TagsReach {
    #[default]
    Leading,
    Anywhere,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TagsStrayClose {
    #[default]
    Keep,
    Swallow,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagsFile {
    #[serde(default)]
    pub(super) pair: Vec<PairTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairTable {
    pub(super) id: String,
    open: Vec<String>,
    close: Vec<String>,
    #[serde(default)]
    suffixed: bool,
    tail: Option<String>,
}

impl From<PairTable> for Pair {
    fn from(table: PairTable) -> Pair {
        let PairTable { id, open, close, suffixed, tail } = table;
        Pair { id, open, close, suffixed, tail }
    }
}

impl DialectFile {
    pub(super) fn rules(&self) -> Rules {
        Rules { read: self.read.clone(), usage: self.usage.clone(), finish: self.finish.clone() }
    }

    /// What the other file says wins, key by key. Model tables with a known
    /// pattern are merged; new ones are asked first.
    pub(super) fn lay_over(&mut self, other: DialectFile) {
        let DialectFile { id, protocol, base_url, api_key_env, generic, makes, read, usage, finish, model } = other;
        self.id = id;
        self.protocol = protocol.or(self.protocol);
        self.base_url = base_url.or(self.base_url.take());
        self.api_key_env = api_key_env.or(self.api_key_env.take());
        self.generic |= generic;
        if !makes.is_empty() {
            self.makes = makes;
        }
        self.read.lay_over(read);
        self.usage.lay_over(usage);
        self.finish.lay_over(finish);
        let mut new = Vec::new();
        for table in model {
            match self.model.iter_mut().find(|known| known.pattern == table.pattern) {
                Some(known) => {
                    known.read.lay_over(table.read);
                    known.usage.lay_over(table.usage);
                    known.finish.lay_over(table.finish);
                }
                None => new.push(table),
            }
        }
        new.append(&mut self.model);
        self.model = new;
    }
}

impl Rules {
    pub(super) fn lay_over(&mut self, other: Rules) {
        self.read.lay_over(other.read);
        self.usage.lay_over(other.usage);
        self.finish.lay_over(other.finish);
    }

    /// Turns what the files say into what the decoder works with.
    pub(super) fn settle(
        self,
        protocol: Protocol,
        pairs: &BTreeMap<String, Pair>,
        source: &Source<'_>,
    ) -> Result<Settled, DialectError> {
        let Rules { read, usage, finish } = self;
        let text = read.text.unwrap_or_default();
        if text.len() > MOST_TEXT_FIELDS {
            let problem = format!("at most {MOST_TEXT_FIELDS} names");
            return Err(DialectError::in_key(source, "read.text", problem));
        }
        let assemble_by = read.assemble_by.unwrap_or_default();
        check_assembly(protocol, assemble_by, source)?;
        let tags = TagRules {
            pairs: read.tags.unwrap_or_default().iter().map(|id| pair(id, pairs, source)).collect::<Result<_, _>>()?,
            start: match read.tags_start.unwrap_or_default() {
                TagsStart::Explicit => Start::Explicit,
                TagsStart::Prefilled => Start::Prefilled,
                TagsStart::Auto => Start::Auto,
            },
            reach: match read.tags_reach.unwrap_or_default() {
                TagsReach::Leading => Reach::Leading,
                TagsReach::Anywhere => Reach::Anywhere,
            },
            close_at: read.tags_close_at.unwrap_or_default(),
            stray_close: match read.tags_stray_close.unwrap_or_default() {
                TagsStrayClose::Keep => StrayClose::Keep,
                TagsStrayClose::Swallow => StrayClose::Swallow,
            },
        };
        Ok(Settled {
            read: ReadRules {
                text,
                details: read.details.unwrap_or_default(),
                opaque: read.opaque.unwrap_or_default(),
                call_extra: read.call_extra.unwrap_or_default(),
                content_chunks: read.content_chunks.unwrap_or_default(),
                delta_mode: read.delta_mode.unwrap_or_default(),
                tags,
                assemble_by,
                final_from: read.final_from.unwrap_or_default(),
                tool_markers: read.tool_markers.unwrap_or_default(),
            },
            usage: UsageRules {
                path: usage.path.unwrap_or_default(),
                included: usage.included.unwrap_or(true),
                stream: usage.stream.unwrap_or_default(),
            },
            finish: FinishRules {
                errors: finish.errors.unwrap_or_default(),
                calls_override: finish.calls_override.unwrap_or(true),
            },
        })
    }
}

fn pair(id: &str, pairs: &BTreeMap<String, Pair>, source: &Source<'_>) -> Result<Pair, DialectError> {
    pairs.get(id).cloned().ok_or_else(|| {
        let known: Vec<&str> = pairs.keys().map(String::as_str).collect();
        DialectError::in_key(source, "read.tags", format!("unknown tag family `{id}`; known: {}", known.join(", ")))
    })
}

/// A protocol's own keys cannot be traded for another's.
fn check_assembly(protocol: Protocol, by: AssembleBy, source: &Source<'_>) -> Result<(), DialectError> {
    let fits = match protocol {
        Protocol::OpenaiChat => matches!(by, AssembleBy::None | AssembleBy::DetailIndexType),
        Protocol::OpenaiResponses => by == AssembleBy::OutputIndex,
        Protocol::Anthropic | Protocol::Bedrock | Protocol::Cohere => by == AssembleBy::Index,
        Protocol::Gemini | Protocol::Ollama => by == AssembleBy::None,
    };
    if fits {
        return Ok(());
    }
    Err(DialectError::in_key(source, "read.assemble_by", format!("does not fit the {protocol} protocol")))
}

fn protocol<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Protocol>, D::Error> {
    let word = String::deserialize(deserializer)?;
    word.parse().map(Some).map_err(serde::de::Error::custom)
}
