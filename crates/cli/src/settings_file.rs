//! A TOML file of settings: `config.toml` or a profile. It is edited in place,
//! so that comments, order and what others keep in it survive.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use aside_core::settings::{Change, Key, Value};
use aside_engine::tools::Rules;
use aside_tui::bindings::{Bindings, Refused};
use serde_json::Value as Json;
use toml_edit::{Array, Document, InlineTable, Item, Table, TableLike, value};

use crate::atomic;
use crate::confinement::{self, ToolsTable};
use crate::mcp_tables::{self, McpTable};
use crate::permission_table;
use crate::provider_tables::{self, ProviderTable};
use crate::report::Report;

const SETTINGS: &str = "settings";

/// Which file it is, hence what may stand at its top level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Config,
    Profile,
}

impl Shape {
    fn known(self) -> &'static [&'static str] {
        match self {
            Shape::Config => &["model", "profile", "providers", "mcp", "permissions", "tools", "keys", SETTINGS],
            Shape::Profile => &["model", SETTINGS],
        }
    }
}

#[derive(Debug)]
pub(crate) struct SettingsFile {
    path: PathBuf,
    shape: Shape,
    text: String,
}

/// What a file says, checked.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) model: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) changes: Vec<Change>,
}

/// A value below `[settings]`, whichever way its name is written there.
struct Leaf<'a> {
    path: Vec<&'a str>,
    item: &'a Item,
    /// Where it stands in the text.
    span: Range<usize>,
    /// The outermost braces it is within, if it has no line of its own, and
    /// how many parts of the path lead to them.
    braces: Option<(&'a InlineTable, usize)>,
}

/// One replacement in the text. The text is edited rather than printed anew,
/// since a printer has its own idea of order.
struct Edit {
    span: Range<usize>,
    text: String,
}

impl Leaf<'_> {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

