//! The errors that providers return about thinking, the repair for each, and
//! their wording.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::table::choices;
use crate::protocol::Protocol;

/// One kind of error. The first row that matches wins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorRow {
    /// Referred to by the `errors` lists of dialect files.
    pub id: String,
    /// Excerpts of the message. Any of them is enough. `*` stands for any words.
    pub texts: Vec<String>,
    /// What the request must contain for this row to apply. None if the message
    /// alone is enough.
    pub when: Option<RequestPart>,
    /// What the repair is about, if the message does not name it: the paths of
    /// parameters, or the kind of a block and its member.
    pub keys: Vec<String>,
    /// The HTTP status codes seen with it, the most common first.
    pub status: Vec<u16>,
    /// What the error is about.
    pub class: ErrorClass,
    /// The first repair to try.
    pub repair: Repair,
    /// The fault in the request that causes this error. None if the request
    /// alone does not show it.
    pub fault: Option<Fault>,
    /// The usual message, with placeholders such as `{path}` and `{id}`.
    pub says: String,
    /// The messages of individual dialects, by id.
    pub says_at: BTreeMap<String, String>,
    /// The provider's machine-readable code, if any.
    pub code: Option<String>,
    /// The parameter the error is about, with placeholders.
    pub param: Option<String>,
}

/// The refusal of a fault that is unrelated to thinking. We have no repair for
/// these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalRow {
    /// The protocol that words it like this.
    pub protocol: Protocol,
    /// The fault in the request that causes it.
    pub fault: Fault,
    /// The message, with placeholders such as `{path}` and `{id}`.
    pub says: String,
    /// The provider's machine-readable code, if any.
    pub code: Option<String>,
    /// The parameter it is about, with placeholders.
    pub param: Option<String>,
    /// The missing header that causes this refusal.
    pub header: Option<String>,
    /// The dialects that return it. If empty, all dialects of the protocol.
    pub only: Vec<String>,
}

choices!(
    /// What is wrong with a request, as far as the provider can tell.
    #[non_exhaustive]
    Fault {
        /// Required thinking was not sent back.
        Missing = "missing",
        /// A tool loop does not start with thinking, although thinking was
        /// switched on explicitly.
        Leading = "leading",
        /// A tool call was sent back without the required seal.
        UnsealedCall = "unsealed_call",
        /// An item refers to the thinking before it, which is missing.
        Follower = "follower",
        /// A seal from another issuer, or a damaged one.
        Seal = "seal",
        /// The text, order or position of thinking has changed.
        Altered = "altered",
        /// Thinking without the item that followed it.
        Orphan = "orphan",
        /// The same thinking was sent twice.
        Duplicate = "duplicate",
        /// The item is only in the provider's store, but nothing was stored.
        NotStored = "not_stored",
        /// Thinking sent to a provider that does not accept it.
        Unwanted = "unwanted",
        /// A thinking mode that this model does not have.
        Mode = "mode",
        /// A field that requires a header.
        Header = "header",
        /// An effort level that this model does not accept.
        Effort = "effort",
        /// An effort level sent to a model that accepts none.
        NoEffort = "no_effort",
        /// A budget outside the accepted range.
        BudgetRange = "budget_range",
        /// The budget leaves no tokens for an answer.
        BudgetLimit = "budget_limit",
        /// A tool is forced while thinking is on.
        ForcedTool = "forced_tool",
        /// Tools together with thinking, where the model supports only one of
        /// them at a time.
        ToolsWithThinking = "tools_with_thinking",
        /// A message with empty content.
        EmptyContent = "empty_content",
        /// An id that is longer than the provider accepts.
        LongId = "long_id",
        /// A parameter that this model does not accept.
        Parameter = "parameter",
        /// The last message contains thinking, but thinking is off.
        WhileOff = "while_off",
        /// A tool call without a result.
        UnansweredCall = "unanswered_call",
        /// A tool result without a call.
        UncalledResult = "uncalled_result",
        /// Two tool calls with the same id.
        CallTwice = "call_twice",
        /// A system prompt among the messages of a model that accepts none there.
        InlineSystem = "inline_system",
        /// A header that every request must have is missing.
        NoHeader = "no_header",
    }
);

