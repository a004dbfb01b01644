//! What goes out beside the user's own words: the system prompt, the project's
//! instructions, and files named with `@`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aside_core::block::{Block, Image, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::tools::{Kept, image_type};

/// The most of one file of instructions.
const MOST_INSTRUCTIONS: usize = 32 * 1024;
/// The most of one attached text.
const MOST_TEXT: usize = 128 * 1024;
/// What is read of a file at all.
const MOST_READ: u64 = 16 * 1024 * 1024;
/// What the strictest provider takes.
const MOST_IMAGE: u64 = 5 * 1024 * 1024;

/// The system prompt of a session with tools whose user set none.
pub fn built_in(root: &Path, today: &str) -> String {
    format!(
        "You work in the folder {} on the user's computer. Today is {today}.\n\
         You have tools to look at files, change them and run commands; relative paths begin in that folder.\n\
         Look before you change something. Prefer small edits, and check what you did where a command can tell.\n\
         The user may be asked before a tool runs and may say no: then do not try the same another way, \
         but say what you wanted to do.\n\
         Answer briefly and say plainly what does not work.",
        root.display()
    )
}

/// The value of `prompt.system`: text, or `@` and a file that holds it.
pub fn system(value: &str, root: &Path) -> io::Result<String> {
    match value.strip_prefix('@') {
        Some(path) => fs::read_to_string(root.join(path)),
        None => Ok(value.to_owned()),
    }
}

/// Something gathered from files, and what could not be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gathered<T> {
    pub content: T,
    /// One line each, for the user.
    pub notes: Vec<String>,
}

/// The instructions of a project, from the root of its repository down to the
/// working directory: what is nearer comes later and so has the last word.
/// Without a repository only the working directory counts.
pub fn project_files(root: &Path, names: &[String]) -> Gathered<String> {
    let repository = root.ancestors().position(|folder| folder.join(".git").exists());
    let mut folders: Vec<&Path> = root.ancestors().take(repository.unwrap_or(0) + 1).collect();
    folders.reverse();
    let mut gathered: Gathered<String> = Gathered::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))) {
        // One that is not there is the usual case.
        let Ok(whole) = fs::canonicalize(&path) else { continue };
        if seen.contains(&whole) {
            continue;
        }
        match text_of(&whole, MOST_INSTRUCTIONS) {
            Ok(text) if text.trim().is_empty() => (),
            Ok(text) => {
                let content = &mut gathered.content;
                content.push_str(&format!("# {}\n\n{}\n\n", path.display(), text.trim()));
            }
            Err(why) => gathered.notes.push(format!("{}: {why}", path.display())),
        }
        seen.push(whole);
    }
    gathered.content.truncate(gathered.content.trim_end().len());
    gathered
}

/// The blocks of a prompt: its text as typed, then each file that an `@word` in
/// it names. A word that names none is only a word. The user typed the path, so
/// nobody is asked about it.
pub fn attach(prompt: &str, root: &Path) -> Gathered<Vec<Block>> {
    let mut gathered = Gathered { content: vec![text(prompt.to_owned())], notes: Vec::new() };
    let mut seen: Vec<PathBuf> = Vec::new();
    for named in mentions(prompt) {
        let Some((name, path)) = file_of(named, root) else { continue };
        if seen.contains(&path) {
            continue;
        }
        match block_of(name, &path) {
            Ok(block) => gathered.content.push(block),
            Err(why) => gathered.notes.push(format!("`@{name}` is not attached: {why}")),
        }
        seen.push(path);
    }
    gathered
}

/// Names of files below a folder, as `@` takes them: what the project ignores is
/// left out, and so is all beyond a bound.
pub fn names(root: &Path, most: usize) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root).follow_links(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.take(most).collect();
    names.sort();
    names
}

/// What stands behind an `@` that begins a word.
fn mentions(prompt: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut before = None;
    for (at, c) in prompt.char_indices() {
        let begins = before.is_none_or(|before: char| before.is_whitespace() || matches!(before, '(' | '[' | ','));
        before = Some(c);
        if c != '@' || !begins {
            continue;
        }
        let rest = prompt.get(at + 1..).unwrap_or("");
        let named = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map_or("", |(name, _)| name),
            None => rest.split(char::is_whitespace).next().unwrap_or(""),
        };
        found.push(named);
    }
    found
}

/// The file that a word names. A sentence goes on behind it, so its end may
/// not belong to the name.
fn file_of<'a>(word: &'a str, root: &Path) -> Option<(&'a str, PathBuf)> {
    let is_file = |name: &str| fs::metadata(root.join(name)).is_ok_and(|metadata| metadata.is_file());
    let mut name = word;
    while !name.is_empty() {
        if is_file(name) {
            return Some((name, fs::canonicalize(root.join(name)).ok()?));
        }
        name = name.strip_suffix(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"'])?;
    }
    None
}

fn block_of(name: &str, path: &Path) -> Result<Block, String> {
    if let Some(media_type) = image_type(path) {
        let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
        if size > MOST_IMAGE {
            return Err(format!("an image of {size} bytes; at most {MOST_IMAGE}"));
        }
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        return Ok(Block::Image(Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) }));
    }
    let content = text_of(path, MOST_TEXT)?;
    Ok(text(format!("<file path=\"{name}\">\n{}\n</file>", content.trim_end_matches('\n'))))
}

