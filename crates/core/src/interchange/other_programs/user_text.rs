//! Finds what the user said. Programs put their own text into the user's
//! messages: environment descriptions, instruction files, reminders, hooks.

/// The text without what a program put in front of it. None if nothing is left.
pub(super) fn user_text(text: &str) -> Option<&str> {
    let mut rest = text.trim();
    if let Some(request) = after_heading(rest) {
        rest = request.trim();
    }
    while let Some(after) = after_program_text(rest) {
        rest = after.trim();
    }
    Some(rest).filter(|rest| !rest.is_empty())
}

/// An editor's context ends with a heading, and the request follows.
fn after_heading(text: &str) -> Option<&str> {
    if !text.starts_with("# Context from my IDE") {
        return None;
    }
    let at = text.find("\n## My request")?;
    let heading = text.get(at + 1..)?;
    Some(heading.split_once('\n').map_or("", |(_, after)| after))
}

/// What follows the program's text at the beginning. None if there is none.
fn after_program_text(text: &str) -> Option<&str> {
    if let Some(after) = after_element(text) {
        return Some(after);
    }
    let line = text.lines().next().unwrap_or_default();
    // An instruction file is a heading and an element, or a heading and text.
    if is_instruction_heading(line) {
        let below = text.get(line.len()..).unwrap_or_default().trim_start();
        return Some(after_element(below).unwrap_or_default());
    }
    let bracketed = line.starts_with('[') && line.ends_with(']') && !line.contains("](");
    if bracketed || is_hook(line) {
        return text.get(line.len()..);
    }
    let openings = ["Caveat: The messages below were generated", "This session is being continued from a previous"];
    openings.iter().any(|opening| text.starts_with(opening)).then_some("")
}

/// What follows an element such as `<system-reminder>…</system-reminder>`. An
/// element that is not closed takes up the whole text.
fn after_element(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let name = inside.get(..inside.find(|c: char| !is_name(c))?)?;
    let is_element = name.starts_with(|c: char| c.is_ascii_alphabetic());
    // `<https://…>` and `<a@b.c>` are links, and `<T>` may be part of a question about code.
    if !is_element || name.len() < 3 || name.contains(':') || !tag_ends(inside.get(name.len()..)?) {
        return None;
    }
    let close = format!("</{name}>");
    match inside.find(&close) {
        Some(at) => inside.get(at + close.len()..),
        None if name.contains(['-', '_']) => Some(""),
        None => None,
    }
}

/// Whether the rest of a tag is `>`, or attributes and `>`, on the same line.
fn tag_ends(rest: &str) -> bool {
    let line = rest.lines().next().unwrap_or_default();
    line.starts_with('>') || (line.starts_with(' ') && line.contains('>'))
}

/// `# AGENTS.md instructions for /folder` and the like.
fn is_instruction_heading(line: &str) -> bool {
    let heading = line.trim_start_matches('#');
    let word = heading.split_whitespace().next().unwrap_or_default();
    heading.len() < line.len() && word.strip_suffix(".md").is_some_and(|stem| stem.chars().all(|c| !c.is_lowercase()))
}

/// `Stop hook feedback:`, `SessionStart:startup hook success: …` and the like.
fn is_hook(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let event = words.next().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    let outcomes = ["feedback", "success", "additional", "blocked", "blocking", "error", "stopped", "cancelled"];
    let outcome = |word: &str| outcomes.contains(&word.trim_end_matches(':'));
    event && words.next() == Some("hook") && words.next().is_some_and(outcome)
}

#[cfg(test)]
mod tests {
    use super::user_text;

    #[test]
    fn p11_what_a_program_put_in_front_is_not_what_the_user_said() {
        #[rustfmt::skip]
        let cases = [
            ("a question",        "Fix the build.",                                               Some("Fix the build.")),
            ("environment",       "<environment_info>\n<os>linux</os>\n</environment_info>",      None),
            ("environment first", "<environment_context>\n</environment_context>\n\nFix it.",      Some("Fix it.")),
            ("two reminders",     "<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\nHello", Some("Hello")),
            ("not closed",        "<local-command-caveat>",                                       None),
            ("command tags",      "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>", None),
            ("attributes",        "<file name=\"a.rs\">\nx\n</file>\nWhat is this?",              Some("What is this?")),
            ("instructions",      "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", None),
            ("instructions only", "# CLAUDE.md\nAlways test.",                                    None),
            ("a heading",         "# Plan\nDo it.",                                               Some("# Plan\nDo it.")),
            ("a readme",          "# readme.md is wrong",                                         Some("# readme.md is wrong")),
            ("caveat",            "Caveat: The messages below were generated by the user while running local commands.", None),
            ("hook",              "Stop hook feedback:\n- [check]: tests fail",                   Some("- [check]: tests fail")),
            ("hook and command",  "SessionStart:startup hook success: ready",                     None),
            ("about hooks",       "My hook fails",                                                Some("My hook fails")),
            ("interrupted",       "[Request interrupted by user]",                                None),
            ("a link",            "<https://example.org> is down",                                Some("<https://example.org> is down")),
            ("code",              "<T> is not found",                                             Some("<T> is not found")),
            ("an open tag",       "<div> is not closed, why?",                                    Some("<div> is not closed, why?")),
            ("an editor",         "# Context from my IDE setup:\n\n## Active file: a.rs\n\n## My request for Codex:\nRename it.", Some("Rename it.")),
            ("nothing",           "  \n",                                                          None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(user_text(text), expected, "{name}");
        }
    }
}
