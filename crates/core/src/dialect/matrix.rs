//! Which model can read the thinking of which other model, for providers that
//! bind thinking to a model.

use serde::Deserialize;

use super::glob;

/// A named table of readers. The first pattern that matches wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) name: String,
    readers: Vec<MatrixReader>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MatrixReader {
    pattern: String,
    reads: Vec<String>,
}

impl Matrix {
    /// A model can always read its own thinking. An unlisted model can read no
    /// other.
    pub(super) fn can_read(&self, reader: &str, producer: &str) -> bool {
        let listed = self.readers.iter().find(|row| glob::matches(&row.pattern, reader));
        reader.eq_ignore_ascii_case(producer)
            || listed.is_some_and(|row| row.reads.iter().any(|pattern| glob::matches(pattern, producer)))
    }
}

/// The file format.
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
    /// Replaces matrices with a known name and adds new ones.
    pub(super) fn merge_into(self, known: &mut Vec<Matrix>) {
        for MatrixTable { name, reader } in self.matrix {
            known.retain(|matrix| matrix.name != name);
            let readers =
                reader.into_iter().map(|ReaderTable { pattern, reads }| MatrixReader { pattern, reads }).collect();
            known.push(Matrix { name, readers });
        }
    }
}
