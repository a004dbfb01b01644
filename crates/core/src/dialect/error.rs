//! An error in a dialect file, with the file, the line and the key.

use serde::de::DeserializeOwned;

use super::DialectSource;

/// A dialect file that cannot be used. Names the file, the line and the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {key}: {problem}")]
#[non_exhaustive]
pub struct DialectError {
    /// The path given in [`DialectSource::path`].
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// The dotted key, such as `echo.carrier`.
    pub key: String,
    /// What is wrong with the value, in words.
    pub problem: String,
}

impl DialectError {
    /// An error at a byte offset.
    pub(super) fn at(source: &DialectSource<'_>, offset: usize, key: &str, problem: String) -> DialectError {
        let before = source.text.get(..offset).unwrap_or(source.text);
        let line = before.matches('\n').count() + 1;
        DialectError { path: source.path.to_owned(), line, key: key.to_owned(), problem }
    }

    /// An error in a value that parsed. The line is that of the key.
    pub(super) fn in_key(source: &DialectSource<'_>, key: &str, problem: String) -> DialectError {
        DialectError::at(source, offset_of(source.text, key).unwrap_or(0), key, problem)
    }
}

/// The name of the table that a line opens.
fn table_of(line: &str) -> Option<&str> {
    let header = line.split('#').next().unwrap_or("").trim();
    let opens = header.starts_with('[') && header.ends_with(']') && !header.contains(['"', '=']);
    opens.then(|| header.trim_matches(['[', ']']))
}

/// The offset of a dotted key in a TOML text, whichever way its tables are
/// written.
fn offset_of(text: &str, key: &str) -> Option<usize> {
    let mut table = "";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = table_of(line) {
            table = name;
        } else if let Some((name, _)) = line.split_once('=').filter(|_| !line.trim_start().starts_with('#')) {
            let full = format!("{table}.{}", name.trim());
            let full = full.trim_start_matches("model.").trim_start_matches('.');
            // `a = { b = 1 }` is the line of `a.b`.
            if key.strip_prefix(full).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                return Some(start);
            }
        }
        start += line.len();
    }
    None
}

pub(super) fn parse<T: DeserializeOwned>(source: &DialectSource<'_>) -> Result<T, DialectError> {
    toml_edit::de::from_str(source.text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let problem = error.message().trim().replace('\n', "; ");
        DialectError::at(source, offset, &key_at(source.text, offset), problem)
    })
}

/// The dotted key at a byte offset of a TOML text.
fn key_at(text: &str, offset: usize) -> String {
    let mut table = "";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let end = start + line.len();
        table = table_of(line).unwrap_or(table);
        if offset < end {
            let name = trimmed.split('=').next().unwrap_or("").trim();
            let in_table = !table.is_empty() && !trimmed.starts_with('[');
            return if in_table { format!("{table}.{name}") } else { table_of(line).unwrap_or(name).to_owned() };
        }
        start = end;
    }
    table.to_owned()
}
