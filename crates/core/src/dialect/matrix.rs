//! Which model may read the thinking of which other, where a provider binds it.

use serde::Deserialize;

use super::glob;

/// A named table of readers; the first that matches counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) name: String,
    readers: Vec<Reader>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reader {
    pattern: String,
    reads: Vec<String>,
}

impl Matrix {
    /// A model always reads itself; an unlisted one reads nobody else.
    pub(super) fn can_read(&self, reader: &str, producer: &str) -> bool {
        let listed = self.readers.iter().find(|row| glob::matches(&row.pattern, reader));
        reader.eq_ignore_ascii_case(producer)
            || listed.is_some_and(|row| row.reads.iter().any(|pattern| glob::matches(pattern, producer)))
    }
}

/// The file as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MatrixFile {
    #[serde(default)]
    matrix: Vec<MatrixTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixTable {
    name: String,
    #[serde(default)]
    reader: Vec<ReaderTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderTable {
    #[serde(rename = "match")]
    pattern: String,
    reads: Vec<String>,
}

impl MatrixFile {
    /// A known name is replaced, a new one added.
    pub(super) fn lay_over(self, known: &mut Vec<Matrix>) {
        for MatrixTable { name, reader } in self.matrix {
            known.retain(|matrix| matrix.name != name);
            let readers = reader.into_iter().map(|ReaderTable { pattern, reads }| Reader { pattern, reads }).collect();
            known.push(Matrix { name, readers });
        }
    }
}