impl Fault {
    /// The faults a provider may report instead, if it has no error for this
    /// one. Nearest first.
    pub(crate) fn related(self) -> &'static [Fault] {
        match self {
            Fault::Missing => &[Fault::Missing, Fault::UnsealedCall, Fault::Leading],
            Fault::Leading => &[Fault::Leading, Fault::Missing],
            Fault::UnsealedCall => &[Fault::UnsealedCall, Fault::Missing],
            Fault::Seal => &[Fault::Seal, Fault::Altered],
            Fault::Altered => &[Fault::Altered, Fault::Seal, Fault::Missing],
            Fault::Follower => &[Fault::Follower],
            Fault::Orphan => &[Fault::Orphan],
            Fault::Duplicate => &[Fault::Duplicate],
            Fault::NotStored => &[Fault::NotStored],
            Fault::Unwanted => &[Fault::Unwanted],
            Fault::Mode => &[Fault::Mode],
            Fault::Header => &[Fault::Header],
            Fault::Effort => &[Fault::Effort],
            Fault::NoEffort => &[Fault::NoEffort, Fault::Effort],
            Fault::BudgetRange => &[Fault::BudgetRange],
            Fault::BudgetLimit => &[Fault::BudgetLimit],
            Fault::ForcedTool => &[Fault::ForcedTool],
            Fault::ToolsWithThinking => &[Fault::ToolsWithThinking],
            Fault::EmptyContent => &[Fault::EmptyContent],
            Fault::LongId => &[Fault::LongId],
            Fault::Parameter => &[Fault::Parameter],
            Fault::WhileOff => &[Fault::WhileOff],
            Fault::UnansweredCall => &[Fault::UnansweredCall],
            Fault::UncalledResult => &[Fault::UncalledResult],
            Fault::CallTwice => &[Fault::CallTwice],
            Fault::InlineSystem => &[Fault::InlineSystem],
            Fault::NoHeader => &[Fault::NoHeader],
        }
    }
}

choices!(
    /// What the error is about.
    #[non_exhaustive]
    ErrorClass {
        /// The conversation before a thinking block has changed.
        Prefix = "prefix",
        /// A seal from another issuer, or a damaged one.
        Foreign = "foreign",
        /// Thinking was sent back changed.
        Altered = "altered",
        /// Thinking was not sent back.
        Missing = "missing",
        /// A parameter the model does not accept.
        Config = "config",
        /// Thinking without the item that followed it.
        Orphan = "orphan",
        /// The server has no state for what we refer to.
        State = "state",
        /// The same thinking was sent twice.
        Duplicate = "duplicate",
        /// A message or an id has the wrong form.
        Shape = "shape",
        /// A tool is forced while thinking is on.
        ForcedTool = "forced_tool",
    }
);

choices!(
    /// A part of a request that a refusal may be about.
    #[non_exhaustive]
    RequestPart {
        /// The switch that turns thinking off.
        Off = "off",
        /// An effort level.
        Effort = "effort",
        /// A token budget for thinking.
        Budget = "budget",
        /// Thinking that is sent back.
        Thinking = "thinking",
        /// A choice of tools.
        ToolChoice = "tool_choice",
    }
);

