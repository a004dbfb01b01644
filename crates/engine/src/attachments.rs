//! Files that a prompt mentions with `@`, attached as blocks of its message.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aside_core::block::{Block, Media, Text, base64_size};
use aside_core::mention::{Mention, mentions, unescape_mentions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::tools::{BoundedOutput, image_type};

/// The maximum length of one attached text.
const MAX_TEXT: usize = 128 * 1024;
/// Larger files are not read at all.
const MAX_READ: u64 = 16 * 1024 * 1024;
/// The limit of the strictest provider.
const MAX_IMAGE: u64 = 5 * 1024 * 1024;

/// How a PDF begins, whatever its name.
const PDF: &[u8] = b"%PDF-";

/// A prompt with its attachments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AttachedPrompt {
    pub blocks: Vec<Block>,
    /// One line for each attachment, for the user.
    pub descriptions: Vec<String>,
}

/// A mentioned file that cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`@{name}` {why}")]
pub struct AttachError {
    pub name: String,
    pub why: String,
}

impl AttachError {
    pub fn hint(&self) -> String {
        format!("nothing was sent; name a text file, an image or a PDF, or write @@{} for the literal text", self.name)
    }
}

/// The blocks of a prompt: its text, then each file that it mentions. Only `typed` can mention files; `piped`
/// is appended as it is.
///
/// The user typed the path, so no permission is needed.
pub fn attach(typed: &str, piped: Option<&str>, root: &Path) -> Result<AttachedPrompt, AttachError> {
    let mut prompt = unescape_mentions(typed).into_owned();
    if let Some(piped) = piped.filter(|piped| !piped.trim().is_empty()) {
        if !prompt.trim().is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(piped);
    }
    let mut attached = AttachedPrompt { blocks: vec![text(prompt)], descriptions: Vec::new() };
    let mut seen: Vec<PathBuf> = Vec::new();
    for mention in mentions(typed) {
        let Some((name, path)) = resolve_mention(mention, root)? else { continue };
        if seen.contains(&path) {
            continue;
        }
        let fail = |why: String| AttachError { name: name.to_owned(), why };
        let (block, size) = read_block(name, &path).map_err(fail)?;
        attached.descriptions.push(format!("attached {name} ({size} bytes)"));
        attached.blocks.push(block);
        seen.push(path);
    }
    Ok(attached)
}

/// A file that a front end attaches by its path, as a block and the size of the file.
pub fn attach_file(name: &str, path: &Path) -> Result<(Block, u64), AttachError> {
    read_block(name, path).map_err(|why| AttachError { name: name.to_owned(), why })
}

/// A text that a front end attaches under a name, such as a file that the user has not saved yet.
pub fn attach_text(name: &str, content: &str) -> Block {
    let mut bounded = BoundedOutput::new(MAX_TEXT);
    bounded.push(content.as_bytes());
    file_block(name, &bounded.text())
}

fn file_block(name: &str, content: &str) -> Block {
    text(format!("<file path=\"{name}\">\n{}\n</file>", content.trim_end_matches('\n')))
}

/// The file that a mention refers to; `None` if it is an ordinary word. Punctuation at the end may belong to
/// the sentence instead of the name.
fn resolve_mention<'a>(mention: Mention<'a>, root: &Path) -> Result<Option<(&'a str, PathBuf)>, AttachError> {
    let mut name = mention.name;
    loop {
        if let Ok(path) = fs::canonicalize(root.join(name)) {
            return Ok(Some((name, path)));
        }
        let shorter = name.strip_suffix(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"']);
        match shorter.filter(|shorter| !shorter.is_empty() && !mention.is_quoted) {
            Some(shorter) => name = shorter,
            None if mention.is_path() => {
                return Err(AttachError { name: name.to_owned(), why: "does not exist".to_owned() });
            }
            None => return Ok(None),
        }
    }
}

fn read_block(name: &str, path: &Path) -> Result<(Block, u64), String> {
    let metadata = fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => (),
        (_, true) => return Err("is a folder; name a file in it".to_owned()),
        (false, false) => return Err("is not a regular file".to_owned()),
    }
    let size = metadata.len();
    let block = match image_type(path) {
        Some(_) if size > MAX_IMAGE => return Err(format!("is an image of {size} bytes; at most {MAX_IMAGE}")),
        Some(named) => {
            let bytes = read(path, MAX_IMAGE)?;
            match sniff_image_type(&bytes) {
                Some(media_type) => Block::Media(Media::image(media_type.to_owned(), STANDARD.encode(bytes))),
                None => return Err(format!("is named like {named} but is not an image")),
            }
        }
        None if size > MAX_READ => return Err(format!("has {size} bytes; at most {MAX_READ}")),
        None => {
            let bytes = read(path, MAX_READ)?;
            if bytes.starts_with(PDF) {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let data = STANDARD.encode(bytes);
                return Ok((Block::Media(Media::document("application/pdf".to_owned(), data, name)), size));
            }
            if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
                return Err("is a binary file".to_owned());
            }
            let mut bounded = BoundedOutput::new(MAX_TEXT);
            bounded.push(&bytes);
            file_block(name, &bounded.text())
        }
    };
    Ok((block, size))
}

