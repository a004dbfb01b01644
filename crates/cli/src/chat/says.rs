//! What commands of the screen answer with, in words and tables.

use aside_core::block::{Block, Content, Text, Thinking};
use aside_core::message::Message;
use aside_core::rules::{Action, Decision};
use aside_core::settings::{Key, Settings};
use aside_store::ledger::LedgerLine;
use aside_store::search::Found;
use aside_store::session::Summary;
use aside_tui::seam::{DecisionRow, Said};

use crate::report::Report;
use crate::{config, times};

pub(crate) fn line(text: impl Into<String>) -> Said {
    Said::Line(text.into())
}

pub(crate) fn wrong(report: &Report) -> Said {
    Said::Wrong { what: report.to_string(), hint: report.remedy().map(str::to_owned) }
}

/// As much of a thought as the decision table quotes.
const QUOTED: usize = 40;

/// A message as the decision table needs it: which blocks there are, and the
/// first words of thoughts. The rest may be megabytes.
pub(crate) fn gist(message: &Message) -> Message {
    let block = |block: &Block| match block {
        Block::Thinking(thinking) => {
            let text = thinking.text().chars().take(QUOTED).collect();
            Block::Thinking(Thinking {
                content: Content::Open { text },
                source: String::new(),
                id: None,
                items: Vec::new(),
                span: None,
                native: None,
            })
        }
        Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
            Block::Text(Text { text: String::new(), seal: None, native: None })
        }
    };
    Message::new(message.role, message.blocks.iter().map(block).collect())
}

/// What became of each thought, and of what was left out.
pub(crate) fn thoughts(said: &[Message], decisions: &[Decision]) -> Vec<DecisionRow> {
    let is_shown = |decision: &&Decision| {
        let block = decision.block.and_then(|block| said.get(decision.message)?.blocks.get(block));
        decision.block.is_none() || decision.action == Action::Dropped || matches!(block, Some(Block::Thinking(_)))
    };
    let row = |decision: &Decision| {
        let block = decision.block.and_then(|block| said.get(decision.message)?.blocks.get(block));
        let what = match block {
            Some(Block::Thinking(thinking)) => {
                let words: String = thinking.text().chars().take(QUOTED).collect();
                format!("message {}: thinking \"{}\"", decision.message, words.replace('\n', " "))
            }
            Some(_) => format!("message {}", decision.message),
            None => format!("message {}: no thinking", decision.message),
        };
        DecisionRow { what, action: crate::explain::action(decision.action).to_owned(), why: decision.why.rule() }
    };
    decisions.iter().filter(is_shown).map(row).collect()
}

/// A setting with its value and who said so; all of them without a key.
pub(crate) fn settings(settings: &Settings, key: Option<&str>) -> Result<Said, Report> {
    let keys: Vec<Key> = match key {
        Some(name) => vec![name.parse::<Key>().map_err(|error| crate::settings::refused(&error))?],
        None => Key::ALL.to_vec(),
    };
    let row = |key: &Key| {
        let (value, layer) = match settings.get(*key) {
            Some((value, layer)) => (config::on_one_line(value), layer.as_str().to_owned()),
            None => ("not set".to_owned(), String::new()),
        };
        vec![key.name().to_owned(), value, layer]
    };
    let head = ["setting", "value", "from"].map(str::to_owned).to_vec();
    Ok(Said::Table { head, rows: keys.iter().map(row).collect() })
}

pub(crate) fn sessions(sessions: &[Summary]) -> Said {
    let row = |session: &Summary| {
        vec![
            session.id.to_string(),
            times::local(session.changed),
            session.n_messages.to_string(),
            session.model.clone().unwrap_or_default(),
            session.title.clone().unwrap_or_default(),
        ]
    };
    let head = ["id", "changed", "messages", "model", "title"].map(str::to_owned).to_vec();
    Said::Table { head, rows: sessions.iter().map(row).collect() }
}

pub(crate) fn found(found: &Found) -> Said {
    let row = |hit: &aside_store::search::Hit| {
        vec![hit.session.to_string(), hit.kind.as_str().to_owned(), hit.snippet.clone()]
    };
    if found.hits.is_empty() {
        return line("nothing was found");
    }
    let head = ["session", "in", "words"].map(str::to_owned).to_vec();
    Said::Table { head, rows: found.hits.iter().map(row).collect() }
}

pub(crate) fn usage(lines: &[LedgerLine]) -> Said {
    if lines.is_empty() {
        return line("nothing was used yet");
    }
    let row = |line: &LedgerLine| {
        let figure = |tokens| crate::usage::figure(tokens);
        vec![
            crate::usage::name(&line.group),
            line.n_replies.to_string(),
            figure(line.input),
            figure(line.thinking),
            figure(line.answer),
            crate::usage::cost(line.cost),
        ]
    };
    let head = ["model", "replies", "input", "thinking", "answer", "cost"].map(str::to_owned).to_vec();
    Said::Table { head, rows: lines.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use aside_core::message::Role;

    use super::*;

    #[test]
    fn a_gist_has_every_block_in_its_place_and_no_more_words_than_are_quoted() {
        let thinking = |text: String| {
            let content = Content::Open { text };
            let source = String::new();
            Block::Thinking(Thinking { content, source, id: None, items: Vec::new(), span: None, native: None })
        };
        let text = |text: &str| Block::Text(Text { text: text.to_owned(), seal: None, native: None });
        let long = Message::new(Role::Assistant, vec![thinking("漢".repeat(1_000)), text("an answer")]);
        let gist = gist(&long);
        assert_eq!(gist, Message::new(Role::Assistant, vec![thinking("漢".repeat(QUOTED)), text("")]));
    }
}
