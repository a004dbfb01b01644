//! From files to dialects.
//!
//! Of each built-in file only the head is read at first, and its tables when
//! somebody asks for its rules: they are right, a test reads them all. Where a user
//! has files too everything is read at once, so that a mistake is told before it
//! matters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use super::access::AccessTable;
use super::catalogue::{Answers, Catalogue, ErrorsFile};
use super::error::{self, DialectError};
use super::file::{DialectFile, Known, Rules, TagsFile};
use super::matrix::MatrixFile;
use super::{Body, Dialect, Dialects, Source, builtin};
use crate::protocol::Protocol;

type Read<T> = Result<T, DialectError>;
type Reader<T> = Box<dyn FnOnce() -> Read<T> + Send>;

/// Something in the files that is read when it is first asked for.
pub(super) struct Late<T>(Arc<LazyLock<Read<T>, Reader<T>>>);

impl<T> Late<T> {
    fn new(read: impl FnOnce() -> Read<T> + Send + 'static) -> Late<T> {
        Late(Arc::new(LazyLock::new(Box::new(read))))
    }

    fn read(&self) -> Read<&T> {
        let read: &Read<T> = &self.0;
        read.as_ref().map_err(Clone::clone)
    }
}

impl<T> Deref for Late<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "compiled in and read by a test, else read when it was loaded")]
    fn deref(&self) -> &T {
        self.read().expect("files that were checked")
    }
}

