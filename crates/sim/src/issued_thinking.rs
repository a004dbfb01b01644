//! Remembers which thinking each reply contained, to see what a client sends back.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use aside_core::block::{Arguments, Block, Text, Thinking, ThinkingContent};
use aside_core::dialect::{Carrier, Duty, EchoRules, Rules, TurnsIf};
use aside_core::message::{Message, Role};
use aside_core::tags::{TagParser, TagPiece, TagRules, TagStart};
use aside_core::wire::ClientRequest;
use serde::Serialize;
use siphasher::sip::SipHasher13;

use crate::tools;

/// How many different replies are remembered.
const MAX_REPLIES: usize = 10_000;

/// How many replies that look the same are remembered. The steps of a loop often do.
const MAX_ALIKE: usize = 64;

/// Whether a client followed one rule, or what it did with the thinking of one reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub verdict: VerdictKind,
    /// The rule, in terms of the dialect files.
    pub rule: String,
    /// Its path in the body, or which assistant message it is about.
    pub path: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The thinking came back as it was issued.
    Kept,
    /// It did not come back, and the provider does not want it either.
    Unneeded,
    /// It did not come back. The provider accepts that, but the model no longer has it.
    Lost,
    /// The provider refuses the request.
    Refused,
}

/// The thinking of the newest replies, found by their visible part.
#[derive(Debug, Default)]
pub(crate) struct IssuedThinking {
    by_reply: HashMap<u64, VecDeque<Vec<u64>>>,
}

impl IssuedThinking {
    /// Remembers the thinking of a reply.
    pub(crate) fn remember(&mut self, dialect: &str, rules: &Rules, blocks: &[Block]) {
        let blocks = &with_tags_read(&rules.read.tags, blocks);
        let thinking = thinking_marks(&rules.echo, blocks);
        if thinking.is_empty() {
            return;
        }
        if self.by_reply.len() >= MAX_REPLIES {
            self.by_reply.clear();
        }
        let alike = self.by_reply.entry(visible_hash(dialect, blocks)).or_default();
        if !alike.contains(&thinking) {
            alike.truncate(MAX_ALIKE - 1);
            alike.push_front(thinking);
        }
    }

    /// What happened to the thinking of each earlier reply in a request.
    pub(crate) fn verdicts(&self, dialect: &str, echo: &EchoRules, request: &ClientRequest) -> Vec<Verdict> {
        let messages = &request.messages;
        let last_user = messages.iter().rposition(|message| message.role == Role::User);
        let is_open = messages.last().is_some_and(|message| message.role == Role::Tool);
        let assistant = messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        let mut verdicts = Vec::new();
        for (nth, (at, message)) in assistant.enumerate() {
            let Some(issued) = self.by_reply.get(&visible_hash(dialect, &message.blocks)) else { continue };
            let in_loop = is_open && last_user.is_none_or(|user| at > user);
            verdicts.push(verdict(echo, in_loop, !request.tools.is_empty(), nth, issued, message));
        }
        verdicts
    }
}

fn verdict(
    echo: &EchoRules,
    in_loop: bool,
    has_tools: bool,
    nth: usize,
    issued: &VecDeque<Vec<u64>>,
    message: &Message,
) -> Verdict {
    let (name, duty) = match (in_loop, echo.turns_if) {
        (true, _) => ("echo.loop", echo.loop_duty),
        (false, TurnsIf::Tools) if !has_tools => ("echo.turns", Duty::Ignored),
        (false, TurnsIf::Always | TurnsIf::Flag | TurnsIf::Tools) => ("echo.turns", echo.turns_duty),
    };
    let returned = thinking_marks(echo, &message.blocks);
    let missing = |issued: &[u64]| issued.iter().filter(|mark| !returned.contains(mark)).count();
    // Of several that look the same, take the one of which the most came back.
    let (n_missing, n_issued) = issued.iter().map(|issued| (missing(issued), issued.len())).min().unwrap_or_default();
    let kind = match duty {
        _ if n_missing == 0 => VerdictKind::Kept,
        Duty::Must | Duty::Should => VerdictKind::Lost,
        Duty::Ignored | Duty::Forbidden => VerdictKind::Unneeded,
    };
    let message = match n_missing {
        0 => "the thinking came back".to_owned(),
        n => format!("{n} of {n_issued} pieces of thinking did not come back"),
    };
    let rule = format!("{name} = {}", duty.as_str());
    Verdict { verdict: kind, rule, path: format!("assistant message {}", nth + 1), message }
}

