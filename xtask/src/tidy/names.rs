//! Names: public items, types, files, providers; and phrases in comments and messages.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Source, entries};

/// Words that never name a public item; see the table in ARCHITECTURE.md for ours.
const BANNED: [&str; 5] = ["reasoning", "cot", "accumulator", "manager", "thought_signature"];

/// Metaphors that once named files and types. STYLE.md says which words to use instead.
const METAPHORS: [&str; 24] = [
    "beat",
    "beats",
    "court",
    "cure",
    "cures",
    "desk",
    "answer_mode",
    "heard",
    "hurry",
    "keeper",
    "lamp",
    "mend",
    "pages",
    "pile",
    "place",
    "said",
    "shelf",
    "slot",
    "stage",
    "tally",
    "teller",
    "told",
    "wish",
    "wishes",
];

/// Phrases that no native speaker would write in a comment or a message.
const PHRASES: [&str; 12] = [
    "at a desk",
    "beside the",
    "goes in circles",
    " go on ",
    "is no ",
    "is said to",
    "nobody",
    "say -m",
    "stays home",
    "what another made",
    "whoever",
    "whom",
];

/// Usual phrases that contain one of `PHRASES`.
const USUAL_PHRASES: [&str; 3] = ["there is no ", "There is no ", "is no longer "];

/// Files in `dialects/` that are not dialects.
const NO_DIALECTS: [&str; 5] = ["tags", "matrix", "errors", "models", "sentinels"];

/// Provider ids that are also the name of a protocol, a program, a key or a value in the data.
const SHARED_IDS: [&str; 10] =
    ["anthropic", "gemini", "ollama", "bedrock", "cohere", "openai-chat", "openrouter", "litellm", "codex", "meta"];

/// A type name may be defined this often in the workspace.
const MOST_DEFINITIONS: usize = 2;

/// Every command has its `Arguments`; clap's derive wants one struct each.
const REPEATED: [&str; 1] = ["Arguments"];

pub(super) fn public_names(source: &Source, out: &mut Vec<String>) {
    for line in source.code().lines() {
        let mut words = line.trim_start().split([' ', '(', '<', '{', ':', ';']);
        if words.next() != Some("pub") {
            continue;
        }
        let Some("fn" | "struct" | "enum" | "mod" | "trait" | "type" | "const") = words.next() else { continue };
        let item = words.next().unwrap_or("").to_lowercase();
        for banned in BANNED.iter().filter(|banned| item.split('_').any(|word| word == **banned) || item == **banned) {
            out.push(format!("{}: the public name `{item}` uses `{banned}`", source.name));
        }
    }
}

pub(super) fn file_name(source: &Source, out: &mut Vec<String>) {
    let stem = Path::new(&source.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    if let Some(word) = METAPHORS.iter().find(|word| stem.split('_').any(|part| part == **word)) {
        out.push(format!("{}: a file name says what the file does, and `{word}` does not", source.name));
    }
}

pub(super) fn phrases(source: &Source, out: &mut Vec<String>) {
    if source.name.starts_with("xtask") {
        return;
    }
    let comments = source.text.lines().enumerate().filter_map(|(at, line)| Some((at, line.split_once("//")?.1)));
    let is_shipped = source.name.contains("/src/") && !source.name.ends_with("tests.rs");
    let code = source.code().lines().enumerate().filter(|_| is_shipped);
    let messages = code.flat_map(|(at, line)| messages(line).map(move |message| (at, message)));
    for (at, text) in comments.chain(messages) {
        let text = USUAL_PHRASES.iter().fold(text.to_owned(), |text, usual| text.replace(usual, ""));
        for phrase in PHRASES.iter().filter(|phrase| text.contains(**phrase)) {
            out.push(format!("{}:{}: write plain English instead of `{phrase}`", source.name, at + 1));
        }
    }
}

/// The string literals of a line. A single word is data, not a message.
fn messages(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|literal| literal.contains(' '))
}

/// The same name must not mean three different things.
pub(super) fn type_names(sources: &[Source], out: &mut Vec<String>) {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.name.contains("/src/") && !source.name.starts_with("xtask")) {
        for name in source.code().lines().filter_map(defined_type) {
            found.entry(name).or_default().push(&source.name);
        }
    }
    for (name, files) in found {
        if files.len() > MOST_DEFINITIONS && !REPEATED.contains(&name) {
            out.push(format!("the type name `{name}` is defined {} times: {}", files.len(), files.join(", ")));
        }
        if let Some(word) = METAPHORS.iter().find(|word| words(name).any(|part| part == **word)) {
            out.push(format!("{}: the type name `{name}` uses `{word}`", files.join(", ")));
        }
    }
}

fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let rest = ["struct ", "enum ", "trait "].iter().find_map(|keyword| line.strip_prefix(keyword))?;
    let name = rest.split(|letter: char| !letter.is_alphanumeric()).next()?;
    (!name.is_empty()).then_some(name)
}

/// The words of a name in camel case, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            Some(_) | None => words.push(letter.to_lowercase().collect()),
        }
    }
    words.into_iter()
}

/// Rules are data: no provider is named in code.
pub(super) fn provider_names(root: &Path, source: &Source, out: &mut Vec<String>) {
    let name = &source.name;
    if !name.contains("/src/")
        || name.starts_with("xtask")
        || name.ends_with("tests.rs")
        || name.ends_with("builtin.rs")
    {
        return;
    }
    let ids = entries(&root.join("dialects"));
    let ids = ids.iter().filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()));
    for id in ids.filter(|id| !SHARED_IDS.contains(id) && !NO_DIALECTS.contains(id) && *id != "generic") {
        let quoted = format!("\"{id}\"");
        if source.code().lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&quoted)) {
            out.push(format!("{name}: the provider {quoted} is named in code; rules are data"));
        }
    }
}
