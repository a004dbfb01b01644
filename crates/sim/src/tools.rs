//! Chooses which tool to call: one that only reads, if there is one.

use aside_core::conversation::ToolSpec;
use aside_core::parameters::ToolChoice;
use serde_json::Value;

/// Words in the names of harmless tools, the preferred ones first: those that only read,
/// then those that run a command, which will be `ls`.
const HARMLESS: [&str; 7] = ["list", "ls", "glob", "read", "shell", "bash", "exec"];

/// The tool to call; None if the client offers or allows none.
pub(crate) fn choose<'a>(tools: &'a [ToolSpec], choice: &ToolChoice) -> Option<&'a ToolSpec> {
    match choice {
        ToolChoice::Never => None,
        ToolChoice::Named(name) => tools.iter().find(|tool| tool.name == *name),
        ToolChoice::Allowed { names, .. } => tools.iter().find(|tool| names.contains(&tool.name)),
        ToolChoice::Auto | ToolChoice::Required => {
            let reads = |word: &str| tools.iter().find(|tool| has_word(&tool.name, word));
            HARMLESS.iter().find_map(|word| reads(word)).or(tools.first())
        }
    }
}

/// `list`, `list_files`, `listFiles` and `fs.list` all contain the word `list`.
fn has_word(name: &str, word: &str) -> bool {
    words_of(name).iter().any(|part| part == word)
}

/// The words of a name in camel or snake case, in lower case.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut plain = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_lower {
            plain.push(' ');
        }
        was_lower = letter.is_lowercase();
        plain.extend(letter.to_lowercase());
    }
    plain.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The arguments in a canonical form, however the client formatted them.
pub(crate) fn canonical(arguments: &str) -> String {
    serde_json::from_str::<Value>(arguments).map_or_else(|_| arguments.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> ToolSpec {
        ToolSpec::new(name.to_owned(), String::new(), parameters.to_owned())
    }

    #[test]
    fn x2_a_tool_that_only_reads_is_called() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], ToolChoice, Option<&str>)] = &[
            ("list before read",  &["delete", "read_file", "listFiles"], ToolChoice::Auto,                  Some("listFiles")),
            ("glob before read",  &["ReadFile", "glob"],                 ToolChoice::Required,                   Some("glob")),
            ("not by a syllable", &["playlist", "thread", "read"],       ToolChoice::Auto,                  Some("read")),
            ("else a shell",      &["weather", "exec_command"],           ToolChoice::Auto,                  Some("exec_command")),
            ("else the first",    &["weather", "stocks"],                ToolChoice::Auto,                  Some("weather")),
            ("the one named",     &["list", "weather"],                  ToolChoice::Named("weather".into()), Some("weather")),
            ("none allowed",      &["list"],                             ToolChoice::Never,                 None),
            ("none offered",      &[],                                   ToolChoice::Required,                   None),
        ];
        for (name, offered, choice, called) in cases {
            let tools: Vec<ToolSpec> = offered.iter().map(|name| tool(name, "{}")).collect();
            assert_eq!(choose(&tools, choice).map(|tool| tool.name.as_str()), *called, "{name}");
        }
    }
}
