//! The content of a prompt.

use std::path::PathBuf;

use aside_front::Attachment;
use serde::Deserialize;

use crate::rpc::RpcError;

/// A block of a prompt. An unknown type is refused, so that nothing is lost silently.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PromptBlock {
    Text { text: String },
    Image { data: String, mime_type: String },
    ResourceLink { uri: String },
    Resource { resource: Resource },
}

/// An embedded file: a text, or bytes in Base64.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
    mime_type: Option<String>,
}

/// A prompt as the session takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub text: String,
    pub attachments: Vec<Attachment>,
}

pub(crate) fn read(blocks: Vec<PromptBlock>) -> Result<Prompt, RpcError> {
    let mut prompt = Prompt { text: String::new(), attachments: Vec::new() };
    for block in blocks {
        match block {
            PromptBlock::Text { text } => prompt.text.push_str(&text),
            PromptBlock::Image { data, mime_type } => {
                prompt.attachments.push(Attachment::Image { media_type: mime_type, data });
            }
            PromptBlock::ResourceLink { uri } => match file_path(&uri) {
                Some(path) => {
                    // The name in the text shows where in the sentence the user mentioned the file.
                    push_word(&mut prompt.text, &path.display().to_string());
                    prompt.attachments.push(Attachment::File { path });
                }
                None => push_word(&mut prompt.text, &uri),
            },
            PromptBlock::Resource { resource } => {
                let name =
                    file_path(&resource.uri).map_or_else(|| resource.uri.clone(), |path| path.display().to_string());
                push_word(&mut prompt.text, &name);
                prompt.attachments.push(embedded(name, resource)?);
            }
        }
    }
    if prompt.text.trim().is_empty() && prompt.attachments.is_empty() {
        return Err(RpcError::invalid_params("the prompt is empty; write something"));
    }
    Ok(prompt)
}

fn embedded(name: String, resource: Resource) -> Result<Attachment, RpcError> {
    match (resource.text, resource.blob, resource.mime_type) {
        (Some(text), ..) => Ok(Attachment::Text { name, text }),
        (None, Some(data), Some(media_type)) if media_type.starts_with("image/") => {
            Ok(Attachment::Image { media_type, data })
        }
        (None, ..) => {
            Err(RpcError::invalid_params(format!("`{name}` is neither text nor an image; attach a text file")))
        }
    }
}

fn push_word(text: &mut String, word: &str) {
    if !text.is_empty() && !text.ends_with(char::is_whitespace) {
        text.push(' ');
    }
    text.push_str(word);
}

/// The path of a `file:` URI, without the position in the file.
fn file_path(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = path.split(['#', '?']).next().filter(|path| path.starts_with('/'))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? << 4 | digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(blocks: Value) -> Result<Prompt, i32> {
        let blocks = serde_json::from_value(blocks).expect("blocks");
        read(blocks).map_err(|error| error.code)
    }

    #[test]
    fn a1_links_and_embedded_files_are_attached_and_named_in_the_text() {
        let prompt = parsed(json!([
            {"type": "text", "text": "compare"},
            {"type": "resource_link", "uri": "file:///p/a%20b.rs#L1", "name": "a b.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": "file:///p/c.rs", "text": "unsaved"}},
            {"type": "resource_link", "uri": "https://example.com/x", "name": "x"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]));
        let attachments = vec![
            Attachment::File { path: "/p/a b.rs".into() },
            Attachment::Text { name: "/p/c.rs".into(), text: "unsaved".into() },
            Attachment::Image { media_type: "image/png".into(), data: "AAAA".into() },
        ];
        let text = "compare /p/a b.rs and /p/c.rs https://example.com/x".to_owned();
        assert_eq!(prompt, Ok(Prompt { text, attachments }));
        assert_eq!(parsed(json!([{"type": "text", "text": " \n"}])), Err(-32602));
        let blob = json!([{"type": "resource", "resource": {"uri": "file:///p/x.zip", "blob": "AAAA"}}]);
        assert_eq!(parsed(blob), Err(-32602));
    }

    #[test]
    fn a_file_uri_is_decoded() {
        #[rustfmt::skip]
        let cases = [
            ("file:///a/b",            Some("/a/b")),
            ("file://localhost/a",     Some("/a")),
            ("file:///%C3%A4?x#y",     Some("/ä")),
            ("file:///a%2",            None),
            ("file:///%ff",            None),
            ("file://host/a",          None),
            ("https://a/b",            None),
        ];
        for (uri, path) in cases {
            assert_eq!(file_path(uri), path.map(PathBuf::from), "{uri}");
        }
    }
}
