//! Writes images and documents in the form of each protocol. What has no form
//! there was left out before (`rules::left_out`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::block::{Media, MediaKind, MediaSource};
use crate::json_text::{ListWriter, NestedObject};

/// Chat Completions: `image_url` and `file`.
pub(super) fn chat_part(media: &Media, parts: &mut ListWriter<'_>) {
    parts.object(|out| match media.kind {
        MediaKind::Image => {
            out.push_raw("type", "\"image_url\"");
            out.object("image_url", |url| push_url("url", media, url));
        }
        MediaKind::Document => {
            out.push_raw("type", "\"file\"");
            out.object("file", |file| push_file(media, file));
        }
    });
}

/// Responses: `input_image` and `input_file`.
pub(super) fn responses_part(media: &Media, parts: &mut ListWriter<'_>) {
    parts.object(|out| match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::FileId(id)) => {
            out.push_raw("type", "\"input_image\"");
            out.push_text("file_id", id);
        }
        (MediaKind::Image, MediaSource::Data(_) | MediaSource::Url(_)) => {
            out.push_raw("type", "\"input_image\"");
            push_url("image_url", media, out);
        }
        (MediaKind::Document, _) => {
            out.push_raw("type", "\"input_file\"");
            push_file(media, out);
        }
    });
}

fn push_url(name: &str, media: &Media, out: &mut NestedObject<'_>) {
    match &media.source {
        MediaSource::Data(data) => out.push_text_parts(name, ["data:", &media.media_type, ";base64,", data]),
        MediaSource::Url(url) => out.push_text(name, url),
        MediaSource::FileId(_) => (),
    }
}

fn push_file(media: &Media, out: &mut NestedObject<'_>) {
    match &media.source {
        MediaSource::Data(_) => {
            // The provider requires a name next to data.
            out.push_text("filename", media.name.as_deref().unwrap_or("document"));
            push_url("file_data", media, out);
        }
        MediaSource::Url(url) => out.push_text("file_url", url),
        MediaSource::FileId(id) => out.push_text("file_id", id),
    }
}

/// Anthropic: a block with a source.
pub(super) fn messages_block(media: &Media, out: &mut NestedObject<'_>) {
    out.push_raw("type", if media.kind == MediaKind::Image { "\"image\"" } else { "\"document\"" });
    out.object("source", |source| match &media.source {
        MediaSource::Data(data) => match plain_text(media, data) {
            Some(text) => {
                source.push_raw("type", "\"text\"");
                source.push_text("media_type", &media.media_type);
                source.push_text("data", &text);
            }
            None => {
                source.push_raw("type", "\"base64\"");
                source.push_text("media_type", &media.media_type);
                source.push_text("data", data);
            }
        },
        MediaSource::Url(url) => {
            source.push_raw("type", "\"url\"");
            source.push_text("url", url);
        }
        MediaSource::FileId(id) => {
            source.push_raw("type", "\"file\"");
            source.push_text("file_id", id);
        }
    });
    if let Some(name) = media.name.as_deref().filter(|_| media.kind == MediaKind::Document) {
        out.push_text("title", name);
    }
}

/// Plain text has a form of its own there.
fn plain_text(media: &Media, data: &str) -> Option<String> {
    if media.kind != MediaKind::Document || media.media_type != "text/plain" {
        return None;
    }
    String::from_utf8(STANDARD.decode(data).ok()?).ok()
}

/// Gemini: data in the part, or a reference to it.
pub(super) fn gemini_part(media: &Media, out: &mut NestedObject<'_>) {
    let (name, member, value) = match &media.source {
        MediaSource::Data(data) => ("inlineData", "data", data),
        MediaSource::Url(uri) | MediaSource::FileId(uri) => ("fileData", "fileUri", uri),
    };
    out.object(name, |data| {
        data.push_text("mimeType", &media.media_type);
        data.push_text(member, value);
    });
}

/// Bedrock: a format instead of a media type, and a required name for documents.
pub(super) fn bedrock_block(media: &Media, out: &mut NestedObject<'_>) {
    let name = if media.kind == MediaKind::Image { "image" } else { "document" };
    out.object(name, |out| {
        out.push_text("format", bedrock_format(media));
        if media.kind == MediaKind::Document {
            out.push_text("name", &bedrock_name(media.name.as_deref().unwrap_or("document")));
        }
        out.object("source", |source| match &media.source {
            MediaSource::Data(data) => source.push_text("bytes", data),
            MediaSource::Url(uri) | MediaSource::FileId(uri) => {
                source.object("s3Location", |location| location.push_text("uri", uri));
            }
        });
    });
}

/// Other characters are refused there.
fn bedrock_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !" -()[]".contains(c), "-")
}

/// The formats of documents, and their media types.
const DOCUMENT_FORMATS: [(&str, &str); 9] = [
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("md", "text/markdown"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
];

fn bedrock_format(media: &Media) -> &str {
    let known = DOCUMENT_FORMATS.iter().find(|(_, media_type)| *media_type == media.media_type);
    match (media.kind, known) {
        (MediaKind::Document, Some((format, _))) => format,
        (MediaKind::Document, None) => "txt",
        (MediaKind::Image, _) => media.media_type.rsplit('/').next().unwrap_or("png"),
    }
}

pub(super) fn document_type(format: &str) -> &'static str {
    DOCUMENT_FORMATS.iter().find(|(known, _)| *known == format).map_or("text/plain", |(_, media_type)| media_type)
}
