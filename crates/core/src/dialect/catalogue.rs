//! The complaints of providers about thinking, what mends each, and the words
//! they come in.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::table::words;
use crate::protocol::Protocol;

/// One complaint. Rows are asked in order; the first that fits counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRow {
    pub id: String,
    /// Pieces of the message, any of which is enough.
    pub texts: Vec<String>,
    /// The HTTP codes it has been seen with, the usual one first.
    pub status: Vec<u16>,
    pub class: ErrorClass,
    pub repair: Repair,
    /// The fault of a request that is answered like this; none where a request
    /// alone does not show it.
    pub fault: Option<Fault>,
    /// The usual words, with places to fill in: `{path}`, `{id}`.
    pub says: String,
    /// The words of single dialects, by their ids.
    pub says_at: BTreeMap<String, String>,
    /// The machine's word for it, where the provider has one.
    pub code: Option<String>,
    /// The parameter complained about, with places to fill in.
    pub param: Option<String>,
}

/// What a protocol says to a fault that has nothing to do with thinking:
/// nothing of ours mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub protocol: Protocol,
    pub fault: Fault,
    pub says: String,
    pub code: Option<String>,
    pub param: Option<String>,
    /// The header whose absence this is about.
    pub header: Option<String>,
    /// The dialects that say it; all of the protocol where it names none.
    pub only: Vec<String>,
}

words!(
    /// What is wrong with a request, as far as a provider can see.
    Fault {
        /// A thought that is demanded did not come back.
        Missing = "missing",
        /// A loop begins without a thought, where thinking is on by hand.
        Leading = "leading",
        /// A call came back without the seal it needs.
        UnsealedCall = "unsealed_call",
        /// An item names the thought it followed, and the thought is not there.
        Follower = "follower",
        /// A seal of another issuer, or a damaged one.
        Seal = "seal",
        /// Words, order or place of a thought have changed.
        Altered = "altered",
        /// A thought without the item it led to.
        Orphan = "orphan",
        Duplicate = "duplicate",
        /// Only the provider's store knows the item, and nothing was stored.
        NotStored = "not_stored",
        /// Thinking where none is taken back.
        Unwanted = "unwanted",
        /// A way to switch thinking that this model does not have.
        Mode = "mode",
        /// A field that needs a header.
        Header = "header",
        Effort = "effort",
        /// A level, where the model takes none.
        NoEffort = "no_effort",
        BudgetRange = "budget_range",
        /// The budget leaves no room for an answer.
        BudgetLimit = "budget_limit",
        ForcedTool = "forced_tool",
        EmptyContent = "empty_content",
        LongId = "long_id",
        Parameter = "parameter",
        /// A thought to go on from, with thinking off.
        WhileOff = "while_off",
        /// A call that nobody answered.
        UnansweredCall = "unanswered_call",
        /// An answer that nobody asked for.
        UncalledResult = "uncalled_result",
        /// Two calls with one id.
        CallTwice = "call_twice",
        /// A header that every request carries.
        NoHeader = "no_header",
    }
);

impl Fault {
    /// What a provider without words for this calls it, nearest first.
    pub(crate) fn akin(self) -> &'static [Fault] {
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
            Fault::EmptyContent => &[Fault::EmptyContent],
            Fault::LongId => &[Fault::LongId],
            Fault::Parameter => &[Fault::Parameter],
            Fault::WhileOff => &[Fault::WhileOff],
            Fault::UnansweredCall => &[Fault::UnansweredCall],
            Fault::UncalledResult => &[Fault::UncalledResult],
            Fault::CallTwice => &[Fault::CallTwice],
            Fault::NoHeader => &[Fault::NoHeader],
        }
    }
}

words!(
    /// What a provider complains about.
    ErrorClass {
        /// The conversation before a thought has changed.
        Prefix = "prefix",
        /// A seal of another issuer, or a damaged one.
        Foreign = "foreign",
        /// A thought came back changed.
        Altered = "altered",
        /// A thought did not come back.
        Missing = "missing",
        /// A parameter the model does not take.
        Config = "config",
        /// A thought without the item it led to.
        Orphan = "orphan",
        /// The server does not remember what we refer to.
        State = "state",
        Duplicate = "duplicate",
        Shape = "shape",
        /// A tool is forced while thinking is on.
        ForcedTool = "forced_tool",
    }
);

