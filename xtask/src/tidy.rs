//! Project rules that the compiler cannot check. They run with the tests.

mod dependencies;
mod documents;
mod names;

use std::fs;
use std::path::{Path, PathBuf};

const MOST_CODE_LINES: usize = 700;
const MOST_LINES: usize = 1200;
pub(crate) fn problems() -> Vec<String> {
    let root = root();
    let mut out = Vec::new();
    let sources = rust_files(&root);
    assert!(!sources.is_empty(), "no source files below {}", root.display());
    let sources: Vec<Source> = sources.iter().map(|path| Source::read(&root, path)).collect();
    for source in &sources {
        length(source, &mut out);
        names::public_names(source, &mut out);
        names::file_name(source, &mut out);
        names::phrases(source, &mut out);
        names::provider_names(&root, source, &mut out);
    }
    names::type_names(&sources, &mut out);
    listed_dialects(&root, &mut out);
    documents::architecture(&root, &mut out);
    documents::library_example(&root, &mut out);
    documents::requirements(&root, &sources, &mut out);
    forgotten_tests(&root, &mut out);
    dependencies::core(&root, &mut out);
    dependencies::between_crates(&root, &mut out);
    dependencies::names(&sources, &mut out);
    dependencies::example(&sources, &mut out);
    out
}

/// A Rust file of the project.
struct Source {
    /// Its path below the root.
    name: String,
    text: String,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Source {
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        Source { name, text: fs::read_to_string(path).unwrap_or_default() }
    }

    /// The part before the unit tests.
    fn code(&self) -> &str {
        self.text.split("#[cfg(test)]").next().unwrap_or(&self.text)
    }
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

fn length(source: &Source, out: &mut Vec<String>) {
    let (all, code) = (source.text.lines().count(), source.code().lines().count());
    if code > MOST_CODE_LINES || all > MOST_LINES {
        out.push(format!("{} has {code} lines of code, {all} in all; split it", source.name));
    }
}

fn listed_dialects(root: &Path, out: &mut Vec<String>) {
    let list = fs::read_to_string(root.join("crates/core/src/dialect/builtin.rs")).unwrap_or_default();
    for path in
        entries(&root.join("dialects")).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
    {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        if !list.contains(&format!("\"{stem}\"")) {
            out.push(format!("dialects/{stem}.toml is not compiled in; name it in crates/core/src/dialect/builtin.rs"));
        }
    }
}

/// A test file without a `mod` line never runs.
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let problems = super::problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
