//! What the engine tells, into items. A history from the store takes the same
//! way, so that a session looks after a restart as it looked before.

use aside_core::block::{Block, ToolResult};
use aside_core::event::{BlockId, End, Ending, Side};
use aside_core::message::{Message, Role};
use aside_core::turn::{Declined, Told, TurnEnd};

use super::item::Item;
use super::thought::Thought;
use super::tool::Tool;
use super::{Place, Pos, Transcript};
use crate::seam::{Opening, Said, Sending};
use crate::text::{Doc, Ink, Long};

/// The notice of a reply that is nothing but a thought, word for word.
pub const THINKING_ONLY: &str = "Model provided reasoning but no response. Try rephrasing your question.";

/// Said where the user wanted the answer instead of more thinking.
const NUDGED: &str = "asked for the answer now";

impl Transcript {
    /// What the user says is shown before the engine has it.
    pub fn say(&mut self, text: &str) {
        self.begin_turn();
        self.push(Item::user(text));
        self.echoed += 1;
    }

    /// What was said last is not sent, so it will not come back as recorded.
    pub fn not_sent(&mut self) {
        self.echoed = self.echoed.saturating_sub(1);
    }

    fn begin_turn(&mut self) {
        self.turn_from = self.items.len();
        self.calls.clear();
    }

    pub fn sending(&mut self, sending: &Sending) {
        // Blocks are numbered anew in each reply.
        self.blocks.clear();
        self.reply_from = self.items.len();
        for note in &sending.notes {
            self.push(Item::notice(Ink::Muted, note));
        }
    }

    pub fn opened(&mut self, block: BlockId, opening: &Opening) {
        let item = match opening {
            Opening::Text => Item::Text(Long::default()),
            Opening::Thinking => Item::Thought(Box::new(Thought::begin(self.now))),
            Opening::ToolCall { name } => Item::Tool(Box::new(Tool::begin(name))),
            // It is shown once it is whole.
            Opening::Unmodelled => return,
        };
        if let (Item::Text(_), Some(place)) = (&item, self.text_before()) {
            self.blocks.insert(block, place);
            return;
        }
        self.blocks.insert(block, Place { item: self.items.len(), from: 0 });
        self.push(item);
    }

    /// The end of the text that the reply has just come to, if it is one.
    fn text_before(&self) -> Option<Place> {
        let item = self.items.len().checked_sub(1).filter(|last| *last >= self.reply_from)?;
        match self.items.get(item) {
            Some(Item::Text(text)) => Some(Place { item, from: text.len() }),
            Some(Item::User(_) | Item::Thought(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_)) | None => None,
        }
    }

    fn live(&mut self, block: BlockId) -> Option<&mut Item> {
        let place = *self.blocks.get(&block)?;
        self.items.get_mut(place.item)
    }

    pub fn item(&mut self, block: BlockId) {
        if let Some(Item::Thought(thought)) = self.live(block) {
            thought.item();
        }
    }

    pub fn grew(&mut self, block: BlockId, text: &str) {
        match self.live(block) {
            Some(Item::Text(doc)) => doc.push(text),
            Some(Item::Thought(thought)) => thought.push(text),
            Some(Item::Tool(tool)) => tool.push(text),
            Some(Item::User(_) | Item::Notice(_) | Item::Said(_)) | None => (),
        }
    }

    /// Text turned out to be a thought, or the other way round.
    pub fn refiled(&mut self, block: BlockId, to: Side) {
        let now = self.now;
        let Some(Place { item: index, from }) = self.blocks.get(&block).copied() else { return };
        let Some(item) = self.items.get_mut(index) else { return };
        match (&*item, to) {
            (Item::Text(doc), Side::Thinking) => {
                // Only its own part moves; what it was joined to stays.
                let source = doc.source();
                let (before, own) = source.split_at_checked(from).unwrap_or((&source, ""));
                let (before, own) = (before.to_owned(), own.to_owned());
                let mut thought = Thought::begin(now);
                thought.push(&own);
                let thought = Item::Thought(Box::new(thought));
                if before.is_empty() {
                    *item = thought;
                } else {
                    *item = Item::Text(Long::new(&before));
                    self.blocks.insert(block, Place { item: self.items.len(), from: 0 });
                    self.push(thought);
                }
            }
            (Item::Thought(thought), Side::Text) => *item = Item::Text(Long::new(&thought.source())),
            (Item::Text(_), Side::Text) | (Item::Thought(_), Side::Thinking) => (),
            (Item::User(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_), _) => (),
        }
    }

