//! Calls and their results: each has the other, in the place where the
//! protocol looks for it. Nothing here is about thinking.

use std::collections::HashSet;

use super::Court;
use super::view::{Answer, Call, Seen, Speaker};
use crate::dialect::Fault;
use crate::protocol::Protocol;
use crate::wire::json::member;

impl Court<'_> {
    pub(super) fn calls(&mut self) {
        match self.dialect.protocol {
            Protocol::OpenaiResponses => self.anywhere(),
            // Its ids are optional: as many results as calls.
            Protocol::Gemini => self.counted(),
            Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Bedrock | Protocol::Cohere => self.right_behind(),
            // It pairs nothing and refuses nothing.
            Protocol::Ollama => (),
        }
        for message in self.seen {
            let mut known = HashSet::new();
            for call in &message.calls {
                if let Some(id) = call.id.as_deref().filter(|id| !known.insert(*id)) {
                    self.complain(Fault::CallTwice, &call.path, message.at, id);
                }
            }
        }
    }

    /// Results stand between the calls and whatever comes next.
    fn right_behind(&mut self) {
        let one_each = matches!(self.dialect.protocol, Protocol::OpenaiChat | Protocol::Cohere);
        let mut open: Option<(&Seen, Vec<&Call>)> = None;
        for message in self.seen {
            for answer in &message.results {
                self.answer(answer, &mut open);
            }
            let goes_on = match message.speaker {
                Speaker::Tool => true,
                Speaker::User => !one_each,
                Speaker::Assistant => false,
            };
            if !goes_on {
                self.unanswered(open.take());
            }
            if !message.calls.is_empty() {
                open = Some((message, message.calls.iter().collect()));
            }
        }
        self.unanswered(open);
    }

    fn answer(&mut self, answer: &Answer, open: &mut Option<(&Seen, Vec<&Call>)>) {
        // A result without an id answers in order.
        let Some(id) = answer.id.as_deref() else {
            if let Some((_, calls)) = open.as_mut().filter(|(_, calls)| !calls.is_empty()) {
                calls.remove(0);
            }
            return;
        };
        let known = |call: &&Call| call.id.as_deref().is_none_or(|known| known == id);
        let found = open.as_ref().is_some_and(|(message, _)| message.calls.iter().any(|call| known(&call)));
        if !found {
            self.complain(Fault::UncalledResult, &answer.path, answer.at, id);
        }
        if let Some((_, calls)) = open {
            calls.retain(|call| !known(call));
        }
    }

    fn unanswered(&mut self, open: Option<(&Seen, Vec<&Call>)>) {
        let Some((message, calls)) = open.filter(|(_, calls)| !calls.is_empty()) else { return };
        let ids: Vec<&str> = calls.iter().filter_map(|call| call.id.as_deref()).collect();
        // Whoever is asked names the message where results are expected, or
        // the one with the calls.
        let at = message.at + usize::from(self.dialect.protocol == Protocol::Bedrock);
        self.complain(Fault::UnansweredCall, &message.path, at, &ids.join(", "));
    }

    fn counted(&mut self) {
        let mut n_open: Option<(&Seen, usize)> = None;
        for message in self.seen {
            if !message.results.is_empty() {
                match n_open.take() {
                    None => self.complain(Fault::UncalledResult, &message.path, message.at, ""),
                    Some((_, n_calls)) if n_calls != message.results.len() => {
                        self.complain(Fault::UnansweredCall, &message.path, message.at, "");
                    }
                    Some(_) => (),
                }
            } else if let Some((calling, _)) = n_open.take() {
                self.complain(Fault::UnansweredCall, &calling.path, calling.at, "");
            }
            if !message.calls.is_empty() {
                n_open = Some((message, message.calls.len()));
            }
        }
    }

    /// Calls and outputs of one list, in whatever order.
    fn anywhere(&mut self) {
        // What the server keeps may hold the other half.
        if member(self.body, "previous_response_id").or_else(|| member(self.body, "conversation")).is_some() {
            return;
        }
        let refers = self.seen.iter().flat_map(|message| &message.items).any(|item| item.kind == "item_reference");
        let calls: Vec<&Call> = self.seen.iter().flat_map(|message| &message.calls).collect();
        let results: Vec<&Answer> = self.seen.iter().flat_map(|message| &message.results).collect();
        for call in &calls {
            let Some(id) = call.id.as_deref() else { continue };
            if !results.iter().any(|result| result.id.as_deref() == Some(id)) {
                self.complain(Fault::UnansweredCall, &call.path, 0, id);
            }
        }
        for result in results.iter().filter(|_| !refers) {
            let Some(id) = result.id.as_deref() else { continue };
            if !calls.iter().any(|call| call.id.as_deref() == Some(id)) {
                self.complain(Fault::UncalledResult, &result.path, 0, id);
            }
        }
    }

    fn complain(&mut self, fault: Fault, path: &str, at: usize, id: &str) {
        // Protocols that have no words for it do not mind.
        if self.dialect.refusals().any(|refusal| refusal.fault == fault) {
            self.refuse("calls and results belong together", path, fault, &[("id", id), ("index", &at.to_string())]);
        }
    }
}
