//! What a stream has written of each block.

use super::detail_out::DetailOut;
use super::thinking_carrier::{ThinkingCarrier, ThinkingTags};
use crate::block::SealKind;
use crate::event::Event;

#[derive(Debug)]
pub(super) enum ChatBlockOut {
    Text { seal: Option<String> },
    Thinking(Box<ThinkingOut>),
    Call(Box<CallOut>),
    Unmodelled { native: String },
}

#[derive(Debug)]
pub(super) struct ThinkingOut {
    pub(super) carrier: ThinkingCarrier,
    /// Its entry in a detail list: the carrier itself, or the place for its
    /// seals.
    pub(super) detail: Option<DetailOut>,
    pub(super) native: Option<String>,
    /// The number of summary n_items so far.
    pub(super) n_items: u32,
    pub(super) grew: bool,
    pub(super) closed: bool,
    pub(super) signature: Option<String>,
    pub(super) encrypted: Option<String>,
}

#[derive(Debug)]
pub(super) struct CallOut {
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) began: bool,
    /// Arguments to write together with the name, where calls come whole.
    pub(super) arguments: String,
    pub(super) seal: Option<String>,
    pub(super) native: Option<String>,
}

impl ThinkingOut {
    pub(super) fn tagged(tags: ThinkingTags) -> ThinkingOut {
        ThinkingOut {
            carrier: ThinkingCarrier::Tags(tags),
            detail: None,
            native: None,
            n_items: 0,
            grew: false,
            closed: false,
            signature: None,
            encrypted: None,
        }
    }

    pub(super) fn apply(&mut self, event: Event<'_>) {
        match event {
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::NativeItem { json, text_member, .. } => match &mut self.detail {
                Some(detail) => detail.keep(json, text_member),
                None => self.native = Some(json.to_owned()),
            },
            Event::Identified { id, .. } => {
                if let Some(detail) = &mut self.detail {
                    detail.identify(id);
                }
            }
            Event::Item { .. } => {
                if let Some(detail) = &mut self.detail {
                    detail.mark_summary();
                }
            }
            Event::Started { .. }
            | Event::Opened { .. }
            | Event::Grew { .. }
            | Event::Refiled { .. }
            | Event::Restated { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}