/// A text file, cut in the middle if it is long.
fn text_of(path: &Path, most: usize) -> Result<String, String> {
    let fail = |error: io::Error| error.to_string();
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err("no plain file".to_owned());
    }
    if metadata.len() > MOST_READ {
        return Err(format!("{} bytes; at most {MOST_READ}", metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(fail)?.take(MOST_READ).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.contains(&0) {
        return Err("a binary file".to_owned());
    }
    let mut kept = Kept::new(most);
    kept.push(&bytes);
    Ok(kept.text())
}

fn text(text: String) -> Block {
    Block::Text(Text { text, ..Text::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn l5_instructions_are_read_from_the_repository_down_to_the_folder() {
        let scratch = Scratch::new("instructions");
        let top = scratch.path();
        let (repository, deep) = (top.join("repo"), top.join("repo/a/b"));
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        fs::write(top.join("AGENTS.md"), "above the repository").unwrap();
        fs::write(repository.join("AGENTS.md"), "the repository's\n").unwrap();
        fs::write(repository.join("a/AGENTS.md"), " \n").unwrap();
        fs::write(deep.join("AGENTS.md"), "the folder's\n").unwrap();
        fs::write(deep.join("MORE.md"), [0]).unwrap();
        let found = project_files(&deep, &words(&["AGENTS.md", "MORE.md"]));
        let headed = |path: &Path, text| format!("# {}\n\n{text}", path.join("AGENTS.md").display());
        let expected = format!("{}\n\n{}", headed(&repository, "the repository's"), headed(&deep, "the folder's"));
        assert_eq!(found.content, expected);
        assert_eq!(found.notes, [format!("{}: a binary file", deep.join("MORE.md").display())]);

        fs::remove_dir(repository.join(".git")).unwrap();
        let alone = project_files(&deep, &words(&["AGENTS.md"]));
        assert_eq!(alone.content, headed(&deep, "the folder's"));
        assert_eq!(project_files(&top.join("repo/a"), &words(&["AGENTS.md"])), Gathered::default());
    }

    #[test]
    fn l5_long_instructions_are_cut_and_say_so() {
        let scratch = Scratch::new("long-instructions");
        fs::write(scratch.path().join("AGENTS.md"), "x".repeat(MOST_INSTRUCTIONS + 10)).unwrap();
        let found = project_files(scratch.path(), &words(&["AGENTS.md"])).content;
        assert!(found.contains("[… 10 bytes left out …]"));
        assert!(found.len() < MOST_INSTRUCTIONS + 500);
    }

    #[test]
    fn l5_files_named_in_a_prompt_come_with_it() {
        let scratch = Scratch::new("attached");
        let root = scratch.path();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(root.join("two words.txt"), "2").unwrap();
        fs::write(root.join("dot.pic.png"), [1, 2, 3]).unwrap();
        fs::write(root.join("blob"), [b'a', 0]).unwrap();
        let file = |name: &str, content: &str| text(format!("<file path=\"{name}\">\n{content}\n</file>"));
        let image = Block::Image(Image { media_type: "image/png".to_owned(), data: "AQID".to_owned() });
        let outside = root.join("src/a.rs").display().to_string();
        #[rustfmt::skip]
        let cases = [
            ("a file",               "see @src/a.rs".to_owned(),       vec![file("src/a.rs", "fn a() {}")]),
            ("in a sentence",        "(@src/a.rs), then?".to_owned(),  vec![file("src/a.rs", "fn a() {}")]),
            ("named twice",          "@src/a.rs @src/a.rs".to_owned(), vec![file("src/a.rs", "fn a() {}")]),
            ("absolute",             format!("@{outside}"),            vec![file(&outside, "fn a() {}")]),
            ("with a space",         "@\"two words.txt\" ok".to_owned(), vec![file("two words.txt", "2")]),
            ("an image",             "what is @dot.pic.png?".to_owned(), vec![image]),
            ("a word",               "ask @alice".to_owned(),          vec![]),
            ("a folder",             "in @src".to_owned(),             vec![]),
            ("an address",           "a@src/a.rs".to_owned(),          vec![]),
            ("nothing",              "@ and @\" and @".to_owned(),     vec![]),
        ];
        for (name, prompt, expected) in cases {
            let attached = attach(&prompt, root);
            let blocks: Vec<Block> = std::iter::once(text(prompt.clone())).chain(expected).collect();
            assert_eq!(attached, Gathered { content: blocks, notes: vec![] }, "{name}");
        }
        let refused = attach("@blob", root);
        assert_eq!(refused.content.len(), 1);
        assert_eq!(refused.notes, ["`@blob` is not attached: a binary file"]);
    }

    #[test]
    fn l5_a_system_prompt_is_text_or_a_file() {
        let scratch = Scratch::new("system");
        fs::write(scratch.path().join("p.md"), "be kind").unwrap();
        assert_eq!(system("be brief", scratch.path()).unwrap(), "be brief");
        assert_eq!(system("@p.md", scratch.path()).unwrap(), "be kind");
        assert!(system("@none.md", scratch.path()).is_err());
        assert!(
            built_in(Path::new("/w"), "2026-01-02")
                .contains("the folder /w on the user's computer. Today is 2026-01-02.")
        );
    }
}
