//! How tool calls are shown in an editor.

use std::path::{Path, PathBuf};

use aside_core::block::{Arguments, ToolCall, ToolResult};
use serde_json::Value;

use crate::session_update::{Content, Location, ToolCallFields, ToolContent, ToolKind, ToolStatus};

/// The longest title, in characters.
const MAX_TITLE: usize = 200;

pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "edit" | "write" => ToolKind::Edit,
        "list" | "glob" | "grep" => ToolKind::Search,
        "shell" => ToolKind::Execute,
        _ => ToolKind::Other,
    }
}

/// A call whose arguments are complete.
pub(crate) fn with_arguments(tool_call_id: String, call: &ToolCall, folder: &Path) -> ToolCallFields {
    let raw_input = match &call.arguments {
        Arguments::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Arguments::Broken(text) => Value::String(text.clone()),
    };
    let path = raw_input.get("path").and_then(Value::as_str);
    ToolCallFields {
        tool_call_id,
        title: Some(title(&call.name, &raw_input)),
        kind: Some(kind(&call.name)),
        locations: path.map(|path| location(folder, path)).into_iter().collect(),
        raw_input: Some(raw_input),
        ..ToolCallFields::default()
    }
}

/// The tool and what it works on, on one line.
fn title(tool: &str, arguments: &Value) -> String {
    let members = ["command", "path", "pattern", "query", "url"];
    let subject = members.iter().find_map(|member| arguments.get(member).and_then(Value::as_str));
    let words = subject.unwrap_or_default().split_whitespace();
    let title = std::iter::once(tool).chain(words).collect::<Vec<_>>().join(" ");
    match title.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or(&title)),
        None => title,
    }
}

pub(crate) fn location(folder: &Path, path: &str) -> Location {
    Location { path: folder.join(path).display().to_string() }
}

/// The end of a call. The diff of a changed file is read from the result, so that a stored call looks
/// the same as one that just ended.
pub(crate) fn ended(
    tool_call_id: String,
    call: Option<&ToolCall>,
    result: &ToolResult,
    folder: &Path,
) -> ToolCallFields {
    let mut content = match call.filter(|_| !result.is_error && kind(&result.name) == ToolKind::Edit) {
        Some(call) => diffs(call, &result.content, folder),
        None => Vec::new(),
    };
    if content.is_empty() && !result.content.is_empty() {
        content.push(ToolContent::text(&*result.content));
    }
    content.extend(result.media.iter().map(|media| ToolContent::Content { content: media_content(media) }));
    ToolCallFields {
        tool_call_id,
        status: Some(if result.is_error { ToolStatus::Failed } else { ToolStatus::Completed }),
        raw_output: Some(Value::String(result.content.clone())),
        content,
        ..ToolCallFields::default()
    }
}

/// An image or a document, or a line about it if the protocol has no form for it.
pub(crate) fn media_content(media: &aside_core::block::Media) -> Content {
    use aside_core::block::{MediaKind, MediaSource};
    match (&media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Data(data)) => {
            Content::Image { data: data.clone(), mime_type: media.media_type.clone() }
        }
        (_, MediaSource::Url(url)) => {
            Content::ResourceLink { name: media.name.clone().unwrap_or_else(|| url.clone()), uri: url.clone() }
        }
        (MediaKind::Document, MediaSource::Data(_)) | (_, MediaSource::FileId(_)) => {
            Content::Text { text: media.describe() }
        }
    }
}

