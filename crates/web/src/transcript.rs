//! The messages of a session as tabs show them, and the frames that keep tabs up to date.

use std::collections::HashMap;

use aside_core::block::{ThinkingSpan, ToolCall, ToolResult};
use aside_core::event::{BlockId, ProseKind};
use aside_core::message::{Message, Role};
use aside_front::OpenedBlock;
use aside_front::tool_call::CallState;
use serde_json::json;

use crate::entry::{Body, CallBody, Entry, ThinkingBody};
use crate::frames::{Frame, Position};
use crate::view::{Extent, OutputView, Progress, Speaker, result};

/// Folded thinking of this many bytes, the newest, is sent with its text, so that the browser's own search finds it.
const MOUNTED_BYTES: usize = 2 << 20;

/// Messages without an id of the store get ids from here on.
const LOCAL_IDS: i64 = 1 << 52;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: Vec<Entry>,
    /// The newest stored message before the first entry.
    earlier: Option<i64>,
    /// The index of the reply that is being received.
    live: Option<usize>,
    /// Where the blocks of the live reply are.
    places: HashMap<BlockId, usize>,
    /// The id of the message that comes next.
    next_id: Option<i64>,
    n_local: i64,
    /// The block that grew since the last frame.
    grown: Option<(usize, usize)>,
}

