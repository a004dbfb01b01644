//! How each provider bends a protocol: data, read once and checked.
//!
//! A program speaks one or two dialects of the many, so of the built-in files
//! only the head is read before somebody asks for more.
//!
//! A dialect says what its file says, else what the generic dialect of its
//! protocol says. A `[[model]]` table overrides any of it; the first pattern
//! that matches counts.

mod access;
mod ask;
mod builtin;
mod catalogue;
mod echo;
mod error;
mod file;
mod glob;
mod load;
mod matrix;
mod read;
mod table;

use std::collections::BTreeMap;

use crate::protocol::Protocol;
use crate::tags::TagRules;
pub use access::{Access, Auth};
pub use ask::{AskDefault, AskRules, BudgetRules, EFFORT_LEVELS, EffortRules, MaxTokensRules, Off, Tokenizer};
use catalogue::{Answers, Catalogue};
pub use catalogue::{ErrorClass, ErrorRow, Fault, Refusal, Repair};
pub use echo::{
    BindModel, BindRules, CallIdShape, Carrier, Dedupe, Duty, EchoField, EchoRules, EmptyContent, FillEmpty, Foreign,
    Ids, ItemText, Patch, PrefixCheck, Removal, TurnsIf,
};
pub use error::DialectError;
use file::Known;
use load::Late;
pub use read::{AssembleBy, DeltaMode, Details, FinalFrom, UsageStream};

/// Whether a model's name fits a pattern: `*` for any run of characters, `?`
/// for one, case ignored.
pub fn fits_pattern(pattern: &str, model: &str) -> bool {
    glob::matches(pattern, model)
}

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
    known: Late<Known>,
    catalogue: Late<Catalogue>,
}

/// One provider's way of speaking one protocol.
#[derive(Debug, Clone)]
pub struct Dialect {
    pub id: String,
    pub protocol: Protocol,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub access: Access,
    /// Nothing is known of who speaks it, so it is asked for nothing special.
    pub unknown: bool,
    /// This dialect reads its protocol when nothing else is known.
    pub generic: bool,
    /// Models that only this provider makes; for guessing from a model name.
    makes: Vec<String>,
    /// Other hosts of this provider than that of its base URL.
    hosts: Vec<String>,
    body: Late<Body>,
    /// What is said to a faulty request, here or elsewhere.
    answers: Late<Answers>,
}

/// The tables of a dialect's file, and of the files it builds on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Body {
    base: Rules,
    models: Vec<(String, Rules)>,
}

/// What a dialect says about one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub read: ReadRules,
    /// What goes back.
    pub echo: EchoRules,
    /// Whom it is bound to.
    pub bind: BindRules,
    /// How it is asked for.
    pub ask: AskRules,
    pub usage: UsageRules,
    pub finish: FinishRules,
    /// Rows of the catalogue that this provider can answer with.
    pub errors: Vec<String>,
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
    /// What providers complain about, in the order to be asked.
    pub fn catalogue(&self) -> &[ErrorRow] {
        &self.catalogue.rows
    }

    /// Whether one model can read the thinking of another. An unknown matrix
    /// lets a model read itself.
    pub fn can_read(&self, matrix: &str, reader_model: &str, producer_model: &str) -> bool {
        match self.known.matrices.iter().find(|known| known.name == matrix) {
            Some(matrix) => matrix.can_read(reader_model, producer_model),
            None => reader_model.eq_ignore_ascii_case(producer_model),
        }
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

    /// The dialect whose provider answers at a URL. Of several at one host the
    /// one whose path is nearest.
    pub fn at(&self, protocol: Protocol, base_url: &str) -> Option<&Dialect> {
        let (host, path) = host_and_path(base_url)?;
        let nearness = |dialect: &Dialect| {
            if let Some((known, known_path)) = dialect.base_url.as_deref().and_then(host_and_path)
                && glob::matches(&known.replace("{region}", "*"), &host)
            {
                return Some(if path.starts_with(known_path) { known_path.len() + 1 } else { 0 });
            }
            dialect.hosts.iter().any(|pattern| glob::matches(pattern, &host)).then_some(0)
        };
        self.iter()
            .filter(|dialect| dialect.protocol == protocol)
            .filter_map(|dialect| nearness(dialect).map(|near| (near, dialect)))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, dialect)| dialect)
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
        let Body { base, models } = &*self.body;
        let matching = model.and_then(|model| models.iter().find(|(pattern, _)| glob::matches(pattern, model)));
        matching.map_or(base, |(_, rules)| rules)
    }

    /// The same protocol spoken by somebody nobody knows.
    #[must_use]
    pub fn of_a_stranger(&self) -> Dialect {
        let access = Access { default_model: None, order: None, ..self.access.clone() };
        Dialect { unknown: true, base_url: None, api_key_env: None, access, ..self.clone() }
    }

    /// How this provider answers a fault: the complaint it is known for, else
    /// the usual one of its protocol, else anybody's.
    pub fn complaint(&self, model: &str, fault: Fault) -> Option<&ErrorRow> {
        let listed = &self.rules(Some(model)).errors;
        let listed: Vec<&ErrorRow> =
            listed.iter().filter_map(|id| self.answers.rows.iter().find(|row| row.id == *id)).collect();
        let answering = |fault: &Fault| listed.iter().find(|row| row.fault == Some(*fault)).copied();
        let known = fault.akin().iter().find_map(answering);
        known.or_else(|| {
            fault.akin().iter().find_map(|akin| self.answers.rows.iter().find(|row| row.fault == Some(*akin)))
        })
    }

    /// What is said here to faults that are not about thinking.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.answers.refusals.iter().filter(|refusal| refusal.only.is_empty() || refusal.only.contains(&self.id))
    }

    /// Whether this provider is known to answer a fault at all.
    pub fn complains_of(&self, model: &str, fault: Fault) -> bool {
        let listed = &self.rules(Some(model)).errors;
        self.answers.rows.iter().any(|row| row.fault == Some(fault) && listed.contains(&row.id))
    }

    /// The patterns of models that differ, in the order they are asked.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Rules)> {
        self.body.models.iter().map(|(pattern, rules)| (pattern.as_str(), rules))
    }
}

/// Host with its port, and path. This machine has two names.
fn host_and_path(url: &str) -> Option<(String, &str)> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = (rest.get(..end)?, rest.get(end..)?.trim_end_matches('/'));
    let host = host.to_lowercase().replace("localhost", "127.0.0.1");
    (!host.is_empty()).then_some((host, path))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
