//! Reads the heads of built-in files. There are many of them at every start, and a whole TOML parser takes ten times as
//! long. A head in any other form than the usual one is left to that parser; a test compares the two.

use std::collections::BTreeMap;

use super::access::{AccessTable, Auth};
use super::file::DialectFile;

/// The head of a file, without its errors. None if it is not in the usual form: keys with strings without escapes,
/// numbers, flags, lists of strings and inline tables of strings or lists.
pub(super) fn read(head: &str) -> Option<DialectFile> {
    let mut cursor = Cursor(head);
    let mut file = DialectFile::default();
    let mut access = AccessTable::default();
    while let Some(key) = cursor.key()? {
        match (key, cursor.value()?) {
            ("id", HeadValue::Text(id)) => file.id = id.to_owned(),
            ("protocol", HeadValue::Text(word)) => file.protocol = Some(word.parse().ok()?),
            ("base_url", HeadValue::Text(url)) => file.base_url = Some(url.to_owned()),
            ("api_key_env", HeadValue::Text(name)) => file.api_key_env = Some(name.to_owned()),
            ("models_of", HeadValue::Text(id)) => file.models_of = Some(id.to_owned()),
            ("like", HeadValue::Text(id)) => file.like = Some(id.to_owned()),
            ("default_model", HeadValue::Text(model)) => access.default_model = Some(model.to_owned()),
            ("auth", HeadValue::Text(word)) => access.auth = Some(Auth::from_word(word)?),
            ("order", HeadValue::Number(number)) => access.order = Some(number),
            ("generic", HeadValue::Flag(flag)) => file.generic = flag,
            ("unknown", HeadValue::Flag(flag)) => file.unknown = flag,
            ("makes", HeadValue::List(patterns)) => file.makes = owned(&patterns),
            ("hosts", HeadValue::List(patterns)) => file.hosts = owned(&patterns),
            ("path", HeadValue::Text(path)) => access.path = Some(path.to_owned()),
            ("api_key_cmd", HeadValue::Text(command)) => access.api_key_cmd = Some(command.to_owned()),
            ("api_key_ttl", HeadValue::Text(ttl)) => access.api_key_ttl = Some(ttl.to_owned()),
            ("no_model_in_body", HeadValue::Flag(flag)) => access.no_model_in_body = Some(flag),
            ("headers", HeadValue::Table(pairs)) => access.headers = Some(texts(pairs)),
            ("verbs", HeadValue::Table(pairs)) => access.verbs = Some(texts(pairs)),
            ("region_urls", HeadValue::Table(pairs)) => access.region_urls = Some(texts(pairs)),
            ("body", HeadValue::Table(pairs)) => access.body = Some(texts(pairs)),
            ("vars_env", HeadValue::Lists(pairs)) => {
                let lists = pairs.into_iter().map(|(name, words)| (name.to_owned(), owned(&words)));
                access.vars_env = Some(lists.collect());
            }
            // Part of the rules, which are parsed when they are first used.
            ("errors", HeadValue::List(_)) => (),
            _ => return None,
        }
    }
    file.access = access;
    (!file.id.is_empty()).then_some(file)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn texts(pairs: Vec<(&str, &str)>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

enum HeadValue<'a> {
    Text(&'a str),
    Number(u32),
    Flag(bool),
    List(Vec<&'a str>),
    Table(Vec<(&'a str, &'a str)>),
    Lists(Vec<(&'a str, Vec<&'a str>)>),
}

/// What is left of the head.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        loop {
            self.0 = self.0.trim_start();
            let Some(comment) = self.0.strip_prefix('#') else { return };
            self.0 = comment.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn take(&mut self, token: char) -> Option<()> {
        self.skip_space();
        self.0 = self.0.strip_prefix(token)?;
        Some(())
    }

    /// A bare word: a key, a number or a flag.
    fn word(&mut self) -> Option<&'a str> {
        let end = self.0.find(|one: char| !(one.is_ascii_alphanumeric() || one == '_' || one == '-'));
        let (word, rest) = self.0.split_at_checked(end.unwrap_or(self.0.len())).filter(|(word, _)| !word.is_empty())?;
        self.0 = rest;
        Some(word)
    }

    /// The next key, after which its value follows; the inner option is none at the end.
    fn key(&mut self) -> Option<Option<&'a str>> {
        self.skip_space();
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.word()?;
        self.take('=')?;
        Some(Some(key))
    }

    fn string(&mut self) -> Option<&'a str> {
        self.take('"')?;
        let (text, rest) = self.0.split_once('"')?;
        self.0 = rest;
        (!text.contains(['\\', '\n'])).then_some(text)
    }

    fn value(&mut self) -> Option<HeadValue<'a>> {
        self.skip_space();
        match self.0.chars().next()? {
            '"' => self.string().map(HeadValue::Text),
            '[' => self.list().map(HeadValue::List),
            '{' => {
                let start = self.0;
                self.table(Cursor::string).map(HeadValue::Table).or_else(|| {
                    self.0 = start;
                    self.table(Cursor::list).map(HeadValue::Lists)
                })
            }
            _ => match self.word()? {
                "true" => Some(HeadValue::Flag(true)),
                "false" => Some(HeadValue::Flag(false)),
                number => number.parse().ok().map(HeadValue::Number),
            },
        }
    }

    fn list(&mut self) -> Option<Vec<&'a str>> {
        self.take('[')?;
        let mut words = Vec::new();
        loop {
            if self.take(']').is_some() {
                return Some(words);
            }
            words.push(self.string()?);
            if self.take(',').is_none() {
                return self.take(']').map(|()| words);
            }
        }
    }

    fn table<T>(&mut self, value: impl Fn(&mut Cursor<'a>) -> Option<T>) -> Option<Vec<(&'a str, T)>> {
        self.take('{')?;
        let mut pairs = Vec::new();
        loop {
            if self.take('}').is_some() {
                return Some(pairs);
            }
            let key = self.key()??;
            pairs.push((key, value(self)?));
            if self.take(',').is_none() {
                return self.take('}').map(|()| pairs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{builtin, error, load};
    use super::*;
    use crate::dialect::DialectSource;

    #[test]
    fn every_built_in_head_is_read_as_the_toml_parser_reads_it() {
        let mut compared = 0;
        for source in builtin::FILES.iter().filter(|source| source.text.contains("\nid = ")) {
            let head = load::head_of(source.text);
            if !head.contains("\nprotocol = ") {
                continue;
            }
            let parsed: DialectFile = error::parse(&DialectSource { path: source.path, text: head }).expect("valid");
            let parsed = DialectFile { rules: Default::default(), ..parsed };
            let read = read(head).unwrap_or_else(|| panic!("{} is not in the usual form", source.path));
            assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{}", source.path);
            compared += 1;
        }
        assert_eq!(compared, builtin::FILES.len() - 4, "all but tags, matrix, errors and sentinels");
    }

    #[test]
    fn anything_unusual_is_left_to_the_toml_parser() {
        let unusual = [
            "",
            "id",
            "id =",
            "id = a",
            "id = \"a",
            "id = \"a\\\"\"",
            "id = \"a\"\nnew = 1",
            "id = \"a\"\norder = -1",
            "id = \"a\"\nmakes = [1]",
            "id = \"a\"\nmakes = [\"b\" \"c\"]",
            "id = \"a\"\nheaders = { a = 1 }",
            "id = \"a\"\n[ask]",
            "id = \"a\"\nauth = \"sword\"",
        ];
        for text in unusual {
            assert!(read(text).is_none(), "{text:?}");
        }
        let usual = "# c\nid = \"a\" # d\nmakes = [\"x\", # e\n \"y\",\n]\nheaders = { k = \"v\", }\n";
        assert_eq!(read(usual).map(|file| (file.id, file.makes.len())), Some(("a".to_owned(), 2)));
    }
}
