//! What a tool of a server answered, as text for the model.

use aside_engine::tools::{Kept, Outcome};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// As much as a command may say.
const MOST: usize = 32 * 1024;

pub(crate) fn outcome(result: &CallToolResult) -> Outcome {
    let mut kept = Kept::new(MOST);
    for (nth, block) in result.content.iter().enumerate() {
        if nth > 0 {
            kept.push(b"\n");
        }
        kept.push(piece(block).as_bytes());
    }
    // The structured form says the same as the text, where there is text.
    if let (true, Some(value)) = (result.content.is_empty(), &result.structured_content) {
        kept.push(value.to_string().as_bytes());
    }
    let text = match kept.text() {
        text if text.is_empty() => "(the tool answered with nothing)".to_owned(),
        text => text,
    };
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

fn piece(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => unseen("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => unseen("sound", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("{uri}: {}", unseen("file", mime_type.as_deref().unwrap_or("unknown type"), blob))
            }
            _ => "[a resource of a kind that is not known here]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[a link to {}: {}]", link.name, link.uri),
        _ => "[something of a kind that is not known here]".to_owned(),
    }
}

/// What text cannot hold.
fn unseen(kind: &str, mime_type: &str, base64: &str) -> String {
    format!("[{kind}, {mime_type}, {} bytes; a tool result holds only text]", base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_every_kind_of_answer_is_text_and_an_error_stays_one() {
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
            ("nothing",    r#"{"content":[]}"#,                                                      Ok("(the tool answered with nothing)")),
        ];
        for (name, result, expected) in cases {
            let result: CallToolResult = serde_json::from_str(result).unwrap();
            assert_eq!(outcome(&result), expected.map(str::to_owned).map_err(str::to_owned), "{name}");
        }
    }

    #[test]
    fn l4_a_long_answer_keeps_its_head_and_its_tail() {
        let text = format!("head{}tail", "x".repeat(100_000));
        let result: CallToolResult =
            serde_json::from_value(serde_json::json!({ "content": [{ "type": "text", "text": text }] })).unwrap();
        let text = outcome(&result).unwrap();
        assert!(text.starts_with("head") && text.ends_with("tail") && text.contains("bytes left out"));
        assert!(text.len() < MOST + 100, "{}", text.len());
    }
}
