//! Tool names that every provider accepts: letters, digits, `_` and `-`, at most 64 characters, not beginning
//! with a digit or a dash.

use std::collections::HashSet;

const MAX_LENGTH: usize = 64;

/// The names in use.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    given: HashSet<String>,
    seen: HashSet<(String, String)>,
}

impl ToolNames {
    /// The name under which a tool is offered; `None` if it was already offered.
    pub(crate) fn assign(&mut self, server: &str, tool: &str) -> Option<String> {
        if !self.seen.insert((server.to_owned(), tool.to_owned())) {
            return None;
        }
        let whole: String = format!("{server}__{tool}").chars().map(replace_invalid).collect();
        let whole = match whole.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            true => format!("_{whole}"),
            false => whole,
        };
        let name = match whole.len() <= MAX_LENGTH && !self.given.contains(&whole) {
            true => whole,
            false => shortened_with_hash(&whole, server, tool),
        };
        self.given.insert(name.clone()).then_some(name)
    }
}

fn replace_invalid(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }
}

/// Shortens a name and appends a hash. The hash is stable across runs, because permission rules refer to
/// tools by name.
fn shortened_with_hash(whole: &str, server: &str, tool: &str) -> String {
    // FNV-1a: short, and the same on every machine.
    let bytes = server.bytes().chain([0]).chain(tool.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let hash = format!("_{hash:08x}");
    let truncate: String = whole.chars().take(MAX_LENGTH - hash.len()).collect();
    truncate + &hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_every_name_is_one_that_all_providers_accept_and_no_two_are_the_same() {
        let long = "x".repeat(80);
        let cases = [
            ("files", "read_file", Some("files__read_file")),
            ("files", "read.file", Some("files__read_file_fb990918")),
            ("files", "read_file", None),
            ("my files", "größe", Some("my_files__gr__e")),
            ("7up", "list", Some("_7up__list")),
            ("-", "list", Some("_-__list")),
            ("a", "b__c", Some("a__b__c")),
            ("a__b", "c", Some("a__b__c_fcc668d9")),
            ("files", long.as_str(), Some("files__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_637efc30")),
        ];
        let mut names = ToolNames::default();
        let mut given = HashSet::new();
        for (server, tool, expected) in cases {
            let name = names.assign(server, tool);
            assert_eq!(name.is_some(), expected.is_some(), "{server} {tool}");
            let (Some(name), Some(expected)) = (name, expected) else { continue };
            assert_eq!(name, expected, "{server} {tool}");
            let fits = name.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one));
            assert!(fits && (1..=64).contains(&name.len()), "{name}");
            assert!(name.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_'), "{name}");
            assert!(given.insert(name.clone()), "{name} twice");
        }
    }
    #[test]
    fn l3_trusting_a_server_covers_all_its_tools() {
        let long = "x".repeat(80);
        let mut names = ToolNames::default();
        for server in ["files", "7up", "-", "a-very-long-name-of-thirty-2-long"] {
            let pattern = aside_engine::tools::server_pattern(server);
            let prefix = pattern.strip_suffix('*').unwrap();
            for tool in ["list", "größe", "__", long.as_str()] {
                let name = names.assign(server, tool).unwrap();
                assert!(name.starts_with(prefix), "{name} is not {pattern}");
            }
        }
    }
}