    pub fn closed(&mut self, block: BlockId, value: &Block) {
        let Some(Place { item: index, from }) = self.blocks.get(&block).copied() else {
            self.push_block(value);
            return;
        };
        let calls = &mut self.calls;
        let Some(item) = self.items.get_mut(index) else { return };
        match (&mut *item, value) {
            (Item::Text(doc), Block::Text(text)) => {
                let source = doc.source();
                let (before, own) = source.split_at_checked(from).unwrap_or((&source, ""));
                if own != aside_core::screen::neutral(&text.text) {
                    *doc = Long::new(&format!("{before}{}", text.text));
                }
                doc.finish();
            }
            (Item::Thought(thought), Block::Thinking(thinking)) => thought.close(thinking),
            (Item::Tool(tool), Block::ToolCall(call)) => {
                tool.close(call);
                calls.insert(call.id.as_str().to_owned(), index);
            }
            // The last word made something else of it.
            (_, value) => {
                if let Some(made) = whole(value) {
                    *item = made;
                }
            }
        }
    }

    /// It held nothing, and so it is nothing.
    pub fn emptied(&mut self, block: BlockId) {
        let from = self.blocks.get(&block).map_or(0, |place| place.from);
        if let Some(item) = self.live(block) {
            let before = match item {
                Item::Text(text) => text.source().get(..from).unwrap_or("").to_owned(),
                Item::User(_) | Item::Thought(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => String::new(),
            };
            *item = Item::Text(Long::new(&before));
        }
    }

    /// A block from a history, or one that was never announced.
    fn push_block(&mut self, block: &Block) {
        if let Block::ToolCall(call) = block {
            self.calls.insert(call.id.as_str().to_owned(), self.items.len());
        }
        if let Block::ToolResult(result) = block {
            self.tool_ended(result);
        } else if let (Block::Text(text), Some(Place { item, .. })) = (block, self.text_before()) {
            if let Some(Item::Text(doc)) = self.items.get_mut(item) {
                doc.push(&text.text);
            }
        } else if let Some(item) = whole(block) {
            self.push(item);
        }
    }

    pub fn reply_ended(&mut self, end: &End) {
        let is_broken = end.ending == Ending::CutOff || end.error.is_some();
        self.end_running(is_broken);
    }

    /// A thought of the running turn goes in circles.
    pub fn is_stuck(&self) -> bool {
        let turn = self.items.iter().skip(self.turn_from);
        turn.rev().any(|item| matches!(item, Item::Thought(thought) if thought.is_stuck()))
    }

    fn end_running(&mut self, interrupted: bool) {
        let now = self.now;
        for item in self.items.iter_mut().skip(self.turn_from) {
            if let Item::Thought(thought) = item
                && thought.is_running()
            {
                if interrupted { thought.interrupt(now) } else { thought.end() }
            }
        }
        // A thought that stands last was cut short, even if it was closed for it.
        if interrupted && let Some(Item::Thought(thought)) = self.last_block() {
            thought.interrupt(now);
        }
    }

    /// The last thing of the turn that is no word of ours.
    fn last_block(&mut self) -> Option<&mut Item> {
        let items = self.items.iter_mut().skip(self.turn_from).rev();
        items.into_iter().find(|item| !matches!(item, Item::Notice(_) | Item::Said(_)))
    }

    pub fn tool_started(&mut self, id: &str) {
        let now = self.now;
        if let Some(Item::Tool(tool)) = self.calls.get(id).and_then(|index| self.items.get_mut(*index)) {
            tool.start(now);
        }
    }

    /// A question was about the call that runs and says the same; calls side
    /// by side may be of one tool.
    pub fn tool_answered(&mut self, name: &str, subject: &str) {
        let now = self.now;
        let items = self.items.iter_mut().skip(self.turn_from);
        let mut running: Vec<&mut Tool> = items
            .filter_map(|item| match item {
                Item::Tool(tool) if tool.is_running(name) => Some(&mut **tool),
                Item::Tool(_) | Item::User(_) | Item::Text(_) => None,
                Item::Thought(_) | Item::Notice(_) | Item::Said(_) => None,
            })
            .collect();
        let meant = running.iter().position(|tool| tool.is_about(subject)).unwrap_or(0);
        if let Some(tool) = running.get_mut(meant) {
            tool.answered(now);
        }
    }

    pub fn tool_ended(&mut self, result: &ToolResult) {
        let now = self.now;
        match self.calls.get(&result.id).and_then(|index| self.items.get_mut(*index)) {
            Some(Item::Tool(tool)) if !tool.has_output() => tool.finish(result, now),
            Some(_) => (),
            // A result whose call nobody has seen is shown all the same.
            None => {
                let mut tool = Tool::begin(&result.name);
                tool.finish(result, None);
                self.calls.insert(result.id.clone(), self.items.len());
                self.push(Item::Tool(Box::new(tool)));
            }
        }
    }

    /// What was shown live stays; what was not is shown now.
    pub fn recorded(&mut self, message: &Message) {
        match message.role {
            Role::User if message.is_nudge() => self.push(Item::notice(Ink::Muted, NUDGED)),
            Role::User if self.echoed > 0 => self.echoed -= 1,
            Role::User => {
                self.begin_turn();
                self.push_user(message);
            }
            Role::Tool => message.blocks.iter().for_each(|block| self.push_block(block)),
            Role::Assistant | Role::System => (),
        }
    }

    pub fn told(&mut self, told: &Told) {
        self.push(Item::notice(Ink::Warn, &told_words(told)));
    }

    pub fn turn_ended(&mut self, end: &TurnEnd) {
        let interrupted = match end {
            TurnEnd::Interrupted
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_) => true,
            TurnEnd::Answered
            | TurnEnd::ThinkingOnly { .. }
            | TurnEnd::Empty
            | TurnEnd::Length
            | TurnEnd::Declined(_)
            | TurnEnd::OutOfSteps(_) => false,
        };
        self.end_running(interrupted);
        for item in self.items.iter_mut().skip(self.turn_from) {
            if let Item::Tool(tool) = item {
                tool.settle();
            }
        }
        if let TurnEnd::ThinkingOnly { .. } = end {
            self.leave_last_open();
        }
        if let Some((ink, text)) = ending(end) {
            self.push(Item::notice(ink, &text));
        }
    }

