//! Writes a Chat Completions stream: one chunk per delta, then the finish reason,
//! the usage and `[DONE]`.

use super::block_out::{CallOut, ChatBlockOut, ThinkingOut};
use super::delta_mode_out::DeltaModeWriter;
use super::detail_out::DetailOut;
use super::reply_members::{chunk_head, finish_reason, kept_extra, opaque_member, seal_extra, usage_json};
use super::thinking_carrier::{ContentState, ThinkingCarrier, ThinkingTags, carrier_for, dialect_detail_list};
use crate::dialect::{Carrier, Rules};
use crate::event::{BlockOpening, Event, ProseKind, ReplyEnd, Usage};
use crate::json_text::{ObjectWriter, Raw, quote};
use crate::tags::TagStart;
use crate::wire::ReplyHead;
use crate::wire::error_out::error_in_stream;
use crate::wire::request_draft::object;
use crate::wire::stream_parts::{CallIdSource, FrameWriter, PerBlock, is_unknown_usage};

#[derive(Debug)]
pub(in crate::wire) struct ChatWriter {
    rules: Rules,
    /// The beginning of every chunk, up to its choices.
    head: String,
    blocks: PerBlock<ChatBlockOut>,
    call_ids: CallIdSource,
    content_state: ContentState,
    began: bool,
    /// Thinking was written into the content array.
    chunked: bool,
    n_calls: u64,
    n_details: u64,
    thinking_mode: DeltaModeWriter,
    content_mode: DeltaModeWriter,
    /// The marker to write after the answer.
    tail: Option<String>,
    usage: Usage,
}

impl ChatWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> ChatWriter {
        let mode = rules.read.delta_mode;
        ChatWriter {
            head: chunk_head(head, "chat.completion.chunk"),
            blocks: PerBlock::default(),
            call_ids: CallIdSource::default(),
            content_state: ContentState::default(),
            began: false,
            chunked: false,
            n_calls: 0,
            n_details: 0,
            thinking_mode: DeltaModeWriter::new(mode),
            content_mode: DeltaModeWriter::new(mode),
            tail: None,
            usage: Usage::default(),
            rules,
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => {
                if let Some(state) = self.blocks.at(block) {
                    let mut state = std::mem::replace(state, ChatBlockOut::Text { seal: None });
                    self.grow(&mut state, text, out);
                    self.put_back(block, state);
                }
            }
            Event::Opened { opening, .. } => {
                self.begin(out);
                let state = self.new_block(opening);
                self.blocks.open(state);
            }
            Event::Closed { block } => {
                if let Some(state) = self.blocks.at(block) {
                    let mut state = std::mem::replace(state, ChatBlockOut::Text { seal: None });
                    self.close(&mut state, out);
                    self.put_back(block, state);
                }
            }
            Event::Item { block, .. }
            | Event::Sealed { block, .. }
            | Event::Identified { block, .. }
            | Event::NativeItem { block, .. }
            | Event::Refiled { block, .. } => {
                if let Some(state) = self.blocks.at(block) {
                    let mut state = std::mem::replace(state, ChatBlockOut::Text { seal: None });
                    self.apply(&mut state, event, out);
                    self.put_back(block, state);
                }
            }
            Event::EmptyThinkingField { field } => {
                self.begin(out);
                self.empty_thinking_field(field, out);
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            // The deltas already contain it; a stream of deltas cannot restate.
            Event::Restated { .. } | Event::Extra { .. } | Event::Noted(_) => (),
            Event::Started { .. } => self.begin(out),
        }
    }

    fn put_back(&mut self, block: crate::event::BlockId, state: ChatBlockOut) {
        if let Some(stored) = self.blocks.at(block) {
            *stored = state;
        }
    }

