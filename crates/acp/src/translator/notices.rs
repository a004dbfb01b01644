//! Tells the user what is not part of the conversation.

use super::{Notices, Translator};
use crate::growth::{ChunkKind, ChunkTarget};
use crate::session_update::{AsideMeta, NoticeSeverity, SessionUpdate};

impl Translator {
    /// Tells the user something that is not part of the conversation.
    pub(crate) fn notice(
        &mut self,
        severity: NoticeSeverity,
        what: &str,
        detail: Option<&str>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match self.client.notices {
            Notices::Shown => out.push(SessionUpdate::Notice {
                severity,
                title: what.to_owned(),
                description: detail.map(str::to_owned),
            }),
            Notices::NotShown => {
                let line = detail.map_or_else(|| what.to_owned(), |detail| format!("{what}; {detail}"));
                let meta = AsideMeta { notice: Some(line), ..AsideMeta::default() };
                out.push(SessionUpdate::SessionInfoUpdate { title: None, meta: meta.meta() });
            }
        }
    }

    /// Tells the user something that must not be missed.
    pub(crate) fn warning(&mut self, what: &str, hint: Option<&str>, out: &mut Vec<SessionUpdate>) {
        match self.client.notices {
            Notices::Shown => self.notice(NoticeSeverity::Warning, what, hint, out),
            Notices::NotShown => {
                let hint = hint.map(|hint| format!("\n\nHint: {hint}")).unwrap_or_default();
                self.output(&format!("{what}{hint}"), out);
            }
        }
    }

    /// The output of a command, as a message of its own.
    pub(crate) fn output(&mut self, markdown: &str, out: &mut Vec<SessionUpdate>) {
        self.flush(out);
        self.n_outputs += 1;
        let message_id = format!("output-{}", self.n_outputs);
        let target = ChunkTarget { kind: ChunkKind::Answer, message_id, block: 0, item: None };
        self.last_thought = None;
        target.write(markdown, out);
    }
}
