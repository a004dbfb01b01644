//! Dialects: how each provider deviates from its protocol. Data, parsed once
//! and validated.
//!
//! A program uses one or two of the many dialects, so only the heads of the
//! built-in files are parsed up front.
//!
//! A dialect inherits every key that its file does not set from the generic
//! dialect of its protocol. A `[[model]]` table overrides any of them; the
//! first pattern that matches wins.

mod access;
mod ask;
mod builtin;
mod echo;
mod error;
mod error_catalogue;
mod file;
mod glob;
mod head;
mod load;
mod matrix;
mod read;
mod sentinel;
mod table;

use std::collections::BTreeMap;

use crate::model_table::{FoundModel, ModelTables, TableOrigin};
use crate::protocol::Protocol;
use crate::tags::TagRules;
pub use access::{Access, Auth, PathVerb};
pub use ask::{
    AskDefault, AskRules, BudgetRules, CacheRules, EFFORT_LEVELS, EffortRules, LimitLevel, MaxTokensRules, Off,
    ThinkingWithTools, Tokenizer,
};
pub use echo::{
    BindModel, BindRules, CallIdShape, Carrier, Dedupe, Duty, EchoField, EchoRules, EmptyContent, FillEmpty, Foreign,
    Ids, ItemText, Patch, PrefixCheck, Removal, TurnsIf,
};
pub use error::DialectError;
pub(crate) use error_catalogue::normalized as normalized_error;
use error_catalogue::{DialectErrors, ErrorCatalogue, contains_any};
pub use error_catalogue::{ErrorClass, ErrorRow, Fault, RefusalRow, Repair, RequestPart};
use file::SharedTables;
use load::Lazy;
pub use read::{AssembleBy, DeltaMode, Details, FinalFrom, UsageStream};
use sentinel::Sentinels;

/// Whether a model name matches a pattern: `*` for any run of characters, `?`
/// for one, case ignored.
pub fn matches_pattern(pattern: &str, model: &str) -> bool {
    glob::matches(pattern, model)
}

/// A TOML text with its path. Core does not read files.
#[derive(Debug, Clone, Copy)]
pub struct DialectSource<'a> {
    /// Used in error messages.
    pub path: &'a str,
    /// The contents of the file.
    pub text: &'a str,
}

/// All dialects, built-in and from the user.
#[derive(Debug, Clone)]
pub struct Dialects {
    by_id: BTreeMap<String, Dialect>,
    shared: Lazy<SharedTables>,
    catalogue: Lazy<ErrorCatalogue>,
    sentinels: Lazy<Sentinels>,
    models: ModelTables,
}

/// How one provider uses one protocol.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dialect {
    /// The name of the file without `.toml`.
    pub id: String,
    /// The wire format that it is a dialect of.
    pub protocol: Protocol,
    /// The provider's public URL, which may contain `{region}`. None if every
    /// user has their own.
    pub base_url: Option<String>,
    /// The environment variable that usually holds the key.
    pub api_key_env: Option<String>,
    /// Authentication, headers and the default model.
    pub access: Access,
    /// The provider is unknown, so requests contain nothing beyond the basic
    /// protocol.
    pub unknown: bool,
    /// The fallback dialect of its protocol.
    pub generic: bool,
    /// Patterns of models that only this provider makes, used to guess the
    /// provider.
    makes: Vec<String>,
    /// Hosts of this provider besides the one of its base URL.
    hosts: Vec<String>,
    /// The dialect under whose name its models stand in the table of models. None if under its own.
    models_of: Option<String>,
    body: Lazy<DialectBody>,
    /// The errors for faulty requests, of this provider and others.
    errors: Lazy<DialectErrors>,
}

/// The rules of a dialect, including inherited ones.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DialectBody {
    base: Rules,
    models: Vec<(String, Rules)>,
}

/// The rules for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How replies are read.
    pub read: ReadRules,
    /// How thinking is sent back.
    pub echo: EchoRules,
    /// What thinking is bound to.
    pub bind: BindRules,
    /// How thinking is requested.
    pub ask: AskRules,
    /// Where token counts are.
    pub usage: UsageRules,
    /// How finish reasons are read.
    pub finish: FinishRules,
    /// Ids of the error rows that this provider may return.
    pub errors: Vec<String>,
}

impl Rules {
    /// Whether a tool loop may be refused because thinking is missing from it.
    pub(crate) fn needs_thinking_in_loop(&self) -> bool {
        self.echo.loop_duty == Duty::Must || self.bind.removal != Removal::Any
    }
}

