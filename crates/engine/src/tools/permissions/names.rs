//! Names of tools that rules may be about.

use super::rules::like;

/// Stands between the name of a server and that of its tool.
pub(super) const SERVER_MARK: &str = "__";

/// The built-in tools, those that only read before the others.
const BUILT_IN: [&str; 7] = ["read", "list", "glob", "grep", "edit", "write", "shell"];

/// The tools there can be: the built-in ones and those of the servers.
#[derive(Debug, Default)]
pub struct KnownTools {
    /// What the names of each server's tools begin with.
    prefixes: Vec<String>,
}

/// What every tool of a server is called.
pub fn server_pattern(server: &str) -> String {
    format!("{}*", prefix(server))
}

/// Providers want no digit or dash in front.
fn prefix(server: &str) -> String {
    let begins_oddly = server.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    format!("{}{server}{SERVER_MARK}", if begins_oddly { "_" } else { "" })
}

impl KnownTools {
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> KnownTools {
        KnownTools { prefixes: servers.into_iter().map(prefix).collect() }
    }

    /// Whether the tool of a rule can be one of them; it may have stars.
    pub fn has(&self, tool: &str) -> bool {
        let (literal, has_star) = match tool.split_once('*') {
            Some((literal, _)) => (literal, true),
            None => (tool, false),
        };
        let of_server = |prefix: &String| {
            let names_one = literal.strip_prefix(prefix.as_str()).is_some_and(|name| has_star || !name.is_empty());
            names_one || (has_star && prefix.starts_with(literal))
        };
        BUILT_IN.iter().any(|name| like(tool, name)) || self.prefixes.iter().any(of_server)
    }

    /// All of them, for a message.
    pub fn list(&self) -> String {
        let servers = self.prefixes.iter().map(|prefix| format!("{prefix}TOOL"));
        let names: Vec<String> = BUILT_IN.iter().map(|name| (*name).to_owned()).chain(servers).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_a_rule_is_about_a_tool_that_can_exist() {
        let known = KnownTools::new(["maps", "7up"]);
        for name in ["read", "shell", "*", "re*", "maps__*", "maps__route", "m*", "maps_*", "_7up__list", "*__route"] {
            assert!(known.has(name), "{name}");
        }
        for name in ["raed", "bash", "maps", "maps__", "map__route", "7up__list", "x*", "Read", ""] {
            assert!(!known.has(name), "{name}");
        }
        assert_eq!(known.list(), "read, list, glob, grep, edit, write, shell, maps__TOOL, _7up__TOOL");
        assert_eq!(server_pattern("maps"), "maps__*");
    }

    #[test]
    fn every_built_in_tool_is_known() {
        use crate::tools::{Mode, Permissions, Rules, Toolbox, Workplace};
        let scratch = crate::scratch::Scratch::new("known-tools");
        let work = Workplace::open(scratch.path()).unwrap();
        let tools = Toolbox::standard(&work, Permissions::new(Rules::new(), Mode::Ask));
        let names: Vec<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, BUILT_IN);
    }
}
