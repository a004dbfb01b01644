//! Loads dialects from files.
//!
//! Of a built-in file, only the head is parsed up front; its tables are parsed
//! when its rules are first used. A test parses all of them. If the user has
//! files, everything is parsed at once, so that errors are reported early.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use super::access::AccessTable;
use super::error::{self, DialectError};
use super::error_catalogue::{DialectErrors, ErrorCatalogue, ErrorsFile};
use super::file::{DialectFile, RuleTables, SharedTables, TagsFile};
use super::head;
use super::matrix::MatrixFile;
use super::sentinel::{Sentinels, SentinelsFile};
use super::{Dialect, DialectBody, DialectSource, Dialects, LimitLevel, builtin};
use crate::model_table::ModelTables;
use crate::protocol::Protocol;

type LoadResult<T> = Result<T, DialectError>;
type Loader<T> = Box<dyn FnOnce() -> LoadResult<T> + Send>;

/// A value that is parsed on first use.
pub(super) struct Lazy<T>(Arc<LazyLock<LoadResult<T>, Loader<T>>>);

impl<T> Lazy<T> {
    fn new(read: impl FnOnce() -> LoadResult<T> + Send + 'static) -> Lazy<T> {
        Lazy(Arc::new(LazyLock::new(Box::new(read))))
    }

    fn get(&self) -> LoadResult<&T> {
        let read: &LoadResult<T> = &self.0;
        read.as_ref().map_err(Clone::clone)
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "built-in files are parsed by a test, user files when they are loaded")]
    fn deref(&self) -> &T {
        self.get().expect("validated dialect files")
    }
}

