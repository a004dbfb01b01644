//! `aside explain`: what the next request would send, block by block, and why.

use std::io::Write;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::rules::{Action, Decision};
use aside_core::safe_json;
use aside_core::text::split_within;
use aside_core::tokens::{self, Count};
use serde_json::{Value, json};

use crate::Outcome;
use crate::outgoing::{self, Counting, Outgoing};
use crate::output;

/// Say what the next request would send, block by block, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside explain -m deepseek/deepseek-v4-pro examples/conversation.jsonl
  aside explain -m anthropic/claude-sonnet-5 --json examples/conversation.jsonl")]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: outgoing::Source,

    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let outgoing = arguments.source.build(Counting::InTheVocabulary)?;
    let branch: Vec<&Message> =
        outgoing.conversation.history.branch().into_iter().map(|(_, message)| message).collect();
    let decisions = outgoing.encoded.decisions.iter();
    let rows: Vec<Row> = decisions.map(|decision| Row::of(decision, &branch, &outgoing)).collect();
    let mut out = output::stdout();
    if arguments.json {
        writeln!(out, "{}", safe_json::to_string(&as_json(&outgoing, &rows)))?;
    } else {
        write!(out, "{}", as_table(&outgoing, &rows))?;
    }
    Ok(Outcome::Done)
}

/// One decision with what a reader wants to know about its block.
struct Row {
    message: usize,
    block: Option<usize>,
    role: &'static str,
    kind: &'static str,
    begins: String,
    action: &'static str,
    field: Option<String>,
    rule: String,
    setting: Option<&'static str>,
    layer: Option<&'static str>,
    /// Of the stored block, whether it is sent or not.
    count: Count,
    sent: bool,
}

impl Row {
    fn of(decision: &Decision, branch: &[&Message], outgoing: &Outgoing) -> Row {
        let message = branch.get(decision.message).copied();
        let block = message.zip(decision.block).and_then(|(message, at)| message.blocks.get(at));
        let text = block.map(text_of).unwrap_or_default();
        let setting = decision.why.setting();
        let layer = setting.and_then(|name| outgoing.settings.get(name.parse().ok()?)).map(|(_, layer)| layer.as_str());
        Row {
            message: decision.message,
            block: decision.block,
            role: message.map_or("", |message| role(message.role)),
            kind: block.map_or("filler", kind),
            begins: beginning(&text),
            action: action(decision.action),
            field: decision.field.clone(),
            rule: decision.why.rule(),
            setting,
            layer,
            count: block.map_or(Count::Exact(0), |block| tokens::of_block(block, outgoing.counter.as_ref())),
            sent: decision.action != Action::Dropped,
        }
    }

    fn tokens_sent(&self) -> u64 {
        if self.sent { self.count.tokens() } else { 0 }
    }
}

fn as_json(outgoing: &Outgoing, rows: &[Row]) -> Value {
    let decisions: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "message": row.message, "block": row.block, "kind": row.kind, "action": row.action, "as": row.field,
                "rule": row.rule, "setting": row.setting, "layer": row.layer, "tokens": row.tokens_sent(),
                "estimated": row.count.is_estimate(),
            })
        })
        .collect();
    json!({
        "model": outgoing.provider.model,
        "dialect": outgoing.provider.dialect.id,
        "tokens": outgoing.encoded.tokens,
        "limit": outgoing.limit,
        "heldBack": held_back(rows).tokens(),
        "decisions": decisions,
        "notices": notices(outgoing),
    })
}

fn as_table(outgoing: &Outgoing, rows: &[Row]) -> String {
    let (dialect, model) = (&outgoing.provider.dialect.id, &outgoing.provider.model);
    // Whatever counts, the words a provider puts around a request are its own.
    let used = tokens::shown(Count::Estimated(outgoing.encoded.tokens), outgoing.limit);
    let held_back = held_back(rows);
    let held_back = match held_back.tokens() {
        0 => String::new(),
        1.. => format!(", {} of thinking held back", tokens::shown(held_back, None)),
    };
    let mut out = format!("to {dialect}, model {model}: {used} tokens{held_back}\n\n");
    for row in rows {
        let what = format!("{:>3} {:<9} {:<10} {:<8} {}", row.message, row.role, row.kind, row.action, row.begins);
        out.push_str(what.trim_end());
        out.push('\n');
        // The conversation itself needs no reason.
        if matches!(row.kind, "thinking" | "filler" | "unmodelled") {
            let field = row.field.as_ref().map(|field| format!("as {field}, ")).unwrap_or_default();
            let by = match (row.setting, row.layer) {
                (Some(setting), Some(layer)) => format!(" ({setting}, {layer})"),
                _ => String::new(),
            };
            out.push_str(&format!("      {field}because: {}{by}\n", row.rule));
        }
    }
    for note in notices(outgoing) {
        out.push_str(&format!("\nnote: {note}\n"));
    }
    out
}

/// What a reader should know first comes first.
fn notices(outgoing: &Outgoing) -> Vec<&String> {
    outgoing.encoded.unmet.iter().chain(&outgoing.encoded.notes).collect()
}

/// Thinking that is stored and not sent.
fn held_back(rows: &[Row]) -> Count {
    rows.iter().filter(|row| row.kind == "thinking" && !row.sent).map(|row| row.count).sum()
}

fn text_of(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => thinking.text().to_owned(),
        Block::ToolCall(call) => call.name.clone(),
        Block::ToolResult(result) => result.content.clone(),
        Block::Image(image) => image.media_type.clone(),
        Block::Unmodelled(unmodelled) => unmodelled.native.json.clone(),
    }
}

/// The first words, on one line.
fn beginning(text: &str) -> String {
    let (text, _) = split_within(text.trim_start(), 1000);
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= 44 {
        return words;
    }
    words.chars().take(43).collect::<String>() + "…"
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn kind(block: &Block) -> &'static str {
    match block {
        Block::Text(_) => "text",
        Block::Thinking(_) => "thinking",
        Block::ToolCall(_) => "toolCall",
        Block::ToolResult(_) => "toolResult",
        Block::Image(_) => "image",
        Block::Unmodelled(_) => "unmodelled",
    }
}

pub(crate) fn action(action: Action) -> &'static str {
    match action {
        Action::Verbatim => "verbatim",
        Action::Field => "field",
        Action::Tags => "tags",
        Action::Filler => "filler",
        Action::Dropped => "dropped",
    }
}