impl SettingsFile {
    /// A file that is not there is an empty one.
    pub(crate) fn read(path: PathBuf, shape: Shape) -> Result<SettingsFile, Report> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Report::new(format!("cannot read {}: {error}", path.display()))),
        };
        Ok(SettingsFile { path, shape, text })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Says something at the top of a file that is still empty.
    pub(crate) fn begin_with(&mut self, comment: &str) {
        if self.is_empty() {
            self.text = format!("# {comment}\n\n");
        }
    }

    /// Everything the file says, or the first mistake in it.
    pub(crate) fn contents(&self) -> Result<Contents, Report> {
        let document = self.parse()?;
        let root = document.as_table();
        for (name, _) in root.iter() {
            if !self.shape.known().contains(&name) {
                let hint = format!("what may stand there: {}", self.shape.known().join(", "));
                return Err(self.mistake(key_span(root, name), name, "unknown key").hint(hint));
            }
        }
        let mut changes: Vec<Change> = Vec::new();
        for leaf in self.leaves(root)? {
            let change = self.change(&leaf)?;
            if changes.iter().any(|other| other.key() == change.key()) {
                let problem = format!("{} is said twice", change.key());
                return Err(self.mistake(leaf.span.clone(), &leaf.name(), &problem).hint("keep one of the two lines"));
            }
            changes.push(change);
        }
        Ok(Contents { model: self.text_at(root, "model")?, profile: self.text_at(root, "profile")?, changes })
    }

    /// Writes a setting where it stands, else at the end of `[settings]`.
    pub(crate) fn set(&mut self, key: Key, wanted: &Value) -> Result<(), Report> {
        // The same setting under other names would say it twice.
        self.remove(|name| name != key.name() && name.parse() == Ok(key))?;
        let document = self.parse()?;
        let root = document.as_table();
        let leaves = self.leaves(root)?;
        let standing = leaves.iter().find(|leaf| leaf.name() == key.name()).and_then(|leaf| leaf.item.span());
        let edit = match standing {
            Some(span) => Edit { span, text: bare(to_toml(wanted)) },
            None => self.addition(root, key, to_toml(wanted)),
        };
        self.apply(edit);
        Ok(())
    }

    /// Where a new setting goes, by the way `settings` is written.
    fn addition(&self, root: &Table, key: Key, wanted: Item) -> Edit {
        let settings = root.get(SETTINGS);
        if let Some(Item::Value(toml_edit::Value::InlineTable(members))) = settings {
            let mut members = members.clone();
            TableLike::insert(&mut members, key.name(), wanted);
            return Edit { span: members.span().unwrap_or_default(), text: members.to_string().trim().to_owned() };
        }
        let line = format!("{} = {}", toml_edit::Key::new(key.name()), bare(wanted));
        match settings.and_then(Item::as_table) {
            Some(table) if table.is_dotted() => {
                let end = end_of_lines(table).unwrap_or_default();
                self.line_below(end, &format!("{SETTINGS}.{line}"))
            }
            Some(table) if !table.is_implicit() => {
                let header = table.span().map_or(0, |span| span.start);
                self.line_below(end_of_lines(table).unwrap_or(header), &line)
            }
            Some(_) | None => {
                let gap = if self.text.is_empty() || self.text.ends_with("\n\n") { "" } else { "\n" };
                self.line_below(self.text.len(), &format!("{gap}[{SETTINGS}]\n{line}"))
            }
        }
    }

    /// Takes a setting out under every name it goes by; true if it was there.
    pub(crate) fn unset(&mut self, key: Key) -> Result<bool, Report> {
        self.remove(|name| name.parse() == Ok(key))
    }

    /// Takes out what stands below `[settings]` under just this name.
    pub(crate) fn unset_name(&mut self, wanted: &str) -> Result<bool, Report> {
        self.remove(|name| name == wanted)
    }

    /// Writes `model` or `profile`; with nothing, takes it out.
    pub(crate) fn set_text(&mut self, name: &str, text: Option<&str>) -> Result<bool, Report> {
        let document = self.parse()?;
        let root = document.as_table();
        let standing = root.get_key_value(name);
        let edit = match (text, standing) {
            (None, None) => return Ok(false),
            (None, Some((key, item))) => self.whole_lines(&span_of(key.span(), item.span())),
            (Some(text), Some((_, item))) => Edit { span: item.span().unwrap_or_default(), text: bare(value(text)) },
            (Some(text), None) => self.line_at_the_top(root, &format!("{name} = {}", bare(value(text)))),
        };
        self.apply(edit);
        Ok(true)
    }

    /// A line that stands before every table.
    fn line_at_the_top(&self, root: &Table, line: &str) -> Edit {
        if let Some(end) = end_of_lines(root) {
            return self.line_below(end, line);
        }
        if root.is_empty() {
            return self.line_below(self.text.len(), line);
        }
        // The comment above the first table is about that table, unless a blank
        // line parts them: then it is about the file, and stays at the top.
        let is_above = |line: &&str| !line.trim_start().starts_with('[');
        let above: usize = self.text.split_inclusive('\n').take_while(is_above).map(str::len).sum();
        let at = self.text.get(..above).and_then(|head| head.rfind("\n\n")).map_or(0, |at| at + 2);
        Edit { span: at..at, text: format!("{line}\n\n") }
    }

    /// Checks all of it once more and writes it whole or not at all.
    pub(crate) fn write(&self) -> Result<(), Report> {
        self.contents()?;
        atomic::write(&self.path, &self.text).map_err(|error| {
            Report::new(format!("cannot write {}: {error}", self.path.display())).hint("nothing was changed")
        })
    }

    /// The user's own providers, or the first mistake in them.
    pub(crate) fn providers(&self) -> Result<Vec<ProviderTable>, Report> {
        provider_tables::read(self, self.parse()?.as_table())
    }

    /// The MCP servers, or the first mistake in them.
    pub(crate) fn mcp(&self) -> Result<Vec<McpTable>, Report> {
        mcp_tables::read(self, self.parse()?.as_table())
    }

    /// What tools may do without being asked, or the first mistake in it.
    pub(crate) fn permissions(&self, servers: &[McpTable]) -> Result<Rules, Report> {
        permission_table::read(self, self.parse()?.as_table(), servers)
    }

    /// What tools start things with, or the first mistake in it.
    pub(crate) fn tools(&self) -> Result<ToolsTable, Report> {
        confinement::read(self, self.parse()?.as_table())
    }

    /// Which key does what, or the first mistake in it.
    pub(crate) fn keys(&self) -> Result<Bindings, Report> {
        let document = self.parse()?;
        let mut bindings = Bindings::default();
        let Some(item) = document.get("keys") else { return Ok(bindings) };
        let table = item.as_table_like().ok_or_else(|| self.mistake_at("keys", "expected a table"))?;
        let span = |item: &Item| item.span().unwrap_or_default();
        let mistake = |name: &str, item: &Item, refused: Refused| {
            self.mistake(span(item), &format!("keys.{name}"), &refused.what).hint(refused.hint)
        };
        for (name, item) in table.iter() {
            let one = item.as_str().map(|word| vec![word]);
            let words = one.or_else(|| item.as_array()?.iter().map(toml_edit::Value::as_str).collect());
            let Some(words) = words else {
                let problem = "expected a key, or a list of them";
                return Err(self
                    .mistake(span(item), &format!("keys.{name}"), problem)
                    .hint("\"ctrl+t\", or [] for none"));
            };
            bindings.bind(name, &words).map_err(|refused| mistake(name, item, refused))?;
        }
        for (name, item) in table.iter() {
            if let Some(refused) = bindings.conflict(name) {
                return Err(mistake(name, item, refused));
            }
        }
        Ok(bindings)
    }

    /// A mistake of the file: where, at which key, what.
    pub(crate) fn mistake(&self, span: Range<usize>, key: &str, problem: &str) -> Report {
        Report::new(format!("{}: {key}: {problem}", self.place(span.start)))
    }

    /// File and line of a byte.
    pub(crate) fn place(&self, at: usize) -> String {
        let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// A mistake at a key of the top level.
    pub(crate) fn mistake_at(&self, key: &str, problem: &str) -> Report {
        let span = self.parse().map(|document| key_span(document.as_table(), key)).unwrap_or_default();
        self.mistake(span, key, problem)
    }

    fn parse(&self) -> Result<Document<&str>, Report> {
        Document::parse(self.text.as_str()).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let start = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
            let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let key = line.split('=').next().unwrap_or_default().trim();
            self.mistake(span, key, &error.message().trim().replace('\n', "; ")).hint("mend the line; it is not TOML")
        })
    }

    fn leaves<'a>(&self, root: &'a Table) -> Result<Vec<Leaf<'a>>, Report> {
        let mut leaves = Vec::new();
        match root.get(SETTINGS) {
            None => (),
            Some(item) => match item.as_table_like() {
                Some(table) => gather(table, item.as_inline_table().map(|braces| (braces, 0)), &[], &mut leaves),
                None => return Err(self.mistake(key_span(root, SETTINGS), SETTINGS, "expected a table")),
            },
        }
        Ok(leaves)
    }

    fn change(&self, leaf: &Leaf<'_>) -> Result<Change, Report> {
        let name = leaf.name();
        let Some(given) = to_json(leaf.item) else {
            let problem = format!("`{}` is no value of a setting", leaf.item.to_string().trim());
            return Err(self.mistake(leaf.span.clone(), &name, &problem));
        };
        Change::accept(&name, &given)
            .map_err(|error| self.mistake(leaf.span.clone(), &name, &error.what()).hint(error.hint()))
    }

    fn text_at(&self, root: &Table, name: &str) -> Result<Option<String>, Report> {
        let Some(item) = root.get(name) else { return Ok(None) };
        match item.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.mistake(key_span(root, name), name, "expected text in quotes")),
        }
    }

    /// One at a time, since each removal moves what stands below it.
    fn remove(&mut self, fits: impl Fn(&str) -> bool) -> Result<bool, Report> {
        let mut removed = false;
        loop {
            let document = self.parse()?;
            let root = document.as_table();
            let leaves = self.leaves(root)?;
            let Some(leaf) = leaves.iter().find(|leaf| fits(&leaf.name())) else { return Ok(removed) };
            let edit = match leaf.braces {
                None => self.whole_lines(&leaf.span),
                Some((members, depth)) => without(members, leaf.path.get(depth..).unwrap_or_default()),
            };
            self.apply(edit);
            removed = true;
        }
    }

    fn apply(&mut self, edit: Edit) {
        self.text.replace_range(edit.span, &edit.text);
    }

    /// Nothing in place of whole lines. A comment above them stays: it may be
    /// about more than the line that goes.
    fn whole_lines(&self, span: &Range<usize>) -> Edit {
        let start = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        Edit { span: start..self.end_of_line(span.end), text: String::new() }
    }

    /// A new line below the one that holds a byte.
    fn line_below(&self, at: usize, line: &str) -> Edit {
        let at = self.end_of_line(at);
        let is_cut_off = self.text.get(..at).is_some_and(|before| !before.is_empty() && !before.ends_with('\n'));
        Edit { span: at..at, text: format!("{}{line}\n", if is_cut_off { "\n" } else { "" }) }
    }

    fn end_of_line(&self, at: usize) -> usize {
        // The end of the text may be the start of a line that is not there.
        let rest = self.text.get(at..).and_then(|rest| rest.find('\n'));
        rest.map_or(self.text.len(), |length| at + length + 1)
    }
}

