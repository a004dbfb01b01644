//! A TOML file of settings: `config.toml` or a profile. Edits are made in place, to
//! keep comments, order and unrelated content.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use aside_core::settings::{SettingChange, SettingKey, SettingValue};
use aside_engine::tools::PermissionRules;
use serde_json::Value as Json;
use toml_edit::{Array, Document, InlineTable, Item, Table, TableLike, value};

use crate::atomic;
use crate::confinement::{self, ToolsTable};
use crate::error::HintedError;
use crate::mcp_tables::{self, McpTable};
use crate::permission_table;
use crate::provider_tables::{self, ProviderTable};
use crate::serve_table::{self, ServeTable};

const SETTINGS: &str = "settings";

/// Which file it is, and so which top-level keys it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsFileKind {
    Config,
    Profile,
}

impl SettingsFileKind {
    fn allowed_keys(self) -> &'static [&'static str] {
        match self {
            SettingsFileKind::Config => {
                &["model", "profile", "providers", "mcp", "permissions", "tools", "keys", "serve", SETTINGS]
            }
            SettingsFileKind::Profile => &["model", SETTINGS],
        }
    }
}

#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    kind: SettingsFileKind,
    text: String,
}

/// The checked contents of a file.
#[derive(Debug, Default)]
pub struct Contents {
    pub model: Option<String>,
    pub profile: Option<String>,
    pub changes: Vec<SettingChange>,
}

/// One line of the `[keys]` table: an action and its keys, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    pub action: String,
    pub keys: Vec<String>,
    /// The file and line, for errors.
    pub location: String,
}

/// A value below `[settings]`. Its name may be quoted, dotted or nested.
struct SettingEntry<'a> {
    path: Vec<&'a str>,
    item: &'a Item,
    /// Its position in the text.
    span: Range<usize>,
    /// The outermost inline table around it, if it has no line of its own, and
    /// that table's depth in the path.
    braces: Option<(&'a InlineTable, usize)>,
}

/// One replacement in the text. The text is edited directly, because a TOML
/// printer would reorder it.
struct TextEdit {
    span: Range<usize>,
    text: String,
}

impl SettingEntry<'_> {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