choices!(
    /// The smallest change that repairs a request.
    #[non_exhaustive]
    Repair {
        /// Leave out sealed thinking, which is bound to the conversation before
        /// it.
        DropBlock = "drop_block",
        /// Leave out seals that were not issued by exactly this endpoint and
        /// model.
        StripForeign = "strip_foreign",
        /// Leave out the thinking of finished turns. The open tool loop keeps
        /// its own.
        DropOlder = "drop_older",
        /// Leave out all thinking, and nothing else.
        StripTurn = "strip_turn",
        /// Leave out all thinking and all fillers.
        DropField = "drop_field",
        /// Switch thinking off until the turn ends.
        OffForTurn = "off_for_turn",
        /// Use the thinking mode that this model has.
        SwitchMode = "switch_mode",
        /// Send the header that the field requires, or leave out the field.
        BindingHeader = "binding_header",
        /// Leave out thinking that nothing follows.
        DropOrphan = "drop_orphan",
        /// Leave out the ids of items that followed lost thinking.
        DropFollowerIds = "drop_follower_ids",
        /// Leave out all thinking items and the ids of the items that followed
        /// them.
        StripItems = "strip_items",
        /// Send full items instead of references, or none.
        FullItems = "full_items",
        /// Send each thinking item once.
        Dedupe = "dedupe",
        /// Add the field to every assistant message, with a filler if there is
        /// no thinking.
        FillAll = "fill_all",
        /// Add the field to every message of the open tool loop.
        FillLoop = "fill_loop",
        /// Add the field to every message with tool calls.
        FillCalls = "fill_calls",
        /// Put a space into the field where it is empty.
        FillSpace = "fill_space",
        /// Write seals in the standard alphabet of base64.
        StandardBase64 = "standard_base64",
        /// Leave out thinking that has only a seal and no text.
        DropHidden = "drop_hidden",
        /// Leave out thinking without a seal.
        DropUnsealed = "drop_unsealed",
        /// Put the documented dummy on tool calls without a seal.
        DummySignature = "dummy_signature",
        /// Put the documented dummy in place of every seal.
        DummyEverywhere = "dummy_everywhere",
        /// Send the nearest level that the model accepts.
        NearestEffort = "nearest_effort",
        /// Send no level.
        DropEffort = "drop_effort",
        /// Send no budget, except one that the dialect requires.
        DropBudget = "drop_budget",
        /// Leave out empty content.
        OmitEmptyContent = "omit_empty_content",
        /// Let the model choose whether to call a tool.
        ToolChoiceAuto = "tool_choice_auto",
        /// Send items without ids.
        OmitIds = "omit_ids",
        /// Leave out the sampling parameters that the message names.
        DropParameters = "drop_parameters",
        /// Leave out the switch that turns thinking off.
        OmitOff = "omit_off",
        /// Send no parameter about thinking.
        PlainRequest = "plain_request",
        /// Send a parameter with the value that the message asks for.
        SetParameter = "set_parameter",
        /// Leave out one parameter that was sent for the sake of thinking.
        OmitParameter = "omit_parameter",
        /// Send a parameter under the name that the message gives.
        MoveParameter = "move_parameter",
        /// Leave out one member of a block or an item.
        OmitMember = "omit_member",
        /// Add a required member to blocks or items that lack it.
        AddMember = "add_member",
        /// Leave out all thinking and all fillers, even where the dialect
        /// requires them.
        StripField = "strip_field",
        /// Leave out assistant messages that contain nothing but thinking, and
        /// empty texts.
        DropEmptied = "drop_emptied",
        /// Put thinking before the other blocks of its message.
        ThinkingFirst = "thinking_first",
        /// Leave out the thinking of messages that have text and calls.
        DropBesideText = "drop_beside_text",
        /// Send the effort `none`.
        EffortNone = "effort_none",
        /// Leave out the choice of tools.
        DropToolChoice = "drop_tool_choice",
    }
);

/// All error and refusal rows, in the order in which one dialect searches them.
#[derive(Debug, Clone, Default)]
pub(super) struct DialectErrors {
    /// The rows of the protocol's generic dialect first.
    pub(super) rows: Vec<ErrorRow>,
    /// Only those of this protocol.
    pub(super) refusals: Vec<RefusalRow>,
}

impl DialectErrors {
    pub(super) fn of(protocol: Protocol, known: &ErrorCatalogue, generic: &[String]) -> DialectErrors {
        let first = generic.iter().filter_map(|id| known.rows.iter().find(|row| row.id == *id));
        let rest = known.rows.iter().filter(|row| !generic.contains(&row.id));
        let refusals = known.refusals.iter().filter(|refusal| refusal.protocol == protocol);
        DialectErrors { rows: first.chain(rest).cloned().collect(), refusals: refusals.cloned().collect() }
    }
}

/// The contents of `errors.toml`.
#[derive(Debug, Clone, Default)]
pub(super) struct ErrorCatalogue {
    pub(super) rows: Vec<ErrorRow>,
    pub(super) refusals: Vec<RefusalRow>,
    /// Parts of messages about conversations that do not fit into the window.
    pub(super) too_long: Vec<String>,
    /// Parts of messages about accounts that have no credit left.
    pub(super) no_credit: Vec<String>,
    /// Parts of messages that are not about thinking, whatever keys they name.
    pub(super) unrelated: Vec<String>,
}

impl ErrorRow {
    /// Whether a provider's message matches this row, ignoring case, backticks
    /// and the kind of quotes.
    pub fn matches(&self, message: &str) -> bool {
        self.matches_normalized(&normalized(message))
    }

    /// The same for a message that was normalised before.
    pub(crate) fn matches_normalized(&self, message: &str) -> bool {
        contains_any(message, &self.texts)
    }
}