impl Transcript {
    /// A stored transcript. Calls without a result have not run, unless the last reply is running.
    pub(crate) fn new(entries: Vec<Entry>, earlier: Option<i64>) -> Transcript {
        let mut transcript = Transcript { entries: Vec::new(), earlier, ..Transcript::default() };
        for entry in entries {
            transcript.settle_calls(&entry);
            transcript.entries.push(entry);
        }
        transcript
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The current end of the transcript.
    pub(crate) fn position(&self) -> Position {
        self.entries.last().map(Entry::position).unwrap_or_default()
    }

    fn frame(&self, at: usize, block: usize, event: &str, data: &serde_json::Value) -> Frame {
        let position = self.entries.get(at).map(|entry| entry.position_in(block)).unwrap_or_default();
        Frame::new(position, event, data)
    }

    fn entry_frame(&self, at: usize) -> Option<Frame> {
        let entry = self.entries.get(at)?;
        Some(Frame::new(entry.position(), "entry", &entry.view(&mut usize::MAX.clone())))
    }

    /// All facts of a block, and its text if it is `with_text`.
    fn block_frame(&self, at: usize, block: usize, with_text: WithText) -> Option<Frame> {
        let entry = self.entries.get(at)?;
        let value = entry.blocks.get(block)?.view(with_text);
        Some(self.frame(at, block, "block", &json!({"entry": entry.id, "block": block, "value": value})))
    }

    /// The whole transcript, for a tab that has nothing.
    pub(crate) fn whole(&self) -> Frame {
        let mut budget = MOUNTED_BYTES;
        let mut views: Vec<_> = self.entries.iter().rev().map(|entry| entry.view(&mut budget)).collect();
        views.reverse();
        Frame::new(self.position(), "entries", &json!({"entries": views, "earlier": self.earlier}))
    }

    /// What a tab that has read up to here is missing. Pending deltas must have been flushed.
    pub(crate) fn since(&self, from: Position) -> Vec<Frame> {
        let Some(at) = self.entries.iter().position(|entry| entry.id == from.entry) else {
            let last = self.position();
            // A tab may know a message that a crash lost. Otherwise the tab is on another branch, or far behind.
            let is_ahead = from.entry > last.entry && from.entry < LOCAL_IDS;
            return if is_ahead && last.entry > 0 { vec![rewind(last)] } else { vec![self.whole()] };
        };
        let mut frames = Vec::new();
        let Some(entry) = self.entries.get(at) else { return frames };
        let known = entry.position_in(from.block);
        if known.block < from.block || known.bytes < from.bytes {
            frames.push(rewind(known));
        } else if let Some(Body::Thinking(thinking)) = entry.blocks.get(from.block) {
            match thinking.text.get(from.bytes..) {
                Some("") => (),
                Some(text) => frames.push(self.grew_frame(at, from.block, thinking, text)),
                // The position is inside a character: the tab has another text.
                None => frames.extend(self.block_frame(at, from.block, WithText::Yes)),
            }
        }
        for (index, body) in entry.blocks.iter().enumerate() {
            let is_known = index <= known.block && matches!(body, Body::Thinking(_));
            frames.extend(self.block_frame(at, index, if is_known { WithText::No } else { WithText::Yes }));
        }
        frames.push(Frame::new(entry.position(), "facts", &entry.facts()));
        frames.extend((at + 1..self.entries.len()).filter_map(|at| self.entry_frame(at)));
        frames
    }

    fn grew_frame(&self, at: usize, block: usize, thinking: &ThinkingBody, text: &str) -> Frame {
        let entry = self.entries.get(at).map(|entry| entry.id);
        let data = json!({
            "entry": entry, "block": block, "text": text,
            "title": thinking.titles.current(), "tokens": thinking.tokens.tokens(),
        });
        self.frame(at, block, "grew", &data)
    }

    /// The frame for what grew since the last call.
    pub(crate) fn flush(&mut self) -> Option<Frame> {
        let (at, block) = self.grown.take()?;
        let entry = self.entries.get_mut(at)?;
        let id = entry.id;
        match entry.blocks.get_mut(block)? {
            Body::Thinking(thinking) => {
                let text = thinking.text.get(thinking.framed..).unwrap_or("").to_owned();
                thinking.framed = thinking.text.len();
                let Body::Thinking(thinking) = self.entries.get(at)?.blocks.get(block)? else { return None };
                Some(self.grew_frame(at, block, thinking, &text))
            }
            Body::Answer(answer) => {
                let change = answer.change()?;
                Some(self.frame(at, block, "markdown", &json!({"entry": id, "block": block, "change": change})))
            }
            Body::Call(_) => self.block_frame(at, block, WithText::Yes),
            Body::Prompt(_) | Body::Result { .. } | Body::Other(_) => None,
        }
    }

    /// How many bytes the next frame sends again; none if nothing grew.
    pub(crate) fn resent_bytes(&self) -> Option<usize> {
        let (at, block) = self.grown?;
        Some(self.entries.get(at)?.blocks.get(block)?.resent_bytes())
    }

    pub(crate) fn set_next_id(&mut self, id: i64) {
        self.next_id = Some(id);
    }

    fn take_id(&mut self) -> i64 {
        self.next_id.take().unwrap_or_else(|| {
            self.n_local += 1;
            LOCAL_IDS + self.n_local
        })
    }

    /// A request is sent: the next block begins another reply.
    pub(crate) fn sending(&mut self) {
        self.live = None;
        self.places.clear();
    }

    fn live_reply(&mut self, now: u64, model: &str) -> (usize, Option<Frame>) {
        if let Some(at) = self.live {
            return (at, None);
        }
        let mut entry = Entry::new(self.take_id(), Speaker::Assistant);
        (entry.state, entry.at, entry.model) = (Progress::Running, Some(now), Some(model.to_owned()));
        self.entries.push(entry);
        let at = self.entries.len() - 1;
        self.live = Some(at);
        (at, self.entry_frame(at))
    }

    pub(crate) fn opened(&mut self, id: BlockId, opening: &OpenedBlock, now: u64, model: &str) -> Vec<Frame> {
        let (at, begun) = self.live_reply(now, model);
        let body = match opening {
            OpenedBlock::Text => Body::answer(""),
            OpenedBlock::Thinking => Body::Thinking(ThinkingBody::running(now)),
            OpenedBlock::ToolCall { name } => Body::Call(CallBody::streaming(name)),
            OpenedBlock::Unmodelled => Body::Other(String::new()),
        };
        let Some(entry) = self.entries.get_mut(at) else { return Vec::new() };
        entry.blocks.push(body);
        let block = entry.blocks.len() - 1;
        self.places.insert(id, block);
        begun.into_iter().chain(self.block_frame(at, block, WithText::Yes)).collect()
    }

    fn live_body(&mut self, id: BlockId) -> Option<(usize, usize, &mut Body)> {
        let (at, block) = (self.live?, *self.places.get(&id)?);
        let body = self.entries.get_mut(at)?.blocks.get_mut(block)?;
        Some((at, block, body))
    }

    /// More text. Its frame follows at the next flush; the frame is for another block that grew before.
    pub(crate) fn grew(&mut self, id: BlockId, text: &str) -> Option<Frame> {
        let (at, block, body) = self.live_body(id)?;
        match body {
            Body::Thinking(thinking) => thinking.push(text),
            Body::Answer(answer) => answer.push(text),
            Body::Call(call) => call.arguments.push_str(text),
            Body::Prompt(_) | Body::Result { .. } | Body::Other(_) => return None,
        }
        self.grows(at, block)
    }

    /// A summary item begins.
    pub(crate) fn item(&mut self, id: BlockId) -> Option<Frame> {
        let (at, block, Body::Thinking(thinking)) = self.live_body(id)? else { return None };
        thinking.item();
        self.grows(at, block)
    }

    /// Remembers which block grew. Blocks may grow in turn.
    fn grows(&mut self, at: usize, block: usize) -> Option<Frame> {
        let before = if self.grown.is_some_and(|grown| grown != (at, block)) { self.flush() } else { None };
        self.grown = Some((at, block));
        before
    }

    /// Text turned out to be thinking, or the other way round.
    pub(crate) fn refiled(&mut self, id: BlockId, to: ProseKind, now: u64) -> Option<Frame> {
        let (at, block, body) = self.live_body(id)?;
        let text = body.text().to_owned();
        *body = match to {
            ProseKind::Text => Body::answer(&text),
            ProseKind::Thinking => {
                let mut thinking = ThinkingBody::running(now);
                thinking.push(&text);
                thinking.framed = text.len();
                Body::Thinking(thinking)
            }
        };
        self.block_frame(at, block, WithText::Yes)
    }

    /// The block is complete, and its text was shown.
    pub(crate) fn closed_as_streamed(&mut self, id: BlockId, span: Option<ThinkingSpan>, hidden: usize) -> Vec<Frame> {
        let Some((at, block, body)) = self.live_body(id) else { return Vec::new() };
        match body {
            Body::Thinking(thinking) => {
                thinking.close(span, hidden);
                self.block_frame(at, block, WithText::No).into_iter().collect()
            }
            Body::Answer(answer) => {
                answer.finish();
                self.grown = Some((at, block));
                self.flush().into_iter().collect()
            }
            Body::Call(_) | Body::Prompt(_) | Body::Result { .. } | Body::Other(_) => Vec::new(),
        }
    }

    /// The final block, which takes precedence over its deltas.
    pub(crate) fn closed(&mut self, id: BlockId, value: &aside_core::block::Block) -> Option<Frame> {
        let (at, block, body) = self.live_body(id)?;
        let mut is_same_text = false;
        let value = Body::of(value, Speaker::Assistant);
        if let (Body::Thinking(old), Body::Thinking(new)) = (&*body, &value) {
            is_same_text = old.text == new.text;
        }
        if let (Body::Call(old), Body::Call(new)) = (&*body, &value)
            && old.state != CallState::Streaming
            && old.arguments == new.arguments
        {
            return None;
        }
        *body = value;
        self.block_frame(at, block, if is_same_text { WithText::No } else { WithText::Yes })
    }

    /// The block turned out to be empty, and the stored message will not have it.
    pub(crate) fn emptied(&mut self, id: BlockId) -> Option<Frame> {
        let (at, block, _) = self.live_body(id)?;
        self.places.remove(&id);
        for place in self.places.values_mut().filter(|place| **place > block) {
            *place -= 1;
        }
        let entry = self.entries.get_mut(at)?;
        entry.blocks.remove(block);
        let data = json!({"entry": entry.id, "block": block});
        Some(Frame::new(entry.position(), "removed", &data))
    }

    /// The place of a call, the newest first.
    fn call(&mut self, id: &str) -> Option<(usize, usize, &mut CallBody)> {
        for (at, entry) in self.entries.iter_mut().enumerate().rev() {
            for (block, body) in entry.blocks.iter_mut().enumerate() {
                if let Body::Call(call) = body
                    && call.call == id
                {
                    return Some((at, block, call));
                }
            }
        }
        None
    }

    pub(crate) fn tool_started(&mut self, call: &ToolCall, now: u64) -> Option<Frame> {
        let (at, block, shown) = self.call(call.id.as_str())?;
        (shown.state, shown.started) = (CallState::Running, Some(now));
        self.block_frame(at, block, WithText::Yes)
    }

    /// The newest output of a running command. Only the output is sent: the arguments may be long.
    pub(crate) fn tool_output(&mut self, call: &str, output: OutputView) -> Option<Frame> {
        let (at, block, shown) = self.call(call)?;
        let data = json!({"call": call, "output": output});
        shown.output = Some(output);
        Some(self.frame(at, block, "output", &data))
    }

    pub(crate) fn tool_ended(&mut self, ended: &ToolResult, now: u64) -> Vec<Frame> {
        let text = ended.described();
        let state = CallState::of_result(ended.is_error, &text);
        let Some((at, block, shown)) = self.call(&ended.id) else { return Vec::new() };
        (shown.state, shown.ended, shown.output) = (state, Some(now), None);
        let facts = self.block_frame(at, block, WithText::Yes);
        let output = self.frame(at, block, "result", &json!(result(&ended.id, state, &text, Extent::First)));
        facts.into_iter().chain([output]).collect()
    }

    /// A message was stored.
    pub(crate) fn recorded(&mut self, message: &Message) -> Option<Frame> {
        let Some(at) = self.live.filter(|_| message.role == Role::Assistant) else {
            let mut entry = Entry::of(self.take_id(), message);
            if entry.role == Speaker::Tool {
                self.settle_calls(&entry);
            }
            entry.mark_framed();
            self.entries.push(entry);
            return self.entry_frame(self.entries.len() - 1);
        };
        self.live = None;
        self.places.clear();
        let shown = self.entries.get_mut(at)?;
        let stored = Entry::of(shown.id, message);
        if shown.has_same_content(&stored) {
            shown.adopt_facts(stored);
            return Some(Frame::new(shown.position(), "facts", &shown.facts()));
        }
        *shown = stored;
        shown.mark_framed();
        self.entry_frame(at)
    }

    /// Calls whose result is stored have ended.
    fn settle_calls(&mut self, results: &Entry) {
        for body in &results.blocks {
            if let Body::Result { call, state, .. } = body
                && let Some((_, _, shown)) = self.call(call)
            {
                shown.state = *state;
            }
        }
    }

    /// The turn is over: what still runs was interrupted.
    pub(crate) fn turn_ended(&mut self, now: u64) -> Vec<Frame> {
        let mut changed = Vec::new();
        if let Some(at) = self.live.take()
            && let Some(entry) = self.entries.get_mut(at)
        {
            entry.interrupt(now);
            changed.push(at);
        }
        self.places.clear();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if entry.settle_calls() && !changed.contains(&at) {
                changed.push(at);
            }
        }
        changed.into_iter().filter_map(|at| self.entry_frame(at)).collect()
    }

