//! The format of dialect files: every key is optional, and unknown keys are
//! errors.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::access::{AccessTable, Auth};
use super::ask::Ask;
use super::echo::{Bind, Echo};
use super::error::DialectError;
use super::matrix::Matrix;
use super::read::{Finish, Read, Usage};
use super::{DialectSource, Rules};
use crate::protocol::Protocol;
use crate::tags::TagPair;

/// One file, with its tables in a form that can be merged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "DialectTable")]
pub(super) struct DialectFile {
    pub(super) id: String,
    pub(super) protocol: Option<Protocol>,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) access: AccessTable,
    pub(super) generic: bool,
    pub(super) unknown: bool,
    pub(super) makes: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) models_of: Option<String>,
    pub(super) like: Option<String>,
    pub(super) rules: RuleTables,
    pub(super) models: Vec<(String, RuleTables)>,
}

/// The rules a file can set for one model.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleTables {
    read: Read,
    echo: Echo,
    bind: Bind,
    ask: Ask,
    usage: Usage,
    finish: Finish,
    errors: Option<Vec<String>>,
}

/// Tag pairs and matrices, which dialects refer to by name.
#[derive(Debug, Default)]
pub(super) struct SharedTables {
    pub(super) pairs: BTreeMap<String, TagPair>,
    pub(super) matrices: Vec<Matrix>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectTable {
    id: String,
    #[serde(default, deserialize_with = "protocol")]
    protocol: Option<Protocol>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    auth: Option<Auth>,
    headers: Option<BTreeMap<String, String>>,
    path: Option<String>,
    verbs: Option<BTreeMap<String, String>>,
    vars_env: Option<BTreeMap<String, Vec<String>>>,
    region_urls: Option<BTreeMap<String, String>>,
    body: Option<BTreeMap<String, String>>,
    no_model_in_body: Option<bool>,
    api_key_cmd: Option<String>,
    api_key_ttl: Option<String>,
    default_model: Option<String>,
    order: Option<u32>,
    #[serde(default)]
    generic: bool,
    #[serde(default)]
    unknown: bool,
    #[serde(default)]
    makes: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    models_of: Option<String>,
    like: Option<String>,
    errors: Option<Vec<String>>,
    #[serde(default)]
    read: Read,
    #[serde(default)]
    echo: Echo,
    #[serde(default)]
    bind: Bind,
    #[serde(default)]
    ask: Ask,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    finish: Finish,
    #[serde(default)]
    model: Vec<ModelTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    #[serde(rename = "match", deserialize_with = "one_or_more")]
    patterns: Vec<String>,
    errors: Option<Vec<String>>,
    #[serde(default)]
    read: Read,
    #[serde(default)]
    echo: Echo,
    #[serde(default)]
    bind: Bind,
    #[serde(default)]
    ask: Ask,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    finish: Finish,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagsFile {
    #[serde(default)]
    pub(super) pair: Vec<PairTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairTable {
    pub(super) id: String,
    open: Vec<String>,
    close: Vec<String>,
    #[serde(default)]
    suffixed: bool,
    tail: Option<String>,
}

impl From<PairTable> for TagPair {
    fn from(table: PairTable) -> TagPair {
        let PairTable { id, open, close, suffixed, tail } = table;
        TagPair { id, open, close, suffixed, tail }
    }
}

impl From<DialectTable> for DialectFile {
    fn from(table: DialectTable) -> DialectFile {
        let DialectTable { id, protocol, base_url, api_key_env, generic, unknown, makes, hosts, errors, model, .. } =
            table;
        let DialectTable { auth, headers, path, verbs, vars_env, region_urls, body, no_model_in_body, .. } = table;
        let DialectTable { api_key_cmd, api_key_ttl, default_model, order, models_of, like, .. } = table;
        let access = AccessTable {
            auth,
            headers,
            path,
            verbs,
            vars_env,
            region_urls,
            body,
            no_model_in_body,
            api_key_cmd,
            api_key_ttl,
            default_model,
            order,
        };
        let DialectTable { read, echo, bind, ask, usage, finish, .. } = table;
        let rules = RuleTables { read, echo, bind, ask, usage, finish, errors };
        let models = model.into_iter().flat_map(ModelTable::into_rules).collect();
        DialectFile {
            id,
            protocol,
            base_url,
            api_key_env,
            access,
            generic,
            unknown,
            makes,
            hosts,
            models_of,
            like,
            rules,
            models,
        }
    }
}

impl ModelTable {
    /// A table with several patterns becomes one entry per pattern.
    fn into_rules(self) -> impl Iterator<Item = (String, RuleTables)> {
        let ModelTable { patterns, errors, read, echo, bind, ask, usage, finish } = self;
        let rules = RuleTables { read, echo, bind, ask, usage, finish, errors };
        patterns.into_iter().map(move |pattern| (pattern, rules.clone()))
    }
}

impl DialectFile {
    /// Merges another file over this one, key by key; the other file wins.
    /// Model tables with a known pattern are merged, new ones come first.
    pub(super) fn merge(&mut self, other: DialectFile) {
        let DialectFile { id, protocol, base_url, api_key_env, access, generic, unknown, .. } = other;
        let DialectFile { makes, hosts, models_of, like, rules, models, .. } = other;
        self.id = id;
        self.protocol = protocol.or(self.protocol);
        self.base_url = base_url.or(self.base_url.take());
        self.api_key_env = api_key_env.or(self.api_key_env.take());
        self.access.merge(access);
        self.generic |= generic;
        self.unknown |= unknown;
        if !makes.is_empty() {
            self.makes = makes;
        }
        if !hosts.is_empty() {
            self.hosts = hosts;
        }
        self.models_of = models_of.or(self.models_of.take());
        self.like = like.or(self.like.take());
        self.rules.merge(rules);
        let mut new = Vec::new();
        for (pattern, rules) in models {
            match self.models.iter_mut().find(|(known, _)| *known == pattern) {
                Some((_, known)) => known.merge(rules),
                None => new.push((pattern, rules)),
            }
        }
        new.append(&mut self.models);
        self.models = new;
    }
}

impl RuleTables {
    pub(super) fn sets_context_limit(&self) -> bool {
        self.ask.sets_context_limit()
    }

    pub(super) fn errors(&self) -> &[String] {
        self.errors.as_deref().unwrap_or_default()
    }

    pub(super) fn merge(&mut self, other: RuleTables) {
        let RuleTables { read, echo, bind, ask, usage, finish, errors } = other;
        self.read.merge(read);
        self.echo.merge(echo);
        self.bind.merge(bind);
        self.ask.merge(ask);
        self.usage.merge(usage);
        self.finish.merge(finish);
        self.errors = errors.or(self.errors.take());
    }

    /// Resolves the tables into the rules that the codecs use.
    pub(super) fn resolve(
        self,
        protocol: Protocol,
        known: &SharedTables,
        source: &DialectSource<'_>,
    ) -> Result<Rules, DialectError> {
        let RuleTables { read, echo, bind, ask, usage, finish, errors } = self;
        Ok(Rules {
            read: read.resolve(protocol, &known.pairs, source)?,
            echo: echo.resolve(protocol, source)?,
            bind: bind.resolve(&known.matrices, source)?,
            ask: ask.resolve(source)?,
            usage: usage.resolve(),
            finish: finish.resolve(),
            errors: errors.unwrap_or_default(),
        })
    }
}

fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Protocol>, D::Error> {
    let word = String::deserialize(deserializer)?;
    word.parse().map(Some).map_err(serde::de::Error::custom)
}

/// A string, or a list of strings.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct PatternsVisitor;

    impl<'de> Visitor<'de> for PatternsVisitor {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a pattern, or a list of patterns")
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Vec<String>, E> {
            Ok(vec![word.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(PatternsVisitor)
}
