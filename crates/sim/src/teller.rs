//! Puts a reply together, block by block, in the shape of its dialect.

use aside_core::block::SealKind;
use aside_core::conversation::Tool;
use aside_core::event::{BlockId, End, Ending, Usage};
use serde_json::{Value, json};

use crate::beats::{Beat, Opened};
use crate::seal::{Place, Unit, seal};
use crate::shape::{Entries, Manner, Sealing, Shape};
use crate::tools;
use crate::words::{Dice, Words, tokens};

/// What the name of an item of thinking begins with.
const THOUGHT: &str = "rs_";

/// Stands in the name of an item behind the name of its thought. Ids are in
/// hexadecimal digits, where it cannot be.
const FOLLOWS: char = 't';

/// The item of thinking that an item of ours cannot do without.
pub(crate) fn leader_of(id: &str) -> Option<String> {
    let (_, rest) = id.split_once('_')?;
    rest.rsplit_once(FOLLOWS).map(|(thought, _)| format!("{THOUGHT}{thought}"))
}

/// Words of which the output limit let so many through.
struct Told {
    words: Words,
    n_tokens: usize,
}

/// What was told, for a seal on it; nobody keeps it.
fn text_of(told: &[Told]) -> String {
    told.iter().flat_map(|told| told.words.tokens().take(told.n_tokens)).collect()
}

