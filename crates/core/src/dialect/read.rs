//! The `[read]`, `[usage]` and `[finish]` tables: where thinking is in a reply,
//! how it is counted, how a reply ends.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::DialectError;
use super::table::{choices, table};
use super::{DialectSource, FinishRules, ReadRules, UsageRules};
use crate::protocol::Protocol;
use crate::tags::{StrayClose, TagPair, TagReach, TagRules, TagStart};

/// More names than any provider uses. The decoder reserves space for each.
const MAX_TEXT_FIELDS: usize = 8;

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
    whole_calls: bool,
    hidden: bool,
});

table!(Usage { path: String, included: bool, stream: UsageStream, always: bool });

table!(Finish {
    errors: Vec<String>,
    calls_override: bool,
});

choices!(
    /// An array of structured thinking next to the content.
    #[derive(Default)]
    Details {
        /// There is none.
        #[default]
        None = "none",
        /// `reasoning_details`
        Openrouter = "openrouter",
        /// `thinking_blocks`
        Litellm = "litellm",
        /// Either of them.
        Any = "any",
    }
);

choices!(
    /// What one delta of thinking text holds.
    #[derive(Default)]
    DeltaMode {
        /// The next piece.
        #[default]
        Delta = "delta",
        /// The full text so far.
        Cumulative = "cumulative",
        /// The full text so far if it starts with the known text, else the next
        /// piece.
        Auto = "auto",
        /// The next piece, unless it repeats the previous one exactly.
        Dedupe = "dedupe",
    }
);

choices!(
    /// The key that assigns pieces to thinking blocks.
    #[derive(Default)]
    AssembleBy {
        /// Adjacent pieces of the same type belong together.
        #[default]
        None = "none",
        /// The member `index` of an event.
        Index = "index",
        /// The member `output_index` of an event.
        OutputIndex = "output_index",
        /// The members `index` and `type` of a detail.
        DetailIndexType = "detail_index_type",
    }
);

choices!(
    /// Where the final text of a thinking block is taken from.
    #[derive(Default)]
    FinalFrom {
        /// From its deltas.
        #[default]
        Stream = "stream",
        /// From the final item, which overrides the deltas.
        ItemDone = "item_done",
    }
);

choices!(
    /// Whether usage counters of later chunks replace or add to earlier ones.
    #[derive(Default)]
    UsageStream {
        /// They replace them.
        #[default]
        Last = "last",
        /// They add to them.
        Sum = "sum",
    }
);

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

impl Read {
    /// Resolves the table into the rules that the decoder uses.
    pub(super) fn resolve(
        self,
        protocol: Protocol,
        pairs: &BTreeMap<String, TagPair>,
        source: &DialectSource<'_>,
    ) -> Result<ReadRules, DialectError> {
        let text = self.text.unwrap_or_default();
        if text.len() > MAX_TEXT_FIELDS {
            let problem = format!("at most {MAX_TEXT_FIELDS} names");
            return Err(DialectError::in_key(source, "read.text", problem));
        }
        let assemble_by = self.assemble_by.unwrap_or_default();
        check_assembly(protocol, assemble_by, source)?;
        let tags = TagRules {
            pairs: self.tags.unwrap_or_default().iter().map(|id| pair(id, pairs, source)).collect::<Result<_, _>>()?,
            start: match self.tags_start.unwrap_or_default() {
                TagsStart::Explicit => TagStart::Explicit,
                TagsStart::Prefilled => TagStart::Prefilled,
                TagsStart::Auto => TagStart::Auto,
            },
            reach: match self.tags_reach.unwrap_or_default() {
                TagsReach::Leading => TagReach::Leading,
                TagsReach::Anywhere => TagReach::Anywhere,
            },
            close_at: self.tags_close_at.unwrap_or_default(),
            stray_close: match self.tags_stray_close.unwrap_or_default() {
                TagsStrayClose::Keep => StrayClose::Keep,
                TagsStrayClose::Swallow => StrayClose::Swallow,
            },
        };
        Ok(ReadRules {
            text,
            details: self.details.unwrap_or_default(),
            opaque: self.opaque.unwrap_or_default(),
            call_extra: self.call_extra.unwrap_or_default(),
            content_chunks: self.content_chunks.unwrap_or_default(),
            delta_mode: self.delta_mode.unwrap_or_default(),
            tags,
            assemble_by,
            final_from: self.final_from.unwrap_or_default(),
            tool_markers: self.tool_markers.unwrap_or_default(),
            whole_calls: self.whole_calls.unwrap_or_default(),
            hidden: self.hidden.unwrap_or_default(),
        })
    }
}

impl Usage {
    pub(super) fn resolve(self) -> UsageRules {
        UsageRules {
            path: self.path.unwrap_or_default(),
            included: self.included.unwrap_or(true),
            stream: self.stream.unwrap_or_default(),
            always: self.always.unwrap_or_default(),
        }
    }
}

impl Finish {
    pub(super) fn resolve(self) -> FinishRules {
        FinishRules { errors: self.errors.unwrap_or_default(), calls_override: self.calls_override.unwrap_or(true) }
    }
}

fn pair(id: &str, pairs: &BTreeMap<String, TagPair>, source: &DialectSource<'_>) -> Result<TagPair, DialectError> {
    pairs.get(id).cloned().ok_or_else(|| {
        let known: Vec<&str> = pairs.keys().map(String::as_str).collect();
        DialectError::in_key(source, "read.tags", format!("unknown tag family `{id}`; known: {}", known.join(", ")))
    })
}

/// Each protocol has fixed keys.
fn check_assembly(protocol: Protocol, by: AssembleBy, source: &DialectSource<'_>) -> Result<(), DialectError> {
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
