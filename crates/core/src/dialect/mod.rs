//! How each provider bends a protocol: data, read once and checked.
//!
//! A dialect says what its file says, else what the generic dialect of its
//! protocol says. A `[[model]]` table overrides any of it; the first pattern
//! that matches counts.

mod builtin;
mod error;
mod file;
mod glob;

use std::collections::BTreeMap;

use crate::protocol::Protocol;
use crate::tags::{Pair, TagRules};
pub use error::DialectError;
pub use file::{AssembleBy, DeltaMode, Details, FinalFrom, UsageStream};
use file::{DialectFile, ModelTable, Rules as FileRules, TagsFile};

/// A named piece of TOML; core reads no files.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Shown in errors.
    pub path: &'a str,
    pub text: &'a str,
}

/// Every dialect known, built in and the user's.
#[derive(Debug, Clone)]
pub struct Dialects {
    by_id: BTreeMap<String, Dialect>,
}

/// One provider's way of speaking one protocol.
#[derive(Debug, Clone)]
pub struct Dialect {
    pub id: String,
    pub protocol: Protocol,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    /// This dialect reads its protocol when nothing else is known.
    pub generic: bool,
    /// Models that only this provider makes; for guessing from a model name.
    makes: Vec<String>,
    base: Rules,
    models: Vec<(String, Rules)>,
}

/// What a dialect says about one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub read: ReadRules,
    pub usage: UsageRules,
    pub finish: FinishRules,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRules {
    /// Fields that may carry the thinking text; the first present one counts.
    pub text: Vec<String>,
    pub details: Details,
    /// Fields kept as sealed thoughts of their own.
    pub opaque: Vec<String>,
    /// Fields on a tool call that hold a seal.
    pub call_extra: Vec<String>,
    /// Answer content may be an array with thinking in it.
    pub content_chunks: bool,
    pub delta_mode: DeltaMode,
    pub tags: TagRules,
    pub assemble_by: AssembleBy,
    pub final_from: FinalFrom,
    /// Tool-call tokens that leak into prose; reported, never executed.
    pub tool_markers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRules {
    /// Where the count of thinking tokens stands, below the usage object.
    pub path: String,
    /// Whether the output count holds the thinking tokens.
    pub included: bool,
    pub stream: UsageStream,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishRules {
    /// Finish words that mean the provider failed.
    pub errors: Vec<String>,
    /// A plain stop beside tool calls means tool calls.
    pub calls_override: bool,
}

impl Dialects {
    /// The built-in dialects alone.
    pub fn builtin() -> Result<Dialects, DialectError> {
        Dialects::with_user_files(&[])
    }

    /// The built-in dialects with the user's files merged over them, key by
    /// key. A new id is a new dialect; `tags.toml` adds or replaces tag families.
    pub fn with_user_files(user: &[Source<'_>]) -> Result<Dialects, DialectError> {
        let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
        let mut files: BTreeMap<String, Merged> = BTreeMap::new();
        for source in builtin::FILES.iter().chain(user) {
            if source.path.rsplit('/').next() == Some(builtin::TAGS) {
                let tags: TagsFile = error::parse(source)?;
                pairs.extend(tags.pair.into_iter().map(|pair| (pair.id.clone(), pair.into())));
            } else {
                let file: DialectFile = error::parse(source)?;
                let merged = files.entry(file.id.clone()).or_default();
                merged.add(source, file)?;
            }
        }
        let generics: BTreeMap<Protocol, FileRules> = files
            .values()
            .filter(|merged| merged.file.generic)
            .map(|merged| (merged.protocol(), merged.file.rules()))
            .collect();
        let by_id = files
            .into_iter()
            .map(|(id, merged)| merged.resolve(&pairs, &generics).map(|dialect| (id, dialect)))
            .collect::<Result<_, _>>()?;
        Ok(Dialects { by_id })
    }

    pub fn get(&self, id: &str) -> Option<&Dialect> {
        self.by_id.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dialect> {
        self.by_id.values()
    }

    /// The dialect that reads a protocol when nothing else is known.
    pub fn generic(&self, protocol: Protocol) -> Option<&Dialect> {
        self.iter().find(|dialect| dialect.generic && dialect.protocol == protocol)
    }

    /// The dialect whose own model this is: the longest pattern that matches.
    pub fn made_by(&self, protocol: Protocol, model: &str) -> Option<&Dialect> {
        let matching = |dialect: &Dialect| {
            dialect.makes.iter().filter(|pattern| glob::matches(pattern, model)).map(String::len).max()
        };
        self.iter()
            .filter(|dialect| dialect.protocol == protocol)
            .filter_map(|dialect| matching(dialect).map(|length| (length, dialect)))
            // The first of equals, so that the order of ids does not matter by accident.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, dialect)| dialect)
    }
}

impl Dialect {
    /// The rules for one model; for the dialect as a whole without one.
    pub fn rules(&self, model: Option<&str>) -> &Rules {
        let matching = model.and_then(|model| self.models.iter().find(|(pattern, _)| glob::matches(pattern, model)));
        matching.map_or(&self.base, |(_, rules)| rules)
    }
}

/// A dialect's own file with the user's laid over it.
#[derive(Default)]
struct Merged {
    /// The file that introduced it, and the one that changed it last.
    path: String,
    text: String,
    file: DialectFile,
}

impl Merged {
    fn add(&mut self, source: &Source<'_>, file: DialectFile) -> Result<(), DialectError> {
        if self.path.is_empty() && file.protocol.is_none() {
            return Err(DialectError::at(source, 0, "protocol", "a new dialect needs a protocol".to_owned()));
        }
        self.path = source.path.to_owned();
        self.text = source.text.to_owned();
        self.file.lay_over(file);
        Ok(())
    }

    fn protocol(&self) -> Protocol {
        self.file.protocol.unwrap_or(Protocol::OpenaiChat)
    }

    fn resolve(
        self,
        pairs: &BTreeMap<String, Pair>,
        generics: &BTreeMap<Protocol, FileRules>,
    ) -> Result<Dialect, DialectError> {
        let protocol = self.protocol();
        let mut base = generics.get(&protocol).cloned().unwrap_or_default();
        base.lay_over(self.file.rules());
        let source = Source { path: &self.path, text: &self.text };
        let settle = |rules: FileRules| rules.settle(protocol, pairs, &source);
        let mut models = Vec::new();
        for ModelTable { pattern, read, usage, finish } in self.file.model {
            let mut rules = base.clone();
            rules.lay_over(FileRules { read, usage, finish });
            models.push((pattern, settle(rules)?));
        }
        Ok(Dialect {
            id: self.file.id,
            protocol,
            base_url: self.file.base_url,
            api_key_env: self.file.api_key_env,
            generic: self.file.generic,
            makes: self.file.makes,
            base: settle(base)?,
            models,
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
