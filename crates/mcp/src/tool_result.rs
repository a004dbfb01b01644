//! Turns the result of an MCP tool into text for the model.

use aside_engine::tools::{BoundedOutput, ToolOutcome};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The same limit as for the output of a command.
const MAX_BYTES: usize = 32 * 1024;

pub(crate) fn tool_outcome(result: &CallToolResult) -> ToolOutcome {
    let mut output = BoundedOutput::new(MAX_BYTES);
    for (nth, block) in result.content.iter().enumerate() {
        if nth > 0 {
            output.push(b"\n");
        }
        output.push(block_text(block).as_bytes());
    }
    // Structured content repeats the text, if there is text.
    if let (true, Some(value)) = (result.content.is_empty(), &result.structured_content) {
        output.push(value.to_string().as_bytes());
    }
    let text = match output.text() {
        text if text.is_empty() => "(the tool returned nothing)".to_owned(),
        text => text,
    };
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => placeholder("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => placeholder("sound", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("{uri}: {}", placeholder("file", mime_type.as_deref().unwrap_or("unknown type"), blob))
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[a link to {}: {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// A placeholder for content that is not text.
fn placeholder(kind: &str, mime_type: &str, base64: &str) -> String {
    format!("[{kind}, {mime_type}, {} bytes; a tool result holds only text]", base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_every_kind_of_result_becomes_text_and_errors_stay_errors() {
        #[rustfmt::skip]
        let cases = [
            ("texts",      r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, Ok("a\nb")),
            ("error",      r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,            Err("no")),
            ("image",      r#"{"content":[{"type":"image","data":"AAAAAAAA","mimeType":"image/png"}]}"#,
                           Ok("[image, image/png, 6 bytes; a tool result holds only text]")),
            ("sound",      r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}"#,
                           Ok("[sound, audio/wav, 3 bytes; a tool result holds only text]")),
            ("resource",   r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"x"}}]}"#, Ok("file:///a:\nx")),
            ("blob",       r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}}]}"#,
                           Ok("file:///a: [file, unknown type, 3 bytes; a tool result holds only text]")),
            ("link",       r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}"#, Ok("[a link to a: file:///a]")),
            ("structured", r#"{"content":[],"structuredContent":{"n":1}}"#,                          Ok(r#"{"n":1}"#)),
            ("both",       r#"{"content":[{"type":"text","text":"n"}],"structuredContent":{"n":1}}"#, Ok("n")),
            ("nothing",    r#"{"content":[]}"#,                                                      Ok("(the tool returned nothing)")),
        ];
        for (name, result, expected) in cases {
            let result: CallToolResult = serde_json::from_str(result).unwrap();
            assert_eq!(tool_outcome(&result), expected.map(str::to_owned).map_err(str::to_owned), "{name}");
        }
    }

    #[test]
    fn l4_a_long_answer_keeps_its_head_and_its_tail() {
        let text = format!("head{}tail", "x".repeat(100_000));
        let result: CallToolResult =
            serde_json::from_value(serde_json::json!({ "content": [{ "type": "text", "text": text }] })).unwrap();
        let text = tool_outcome(&result).unwrap();
        assert!(text.starts_with("head") && text.ends_with("tail") && text.contains("bytes left out"));
        assert!(text.len() < MAX_BYTES + 100, "{}", text.len());
    }
}
