//! The events that decoders emit.
//!
//! Events borrow from the bytes being decoded, so that a delta reaches the fold
//! without an allocation. They carry no time; the caller that reads the bytes
//! knows it.

use serde::{Deserialize, Serialize};

use crate::block::SealKind;
use crate::json_text::JsonText;

/// A block's number within a reply. It increases by one per block and is never
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// One step of a reply. The events of several blocks may alternate.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The provider named the model of this reply.
    Started {
        /// As the provider wrote it.
        model: &'a str,
    },
    /// A block begins.
    Opened {
        /// Its number, one higher than that of the block before.
        block: BlockId,
        /// Its kind, and what is known about it already.
        opening: BlockOpening<'a>,
    },
    /// A summary item begins. Following deltas belong to it.
    Item {
        /// The block it belongs to.
        block: BlockId,
        /// The provider's number of the item, from 0.
        index: u32,
    },
    /// Text of thinking or an answer, or argument text of a tool call.
    Grew {
        /// The block that grows.
        block: BlockId,
        /// The next piece, without JSON escapes.
        text: &'a str,
    },
    /// An opaque payload. It may arrive after the block was closed.
    Sealed {
        /// The block it belongs to.
        block: BlockId,
        /// What the payload is for.
        kind: SealKind,
        /// As received.
        payload: &'a str,
    },
    /// The block turned out to be of the other kind. Its text moves along.
    Refiled {
        /// The block that changes its kind.
        block: BlockId,
        /// The new kind.
        to: ProseKind,
    },
    /// The provider's id of a block, if it arrived after the block began.
    Identified {
        /// The block it belongs to.
        block: BlockId,
        /// As received.
        id: &'a str,
    },
    /// The provider's final version of a block, which overrides its deltas.
    Restated {
        /// The block it replaces text of.
        block: BlockId,
        /// How much of the block it replaces.
        part: RestatedPart,
        /// The final text.
        text: JsonText<'a>,
    },
    /// The provider's own item, with its whitespace. `text_member` names the member that holds the
    /// block's text and was left out.
    NativeItem {
        /// The block it belongs to.
        block: BlockId,
        /// A JSON object.
        json: &'a str,
        /// None if nothing was left out.
        text_member: Option<&'a str>,
    },
    /// A block is complete, except for a seal that may still follow.
    Closed {
        /// The block that ends.
        block: BlockId,
    },
    /// A member that has no neutral form. It is kept under its wire name.
    Extra {
        /// None if it belongs to the reply as a whole.
        block: Option<BlockId>,
        /// Its name and JSON.
        value: ExtraValue<'a>,
    },
    /// A thinking field was present but empty.
    EmptyThinkingField {
        /// Its name on the wire.
        field: &'a str,
    },
    /// Token counts so far. They replace earlier ones.
    Usage(Usage),
    /// A problem that does not stop the decoding.
    Noted(&'a Note),
    /// The reply is over. Always the last event, and emitted once.
    Ended(&'a ReplyEnd),
}

/// A member that has no neutral form, or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraValue<'a> {
    /// Its name on the wire.
    pub name: &'a str,
    /// Set if only this member of the named object is meant.
    pub member: Option<&'a str>,
    /// The value, with its whitespace.
    pub json: &'a str,
    /// The elements of a list, or the characters of a string, are added to those
    /// that came before. Otherwise the value replaces an earlier one.
    pub continues: bool,
}

/// The kind of a new block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOpening<'a> {
    /// Answer text.
    Text,
    /// Reasoning of the model.
    Thinking {
        /// The wire field or tag it arrives in.
        source: &'a str,
        /// The provider's own id. None if it has none or follows later.
        id: Option<&'a str>,
    },
    /// A call without an id gets an invented one.
    ToolCall {
        /// None if the provider gives none.
        id: Option<&'a str>,
        /// The tool to run.
        name: &'a str,
    },
    /// An item that no other kind can hold. [`Event::NativeItem`] follows with
    /// its JSON.
    Unmodelled,
}

/// What a run of prose can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProseKind {
    /// Answer text.
    Text,
    /// Reasoning of the model.
    Thinking,
}

/// Which part of a block is restated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestatedPart {
    /// The summary item with this number.
    Item(u32),
    /// All text of the block.
    Whole,
}

