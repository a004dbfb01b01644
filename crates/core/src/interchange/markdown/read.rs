//! Reads our Markdown back. Text that a user edited is read as well as
//! possible.

use super::escape::{is_structure, read_comment, unescape, unquoted};
use crate::block::{
    Arguments, Block, CallId, MediaKind, MediaSource, Text, Thinking, ThinkingContent, ToolCall, ToolResult,
};
use crate::conversation::{read_media, read_message, read_thinking};
use crate::interchange::{ImportError, ImportKind, Imported};
use crate::json_text::{JsonText, Raw, each_element, each_member, member, text_member};

const NOT_IN_MARKDOWN: &str = "Markdown holds what was said and thought on one branch, without signatures, encrypted payloads, \
                        counts and tools: no provider takes its own thinking back from it";

/// Reads the output of [`super::write_markdown`].
pub fn read_markdown(text: &str) -> Result<Imported, ImportError> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // Another program changed the line ends to CRLF.
    if lines.first() == Some(&"---\r") {
        lines = lines.into_iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    }
    if !super::OPENING.iter().zip(&lines).all(|(ours, line)| ours == line) || lines.len() < 2 {
        return Err(ImportError::unknown(text));
    }
    let mut reader = MarkdownReader { lines, at: super::OPENING.len(), imported: Imported::default() };
    reader.front_matter();
    while let Some(line) = reader.line() {
        match read_comment(line) {
            Some(("message", json)) => reader.message(&json),
            Some(_) | None => reader.at += 1,
        }
    }
    if reader.imported.conversation.history.entries().is_empty() {
        return Err(ImportError::Empty(ImportKind::Markdown));
    }
    reader.imported.notes.insert(0, NOT_IN_MARKDOWN.to_owned());
    Ok(reader.imported)
}

struct MarkdownReader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    imported: Imported,
}

impl<'a> MarkdownReader<'a> {
    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn note(&mut self, what: &str) {
        self.imported.notes.push(format!("line {}: {what}", self.at + 1));
    }

    /// Skips the blank line between two pieces.
    fn skip_blank(&mut self) {
        self.at += usize::from(self.line() == Some(""));
    }

    fn front_matter(&mut self) {
        let conversation = &mut self.imported.conversation;
        while let Some(line) = self.lines.get(self.at).copied() {
            self.at += 1;
            if line == "---" {
                break;
            }
            let Some((key, value)) = line.split_once(": ") else { continue };
            let Ok(value) = Raw::of(value) else { continue };
            let text = JsonText::of(value).map(JsonText::to_owned_text);
            match key {
                "title" => conversation.title = text,
                "model" => conversation.model = text,
                "settings" => each_member(value, |key, value| {
                    let text = JsonText::of(value).map(JsonText::to_owned_text);
                    conversation.settings.extend(text.map(|text| (key.to_owned(), text)));
                }),
                _ => (),
            }
        }
    }

    fn message(&mut self, json: &str) {
        let message = Raw::of(json).map_err(|error| error.to_string()).and_then(read_message);
        let name = Raw::of(json).ok().and_then(|raw| text_member(raw, "id"));
        let mut message = match message {
            Ok(message) => message,
            Err(problem) => {
                self.note(&format!("a message was passed over: {problem}"));
                self.at += 1;
                return;
            }
        };
        self.at += 1;
        self.skip_blank();
        // The heading is for readers; the comment has the data.
        if self.line().is_some_and(|line| line.starts_with("## ")) {
            self.at += 1;
        }
        while let Some(block) = self.block() {
            message.blocks.extend(block);
        }
        let parent = self.imported.conversation.history.head();
        self.imported.conversation.history.insert(name, parent, message);
    }

    /// The next block of a message. Some pieces produce no block.
    fn block(&mut self) -> Option<Option<Block>> {
        self.skip_blank();
        let line = self.line()?;
        let Some((kind, json)) = read_comment(line) else {
            return Some(match line {
                line if line.starts_with(super::CALLOUT) || line.starts_with("<details>") => self.thinking("{}"),
                line if is_structure(line) => {
                    self.note("a comment was passed over: it is not ended");
                    self.at += 1;
                    None
                }
                _ => Some(self.text("{}")),
            });
        };
        if kind == "message" {
            return None;
        }
        self.at += 1;
        let json = json.as_str();
        Some(match kind {
            "text" => {
                self.skip_blank();
                Some(self.text(json))
            }
            "thinking" => {
                self.skip_blank();
                self.thinking(json)
            }
            "call" => Some(self.call(json)),
            "result" => Some(self.result(json)),
            "image" => self.media(json, MediaKind::Image),
            "document" => self.media(json, MediaKind::Document),
            _ => {
                self.note(&format!("a piece of an unknown kind was passed over: `{kind}`"));
                None
            }
        })
    }

