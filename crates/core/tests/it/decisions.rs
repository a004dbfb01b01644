//! The decision tables: for every dialect, history and setting, what happens to each
//! thinking block and by which rule. One file per dialect in `decisions/`; after an
//! intended change run with `UPDATE_EXPECT=1` and read the diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use aside_core::block::Block;
use aside_core::dialect::{Dialect, Rules};
use aside_core::message::Message;
use aside_core::rules::{Decision, EgressAction};
use expect_test::expect_file;

use crate::judge_accepts::{HistoryShape, SHAPES, build, conversation, settings};
use crate::support::dialects;

const INCLUDES: [(&str, Option<&str>); 3] = [("unset", None), ("on", Some("true")), ("off", Some("false"))];
const STRIPS: [&str; 3] = ["none", "allButLast", "all"];

/// The thinking blocks of a request with their decisions: `2 verbatim echo.loop = must`.
fn describe_decisions(messages: &[Message], decisions: &[Decision]) -> String {
    let about_thinking = |decision: &&Decision| match decision.block {
        Some(block) => matches!(messages[decision.message].blocks[block], Block::Thinking(_)),
        None => true,
    };
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for decision in decisions.iter().filter(about_thinking) {
        let action = match decision.action {
            EgressAction::Verbatim => "verbatim".to_owned(),
            EgressAction::Field => format!("in {}", decision.field.as_deref().unwrap_or("a field")),
            EgressAction::Tags => "in tags".to_owned(),
            EgressAction::Filler => format!("filler in {}", decision.field.as_deref().unwrap_or("its place")),
            EgressAction::Dropped => "dropped".to_owned(),
        };
        let what = format!("{action} ({})", decision.reason.rule());
        match rows.last_mut() {
            Some((same, places)) if *same == what => places.push(decision.message.to_string()),
            _ => rows.push((what, vec![decision.message.to_string()])),
        }
    }
    let rows: Vec<String> = rows.into_iter().map(|(what, places)| format!("{} {what}", places.join(","))).collect();
    if rows.is_empty() { "nothing to decide".to_owned() } else { rows.join("; ") }
}

/// One line for all settings with the same result.
fn table(dialect: &Dialect, model: &str) -> String {
    let mut out = String::new();
    for shape in SHAPES {
        let messages = conversation(dialect, model, shape);
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for (include_name, include) in INCLUDES {
            for strip in STRIPS {
                let encoded = build(dialects(), dialect, model, &messages, &settings(include, strip));
                let row = describe_decisions(&messages, &encoded.decisions);
                let setting = format!("{include_name}/{strip}");
                match rows.iter_mut().find(|(known, _)| *known == row) {
                    Some((_, settings)) => settings.push(setting),
                    None => rows.push((row, vec![setting])),
                }
            }
        }
        writeln!(out, "  {}", name(shape)).unwrap();
        let all = INCLUDES.len() * STRIPS.len();
        for (row, settings) in rows {
            let when = if settings.len() == all { "always".to_owned() } else { short(&settings) };
            writeln!(out, "    {when}: {row}").unwrap();
        }
    }
    out
}

/// `on/none on/allButLast on/all` is `on/*`.
fn short(settings: &[String]) -> String {
    let mut strips: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (include, strip) in settings.iter().filter_map(|setting| setting.split_once('/')) {
        strips.entry(include).or_default().push(strip);
    }
    let words: Vec<String> = INCLUDES
        .iter()
        .filter_map(|(include, _)| strips.get(include).map(|strips| (include, strips)))
        .map(|(include, strips)| match strips.len() == STRIPS.len() {
            true => format!("{include}/*"),
            false => format!("{include}/{}", strips.join("+")),
        })
        .collect();
    words.join(" ")
}

fn name(shape: HistoryShape) -> &'static str {
    match shape {
        HistoryShape::NoThinking => "no thinking, a call",
        HistoryShape::ThinkingAndText => "thinking and an answer",
        HistoryShape::ThinkingAndCall => "thinking and a call",
        HistoryShape::TwoThoughts => "two thinking blocks and a call",
        HistoryShape::EncryptedOnly => "encrypted thinking and a call",
        HistoryShape::Foreign => "thinking from another provider and a call",
        HistoryShape::Interrupted => "thinking and a call, interrupted",
    }
}

fn of_dialect(dialect: &Dialect) -> String {
    let mut out = format!(
        "{}: what happens to each thinking block, by message\ninclude (reasoning.includeInContext) / strip (reasoning.stripFromContext)\n",
        dialect.id
    );
    let echoes = |rules: &Rules| (rules.echo.clone(), rules.bind.clone());
    let base = echoes(dialect.rules(None));
    let mut groups: Vec<((_, _), Vec<String>, String)> = vec![(base, vec!["any model".into()], "some-model".into())];
    for (pattern, rules) in dialect.models() {
        let echoes = echoes(rules);
        match groups.iter_mut().find(|(known, ..)| *known == echoes) {
            // Models with the same rules for these decisions share a table.
            Some((_, patterns, _)) if patterns[0] != "any model" => patterns.push(pattern.to_owned()),
            Some(_) => (),
            None => groups.push((echoes, vec![pattern.to_owned()], pattern.replace(['*', '?'], "x"))),
        }
    }
    let mut known: Vec<(String, String)> = Vec::new();
    for (_, patterns, model) in groups {
        let (table, patterns) = (table(dialect, &model), patterns.join(", "));
        match known.iter().find(|(_, other)| *other == table) {
            Some((first, _)) => writeln!(out, "\n{patterns}: as {first}").unwrap(),
            None => write!(out, "\n{patterns}\n{table}").unwrap(),
        }
        known.push((patterns, table));
    }
    out
}

#[test]
fn e10_the_decision_tables_match_the_goldens() {
    let mut n_lines = 0;
    for dialect in dialects().iter() {
        let text = of_dialect(dialect);
        n_lines += text.lines().count();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/decisions/{}.txt", dialect.id));
        expect_file![path].assert_eq(&text);
    }
    assert!(n_lines < 6000, "{n_lines} lines: nobody reads that");
}

/// No table may be left over from a removed dialect.
#[test]
fn every_decision_table_has_its_dialect() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/decisions");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let id = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(dialects().get(&id).is_some(), "{id} is not a dialect");
    }
}