impl<T> Clone for Lazy<T> {
    fn clone(&self) -> Lazy<T> {
        Lazy(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Dialects {
    /// The built-in dialects only.
    pub fn builtin() -> Result<Dialects, DialectError> {
        Dialects::with_user_files(&[])
    }

    /// The built-in dialects with the user's files merged over them, key by
    /// key. A new id adds a dialect; `tags.toml`, `matrix.toml`,
    /// `errors.toml` and `sentinels.toml` add to or replace shared tables.
    pub fn with_user_files(user: &[DialectSource<'_>]) -> Result<Dialects, DialectError> {
        let mut files = DialectFiles::default();
        for source in builtin::FILES {
            files.add(DialectText { path: source.path.into(), text: source.text.into() }, head_of(source.text))?;
        }
        for source in user {
            let text = DialectText { path: source.path.to_owned().into(), text: source.text.to_owned().into() };
            files.add(text, source.text)?;
        }
        let dialects = files.dialects();
        if !user.is_empty() {
            files.check(&dialects)?;
        }
        Ok(dialects)
    }
}

/// The part before the first table: the dialect's id, URL and access.
pub(super) fn head_of(text: &str) -> &str {
    let end = if text.starts_with('[') { Some(0) } else { text.find("\n[").map(|line| line + 1) };
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The text of a file, kept until it is parsed.
#[derive(Debug, Clone)]
struct DialectText {
    path: Cow<'static, str>,
    text: Cow<'static, str>,
}

impl DialectText {
    fn source(&self) -> DialectSource<'_> {
        DialectSource { path: &self.path, text: &self.text }
    }
}

/// All files, grouped by kind.
#[derive(Default)]
struct DialectFiles {
    tags: Vec<DialectText>,
    matrices: Vec<DialectText>,
    errors: Vec<DialectText>,
    sentinels: Vec<DialectText>,
    dialects: BTreeMap<String, DialectLayers>,
}

/// A dialect's built-in file and the user's files merged over it.
#[derive(Default)]
struct DialectLayers {
    texts: Vec<DialectText>,
    /// The merged heads of the files.
    head: DialectFile,
}

impl DialectLayers {
    fn protocol(&self) -> Protocol {
        self.head.protocol.unwrap_or(Protocol::OpenaiChat)
    }
}

impl DialectFiles {
    /// Adds a file. Of a dialect file, only `now` is parsed at this point.
    fn add(&mut self, text: DialectText, now: &str) -> LoadResult<()> {
        match text.path.rsplit('/').next() {
            Some(builtin::TAGS) => self.tags.push(text),
            Some(builtin::MATRIX) => self.matrices.push(text),
            Some(builtin::ERRORS) => self.errors.push(text),
            Some(builtin::SENTINELS) => self.sentinels.push(text),
            _ => {
                // Only heads are read this way; the user's files are parsed as a whole.
                let file = match head::read(now) {
                    Some(file) => file,
                    None => error::parse(&DialectSource { path: &text.path, text: now })?,
                };
                let layers = self.dialects.entry(file.id.clone()).or_default();
                if layers.texts.is_empty() && file.protocol.is_none() {
                    let problem = "a new dialect needs a protocol".to_owned();
                    return Err(DialectError::at(&text.source(), 0, "protocol", problem));
                }
                layers.head.merge(file);
                layers.texts.push(text);
            }
        }
        Ok(())
    }

    fn dialects(&self) -> Dialects {
        let (tags, matrices, errors) = (self.tags.clone(), self.matrices.clone(), self.errors.clone());
        let shared = Lazy::new(move || parse_shared(&tags, &matrices));
        let catalogue = Lazy::new(move || parse_catalogue(&errors));
        let sentinels = self.sentinels.clone();
        let sentinels = Lazy::new(move || parse_sentinels(&sentinels));
        let generic = |layers: &&DialectLayers| layers.head.generic;
        let generics: BTreeMap<Protocol, GenericDialect> = self
            .dialects
            .values()
            .filter(generic)
            .map(|layers| (layers.protocol(), GenericDialect::new(layers, catalogue.clone())))
            .collect();
        let by_id = self.dialects.iter().filter_map(|(id, layers)| {
            let generic = generics.get(&layers.protocol())?;
            Some((id.clone(), generic.build(layers, self.texts(layers), shared.clone())))
        });
        Dialects { by_id: by_id.collect(), shared, catalogue, sentinels, models: ModelTables::default() }
    }

    /// The files of a dialect, after those of the dialect that it is like.
    fn texts(&self, layers: &DialectLayers) -> Vec<DialectText> {
        let model = layers.head.like.as_ref().and_then(|id| self.dialects.get(id));
        model.into_iter().chain([layers]).flat_map(|layers| layers.texts.iter().cloned()).collect()
    }

    /// A dialect can be like another of the same protocol, which is like no third one.
    fn check_like(&self) -> LoadResult<()> {
        for layers in self.dialects.values() {
            let (Some(id), Some(text)) = (&layers.head.like, layers.texts.last()) else { continue };
            let model = self.dialects.get(id);
            let is_valid =
                model.is_some_and(|model| model.head.like.is_none() && model.protocol() == layers.protocol());
            if !is_valid {
                let problem = format!("`{id}` is not a dialect of the same protocol with rules of its own");
                return Err(DialectError::in_key(&text.source(), "like", problem));
            }
        }
        Ok(())
    }

    /// Parses everything that was deferred.
    fn check(&self, dialects: &Dialects) -> LoadResult<()> {
        self.check_like()?;
        dialects.shared.get()?;
        dialects.sentinels.get()?;
        let catalogue = dialects.catalogue.get()?;
        for (id, layers) in &self.dialects {
            let Some(dialect) = dialects.get(id) else { continue };
            let DialectBody { base, models } = dialect.body.get()?;
            let mut listed = models.iter().map(|(_, rules)| rules).chain([base]).flat_map(|rules| &rules.errors);
            if let Some(id) = listed.find(|id| !catalogue.rows.iter().any(|row| row.id == **id))
                && let Some(text) = layers.texts.last()
            {
                return Err(DialectError::in_key(&text.source(), "errors", format!("unknown error `{id}`")));
            }
        }
        Ok(())
    }
}

/// The generic dialect of a protocol, from which the others inherit.
struct GenericDialect {
    rules: Lazy<RuleTables>,
    access: AccessTable,
    errors: Lazy<DialectErrors>,
}

impl GenericDialect {
    fn new(layers: &DialectLayers, catalogue: Lazy<ErrorCatalogue>) -> GenericDialect {
        let (texts, protocol) = (layers.texts.clone(), layers.protocol());
        let rules = Lazy::new(move || Ok(parse_merged(&texts)?.rules));
        let listed = rules.clone();
        let errors = Lazy::new(move || Ok(DialectErrors::of(protocol, catalogue.get()?, listed.get()?.errors())));
        GenericDialect { rules, access: layers.head.access.inherited(), errors }
    }

    /// Builds a dialect. Keys that its files do not set are inherited.
    fn build(&self, layers: &DialectLayers, texts: Vec<DialectText>, shared: Lazy<SharedTables>) -> Dialect {
        let DialectFile { id, base_url, api_key_env, access: own, generic, unknown, makes, hosts, models_of, .. } =
            layers.head.clone();
        let mut access = self.access.clone();
        access.merge(own);
        let (protocol, base) = (layers.protocol(), self.rules.clone());
        Dialect {
            id,
            protocol,
            base_url,
            api_key_env,
            access: access.resolve(),
            unknown,
            generic,
            makes,
            hosts,
            models_of,
            body: Lazy::new(move || build_body(&texts, protocol, base.get()?.clone(), shared.get()?)),
            errors: self.errors.clone(),
        }
    }
}

fn parse_shared(tags: &[DialectText], matrices: &[DialectText]) -> LoadResult<SharedTables> {
    let mut shared = SharedTables::default();
    for text in tags {
        let file: TagsFile = error::parse(&text.source())?;
        shared.pairs.extend(file.pair.into_iter().map(|pair| (pair.id.clone(), pair.into())));
    }
    for text in matrices {
        error::parse::<MatrixFile>(&text.source())?.merge_into(&mut shared.matrices);
    }
    Ok(shared)
}

fn parse_catalogue(errors: &[DialectText]) -> LoadResult<ErrorCatalogue> {
    let mut shared = ErrorCatalogue::default();
    for text in errors {
        error::parse::<ErrorsFile>(&text.source())?.merge_into(&mut shared);
    }
    Ok(shared)
}

fn parse_sentinels(texts: &[DialectText]) -> LoadResult<Sentinels> {
    let mut known = Sentinels::default();
    for text in texts {
        error::parse::<SentinelsFile>(&text.source())?.merge_into(&mut known);
    }
    Ok(known)
}

fn parse_merged(texts: &[DialectText]) -> LoadResult<DialectFile> {
    let mut whole = DialectFile::default();
    for text in texts {
        whole.merge(error::parse(&text.source())?);
    }
    Ok(whole)
}

fn build_body(
    texts: &[DialectText],
    protocol: Protocol,
    mut base: RuleTables,
    shared: &SharedTables,
) -> LoadResult<DialectBody> {
    let DialectFile { rules, models, .. } = parse_merged(texts)?;
    let last = texts.last().map_or(DialectSource { path: "", text: "" }, DialectText::source);
    let resolve = |rules: RuleTables| rules.resolve(protocol, shared, &last);
    base.merge(rules);
    let models = models.into_iter().map(|(pattern, over)| {
        let level = if over.sets_context_limit() { LimitLevel::Model } else { LimitLevel::Dialect };
        let mut rules = base.clone();
        rules.merge(over);
        let mut rules = resolve(rules)?;
        rules.ask.context_limit_level = level;
        Ok((pattern, rules))
    });
    Ok(DialectBody { models: models.collect::<LoadResult<_>>()?, base: resolve(base)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only tables may follow the head.
    #[test]
    fn the_head_of_a_built_in_file_contains_every_key_outside_its_tables() {
        let without_tables = |path, text| {
            let file: DialectFile = error::parse(&DialectSource { path, text }).expect("valid");
            DialectFile { rules: RuleTables::default(), models: Vec::new(), ..file }
        };
        let dialects = builtin::FILES.iter().filter(|source| head_of(source.text).contains("\nid = "));
        let mut read = 0;
        for DialectSource { path, text } in dialects {
            assert_eq!(
                format!("{:?}", without_tables(path, head_of(text))),
                format!("{:?}", without_tables(path, text))
            );
            read += 1;
        }
        assert_eq!(read, builtin::FILES.len() - 4, "all but tags, matrix, errors and sentinels");
    }

    #[test]
    fn built_in_dialects_are_valid_without_the_user_s_files() {
        let mut files = DialectFiles::default();
        for source in builtin::FILES {
            files.add(DialectText { path: source.path.into(), text: source.text.into() }, source.text).expect("valid");
        }
        files.check(&files.dialects()).expect("valid");
    }

    #[test]
    fn a_dialect_can_be_like_another_and_differ_in_some_keys() {
        let file = |text: &str| Dialects::with_user_files(&[DialectSource { path: "twin.toml", text }]);
        let head = "id = \"twin\"\nprotocol = \"openai-chat\"\n";
        let text = format!("{head}like = \"kimi\"\n[echo]\nfield = \"thoughts\"\n");
        let dialects = file(&text).expect("valid");
        let rules = |id: &str, model| dialects.get(id).expect("known").rules(Some(model)).clone();
        let (twin, kimi) = (rules("twin", "kimi-k3"), rules("kimi", "kimi-k3"));
        assert_eq!((&twin.ask, &twin.read, &twin.errors), (&kimi.ask, &kimi.read, &kimi.errors));
        assert_eq!(twin.echo.field, super::super::EchoField::Named("thoughts".to_owned()));
        for like in ["nobody", "anthropic", "twin"] {
            let error = file(&format!("{head}like = \"{like}\"\n")).expect_err(like).to_string();
            assert!(error.contains("is not a dialect of the same protocol"), "{error}");
        }
    }

    #[test]
    fn only_heads_are_parsed_before_rules_are_used() {
        let dialects = Dialects::builtin().expect("valid");
        let is_read = |dialect: &Dialect| LazyLock::get(&dialect.body.0).is_some();
        let read = || dialects.iter().filter(|dialect| is_read(dialect)).map(|dialect| dialect.id.as_str());
        assert_eq!(read().count(), 0);
        dialects.get("kimi").expect("known").rules(None);
        assert_eq!(read().collect::<Vec<_>>(), ["kimi"]);
        assert!(LazyLock::get(&dialects.catalogue.0).is_none());
    }
}