    /// The thought is all the user gets, so it stays in sight.
    fn leave_last_open(&mut self) {
        let last = self.items.iter_mut().skip(self.turn_from).rev().find_map(|item| match item {
            Item::Thought(thought) => Some(thought),
            Item::User(_) | Item::Text(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => None,
        });
        if let Some(thought) = last {
            thought.leave_open();
        }
    }

    pub fn said(&mut self, said: &Said) {
        let item = match said {
            Said::Line(text) => Item::notice(Ink::Muted, text),
            Said::Wrong { what, hint } => {
                let hint = hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                Item::notice(Ink::Bad, &format!("{what}{hint}"))
            }
            Said::Markdown(text) => Item::Said(Doc::new(text)),
            Said::Table { head, rows } => Item::Said(Doc::new(&markdown_table(head, rows))),
            Said::Titled { command, page } => {
                let title = format!("**{}**", literal(command.trim()));
                match &**page {
                    Said::Markdown(text) => Item::Said(Doc::new(&format!("{title}\n\n{text}"))),
                    Said::Table { head, rows } => {
                        Item::Said(Doc::new(&format!("{title}\n\n{}", markdown_table(head, rows))))
                    }
                    other @ (Said::Line(_) | Said::Wrong { .. } | Said::Titled { .. }) => return self.said(other),
                }
            }
        };
        self.push(item);
    }

    /// A history takes the place of what is shown.
    pub fn restore(&mut self, messages: Vec<Message>) {
        self.items.clear();
        self.laid.clear();
        self.message_at.clear();
        self.blocks.clear();
        self.calls.clear();
        (self.top, self.follow, self.focus, self.echoed) = (Pos::default(), true, None, 0);
        self.hinted = None;
        let nudges: Vec<bool> = messages.iter().map(Message::is_nudge).collect();
        // Each is gone before the next one is copied.
        for (at, message) in messages.into_iter().enumerate() {
            self.message_at.push(self.items.len());
            match message.role {
                Role::System => (),
                Role::User if message.is_nudge() => self.push(Item::notice(Ink::Muted, NUDGED)),
                Role::User => {
                    self.begin_turn();
                    self.push_user(&message);
                }
                Role::Assistant => self.push_reply(message, nudges.get(at + 1) == Some(&true)),
                Role::Tool => message.blocks.iter().for_each(|block| self.push_block(block)),
            }
        }
        for item in &mut self.items {
            if let Item::Tool(tool) = item {
                tool.settle();
            }
        }
        self.turn_from = self.items.len();
    }

    fn push_user(&mut self, message: &Message) {
        let parts = message.blocks.iter().map(|block| match block {
            Block::Text(text) => text.text.clone(),
            Block::Image(image) => format!("[{}]", image.media_type),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => {
                "[something else]".to_owned()
            }
        });
        let text = parts.collect::<Vec<_>>().join("\n");
        self.push(Item::user(&text));
    }

    /// A reply that was stopped for its answer did not end there.
    fn push_reply(&mut self, message: Message, goes_on: bool) {
        self.reply_from = self.items.len();
        let only_thinking = !message.blocks.is_empty()
            && message.blocks.iter().all(|block| matches!(block, Block::Thinking(_)))
            && message
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Thinking(one) if !one.text().trim().is_empty()));
        for block in message.blocks {
            match block {
                Block::Thinking(thinking) => self.push(Item::Thought(Box::new(Thought::restored(thinking)))),
                Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
                    self.push_block(&block)
                }
            }
        }
        if message.interrupted
            && let Some(Item::Thought(thought)) = self.last_block()
        {
            thought.interrupt(None);
        }
        if goes_on {
            return;
        }
        if message.interrupted {
            self.push(Item::notice(Ink::Warn, "interrupted"));
        } else if only_thinking {
            self.leave_last_open();
            let for_length = message.ending == Some(Ending::Length);
            if let Some((ink, text)) = ending(&TurnEnd::ThinkingOnly { for_length }) {
                self.push(Item::notice(ink, &text));
            }
        }
    }
}

