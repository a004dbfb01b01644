//! An answer in the words and the shape of a provider.

use super::{Broken, Court};
use crate::dialect::Fault;
use crate::protocol::Protocol;
use crate::wire::json::quote;

/// A complaint, before it has a shape.
struct Complaint {
    status: u16,
    message: String,
    code: Option<String>,
    param: Option<String>,
}

impl Court<'_> {
    /// Records a broken rule, answered as this provider answers the fault.
    pub(super) fn refuse(&mut self, rule: &str, path: &str, fault: Fault, words: &[(&str, &str)]) {
        let dotted = path.replace('[', ".").replace(']', "");
        let mut places = vec![("path", dotted.as_str()), ("place", path)];
        places.extend(words);
        let index = path.split(['[', ']']).nth(1).unwrap_or_default();
        places.push(("index", index));
        let complaint = self.complaint(fault, rule, &places);
        let body = shaped(self.dialect.protocol, &complaint);
        let headers = match self.dialect.protocol {
            Protocol::Bedrock => vec![("x-amzn-errortype".to_owned(), "ValidationException".to_owned())],
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => Vec::new(),
        };
        let Complaint { status, message, .. } = complaint;
        let (rule, path) = (rule.to_owned(), path.to_owned());
        self.verdict.broken.push(Broken { rule, path, fault, status, headers, body, message });
    }

    /// The provider's words; the rule itself where there are none.
    fn complaint(&self, fault: Fault, rule: &str, places: &[(&str, &str)]) -> Complaint {
        let full = |text: &Option<String>| text.as_ref().map(|text| filled(text, places));
        if let Some(refusal) = self.dialect.refusals().find(|refusal| refusal.fault == fault) {
            let (code, param) = (full(&refusal.code), full(&refusal.param));
            return Complaint { status: 400, message: filled(&refusal.says, places), code, param };
        }
        let Some(row) = self.dialect.complaint(self.model, fault) else {
            return Complaint { status: 400, message: rule.to_owned(), code: None, param: None };
        };
        let says = row.says_at.get(&self.dialect.id).unwrap_or(&row.says);
        let message = filled(says, places);
        // What the model behind it says comes wrapped.
        let message = match self.dialect.protocol {
            Protocol::Bedrock => format!("The model returned the following errors: {message}"),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => message,
        };
        let status = row.status.first().copied().unwrap_or(400);
        Complaint { status, message, code: full(&row.code), param: full(&row.param) }
    }
}

/// Words with their places filled in; the first of one name counts.
fn filled(text: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            out.push('{');
            rest = behind;
            continue;
        };
        let value = places.iter().find(|(place, _)| *place == name).map(|(_, value)| *value);
        out.push_str(value.unwrap_or_default());
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A refusal in the shape each protocol has for it.
fn shaped(protocol: Protocol, complaint: &Complaint) -> String {
    let Complaint { status, message, code, param } = complaint;
    let message = quote(message);
    let or_null = |text: &Option<String>| text.as_deref().map_or_else(|| "null".to_owned(), quote);
    let kind = if *status == 404 { "not_found_error" } else { "invalid_request_error" };
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => {
            let (param, code) = (or_null(param), or_null(code));
            format!(
                r#"{{"error":{{"message":{message},"type":"invalid_request_error","param":{param},"code":{code}}}}}"#
            )
        }
        Protocol::Anthropic => {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
        }
        Protocol::Gemini => {
            format!(r#"{{"error":{{"code":{status},"message":{message},"status":"INVALID_ARGUMENT"}}}}"#)
        }
        Protocol::Ollama => format!(r#"{{"error":{message}}}"#),
        Protocol::Bedrock | Protocol::Cohere => format!(r#"{{"message":{message}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_once_and_what_is_unknown_is_nothing() {
        let places = [("id", "rs_{path}"), ("path", "messages.1"), ("id", "never")];
        #[rustfmt::skip]
        let cases = [
            ("{path}: {id}",        "messages.1: rs_{path}"),
            ("no places",           "no places"),
            ("{unknown}at the end", "at the end"),
            ("open {",              "open {"),
        ];
        for (text, expected) in cases {
            assert_eq!(filled(text, &places), expected, "{text}");
        }
    }
}
