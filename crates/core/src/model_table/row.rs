//! The format of a table: comments, a header row, and a row for each model, with tabs between the cells.

use super::price::{Price, PriceTier};
use crate::dialect::DialectSource;

/// The header row.
const HEADER: &str = "dialect\tmodel\tcontext\tinput\toutput\tprice_in\tprice_out\tcache_read\tcache_write\ttiers\timage\tthinks\tefforts\tstatus";

/// How many cells a row has.
const CELLS: usize = 14;

/// A longer file is not a table of models.
const MAX_BYTES: usize = 16 << 20;

/// What a table says about a model. What it leaves empty is unknown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelRow<'a> {
    /// The dialect that the row belongs to.
    pub dialect: &'a str,
    /// The model's name at that provider.
    pub model: &'a str,
    /// The window: tokens of a request and its reply.
    pub context: Option<u64>,
    /// The most tokens of a request, if that is less than the window.
    pub input: Option<u64>,
    /// The most tokens of a reply.
    pub output: Option<u64>,
    /// Its prices.
    pub price: Option<Price>,
    /// Whether it takes images.
    pub image: Option<bool>,
    /// Whether it thinks.
    pub thinks: Option<bool>,
    /// The effort levels that it takes, in the provider's words. Empty if unknown.
    pub efforts: Vec<&'a str>,
    /// `deprecated`, `beta`, or `plan` for a model that is paid by subscription.
    pub status: Option<&'a str>,
}

/// A mistake in a user's table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {problem}")]
pub struct ModelTableError {
    path: String,
    line: usize,
    problem: String,
}

impl ModelRow<'_> {
    /// Reads a row. A cell that cannot be read is unknown; `check` refuses it in a user's table, and a test in the
    /// built-in one.
    pub(super) fn of(line: &str) -> ModelRow<'_> {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let price = number(cell(5)).zip(number(cell(6))).map(|(input, output)| Price {
            input,
            output,
            cache_read: number(cell(7)),
            cache_write: number(cell(8)),
            tiers: tiers(cell(9)).unwrap_or_default(),
        });
        ModelRow {
            dialect: cell(0),
            model: cell(1),
            context: cell(2).parse().ok(),
            input: cell(3).parse().ok(),
            output: cell(4).parse().ok(),
            price,
            image: yes_or_no(cell(10)),
            thinks: yes_or_no(cell(11)),
            efforts: cell(12).split(',').filter(|word| !word.is_empty()).collect(),
            status: Some(cell(13)).filter(|status| !status.is_empty()),
        }
    }
}

/// The date and the rows of a table that is known to be valid.
pub(super) fn split_head(text: &str) -> (Option<&str>, &str) {
    let mut date = None;
    let mut rest = text;
    while let Some((line, next)) = rest.split_once('\n') {
        rest = next;
        match line.strip_prefix('#') {
            Some(comment) => date = comment.trim().strip_prefix("date ").or(date),
            None => break,
        }
    }
    (date, rest)
}

/// Checks a whole table. Returns its date and its rows.
pub(super) fn check(source: DialectSource<'_>) -> Result<(Option<&str>, &str), ModelTableError> {
    let fail = |line: usize, problem: String| ModelTableError { path: source.path.to_owned(), line, problem };
    if source.text.len() > MAX_BYTES {
        return Err(fail(1, format!("more than {MAX_BYTES} bytes")));
    }
    let head = source.text.lines().take_while(|line| line.starts_with('#')).count();
    let header = source.text.lines().nth(head).unwrap_or_default();
    if header.trim_end() != HEADER {
        return Err(fail(head + 1, format!("expected the header row, with tabs: {}", HEADER.replace('\t', " "))));
    }
    for (at, line) in source.text.lines().enumerate().skip(head + 1).filter(|(_, line)| !line.is_empty()) {
        check_row(line).map_err(|problem| fail(at + 1, problem))?;
    }
    Ok(split_head(source.text))
}

fn check_row(line: &str) -> Result<(), String> {
    let cells: Vec<&str> = line.split('\t').collect();
    if cells.len() != CELLS {
        return Err(format!("{} cells instead of {CELLS}; between cells there is one tab", cells.len()));
    }
    for (name, cell) in HEADER.split('\t').zip(&cells).filter(|(name, cell)| !cell.is_empty() || *name == "model") {
        let (valid, expected) = match name {
            "dialect" | "model" => (!cell.is_empty(), "a name"),
            "context" | "input" | "output" => (cell.parse::<u64>().is_ok(), "a number of tokens"),
            "tiers" => (tiers(cell).is_some(), "FROM:in/out/cache;…"),
            "image" | "thinks" => (yes_or_no(cell).is_some(), "yes or no"),
            "efforts" | "status" => (true, ""),
            _ => (number(cell).is_some(), "a price of a million tokens"),
        };
        if !valid {
            return Err(format!("{name}: `{cell}` is not valid; expected {expected}"));
        }
    }
    if cells.first().is_none_or(|dialect| dialect.is_empty()) {
        return Err("dialect: it is empty".to_owned());
    }
    Ok(())
}

fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0)
}

fn yes_or_no(cell: &str) -> Option<bool> {
    match cell {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// None if the cell is malformed.
fn tiers(cell: &str) -> Option<Vec<PriceTier>> {
    let tier = |text: &str| {
        let (from, prices) = text.split_once(':')?;
        let mut prices = prices.split('/');
        let (input, output) = (number(prices.next()?)?, number(prices.next()?)?);
        let cache_read = prices.next().unwrap_or_default();
        let cache_read = if cache_read.is_empty() { None } else { Some(number(cache_read)?) };
        prices.next().is_none().then_some(PriceTier { from: from.parse().ok()?, input, output, cache_read })
    };
    let mut all = cell.split(';').filter(|tier| !tier.is_empty()).map(tier).collect::<Option<Vec<_>>>()?;
    all.sort_by_key(|tier| tier.from);
    Some(all)
}
