//! `aside models`: the models that can be used, with their windows and prices, and where those are known from.

use std::io::{BufWriter, Write};

use anyhow::Context;
use aside_core::model_table::Price;
use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_session::UserFolders;
use aside_session::model_facts::{ModelFacts, Sourced};
use aside_session::model_listing::{ListSource, ModelEntry, ModelQuery, ModelScope, list};
use aside_session::providers::{Providers, env_var};
use serde_json::{Map, Value, json};

use crate::ExitStatus;
use crate::model_rules;
use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;

/// Show the models that can be used, with their windows and prices
///
/// One line per model of the providers that have a key, or of all known providers
/// if none has one. FROM names the source of the window and the price: your
/// config, the provider's own list, the dialect, or the built-in table and its
/// date. Prices are US dollars per million tokens of input and output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside models gpt-5
  aside models --live openrouter free
  aside models --rules deepseek
  aside models --json | jq -r '.[].id'")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line are flags")]
pub(crate) struct Arguments {
    /// Only models whose PROVIDER/MODEL contains all these words
    #[arg(value_name = "FILTER")]
    words: Vec<String>,

    /// Ask the providers for their own lists
    #[arg(long, conflicts_with = "rules")]
    live: bool,

    /// All known providers, under every protocol they speak, and deprecated models
    #[arg(long)]
    all: bool,

    /// Show the rules of the dialects instead: which fields hold thinking, what
    /// must be sent back, and how thinking is requested
    #[arg(long)]
    rules: bool,

    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    if arguments.rules {
        return model_rules::print_rules(&arguments.words, arguments.json);
    }
    let dialects = UserFolders::from_environment().dialects()?;
    let loaded = OverrideArguments::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let query = ModelQuery {
        words: arguments.words.clone(),
        scope: if arguments.all { ModelScope::All } else { ModelScope::Usual },
        source: if arguments.live { ListSource::Live } else { ListSource::Known },
    };
    let listing = aside_session::start::runtime()?.block_on(list(&query, &providers));
    for note in &listing.notes {
        print_notice(&format!("note: {note}"));
    }
    let mut out = BufWriter::new(output::stdout());
    let written = if arguments.json {
        let array: Value = listing.entries.iter().map(as_json).collect();
        writeln!(out, "{}", safe_json::escaped(&format!("{array:#}")))
    } else {
        write_lines(&mut out, &listing.entries)
    };
    written.and_then(|()| out.flush()).context("cannot write the list")?;
    if listing.entries.is_empty() && listing.notes.is_empty() {
        let hint = if arguments.all { "" } else { "; --all lists those of all providers" };
        print_notice(&format!("no model matches{hint}"));
    }
    // Every provider that was asked failed.
    let failed = listing.entries.is_empty() && !listing.notes.is_empty();
    Ok(if failed { ExitStatus::ProviderFailed } else { ExitStatus::Done })
}

const HEADINGS: [&str; 7] = ["MODEL", "WINDOW", "OUTPUT", "PRICE", "IMAGES", "EFFORT", "FROM"];

fn write_lines(out: &mut impl Write, entries: &[ModelEntry]) -> std::io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 7]> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(entries.iter().map(cells)).collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in &rows {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

fn cells(entry: &ModelEntry) -> [String; 7] {
    let ModelFacts { context, input, output, price, images, efforts, status, .. } = &entry.facts;
    let limit = input.as_ref().or(context.as_ref());
    let count = |limit: Option<&Sourced<u64>>| limit.map_or(String::new(), |limit| limit.value.to_string());
    let is_plan = status.as_ref().is_some_and(|status| status.value == "plan");
    let price_text = match price {
        Some(price) => format!("{}/{}", price.value.input, price.value.output),
        None if is_plan => "plan".to_owned(),
        None => String::new(),
    };
    [
        terminal_safe_line(&format!("{}/{}", entry.provider, entry.model)),
        count(limit),
        count(output.as_ref()),
        price_text,
        images.as_ref().map_or("", |images| if images.value { "yes" } else { "no" }).to_owned(),
        efforts.as_ref().map_or(String::new(), |efforts| terminal_safe_line(&efforts.value.join(" "))),
        sources(limit.map(source), price.as_ref().map(source)),
    ]
}

/// Where the window and the price are known from, once if from the same source.
fn sources(window: Option<String>, price: Option<String>) -> String {
    match (window, price) {
        (Some(window), Some(price)) if window == price => window,
        (Some(window), Some(price)) => format!("window {window}, price {price}"),
        (Some(window), None) => window,
        (None, Some(price)) => format!("price {price}"),
        (None, None) => String::new(),
    }
}

fn source<T>(fact: &Sourced<T>) -> String {
    match &fact.date {
        Some(date) => format!("{} {date}", fact.source.as_str()),
        None => fact.source.as_str().to_owned(),
    }
}

fn as_json(entry: &ModelEntry) -> Value {
    let facts = &entry.facts;
    let mut sources = Map::new();
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(format!("{}/{}", entry.provider, entry.model)));
    members.insert("provider".to_owned(), json!(entry.provider));
    members.insert("dialect".to_owned(), json!(entry.dialect));
    members.insert("model".to_owned(), json!(entry.model));
    let mut add = |name: &str, fact: Option<(Value, Value)>| {
        let (fact, source) = fact.unzip();
        members.insert(name.to_owned(), fact.unwrap_or(Value::Null));
        if let Some(source) = source {
            sources.insert(name.to_owned(), source);
        }
    };
    add("context", sourced(facts.context.as_ref(), |limit| json!(limit)));
    add("input", sourced(facts.input.as_ref(), |limit| json!(limit)));
    add("output", sourced(facts.output.as_ref(), |limit| json!(limit)));
    add("price", sourced(facts.price.as_ref(), price_json));
    add("images", sourced(facts.images.as_ref(), |images| json!(images)));
    add("efforts", sourced(facts.efforts.as_ref(), |efforts| json!(efforts)));
    add("thinks", sourced(facts.thinks.as_ref(), |thinks| json!(thinks)));
    add("status", sourced(facts.status.as_ref(), |status| json!(status)));
    members.insert("sources".to_owned(), Value::Object(sources));
    Value::Object(members)
}

/// A fact and its source.
fn sourced<T>(fact: Option<&Sourced<T>>, to_json: impl Fn(&T) -> Value) -> Option<(Value, Value)> {
    fact.map(|fact| (to_json(&fact.value), json!({ "from": fact.source.as_str(), "date": fact.date })))
}

fn price_json(price: &Price) -> Value {
    let tiers: Vec<Value> = price
        .tiers
        .iter()
        .map(|tier| {
            json!({ "from": tier.from, "input": tier.input, "output": tier.output, "cacheRead": tier.cache_read })
        })
        .collect();
    json!({
        "input": price.input, "output": price.output, "cacheRead": price.cache_read,
        "cacheWrite": price.cache_write, "tiers": tiers,
    })
}
