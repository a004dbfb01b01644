//! A message and its blocks, as the server keeps them for its tabs.

use aside_core::block::{Arguments, Block, Thinking, ThinkingSpan, Time};
use aside_core::compaction::is_summary;
use aside_core::message::{Message, Role};
use aside_core::permission_question::escape_unsafe;
use aside_core::terminal_text::terminal_safe_line;
use aside_front::StreamedTokens;
use aside_front::thinking_title::{TitleReader, first_title, first_words};
use aside_front::tool_call::{CallState, SUBJECT_ARGUMENTS};
use aside_markdown::{MarkdownChange, MarkdownStream};
use serde_json::json;

use crate::frames::Position;
use crate::transcript::WithText;
use crate::view::{
    BlockView, CallView, EntryView, Extent, OutputView, Progress, Speaker, ThinkingView, UsageView, result,
};

/// How much of the first words a folded block shows.
const WORDS_BYTES: usize = 240;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The id in the store.
    pub id: i64,
    pub role: Speaker,
    pub at: Option<u64>,
    pub model: Option<String>,
    pub state: Progress,
    pub usage: Option<UsageView>,
    pub blocks: Vec<Body>,
}

/// A block of a message.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Thinking(ThinkingBody),
    Answer(AnswerBody),
    Prompt(String),
    Call(CallBody),
    Result { call: String, state: CallState, text: String },
    Other(String),
}

#[derive(Debug, Clone)]
pub(crate) struct ThinkingBody {
    pub text: String,
    /// The bytes that were sent to the tabs.
    pub framed: usize,
    pub titles: TitleReader,
    pub tokens: StreamedTokens,
    pub state: Progress,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    pub hidden_bytes: usize,
}

impl ThinkingBody {
    pub(crate) fn running(now: u64) -> ThinkingBody {
        ThinkingBody {
            text: String::new(),
            framed: 0,
            titles: TitleReader::default(),
            tokens: StreamedTokens::default(),
            state: Progress::Running,
            started: Some(now),
            ended: None,
            hidden_bytes: 0,
        }
    }

    fn stored(thinking: &Thinking) -> ThinkingBody {
        let seals = thinking.seals().into_iter().flat_map(|seals| [&seals.signature, &seals.encrypted]);
        let hidden_bytes = seals.flatten().map(|seal| seal.payload.len()).sum();
        let mut body = ThinkingBody { started: None, ..ThinkingBody::running(0) };
        body.text = thinking.text().to_owned();
        body.tokens.push(&body.text.clone());
        body.close(thinking.span, hidden_bytes);
        body
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.titles.push(text);
        self.tokens.push(text);
    }

    pub(crate) fn item(&mut self) {
        if !self.text.is_empty() {
            self.push("\n\n");
        }
        self.titles.item();
    }

    pub(crate) fn close(&mut self, span: Option<ThinkingSpan>, hidden_bytes: usize) {
        self.state = Progress::Done;
        self.hidden_bytes = hidden_bytes;
        let time = |time: Time| time.0;
        if span.is_some() {
            (self.started, self.ended) = (span.map(|span| time(span.started)), span.map(|span| time(span.ended)));
        }
    }

    fn view(&self, with_text: WithText) -> ThinkingView {
        let title = match self.state {
            Progress::Running => self.titles.current(),
            Progress::Done | Progress::Interrupted => self.titles.first().or_else(|| first_title(&self.text)),
        };
        let start = aside_core::json_text::split_within(self.text.trim_start(), WORDS_BYTES).0;
        ThinkingView {
            state: self.state,
            title: title.map(str::to_owned),
            words: first_words(start),
            started_at: self.started,
            ended_at: self.ended,
            bytes: self.text.len(),
            tokens: self.tokens.tokens(),
            hidden_bytes: self.hidden_bytes,
            text: (with_text == WithText::Yes).then(|| self.text.clone()),
        }
    }
}

/// An answer, as Markdown that grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerBody(MarkdownStream);

impl AnswerBody {
    pub(crate) fn push(&mut self, text: &str) {
        self.0.push(text);
    }

    pub(crate) fn finish(&mut self) {
        self.0.finish();
    }

