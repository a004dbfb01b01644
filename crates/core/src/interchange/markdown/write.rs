//! Writes a conversation as Markdown.

use super::escape::{code_span, comment, escape, fenced, is_structure, one_line, open_fence, quoted};
use crate::block::{
    Arguments, Block, Media, MediaKind, MediaSource, Text, Thinking, ThinkingContent, ToolCall, ToolResult,
};
use crate::conversation::Conversation;
use crate::interchange::json_lines::{role_name, without_opaque, write_metadata, write_unknown_members};
use crate::json;
use crate::json::rfc3339;
use crate::json_text::{ObjectWriter, quote};
use crate::message::{Message, Role};

/// How thinking is written in Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMarkup {
    /// A folded callout, every line quoted.
    #[default]
    Callout,
    /// `<details>`, for viewers without callouts.
    Details,
    /// Leaves thinking out.
    Omit,
}

/// Writes the current branch as Markdown. Pieces are paragraphs, separated by
/// blank lines.
pub fn write_markdown(conversation: &Conversation, markup: ThinkingMarkup) -> String {
    let readable = without_opaque(conversation);
    let mut pieces = vec![front_matter(&readable)];
    pieces.extend(readable.title.as_deref().map(|title| format!("# {}", one_line(title))));
    for (id, message) in readable.history.branch() {
        let name = readable.history.get(id).and_then(|entry| entry.name.as_deref());
        write_message(name, message, markup, &mut pieces);
    }
    let mut out = pieces.join("\n\n");
    out.push('\n');
    out
}

