//! Refusals in words that no provider is known to use, so that the rules do not only know the corpus. After an
//! intended change run with `UPDATE_EXPECT=1` and read the diff.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::wrappers::WRAPPERS;
use super::{Healed, RefusalRow, Setup, dialects_for, parse_line, refuse_once, test_http};

fn table_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals/wordings.txt")
}

/// `id | status | dialect | model | settings | dialect lines | history | change | body`.
fn parse(line: &str) -> (RefusalRow, Setup) {
    let columns: Vec<&str> = line.splitn(9, " | ").collect();
    let [id, status, dialect, model, settings, lines, history, change, body] = columns[..] else {
        panic!("nine columns: {line}")
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

#[tokio::test]
async fn e11_refusals_in_other_words_are_repaired_with_the_smallest_change() {
    let text = std::fs::read_to_string(table_path()).unwrap();
    let http = test_http();
    let (mut out, mut failures) = (String::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with('#') {
            writeln!(out, "{line}").unwrap();
            continue;
        }
        let (row, setup) = parse(line);
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
                let columns: Vec<&str> = line.splitn(9, " | ").collect();
                let (before, body) = (columns[..7].join(" | "), columns[8]);
                writeln!(out, "{before} | {found} | {body}").unwrap();
            }
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(table_path(), out).unwrap();
        return;
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