    pub(crate) fn change(&mut self) -> Option<MarkdownChange> {
        self.0.change()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallBody {
    pub call: String,
    pub name: String,
    pub arguments: String,
    pub state: CallState,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    /// What it wrote so far, while it runs.
    pub output: Option<OutputView>,
}

impl CallBody {
    pub(crate) fn streaming(name: &str) -> CallBody {
        CallBody {
            call: String::new(),
            name: name.to_owned(),
            arguments: String::new(),
            state: CallState::Streaming,
            started: None,
            ended: None,
            output: None,
        }
    }

    fn view(&self) -> CallView {
        CallView {
            call: self.call.clone(),
            name: terminal_safe_line(&self.name),
            subject: terminal_safe_line(&escape_unsafe(&subject(&self.arguments))),
            arguments: escape_unsafe(&self.arguments),
            state: self.state,
            started_at: self.started,
            ended_at: self.ended,
            output: self.output.clone(),
        }
    }
}

/// The most informative argument, or all of them.
fn subject(arguments: &str) -> String {
    let parsed: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(arguments).ok();
    let Some(parsed) = parsed else { return String::new() };
    let named = SUBJECT_ARGUMENTS.iter().find_map(|name| parsed.get(*name)?.as_str());
    let only = || parsed.values().next().filter(|_| parsed.len() == 1)?.as_str();
    let subject = named.or_else(only).unwrap_or_default();
    aside_core::json_text::split_within(subject, 1024).0.to_owned()
}

impl Body {
    pub(crate) fn answer(text: &str) -> Body {
        let mut stream = MarkdownStream::default();
        stream.push(text);
        // A tab gets this with the block itself.
        let _sent = stream.change();
        Body::Answer(AnswerBody(stream))
    }

    pub(crate) fn of(block: &Block, role: Speaker) -> Body {
        match block {
            Block::Text(text) if matches!(role, Speaker::Assistant | Speaker::Aside) => {
                Body::Answer(AnswerBody(MarkdownStream::finished(&text.text)))
            }
            Block::Text(text) => Body::Prompt(text.text.clone()),
            Block::Thinking(thinking) => Body::Thinking(ThinkingBody::stored(thinking)),
            Block::ToolCall(call) => {
                let (Arguments::Json(text) | Arguments::Broken(text)) = &call.arguments;
                Body::Call(CallBody {
                    call: call.id.as_str().to_owned(),
                    arguments: text.clone(),
                    state: CallState::Waiting,
                    ..CallBody::streaming(&call.name)
                })
            }
            Block::ToolResult(result) => {
                let text = result.described().into_owned();
                Body::Result { call: result.id.clone(), state: CallState::of_result(result.is_error, &text), text }
            }
            Block::Media(media) => Body::Other(media.describe()),
            Block::Unmodelled(_) => Body::Other("an item of the provider without a neutral form".to_owned()),
        }
    }

    /// The text of a position.
    pub(crate) fn text(&self) -> &str {
        match self {
            Body::Thinking(thinking) => &thinking.text,
            Body::Answer(answer) => answer.0.source(),
            Body::Prompt(text) | Body::Result { text, .. } => text,
            Body::Call(call) => &call.arguments,
            Body::Other(_) => "",
        }
    }

    /// How many bytes that a tab already has the next frame may send again.
    pub(crate) fn resent_bytes(&self) -> usize {
        match self {
            // Only what is new is sent.
            Body::Thinking(_) => 0,
            Body::Call(call) => call.arguments.len(),
            Body::Answer(answer) => answer.0.source().len().min(1 << 10),
            Body::Prompt(_) | Body::Result { .. } | Body::Other(_) => 0,
        }
    }

    /// Whether this is the same block, with at least as much text.
    pub(crate) fn continues(&self, before: &Body) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(before) && self.text().starts_with(before.text())
    }

    pub(crate) fn view(&self, with_text: WithText) -> BlockView {
        match self {
            Body::Thinking(thinking) => BlockView::Thinking(thinking.view(with_text)),
            Body::Answer(answer) => BlockView::Text { nodes: answer.0.nodes() },
            Body::Prompt(text) => BlockView::Prompt { text: text.clone() },
            Body::Call(call) => BlockView::Call(call.view()),
            Body::Result { call, state, text } => BlockView::Result(result(call, *state, text, Extent::First)),
            Body::Other(label) => BlockView::Other { label: label.clone() },
        }
    }
}

/// Only what is shown is compared.
impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        let facts = |body: &Body| match body {
            Body::Thinking(body) => Some((body.state, body.started, body.ended, body.hidden_bytes)),
            Body::Answer(_) | Body::Prompt(_) | Body::Call(_) | Body::Result { .. } | Body::Other(_) => None,
        };
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.text() == other.text()
            && facts(self) == facts(other)
    }
}