/// Token counts from the provider. Unknown is not zero.
///
/// ```
/// use aside_core::Usage;
/// let usage = Usage::default().with_input(1200).with_output(80);
/// assert_eq!(usage.cached, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, as the provider counts them. Some leave cached
    /// ones out.
    pub input: Option<u64>,
    /// Tokens of the reply.
    pub output: Option<u64>,
    /// Tokens of the thinking. The dialect says whether `output` includes them.
    pub reasoning: Option<u64>,
    /// Tokens of the request that were read from the provider's cache.
    pub cached: Option<u64>,
    /// Tokens of the request that were written to the provider's cache.
    pub cache_write: Option<u64>,
}

impl Usage {
    /// Sets the tokens of the request.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Option<u64>>) -> Usage {
        self.input = input.into();
        self
    }

    /// Sets the tokens of the reply.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Option<u64>>) -> Usage {
        self.output = output.into();
        self
    }

    /// Sets the tokens of the thinking.
    #[must_use]
    pub fn with_thinking(mut self, thinking: impl Into<Option<u64>>) -> Usage {
        self.reasoning = thinking.into();
        self
    }

    /// Sets the tokens that were read from the cache.
    #[must_use]
    pub fn with_cached(mut self, cached: impl Into<Option<u64>>) -> Usage {
        self.cached = cached.into();
        self
    }

    /// Sets the tokens that were written to the cache.
    #[must_use]
    pub fn with_cache_write(mut self, cache_write: impl Into<Option<u64>>) -> Usage {
        self.cache_write = cache_write.into();
        self
    }

    /// Later values replace earlier ones. A missing value changes nothing.
    pub fn update(&mut self, later: Usage) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.reasoning = later.reasoning.or(self.reasoning);
        self.cached = later.cached.or(self.cached);
        self.cache_write = later.cache_write.or(self.cache_write);
    }

    /// For the rare provider that reports counters per chunk.
    pub fn add(&mut self, later: Usage) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.input = sum(self.input, later.input);
        self.output = sum(self.output, later.output);
        self.reasoning = sum(self.reasoning, later.reasoning);
        self.cached = sum(self.cached, later.cached);
        self.cache_write = sum(self.cache_write, later.cache_write);
    }
}

/// How a reply ended, with the error if it failed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplyEnd {
    /// Why it stopped.
    pub ending: Ending,
    /// None unless the provider reported an error.
    pub error: Option<ProviderError>,
}

impl ReplyEnd {
    /// Whether a stream that ends like this has a last frame: it was neither cut off nor ended by an error alone.
    pub fn has_last_frame(&self) -> bool {
        match self.ending {
            Ending::CutOff => false,
            Ending::Unsaid => self.error.is_none(),
            Ending::Stop
            | Ending::Length
            | Ending::ToolCalls
            | Ending::ContentFilter
            | Ending::Refusal
            | Ending::Pause
            | Ending::Error
            | Ending::Unrecognized(_) => true,
        }
    }
}

/// Why a stream stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ending {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A filter of the provider stopped the reply.
    ContentFilter,
    /// The model declined to answer.
    Refusal,
    /// The provider paused a long turn. Sending the reply back continues it.
    Pause,
    /// The provider failed. [`ReplyEnd::error`] says why.
    Error,
    /// An unknown finish reason, kept verbatim.
    Unrecognized(String),
    /// The body was complete, but the provider gave no reason.
    #[default]
    Unsaid,
    /// The stream ended before the provider was done.
    CutOff,
}

/// An error reported by a provider.
///
/// ```
/// use aside_core::ProviderError;
/// let error = ProviderError::new("overloaded").with_status(529);
/// assert_eq!(error.code, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProviderError {
    /// The provider's message.
    pub message: String,
    /// Everything that was said about the cause, if that is more than the
    /// message: gateways put the words of the provider behind them elsewhere.
    pub words: Option<String>,
    /// The provider's machine-readable code.
    pub code: Option<String>,
    /// The HTTP status, or the one given inside the stream.
    pub status: Option<u16>,
    /// Whether the words say that the conversation does not fit into the model's window.
    pub overflow: ContextOverflow,
    /// Whether the words say that the account has no credit left.
    pub lacks_credit: bool,
}

/// Whether a conversation fits into the model's window, and whether compaction can still help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContextOverflow {
    /// Nothing says that it does not fit.
    #[default]
    None,
    /// It does not fit, and no older turns are left to summarise.
    Final,
    /// It does not fit, and summarising its older turns failed.
    CompactionFailed,
}

impl ProviderError {
    /// An error with neither a code nor a status.
    pub fn new(message: impl Into<String>) -> ProviderError {
        ProviderError { message: message.into(), ..ProviderError::default() }
    }

    /// Everything that is known about the cause.
    pub fn all_words(&self) -> &str {
        self.words.as_deref().unwrap_or(&self.message)
    }

