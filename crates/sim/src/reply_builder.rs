//! Builds a reply block by block in its dialect's format.

use aside_core::block::SealKind;
use aside_core::conversation::ToolSpec;
use aside_core::event::{BlockId, Ending, ReplyEnd, Usage};
use serde_json::{Value, json};

use crate::generated_text::{GeneratedText, SeededRng, fixed_text};
use crate::seal::{SealContext, SealedContent, seal};
use crate::thinking_format::{DetailsList, Payloads, ReplyFormat, Signing, ThinkingFormat, ThinkingText};
use crate::timeline::{OwnedOpening, TimelineStep};
use crate::{arguments, tools};

/// The prefix of a thinking item's id.
const THINKING_PREFIX: &str = "rs_";

/// Separates the thinking item's id from the suffix in the id of an item that follows it.
/// Ids are hexadecimal, so they never contain it.
const FOLLOWER_MARK: char = 't';

/// The id of the thinking item that this item may not be sent without.
pub(crate) fn leading_thinking_id(id: &str) -> Option<String> {
    let (_, rest) = id.split_once('_')?;
    rest.rsplit_once(FOLLOWER_MARK).map(|(thinking, _)| format!("{THINKING_PREFIX}{thinking}"))
}

/// A text and how many of its tokens fit the output limit.
struct WrittenText {
    text: GeneratedText,
    n_tokens: usize,
}

/// The written text, for signing it.
fn joined_text(written: &[WrittenText]) -> String {
    written.iter().flat_map(|written| written.text.tokens().take(written.n_tokens)).collect()
}

pub(crate) struct ReplyBuilder<'a> {
    format: ReplyFormat,
    /// What seals are bound to; its index increases with each seal.
    seal_context: SealContext<'a>,
    pub(crate) rng: SeededRng,
    timeline: Vec<TimelineStep>,
    n_blocks: u32,
    n_entries: u32,
    /// The id of the last thinking item, without its prefix.
    leading_id: Option<String>,
    /// Tagged thinking that will be written at the start of the next text block.
    pending_tagged: Vec<GeneratedText>,
    /// The remaining output tokens.
    budget: usize,
    cut_short: bool,
    thinking_tokens: u64,
    other_tokens: u64,
}