fn gather<'a>(
    table: &'a dyn TableLike,
    braces: Option<(&'a InlineTable, usize)>,
    above: &[&'a str],
    leaves: &mut Vec<Leaf<'a>>,
) {
    for (name, item) in table.iter() {
        let path = [above, &[name]].concat();
        match item.as_table_like() {
            Some(inner) => {
                let braces = braces.or_else(|| item.as_inline_table().map(|own| (own, path.len())));
                gather(inner, braces, &path, leaves);
            }
            None => {
                let key = table.key(name).and_then(toml_edit::Key::span);
                leaves.push(Leaf { path, item, span: span_of(key, item.span()), braces });
            }
        }
    }
}

fn span_of(key: Option<Range<usize>>, item: Option<Range<usize>>) -> Range<usize> {
    let start = key.or_else(|| item.clone()).map_or(0, |span| span.start);
    start..item.map_or(start, |span| span.end)
}

fn key_span(table: &Table, name: &str) -> Range<usize> {
    table.key(name).and_then(toml_edit::Key::span).unwrap_or_default()
}

/// Where the last line of a table ends that stands below its own header.
fn end_of_lines(table: &Table) -> Option<usize> {
    let end = |item: &Item| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(table) if table.is_dotted() => end_of_lines(table),
        Item::Table(_) | Item::ArrayOfTables(_) | Item::None => None,
    };
    table.iter().filter_map(|(_, item)| end(item)).max()
}

