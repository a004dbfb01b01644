//! Prompts with the files that they attach.

use std::path::Path;

use aside_core::block::{Block, Media, Text};
use aside_engine::attachments::{self, AttachedPrompt};
use aside_engine::prompt;
use aside_front::Attachment;

use crate::error::HintedError;

/// The prompt as blocks, with its attachments. Only `typed` can attach files.
pub(crate) fn attach(typed: &str, piped: Option<&str>, here: &Path) -> Result<AttachedPrompt, HintedError> {
    let attached = attachments::attach(typed, piped, here);
    attached.map_err(|error| HintedError::new(error.to_string()).hint(error.hint()))
}

/// A literal prompt with the attachments that a front end names.
pub(crate) fn attach_named(text: &str, attachments: &[Attachment], here: &Path) -> Result<AttachedPrompt, HintedError> {
    let text = Block::Text(Text { text: text.to_owned(), ..Text::default() });
    let mut attached = AttachedPrompt { blocks: vec![text], descriptions: Vec::new() };
    for attachment in attachments {
        let block = match attachment {
            Attachment::File { path } => {
                let name = path.strip_prefix(here).unwrap_or(path).display().to_string();
                let read = attachments::attach_file(&name, &here.join(path));
                let (block, size) = read.map_err(|error| HintedError::new(format!("`{name}` {}", error.why)))?;
                attached.descriptions.push(format!("attached {name} ({size} bytes)"));
                block
            }
            Attachment::Text { name, text } => attachments::attach_text(name, text),
            Attachment::Image { media_type, data } => Block::Media(Media::image(media_type.clone(), data.clone())),
        };
        attached.blocks.push(block);
    }
    Ok(attached)
}

/// Names of project files that can be attached.
pub(crate) fn attachable_files(here: &Path, most: usize) -> Vec<String> {
    prompt::names(here, most)
}