/// Describes what the Markdown of a conversation leaves out.
pub fn left_out_of_markdown(conversation: &Conversation) -> Vec<String> {
    let branch = conversation.history.branch();
    let blocks = || branch.iter().flat_map(|(_, message)| &message.blocks);
    let sealed = |block: &&Block| match block {
        Block::Text(text) => text.seal.is_some() || text.native.is_some(),
        Block::Thinking(thinking) => {
            thinking.native.is_some()
                || thinking.seals().is_some_and(|seals| seals.signature.is_some() || seals.encrypted.is_some())
        }
        Block::ToolCall(call) => call.seal.is_some() || call.native.is_some(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    };
    let has_extra = |block: &&Block| match block {
        Block::Text(text) => !text.extra.is_empty(),
        Block::Thinking(thinking) => !thinking.extra.is_empty(),
        Block::ToolCall(call) => !call.extra.is_empty(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    };
    let hidden = |block: &&Block| matches!(block, Block::Thinking(thinking) if thinking.is_hidden());
    let counts = [
        (conversation.history.entries().len() - branch.len(), "messages on other branches"),
        (blocks().filter(sealed).count(), "blocks with a seal or a native item, which stay here without it"),
        (
            blocks().filter(has_extra).count(),
            "blocks with members beyond the neutral form, which stay here without them",
        ),
        (blocks().filter(hidden).count(), "thoughts that only their provider can read"),
        (blocks().filter(|block| matches!(block, Block::Unmodelled(_))).count(), "items that are not understood"),
        (branch.iter().filter(|(_, message)| message.usage.is_some()).count(), "counts of tokens"),
        (conversation.tools.len(), "tools"),
        (conversation.extra.len(), "members of the header that are not ours"),
    ];
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

fn front_matter(conversation: &Conversation) -> String {
    let mut lines: Vec<String> = super::OPENING.map(str::to_owned).into();
    lines.extend(conversation.title.as_deref().map(|title| format!("title: {}", quote(title))));
    lines.extend(conversation.model.as_deref().map(|model| format!("model: {}", quote(model))));
    if !conversation.settings.is_empty() {
        let mut settings = ObjectWriter::default();
        for (key, value) in &conversation.settings {
            settings.push_raw(key, &quote(value));
        }
        lines.push(format!("settings: {}", settings.finish()));
    }
    lines.push("---".to_owned());
    lines.join("\n")
}

fn write_message(name: Option<&str>, message: &Message, markup: ThinkingMarkup, pieces: &mut Vec<String>) {
    let mut about = ObjectWriter::default();
    about.push_raw("role", &quote(role_name(message.role)));
    if let Some(name) = name {
        about.push_raw("id", &quote(name));
    }
    write_metadata(message, &mut about);
    write_unknown_members(message, &mut about);
    pieces.push(comment("message", &about.finish()));
    pieces.push(heading(message));
    let mut after_text = false;
    for block in &message.blocks {
        match block {
            Block::Text(text) => write_text(text, after_text, pieces),
            Block::Thinking(thinking) => write_thinking(thinking, markup, pieces),
            Block::ToolCall(call) => write_call(call, pieces),
            Block::ToolResult(result) => write_result(result, pieces),
            Block::Media(media) => pieces.push(media_piece(media)),
            // It has nothing to read.
            Block::Unmodelled(_) => (),
        }
        let is_written = markup != ThinkingMarkup::Omit || !matches!(block, Block::Thinking(_));
        after_text = if is_written { matches!(block, Block::Text(_)) } else { after_text };
    }
}

fn heading(message: &Message) -> String {
    match message.role {
        Role::System => "## System".to_owned(),
        Role::User => "## You".to_owned(),
        Role::Tool => "## Tools".to_owned(),
        Role::Assistant => {
            let model = message.origin.as_ref().and_then(|origin| origin.model.as_deref()).map(one_line);
            model.map_or_else(|| "## Assistant".to_owned(), |model| format!("## Assistant · {model}"))
        }
    }
}

/// Text needs no comment, unless the reader could not find its start.
fn write_text(text: &Text, after_text: bool, pieces: &mut Vec<String>) {
    let fence = open_fence(&text.text);
    let mut about = ObjectWriter::default();
    if let Some(fence) = &fence {
        about.push_raw("fence", &quote(fence));
    }
    if after_text || text.text.is_empty() || fence.is_some() {
        pieces.push(comment("text", &about.finish()));
    }
    let mut lines: Vec<_> = text.text.split('\n').map(escape).collect();
    debug_assert!(!lines.iter().any(|line| is_structure(line)), "no line of a text is structure");
    // Closes a fence that the text left open.
    lines.extend(fence.map(Into::into));
    pieces.push(lines.join("\n"));
}

fn write_thinking(thinking: &Thinking, markup: ThinkingMarkup, pieces: &mut Vec<String>) {
    let (ThinkingContent::Open { text } | ThinkingContent::Sealed { text, .. }) = &thinking.content else { return };
    let label = label(thinking);
    let piece = match markup {
        ThinkingMarkup::Omit => return,
        ThinkingMarkup::Callout => {
            let head = format!("{}- {label}", super::CALLOUT);
            std::iter::once(head).chain(text.split('\n').map(quoted)).collect::<Vec<_>>().join("\n")
        }
        ThinkingMarkup::Details => {
            format!("<details><summary>{label}</summary>\n\n{}\n\n</details>", fenced(text, "text"))
        }
    };
    let mut about = ObjectWriter::default();
    if !thinking.source.is_empty() {
        about.push_raw("sourceField", &quote(&thinking.source));
    }
    if let Some(id) = &thinking.id {
        about.push_raw("id", &quote(id));
    }
    if !thinking.items.is_empty() {
        let items: Vec<String> = thinking.items.iter().map(|item| format!("[{},{}]", item.start, item.end)).collect();
        about.push_raw("items", &format!("[{}]", items.join(",")));
    }
    if let Some(span) = thinking.span {
        about.push_raw("startedAt", &quote(&rfc3339(span.started)));
        about.push_raw("endedAt", &quote(&rfc3339(span.ended)));
    }
    pieces.push(comment("thinking", &about.finish()));
    pieces.push(piece);
}

/// Includes the duration if it was measured.
fn label(thinking: &Thinking) -> String {
    let Some(span) = thinking.span else { return "Thought".to_owned() };
    let seconds = span.ended.0.saturating_sub(span.started.0).div_ceil(1000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("Thought for {seconds}s"),
        (minutes, seconds) => format!("Thought for {minutes}m {seconds}s"),
    }
}

fn write_call(call: &ToolCall, pieces: &mut Vec<String>) {
    let mut about = ObjectWriter::default();
    about.push_raw("id", &quote(call.id.as_str()));
    about.push_raw("name", &quote(&call.name));
    let (arguments, language) = match &call.arguments {
        Arguments::Json(json) => (json, "json"),
        Arguments::Broken(text) => {
            about.push_raw("broken", "true");
            (text, "text")
        }
    };
    pieces.push(comment("call", &about.finish()));
    pieces.push(format!("**Tool call** {}", code_span(&call.name)));
    pieces.push(fenced(arguments, language));
}

fn write_result(result: &ToolResult, pieces: &mut Vec<String>) {
    let mut about = ObjectWriter::default();
    about.push_raw("id", &quote(&result.id));
    about.push_raw("name", &quote(&result.name));
    if result.is_error {
        about.push_raw("isError", "true");
    }
    if !result.media.is_empty() {
        about.push_list("media", result.media.iter().map(|media| json::block(&Block::Media(media.clone()))));
    }
    pieces.push(comment("result", &about.finish()));
    let word = if result.is_error { "Failed" } else { "Result" };
    pieces.push(format!("**{word}** {}", code_span(&result.name)));
    pieces.push(fenced(&result.content, "text"));
}

/// An image that viewers show, if its data is valid. Any other media is in the
/// comment.
fn media_piece(media: &Media) -> String {
    let plain = |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
    let mut about = ObjectWriter::default();
    about.push_raw("mediaType", &quote(&media.media_type));
    if let Some(name) = &media.name {
        about.push_raw("name", &quote(name));
    }
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
    };
    match &media.source {
        MediaSource::Data(data)
            if media.kind == MediaKind::Image && plain(data, "+/=") && plain(&media.media_type, "/+.-") =>
        {
            let comment = comment(kind, &about.finish());
            return format!("{comment}\n\n![image](data:{};base64,{data})", media.media_type);
        }
        MediaSource::Data(data) => about.push_raw("data", &quote(data)),
        MediaSource::Url(url) => about.push_raw("url", &quote(url)),
        MediaSource::FileId(id) => about.push_raw("fileId", &quote(id)),
    }
    comment(kind, &about.finish())
}
