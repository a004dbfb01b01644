//! Names that every provider accepts: letters, digits, `_` and `-`, at most 64,
//! and no digit or dash in front.

use std::collections::HashSet;

const MOST: usize = 64;

/// The names given so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    given: HashSet<String>,
    seen: HashSet<(String, String)>,
}

impl Names {
    /// The name a tool is offered under; none for one that was offered before.
    pub(crate) fn offer(&mut self, server: &str, tool: &str) -> Option<String> {
        if !self.seen.insert((server.to_owned(), tool.to_owned())) {
            return None;
        }
        let whole: String = format!("{server}__{tool}").chars().map(plain).collect();
        let whole = match whole.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            true => format!("_{whole}"),
            false => whole,
        };
        let name = match whole.len() <= MOST && !self.given.contains(&whole) {
            true => whole,
            false => marked(&whole, server, tool),
        };
        self.given.insert(name.clone()).then_some(name)
    }
}

fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }
}

/// The beginning, and a mark of what it was. The mark is the same in every run,
/// since rules of permission name tools by it.
fn marked(whole: &str, server: &str, tool: &str) -> String {
    // FNV-1a: a few lines, and the same on every machine.
    let bytes = server.bytes().chain([0]).chain(tool.bytes());
    let mark = bytes.fold(0x811c_9dc5_u32, |mark, byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mark = format!("_{mark:08x}");
    let beginning: String = whole.chars().take(MOST - mark.len()).collect();
    beginning + &mark
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
        let mut names = Names::default();
        let mut given = HashSet::new();
        for (server, tool, expected) in cases {
            let name = names.offer(server, tool);
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
    fn l3_every_tool_of_a_server_is_covered_by_what_trust_in_it_covers() {
        let long = "x".repeat(80);
        let mut names = Names::default();
        for server in ["files", "7up", "-", "a-very-long-name-of-thirty-2-long"] {
            let pattern = aside_engine::tools::server_pattern(server);
            let prefix = pattern.strip_suffix('*').unwrap();
            for tool in ["list", "größe", "__", long.as_str()] {
                let name = names.offer(server, tool).unwrap();
                assert!(name.starts_with(prefix), "{name} is not {pattern}");
            }
        }
    }
}