words!(
    /// The smallest change that mends a request.
    Repair {
        /// Leave out the sealed thoughts: they are bound to what came before them.
        DropBlock = "drop_block",
        /// Leave out seals that exactly this endpoint and model did not make.
        StripForeign = "strip_foreign",
        /// Leave out the thinking of finished turns; the open tool loop keeps its own.
        DropOlder = "drop_older",
        /// Leave out all thinking, and nothing else.
        StripTurn = "strip_turn",
        /// Leave out all thinking, and its fillers too.
        DropField = "drop_field",
        /// No thinking until the turn ends.
        OffForTurn = "off_for_turn",
        /// Use the way to switch thinking that this model has.
        SwitchMode = "switch_mode",
        /// Send the header the field needs, or leave out the field.
        BindingHeader = "binding_header",
        DropOrphan = "drop_orphan",
        /// Leave out the ids of the items a lost thought led to.
        DropFollowerIds = "drop_follower_ids",
        /// Leave out all items of thinking and the ids of their followers.
        StripItems = "strip_items",
        /// Send whole items instead of references, or none.
        FullItems = "full_items",
        Dedupe = "dedupe",
        /// Every assistant message gets the field, empty where unknown.
        FillAll = "fill_all",
        /// Every message of the open tool loop gets the field.
        FillLoop = "fill_loop",
        /// Every message with tool calls gets the field.
        FillCalls = "fill_calls",
        /// The documented dummy on calls that have no seal.
        DummySignature = "dummy_signature",
        /// The documented dummy in place of every seal.
        DummyEverywhere = "dummy_everywhere",
        /// The nearest level the model takes.
        NearestEffort = "nearest_effort",
        /// No level at all.
        DropEffort = "drop_effort",
        /// No budget but the one the dialect needs.
        DropBudget = "drop_budget",
        /// Leave out empty content.
        OmitEmptyContent = "omit_empty_content",
        /// Let the model choose the tool.
        ToolChoiceAuto = "tool_choice_auto",
        /// Send items without ids.
        OmitIds = "omit_ids",
        /// Leave out what `ask.forbid` and `ask.forbid_when_on` list.
        DropParameters = "drop_parameters",
    }
);

/// Every complaint and every refusal, as one dialect looks them up.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    /// Those of the generic dialect of the protocol first.
    pub(super) rows: Vec<ErrorRow>,
    /// Of this protocol only.
    pub(super) refusals: Vec<Refusal>,
}

impl Answers {
    pub(super) fn of(protocol: Protocol, known: &Catalogue, generic: &[String]) -> Answers {
        let first = generic.iter().filter_map(|id| known.rows.iter().find(|row| row.id == *id));
        let rest = known.rows.iter().filter(|row| !generic.contains(&row.id));
        let refusals = known.refusals.iter().filter(|refusal| refusal.protocol == protocol);
        Answers { rows: first.chain(rest).cloned().collect(), refusals: refusals.cloned().collect() }
    }
}

/// The whole of `errors.toml`.
#[derive(Debug, Clone, Default)]
pub(super) struct Catalogue {
    pub(super) rows: Vec<ErrorRow>,
    pub(super) refusals: Vec<Refusal>,
}

impl ErrorRow {
    /// Whether a provider's words mean this row; case and back-ticks aside.
    pub fn fits(&self, message: &str) -> bool {
        let message = plain(message);
        self.texts.iter().any(|text| message.contains(&plain(text)))
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| *c != '`').flat_map(char::to_lowercase).collect()
}

/// The file as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorsFile {
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
    /// A known id is replaced in its place; new ones are asked first.
    pub(super) fn lay_over(self, known: &mut Catalogue) {
        let mut new = Vec::new();
        for table in self.error {
            let ErrorTable { id, texts, status, class, repair, fault, says, says_at, code, param } = table;
            // A row that says nothing says what it is known by.
            let says = if says.is_empty() { texts.first().cloned().unwrap_or_default() } else { says };
            let row = ErrorRow { id, texts, status, class, repair, fault, says, says_at, code, param };
            match known.rows.iter_mut().find(|other| other.id == row.id) {
                // Files from before faults were named keep what is judged.
                Some(other) => *other = ErrorRow { fault: row.fault.or(other.fault), ..row },
                None => new.push(row),
            }
        }
        new.append(&mut known.rows);
        known.rows = new;
        for table in self.refusal {
            let RefusalTable { protocol, fault, says, code, param, header, only } = table;
            let refusal = Refusal { protocol, fault, says, code, param, header, only };
            let same = |other: &&mut Refusal| {
                (other.protocol, other.fault, &other.header) == (protocol, fault, &refusal.header)
            };
            match known.refusals.iter_mut().find(same) {
                Some(other) => *other = refusal,
                None => known.refusals.push(refusal),
            }
        }
    }
}