impl SettingsFile {
    /// Reads the file. A missing file is an empty one.
    pub fn read(path: PathBuf, kind: SettingsFileKind) -> Result<SettingsFile, HintedError> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(HintedError::new(format!("cannot read {}: {error}", path.display()))),
        };
        Ok(SettingsFile { path, kind, text })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds a comment at the top of an empty file.
    pub(crate) fn add_header_comment(&mut self, comment: &str) {
        if self.is_empty() {
            self.text = format!("# {comment}\n\n");
        }
    }

    /// The contents of the file, or the first error in it.
    pub fn contents(&self) -> Result<Contents, HintedError> {
        let document = self.parse()?;
        let root = document.as_table();
        for (name, _) in root.iter() {
            if !self.kind.allowed_keys().contains(&name) {
                let hint = format!("the keys are: {}", self.kind.allowed_keys().join(", "));
                return Err(self.error_at(key_span(root, name), name, "unknown key").hint(hint));
            }
        }
        let mut changes: Vec<SettingChange> = Vec::new();
        for entry in self.entries(root)? {
            let change = self.change(&entry)?;
            if changes.iter().any(|other| other.key() == change.key()) {
                let problem = format!("{} is set twice", change.key());
                return Err(self
                    .error_at(entry.span.clone(), &entry.name(), &problem)
                    .hint("keep one of the two lines"));
            }
            changes.push(change);
        }
        Ok(Contents { model: self.text_at(root, "model")?, profile: self.text_at(root, "profile")?, changes })
    }

    /// Changes a setting in place, or adds it at the end of `[settings]`.
    pub fn set(&mut self, key: SettingKey, wanted: &SettingValue) -> Result<(), HintedError> {
        // Remove the same setting under its aliases, else it would be set twice.
        self.remove(|name| name != key.name() && name.parse() == Ok(key))?;
        let document = self.parse()?;
        let root = document.as_table();
        let entries = self.entries(root)?;
        let existing = entries.iter().find(|entry| entry.name() == key.name()).and_then(|entry| entry.item.span());
        let edit = match existing {
            Some(span) => TextEdit { span, text: bare(to_toml(wanted)) },
            None => self.addition(root, key, to_toml(wanted)),
        };
        self.apply(edit);
        Ok(())
    }

    /// The edit that adds a new setting, in the style of the existing `settings`.
    fn addition(&self, root: &Table, key: SettingKey, wanted: Item) -> TextEdit {
        let settings = root.get(SETTINGS);
        if let Some(Item::Value(toml_edit::Value::InlineTable(members))) = settings {
            let mut members = members.clone();
            TableLike::insert(&mut members, key.name(), wanted);
            return TextEdit { span: members.span().unwrap_or_default(), text: members.to_string().trim().to_owned() };
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

    /// Removes a setting under all its names. Returns true if it was set.
    pub fn unset(&mut self, key: SettingKey) -> Result<bool, HintedError> {
        self.remove(|name| name.parse() == Ok(key))
    }

    /// Removes the key with exactly this name below `[settings]`.
    pub fn unset_name(&mut self, wanted: &str) -> Result<bool, HintedError> {
        self.remove(|name| name == wanted)
    }

    /// Sets `model` or `profile`, or removes it if `text` is none.
    pub fn set_text(&mut self, name: &str, text: Option<&str>) -> Result<bool, HintedError> {
        let document = self.parse()?;
        let root = document.as_table();
        let existing = root.get_key_value(name);
        let edit = match (text, existing) {
            (None, None) => return Ok(false),
            (None, Some((key, item))) => self.whole_lines(&span_of(key.span(), item.span())),
            (Some(text), Some((_, item))) => {
                TextEdit { span: item.span().unwrap_or_default(), text: bare(value(text)) }
            }
            (Some(text), None) => self.line_at_the_top(root, &format!("{name} = {}", bare(value(text)))),
        };
        self.apply(edit);
        Ok(true)
    }

    /// Inserts a line before the first table.
    fn line_at_the_top(&self, root: &Table, line: &str) -> TextEdit {
        if let Some(end) = end_of_lines(root) {
            return self.line_below(end, line);
        }
        if root.is_empty() {
            return self.line_below(self.text.len(), line);
        }
        // A comment directly above the first table belongs to that table. One
        // followed by a blank line belongs to the file and stays at the top.
        let is_above = |line: &&str| !line.trim_start().starts_with('[');
        let above: usize = self.text.split_inclusive('\n').take_while(is_above).map(str::len).sum();
        let at = self.text.get(..above).and_then(|head| head.rfind("\n\n")).map_or(0, |at| at + 2);
        TextEdit { span: at..at, text: format!("{line}\n\n") }
    }

    /// Checks the whole file again and writes it atomically.
    pub fn write(&self) -> Result<(), HintedError> {
        self.contents()?;
        atomic::write(&self.path, &self.text).map_err(|error| {
            HintedError::new(format!("cannot write {}: {error}", self.path.display())).hint("nothing was changed")
        })
    }

    /// The `[providers]` tables, or the first error in them.
    pub fn providers(&self) -> Result<Vec<ProviderTable>, HintedError> {
        provider_tables::read(self, self.parse()?.as_table())
    }

    /// The `[mcp]` tables, or the first error in them.
    pub fn mcp(&self) -> Result<Vec<McpTable>, HintedError> {
        mcp_tables::read(self, self.parse()?.as_table())
    }

    /// The `[permissions]` table, or the first error in it.
    pub fn permissions(&self, servers: &[McpTable]) -> Result<PermissionRules, HintedError> {
        permission_table::read(self, self.parse()?.as_table(), servers)
    }

    /// The `[tools]` table, or the first error in it.
    pub fn tools(&self) -> Result<ToolsTable, HintedError> {
        confinement::read(self, self.parse()?.as_table())
    }

    /// The `[serve]` table.
    pub fn serve(&self) -> Result<ServeTable, HintedError> {
        serve_table::read(self, self.parse()?.as_table())
    }

    /// The `[keys]` table. The front end that has these keys checks their names.
    pub fn keys(&self) -> Result<Vec<KeyEntry>, HintedError> {
        let document = self.parse()?;
        let mut entries = Vec::new();
        let Some(item) = document.get("keys") else { return Ok(entries) };
        let table = item.as_table_like().ok_or_else(|| self.error_at_key("keys", "expected a table"))?;
        let span = |item: &Item| item.span().unwrap_or_default();
        for (name, item) in table.iter() {
            let one = item.as_str().map(|word| vec![word.to_owned()]);
            let word = |value: &toml_edit::Value| value.as_str().map(str::to_owned);
            let words = one.or_else(|| item.as_array()?.iter().map(word).collect());
            let Some(keys) = words else {
                let problem = "expected a key, or a list of them";
                return Err(self
                    .error_at(span(item), &format!("keys.{name}"), problem)
                    .hint("\"ctrl+t\", or [] for none"));
            };
            entries.push(KeyEntry { action: name.to_owned(), keys, location: self.location(span(item).start) });
        }
        Ok(entries)
    }

    /// An error in the file, with its line and key.
    pub(crate) fn error_at(&self, span: Range<usize>, key: &str, problem: &str) -> HintedError {
        HintedError::new(format!("{}: {key}: {problem}", self.location(span.start)))
    }

    /// File and line of a byte offset.
    pub fn location(&self, at: usize) -> String {
        let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// An error at a top-level key.
    pub(crate) fn error_at_key(&self, key: &str, problem: &str) -> HintedError {
        let span = self.parse().map(|document| key_span(document.as_table(), key)).unwrap_or_default();
        self.error_at(span, key, problem)
    }

    fn parse(&self) -> Result<Document<&str>, HintedError> {
        Document::parse(self.text.as_str()).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let start = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
            let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let key = line.split('=').next().unwrap_or_default().trim();
            self.error_at(span, key, &error.message().trim().replace('\n', "; ")).hint("fix the line; it is not TOML")
        })
    }

    fn entries<'a>(&self, root: &'a Table) -> Result<Vec<SettingEntry<'a>>, HintedError> {
        let mut entries = Vec::new();
        match root.get(SETTINGS) {
            None => (),
            Some(item) => match item.as_table_like() {
                Some(table) => gather(table, item.as_inline_table().map(|braces| (braces, 0)), &[], &mut entries),
                None => return Err(self.error_at(key_span(root, SETTINGS), SETTINGS, "expected a table")),
            },
        }
        Ok(entries)
    }

    fn change(&self, entry: &SettingEntry<'_>) -> Result<SettingChange, HintedError> {
        let name = entry.name();
        let Some(given) = to_json(entry.item) else {
            let problem = format!("`{}` is not a valid setting value", entry.item.to_string().trim());
            return Err(self.error_at(entry.span.clone(), &name, &problem));
        };
        SettingChange::accept(&name, &given)
            .map_err(|error| self.error_at(entry.span.clone(), &name, &error.what()).hint(error.hint()))
    }

    fn text_at(&self, root: &Table, name: &str) -> Result<Option<String>, HintedError> {
        let Some(item) = root.get(name) else { return Ok(None) };
        match item.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.error_at(key_span(root, name), name, "expected text in quotes")),
        }
    }

    /// Removes matching settings one at a time, since each removal shifts the text
    /// after it.
    fn remove(&mut self, fits: impl Fn(&str) -> bool) -> Result<bool, HintedError> {
        let mut removed = false;
        loop {
            let document = self.parse()?;
            let root = document.as_table();
            let entries = self.entries(root)?;
            let Some(entry) = entries.iter().find(|entry| fits(&entry.name())) else { return Ok(removed) };
            let edit = match entry.braces {
                None => self.whole_lines(&entry.span),
                Some((members, depth)) => without(members, entry.path.get(depth..).unwrap_or_default()),
            };
            self.apply(edit);
            removed = true;
        }
    }

    fn apply(&mut self, edit: TextEdit) {
        self.text.replace_range(edit.span, &edit.text);
    }

    /// Deletes whole lines. A comment above them stays, since it may also describe
    /// the lines below.
    fn whole_lines(&self, span: &Range<usize>) -> TextEdit {
        let start = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        TextEdit { span: start..self.end_of_line(span.end), text: String::new() }
    }

    /// Inserts a line below the one at a byte offset.
    fn line_below(&self, at: usize, line: &str) -> TextEdit {
        let at = self.end_of_line(at);
        let is_cut_off = self.text.get(..at).is_some_and(|before| !before.is_empty() && !before.ends_with('\n'));
        TextEdit { span: at..at, text: format!("{}{line}\n", if is_cut_off { "\n" } else { "" }) }
    }

    fn end_of_line(&self, at: usize) -> usize {
        // Without a final newline, the line ends with the text.
        let rest = self.text.get(at..).and_then(|rest| rest.find('\n'));
        rest.map_or(self.text.len(), |length| at + length + 1)
    }
}

