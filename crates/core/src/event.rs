//! The events that decoders emit.
//!
//! Events borrow from the bytes being decoded, so that a delta reaches the fold
//! without an allocation. They carry no time; the caller that reads the bytes
//! knows it.

use crate::block::SealKind;
use crate::json_text::JsonText;

/// A block's number within a reply. It increases by one per block and is never
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The provider named the model of this reply.
    Started {
        model: &'a str,
    },
    Opened {
        block: BlockId,
        opening: BlockOpening<'a>,
    },
    /// A summary item begins. Following deltas belong to it.
    Item {
        block: BlockId,
        index: u32,
    },
    /// Text of thinking or an answer, or argument text of a tool call.
    Grew {
        block: BlockId,
        text: &'a str,
    },
    /// An opaque payload. It may arrive after the block was closed.
    Sealed {
        block: BlockId,
        kind: SealKind,
        payload: &'a str,
    },
    /// The block turned out to be of the other kind. Its text moves along.
    Refiled {
        block: BlockId,
        to: ProseKind,
    },
    /// The provider's id of a block, if it arrived after the block began.
    Identified {
        block: BlockId,
        id: &'a str,
    },
    /// The provider's final version of a block, which overrides its deltas.
    Restated {
        block: BlockId,
        part: RestatedPart,
        text: JsonText<'a>,
    },
    /// The provider's own item, with its whitespace. `text_member` names the member that holds the
    /// block's text and was left out.
    NativeItem {
        block: BlockId,
        json: &'a str,
        text_member: Option<&'a str>,
    },
    Closed {
        block: BlockId,
    },
    /// A thinking field was present but empty.
    EmptyThinkingField {
        field: &'a str,
    },
    Usage(Usage),
    Noted(&'a Note),
    Ended(&'a ReplyEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOpening<'a> {
    Text,
    Thinking {
        source: &'a str,
        id: Option<&'a str>,
    },
    /// A call without an id gets an invented one.
    ToolCall {
        id: Option<&'a str>,
        name: &'a str,
    },
    Unmodelled,
}

/// What a run of prose can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProseKind {
    Text,
    Thinking,
}

/// Which part of a block is restated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestatedPart {
    Item(u32),
    Whole,
}

/// Token counts from the provider. Unknown is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
    pub cached: Option<u64>,
}

impl Usage {
    /// Later values replace earlier ones. A missing value changes nothing.
    pub fn update(&mut self, later: Usage) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.reasoning = later.reasoning.or(self.reasoning);
        self.cached = later.cached.or(self.cached);
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
    }
}

/// How a reply ended, with the error if it failed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplyEnd {
    pub ending: Ending,
    pub error: Option<ProviderError>,
}

/// Why a stream stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ending {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    Refusal,
    Pause,
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderError {
    pub message: String,
    pub code: Option<String>,
    pub status: Option<u16>,
}

/// A notice that does not stop the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub code: NoteCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteCode {
    CutOff,
    Malformed,
    Oversized,
    OtherChoices,
    ToolMarkup,
    SourcesDiffer,
    InvalidUtf8,
    Blocked,
}

impl NoteCode {
    pub const ALL: [NoteCode; 8] = [
        NoteCode::CutOff,
        NoteCode::Malformed,
        NoteCode::Oversized,
        NoteCode::OtherChoices,
        NoteCode::ToolMarkup,
        NoteCode::SourcesDiffer,
        NoteCode::InvalidUtf8,
        NoteCode::Blocked,
    ];

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
        }
    }
}

/// Receives the events of a decoder.
pub trait Sink {
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
