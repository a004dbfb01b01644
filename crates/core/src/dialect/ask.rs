//! The `[ask]` table, which describes how to request thinking: switches,
//! effort, budget, and parameters that conflict with them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

use super::DialectSource;
use super::echo::Patch;
use super::error::DialectError;
use super::table::{choices, table};

/// The effort levels, lowest first. `none` is not a level: it switches thinking
/// off.
pub const EFFORT_LEVELS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// The words allowed in `ask.exclusive`.
const EXCLUSIVE: [&str; 3] = ["on", "effort", "budget"];

choices!(
    /// What a model does if the request does not mention thinking.
    #[derive(Default)]
    AskDefault {
        /// It thinks.
        On = "on",
        /// It does not think.
        #[default]
        Off = "off",
        /// The model always thinks.
        Always = "always",
    }
);

choices!(
    /// The public tokenizer vocabulary of a model, if there is one.
    #[derive(Default)]
    Tokenizer {
        /// The vocabulary of newer OpenAI models.
        O200k = "o200k_base",
        /// The vocabulary of older OpenAI models.
        Cl100k = "cl100k_base",
        /// Not public, so tokens are estimated.
        #[default]
        None = "none",
    }
);

choices!(
    /// Whether a model thinks in a request with tools.
    #[derive(Default)]
    ThinkingWithTools {
        /// It does.
        #[default]
        Ok = "ok",
        /// Only with thinking switched off, by an explicit switch.
        WithOff = "with_off",
        /// This API takes no tools; the provider's Responses API does.
        ResponsesOnly = "responses_only",
    }
);

/// Whether a limit was written for a model or for all models of a dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitLevel {
    /// In a `[[model]]` table.
    Model,
    /// In the dialect's own table.
    #[default]
    Dialect,
}

/// How thinking is switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Off {
    /// By sending this patch. An empty patch means that thinking is off unless
    /// requested.
    Patch(Patch),
    /// This model cannot stop thinking.
    Unsupported,
}

impl Default for Off {
    fn default() -> Off {
        Off::Patch(Patch::new())
    }
}

/// How to request thinking. Paths are dotted and start at the body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskRules {
    /// Switches thinking on.
    pub on: Patch,
    /// Switches thinking off.
    pub off: Off,
    /// What happens without `on` and `off`.
    pub default: AskDefault,
    /// How an effort level is sent.
    pub effort: EffortRules,
    /// How a token budget for thinking is sent.
    pub budget: BudgetRules,
    /// Pairs of `on`, `effort` and `budget` that cannot be combined in one
    /// request.
    pub exclusive: Vec<(String, String)>,
    /// Makes the thinking readable.
    pub show: Patch,
    /// Sent whenever thinking is on.
    pub extra: Patch,
    /// Headers sent whenever thinking is on.
    pub headers: BTreeMap<String, String>,
    /// Parameters this model never accepts.
    pub forbid: Vec<String>,
    /// Parameters refused while thinking is on.
    pub forbid_when_on: Vec<String>,
    /// A tool may be forced while thinking is on.
    pub forced_tools_ok: bool,
    /// Whether the model thinks in a request with tools.
    pub tools: ThinkingWithTools,
    /// A message with the role `system` may stand among the others, where the
    /// protocol has a separate place for the system prompt.
    pub inline_system: bool,
    /// How the output limit is sent.
    pub max_tokens: MaxTokensRules,
    /// How the provider's prompt cache is used.
    pub cache: CacheRules,
    /// The context window: the input that fits.
    pub context_limit: Option<u64>,
    /// Who says so. The table of models knows better than a whole dialect, and a model's own rules know better than it.
    pub context_limit_level: LimitLevel,
    /// The vocabulary that counts the model's tokens exactly.
    pub tokenizer: Tokenizer,
}

/// The parameter for the effort level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffortRules {
    /// Empty if there is no such parameter.
    pub path: String,
    /// The accepted levels, in the order of [`EFFORT_LEVELS`].
    pub values: Vec<String>,
    /// Levels that are sent as another word.
    pub map: BTreeMap<String, String>,
}

/// The parameter for the token budget of thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetRules {
    /// Empty if there is no such parameter.
    pub path: String,
    /// The least and the most tokens accepted. None if every number is.
    pub range: Option<(u64, u64)>,
    /// What must be sent along with a budget.
    pub with: Patch,
}

/// The parameter for the output limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaxTokensRules {
    /// Empty if there is no such parameter.
    pub path: String,
    /// Sent if the user set no limit. Absent if the provider needs none (0 in a
    /// file).
    pub default: Option<u64>,
}

/// How the provider's prompt cache is used. Providers without rules cache by
/// themselves or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheRules {
    /// How many points of a request may be marked.
    pub markers: usize,
    /// The parameter for the name of the conversation. Empty if there is none.
    pub key: String,
}