/// How a decoder finds thinking in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadRules {
    /// Fields that may contain the thinking text. The first one present wins.
    pub text: Vec<String>,
    /// The array of structured thinking to expect.
    pub details: Details,
    /// Fields that become separate sealed thinking blocks.
    pub opaque: Vec<String>,
    /// Fields on a tool call that hold a seal.
    pub call_extra: Vec<String>,
    /// The answer content may be an array that contains thinking.
    pub content_chunks: bool,
    /// Whether deltas continue or repeat the text.
    pub delta_mode: DeltaMode,
    /// The tags that mark thinking inside answer text.
    pub tags: TagRules,
    /// What identifies the pieces of one block.
    pub assemble_by: AssembleBy,
    /// Whether a final item overrides the deltas.
    pub final_from: FinalFrom,
    /// Tool-call tokens that may leak into text. Reported, never executed.
    pub tool_markers: Vec<String>,
    /// A streamed tool call comes in one piece, with its name.
    pub whole_calls: bool,
    /// The provider only counts its thinking and never shows it.
    pub hidden: bool,
}

/// How token counts are read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageRules {
    /// The path of the thinking token count, below the usage object.
    pub path: String,
    /// Whether the output count includes the thinking tokens.
    pub included: bool,
    /// How the counters of several chunks combine.
    pub stream: UsageStream,
    /// A stream ends with the counts even if the request does not ask for them.
    pub always: bool,
}

/// How the end of a reply is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinishRules {
    /// Finish reasons that mean the provider failed.
    pub errors: Vec<String>,
    /// A plain stop with tool calls present counts as a stop for tool calls.
    pub calls_override: bool,
}

/// Where a fact about a model comes from, highest precedence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactSource {
    /// The user's config or table of models.
    User,
    /// The provider's own list, asked just now.
    Live,
    /// The dialect's rules for this model.
    Dialect,
    /// The built-in table of models.
    Table,
    /// The dialect's rules for all its models.
    Default,
}

impl FactSource {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FactSource::User => "user",
            FactSource::Live => "live",
            FactSource::Dialect => "dialect",
            FactSource::Table => "table",
            FactSource::Default => "default",
        }
    }
}

impl From<TableOrigin> for FactSource {
    fn from(origin: TableOrigin) -> FactSource {
        match origin {
            TableOrigin::User => FactSource::User,
            TableOrigin::Builtin => FactSource::Table,
        }
    }
}

impl Dialects {
    /// With these tables of models instead of the built-in one.
    #[must_use]
    pub fn with_models(self, models: ModelTables) -> Dialects {
        Dialects { models, ..self }
    }

    /// The tables of models.
    pub fn models(&self) -> &ModelTables {
        &self.models
    }