    fn text(&mut self, json: &str) -> Block {
        let start = self.at;
        while self.line().is_some_and(|line| !is_structure(line)) {
            self.at += 1;
        }
        let mut lines = self.lines.get(start..self.at).unwrap_or(&[]);
        if let [before @ .., ""] = lines {
            lines = before;
        }
        let fence = Raw::of(json).ok().and_then(|raw| text_member(raw, "fence"));
        if let ([before @ .., last], Some(fence)) = (lines, fence)
            && *last == fence
        {
            lines = before;
        }
        let text = lines.iter().map(|line| unescape(line)).collect::<Vec<_>>().join("\n");
        Block::Text(Text { text, ..Text::default() })
    }

    fn thinking(&mut self, json: &str) -> Option<Block> {
        let line = self.line().unwrap_or("");
        let text = if line.starts_with(super::CALLOUT) {
            self.at += 1;
            self.quoted()
        } else if line.starts_with("<details>") {
            self.at += 1;
            let text = self.fenced();
            self.skip_blank();
            self.at += usize::from(self.line() == Some("</details>"));
            text
        } else {
            self.note("a thought was skipped: no callout follows its comment");
            return None;
        };
        if text.is_empty() {
            self.note("a thought was passed over: it is empty");
            return None;
        }
        let about = Raw::of(json).ok().map(read_thinking);
        let content = ThinkingContent::Open { text };
        let bare = Thinking::new(content.clone(), String::new());
        Some(Block::Thinking(about.map_or(bare, |about| Thinking { content, ..about })))
    }

    fn quoted(&mut self) -> String {
        let mut lines = Vec::new();
        while let Some(line) = self.line().and_then(unquoted) {
            lines.push(line);
            self.at += 1;
        }
        lines.join("\n")
    }

    /// The content of the next fence, after an optional label.
    fn fenced(&mut self) -> String {
        while self.line().is_some_and(|line| line.is_empty() || line.starts_with("**")) {
            self.at += 1;
        }
        let Some(fence) = self.line().filter(|line| line.starts_with("```")) else {
            self.note("a piece is empty: no fence follows its comment");
            return String::new();
        };
        let fence = fence.trim_end_matches(|c| c != '`');
        self.at += 1;
        let start = self.at;
        while self.line().is_some_and(|line| line != fence) {
            self.at += 1;
        }
        let content = self.lines.get(start..self.at).unwrap_or(&[]).join("\n");
        match self.line() {
            Some(_) => self.at += 1,
            None => self.note("the last fence is not closed"),
        }
        content
    }

    fn call(&mut self, json: &str) -> Block {
        let member_text = |name: &str| Raw::of(json).ok().and_then(|raw| text_member(raw, name)).unwrap_or_default();
        let broken = Raw::of(json).is_ok_and(|raw| member(raw, "broken").is_some());
        let content = self.fenced();
        Block::ToolCall(ToolCall::new(
            CallId::from_stored(member_text("id")),
            member_text("name"),
            if broken { Arguments::Broken(content) } else { Arguments::parse(content).canonical() },
        ))
    }

    fn result(&mut self, json: &str) -> Block {
        let member_text = |name: &str| Raw::of(json).ok().and_then(|raw| text_member(raw, name)).unwrap_or_default();
        let is_error = Raw::of(json).is_ok_and(|raw| member(raw, "isError").is_some_and(|value| value.get() == "true"));
        let (id, name) = (member_text("id"), member_text("name"));
        let mut media = Vec::new();
        if let Some(list) = Raw::of(json).ok().and_then(|raw| member(raw, "media")) {
            each_element(list, |item| {
                let kind = match text_member(item, "type").as_deref() {
                    Some("document") => MediaKind::Document,
                    Some(_) | None => MediaKind::Image,
                };
                media.push(read_media(item, kind));
            });
        }
        Block::ToolResult(ToolResult { id, name, content: self.fenced(), media, is_error })
    }

    fn media(&mut self, json: &str, kind: MediaKind) -> Option<Block> {
        let raw = Raw::of(json).ok()?;
        let mut media = read_media(raw, kind);
        let has_source = ["data", "url", "fileId"].into_iter().any(|name| member(raw, name).is_some());
        if !has_source {
            self.skip_blank();
            let link = self.line().and_then(|line| line.strip_prefix("![image](data:")?.strip_suffix(')'));
            let Some((_, data)) = link.and_then(|link| link.split_once(";base64,")) else {
                self.note("an image was passed over: its data is not there");
                return None;
            };
            media.source = MediaSource::Data(data.to_owned());
            self.at += 1;
        }
        Some(Block::Media(media))
    }
}
