//! Checks the parameters of a request against what the model accepts.

use super::Judge;
use super::requested_thinking::{at_either_case, contains_patch};
use crate::dialect::{Fault, Off, ThinkingWithTools};
use crate::json_text::{JsonKind, each_element, member, text_member, text_of, value_at};
use crate::protocol::Protocol;

impl Judge<'_> {
    pub(super) fn check_parameters(&mut self) {
        self.check_effort();
        self.check_budget();
        self.check_forbidden();
        self.check_forced_tool();
        self.check_tools();
        self.check_mode();
        self.check_inline_system();
    }

    fn check_effort(&mut self) {
        let effort = &self.rules.ask.effort;
        if effort.path.is_empty() {
            self.check_no_effort();
            return;
        }
        let Some(word) = at_either_case(self.body, &effort.path).and_then(text_of) else { return };
        let is_known = |known: &String| match self.dialect.protocol {
            // Its SDKs write the names of the enum, in capitals.
            Protocol::Gemini => known.eq_ignore_ascii_case(&word),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => *known == word,
        };
        let known = effort.values.iter().chain(effort.map.values()).any(is_known);
        // `none` switches thinking off for some models and is not in the list
        // of levels. Servers also accept the levels that they map to others.
        if known || word == "none" || effort.map.contains_key(&word) || effort.values.is_empty() {
            return;
        }
        let quoted: Vec<String> = effort.values.iter().map(|level| format!("'{level}'")).collect();
        let values = match quoted.as_slice() {
            [.., _, _] => quoted.split_last().map(|(last, rest)| format!("{}, and {last}", rest.join(", "))),
            _ => None,
        };
        let values = values.unwrap_or_else(|| quoted.concat());
        let words = [("value", word.as_str()), ("values", &values), ("field", &effort.path)];
        self.report("ask.effort.values", &effort.path, Fault::Effort, &words);
    }

    /// Checks for a level that only other models of this provider accept.
    fn check_no_effort(&mut self) {
        if !self.dialect.rules_report_fault(self.rules, Fault::NoEffort) {
            return;
        }
        let paths = self.dialect.models().map(|(_, rules)| rules.ask.effort.path.as_str());
        let Some(path) = paths.filter(|path| !path.is_empty()).find(|path| self.body.at_path(path).is_some()) else {
            return;
        };
        self.report("ask.effort.path", path, Fault::NoEffort, &[("name", self.model), ("field", path)]);
    }

    fn check_budget(&mut self) {
        let ask = &self.rules.ask;
        let number = |path: &str| {
            let value = (!path.is_empty()).then(|| at_either_case(self.body, path)).flatten();
            value.and_then(|value| value.get().parse::<u64>().ok())
        };
        let Some(budget) = number(&ask.budget.path) else { return };
        let limit = number(&ask.max_tokens.path);
        let (least, most) = ask.budget.range.unwrap_or((0, u64::MAX));
        let words = [budget, least, most].map(|n| n.to_string());
        let [value, low, high] = &words;
        let words = [("value", value.as_str()), ("least", low), ("most", high), ("field", &ask.budget.path)];
        // Some providers switch thinking off with a budget of 0.
        if (budget < least && budget > 0) || budget > most {
            self.report("ask.budget.range", &ask.budget.path, Fault::BudgetRange, &words);
        } else if limit.is_some_and(|limit| budget >= limit) {
            self.report("ask.budget.range", &ask.budget.path, Fault::BudgetLimit, &words);
        }
    }

    fn check_forbidden(&mut self) {
        let ask = &self.rules.ask;
        let while_on = ask.forbid_when_on.iter().filter(|_| self.thinks).map(|name| (name, "ask.forbid_when_on"));
        let never = ask.forbid.iter().map(|name| (name, "ask.forbid"));
        let refused: Vec<(&String, &str)> = never.chain(while_on).filter(|(name, _)| self.is_set(name)).collect();
        for (name, rule) in refused {
            self.report(rule, name, Fault::Parameter, &[("value", name)]);
        }
    }

    /// Whether a parameter is present with a value other than its default.
    fn is_set(&self, name: &str) -> bool {
        let Some(value) = self.body.at_path(name) else { return false };
        let number = value.get().parse::<f64>().ok();
        let usual = match name {
            "temperature" | "n" => number == Some(1.0),
            "top_p" => number.is_some_and(|share| (0.95..=1.0).contains(&share)),
            "presence_penalty" | "frequency_penalty" => number == Some(0.0),
            _ => false,
        };
        value.kind() != JsonKind::Null && !usual && !matches!(value.get(), "false" | "[]" | "{}")
    }

    /// Checks for a system prompt among the messages of a model that accepts
    /// none there.
    pub(super) fn check_inline_system(&mut self) {
        if self.dialect.protocol != Protocol::Anthropic || self.rules.ask.inline_system {
            return;
        }
        let mut place = None;
        if let Some(messages) = self.body.get("messages") {
            let mut at = 0;
            each_element(messages, |message| {
                if place.is_none() && text_member(message, "role").as_deref() == Some("system") {
                    place = Some(at);
                }
                at += 1;
            });
        }
        if let Some(at) = place {
            self.report("ask.inline_system = false", &format!("messages[{at}].role"), Fault::InlineSystem, &[]);
        }
    }

    fn check_forced_tool(&mut self) {
        if self.rules.ask.forced_tools_ok || !self.thinks {
            return;
        }
        if let Some((path, word)) = self.forced_choice() {
            self.report("ask.forced_tools_ok = false", path, Fault::ForcedTool, &[("value", &word)]);
        }
    }

    /// Checks for tools beside thinking, where the model has only one of them.
    /// A model that takes no tools at all is for the provider to refuse.
    fn check_tools(&mut self) {
        if self.rules.ask.tools != ThinkingWithTools::WithOff || !self.thinks {
            return;
        }
        let mut has_tools = false;
        if let Some(tools) = self.body.get("tools").filter(|tools| tools.kind() == JsonKind::Array) {
            each_element(tools, |_| has_tools = true);
        }
        if has_tools {
            self.report("ask.tools", "tools", Fault::ToolsWithThinking, &[("name", self.model)]);
        }
    }

    /// The path where a request forces a tool, and the value used.
    fn forced_choice(&self) -> Option<(&'static str, String)> {
        let chosen = |path: &'static str| self.body.at_path(path).map(|choice| (path, choice));
        match self.dialect.protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Cohere => {
                let (path, choice) = chosen("tool_choice")?;
                let word = text_of(choice).map(|word| word.to_lowercase());
                let kind = text_member(choice, "type").filter(|kind| kind != "allowed_tools");
                let forced =
                    word.filter(|word| word == "required" || word == "any").or(kind.map(|_| "specified".to_owned()));
                forced.map(|word| (path, word))
            }
            Protocol::Anthropic => {
                let (path, choice) = chosen("tool_choice")?;
                let kind = text_member(choice, "type")?;
                (kind == "any" || kind == "tool").then_some((path, kind))
            }
            Protocol::Bedrock => {
                let (path, choice) = chosen("toolConfig.toolChoice")?;
                ["any", "tool"]
                    .iter()
                    .find(|kind| member(choice, kind).is_some())
                    .map(|kind| (path, (*kind).to_owned()))
            }
            Protocol::Gemini => {
                let (path, mode) = chosen("toolConfig.functionCallingConfig.mode")?;
                text_of(mode).filter(|mode| mode.eq_ignore_ascii_case("any")).map(|mode| (path, mode))
            }
        }
    }

    /// Checks that the model has the requested thinking mode.
    fn check_mode(&mut self) {
        if !self.dialect.rules_report_fault(self.rules, Fault::Mode) {
            return;
        }
        let below = ["thinking.type", "additionalModelRequestFields.thinking.type"];
        let mode = below.iter().find_map(|path| Some((*path, self.body.at_path(path).and_then(text_of)?)));
        let Some((path, kind)) = mode else { return };
        let on = below.iter().find_map(|path| value_at(&self.rules.ask.on, path).and_then(serde_json::Value::as_str));
        let refused = match kind.as_str() {
            "disabled" => self.rules.ask.off == Off::Unsupported,
            "adaptive" => on == Some("enabled"),
            _ => false,
        };
        if refused {
            self.report("ask.on", path, Fault::Mode, &[("value", &kind)]);
        }
    }

    /// Checks the headers that every request needs, and those that a field
    /// requires.
    pub(super) fn check_headers(&mut self, headers: &[(String, String)]) {
        let demands = self.dialect.refusals().any(|refusal| refusal.header.is_some());
        if headers.is_empty() {
            if demands || !self.rules.ask.headers.is_empty() {
                self.note_unverified("headers: none were given");
            }
            return;
        }
        let has = |name: &str, value: &str| {
            headers.iter().any(|(known, given)| known.eq_ignore_ascii_case(name) && given.contains(value))
        };
        let demanded: Vec<String> = self.dialect.refusals().filter_map(|refusal| refusal.header.clone()).collect();
        for name in demanded.iter().filter(|name| !has(name, "")) {
            self.report("required headers must be present", name, Fault::NoHeader, &[]);
        }
        let ask = &self.rules.ask;
        let missing = |(name, value): &(&String, &String)| !has(name, value);
        let uses_field = !ask.extra.is_empty() && contains_patch(self.body, &ask.extra);
        if let Some((name, _)) = ask.headers.iter().find(missing).filter(|_| uses_field) {
            self.report("ask.headers", name, Fault::Header, &[]);
        }
    }
}
