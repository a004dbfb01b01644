//! Turns the result of an MCP tool into text and images for the model.

use aside_core::block::{Media, base64_size};
use aside_engine::attachments::checked_image;
use aside_engine::tools::{BoundedOutput, ToolOutcome, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The same limit as for the output of a command.
const MAX_BYTES: usize = 32 * 1024;

/// More than a model looks at in one result.
const MAX_IMAGES: usize = 16;

pub(crate) fn tool_outcome(result: &CallToolResult) -> ToolOutcome {
    let (mut output, mut media) = (BoundedOutput::new(MAX_BYTES), Vec::new());
    let mut is_first = true;
    for block in &result.content {
        let Some(text) = block_text(block, &mut media) else { continue };
        if !std::mem::take(&mut is_first) {
            output.push(b"\n");
        }
        output.push(text.as_bytes());
    }
    // Structured content repeats the text, if there is text.
    if let (true, Some(value)) = (result.content.is_empty(), &result.structured_content) {
        output.push(value.to_string().as_bytes());
    }
    let text = match output.text() {
        text if text.is_empty() && media.is_empty() => "(the tool returned nothing)".to_owned(),
        text => text,
    };
    if result.is_error == Some(true) { Err(described(text, &media)) } else { Ok(ToolOutput { text, media }) }
}

/// The text of an error with a line for each image, because an error is only text.
fn described(text: String, media: &[Media]) -> String {
    let text = Some(text).filter(|text| !text.is_empty());
    text.into_iter().chain(media.iter().map(Media::describe)).collect::<Vec<_>>().join("\n")
}

/// The text of a block; none if it is an image, which is added to `media`.
fn block_text(block: &ContentBlock, media: &mut Vec<Media>) -> Option<String> {
    match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::Image(image) => {
            let why = add_image(&image.data, media).err()?;
            Some(placeholder("image", &image.mime_type, &image.data, &why))
        }
        ContentBlock::Audio(audio) => Some(placeholder("sound", &audio.mime_type, &audio.data, ONLY_IMAGES)),
        ContentBlock::Resource(embedded) => Some(match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("unknown type");
                let why = match kind.starts_with("image/") {
                    true => add_image(blob, media).err(),
                    false => Some(ONLY_IMAGES.to_owned()),
                };
                match why {
                    Some(why) => format!("{uri}: {}", placeholder("file", kind, blob, &why)),
                    None => format!("{uri}:"),
                }
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        }),
        ContentBlock::ResourceLink(link) => Some(format!("[a link to {}: {}]", link.name, link.uri)),
        _ => Some("[content of an unknown kind]".to_owned()),
    }
}

const ONLY_IMAGES: &str = "a tool result holds only text and images";

/// Adds an image, or says why it is left out.
fn add_image(base64: &str, media: &mut Vec<Media>) -> Result<(), String> {
    if media.len() == MAX_IMAGES {
        return Err(format!("a tool result holds at most {MAX_IMAGES} images"));
    }
    media.push(checked_image(base64)?);
    Ok(())
}

/// A placeholder for content that is not sent.
fn placeholder(kind: &str, mime_type: &str, base64: &str, why: &str) -> String {
    format!("[{kind}, {mime_type}, {} bytes; left out: {why}]", base64_size(base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_every_kind_of_result_becomes_text_or_an_image_and_errors_stay_errors() {
        #[rustfmt::skip]
        let cases = [
            ("texts",      r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, Ok("a\nb")),
            ("error",      r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,            Err("no")),
            ("no image",   r#"{"content":[{"type":"image","data":"AAAAAAAA","mimeType":"image/png"}]}"#,
                           Ok("[image, image/png, 6 bytes; left out: it is not a PNG, JPEG, GIF or WebP image]")),
            ("no Base64",  r#"{"content":[{"type":"image","data":"????","mimeType":"image/png"}]}"#,
                           Ok("[image, image/png, 3 bytes; left out: it is not valid Base64]")),
            ("sound",      r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}"#,
                           Ok("[sound, audio/wav, 3 bytes; left out: a tool result holds only text and images]")),
            ("resource",   r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"x"}}]}"#, Ok("file:///a:\nx")),
            ("blob",       r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}}]}"#,
                           Ok("file:///a: [file, unknown type, 3 bytes; left out: a tool result holds only text and images]")),
            ("link",       r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}"#, Ok("[a link to a: file:///a]")),
            ("structured", r#"{"content":[],"structuredContent":{"n":1}}"#,                          Ok(r#"{"n":1}"#)),
            ("both",       r#"{"content":[{"type":"text","text":"n"}],"structuredContent":{"n":1}}"#, Ok("n")),
            ("nothing",    r#"{"content":[]}"#,                                                      Ok("(the tool returned nothing)")),
        ];
        for (name, result, expected) in cases {
            let result: CallToolResult = serde_json::from_str(result).unwrap();
            let expected = expected.map(|text| ToolOutput::from(text.to_owned())).map_err(str::to_owned);
            assert_eq!(tool_outcome(&result), expected, "{name}");
        }
    }

    /// The first bytes of a PNG.
    const PNG: &str = "iVBORw0KGgo=";

    #[test]
    fn l2_an_image_stays_an_image_with_the_type_that_its_bytes_have() {
        let image = || Media::image("image/png".to_owned(), PNG.to_owned());
        let outcome = |content: serde_json::Value, is_error: bool| {
            let result = serde_json::json!({ "content": content, "isError": is_error });
            tool_outcome(&serde_json::from_value(result).unwrap())
        };
        let text = serde_json::json!({ "type": "text", "text": "a" });
        let picture = serde_json::json!({ "type": "image", "data": PNG, "mimeType": "image/jpeg" });
        let resource = serde_json::json!({ "uri": "file:///a", "blob": PNG, "mimeType": "image/png" });
        let file = serde_json::json!({ "type": "resource", "resource": resource });
        let output = |text: &str, n_images: usize| ToolOutput { text: text.to_owned(), media: vec![image(); n_images] };
        assert_eq!(outcome(serde_json::json!([picture]), false), Ok(output("", 1)));
        assert_eq!(outcome(serde_json::json!([picture, text, file]), false), Ok(output("a\nfile:///a:", 2)));
        let error = outcome(serde_json::json!([text, picture]), true);
        assert_eq!(error, Err("a\n[image, 8 bytes, image/png]".to_owned()));
        let many = outcome(serde_json::Value::Array(vec![picture; MAX_IMAGES + 1]), false).unwrap();
        assert_eq!(many.media.len(), MAX_IMAGES);
        assert!(many.text.ends_with("left out: a tool result holds at most 16 images]"), "{}", many.text);
    }

    #[test]
    fn l4_a_long_answer_keeps_its_head_and_its_tail() {
        let text = format!("head{}tail", "x".repeat(100_000));
        let result: CallToolResult =
            serde_json::from_value(serde_json::json!({ "content": [{ "type": "text", "text": text }] })).unwrap();
        let text = tool_outcome(&result).unwrap().text;
        assert!(text.starts_with("head") && text.ends_with("tail") && text.contains("bytes left out"));
        assert!(text.len() < MAX_BYTES + 100, "{}", text.len());
    }
}