    /// The same, and the machine-readable code.
    pub fn words_and_code(&self) -> String {
        format!("{} {}", self.all_words(), self.code.as_deref().unwrap_or_default())
    }

    /// Sets everything that was said, if it is more than the message.
    #[must_use]
    pub fn with_words(mut self, words: impl Into<Option<String>>) -> ProviderError {
        self.words = words.into().filter(|words| *words != self.message);
        self
    }

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> ProviderError {
        self.message = message.into();
        self
    }

    /// Says whether the conversation does not fit into the model's window.
    #[must_use]
    pub fn with_overflow(mut self, overflow: ContextOverflow) -> ProviderError {
        self.overflow = overflow;
        self
    }

    /// Says whether the account has no credit left.
    #[must_use]
    pub fn with_lacks_credit(mut self, lacks_credit: bool) -> ProviderError {
        self.lacks_credit = lacks_credit;
        self
    }

    /// Sets the provider's machine-readable code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Option<String>>) -> ProviderError {
        self.code = code.into();
        self
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: impl Into<Option<u16>>) -> ProviderError {
        self.status = status.into();
        self
    }
}

/// A notice that does not stop the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The kind of problem, for programs.
    pub code: NoteCode,
    /// What happened, for people.
    pub message: String,
}

impl Note {
    /// A notice of this kind.
    pub fn new(code: NoteCode, message: impl Into<String>) -> Note {
        Note { code, message: message.into() }
    }
}

/// The kinds of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteCode {
    /// The stream ended before the provider was done.
    CutOff,
    /// A frame or value could not be read.
    Malformed,
    /// A frame or the reply exceeded its size limit.
    Oversized,
    /// The reply has several choices, of which only the first is read.
    OtherChoices,
    /// The model wrote a tool call as text. It is not run.
    ToolMarkup,
    /// Two fields contain different thinking, of which one was used.
    SourcesDiffer,
    /// Bytes that are not UTF-8 were replaced.
    InvalidUtf8,
    /// The provider blocked the prompt.
    Blocked,
    /// The reply has members without a neutral form, which are kept.
    Kept,
    /// The connection failed after the finish reason and before the usage.
    UsageMissing,
}

impl NoteCode {
    /// All codes, in a fixed order.
    pub const ALL: [NoteCode; 10] = [
        NoteCode::CutOff,
        NoteCode::Malformed,
        NoteCode::Oversized,
        NoteCode::OtherChoices,
        NoteCode::ToolMarkup,
        NoteCode::SourcesDiffer,
        NoteCode::InvalidUtf8,
        NoteCode::Blocked,
        NoteCode::Kept,
        NoteCode::UsageMissing,
    ];

    /// The code as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteCode::CutOff => "cut_off",
            NoteCode::Malformed => "malformed",
            NoteCode::Oversized => "oversized",
            NoteCode::OtherChoices => "other_choices",
            NoteCode::ToolMarkup => "tool_markup",
            NoteCode::SourcesDiffer => "sources_differ",
            NoteCode::InvalidUtf8 => "invalid_utf8",
            NoteCode::Blocked => "blocked",
            NoteCode::Kept => "kept",
            NoteCode::UsageMissing => "usage_missing",
        }
    }
}

/// Receives the events of a decoder.
pub trait Sink {
    /// Receives the next event.
    fn take(&mut self, event: Event<'_>);

    /// Reports bytes that the decoder buffered without emitting an event, so
    /// that a sink can bound the memory of a reply.
    fn buffered(&mut self, _bytes: usize) {}
}

impl<F: FnMut(Event<'_>)> Sink for F {
    fn take(&mut self, event: Event<'_>) {
        self(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_the_words_of_an_error_are_kept_only_if_they_say_more_than_its_message() {
        let error = ProviderError::new("Provider returned error");
        assert_eq!(error.all_words(), "Provider returned error", "the message, if nothing else was said");
        let same = error.clone().with_words("Provider returned error".to_owned());
        assert_eq!(same, error, "the message is not kept twice");
        let more = error.clone().with_words("Provider returned error: Corrupted thought signature.".to_owned());
        assert_eq!(more.all_words(), "Provider returned error: Corrupted thought signature.");
        assert_eq!(more.message, error.message, "people see the message");
        let reworded = more.with_message("refused");
        assert_eq!(
            reworded.all_words(),
            "Provider returned error: Corrupted thought signature.",
            "another message leaves them"
        );
        assert_eq!(reworded.with_words(None).all_words(), "refused");
    }
}
