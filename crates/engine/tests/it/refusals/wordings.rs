//! Refusals that are not in the corpus: in words of our own, so that the rules do not only know the corpus, and in
//! the words that users reported in public threads. After an intended change run with `UPDATE_EXPECT=1` and read the
//! diff.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::wrappers::WRAPPERS;
use super::{Healed, RefusalRow, Setup, dialects_for, parse_line, refuse_once, test_http};

/// One file of refusals.
struct WordingTable {
    file: &'static str,
    /// How many columns come between the id and the status.
    n_facts: usize,
}

/// `id | status | dialect | model | settings | dialect lines | history | change | body`.
const OUR_OWN: WordingTable = WordingTable { file: "wordings.txt", n_facts: 0 };
/// The same, with the host and the class after the id.
const REPORTED: WordingTable = WordingTable { file: "reported.txt", n_facts: 2 };

impl WordingTable {
    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals").join(self.file)
    }

    /// The columns of a line. The last one is the body, which may contain anything.
    fn columns<'l>(&self, line: &'l str) -> Vec<&'l str> {
        line.splitn(9 + self.n_facts, " | ").collect()
    }

    fn parse(&self, line: &str) -> (RefusalRow, Setup) {
        let mut columns = self.columns(line);
        columns.drain(1..=self.n_facts);
        let [id, status, dialect, model, settings, lines, history, change, body] = columns[..] else {
            panic!("too few columns: {line}")
        };
        let (_, setup) = parse_line(&[id, dialect, model, settings, lines, history, change].join("|"));
        let row = RefusalRow {
            id: id.to_owned(),
            status: status.parse().unwrap(),
            body: body.to_owned(),
            dialect: dialect.to_owned(),
            model: model.to_owned(),
            is_negative: change == "nothing",
        };
        (row, setup)
    }

    /// The line with another change.
    fn with_change(&self, line: &str, change: &str) -> String {
        let mut columns = self.columns(line);
        let at = columns.len() - 2;
        columns[at] = change;
        columns.join(" | ")
    }

    async fn check(&self) {
        let text = std::fs::read_to_string(self.path()).unwrap();
        let http = test_http();
        let (mut out, mut failures) = (String::new(), Vec::new());
        for line in text.lines() {
            if line.starts_with('#') {
                writeln!(out, "{line}").unwrap();
                continue;
            }
            let (row, setup) = self.parse(line);
            let dialects = dialects_for(&row, &setup);
            for wrapper in WRAPPERS {
                let Healed { repaired, answered, change, n_requests, .. } =
                    refuse_once(&row, &setup, wrapper, &dialects, &http).await;
                let found = match repaired.len() {
                    0 if n_requests == 1 => "nothing".to_owned(),
                    1 if answered && n_requests == 2 => change,
                    _ => format!("{repaired:?} after {n_requests} requests: {change}"),
                };
                if found != setup.change {
                    let (name, expected) = (wrapper.name, &setup.change);
                    failures.push(format!("{} {name}: expected {expected}, found {found} ({repaired:?})", row.id));
                }
                if wrapper.name == "plain" {
                    writeln!(out, "{}", self.with_change(line, &found)).unwrap();
                }
            }
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(self.path(), out).unwrap();
            return;
        }
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    }
}

#[tokio::test]
async fn e11_refusals_in_other_words_are_repaired_with_the_smallest_change() {
    OUR_OWN.check().await;
}

#[tokio::test]
async fn e11_reported_refusals_are_repaired_with_the_smallest_change() {
    REPORTED.check().await;
}