    /// Replaces entries with what the store has now. Entries before the first of these stay.
    pub(crate) fn sync(&mut self, stored: Vec<Entry>, earlier: Option<i64>) -> Vec<Frame> {
        let first = stored.first().map(|entry| entry.id);
        let from = first.and_then(|first| self.entries.iter().position(|entry| entry.id == first));
        let Some(from) = from else {
            if self.entries.is_empty() && stored.is_empty() {
                return Vec::new();
            }
            *self = Transcript::new(stored, earlier);
            return vec![self.whole()];
        };
        let is_continued = self.entries.len() - from <= stored.len()
            && self.entries.iter().skip(from).zip(&stored).all(|(old, new)| old.id == new.id);
        if !is_continued {
            self.entries.splice(from.., stored);
            (self.live, self.grown) = (None, None);
            return vec![self.whole()];
        }
        let mut frames = Vec::new();
        for (index, new) in stored.into_iter().enumerate() {
            let at = from + index;
            match self.entries.get(at).map(|old| *old == new) {
                Some(true) => (),
                Some(false) => frames.extend(self.sync_entry(at, new)),
                None => {
                    self.entries.push(new);
                    frames.extend(self.entry_frame(at));
                }
            }
        }
        frames
    }

    /// Sends what is new in a stored message, and no text twice.
    fn sync_entry(&mut self, at: usize, new: Entry) -> Vec<Frame> {
        let Some(old) = self.entries.get_mut(at) else { return Vec::new() };
        let n_old = old.blocks.len();
        let is_longer =
            old.blocks.iter().zip(&new.blocks).all(|(old, new)| new.continues(old)) && new.blocks.len() >= n_old;
        let old = std::mem::replace(old, new);
        if !is_longer {
            return self.entry_frame(at).into_iter().collect();
        }
        let mut frames = Vec::new();
        let n_new = self.entries.get(at).map_or(0, |entry| entry.blocks.len());
        for block in 0..n_new {
            let known = old.blocks.get(block);
            let Some(now) = self.entries.get(at).and_then(|entry| entry.blocks.get(block)) else { continue };
            match (known, now) {
                (Some(known), now) if known == now => (),
                (Some(Body::Thinking(known)), Body::Thinking(now)) => {
                    let more = now.text.get(known.text.len()..).unwrap_or("");
                    frames.extend((!more.is_empty()).then(|| self.grew_frame(at, block, now, more)));
                    frames.extend(self.block_frame(at, block, WithText::No));
                }
                (Some(_) | None, _) => frames.extend(self.block_frame(at, block, WithText::Yes)),
            }
        }
        frames.extend(self.entries.get(at).map(|entry| Frame::new(entry.position(), "facts", &entry.facts())));
        frames
    }
}