pub(crate) struct Teller<'a> {
    manner: Manner,
    /// Where the seals stand; its index grows.
    place: Place<'a>,
    pub(crate) dice: Dice,
    beats: Vec<Beat>,
    n_blocks: u32,
    n_entries: u32,
    /// What the last item of thinking is called, but for its first letters.
    led_by: Option<String>,
    /// A thought in tags, waiting for the text it stands in.
    tagged: Vec<Words>,
    /// Tokens that may still be told.
    budget: usize,
    cut_short: bool,
    thought_tokens: u64,
    other_tokens: u64,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(manner: Manner, place: Place<'a>, dice: Dice, budget: usize) -> Teller<'a> {
        Teller {
            manner,
            place,
            dice,
            beats: Vec::new(),
            n_blocks: 0,
            n_entries: 0,
            led_by: None,
            tagged: Vec::new(),
            budget,
            cut_short: false,
            thought_tokens: 0,
            other_tokens: 0,
        }
    }

    pub(crate) fn tags(&self) -> (String, String) {
        self.manner.tags.clone()
    }

    pub(crate) fn think(&mut self, words: Words) {
        self.think_items(vec![words]);
    }

    /// A thought that is a list of items where the dialect has such, else of
    /// paragraphs.
    pub(crate) fn think_items(&mut self, items: Vec<Words>) {
        match self.manner.thought.clone() {
            Shape::Told { source, seal } => {
                let block = self.open(Opened::Thinking { source, id: None });
                let told = self.paragraphs(block, items);
                if seal == Sealing::Signed {
                    self.sign(block, Unit::Words(&text_of(&told)));
                }
                self.close(block);
            }
            Shape::Entry { list, signed } => self.think_entry(list, signed, items),
            Shape::Paired { field, payload } => {
                let block = self.open(Opened::Thinking { source: field, id: None });
                self.paragraphs(block, items);
                self.close(block);
                self.payload(&payload);
            }
            Shape::Tagged { open, close } => {
                self.tagged.push(tokens(&format!("{open}\n")));
                for (at, words) in items.into_iter().enumerate() {
                    if at > 0 {
                        self.tagged.push(tokens("\n\n"));
                    }
                    self.tagged.push(words);
                }
                self.tagged.push(tokens(&format!("\n{close}\n\n")));
            }
            Shape::Item { sealed } => {
                let id = Some(self.thought_id(sealed));
                let block = self.open(Opened::Thinking { source: "reasoning".to_owned(), id });
                if sealed || items.len() > 1 {
                    for (index, words) in (0..).zip(items) {
                        self.beats.push(Beat::Item { block, index });
                        self.grow_thought(block, words);
                    }
                } else {
                    self.paragraphs(block, items);
                }
                if sealed {
                    self.encrypt(block);
                }
                self.close(block);
            }
        }
    }

    fn think_entry(&mut self, list: Entries, signed: bool, items: Vec<Words>) {
        let (source, json, text_member) = match list {
            Entries::ReasoningDetails => {
                let json = json!({ "type": "reasoning.text", "format": "unknown", "index": self.n_entries });
                ("reasoning_details", json, "text")
            }
            Entries::ThinkingBlocks => ("thinking_blocks", json!({ "type": "thinking" }), "thinking"),
        };
        self.n_entries += 1;
        let block = self.open(Opened::Thinking { source: source.to_owned(), id: None });
        self.beats.push(Beat::Kept { block, json: json.to_string(), text_member: Some(text_member) });
        let told = self.paragraphs(block, items);
        if signed {
            self.sign(block, Unit::Words(&text_of(&told)));
        }
        self.close(block);
    }

    /// A thought that nobody can read. False where the dialect has none.
    pub(crate) fn think_hidden(&mut self) -> bool {
        if self.manner.text_seal {
            // All that is left of it is the seal on the answer.
            return true;
        }
        let Some(source) = self.manner.hidden else { return false };
        if let Shape::Paired { payload, .. } = self.manner.thought.clone() {
            self.payload(&payload);
            return true;
        }
        let is_item = matches!(self.manner.thought, Shape::Item { .. });
        let id = is_item.then(|| self.thought_id(true));
        let block = self.open(Opened::Thinking { source: source.to_owned(), id });
        if let Shape::Entry { .. } = self.manner.thought {
            let json = json!({ "type": "reasoning.encrypted", "format": "unknown", "index": self.n_entries });
            self.n_entries += 1;
            self.beats.push(Beat::Kept { block, json: json.to_string(), text_member: None });
        }
        self.encrypt(block);
        self.close(block);
        true
    }

    /// The name of an item of thinking, which the items after it carry on.
    fn thought_id(&mut self, leads: bool) -> String {
        let id = self.dice.id("");
        self.led_by = leads.then(|| id.clone());
        format!("{THOUGHT}{id}")
    }

    /// The name of an item that a thought led to tells which, so that nobody
    /// need remember it.
    fn follower_id(&mut self, prefix: &str) -> String {
        match &self.led_by {
            Some(thought) => format!("{prefix}{thought}{FOLLOWS}{:02x}", self.n_blocks),
            None => self.dice.id(prefix),
        }
    }

    /// A payload that stands in a field of its own.
    fn payload(&mut self, field: &str) {
        let block = self.open(Opened::Thinking { source: field.to_owned(), id: None });
        let payload = self.encrypt(block);
        let json = json!({ field: payload }).to_string();
        self.beats.push(Beat::Kept { block, json, text_member: None });
        self.close(block);
    }

    /// Something visible.
    pub(crate) fn say(&mut self, words: Words) {
        let in_tags = Words::Joined(std::mem::take(&mut self.tagged));
        if (in_tags.is_empty() && words.is_empty()) || self.is_spent() {
            return;
        }
        let block = self.open(Opened::Text);
        self.grow_thought(block, in_tags);
        if self.manner.items {
            let text: String = words.tokens().take(self.budget).collect();
            let content = json!([{ "type": "output_text", "annotations": [], "text": text }]);
            let id = self.follower_id("msg_");
            let item =
                json!({ "type": "message", "id": id, "status": "completed", "role": "assistant", "content": content });
            self.beats.push(Beat::Kept { block, json: item.to_string(), text_member: None });
        }
        self.grow(block, words);
        self.close(block);
    }

    /// The last words; some sign them, as a part of its own.
    pub(crate) fn answer(&mut self, words: Words) {
        self.say(words);
        if self.manner.text_seal && !self.is_spent() {
            let block = self.open(Opened::Text);
            self.sign(block, Unit::Itself);
            self.close(block);
        }
    }

    /// Calls of one tool side by side.
    pub(crate) fn call(&mut self, tool: &Tool, times: u32) {
        self.say(tokens(""));
        for nth in 0..usize::try_from(times).unwrap_or(1) {
            if self.is_spent() {
                return;
            }
            let id = self.manner.call_ids.then(|| self.dice.id("call_"));
            let block = self.open(Opened::ToolCall { id: id.clone(), name: tool.name.clone() });
            let arguments = tokens(&tools::arguments(tool, nth));
            let told: String = arguments.tokens().take(self.budget).collect();
            self.keep_call(block, tool, id, &told, nth == 0);
            self.grow(block, arguments);
            self.close(block);
        }
    }

    /// What a call carries beside its name and its arguments.
    fn keep_call(&mut self, block: BlockId, tool: &Tool, id: Option<String>, arguments: &str, first: bool) {
        if self.manner.items {
            let item = json!({
                "type": "function_call",
                "id": self.follower_id("fc_"),
                "status": "completed",
                "call_id": id,
                "name": tool.name,
                "arguments": arguments,
            });
            self.beats.push(Beat::Kept { block, json: item.to_string(), text_member: None });
        }
        if let Some(path) = self.manner.call_seal.clone().filter(|_| first) {
            let unit = Unit::Call { name: &tool.name, arguments: &tools::canonical(arguments) };
            let payload = self.sign(block, unit);
            if let Some(path) = path {
                let nested = path.rsplit('.').fold(Value::from(payload), |inner, name| json!({ name: inner }));
                self.beats.push(Beat::Kept { block, json: nested.to_string(), text_member: None });
            }
        }
    }

    /// Everything that was told, and how it ended.
    pub(crate) fn finish(mut self, ending: Ending, input: u64, thinking_is_output: bool) -> Vec<Beat> {
        self.say(tokens(""));
        let output = self.other_tokens + if thinking_is_output { self.thought_tokens } else { 0 };
        self.beats.push(Beat::Usage(Usage {
            input: Some(input),
            output: Some(output),
            reasoning: Some(self.thought_tokens),
            cached: None,
        }));
        let ending = if self.cut_short { Ending::Length } else { ending };
        self.beats.push(Beat::Ended(End { ending, error: None }));
        self.beats
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.budget == 0
    }

    fn open(&mut self, opening: Opened) -> BlockId {
        let block = BlockId(self.n_blocks);
        self.n_blocks += 1;
        self.beats.push(Beat::Opened { block, opening });
        block
    }

    fn close(&mut self, block: BlockId) {
        self.beats.push(Beat::Closed { block });
    }

    /// As many words as the output limit leaves.
    fn grow(&mut self, block: BlockId, words: Words) -> Told {
        let wanted = words.count();
        let n_tokens = wanted.min(self.budget);
        self.cut_short |= n_tokens < wanted;
        self.budget -= n_tokens;
        self.other_tokens += n_tokens as u64;
        if n_tokens > 0 {
            self.beats.push(Beat::Said { block, words: words.clone(), skip: 0, n_tokens });
        }
        Told { words, n_tokens }
    }

    fn grow_thought(&mut self, block: BlockId, words: Words) -> Told {
        let before = self.other_tokens;
        let told = self.grow(block, words);
        self.thought_tokens += self.other_tokens - before;
        self.other_tokens = before;
        told
    }

    /// What was told of all items.
    fn paragraphs(&mut self, block: BlockId, items: Vec<Words>) -> Vec<Told> {
        let mut told: Vec<Told> = Vec::new();
        for words in items {
            if told.iter().any(|told| told.n_tokens > 0) {
                told.push(self.grow_thought(block, tokens("\n\n")));
            }
            told.push(self.grow_thought(block, words));
        }
        told
    }

    fn sign(&mut self, block: BlockId, unit: Unit<'_>) -> String {
        self.seal(block, SealKind::Signature, unit)
    }

    fn encrypt(&mut self, block: BlockId) -> String {
        self.seal(block, SealKind::Encrypted, Unit::Itself)
    }

    fn seal(&mut self, block: BlockId, kind: SealKind, unit: Unit<'_>) -> String {
        let payload = seal(unit, self.place, self.dice.roll());
        self.place.index += 1;
        self.beats.push(Beat::Sealed { block, kind, payload: payload.clone() });
        payload
    }
}