/// Whether a normalised message contains one of these texts.
pub(super) fn contains_any(message: &str, texts: &[String]) -> bool {
    texts.iter().any(|text| {
        let mut rest = message;
        normalized(text).split('*').all(|part| match after_words(rest, part) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        })
    })
}

/// What follows the first occurrence of `part` as whole words.
fn after_words<'m>(message: &'m str, part: &str) -> Option<&'m str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_word = part.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends_word = part.ends_with(|c: char| c.is_ascii_alphanumeric());
    // The last word of a phrase may also be the beginning of a path, which says something else.
    let ends_phrase = ends_word && part.contains(' ');
    message.match_indices(part).find_map(|(at, found)| {
        let (before, after) = (message.get(..at)?, message.get(at + found.len()..)?);
        let is_path = ends_phrase && after.strip_prefix('.').is_some_and(|below| below.starts_with(is_name));
        let is_part = (begins_word && (before.ends_with(is_name) || begins_a_model(before)))
            || (ends_word && after.starts_with(is_name));
        (!is_part && !is_path).then_some(after)
    })
}

/// Whether a text ends with the beginning of a model's name, which may end with any word:
/// `maker-2-thinking`, but not `extended-thinking`.
fn begins_a_model(text: &str) -> bool {
    let Some(text) = text.strip_suffix('-') else { return false };
    let name = text.rsplit(|c: char| !c.is_ascii_alphanumeric() && !"-_./:".contains(c)).next().unwrap_or_default();
    name.contains(|c: char| c.is_ascii_digit() || c == '-' || c == '/')
}

/// A message without case, backticks and the kind of quotes, which proxies
/// change, and with single spaces.
pub(crate) fn normalized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !matches!(c, '`' | '\\')).flat_map(char::to_lowercase) {
        match c {
            '"' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => out.push('\''),
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// The file format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorsFile {
    #[serde(default)]
    too_long: Vec<String>,
    #[serde(default)]
    no_credit: Vec<String>,
    #[serde(default)]
    unrelated: Vec<String>,
    #[serde(default)]
    error: Vec<ErrorTable>,
    #[serde(default)]
    refusal: Vec<RefusalTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorTable {
    id: String,
    #[serde(rename = "match")]
    texts: Vec<String>,
    when: Option<RequestPart>,
    #[serde(default)]
    keys: Vec<String>,
    status: Vec<u16>,
    class: ErrorClass,
    repair: Repair,
    fault: Option<Fault>,
    #[serde(default)]
    says: String,
    #[serde(default)]
    says_at: BTreeMap<String, String>,
    code: Option<String>,
    param: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalTable {
    #[serde(deserialize_with = "protocol")]
    protocol: Protocol,
    fault: Fault,
    says: String,
    code: Option<String>,
    param: Option<String>,
    header: Option<String>,
    #[serde(default)]
    only: Vec<String>,
}

fn protocol<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl ErrorsFile {
    /// Replaces rows with a known id in place, and puts new rows first.
    pub(super) fn merge_into(self, known: &mut ErrorCatalogue) {
        known.too_long.extend(self.too_long);
        known.no_credit.extend(self.no_credit);
        known.unrelated.extend(self.unrelated);
        let mut new = Vec::new();
        for table in self.error {
            let ErrorTable { id, texts, when, keys, status, class, repair, fault, says, says_at, code, param } = table;
            // A row without a message uses the text it is matched by.
            let says = if says.is_empty() { texts.first().cloned().unwrap_or_default() } else { says };
            let row = ErrorRow { id, texts, when, keys, status, class, repair, fault, says, says_at, code, param };
            match known.rows.iter_mut().find(|other| other.id == row.id) {
                // Files written before `fault` existed keep the built-in fault.
                Some(other) => *other = ErrorRow { fault: row.fault.or(other.fault), ..row },
                None => new.push(row),
            }
        }
        new.append(&mut known.rows);
        known.rows = new;
        for table in self.refusal {
            let RefusalTable { protocol, fault, says, code, param, header, only } = table;
            let refusal = RefusalRow { protocol, fault, says, code, param, header, only };
            let same = |other: &&mut RefusalRow| {
                (other.protocol, other.fault, &other.header) == (protocol, fault, &refusal.header)
            };
            match known.refusals.iter_mut().find(same) {
                Some(other) => *other = refusal,
                None => known.refusals.push(refusal),
            }
        }
    }
}