impl Entry {
    pub(crate) fn new(id: i64, role: Speaker) -> Entry {
        Entry { id, role, at: None, model: None, state: Progress::Done, usage: None, blocks: Vec::new() }
    }

    pub(crate) fn of(id: i64, message: &Message) -> Entry {
        let role = match message.role {
            Role::System => Speaker::System,
            Role::User if is_summary(message) || message.is_answer_now() => Speaker::Aside,
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
            Role::Tool => Speaker::Tool,
        };
        let mut blocks: Vec<Body> = message.blocks.iter().map(|block| Body::of(block, role)).collect();
        if message.interrupted
            && let Some(Body::Thinking(last)) = blocks.last_mut()
        {
            last.state = Progress::Interrupted;
        }
        Entry {
            id,
            role,
            at: message.at.map(|at| at.0),
            model: message.origin.as_ref().and_then(|origin| {
                let provider = origin.provider.as_ref().map_or_else(String::new, |provider| format!("{provider}/"));
                Some(format!("{provider}{}", origin.model.as_ref()?))
            }),
            state: if message.interrupted { Progress::Interrupted } else { Progress::Done },
            usage: message.usage.map(UsageView::from),
            blocks,
        }
    }

    /// The end of the message.
    pub(crate) fn position(&self) -> Position {
        self.position_in(self.blocks.len().saturating_sub(1))
    }

    /// The end of a block, or of the last one before it.
    pub(crate) fn position_in(&self, block: usize) -> Position {
        let block = block.min(self.blocks.len().saturating_sub(1));
        Position { entry: self.id, block, bytes: self.blocks.get(block).map_or(0, |body| body.text().len()) }
    }

    /// The view of the message. Thinking includes its text until the budget is used up.
    pub(crate) fn view(&self, budget: &mut usize) -> EntryView {
        let blocks = self.blocks.iter().map(|body| {
            let fits = body.text().len() <= *budget;
            if matches!(body, Body::Thinking(_)) && fits {
                *budget -= body.text().len();
            }
            body.view(if fits { WithText::Yes } else { WithText::No })
        });
        let blocks = blocks.collect();
        let Entry { id, role, at, state, usage, .. } = *self;
        EntryView { id, role, at, model: self.model.clone(), state, usage, blocks }
    }

    /// Everything but the blocks.
    pub(crate) fn facts(&self) -> serde_json::Value {
        json!({"entry": self.id, "state": self.state, "at": self.at, "model": self.model, "usage": self.usage})
    }

    /// Whether the blocks have the same content as these stored ones.
    pub(crate) fn has_same_content(&self, stored: &Entry) -> bool {
        self.blocks.len() == stored.blocks.len() && self.blocks.iter().zip(&stored.blocks).all(|(a, b)| a == b)
    }

    pub(crate) fn adopt_facts(&mut self, stored: Entry) {
        let Entry { at, model, state, usage, .. } = stored;
        (self.state, self.usage) = (state, usage);
        self.at = at.or(self.at);
        self.model = model.or(self.model.take());
    }

    /// Tabs get the whole text with the message.
    pub(crate) fn mark_framed(&mut self) {
        for body in &mut self.blocks {
            if let Body::Thinking(thinking) = body {
                thinking.framed = thinking.text.len();
            }
        }
    }

    pub(crate) fn interrupt(&mut self, now: u64) {
        self.state = Progress::Interrupted;
        for body in &mut self.blocks {
            match body {
                Body::Thinking(thinking) if thinking.state == Progress::Running => {
                    (thinking.state, thinking.ended) = (Progress::Interrupted, Some(now));
                }
                Body::Answer(answer) => answer.finish(),
                Body::Thinking(_) | Body::Prompt(_) | Body::Call(_) | Body::Result { .. } | Body::Other(_) => (),
            }
        }
        self.mark_framed();
    }

    /// Calls that have not run never will. Returns whether there were any.
    pub(crate) fn settle_calls(&mut self) -> bool {
        let mut has_changed = false;
        for body in &mut self.blocks {
            if let Body::Call(call) = body
                && call.state != call.state.settled()
            {
                call.state = call.state.settled();
                call.output = None;
                has_changed = true;
            }
        }
        has_changed
    }
}