    fn begin(&mut self, out: &mut FrameWriter) {
        if !std::mem::replace(&mut self.began, true) {
            self.delta(r#"{"role":"assistant","content":""}"#, out);
        }
    }

    fn new_block(&mut self, opening: BlockOpening<'_>) -> ChatBlockOut {
        match opening {
            BlockOpening::Text => ChatBlockOut::Text { seal: None },
            BlockOpening::Thinking { source, id } => {
                let carrier = carrier_for(&self.rules, source, &self.content_state);
                let detail = match &carrier {
                    ThinkingCarrier::Details(list) => Some(self.new_detail(*list, id)),
                    ThinkingCarrier::Field(_)
                    | ThinkingCarrier::Chunk
                    | ThinkingCarrier::Tags(_)
                    | ThinkingCarrier::Opaque(_) => None,
                };
                ChatBlockOut::Thinking(Box::new(ThinkingOut {
                    carrier,
                    detail,
                    native: None,
                    n_items: 0,
                    grew: false,
                    closed: false,
                    signature: None,
                    encrypted: None,
                }))
            }
            BlockOpening::ToolCall { id, name } => {
                let index = self.n_calls;
                self.n_calls += 1;
                let (id, name) = (self.call_ids.given_or_new(id), name.to_owned());
                let arguments = String::new();
                let call = CallOut { index, id, name, began: false, arguments, seal: None, native: None };
                ChatBlockOut::Call(Box::new(call))
            }
            BlockOpening::Unmodelled => ChatBlockOut::Unmodelled { native: String::new() },
        }
    }

    fn new_detail(&mut self, list: super::details::DetailList, id: Option<&str>) -> DetailOut {
        let index = self.n_details;
        self.n_details += 1;
        DetailOut::new(list, index, self.rules.read.delta_mode, id)
    }

    fn grow(&mut self, state: &mut ChatBlockOut, text: &str, out: &mut FrameWriter) {
        match state {
            ChatBlockOut::Text { .. } => self.answer(text, out),
            ChatBlockOut::Thinking(thinking) => self.grow_thinking(thinking, text, out),
            ChatBlockOut::Call(call) if self.rules.read.whole_calls && !call.began => call.arguments.push_str(text),
            ChatBlockOut::Call(call) => {
                self.begin_call(call, out);
                let function = object([("arguments", &quote(text))]);
                let entry = object([("index", &call.index.to_string()), ("function", &function)]);
                self.delta(&object([("tool_calls", &format!("[{entry}]"))]), out);
            }
            ChatBlockOut::Unmodelled { .. } => (),
        }
    }

    fn answer(&mut self, text: &str, out: &mut FrameWriter) {
        self.content_state.content_began |= !text.trim().is_empty();
        self.content(text, out);
    }

    fn content(&mut self, text: &str, out: &mut FrameWriter) {
        let mut mode = std::mem::take(&mut self.content_mode);
        mode.deltas(text, |delta| self.delta(&object([("content", &quote(delta))]), out));
        self.content_mode = mode;
    }

    fn grow_thinking(&mut self, thinking: &mut ThinkingOut, text: &str, out: &mut FrameWriter) {
        let first = !std::mem::replace(&mut thinking.grew, true);
        match (&thinking.carrier, &mut thinking.detail) {
            (ThinkingCarrier::Details(_), Some(detail)) => {
                self.content_state.tags_are_literal = true;
                let field = detail.field();
                detail.grow(text, |detail| self.delta(&object([(field, &format!("[{detail}]"))]), out));
            }
            (ThinkingCarrier::Field(field), _) => {
                self.content_state.tags_are_literal = true;
                let mut mode = std::mem::take(&mut self.thinking_mode);
                mode.deltas(text, |delta| self.delta(&object([(field, &quote(delta))]), out));
                self.thinking_mode = mode;
            }
            (ThinkingCarrier::Chunk, _) => {
                self.content_state.tags_are_literal = true;
                let part = format!("[{}]", object([("type", "\"text\""), ("text", &quote(text))]));
                self.chunk(&object([("type", "\"thinking\""), ("thinking", &part)]), out);
            }
            (ThinkingCarrier::Tags(tags), _) => {
                if first && !tags.open.is_empty() {
                    self.content(&tags.open, out);
                }
                self.content_state.tagged = true;
                self.content(text, out);
            }
            (ThinkingCarrier::Opaque(_) | ThinkingCarrier::Details(_), _) => (),
        }
    }

    /// One element of the content array.
    fn chunk(&mut self, element: &str, out: &mut FrameWriter) {
        self.chunked = true;
        self.delta(&object([("content", &format!("[{element}]"))]), out);
    }

    fn apply(&mut self, state: &mut ChatBlockOut, event: Event<'_>, out: &mut FrameWriter) {
        match (state, event) {
            (ChatBlockOut::Thinking(thinking), Event::Refiled { to: ProseKind::Text, .. }) => {
                // The template's tag did not open thinking after all: the text is
                // the answer, and no close tag follows.
                if let ThinkingCarrier::Tags(tags) = &mut thinking.carrier {
                    tags.close.clear();
                }
            }
            (state @ ChatBlockOut::Text { .. }, Event::Refiled { to: ProseKind::Thinking, .. }) => {
                let pair = self.rules.read.tags.pairs.first();
                let close = pair.and_then(|pair| pair.close.first()).cloned().unwrap_or_default();
                let tags = ThinkingTags { open: String::new(), close, tail: None };
                let mut thinking = ThinkingOut::tagged(tags);
                thinking.grew = true;
                self.content_state = ContentState { tagged: true, ..ContentState::default() };
                *state = ChatBlockOut::Thinking(Box::new(thinking));
            }
            (ChatBlockOut::Thinking(thinking), event) => {
                thinking.apply(event);
                if let Event::Item { .. } = event {
                    if thinking.n_items > 0 {
                        self.grow_thinking(thinking, "\n\n", out);
                    }
                    thinking.n_items += 1;
                }
                let is_seal = matches!(event, Event::Sealed { .. });
                if thinking.closed && (is_seal || matches!(thinking.carrier, ThinkingCarrier::Details(_))) {
                    self.seal(thinking, out);
                }
            }
            (ChatBlockOut::Text { seal }, Event::Sealed { payload, .. }) => *seal = Some(payload.to_owned()),
            (ChatBlockOut::Call(call), Event::Sealed { payload, .. }) => call.seal = Some(payload.to_owned()),
            (ChatBlockOut::Call(call), Event::NativeItem { json, .. }) => call.native = Some(json.to_owned()),
            (ChatBlockOut::Unmodelled { native }, Event::NativeItem { json, .. }) => json.clone_into(native),
            (ChatBlockOut::Text { .. } | ChatBlockOut::Call(_) | ChatBlockOut::Unmodelled { .. }, _) => (),
        }
    }

    fn close(&mut self, state: &mut ChatBlockOut, out: &mut FrameWriter) {
        match state {
            ChatBlockOut::Text { seal: Some(seal) } => {
                if let Some(extra) = self.seal_extra(seal) {
                    self.delta(&extra, out);
                }
            }
            ChatBlockOut::Text { seal: None } => (),
            ChatBlockOut::Thinking(thinking) => {
                thinking.closed = true;
                if let (ThinkingCarrier::Tags(tags), true) = (&thinking.carrier, thinking.grew) {
                    self.tail = tags.tail.clone().filter(|_| !tags.close.is_empty());
                    if !tags.close.is_empty() {
                        self.content(&tags.close, out);
                    } else {
                        self.content_state.content_began = true;
                    }
                }
                self.seal(thinking, out);
            }
            ChatBlockOut::Call(call) => {
                self.begin_call(call, out);
                if let Some(extra) = self.call_extra(call) {
                    let mut entry = ObjectWriter::default();
                    entry.push_raw("index", &call.index.to_string());
                    entry.push_members(&extra);
                    self.delta(&object([("tool_calls", &format!("[{}]", entry.finish()))]), out);
                }
            }
            ChatBlockOut::Unmodelled { native } => {
                let chunks = self.chunked || self.rules.echo.carrier == Carrier::ContentChunks;
                if chunks && self.rules.read.content_chunks && !native.is_empty() {
                    self.chunk(native, out);
                }
            }
        }
    }

    /// Writes seals and native members, if this dialect has a place for them.
    fn seal(&mut self, thinking: &mut ThinkingOut, out: &mut FrameWriter) {
        if let ThinkingCarrier::Opaque(name) = &thinking.carrier {
            let seal = thinking.encrypted.take().or(thinking.signature.take());
            let kept = thinking.native.take().filter(|native| Raw::of(native).is_ok());
            let delta = kept.or_else(|| seal.map(|seal| opaque_member(&self.rules, name, &seal)));
            if let Some(delta) = delta {
                self.delta(&delta, out);
            }
            return;
        }
        if let (ThinkingCarrier::Chunk, Some(signature)) = (&thinking.carrier, &thinking.signature) {
            let members = [("type", "\"thinking\""), ("thinking", "[]"), ("signature", &quote(signature))];
            self.chunk(&object(members), out);
            thinking.signature = None;
        }
        let sealed = thinking.signature.is_some() || thinking.encrypted.is_some();
        if thinking.detail.is_none() && sealed {
            thinking.detail = dialect_detail_list(&self.rules).map(|list| self.new_detail(list, None));
        }
        match (&mut thinking.detail, self.rules.read.opaque.first()) {
            (Some(detail), _) => {
                detail.set_seals(thinking.signature.take(), thinking.encrypted.take());
                if let Some(rest) = detail.rest() {
                    self.content_state.tags_are_literal = true;
                    let field = detail.field();
                    self.delta(&object([(field, &format!("[{rest}]"))]), out);
                }
            }
            (None, Some(field)) => {
                if let Some(payload) = thinking.encrypted.take().or(thinking.signature.take()) {
                    self.delta(&object([(field, &quote(&payload))]), out);
                }
            }
            (None, None) => (),
        }
    }

    /// Writes the id and name of a call, and its seal if already known.
    fn begin_call(&mut self, call: &mut CallOut, out: &mut FrameWriter) {
        if std::mem::replace(&mut call.began, true) {
            return;
        }
        let function = object([("name", &quote(&call.name)), ("arguments", &quote(&call.arguments))]);
        let mut entry = ObjectWriter::default();
        entry.push_raw("index", &call.index.to_string());
        entry.push_raw("id", &quote(&call.id));
        entry.push_raw("type", "\"function\"");
        entry.push_raw("function", &function);
        if let Some(extra) = self.call_extra(call) {
            entry.push_members(&extra);
        }
        self.delta(&object([("tool_calls", &format!("[{}]", entry.finish()))]), out);
    }

    /// The members that carry a call's seal, returned once.
    fn call_extra(&self, call: &mut CallOut) -> Option<String> {
        let (native, seal) = (call.native.take(), call.seal.take());
        kept_extra(&self.rules, native.as_deref()).or_else(|| self.seal_extra(&seal?))
    }

    fn seal_extra(&self, seal: &str) -> Option<String> {
        seal_extra(&self.rules, seal)
    }

    /// Writes a thinking field that stays empty.
    fn empty_thinking_field(&mut self, field: &str, out: &mut FrameWriter) {
        let tags = super::thinking_carrier::tags_for(&self.rules, field, &self.content_state);
        if self.rules.read.text.iter().any(|known| known == field) {
            self.delta(&object([(field, "\"\"")]), out);
        } else if matches!(carrier_for(&self.rules, field, &self.content_state), ThinkingCarrier::Details(list) if list.field() == field)
        {
            self.delta(&object([(field, "[]")]), out);
        } else if let Some(ThinkingTags { open, close, .. }) =
            tags.filter(|_| self.rules.read.tags.start == TagStart::Explicit)
        {
            self.content_state.tagged = true;
            self.content(&format!("{open}{close}"), out);
        }
    }

    fn delta(&self, delta: &str, out: &mut FrameWriter) {
        self.choice_with_usage(delta, "null", None, out);
    }

    fn choice_with_usage(&self, delta: &str, finish: &str, usage: Option<&str>, out: &mut FrameWriter) {
        let head = &self.head;
        let (separator, usage) = usage.map_or(("", ""), |usage| (r#","usage":"#, usage));
        out.data(&format!(
            r#"{head},"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]{separator}{usage}}}"#
        ));
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        let reads_tags = self.content_state.content_began && !self.content_state.tags_are_literal;
        if let Some(tail) = self.tail.take().filter(|_| reads_tags) {
            self.content(&tail, out);
        }
        let reason = finish_reason(&end.ending);
        // Some dialects report an error by the finish reason alone.
        let by_reason = |code: &Option<String>| {
            let failed = reason.filter(|reason| self.rules.finish.errors.iter().any(|known| known == reason));
            failed.is_some() && code.as_deref() == failed
        };
        let error = end.error.as_ref().filter(|error| !by_reason(&error.code));
        if let Some(error) = error {
            out.data(&object([("error", &error_in_stream(error))]));
        }
        let mut usage = (!is_unknown_usage(self.usage)).then(|| usage_json(&self.rules, self.usage));
        if let Some(reason) = reason {
            self.begin(out);
            // Providers that send usage unasked put it into the last chunk of the choice.
            let in_choice = usage.take_if(|_| self.rules.usage.always);
            self.choice_with_usage("{}", &quote(reason), in_choice.as_deref(), out);
        }
        if let Some(usage) = usage {
            out.data(&format!(r#"{},"choices":[],"usage":{usage}}}"#, self.head));
        }
        if end.has_last_frame() {
            out.data("[DONE]");
        }
    }
}