fn read(path: &Path, max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max).read_to_end(&mut bytes));
    read.map_err(|error: io::Error| format!("cannot be read: {error}"))?;
    Ok(bytes)
}

/// An image in Base64 from an untrusted source, or why it cannot be sent.
pub fn checked_image(base64: &str) -> Result<Media, String> {
    let size = base64_size(base64) as u64;
    if size > MAX_IMAGE {
        return Err(format!("it has {size} bytes; at most {MAX_IMAGE}"));
    }
    let bytes = STANDARD.decode(base64).map_err(|_| "it is not valid Base64".to_owned())?;
    let media_type = sniff_image_type(&bytes).ok_or("it is not a PNG, JPEG, GIF or WebP image")?;
    Ok(Media::image(media_type.to_owned(), base64.to_owned()))
}

/// Detects the type by the first bytes, because the file name may be wrong.
fn sniff_image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn text(text: String) -> Block {
    Block::Text(Text { text, ..Text::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir::TestDir;

    const PNG: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];

    fn folder(name: &str) -> TestDir {
        let test_dir = TestDir::new(name);
        let root = test_dir.path();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(root.join("two words.txt"), "2").unwrap();
        fs::write(root.join("dot.pic.png"), PNG).unwrap();
        fs::write(root.join("paper.pdf"), b"%PDF-1.7\n\0\xff").unwrap();
        fs::write(root.join("false.png"), "not an image").unwrap();
        fs::write(root.join("blob"), [b'a', 0]).unwrap();
        fs::write(root.join("latin1.txt"), [b'a', 0xe9]).unwrap();
        test_dir
    }

    #[test]
    fn l5_files_mentioned_in_a_prompt_are_attached_and_listed() {
        let test_dir = folder("attached");
        let root = test_dir.path();
        let file = |name: &str, content: &str| text(format!("<file path=\"{name}\">\n{content}\n</file>"));
        let a = || vec![file("src/a.rs", "fn a() {}")];
        let image = Block::Media(Media::image("image/png".to_owned(), STANDARD.encode(PNG)));
        let paper = STANDARD.encode(b"%PDF-1.7\n\0\xff");
        let paper = Block::Media(Media::document("application/pdf".to_owned(), paper, Some("paper.pdf".to_owned())));
        let outside = root.join("src/a.rs").display().to_string();
        #[rustfmt::skip]
        let cases = [
            ("a file",        "see @src/a.rs".to_owned(),         a()),
            ("in a sentence", "(@src/a.rs), then?".to_owned(),    a()),
            ("named twice",   "@src/a.rs @src/a.rs".to_owned(),   a()),
            ("absolute",      format!("@{outside}"),              vec![file(&outside, "fn a() {}")]),
            ("with a space",  "@\"two words.txt\" ok".to_owned(), vec![file("two words.txt", "2")]),
            ("an image",      "what is @dot.pic.png?".to_owned(), vec![image]),
            ("a document",    "sum up @paper.pdf.".to_owned(),    vec![paper]),
            ("a word",        "ask @alice".to_owned(),            vec![]),
            ("an address",    "a@src/a.rs".to_owned(),            vec![]),
            ("nothing",       "@ and @".to_owned(),               vec![]),
        ];
        for (name, prompt, expected) in cases {
            let attached = attach(&prompt, None, root).unwrap();
            assert_eq!(attached.descriptions.len(), expected.len(), "{name}");
            let blocks: Vec<Block> = std::iter::once(text(prompt.clone())).chain(expected).collect();
            assert_eq!(attached.blocks, blocks, "{name}");
        }
        let attached = attach("@@src/a.rs", None, root).unwrap();
        assert_eq!(attached.blocks, [text("@src/a.rs".to_owned())]);
    }

    #[test]
    fn l5_piped_text_mentions_no_files() {
        let test_dir = folder("piped");
        let attached = attach("sum it up", Some("+@src/a.rs\n@src/a.rs @@x\n"), test_dir.path()).unwrap();
        assert_eq!(attached.blocks, [text("sum it up\n\n+@src/a.rs\n@src/a.rs @@x\n".to_owned())]);
    }

    #[test]
    fn l5_a_file_that_cannot_be_attached_is_an_error() {
        let test_dir = folder("not-attached");
        #[rustfmt::skip]
        let cases = [
            ("@none.txt",      "`@none.txt` does not exist"),
            ("@src/none",      "`@src/none` does not exist"),
            ("@\"no such\"",   "`@no such` does not exist"),
            ("@src",           "`@src` is a folder; name a file in it"),
            ("@blob",          "`@blob` is a binary file"),
            ("@latin1.txt",    "`@latin1.txt` is a binary file"),
            ("@false.png",     "`@false.png` is named like image/png but is not an image"),
        ];
        for (prompt, expected) in cases {
            assert_eq!(attach(prompt, None, test_dir.path()).unwrap_err().to_string(), expected);
        }
    }
}
