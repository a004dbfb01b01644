//! Documents that must match the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Source;

const MOST_ARCHITECTURE_LINES: usize = 150;

/// Families of ids with more than one letter.
const FAMILIES: [&str; 5] = ["BR", "EC", "ERR", "REQ-THINK", "SEED"];

pub(super) fn architecture(root: &Path, out: &mut Vec<String>) {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    if text.is_empty() || text.lines().count() > MOST_ARCHITECTURE_LINES {
        out.push(format!("ARCHITECTURE.md is missing or longer than {MOST_ARCHITECTURE_LINES} lines"));
    }
    for (number, line) in text.lines().enumerate().filter(|(_, line)| sentences(line) > 1) {
        out.push(format!("ARCHITECTURE.md:{}: one sentence a line: {line}", number + 1));
    }
    // Every other piece between backticks is code.
    for path in text.split('`').skip(1).step_by(2) {
        let is_path = path.contains('/') && !path.contains([' ', '<', '*', '{', '$', '(']) && !path.starts_with('/');
        if is_path && !root.join(path).exists() {
            out.push(format!("ARCHITECTURE.md names `{path}`, which does not exist"));
        }
    }
}

/// The README shows the library's first doctest, without its imports and hidden lines.
pub(super) fn library_example(root: &Path, out: &mut Vec<String>) {
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    let library = fs::read_to_string(root.join("crates/core/src/lib.rs")).unwrap_or_default();
    let doctest = library.split("//! ```\n").nth(1).unwrap_or_default();
    let shown = doctest.lines().map(|line| line.trim_start_matches("//!").trim_start_matches(' ').trim_end());
    let shown: Vec<&str> = shown.filter(|line| !line.starts_with("# ") && !line.starts_with("use ")).collect();
    let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let example: Vec<&str> = example.lines().map(str::trim).collect();
    if shown.is_empty() || shown.join("\n").trim() != example.join("\n").trim() {
        out.push("README.md: the example of the library is not the first doctest of crates/core/src/lib.rs".to_owned());
    }
}

fn sentences(line: &str) -> usize {
    let ends = line.match_indices(". ");
    1 + ends.filter(|(at, _)| line.get(at + 2..).is_some_and(|rest| rest.starts_with(char::is_uppercase))).count()
}

/// Every requirement id in a test's name is explained in docs/requirements.md.
pub(super) fn requirements(root: &Path, sources: &[Source], out: &mut Vec<String>) {
    let text = fs::read_to_string(root.join("docs/requirements.md")).unwrap_or_default();
    let listed: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()).collect();
    for source in sources {
        for id in source.text.lines().filter_map(requirement_id).filter(|id| !listed.contains(id.as_str())) {
            out.push(format!("{}: the requirement {id} is not in docs/requirements.md", source.name));
        }
    }
}

/// `D7` of `fn d7_a_tag_split_over_two_chunks_is_found()`, or `BR-001` of `fn br_001_…`.
fn requirement_id(line: &str) -> Option<String> {
    let name = line.trim_start().trim_start_matches("async ").strip_prefix("fn ")?;
    let in_family = FAMILIES.iter().find_map(|family| {
        let rest = name.strip_prefix(&family.to_lowercase().replace('-', "_"))?.strip_prefix('_')?;
        Some((family, rest.split('_').next()?))
    });
    if let Some((family, number)) = in_family.filter(|(_, number)| is_number(number)) {
        return Some(format!("{family}-{number}"));
    }
    let (id, _) = name.split_once('_')?;
    let (letter, number) = id.split_at_checked(1)?;
    let is_id = letter.chars().all(|letter| letter.is_ascii_lowercase()) && is_number(number);
    is_id.then(|| id.to_uppercase())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit())
}