impl<'a> ReplyBuilder<'a> {
    pub(crate) fn new(
        format: ReplyFormat,
        seal_context: SealContext<'a>,
        rng: SeededRng,
        budget: usize,
    ) -> ReplyBuilder<'a> {
        ReplyBuilder {
            format,
            seal_context,
            rng,
            timeline: Vec::new(),
            n_blocks: 0,
            n_entries: 0,
            leading_id: None,
            pending_tagged: Vec::new(),
            budget,
            cut_short: false,
            thinking_tokens: 0,
            other_tokens: 0,
        }
    }

    pub(crate) fn tags(&self) -> (String, String) {
        self.format.tags.clone()
    }

    pub(crate) fn add_thinking(&mut self, text: GeneratedText) {
        match self.format.thinking_text {
            ThinkingText::Omitted => self.add_thinking_without_text(&text),
            ThinkingText::Written => self.add_thinking_items(vec![text]),
        }
    }

    /// Thinking whose text the request does not ask for: its tokens count, and its seal
    /// is sent where the dialect has one.
    fn add_thinking_without_text(&mut self, text: &GeneratedText) {
        let n_tokens = text.count().min(self.budget);
        self.budget -= n_tokens;
        self.thinking_tokens += n_tokens as u64;
        match self.format.thinking.clone() {
            ThinkingFormat::Text { source, signing: Signing::Signed } => {
                let block = self.open(OwnedOpening::Thinking { source, id: None });
                self.sign(block, SealedContent::Text(""));
                self.close(block);
            }
            ThinkingFormat::Item { .. } => {
                let id = Some(self.thinking_id(true));
                let block = self.open(OwnedOpening::Thinking { source: "reasoning".to_owned(), id });
                self.encrypt_if_requested(block);
                self.close(block);
            }
            ThinkingFormat::Text { signing: Signing::Unsigned, .. }
            | ThinkingFormat::ListEntry { .. }
            | ThinkingFormat::TextAndPayload { .. }
            | ThinkingFormat::Tagged { .. } => (),
        }
    }

    /// Thinking as a list of items where the dialect supports it, otherwise as
    /// paragraphs.
    pub(crate) fn add_thinking_items(&mut self, items: Vec<GeneratedText>) {
        match self.format.thinking.clone() {
            ThinkingFormat::Text { source, signing } => {
                let block = self.open(OwnedOpening::Thinking { source, id: None });
                let written = self.write_paragraphs(block, items);
                if signing == Signing::Signed {
                    self.sign(block, SealedContent::Text(&joined_text(&written)));
                }
                self.close(block);
            }
            ThinkingFormat::ListEntry { list, signed } => self.add_list_entry(list, signed, items),
            ThinkingFormat::TextAndPayload { field, payload } => {
                let block = self.open(OwnedOpening::Thinking { source: field, id: None });
                self.write_paragraphs(block, items);
                self.close(block);
                self.add_payload(&payload);
            }
            ThinkingFormat::Tagged { open, close } => {
                self.pending_tagged.push(fixed_text(&format!("{open}\n")));
                for (at, text) in items.into_iter().enumerate() {
                    if at > 0 {
                        self.pending_tagged.push(fixed_text("\n\n"));
                    }
                    self.pending_tagged.push(text);
                }
                self.pending_tagged.push(fixed_text(&format!("\n{close}\n\n")));
            }
            ThinkingFormat::Item { sealed } => {
                let id = Some(self.thinking_id(sealed));
                let block = self.open(OwnedOpening::Thinking { source: "reasoning".to_owned(), id });
                if sealed || items.len() > 1 {
                    for (index, text) in (0..).zip(items) {
                        self.timeline.push(TimelineStep::Item { block, index });
                        self.write_thinking(block, text);
                    }
                } else {
                    self.write_paragraphs(block, items);
                }
                if sealed {
                    self.encrypt_if_requested(block);
                }
                self.close(block);
            }
        }
    }

    fn add_list_entry(&mut self, list: DetailsList, signed: bool, items: Vec<GeneratedText>) {
        let (source, json, text_member) = match list {
            DetailsList::ReasoningDetails => {
                let json = json!({ "type": "reasoning.text", "format": "unknown", "index": self.n_entries });
                ("reasoning_details", json, "text")
            }
            DetailsList::ThinkingBlocks => ("thinking_blocks", json!({ "type": "thinking" }), "thinking"),
        };
        self.n_entries += 1;
        let block = self.open(OwnedOpening::Thinking { source: source.to_owned(), id: None });
        self.timeline.push(TimelineStep::Kept { block, json: json.to_string(), text_member: Some(text_member) });
        let written = self.write_paragraphs(block, items);
        if signed {
            self.sign(block, SealedContent::Text(&joined_text(&written)));
        }
        self.close(block);
    }

    /// Encrypted or redacted thinking. False if the dialect has no such thing.
    pub(crate) fn add_hidden_thinking(&mut self) -> bool {
        if self.format.text_seal {
            // The seal on the answer stands in for it.
            return true;
        }
        let Some(source) = self.format.hidden else { return false };
        if let ThinkingFormat::TextAndPayload { payload, .. } = self.format.thinking.clone() {
            self.add_payload(&payload);
            return true;
        }
        let is_item = matches!(self.format.thinking, ThinkingFormat::Item { .. });
        let id = is_item.then(|| self.thinking_id(true));
        let block = self.open(OwnedOpening::Thinking { source: source.to_owned(), id });
        if let ThinkingFormat::ListEntry { .. } = self.format.thinking {
            let json = json!({ "type": "reasoning.encrypted", "format": "unknown", "index": self.n_entries });
            self.n_entries += 1;
            self.timeline.push(TimelineStep::Kept { block, json: json.to_string(), text_member: None });
        }
        self.encrypt(block);
        self.close(block);
        true
    }

    /// A new id for a thinking item. If `leads`, the items after it refer to it.
    fn thinking_id(&mut self, leads: bool) -> String {
        let id = self.rng.id("");
        self.leading_id = leads.then(|| id.clone());
        format!("{THINKING_PREFIX}{id}")
    }

    /// The id of an item that follows thinking contains the thinking item's id, so the
    /// simulator can check the link without storing anything.
    fn follower_id(&mut self, prefix: &str) -> String {
        match &self.leading_id {
            Some(thinking) => format!("{prefix}{thinking}{FOLLOWER_MARK}{:02x}", self.n_blocks),
            None => self.rng.id(prefix),
        }
    }

    /// A payload in a field of its own.
    fn add_payload(&mut self, field: &str) {
        let block = self.open(OwnedOpening::Thinking { source: field.to_owned(), id: None });
        let payload = self.encrypt(block);
        let json = json!({ field: payload }).to_string();
        self.timeline.push(TimelineStep::Kept { block, json, text_member: None });
        self.close(block);
    }

    /// Visible text.
    pub(crate) fn add_text(&mut self, text: GeneratedText) {
        let in_tags = GeneratedText::Joined(std::mem::take(&mut self.pending_tagged));
        if (in_tags.is_empty() && text.is_empty()) || self.is_exhausted() {
            return;
        }
        let block = self.open(OwnedOpening::Text);
        self.write_thinking(block, in_tags);
        if self.format.output_items {
            let text: String = text.tokens().take(self.budget).collect();
            let content = json!([{ "type": "output_text", "annotations": [], "text": text }]);
            let id = self.follower_id("msg_");
            let item =
                json!({ "type": "message", "id": id, "status": "completed", "role": "assistant", "content": content });
            self.timeline.push(TimelineStep::Kept { block, json: item.to_string(), text_member: None });
        }
        self.write_text(block, text);
        self.close(block);
    }

    /// The final text. Some dialects sign it in a separate part.
    pub(crate) fn add_answer(&mut self, text: GeneratedText) {
        self.add_text(text);
        if self.format.text_seal && !self.is_exhausted() {
            let block = self.open(OwnedOpening::Text);
            self.sign(block, SealedContent::PayloadOnly);
            self.close(block);
        }
    }

    /// Parallel calls of one tool.
    pub(crate) fn add_calls(&mut self, tool: &ToolSpec, times: u32) {
        let arguments = (0..usize::try_from(times).unwrap_or(1)).map(|nth| arguments::arguments(tool, nth));
        self.add_calls_with(tool, arguments);
    }

    /// Parallel calls of one tool with these arguments.
    pub(crate) fn add_calls_with(&mut self, tool: &ToolSpec, arguments: impl IntoIterator<Item = String>) {
        self.add_text(fixed_text(""));
        for (nth, arguments) in arguments.into_iter().enumerate() {
            if self.is_exhausted() {
                return;
            }
            let id = self.format.call_ids.then(|| self.rng.id("call_"));
            let block = self.open(OwnedOpening::ToolCall { id: id.clone(), name: tool.name.clone() });
            let arguments = fixed_text(&arguments);
            let written: String = arguments.tokens().take(self.budget).collect();
            self.add_call_extras(block, tool, id, &written, nth == 0);
            self.write_text(block, arguments);
            self.close(block);
        }
    }

    /// The native item and the seal of a call.
    fn add_call_extras(&mut self, block: BlockId, tool: &ToolSpec, id: Option<String>, arguments: &str, first: bool) {
        if self.format.output_items {
            let item = json!({
                "type": "function_call",
                "id": self.follower_id("fc_"),
                "status": "completed",
                "call_id": id,
                "name": tool.name,
                "arguments": arguments,
            });
            self.timeline.push(TimelineStep::Kept { block, json: item.to_string(), text_member: None });
        }
        if let Some(path) = self.format.call_seal.clone().filter(|_| first) {
            let content = SealedContent::Call { name: &tool.name, arguments: &tools::canonical(arguments) };
            let payload = self.sign(block, content);
            if let Some(path) = path {
                let nested = path.rsplit('.').fold(Value::from(payload), |inner, name| json!({ name: inner }));
                self.timeline.push(TimelineStep::Kept { block, json: nested.to_string(), text_member: None });
            }
        }
    }

    /// The finished timeline with its usage and ending.
    pub(crate) fn finish(mut self, ending: Ending, input: u64, thinking_is_output: bool) -> Vec<TimelineStep> {
        self.add_text(fixed_text(""));
        let output = self.other_tokens + if thinking_is_output { self.thinking_tokens } else { 0 };
        self.timeline.push(TimelineStep::Usage(
            Usage::default().with_input(input).with_output(output).with_thinking(self.thinking_tokens).with_cached(0),
        ));
        let ending = if self.cut_short { Ending::Length } else { ending };
        self.timeline.push(TimelineStep::Ended(ReplyEnd { ending, error: None }));
        self.timeline
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.budget == 0
    }

    fn open(&mut self, opening: OwnedOpening) -> BlockId {
        let block = BlockId(self.n_blocks);
        self.n_blocks += 1;
        self.timeline.push(TimelineStep::Opened { block, opening });
        block
    }

    fn close(&mut self, block: BlockId) {
        self.timeline.push(TimelineStep::Closed { block });
    }

    /// Writes as many tokens as the output limit leaves.
    fn write_text(&mut self, block: BlockId, text: GeneratedText) -> WrittenText {
        let wanted = text.count();
        let n_tokens = wanted.min(self.budget);
        self.cut_short |= n_tokens < wanted;
        self.budget -= n_tokens;
        self.other_tokens += n_tokens as u64;
        if n_tokens > 0 {
            self.timeline.push(TimelineStep::Text { block, text: text.clone(), skip: 0, n_tokens });
        }
        WrittenText { text, n_tokens }
    }

    fn write_thinking(&mut self, block: BlockId, text: GeneratedText) -> WrittenText {
        let before = self.other_tokens;
        let written = self.write_text(block, text);
        self.thinking_tokens += self.other_tokens - before;
        self.other_tokens = before;
        written
    }

    /// Writes the items as paragraphs and returns the text that was written.
    fn write_paragraphs(&mut self, block: BlockId, items: Vec<GeneratedText>) -> Vec<WrittenText> {
        let mut written: Vec<WrittenText> = Vec::new();
        for text in items {
            if written.iter().any(|written| written.n_tokens > 0) {
                written.push(self.write_thinking(block, fixed_text("\n\n")));
            }
            written.push(self.write_thinking(block, text));
        }
        written
    }

    fn sign(&mut self, block: BlockId, content: SealedContent<'_>) -> String {
        self.seal(block, SealKind::Signature, content)
    }

    fn encrypt_if_requested(&mut self, block: BlockId) {
        if self.format.payloads == Payloads::Sent {
            self.encrypt(block);
        }
    }

    fn encrypt(&mut self, block: BlockId) -> String {
        self.seal(block, SealKind::Encrypted, SealedContent::PayloadOnly)
    }

    fn seal(&mut self, block: BlockId, kind: SealKind, content: SealedContent<'_>) -> String {
        let payload = seal(content, self.seal_context, self.rng.next_u64());
        self.seal_context.index += 1;
        self.timeline.push(TimelineStep::Sealed { block, kind, payload: payload.clone() });
        payload
    }
}
