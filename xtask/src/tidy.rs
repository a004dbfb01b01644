//! Rules of the house that a compiler does not know. They run with the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MOST_CODE_LINES: usize = 700;
const MOST_LINES: usize = 1200;
const MOST_ARCHITECTURE_LINES: usize = 250;

/// Words that never name a public thing of ours; see ARCHITECTURE.md for ours.
const BANNED: [&str; 5] = ["reasoning", "cot", "accumulator", "manager", "thought_signature"];

/// Files of `dialects/` that hold what dialects choose from.
const NO_DIALECTS: [&str; 3] = ["tags", "matrix", "errors"];

/// Provider ids that are also the name of a protocol or a value in the data.
const SHARED_IDS: [&str; 8] =
    ["anthropic", "gemini", "ollama", "bedrock", "cohere", "openai-chat", "openrouter", "litellm"];

pub(crate) fn problems() -> Vec<String> {
    let root = root();
    let mut out = Vec::new();
    let sources = rust_files(&root);
    assert!(!sources.is_empty(), "no source files below {}", root.display());
    for path in &sources {
        let text = fs::read_to_string(path).unwrap_or_default();
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        length(&name, &text, &mut out);
        public_names(&name, &text, &mut out);
        provider_names(&root, &name, &text, &mut out);
    }
    listed_dialects(&root, &mut out);
    architecture(&root, &mut out);
    forgotten_tests(&root, &mut out);
    core_dependencies(&root, &mut out);
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

fn rust_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("xtask"), root.join("fuzz")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

/// The part of a file before its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn length(name: &str, text: &str, out: &mut Vec<String>) {
    let (all, code) = (text.lines().count(), code(text).lines().count());
    if code > MOST_CODE_LINES || all > MOST_LINES {
        out.push(format!("{name} has {code} lines of code, {all} in all; it wants to be two files"));
    }
}

fn public_names(name: &str, text: &str, out: &mut Vec<String>) {
    for line in code(text).lines() {
        let mut words = line.trim_start().split([' ', '(', '<', '{', ':', ';']);
        if words.next() != Some("pub") {
            continue;
        }
        let Some("fn" | "struct" | "enum" | "mod" | "trait" | "type" | "const") = words.next() else { continue };
        let item = words.next().unwrap_or("").to_lowercase();
        for banned in BANNED.iter().filter(|banned| item.split('_').any(|word| word == **banned) || item == **banned) {
            out.push(format!("{name}: the public name `{item}` uses `{banned}`"));
        }
    }
}

/// Rules are data: code does not know who makes what.
fn provider_names(root: &Path, name: &str, text: &str, out: &mut Vec<String>) {
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
        if code(text).lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&quoted)) {
            out.push(format!("{name}: the provider {quoted} is named in code; rules are data"));
        }
    }
}

fn listed_dialects(root: &Path, out: &mut Vec<String>) {
    let list = fs::read_to_string(root.join("crates/core/src/dialect/builtin.rs")).unwrap_or_default();
    for path in entries(&root.join("dialects")) {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        if !list.contains(&format!("\"{stem}\"")) {
            out.push(format!("dialects/{stem}.toml is not compiled in; name it in crates/core/src/dialect/builtin.rs"));
        }
    }
}

fn architecture(root: &Path, out: &mut Vec<String>) {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    if text.is_empty() || text.lines().count() > MOST_ARCHITECTURE_LINES {
        out.push(format!("ARCHITECTURE.md is missing or longer than {MOST_ARCHITECTURE_LINES} lines"));
    }
    // Every other piece between backticks is code.
    for path in text.split('`').skip(1).step_by(2) {
        let is_path = path.contains('/') && !path.contains([' ', '<', '*', '{', '$', '(']) && !path.starts_with('/');
        if is_path && !root.join(path).exists() {
            out.push(format!("ARCHITECTURE.md names `{path}`, which does not exist"));
        }
    }
}

/// A test file that no `mod` line names never runs.
fn forgotten_tests(root: &Path, out: &mut Vec<String>) {
    for folder in entries(&root.join("crates")).into_iter().map(|path| path.join("tests/it")) {
        let main = fs::read_to_string(folder.join("main.rs")).unwrap_or_default();
        for path in entries(&folder) {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
            if stem != "main" && !main.contains(&format!("mod {stem};")) {
                out.push(format!("{} is not named in its main.rs and never runs", path.display()));
            }
        }
    }
}

/// The waterline: what core may stand on is a short list, changed on purpose.
fn core_dependencies(root: &Path, out: &mut Vec<String>) {
    let listed = fs::read_to_string(root.join("crates/core/dependencies.txt")).unwrap_or_default();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--package",
            "aside-core",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(root)
        .output();
    let Ok(tree) = tree else {
        out.push("cargo tree did not run".to_owned());
        return;
    };
    let text = String::from_utf8_lossy(&tree.stdout).into_owned();
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    if names != listed {
        out.push(format!("crates/core/dependencies.txt lists {listed:?}, cargo tree says {names:?}"));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let problems = super::problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