/// The braces again, without the member at a path.
fn without(members: &InlineTable, path: &[&str]) -> Edit {
    let mut members = members.clone();
    if let Some((last, above)) = path.split_last() {
        let mut table: Option<&mut dyn TableLike> = Some(&mut members);
        for name in above {
            table = table.and_then(|table| table.get_mut(name)).and_then(Item::as_table_like_mut);
        }
        drop(table.and_then(|table| table.remove(last)));
    }
    Edit { span: members.span().unwrap_or_default(), text: members.to_string().trim().to_owned() }
}

/// A value as it is written, without the space before it.
fn bare(item: Item) -> String {
    item.to_string().trim().to_owned()
}

fn to_toml(wanted: &Value) -> Item {
    match wanted {
        Value::Bool(flag) => value(*flag),
        Value::Choice(word) => value(*word),
        // The registry admits no count that a signed number cannot hold.
        Value::Count(count) => value(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Number(number) => value(*number),
        Value::Text(text) => value(text),
        Value::List(items) => value(items.iter().collect::<Array>()),
    }
}

/// Nothing for what JSON has no word for.
fn to_json(item: &Item) -> Option<Json> {
    match item.as_value()? {
        toml_edit::Value::String(text) => Some(Json::from(text.value().as_str())),
        toml_edit::Value::Integer(number) => Some(Json::from(*number.value())),
        toml_edit::Value::Float(number) => serde_json::Number::from_f64(*number.value()).map(Json::Number),
        toml_edit::Value::Boolean(flag) => Some(Json::from(*flag.value())),
        toml_edit::Value::Array(items) => {
            let items = items.iter().map(|item| to_json(&Item::Value(item.clone())));
            items.collect::<Option<Vec<_>>>().map(Json::Array)
        }
        toml_edit::Value::Datetime(_) | toml_edit::Value::InlineTable(_) => None,
    }
}
