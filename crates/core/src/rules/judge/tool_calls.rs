//! Checks that every tool call has a result and every result a call, where the
//! protocol expects it. Unrelated to thinking.

use std::collections::HashSet;

use super::Judge;
use super::request_view::{JudgedCall, JudgedMessage, JudgedResult, JudgedRole};
use crate::dialect::Fault;
use crate::protocol::Protocol;

impl Judge<'_> {
    pub(super) fn check_calls(&mut self) {
        match self.dialect.protocol {
            Protocol::OpenaiResponses => self.check_any_order(),
            // Ids are optional there, so only the numbers are compared.
            Protocol::Gemini => self.check_counts(),
            Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Bedrock | Protocol::Cohere => self.check_adjacent(),
            // It does not check calls.
            Protocol::Ollama => (),
        }
        for message in self.messages {
            let mut known = HashSet::new();
            for call in &message.calls {
                if let Some(id) = call.id.as_deref().filter(|id| !known.insert(*id)) {
                    self.report_calls(Fault::CallTwice, &call.path, message.at, id);
                }
            }
        }
    }

    /// Checks that results directly follow the calls.
    fn check_adjacent(&mut self) {
        let one_each = matches!(self.dialect.protocol, Protocol::OpenaiChat | Protocol::Cohere);
        let mut open: Option<(&JudgedMessage, Vec<&JudgedCall>)> = None;
        for message in self.messages {
            for answer in &message.results {
                self.match_result(answer, &mut open);
            }
            let continues = match message.role {
                JudgedRole::Tool => true,
                JudgedRole::User => !one_each,
                JudgedRole::Assistant => false,
            };
            if !continues {
                self.report_unanswered(open.take());
            }
            if !message.calls.is_empty() {
                open = Some((message, message.calls.iter().collect()));
            }
        }
        self.report_unanswered(open);
    }

    fn match_result(&mut self, answer: &JudgedResult, open: &mut Option<(&JudgedMessage, Vec<&JudgedCall>)>) {
        // Results without an id are matched in order.
        let Some(id) = answer.id.as_deref() else {
            if let Some((_, calls)) = open.as_mut().filter(|(_, calls)| !calls.is_empty()) {
                calls.remove(0);
            }
            return;
        };
        let known = |call: &&JudgedCall| call.id.as_deref().is_none_or(|known| known == id);
        let found = open.as_ref().is_some_and(|(message, _)| message.calls.iter().any(|call| known(&call)));
        if !found {
            self.report_calls(Fault::UncalledResult, &answer.path, answer.at, id);
        }
        if let Some((_, calls)) = open {
            calls.retain(|call| !known(call));
        }
    }

    fn report_unanswered(&mut self, open: Option<(&JudgedMessage, Vec<&JudgedCall>)>) {
        let Some((message, calls)) = open.filter(|(_, calls)| !calls.is_empty()) else { return };
        let ids: Vec<&str> = calls.iter().filter_map(|call| call.id.as_deref()).collect();
        // Bedrock names the message where the results are expected, others the
        // one with the calls.
        let at = message.at + usize::from(self.dialect.protocol == Protocol::Bedrock);
        self.report_calls(Fault::UnansweredCall, &message.path, at, &ids.join(", "));
    }

    fn check_counts(&mut self) {
        let mut n_open: Option<(&JudgedMessage, usize)> = None;
        for message in self.messages {
            if !message.results.is_empty() {
                match n_open.take() {
                    None => self.report_calls(Fault::UncalledResult, &message.path, message.at, ""),
                    Some((_, n_calls)) if n_calls != n_different(&message.results) => {
                        self.report_calls(Fault::UnansweredCall, &message.path, message.at, "");
                    }
                    Some(_) => (),
                }
            } else if let Some((calling, _)) = n_open.take() {
                self.report_calls(Fault::UnansweredCall, &calling.path, calling.at, "");
            }
            if !message.calls.is_empty() {
                n_open = Some((message, message.calls.len()));
            }
        }
    }

    /// Checks calls and results in one list, in any order.
    fn check_any_order(&mut self) {
        // The other half may be stored on the server.
        if self.body.get("previous_response_id").or_else(|| self.body.get("conversation")).is_some() {
            return;
        }
        let refers = self.messages.iter().flat_map(|message| &message.items).any(|item| item.kind == "item_reference");
        let calls: Vec<&JudgedCall> = self.messages.iter().flat_map(|message| &message.calls).collect();
        let results: Vec<&JudgedResult> = self.messages.iter().flat_map(|message| &message.results).collect();
        for call in &calls {
            let Some(id) = call.id.as_deref() else { continue };
            if !results.iter().any(|result| result.id.as_deref() == Some(id)) {
                self.report_calls(Fault::UnansweredCall, &call.path, 0, id);
            }
        }
        for result in results.iter().filter(|_| !refers) {
            let Some(id) = result.id.as_deref() else { continue };
            if !calls.iter().any(|call| call.id.as_deref() == Some(id)) {
                self.report_calls(Fault::UncalledResult, &result.path, 0, id);
            }
        }
    }

    fn report_calls(&mut self, fault: Fault, path: &str, at: usize, id: &str) {
        // Protocols without an error for the fault do not check it.
        if self.dialect.refusals().any(|refusal| refusal.fault == fault) {
            self.report("calls and results belong together", path, fault, &[("id", id), ("index", &at.to_string())]);
        }
    }
}

/// The number of results. Gemini's own client repeats the result of a call, with its id, when
/// it resumes a session, so a repeated id counts once.
fn n_different(results: &[JudgedResult]) -> usize {
    let mut known = HashSet::new();
    results.iter().filter(|result| result.id.as_deref().is_none_or(|id| known.insert(id))).count()
}
