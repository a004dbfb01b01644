//! The names of tools that rules can refer to.

use super::rules::matches_pattern;

/// Separates the name of a server from the name of its tool.
pub(super) const SERVER_SEPARATOR: &str = "__";

/// The built-in tools, with those that only read first.
const BUILT_IN: [&str; 7] = ["read", "list", "glob", "grep", "edit", "write", "shell"];

/// All tools that can exist: the built-in ones and those of the configured servers.
#[derive(Debug, Default)]
pub struct KnownTools {
    /// The prefix of each server's tool names.
    prefixes: Vec<String>,
}

/// The pattern that matches every tool of a server.
pub fn server_pattern(server: &str) -> String {
    format!("{}*", prefix(server))
}

/// Some providers reject names that begin with a digit or a dash.
fn prefix(server: &str) -> String {
    let needs_underscore = server.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    format!("{}{server}{SERVER_SEPARATOR}", if needs_underscore { "_" } else { "" })
}

impl KnownTools {
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> KnownTools {
        KnownTools { prefixes: servers.into_iter().map(prefix).collect() }
    }

    /// Whether a rule's tool can exist. It may contain stars.
    pub fn has(&self, tool: &str) -> bool {
        let (literal, has_star) = match tool.split_once('*') {
            Some((literal, _)) => (literal, true),
            None => (tool, false),
        };
        let of_server = |prefix: &String| {
            let names_one = literal.strip_prefix(prefix.as_str()).is_some_and(|name| has_star || !name.is_empty());
            names_one || (has_star && prefix.starts_with(literal))
        };
        BUILT_IN.iter().any(|name| matches_pattern(tool, name)) || self.prefixes.iter().any(of_server)
    }

    /// Whether a rule's tool can be one of a server that is not configured, such as one that an editor provides.
    pub fn may_be_of_a_server(tool: &str) -> bool {
        tool.split_once(SERVER_SEPARATOR).is_some_and(|(server, name)| !server.is_empty() && !name.is_empty())
    }

    /// All of them, for an error message.
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
    fn l3_a_rule_can_only_name_tools_that_can_exist() {
        let known = KnownTools::new(["maps", "7up"]);
        for name in ["read", "shell", "*", "re*", "maps__*", "maps__route", "m*", "maps_*", "_7up__list", "*__route"] {
            assert!(known.has(name), "{name}");
        }
        for name in ["raed", "bash", "maps", "maps__", "map__route", "7up__list", "x*", "Read", ""] {
            assert!(!known.has(name), "{name}");
        }
        assert_eq!(known.list(), "read, list, glob, grep, edit, write, shell, maps__TOOL, _7up__TOOL");
        assert_eq!(server_pattern("maps"), "maps__*");
        for (name, may_be) in
            [("map__route", true), ("map__*", true), ("raed", false), ("maps__", false), ("__x", false)]
        {
            assert_eq!(KnownTools::may_be_of_a_server(name), may_be, "{name}");
        }
    }

    #[test]
    fn every_built_in_tool_is_known() {
        use crate::tools::{PermissionMode, PermissionRules, Permissions, Toolbox, WorkingDir};
        let test_dir = crate::test_dir::TestDir::new("known-tools");
        let work = WorkingDir::open(test_dir.path()).unwrap();
        let tools = Toolbox::standard(&work, Permissions::new(PermissionRules::new(), PermissionMode::Ask));
        let names: Vec<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, BUILT_IN);
    }
}
