//! What each crate may depend on.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Source;

/// The crates of aside that a crate may depend on, where that is limited.
const ALLOWED: [(&str, &[&str]); 4] = [
    ("aside-front", &["aside-core"]),
    ("aside-markdown", &[]),
    ("aside-tui", &["aside-core", "aside-front", "aside-markdown"]),
    ("aside-acp", &["aside-core", "aside-front"]),
];

/// What a session must not depend on: it parses no arguments and shows nothing.
const NOT_IN_SESSION: [&str; 3] = ["aside-tui", "clap", "crossterm"];

/// The binary is arguments and wiring; these are the business of other crates.
const NOT_IN_BINARY: [&str; 4] = ["rusqlite", "reqwest", "hyper", "tokio::net"];

/// A session prints nothing, and its working directory is an option.
const NOT_IN_SESSION_CODE: [&str; 4] = ["env::current_dir", "io::stdin", "io::stdout", "io::stderr"];

const MOST_EXAMPLE_LINES: usize = 150;

/// The waterline: core may depend only on the crates in a short list.
pub(super) fn core(root: &Path, out: &mut Vec<String>) {
    let listed = fs::read_to_string(root.join("crates/core/dependencies.txt")).unwrap_or_default();
    let names = tree(root, "aside-core", &[]);
    let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    if names != listed {
        out.push(format!("crates/core/dependencies.txt lists {listed:?}, cargo tree says {names:?}"));
    }
}

pub(super) fn between_crates(root: &Path, out: &mut Vec<String>) {
    for (package, allowed) in ALLOWED {
        let direct = tree(root, package, &["--depth", "1"]);
        let ours: Vec<&String> = direct.iter().filter(|name| name.starts_with("aside-") && *name != package).collect();
        if ours != allowed {
            out.push(format!("{package} may depend on {allowed:?} of our crates, not on {ours:?}"));
        }
    }
    let session = tree(root, "aside-session", &[]);
    for name in session.iter().filter(|name| NOT_IN_SESSION.contains(&name.as_str())) {
        out.push(format!("aside-session depends on {name}"));
    }
}

/// Names that the code of a crate must not use.
pub(super) fn names(sources: &[Source], out: &mut Vec<String>) {
    let rules: [(&str, &[&str], &str); 2] = [
        ("crates/cli/src/", &NOT_IN_BINARY, "the binary is arguments and wiring"),
        ("crates/session/src/", &NOT_IN_SESSION_CODE, "front ends print, and the working directory is an option"),
    ];
    for (folder, names, why) in rules {
        for source in sources.iter().filter(|source| source.name.starts_with(folder)) {
            for name in names.iter().filter(|name| source.code().contains(**name)) {
                out.push(format!("{} uses {name}; {why}", source.name));
            }
        }
    }
}

/// The example shows how little a front end needs.
pub(super) fn example(sources: &[Source], out: &mut Vec<String>) {
    let name = "crates/session/examples/line_front_end.rs";
    let lines = sources.iter().find(|source| source.name == name).map_or(0, |source| source.text.lines().count());
    if lines == 0 || lines > MOST_EXAMPLE_LINES {
        out.push(format!("{name} is missing or longer than {MOST_EXAMPLE_LINES} lines"));
    }
}

/// The normal dependencies of a package, sorted.
fn tree(root: &Path, package: &str, more: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--offline", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(more)
        .current_dir(root)
        .output();
    let text = tree.map(|tree| String::from_utf8_lossy(&tree.stdout).into_owned()).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}