/// Whether a frame has the text of thinking, which the tab may have already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithText {
    Yes,
    No,
}

/// Tells a tab to remove what the store does not have.
fn rewind(to: Position) -> Frame {
    Frame::new(to, "rewind", &to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(frame: &Frame) -> serde_json::Value {
        let data = frame.text.lines().find_map(|line| line.strip_prefix("data: "));
        data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default()
    }

    /// The text of thinking that a tab has after these frames.
    fn text_of(frames: &[Frame], block: u64) -> String {
        let grown = frames.iter().map(data).filter(|data| data["block"] == block);
        grown.filter_map(|data| data["text"].as_str().map(str::to_owned)).collect()
    }

    #[test]
    fn w3_blocks_that_grow_in_turn_lose_nothing() {
        let mut transcript = Transcript::default();
        let mut frames = Vec::new();
        for id in 0..2 {
            frames.extend(transcript.opened(BlockId(id), &OpenedBlock::Thinking, 1, "m"));
        }
        for turn in 0..50 {
            for id in 0..2 {
                frames.extend(transcript.grew(BlockId(id), &format!("{id}.{turn} ")));
            }
        }
        for id in 0..2 {
            frames.extend(transcript.flush());
            frames.extend(transcript.closed_as_streamed(BlockId(id), None, 0));
        }
        for id in 0..2_u64 {
            let expected: String = (0..50).map(|turn| format!("{id}.{turn} ")).collect();
            assert_eq!(text_of(&frames, id), expected, "block {id}");
        }
    }

    #[test]
    fn t17_a_tab_that_opens_later_gets_the_output_so_far() {
        let mut transcript = Transcript::default();
        let call = ToolCall::new(
            aside_core::block::CallId::Given("c1".to_owned()),
            "shell",
            aside_core::block::Arguments::Json(r#"{"command":"make"}"#.to_owned()),
        );
        let message = Message::new(Role::Assistant, vec![aside_core::block::Block::ToolCall(call.clone())]);
        transcript.recorded(&message);
        transcript.tool_started(&call, 1);
        let frame = transcript.tool_output("c1", OutputView::new("ut\nthree\n", 3)).expect("the call is known");
        assert_eq!(data(&frame)["output"], json!({"tail": "three\n", "nLines": 3}), "no line is cut in two");
        assert_eq!(data(&transcript.whole())["entries"][0]["blocks"][0]["output"]["nLines"], 3);
        assert!(transcript.tool_output("c2", OutputView::new("x", 1)).is_none());
        let result = ToolResult {
            id: "c1".to_owned(),
            name: "shell".to_owned(),
            content: "done".to_owned(),
            is_error: false,
            media: Vec::new(),
        };
        transcript.tool_ended(&result, 2);
        assert!(data(&transcript.whole())["entries"][0]["blocks"][0]["output"].is_null(), "the result replaces it");
    }
}
