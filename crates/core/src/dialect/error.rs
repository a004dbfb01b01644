//! A mistake in a dialect file: which file, which line, which key.

use serde::de::DeserializeOwned;

use super::Source;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {key}: {problem}")]
pub struct DialectError {
    pub path: String,
    pub line: usize,
    pub key: String,
    pub problem: String,
}

impl DialectError {
    /// A mistake at a byte of the file.
    pub(super) fn at(source: &Source<'_>, offset: usize, key: &str, problem: String) -> DialectError {
        let before = source.text.get(..offset).unwrap_or(source.text);
        let line = before.matches('\n').count() + 1;
        DialectError { path: source.path.to_owned(), line, key: key.to_owned(), problem }
    }

    /// A mistake in a value that parsed; the line is the key's own.
    pub(super) fn in_key(source: &Source<'_>, key: &str, problem: String) -> DialectError {
        let name = key.rsplit('.').next().unwrap_or(key);
        let is_key =
            |line: &&str| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='));
        let offset = source.text.split_inclusive('\n').take_while(|line| !is_key(line)).map(str::len).sum();
        let found = source.text.lines().any(|line| is_key(&line));
        DialectError::at(source, if found { offset } else { 0 }, key, problem)
    }
}

pub(super) fn parse<T: DeserializeOwned>(source: &Source<'_>) -> Result<T, DialectError> {
    toml_edit::de::from_str(source.text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let problem = error.message().trim().replace('\n', "; ");
        DialectError::at(source, offset, &key_at(source.text, offset), problem)
    })
}

/// The dotted key that stands at a byte of a TOML text.
fn key_at(text: &str, offset: usize) -> String {
    let mut table = "";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let end = start + line.len();
        if trimmed.starts_with('[') && !trimmed.contains('=') {
            table = trimmed.trim_matches(['[', ']']);
        }
        if offset < end {
            let name = trimmed.split('=').next().unwrap_or("").trim();
            let in_table = !table.is_empty() && !trimmed.starts_with('[');
            return if in_table { format!("{table}.{name}") } else { name.trim_matches(['[', ']']).to_owned() };
        }
        start = end;
    }
    table.to_owned()
}