/// The changes that a result reports; empty if it reports none completely.
fn diffs(call: &ToolCall, result: &str, folder: &Path) -> Vec<ToolContent> {
    let Arguments::Json(arguments) = &call.arguments else { return Vec::new() };
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
    let Some(path) = arguments.get("path").and_then(Value::as_str) else { return Vec::new() };
    let path: PathBuf = folder.join(path);
    let diff = |(old_text, new_text)| ToolContent::Diff { path: path.display().to_string(), old_text, new_text };
    match result.split_once("\n--- a/").and_then(|(_, diff)| hunks(diff)) {
        Some(hunks) => hunks.into_iter().map(|(old, new)| diff((Some(old), new))).collect(),
        None if result.starts_with("created ") => {
            let content = arguments.get("content").and_then(Value::as_str);
            content.map(|content| diff((None, content.to_owned()))).into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// The old and new text of each hunk of a unified diff, without the start of its first line. None if it is
/// not complete.
fn hunks(diff: &str) -> Option<Vec<(String, String)>> {
    let mut lines = diff.split('\n').skip(1);
    lines.next().filter(|line| line.starts_with("+++ "))?;
    let mut hunks: Vec<(String, String)> = Vec::new();
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() && lines.peek().is_none() {
            break;
        }
        if line.starts_with("@@ ") {
            hunks.push(Default::default());
            continue;
        }
        let (old, new) = hunks.last_mut()?;
        let has_line_end = lines.peek().is_none_or(|next| !next.starts_with('\\'));
        let push = |text: &mut String, line: &str| {
            text.push_str(line);
            text.extend(has_line_end.then_some('\n'));
        };
        match (line.strip_prefix(' '), line.strip_prefix('-'), line.strip_prefix('+')) {
            (Some(same), ..) => {
                push(old, same);
                push(new, same);
            }
            (_, Some(removed), _) => push(old, removed),
            (.., Some(added)) => push(new, added),
            (None, None, None) if line.starts_with('\\') => (),
            // The middle was cut out for the model.
            (None, None, None) => return None,
        }
    }
    (!hunks.is_empty()).then_some(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aside_core::block::CallId;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(CallId::Given("c1".into()), name, Arguments::parse(arguments.into()))
    }

    #[test]
    fn a1_a_title_names_the_tool_and_its_subject() {
        #[rustfmt::skip]
        let cases = [
            ("read",  r#"{"path":"src/main.rs"}"#,          "read src/main.rs",   vec!["/p/src/main.rs"]),
            ("shell", r#"{"command":"cd a\n  && make"}"#,   "shell cd a && make", vec![]),
            ("grep",  r#"{"pattern":"x y","path":"/etc"}"#, "grep /etc",          vec!["/etc"]),
            ("list",  "{}",                                 "list",               vec![]),
            ("list",  "{broken",                            "list",               vec![]),
        ];
        for (name, arguments, title, locations) in cases {
            let fields = with_arguments("1:0".into(), &call(name, arguments), Path::new("/p"));
            assert_eq!(fields.title.as_deref(), Some(title), "{name} {arguments}");
            let found: Vec<String> = fields.locations.into_iter().map(|location| location.path).collect();
            assert_eq!(found, locations, "{name} {arguments}");
        }
        let long = with_arguments(
            "1:0".into(),
            &call("shell", &format!(r#"{{"command":"{}"}}"#, "ä".repeat(900))),
            Path::new("/p"),
        );
        assert_eq!(long.title.map(|title| title.chars().count()), Some(MAX_TITLE + 1));
    }

    #[test]
    fn a1_the_diff_of_a_result_becomes_old_and_new_text() {
        let edit = call("edit", r#"{"path":"a.txt","old":"x","new":"y"}"#);
        let shown = |result: &str| diffs(&edit, result, Path::new("/p"));
        let diff = |old: &str, new: &str| ToolContent::Diff {
            path: "/p/a.txt".into(),
            old_text: Some(old.into()),
            new_text: new.into(),
        };
        let head = "edited `a.txt` in 1 place\n--- a/a.txt\n+++ b/a.txt\n";
        assert_eq!(
            shown(&format!(
                "{head}@@ -1,3 +1,3 @@\n one\n-x\n+y\n three\n@@ -9 +9 @@\n-a\n\\ No newline at end of file\n+b\n"
            )),
            [diff("one\nx\nthree\n", "one\ny\nthree\n"), diff("a", "b\n")]
        );
        assert_eq!(shown(&format!("{head}@@ -1,3 +1,3 @@\n one\n… 900 bytes left out …\n+y\n")), [], "incomplete");
        assert_eq!(shown("nothing changed"), []);
        let write = call("write", r#"{"path":"b.txt","content":"new\n"}"#);
        let created = ToolContent::Diff { path: "/p/b.txt".into(), old_text: None, new_text: "new\n".into() };
        assert_eq!(diffs(&write, "created `b.txt`, 1 line", Path::new("/p")), [created]);
    }
}