fn gather<'a>(
    table: &'a dyn TableLike,
    braces: Option<(&'a InlineTable, usize)>,
    above: &[&'a str],
    entries: &mut Vec<SettingEntry<'a>>,
) {
    for (name, item) in table.iter() {
        let path = [above, &[name]].concat();
        match item.as_table_like() {
            Some(inner) => {
                let braces = braces.or_else(|| item.as_inline_table().map(|own| (own, path.len())));
                gather(inner, braces, &path, entries);
            }
            None => {
                let key = table.key(name).and_then(toml_edit::Key::span);
                entries.push(SettingEntry { path, item, span: span_of(key, item.span()), braces });
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

/// The end of the last line below a table's own header.
fn end_of_lines(table: &Table) -> Option<usize> {
    let end = |item: &Item| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(table) if table.is_dotted() => end_of_lines(table),
        Item::Table(_) | Item::ArrayOfTables(_) | Item::None => None,
    };
    table.iter().filter_map(|(_, item)| end(item)).max()
}

/// Rewrites an inline table without the member at a path.
fn without(members: &InlineTable, path: &[&str]) -> TextEdit {
    let mut members = members.clone();
    if let Some((last, above)) = path.split_last() {
        let mut table: Option<&mut dyn TableLike> = Some(&mut members);
        for name in above {
            table = table.and_then(|table| table.get_mut(name)).and_then(Item::as_table_like_mut);
        }
        drop(table.and_then(|table| table.remove(last)));
    }
    TextEdit { span: members.span().unwrap_or_default(), text: members.to_string().trim().to_owned() }
}

/// A value as TOML, without leading space.
fn bare(item: Item) -> String {
    item.to_string().trim().to_owned()
}

fn to_toml(wanted: &SettingValue) -> Item {
    match wanted {
        SettingValue::Bool(flag) => value(*flag),
        SettingValue::Choice(word) => value(*word),
        // The registry accepts only counts that fit into an i64.
        SettingValue::Count(count) => value(i64::try_from(*count).unwrap_or(i64::MAX)),
        SettingValue::Number(number) => value(*number),
        SettingValue::Text(text) => value(text),
        SettingValue::List(items) => value(items.iter().collect::<Array>()),
    }
}

/// None for a value that JSON cannot represent.
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
