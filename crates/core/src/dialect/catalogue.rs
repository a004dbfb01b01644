//! The complaints of providers about thinking, and what mends each.

use serde::Deserialize;

use super::table::words;

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
        /// Ask the provider to drop thoughts whose prefix changed.
        DropBlock = "drop_block",
        /// Leave out thinking of other origins, then all of it.
        StripForeign = "strip_foreign",
        /// Leave out the thinking of the turn complained about.
        StripTurn = "strip_turn",
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
        /// The documented dummy in place of the seal.
        DummySignature = "dummy_signature",
        /// The nearest level the model takes.
        NearestEffort = "nearest_effort",
        /// Leave out empty content.
        OmitEmptyContent = "omit_empty_content",
        /// Let the model choose the tool.
        ToolChoiceAuto = "tool_choice_auto",
        /// Send items without ids.
        OmitIds = "omit_ids",
        /// Leave out what `ask.forbid_when_on` lists.
        DropParameters = "drop_parameters",
    }
);

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
}

impl ErrorsFile {
    /// A known id is replaced in its place; new ones are asked first.
    pub(super) fn lay_over(self, known: &mut Vec<ErrorRow>) {
        let mut new = Vec::new();
        for ErrorTable { id, texts, status, class, repair } in self.error {
            let row = ErrorRow { id, texts, status, class, repair };
            match known.iter_mut().find(|other| other.id == row.id) {
                Some(other) => *other = row,
                None => new.push(row),
            }
        }
        new.append(known);
        *known = new;
    }
}