table!(Ask {
    on: Patch,
    off: Off,
    default: AskDefault,
    exclusive: Vec<(String, String)>,
    show: Patch,
    extra: Patch,
    headers: BTreeMap<String, String>,
    forbid: Vec<String>,
    forbid_when_on: Vec<String>,
    forced_tools_ok: bool,
    tools: ThinkingWithTools,
    inline_system: bool,
    context_limit: u64,
    tokenizer: Tokenizer,
    ;
    effort: Effort,
    budget: Budget,
    max_tokens: MaxTokens,
    cache: Cache,
});

table!(Effort { path: String, values: Vec<String>, map: BTreeMap<String, String> });

table!(Budget { path: String, range: (u64, u64), with: Patch });

table!(MaxTokens { path: String, default: u64 });

table!(Cache { markers: usize, key: String });

impl Ask {
    pub(super) fn sets_context_limit(&self) -> bool {
        self.context_limit.is_some()
    }

    pub(super) fn resolve(self, source: &DialectSource<'_>) -> Result<AskRules, DialectError> {
        let exclusive = self.exclusive.unwrap_or_default();
        for word in exclusive.iter().flat_map(|(a, b)| [a, b]) {
            if !EXCLUSIVE.contains(&word.as_str()) {
                let problem = format!("unknown word `{word}`; use {}", EXCLUSIVE.join(", "));
                return Err(DialectError::in_key(source, "ask.exclusive", problem));
            }
        }
        Ok(AskRules {
            on: self.on.unwrap_or_default(),
            off: self.off.unwrap_or_default(),
            default: self.default.unwrap_or_default(),
            effort: self.effort.resolve(source)?,
            budget: self.budget.resolve(source)?,
            exclusive,
            show: self.show.unwrap_or_default(),
            extra: self.extra.unwrap_or_default(),
            headers: self.headers.unwrap_or_default(),
            forbid: self.forbid.unwrap_or_default(),
            forbid_when_on: self.forbid_when_on.unwrap_or_default(),
            forced_tools_ok: self.forced_tools_ok.unwrap_or(true),
            tools: self.tools.unwrap_or_default(),
            inline_system: self.inline_system.unwrap_or(true),
            max_tokens: MaxTokensRules {
                path: self.max_tokens.path.unwrap_or_default(),
                default: self.max_tokens.default.filter(|limit| *limit > 0),
            },
            cache: CacheRules {
                markers: self.cache.markers.unwrap_or_default(),
                key: self.cache.key.unwrap_or_default(),
            },
            context_limit: self.context_limit,
            context_limit_level: LimitLevel::Dialect,
            tokenizer: self.tokenizer.unwrap_or_default(),
        })
    }
}

impl Effort {
    fn resolve(self, source: &DialectSource<'_>) -> Result<EffortRules, DialectError> {
        let values = self.values.unwrap_or_default();
        let map = self.map.unwrap_or_default();
        for (key, level) in values
            .iter()
            .map(|level| ("ask.effort.values", level))
            .chain(map.keys().map(|level| ("ask.effort.map", level)))
        {
            if !EFFORT_LEVELS.contains(&level.as_str()) {
                let hint = if level == "none" { "; put it into `ask.off`" } else { "" };
                let problem = format!("`{level}` is not an effort level; use {}{hint}", EFFORT_LEVELS.join(", "));
                return Err(DialectError::in_key(source, key, problem));
            }
        }
        let values = EFFORT_LEVELS.iter().filter(|level| values.iter().any(|value| value == *level));
        let values: Vec<String> = values.map(|level| (*level).to_owned()).collect();
        let Some(path) = self.path else {
            if values.is_empty() {
                return Ok(EffortRules { path: String::new(), values, map });
            }
            let problem = "there are levels, but no `ask.effort.path` to write them to".to_owned();
            return Err(DialectError::in_key(source, "ask.effort.values", problem));
        };
        // An empty path removes the parameter inherited from the generic
        // dialect.
        if path.is_empty() {
            return Ok(EffortRules { path, values: Vec::new(), map: BTreeMap::new() });
        }
        Ok(EffortRules { path, values, map })
    }
}

impl Budget {
    fn resolve(self, source: &DialectSource<'_>) -> Result<BudgetRules, DialectError> {
        if let Some((least, most)) = self.range.filter(|(least, most)| least > most) {
            let problem = format!("the range begins at {least} and ends at {most}");
            return Err(DialectError::in_key(source, "ask.budget.range", problem));
        }
        Ok(BudgetRules { path: self.path.unwrap_or_default(), range: self.range, with: self.with.unwrap_or_default() })
    }
}

/// A body patch, or the word `unsupported`.
impl<'de> Deserialize<'de> for Off {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Off, D::Error> {
        deserializer.deserialize_any(OffVisitor)
    }
}

struct OffVisitor;

impl<'de> Visitor<'de> for OffVisitor {
    type Value = Off;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table to send, or `unsupported`")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Off, E> {
        match word {
            "unsupported" => Ok(Off::Unsupported),
            other => Err(E::custom(format!("unknown value `{other}`; expected a table to send, or `unsupported`"))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Off, A::Error> {
        Patch::deserialize(MapAccessDeserializer::new(map)).map(Off::Patch)
    }
}