/// A finished block as an item; a result belongs to its call instead.
fn whole(block: &Block) -> Option<Item> {
    Some(match block {
        Block::Text(text) => Item::Text(Long::new(&text.text)),
        Block::Thinking(thinking) => Item::Thought(Box::new(Thought::whole(thinking))),
        Block::ToolCall(call) => Item::Tool(Box::new(Tool::whole(call))),
        Block::ToolResult(_) => return None,
        Block::Image(image) => Item::notice(Ink::Muted, &format!("an image ({})", image.media_type)),
        Block::Unmodelled(_) => Item::notice(Ink::Muted, "the provider sent something aside does not know; it is kept"),
    })
}

/// What stands in a table is data, whatever Markdown would make of it.
fn literal(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    // First of all: a backslash would take a sequence apart, and half of it would be shown.
    for letter in aside_core::screen::neutral(cell).chars() {
        if letter.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(if letter == '\n' { ' ' } else { letter });
    }
    out
}

fn markdown_table(head: &[String], rows: &[Vec<String>]) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| literal(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = row(head);
    out.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    rows.iter().for_each(|cells| out.push_str(&row(cells)));
    out
}

pub(crate) fn told_words(told: &Told) -> String {
    match told {
        Told::Repaired { row, repair, said } => {
            let said = said.lines().next().unwrap_or("");
            let change = repair.as_str().replace('_', " ");
            format!("the provider refused ({row}: {said})\nsent again, changed: {change}")
        }
        Told::BrokenCall { name } => format!("the arguments of `{name}` are not valid JSON; it was not run"),
    }
}

/// What to say about the end of a turn.
pub(crate) fn ending(end: &TurnEnd) -> Option<(Ink, String)> {
    let (ink, text) = match end {
        TurnEnd::Answered => return None,
        TurnEnd::ThinkingOnly { for_length: false } => (Ink::Warn, THINKING_ONLY.to_owned()),
        TurnEnd::ThinkingOnly { for_length: true } => {
            let why = "it stopped at the output limit: raise request.maxTokens or lower reasoning.effort";
            (Ink::Warn, format!("{THINKING_ONLY}\nhint: {why}"))
        }
        TurnEnd::Empty => (Ink::Bad, "the model sent nothing at all\nhint: /retry, or another /model".to_owned()),
        TurnEnd::Length => {
            let hint = "raise it with /set request.maxTokens=N, or ask to go on";
            (Ink::Warn, format!("the answer is cut at the output limit\nhint: {hint}"))
        }
        TurnEnd::Declined(Declined::ByModel) => (Ink::Bad, "the model declined to answer".to_owned()),
        TurnEnd::Declined(Declined::ByFilter) => (Ink::Bad, "a content filter stopped the answer".to_owned()),
        TurnEnd::CutOff => {
            let what = "the answer stops before the provider said that it was done";
            (Ink::Bad, format!("{what}\nhint: what came is kept; /retry asks again"))
        }
        TurnEnd::Oversized { most } => {
            let what = format!("the answer was cut at {most} bytes, which is reply.maxBytes");
            (Ink::Bad, format!("{what}\nhint: what came is kept; raise it with /set reply.maxBytes=N, 0 for no limit"))
        }
        TurnEnd::Failed(error) => {
            let status = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
            (Ink::Bad, format!("the provider failed{status}: {}", error.message))
        }
        TurnEnd::Unreachable(what) => (Ink::Bad, format!("{what}\nhint: /retry asks again")),
        TurnEnd::Interrupted => (Ink::Warn, "interrupted".to_owned()),
        TurnEnd::OutOfSteps(steps) => {
            let steps = if *steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
            (Ink::Warn, format!("stopped after {steps} of tools\nhint: ask to go on if it was getting somewhere"))
        }
    };
    Some((ink, text))
}