/// The blocks of a reply as a client reads them: thinking in tags is in the text.
fn with_tags_read<'a>(rules: &TagRules, blocks: &'a [Block]) -> Cow<'a, [Block]> {
    if rules.pairs.is_empty() || blocks.iter().any(|block| matches!(block, Block::Thinking(_))) {
        return Cow::Borrowed(blocks);
    }
    let mut rules = rules.clone();
    rules.start = TagStart::Explicit;
    let mut read = Vec::with_capacity(blocks.len());
    for block in blocks {
        let Block::Text(text) = block else {
            read.push(block.clone());
            continue;
        };
        let (mut thinking, mut answer) = (Vec::new(), String::new());
        let mut take = |piece: TagPiece<'_>| match piece {
            TagPiece::Open { .. } => thinking.push(String::new()),
            TagPiece::Thinking(more) => thinking.last_mut().into_iter().for_each(|thought| thought.push_str(more)),
            TagPiece::Text(more) => answer.push_str(more),
            // With written tags nothing is refiled.
            TagPiece::Close | TagPiece::Refile(_) => (),
        };
        let mut parser = TagParser::new(rules.clone());
        parser.push(&text.text, &mut take);
        parser.finish(&mut take);
        read.extend(thinking.into_iter().map(thinking_block));
        read.push(Block::Text(Text { text: answer, ..text.clone() }));
    }
    Cow::Owned(read)
}

fn thinking_block(text: String) -> Block {
    Block::Thinking(Thinking {
        content: ThinkingContent::Open { text },
        source: String::new(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
        extra: Default::default(),
    })
}

/// A hash of what a user sees of a reply.
fn visible_hash(dialect: &str, blocks: &[Block]) -> u64 {
    let mut hasher = SipHasher13::new();
    dialect.hash(&mut hasher);
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Text(part) => text.push_str(part.text.trim()),
            Block::ToolCall(call) => {
                let (Arguments::Json(arguments) | Arguments::Broken(arguments)) = &call.arguments;
                (&call.name, tools::canonical(arguments)).hash(&mut hasher);
            }
            Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    text.hash(&mut hasher);
    hasher.finish()
}

/// One hash for each piece that must come back: its seal if it has one, else its id, else
/// its text, unless the provider wants only seals.
fn thinking_marks(echo: &EchoRules, blocks: &[Block]) -> Vec<u64> {
    let wants_only_seals = matches!(echo.carrier, Carrier::Part | Carrier::CallExtra);
    let hash = |kind: &str, value: &str| {
        let mut hasher = SipHasher13::new();
        // Clients use either Base64 alphabet, with or without padding.
        let plain = value.trim_end_matches('=').replace('-', "+").replace('_', "/");
        (kind, plain).hash(&mut hasher);
        hasher.finish()
    };
    let mut marks = Vec::new();
    for block in blocks {
        match block {
            Block::Thinking(thinking) => {
                let seals = thinking.seals();
                let seal = seals.and_then(|seals| seals.encrypted.as_ref().or(seals.signature.as_ref()));
                match (seal, &thinking.id) {
                    (Some(seal), _) => marks.push(hash("seal", &seal.payload)),
                    (None, Some(id)) => marks.push(hash("id", id)),
                    (None, None) if wants_only_seals || thinking.text().trim().is_empty() => (),
                    (None, None) => marks.push(hash("text", thinking.text().trim())),
                }
            }
            Block::ToolCall(call) => marks.extend(call.seal.as_ref().map(|seal| hash("seal", &seal.payload))),
            Block::Text(text) => marks.extend(text.seal.as_ref().map(|seal| hash("seal", &seal.payload))),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    marks
}
