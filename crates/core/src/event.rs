//! What a decoder says, one small fact at a time.
//!
//! Events borrow from the bytes being decoded: a delta reaches the fold
//! without an allocation. They carry no time; whoever reads the bytes knows it.

use crate::block::SealKind;
use crate::text::JsonText;

/// A position minted by the decoder. It grows by one and is never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The provider named the model that answers.
    Started {
        model: &'a str,
    },
    Opened {
        block: BlockId,
        opening: Opening<'a>,
    },
    /// A summary item begins; what grows from here on belongs to it.
    Item {
        block: BlockId,
        index: u32,
    },
    /// Text of a thought or an answer, or argument text of a call.
    Grew {
        block: BlockId,
        text: &'a str,
    },
    /// An opaque payload. It may come after the block closed.
    Sealed {
        block: BlockId,
        kind: SealKind,
        payload: &'a str,
    },
    /// The block turned out to be something else; what it holds moves along.
    Refiled {
        block: BlockId,
        to: Side,
    },
    /// The provider's id of a block, where it came after the block began.
    Identified {
        block: BlockId,
        id: &'a str,
    },
    /// The provider's own last word on a block, which wins over its deltas.
    Restated {
        block: BlockId,
        part: Part,
        text: JsonText<'a>,
    },
    /// The provider's own item. `text_member` names the member that is the
    /// block's text and was left out.
    Kept {
        block: BlockId,
        json: &'a str,
        text_member: Option<&'a str>,
    },
    Closed {
        block: BlockId,
    },
    /// A thinking field was there and stayed empty.
    Seen {
        field: &'a str,
    },
    Usage(Usage),
    Noted(&'a Note),
    Ended(&'a End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening<'a> {
    Text,
    Thinking {
        source: &'a str,
        id: Option<&'a str>,
    },
    /// Without an id the call gets one from its place.
    ToolCall {
        id: Option<&'a str>,
        name: &'a str,
    },
    Unmodelled,
}

/// What prose can be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Text,
    Thinking,
}

/// Which part of a block is restated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Item(u32),
    Whole,
}

/// Tokens as the provider counts them; unknown is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
    pub cached: Option<u64>,
}

impl Usage {
    /// The last value that was said wins; silence takes nothing back.
    pub fn update(&mut self, later: Usage) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.reasoning = later.reasoning.or(self.reasoning);
        self.cached = later.cached.or(self.cached);
    }

    /// For the rare provider whose counters are per chunk.
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

/// How a reply ended, and the failure if it was one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
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
    /// A word we do not know, kept.
    Unrecognized(String),
    /// The body was whole, but the provider never said why it ended.
    #[default]
    Unsaid,
    /// The bytes stopped before the provider was done.
    CutOff,
}

/// What a provider says when it fails.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderError {
    pub message: String,
    pub code: Option<String>,
    pub status: Option<u16>,
}

/// Something worth knowing that does not stop the work.
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

/// Whoever listens to a decoder.
pub trait Sink {
    fn take(&mut self, event: Event<'_>);

    /// So many bytes came that are kept and not told yet. Who bounds the memory
    /// of a reply counts them.
    fn hold(&mut self, _bytes: usize) {}
}

impl<F: FnMut(Event<'_>)> Sink for F {
    fn take(&mut self, event: Event<'_>) {
        self(event);
    }
}
