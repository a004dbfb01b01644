//! Reads images and documents from request parts, in the shapes of all protocols.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::block::{Media, MediaKind, MediaSource};
use crate::json_text::{Raw, at_path, member, text_member, text_of};

/// The image or document that a part holds. None if it holds something else, or
/// more than the neutral form can.
pub(super) fn read_media_part(part: Raw<'_>) -> Option<Media> {
    match text_member(part, "type").as_deref() {
        Some("image") => source_part(part, MediaKind::Image),
        Some("document") if member(part, "source").is_some() => source_part(part, MediaKind::Document),
        Some("image_url" | "input_image") => image_url_part(part),
        Some("file") => file_part(member(part, "file")?),
        Some("input_file") => file_part(part),
        Some(_) => None,
        None => gemini_part(part).or_else(|| bedrock_part(part)),
    }
}

/// Anthropic: a type and a source.
fn source_part(part: Raw<'_>, kind: MediaKind) -> Option<Media> {
    let source = member(part, "source")?;
    let of = |name: &str| text_member(source, name);
    let (media_type, source) = match of("type").as_deref() {
        Some("base64") => (of("media_type")?, MediaSource::Data(of("data")?)),
        Some("text") => (of("media_type")?, MediaSource::Data(STANDARD.encode(of("data")?))),
        Some("url") => (String::new(), MediaSource::Url(of("url")?)),
        Some("file") => (String::new(), MediaSource::FileId(of("file_id")?)),
        Some(_) | None => return None,
    };
    Some(Media { kind, media_type, source, name: text_member(part, "title") })
}

/// OpenAI: a URL, which may hold the data itself, or a file id.
fn image_url_part(part: Raw<'_>) -> Option<Media> {
    let url = member(part, "image_url").and_then(text_of).or_else(|| at_path(part, "image_url.url").and_then(text_of));
    match (url, text_member(part, "file_id")) {
        (Some(url), _) => Some(by_url(MediaKind::Image, url, None)),
        (None, Some(id)) => Some(by_id(MediaKind::Image, id, None)),
        (None, None) => None,
    }
}

/// OpenAI: a file by its data, URL or id.
fn file_part(file: Raw<'_>) -> Option<Media> {
    let name = text_member(file, "filename");
    let of = |member: &str| text_member(file, member);
    match (of("file_data").or_else(|| of("file_url")), of("file_id")) {
        (Some(url), _) => Some(by_url(MediaKind::Document, url, name)),
        (None, Some(id)) => Some(by_id(MediaKind::Document, id, name)),
        (None, None) => None,
    }
}

fn by_url(kind: MediaKind, url: String, name: Option<String>) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (media_type, source) = match inline {
        Some((media_type, data)) => (media_type.to_owned(), MediaSource::Data(data.to_owned())),
        None => (String::new(), MediaSource::Url(url)),
    };
    Media { kind, media_type, source, name }
}

fn by_id(kind: MediaKind, id: String, name: Option<String>) -> Media {
    Media { kind, media_type: String::new(), source: MediaSource::FileId(id), name }
}

fn gemini_part(part: Raw<'_>) -> Option<Media> {
    let either =
        |object: Raw<'_>, camel: &str, snake: &str| text_member(object, camel).or_else(|| text_member(object, snake));
    let inline = member(part, "inlineData").or_else(|| member(part, "inline_data"));
    let file = member(part, "fileData").or_else(|| member(part, "file_data"));
    let data = inline.or(file)?;
    let media_type = either(data, "mimeType", "mime_type").unwrap_or_default();
    let source = match inline {
        Some(inline) => MediaSource::Data(text_member(inline, "data")?),
        None => MediaSource::Url(either(data, "fileUri", "file_uri")?),
    };
    let kind = match media_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("application" | "text") => MediaKind::Document,
        // Sound and video are kept as they are.
        _ => return None,
    };
    Some(Media { kind, media_type, source, name: either(data, "displayName", "display_name") })
}

fn bedrock_part(part: Raw<'_>) -> Option<Media> {
    let (kind, inner) = match (member(part, "image"), member(part, "document")) {
        (Some(image), _) => (MediaKind::Image, image),
        (None, Some(document)) => (MediaKind::Document, document),
        (None, None) => return None,
    };
    let format = text_member(inner, "format").unwrap_or_default();
    let source = match at_path(inner, "source.bytes").and_then(text_of) {
        Some(data) => MediaSource::Data(data),
        None => MediaSource::Url(at_path(inner, "source.s3Location.uri").and_then(text_of)?),
    };
    let media_type = match kind {
        MediaKind::Image => format!("image/{format}"),
        MediaKind::Document => super::media_out::document_type(&format).to_owned(),
    };
    Some(Media { kind, media_type, source, name: text_member(inner, "name") })
}
