//! Members of a client's message that have no neutral form. They are kept under their paths, so that
//! nothing a client sent is dropped in silence.

use super::cache_points::CACHE_CONTROL;
use super::client_request::elements;
use super::media_in::read_media_part;
use crate::extra::Extra;
use crate::json_text::{JsonKind, Raw, each_member, is_empty_value, member, text_member};
use crate::protocol::Protocol;

/// Adds the members of a message that are not read: those besides `known`, and those of the parts in its
/// member `content`.
pub(super) fn keep_unread(protocol: Protocol, message: Raw<'_>, content: &str, known: &[&str], extra: &mut Extra) {
    let mut keep = |path: String, value: Raw<'_>| keep_at(path, value, extra);
    unread(message, "", known, &mut keep);
    if let Some(parts) = member(message, content) {
        unread_in_parts(protocol, parts, content, &mut keep);
    }
}

/// The same for a list of parts outside a message.
pub(super) fn keep_unread_in_parts(protocol: Protocol, parts: Option<Raw<'_>>, path: &str, extra: &mut Extra) {
    if let Some(parts) = parts {
        unread_in_parts(protocol, parts, path, &mut |path, value| keep_at(path, value, extra));
    }
}

/// Several tool results may be one message; the second member of a name gets a number.
fn keep_at(path: String, value: Raw<'_>, extra: &mut Extra) {
    let mut name = path.clone();
    let mut count = 1;
    while extra.get(&name).is_some() {
        count += 1;
        name = format!("{path} {count}");
    }
    extra.set(&name, value.get());
}

type Keep<'k> = &'k mut dyn FnMut(String, Raw<'_>);

fn unread_in_parts(protocol: Protocol, parts: Raw<'_>, path: &str, keep: Keep<'_>) {
    if parts.kind() != JsonKind::Array {
        return;
    }
    for (at, part) in elements(parts).into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        let kind = text_member(part, "type");
        let result = match protocol {
            Protocol::Anthropic if kind.as_deref() == Some("tool_result") => Some((part, path.clone())),
            Protocol::Bedrock => member(part, "toolResult").map(|result| (result, format!("{path}.toolResult"))),
            Protocol::Anthropic
            | Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => None,
        };
        if let Some(known) = known_members(protocol, part, kind.as_deref()) {
            unread(part, &format!("{path}."), &known, keep);
        }
        // The output of a tool is a list of parts again.
        if let Some((result, path)) = result
            && let Some(output) = member(result, "content").filter(|output| output.kind() == JsonKind::Array)
        {
            for (at, part) in elements(output).into_iter().enumerate() {
                if let Some(known) = known_members(protocol, part, text_member(part, "type").as_deref()) {
                    unread(part, &format!("{path}.content[{at}]."), &known, keep);
                }
            }
        }
    }
}

/// The paths that reading a part takes into account; none if the part is kept as it is.
fn known_members(protocol: Protocol, part: Raw<'_>, kind: Option<&str>) -> Option<Vec<&'static str>> {
    const TEXT: &[&str] = &["type", "text"];
    const IMAGE_URL: &[&str] = &["type", "image_url.url", "file_id"];
    const FILE: &[&str] = &["type", "file.filename", "file.file_data", "file.file_url", "file.file_id"];
    const INPUT_FILE: &[&str] = &["type", "filename", "file_data", "file_url", "file_id"];
    #[rustfmt::skip]
    const SOURCE: &[&str] = &[
        "type", "title", "source.type", "source.media_type", "source.data", "source.url", "source.file_id",
    ];
    const RESULT: &[&str] = &["type", "tool_use_id", "content", "is_error"];
    #[rustfmt::skip]
    const GEMINI: &[&str] = &[
        "text", "functionResponse.id", "functionResponse.name", "functionResponse.response", "functionResponse.parts",
        "function_response.id", "function_response.name", "function_response.response", "function_response.parts",
        "inlineData.mimeType", "inlineData.mime_type", "inlineData.data", "inlineData.displayName", "inlineData.display_name",
        "inline_data.mimeType", "inline_data.mime_type", "inline_data.data", "inline_data.displayName", "inline_data.display_name",
        "fileData.mimeType", "fileData.mime_type", "fileData.fileUri", "fileData.file_uri", "fileData.displayName", "fileData.display_name",
        "file_data.mimeType", "file_data.mime_type", "file_data.fileUri", "file_data.file_uri", "file_data.displayName", "file_data.display_name",
    ];
    #[rustfmt::skip]
    const BEDROCK: &[&str] = &[
        "text", "json", "toolResult.toolUseId", "toolResult.content", "toolResult.status", "cachePoint",
        "image.format", "image.source.bytes", "image.source.s3Location.uri",
        "document.format", "document.name", "document.source.bytes", "document.source.s3Location.uri",
    ];
    let is_read = || read_media_part(part).is_some();
    let known = match (protocol, kind) {
        (Protocol::Gemini, _) => GEMINI,
        (Protocol::Bedrock, _) => BEDROCK,
        (_, Some("text" | "input_text")) => TEXT,
        (Protocol::Anthropic, Some("tool_result")) => RESULT,
        (_, Some("image_url" | "input_image")) if is_read() => IMAGE_URL,
        (_, Some("file")) if is_read() => FILE,
        (_, Some("input_file")) if is_read() => INPUT_FILE,
        (_, Some("image" | "document")) if is_read() => SOURCE,
        (_, _) => return None,
    };
    let is_kept_whole = matches!(protocol, Protocol::Gemini | Protocol::Bedrock)
        && !is_read()
        && !["text", "functionResponse", "function_response", "toolResult"]
            .iter()
            .any(|name| member(part, name).is_some());
    // These protocols mark parts for the cache, which becomes a hint.
    let mark = matches!(protocol, Protocol::OpenaiChat | Protocol::Anthropic).then_some(CACHE_CONTROL);
    (!is_kept_whole).then(|| known.iter().copied().chain(mark).collect())
}

/// The members that are not below one of the known paths, and say something.
fn unread(object: Raw<'_>, path: &str, known: &[&str], keep: Keep<'_>) {
    if object.kind() != JsonKind::Object {
        return;
    }
    each_member(object, |name, value| {
        if known.contains(&name) || is_empty_value(value) {
            return;
        }
        let below: Vec<&str> = known.iter().filter_map(|known| known.strip_prefix(name)?.strip_prefix('.')).collect();
        match below.is_empty() {
            true => keep(format!("{path}{name}"), value),
            false => unread(value, &format!("{path}{name}."), &below, keep),
        }
    });
}
