//! `aside explain`: what the next request would send, block by block, and why.

use std::io::Write;

use aside_core::block::{Block, Media, MediaKind};
use aside_core::json_text::split_within;
use aside_core::message::{Message, Role};
use aside_core::parameters::CachePosition;
use aside_core::rules::{Decision, EgressAction};
use aside_core::safe_json;
use aside_core::tokens::{self, TokenCount};
use aside_session::decision_action;
use aside_session::request_preview::{RequestPreview, TokenCounting};
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::output;
use crate::request_arguments::RequestArguments;
use crate::request_receipt::{self, ReceiptArguments};

/// Show what the next request would send, block by block, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside explain -m deepseek/deepseek-v4-pro examples/conversation.jsonl
  aside explain -m anthropic/claude-sonnet-5 --json examples/conversation.jsonl
  aside explain --request req_… (of a running `aside serve`)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: RequestArguments,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    receipt: ReceiptArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    if let Some(id) = arguments.receipt.id() {
        return request_receipt::run(&arguments.receipt, id, arguments.json);
    }
    let preview = arguments.request.build(TokenCounting::Exact)?;
    let branch: Vec<&Message> = preview.conversation.history.branch().into_iter().map(|(_, message)| message).collect();
    let decisions = preview.encoded.decisions.iter();
    let rows: Vec<ExplainRow> = decisions.map(|decision| ExplainRow::of(decision, &branch, &preview)).collect();
    let mut out = output::stdout();
    if arguments.json {
        writeln!(out, "{}", safe_json::to_string(&as_json(&preview, &rows)))?;
    } else {
        write!(out, "{}", as_table(&preview, &rows))?;
    }
    Ok(ExitStatus::Done)
}

/// One decision with the facts about its block.
struct ExplainRow {
    message: usize,
    block: Option<usize>,
    role: &'static str,
    kind: &'static str,
    excerpt: String,
    action: &'static str,
    field: Option<String>,
    rule: String,
    setting: Option<&'static str>,
    layer: Option<&'static str>,
    /// The token count of the stored block, even if it is not sent.
    count: TokenCount,
    sent: bool,
}

impl ExplainRow {
    fn of(decision: &Decision, branch: &[&Message], preview: &RequestPreview) -> ExplainRow {
        let message = branch.get(decision.message).copied();
        let block = message.zip(decision.block).and_then(|(message, at)| message.blocks.get(at));
        let text = block.map(text_of).unwrap_or_default();
        let setting = decision.reason.setting();
        let layer = setting.and_then(|name| preview.settings.get(name.parse().ok()?)).map(|(_, layer)| layer.as_str());
        ExplainRow {
            message: decision.message,
            block: decision.block,
            role: message.map_or("", |message| role(message.role)),
            kind: block.map_or("filler", kind),
            excerpt: excerpt(&text),
            action: decision_action(decision.action),
            field: decision.field.clone(),
            rule: decision.reason.rule(),
            setting,
            layer,
            count: block.map_or(TokenCount::Exact(0), |block| tokens::count_block(block, preview.counter.as_ref())),
            sent: decision.action != EgressAction::Dropped,
        }
    }

    fn tokens_sent(&self) -> u64 {
        if self.sent { self.count.tokens() } else { 0 }
    }
}

fn as_json(preview: &RequestPreview, rows: &[ExplainRow]) -> Value {
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
        "model": preview.provider.model,
        "dialect": preview.provider.dialect.id,
        "tokens": preview.encoded.tokens,
        "limit": preview.limit,
        "heldBack": held_back(rows).tokens(),
        "decisions": decisions,
        "notices": notices(preview),
        "leftOut": left_out(preview),
        "cachePoints": cache_points(preview),
    })
}

fn as_table(preview: &RequestPreview, rows: &[ExplainRow]) -> String {
    let (dialect, model) = (&preview.provider.dialect.id, &preview.provider.model);
    // Always an estimate: providers add tokens of their own to each request.
    let used = tokens::format_usage(TokenCount::Estimated(preview.encoded.tokens), preview.limit);
    let held_back = held_back(rows);
    let held_back = match held_back.tokens() {
        0 => String::new(),
        1.. => format!(", {} of thinking held back", tokens::format_usage(held_back, None)),
    };
    let mut out = format!("to {dialect}, model {model}: {used} tokens{held_back}\n\n");
    for row in rows {
        let what = format!("{:>3} {:<9} {:<10} {:<8} {}", row.message, row.role, row.kind, row.action, row.excerpt);
        out.push_str(what.trim_end());
        out.push('\n');
        // What is sent as it is needs no reason.
        if !row.sent || matches!(row.kind, "thinking" | "filler" | "unmodelled") {
            let field = row.field.as_ref().map(|field| format!("as {field}, ")).unwrap_or_default();
            let by = match (row.setting, row.layer) {
                (Some(setting), Some(layer)) => format!(" ({setting}, {layer})"),
                _ => String::new(),
            };
            out.push_str(&format!("      {field}because: {}{by}\n", row.rule));
        }
    }
    let points = cache_points(preview);
    if !points.is_empty() {
        out.push_str(&format!("\ncached up to: {}\n", points.join(", ")));
    }
    for note in notices(preview) {
        out.push_str(&format!("\nnote: {note}\n"));
    }
    for loss in &preview.encoded.left_out {
        out.push_str(&format!("\nnot sent: {}: {}\n", loss.path, loss.reason));
    }
    out
}

/// Up to where the provider is asked to store the request.
fn cache_points(preview: &RequestPreview) -> Vec<String> {
    let name = |point: &CachePosition| match point {
        CachePosition::Tools => "tools".to_owned(),
        CachePosition::System => "system prompt".to_owned(),
        CachePosition::Block { message, block } => format!("message {message} block {block}"),
        _ => "another point".to_owned(),
    };
    preview.encoded.cache_points.iter().map(name).collect()
}

fn left_out(preview: &RequestPreview) -> Vec<Value> {
    let losses = preview.encoded.left_out.iter();
    losses.map(|loss| json!({ "path": loss.path, "why": loss.reason.to_string() })).collect()
}

/// Unmet demands first: they are more important than notes.
fn notices(preview: &RequestPreview) -> Vec<&String> {
    preview.encoded.unmet.iter().chain(&preview.encoded.notes).collect()
}

/// The tokens of stored thinking that is not sent.
fn held_back(rows: &[ExplainRow]) -> TokenCount {
    rows.iter().filter(|row| row.kind == "thinking" && !row.sent).map(|row| row.count).sum()
}

fn text_of(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => thinking.text().to_owned(),
        Block::ToolCall(call) => call.name.clone(),
        Block::ToolResult(result) => result.described().into_owned(),
        Block::Media(media) => media.describe(),
        Block::Unmodelled(unmodelled) => unmodelled.native.json.clone(),
    }
}

/// The first words, on one line.
fn excerpt(text: &str) -> String {
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
        Block::Media(Media { kind: MediaKind::Image, .. }) => "image",
        Block::Media(Media { kind: MediaKind::Document, .. }) => "document",
        Block::Unmodelled(_) => "unmodelled",
    }
}
