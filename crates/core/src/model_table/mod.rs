//! The table of models: context windows, prices, images and effort levels.
//!
//! The built-in table is generated and sorted, and rows are found by binary search, so that a program that uses one
//! model reads one line. A user's table wins row by row.

mod names;
mod price;
mod row;

use std::borrow::Cow;
use std::cmp::Ordering;

pub use price::{CachedCount, Cost, Price, PriceTier, ThinkingCount, UsageCounting};
pub use row::{ModelRow, ModelTableError};

use crate::dialect::DialectSource;

/// The generated table.
const BUILTIN: DialectSource<'static> =
    DialectSource { path: "dialects/models.tsv", text: include_str!("../../dialects/models.tsv") };

/// The user's table over the built-in one.
#[derive(Debug, Clone)]
pub struct ModelTables {
    user: Option<ModelRows>,
    builtin: ModelRows,
}

/// One table of models.
#[derive(Debug, Clone)]
pub struct ModelRows {
    origin: TableOrigin,
    date: Option<String>,
    /// The rows, sorted by dialect and model, each with its line end.
    rows: Cow<'static, str>,
}

/// Who wrote a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableOrigin {
    /// Compiled in.
    Builtin,
    /// From the user's config folder.
    User,
}

/// How a row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    /// It is the row of this model.
    Same,
    /// It is the row of another release of the same family: its limits are likely the same, its price is not.
    Family,
}

/// A row with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundModel<'a> {
    /// The row.
    pub row: ModelRow<'a>,
    /// Whether it is the row of the model itself.
    pub name_match: NameMatch,
    /// The table that it stands in.
    pub origin: TableOrigin,
    /// The date of that table.
    pub date: Option<&'a str>,
}

impl FoundModel<'_> {
    /// The input that fits: the input limit, else the window.
    pub fn context_limit(&self) -> Option<u64> {
        self.row.input.or(self.row.context)
    }

    /// The price, unless the row is only of the same family.
    pub fn price(&self) -> Option<&Price> {
        match self.name_match {
            NameMatch::Same => self.row.price.as_ref(),
            NameMatch::Family => None,
        }
    }
}

impl Default for ModelTables {
    fn default() -> ModelTables {
        ModelTables { user: None, builtin: ModelRows::builtin() }
    }
}

impl ModelTables {
    /// The built-in table with the user's table over it.
    pub fn with_user_table(source: DialectSource<'_>) -> Result<ModelTables, ModelTableError> {
        Ok(ModelTables { user: Some(ModelRows::parse(source)?), ..ModelTables::default() })
    }

    /// What the tables say about a model: its own row, the user's first, else a row of its family.
    pub fn find(&self, dialect: &str, model: &str) -> Option<FoundModel<'_>> {
        let candidates = || names::candidates(model);
        let tables = || self.tables();
        let same = tables().find_map(|table| {
            let row = candidates().find_map(|name| table.row(dialect, name))?;
            Some(table.found(row, NameMatch::Same))
        });
        same.or_else(|| {
            let name = candidates().last().unwrap_or(model);
            tables().find_map(|table| table.family(dialect, name).map(|row| table.found(row, NameMatch::Family)))
        })
    }

    /// The rows of a dialect, sorted by model. A row of the user replaces the built-in one.
    pub fn rows<'a>(&'a self, dialect: &'a str) -> Vec<FoundModel<'a>> {
        let mut rows: Vec<FoundModel<'a>> =
            self.tables().flat_map(|table| table.rows(dialect).map(|row| table.found(row, NameMatch::Same))).collect();
        // Stable, so that the user's row stays before the built-in one.
        rows.sort_by(|a, b| a.row.model.cmp(b.row.model));
        rows.dedup_by(|next, kept| next.row.model == kept.row.model);
        rows
    }

    /// All dialects with all their models, as they stand in the tables.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables().flat_map(ModelRows::names)
    }

    fn tables(&self) -> impl Iterator<Item = &ModelRows> {
        self.user.iter().chain([&self.builtin])
    }
}

impl ModelRows {
    fn builtin() -> ModelRows {
        let (date, rows) = row::split_head(BUILTIN.text);
        ModelRows { origin: TableOrigin::Builtin, date: date.map(str::to_owned), rows: Cow::Borrowed(rows) }
    }

    /// Checks every row and sorts them.
    fn parse(source: DialectSource<'_>) -> Result<ModelRows, ModelTableError> {
        let (date, rows) = row::check(source)?;
        let mut lines: Vec<&str> = rows.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable_by_key(|line| key_of(line));
        let mut rows = String::with_capacity(rows.len() + 1);
        for line in lines {
            rows.push_str(line);
            rows.push('\n');
        }
        Ok(ModelRows { origin: TableOrigin::User, date: date.map(str::to_owned), rows: Cow::Owned(rows) })
    }

    fn found<'a>(&'a self, row: ModelRow<'a>, name_match: NameMatch) -> FoundModel<'a> {
        FoundModel { row, name_match, origin: self.origin, date: self.date.as_deref() }
    }

    fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.lines().map(key_of)
    }

    fn row(&self, dialect: &str, model: &str) -> Option<ModelRow<'_>> {
        let line = self.line_from((dialect, model))?;
        (key_of(line) == (dialect, model)).then(|| ModelRow::of(line))
    }

    fn rows<'a>(&'a self, dialect: &'a str) -> impl Iterator<Item = ModelRow<'a>> {
        self.lines_of(dialect).map(ModelRow::of)
    }

    /// The row of the release of the same family that is nearest to this one.
    fn family(&self, dialect: &str, model: &str) -> Option<ModelRow<'_>> {
        let nearness = |line: &&str| names::release_distance(key_of(line).1, model);
        let near = self.lines_of(dialect).filter_map(|line| Some((nearness(&line)?, line)));
        near.min_by_key(|(distance, _)| *distance).map(|(_, line)| ModelRow::of(line))
    }

    fn lines_of<'a>(&'a self, dialect: &str) -> impl Iterator<Item = &'a str> {
        let dialect = dialect.to_owned();
        let rest = self.rows.get(self.position((&dialect, ""))..).unwrap_or_default();
        rest.lines().take_while(move |line| key_of(line).0 == dialect)
    }

    /// The first line whose key is not below this one.
    fn line_from(&self, key: (&str, &str)) -> Option<&str> {
        self.rows.get(self.position(key)..)?.lines().next()
    }

    /// The byte offset of the first line whose key is not below this one.
    fn position(&self, key: (&str, &str)) -> usize {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let bytes = self.rows.as_bytes();
            let line_end =
                |from: usize| bytes.iter().skip(from).position(|byte| *byte == b'\n').map(|at| from + at + 1);
            let start = bytes.iter().take(middle).rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1).max(low);
            let line = self.rows.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            match key_of(line).cmp(&key) {
                Ordering::Less => low = line_end(start).unwrap_or(high),
                Ordering::Equal | Ordering::Greater => high = start,
            }
        }
        low
    }
}

/// Dialect and model of a line.
fn key_of(line: &str) -> (&str, &str) {
    let mut cells = line.splitn(3, '\t');
    (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