    /// What the tables say about a model of a dialect.
    pub fn model(&self, dialect: &Dialect, model: &str) -> Option<FoundModel<'_>> {
        self.models.find(dialect.table_id(), model)
    }

    /// The input that fits into a model's window, and where that is known from.
    pub fn context_limit(&self, dialect: &Dialect, model: &str) -> Option<(u64, FactSource)> {
        let ask = &dialect.rules(Some(model)).ask;
        let of_dialect = |level: LimitLevel, source: FactSource| {
            Some((ask.context_limit.filter(|_| ask.context_limit_level == level)?, source))
        };
        let found = self.model(dialect, model);
        let of_table = |origin: TableOrigin| {
            let found = found.as_ref().filter(|found| found.origin == origin)?;
            Some((found.context_limit()?, FactSource::from(origin)))
        };
        of_table(TableOrigin::User)
            .or_else(|| of_dialect(LimitLevel::Model, FactSource::Dialect))
            .or_else(|| of_table(TableOrigin::Builtin))
            .or_else(|| of_dialect(LimitLevel::Dialect, FactSource::Default))
    }

    /// All error rows, in matching order.
    pub fn catalogue(&self) -> &[ErrorRow] {
        &self.catalogue.rows
    }

    /// Whether an error message says that the conversation does not fit into the
    /// model's window.
    pub fn is_too_long(&self, message: &str) -> bool {
        contains_any(&normalized_error(message), &self.catalogue.too_long)
    }

    /// Whether an error message says that the account has no credit left.
    pub fn lacks_credit(&self, message: &str) -> bool {
        contains_any(&normalized_error(message), &self.catalogue.no_credit)
    }

    /// Whether an error message is not about thinking, whatever keys it names.
    pub(crate) fn is_unrelated(&self, message: &str) -> bool {
        let message = normalized_error(message);
        let ErrorCatalogue { too_long, no_credit, unrelated, .. } = &*self.catalogue;
        [too_long, no_credit, unrelated].iter().any(|texts| contains_any(&message, texts))
    }

    /// Whether a program sent this in place of a signature or an encrypted payload
    /// that it had lost.
    pub fn is_sentinel_seal(&self, payload: &str) -> bool {
        self.sentinels.has_seal(payload)
    }

    /// Whether a program sent this in place of thinking text that it had lost.
    pub fn is_sentinel_text(&self, text: &str) -> bool {
        self.sentinels.has_text(text)
    }

    /// Whether one model can read the thinking of another. If the matrix is
    /// unknown, a model can read only its own.
    pub fn can_read(&self, matrix: &str, reader_model: &str, producer_model: &str) -> bool {
        match self.shared.matrices.iter().find(|known| known.name == matrix) {
            Some(matrix) => matrix.can_read(reader_model, producer_model),
            None => reader_model.eq_ignore_ascii_case(producer_model),
        }
    }

    /// The dialect with this id.
    pub fn get(&self, id: &str) -> Option<&Dialect> {
        self.by_id.get(id)
    }

    /// All dialects, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &Dialect> {
        self.by_id.values()
    }

    /// The fallback dialect of a protocol.
    pub fn generic(&self, protocol: Protocol) -> Option<&Dialect> {
        self.iter().find(|dialect| dialect.generic && dialect.protocol == protocol)
    }

    /// The dialect of the provider at a URL. If several share a host, the
    /// longest matching path wins.
    pub fn by_url(&self, protocol: Protocol, base_url: &str) -> Option<&Dialect> {
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

    /// The dialect of the provider that makes a model. The longest matching
    /// pattern wins.
    pub fn made_by(&self, protocol: Protocol, model: &str) -> Option<&Dialect> {
        let matching = |dialect: &Dialect| {
            dialect.makes.iter().filter(|pattern| glob::matches(pattern, model)).map(String::len).max()
        };
        self.iter()
            .filter(|dialect| dialect.protocol == protocol)
            .filter_map(|dialect| matching(dialect).map(|length| (length, dialect)))
            // The first of equals wins, so that the result is deterministic.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, dialect)| dialect)
    }
}

impl Dialect {
    /// The rules for one model, or the base rules without one.
    pub fn rules(&self, model: Option<&str>) -> &Rules {
        let DialectBody { base, models } = &*self.body;
        let matching = model.and_then(|model| models.iter().find(|(pattern, _)| glob::matches(pattern, model)));
        matching.map_or(base, |(_, rules)| rules)
    }

    /// The dialect under whose name its models stand in the table of models.
    pub fn table_id(&self) -> &str {
        self.models_of.as_deref().unwrap_or(&self.id)
    }

    /// The same protocol, used by an unknown provider.
    #[must_use]
    pub fn for_unknown_provider(&self) -> Dialect {
        let access = Access { default_model: None, order: None, ..self.access.clone() };
        Dialect { unknown: true, base_url: None, api_key_env: None, access, ..self.clone() }
    }

    /// The error for a fault: the one this provider is known to return, else
    /// the usual one of its protocol, else that of any provider.
    pub fn error_row(&self, model: &str, fault: Fault) -> Option<&ErrorRow> {
        let listed = &self.rules(Some(model)).errors;
        let listed: Vec<&ErrorRow> =
            listed.iter().filter_map(|id| self.errors.rows.iter().find(|row| row.id == *id)).collect();
        let answering = |fault: &Fault| listed.iter().find(|row| row.fault == Some(*fault)).copied();
        let known = fault.related().iter().find_map(answering);
        known.or_else(|| {
            fault.related().iter().find_map(|related| self.errors.rows.iter().find(|row| row.fault == Some(*related)))
        })
    }

    /// The refusals of faults that are unrelated to thinking.
    pub fn refusals(&self) -> impl Iterator<Item = &RefusalRow> {
        self.errors.refusals.iter().filter(|refusal| refusal.only.is_empty() || refusal.only.contains(&self.id))
    }

    /// Whether this provider is known to report a fault.
    pub fn reports_fault(&self, model: &str, fault: Fault) -> bool {
        self.rules_report_fault(self.rules(Some(model)), fault)
    }

    /// The same, with the rules of a model.
    pub(crate) fn rules_report_fault(&self, rules: &Rules, fault: Fault) -> bool {
        self.errors.rows.iter().any(|row| row.fault == Some(fault) && rules.errors.contains(&row.id))
    }

    /// The model patterns with their rules, in matching order.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Rules)> {
        self.body.models.iter().map(|(pattern, rules)| (pattern.as_str(), rules))
    }
}

/// Host with port, and path. `localhost` and `127.0.0.1` are the same host.
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
