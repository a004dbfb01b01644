use super::*;

fn user(text: &str) -> Result<ModelTables, ModelTableError> {
    ModelTables::with_user_table(DialectSource { path: "models.tsv", text })
}

const HEADER: &str =
    "dialect model context input output price_in price_out cache_read cache_write tiers image thinks efforts status";

/// A row from `column=value` words.
fn row(words: &str) -> String {
    let value = |column: &str| {
        words.split(' ').find_map(|word| word.strip_prefix(column)?.strip_prefix('=')).unwrap_or_default()
    };
    HEADER.split(' ').map(value).collect::<Vec<_>>().join("\t")
}

fn table(rows: &[&str]) -> String {
    let rows: Vec<String> = rows.iter().map(|words| row(words)).collect();
    format!("# source mine\n# date 2026-11-01\n{}\n{}\n", HEADER.replace(' ', "\t"), rows.join("\n"))
}

#[test]
fn the_built_in_table_is_valid_and_sorted() {
    super::row::check(BUILTIN).expect("valid");
    let builtin = ModelRows::builtin();
    let keys: Vec<_> = builtin.rows.lines().map(key_of).collect();
    assert!(keys.len() > 500, "{}", keys.len());
    assert!(keys.is_sorted_by(|a, b| a < b), "sorted, and no row twice");
    assert_eq!(builtin.date.as_deref().map(str::len), Some("2026-07-02".len()));
    for (dialect, model) in keys {
        let row = builtin.row(dialect, model).expect("found by binary search");
        assert_eq!((row.dialect, row.model), (dialect, model));
    }
    assert_eq!(builtin.row("openai", "gpt-0"), None);
    assert_eq!(builtin.row("zzz", ""), None);
    assert_eq!(builtin.row("", ""), None);
}

#[test]
fn a_model_is_found_by_its_names_and_an_unknown_release_by_its_family_without_a_price() {
    let tables = ModelTables::default();
    let found = |dialect, model| tables.find(dialect, model).map(|found| (found.row.model, found.name_match));
    assert_eq!(found("openai", "gpt-5-2025-08-07"), Some(("gpt-5", NameMatch::Same)));
    assert_eq!(found("openai", "gpt-5.9"), Some(("gpt-5.6", NameMatch::Family)));
    assert_eq!(found("openai", "gpt-7.1"), None);
    let unknown = tables.find("anthropic", "claude-sonnet-4-9").expect("of the family of 4-6");
    assert_eq!((unknown.context_limit(), unknown.price()), (Some(1_000_000), None));
    assert!(unknown.row.price.is_some());
}

#[test]
fn a_user_table_wins_row_by_row() {
    let text =
        table(&["dialect=zz model=new context=1000", "dialect=openai model=gpt-5 context=5000 price_in=1 price_out=2"]);
    let tables = user(&text).expect("valid");
    let found = tables.find("openai", "gpt-5").expect("the user's row");
    assert_eq!((found.context_limit(), found.origin, found.date), (Some(5000), TableOrigin::User, Some("2026-11-01")));
    assert_eq!(found.row.output, None, "rows are replaced as a whole");
    let other = tables.find("openai", "gpt-5-mini").expect("built in");
    assert_eq!(other.origin, TableOrigin::Builtin);
    assert_eq!(tables.find("zz", "new").and_then(|found| found.context_limit()), Some(1000));
    let rows = tables.rows("openai");
    assert_eq!(rows.iter().filter(|found| found.row.model == "gpt-5").count(), 1);
}

#[test]
fn mistakes_in_a_user_table_name_the_line_and_the_cell() {
    #[rustfmt::skip]
    let cases = [
        ("no header",  "a\tb\n".to_owned(),                                 "models.tsv:1: expected the header row"),
        ("few cells",  format!("{}a\tb\t1\n", table(&["dialect=a model=b"])), "models.tsv:5: 3 cells instead of 14"),
        ("number",     table(&["dialect=a model=b context=many"]),           "models.tsv:4: context: `many` is not valid; expected a number of tokens"),
        ("price",      table(&["dialect=a model=b price_in=-1"]),            "models.tsv:4: price_in: `-1` is not valid"),
        ("tiers",      table(&["dialect=a model=b tiers=5:1"]),              "models.tsv:4: tiers: `5:1` is not valid; expected FROM:in/out/cache;…"),
        ("image",      table(&["dialect=a model=b image=maybe"]),            "models.tsv:4: image: `maybe` is not valid; expected yes or no"),
        ("no model",   table(&["dialect=a"]),                                "models.tsv:4: model: `` is not valid; expected a name"),
        ("no dialect", table(&["model=b"]),                                  "models.tsv:4: dialect: it is empty"),
    ];
    for (name, text, expected) in cases {
        let error = user(&text).expect_err(name).to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
}