impl<T> Clone for Late<T> {
    fn clone(&self) -> Late<T> {
        Late(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Late<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Dialects {
    /// The built-in dialects alone.
    pub fn builtin() -> Result<Dialects, DialectError> {
        Dialects::with_user_files(&[])
    }

    /// The built-in dialects with the user's files merged over them, key by
    /// key. A new id is a new dialect; `tags.toml`, `matrix.toml` and
    /// `errors.toml` add or replace what dialects choose from.
    pub fn with_user_files(user: &[Source<'_>]) -> Result<Dialects, DialectError> {
        let mut files = Files::default();
        for source in builtin::FILES {
            files.add(Text { path: source.path.into(), text: source.text.into() }, head(source.text))?;
        }
        for source in user {
            let text = Text { path: source.path.to_owned().into(), text: source.text.to_owned().into() };
            files.add(text, source.text)?;
        }
        let dialects = files.dialects();
        if !user.is_empty() {
            files.check(&dialects)?;
        }
        Ok(dialects)
    }
}

/// What stands before the first table: who it is and where to find it.
fn head(text: &str) -> &str {
    let end = if text.starts_with('[') { Some(0) } else { text.find("\n[").map(|line| line + 1) };
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// A file, for as long as it may still be read.
#[derive(Debug, Clone)]
struct Text {
    path: Cow<'static, str>,
    text: Cow<'static, str>,
}

impl Text {
    fn source(&self) -> Source<'_> {
        Source { path: &self.path, text: &self.text }
    }
}

/// All files, by what they are about.
#[derive(Default)]
struct Files {
    tags: Vec<Text>,
    matrices: Vec<Text>,
    errors: Vec<Text>,
    dialects: BTreeMap<String, Pile>,
}

/// A dialect's own file with the user's on top.
#[derive(Default)]
struct Pile {
    texts: Vec<Text>,
    /// Laid over one another as far as they were read.
    head: DialectFile,
}

impl Pile {
    fn protocol(&self) -> Protocol {
        self.head.protocol.unwrap_or(Protocol::OpenaiChat)
    }
}

impl Files {
    /// Takes a file. Of a dialect's, this much is read now.
    fn add(&mut self, text: Text, now: &str) -> Read<()> {
        match text.path.rsplit('/').next() {
            Some(builtin::TAGS) => self.tags.push(text),
            Some(builtin::MATRIX) => self.matrices.push(text),
            Some(builtin::ERRORS) => self.errors.push(text),
            _ => {
                let file: DialectFile = error::parse(&Source { path: &text.path, text: now })?;
                let pile = self.dialects.entry(file.id.clone()).or_default();
                if pile.texts.is_empty() && file.protocol.is_none() {
                    let problem = "a new dialect needs a protocol".to_owned();
                    return Err(DialectError::at(&text.source(), 0, "protocol", problem));
                }
                pile.head.lay_over(file);
                pile.texts.push(text);
            }
        }
        Ok(())
    }

    fn dialects(&self) -> Dialects {
        let (tags, matrices, errors) = (self.tags.clone(), self.matrices.clone(), self.errors.clone());
        let known = Late::new(move || known(&tags, &matrices));
        let catalogue = Late::new(move || catalogue(&errors));
        let generic = |pile: &&Pile| pile.head.generic;
        let generics: BTreeMap<Protocol, Generic> = self
            .dialects
            .values()
            .filter(generic)
            .map(|pile| (pile.protocol(), Generic::new(pile, catalogue.clone())))
            .collect();
        let by_id = self.dialects.iter().filter_map(|(id, pile)| {
            let generic = generics.get(&pile.protocol())?;
            Some((id.clone(), generic.build(pile, known.clone())))
        });
        Dialects { by_id: by_id.collect(), known, catalogue }
    }

    /// Reads everything that was left for later.
    fn check(&self, dialects: &Dialects) -> Read<()> {
        dialects.known.read()?;
        let catalogue = dialects.catalogue.read()?;
        for (id, pile) in &self.dialects {
            let Some(dialect) = dialects.get(id) else { continue };
            let Body { base, models } = dialect.body.read()?;
            let mut listed = models.iter().map(|(_, rules)| rules).chain([base]).flat_map(|rules| &rules.errors);
            if let Some(id) = listed.find(|id| !catalogue.rows.iter().any(|row| row.id == **id))
                && let Some(text) = pile.texts.last()
            {
                return Err(DialectError::in_key(&text.source(), "errors", format!("unknown error `{id}`")));
            }
        }
        Ok(())
    }
}

/// What the generic dialect of a protocol says.
struct Generic {
    rules: Late<Rules>,
    access: AccessTable,
    answers: Late<Answers>,
}

impl Generic {
    fn new(pile: &Pile, catalogue: Late<Catalogue>) -> Generic {
        let (texts, protocol) = (pile.texts.clone(), pile.protocol());
        let rules = Late::new(move || Ok(merged(&texts)?.rules));
        let listed = rules.clone();
        let answers = Late::new(move || Ok(Answers::of(protocol, catalogue.read()?, listed.read()?.errors())));
        Generic { rules, access: pile.head.access.of_the_protocol(), answers }
    }

    /// A dialect says what its file says, else what this one says.
    fn build(&self, pile: &Pile, known: Late<Known>) -> Dialect {
        let DialectFile { id, base_url, api_key_env, access: own, generic, unknown, makes, hosts, .. } =
            pile.head.clone();
        let mut access = self.access.clone();
        access.lay_over(own);
        let (texts, protocol, base) = (pile.texts.clone(), pile.protocol(), self.rules.clone());
        Dialect {
            id,
            protocol,
            base_url,
            api_key_env,
            access: access.settle(),
            unknown,
            generic,
            makes,
            hosts,
            body: Late::new(move || body(&texts, protocol, base.read()?.clone(), known.read()?)),
            answers: self.answers.clone(),
        }
    }
}

fn known(tags: &[Text], matrices: &[Text]) -> Read<Known> {
    let mut known = Known::default();
    for text in tags {
        let file: TagsFile = error::parse(&text.source())?;
        known.pairs.extend(file.pair.into_iter().map(|pair| (pair.id.clone(), pair.into())));
    }
    for text in matrices {
        error::parse::<MatrixFile>(&text.source())?.lay_over(&mut known.matrices);
    }
    Ok(known)
}

fn catalogue(errors: &[Text]) -> Read<Catalogue> {
    let mut known = Catalogue::default();
    for text in errors {
        error::parse::<ErrorsFile>(&text.source())?.lay_over(&mut known);
    }
    Ok(known)
}

fn merged(texts: &[Text]) -> Read<DialectFile> {
    let mut whole = DialectFile::default();
    for text in texts {
        whole.lay_over(error::parse(&text.source())?);
    }
    Ok(whole)
}

fn body(texts: &[Text], protocol: Protocol, mut base: Rules, known: &Known) -> Read<Body> {
    let DialectFile { rules, models, .. } = merged(texts)?;
    let last = texts.last().map_or(Source { path: "", text: "" }, Text::source);
    let settle = |rules: Rules| rules.settle(protocol, known, &last);
    base.lay_over(rules);
    let models = models.into_iter().map(|(pattern, over)| {
        let mut rules = base.clone();
        rules.lay_over(over);
        settle(rules).map(|rules| (pattern, rules))
    });
    Ok(Body { models: models.collect::<Result<_, _>>()?, base: settle(base)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands behind the head must be tables alone.
    #[test]
    fn the_head_of_a_built_in_file_says_all_that_its_tables_do_not() {
        let told = |path, text| {
            let file: DialectFile = error::parse(&Source { path, text }).expect("valid");
            DialectFile { rules: Rules::default(), models: Vec::new(), ..file }
        };
        let dialects = builtin::FILES.iter().filter(|source| head(source.text).contains("\nid = "));
        let mut read = 0;
        for Source { path, text } in dialects {
            assert_eq!(format!("{:?}", told(path, head(text))), format!("{:?}", told(path, text)));
            read += 1;
        }
        assert_eq!(read, builtin::FILES.len() - 3, "all but tags, matrix and errors");
    }

    #[test]
    fn nothing_but_heads_is_read_before_it_is_asked_for() {
        let dialects = Dialects::builtin().expect("valid");
        let is_read = |dialect: &Dialect| LazyLock::get(&dialect.body.0).is_some();
        let read = || dialects.iter().filter(|dialect| is_read(dialect)).map(|dialect| dialect.id.as_str());
        assert_eq!(read().count(), 0);
        dialects.get("kimi").expect("known").rules(None);
        assert_eq!(read().collect::<Vec<_>>(), ["kimi"]);
        assert!(LazyLock::get(&dialects.catalogue.0).is_none());
    }
}
