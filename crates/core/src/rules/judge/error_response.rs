//! Error responses in a provider's wording and format.

use super::{BrokenRule, Judge};
use crate::dialect::Fault;
use crate::json_text::quote;
use crate::protocol::Protocol;

/// The contents of an error, before formatting.
struct ErrorParts {
    status: u16,
    message: String,
    code: Option<String>,
    param: Option<String>,
}

impl Judge<'_> {
    /// Records a broken rule, with the error that this provider returns for the
    /// fault.
    pub(super) fn report(&mut self, rule: &str, path: &str, fault: Fault, values_for_message: &[(&str, &str)]) {
        let dotted = path.replace('[', ".").replace(']', "");
        let mut values = vec![("path", dotted.as_str()), ("place", path)];
        values.extend(values_for_message);
        let index = path.split(['[', ']']).nth(1).unwrap_or_default();
        values.push(("index", index));
        let error_parts = self.error_parts(fault, rule, &values);
        let body = format_error(self.dialect.protocol, &error_parts);
        let headers = match self.dialect.protocol {
            Protocol::Bedrock => vec![("x-amzn-errortype".to_owned(), "ValidationException".to_owned())],
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => Vec::new(),
        };
        let ErrorParts { status, message, .. } = error_parts;
        let (rule, path) = (rule.to_owned(), path.to_owned());
        self.verdict.broken.push(BrokenRule { rule, path, fault, status, headers, body, message });
    }

    /// The provider's error message; the rule itself if there is none.
    fn error_parts(&self, fault: Fault, rule: &str, values: &[(&str, &str)]) -> ErrorParts {
        let full = |text: &Option<String>| text.as_ref().map(|text| fill_placeholders(text, values));
        if let Some(refusal) = self.dialect.refusals().find(|refusal| refusal.fault == fault) {
            let (code, param) = (full(&refusal.code), full(&refusal.param));
            return ErrorParts { status: 400, message: fill_placeholders(&refusal.says, values), code, param };
        }
        let Some(row) = self.dialect.error_row(self.model, fault) else {
            return ErrorParts { status: 400, message: rule.to_owned(), code: None, param: None };
        };
        let says = row.says_at.get(&self.dialect.id).unwrap_or(&row.says);
        let message = fill_placeholders(says, values);
        // Bedrock wraps errors of the model.
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
        ErrorParts { status, message, code: full(&row.code), param: full(&row.param) }
    }
}

/// Fills in the placeholders of a message. The first value for a name wins.
fn fill_placeholders(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after_brace)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after_brace.split_once('}') else {
            out.push('{');
            rest = after_brace;
            continue;
        };
        let value = values.iter().find(|(place, _)| *place == name).map(|(_, value)| *value);
        out.push_str(value.unwrap_or_default());
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Formats an error as each protocol does.
fn format_error(protocol: Protocol, error_parts: &ErrorParts) -> String {
    let ErrorParts { status, message, code, param } = error_parts;
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
    fn placeholders_are_filled_once_and_unknown_ones_are_removed() {
        let values = [("id", "rs_{path}"), ("path", "messages.1"), ("id", "never")];
        #[rustfmt::skip]
        let cases = [
            ("{path}: {id}",        "messages.1: rs_{path}"),
            ("no placeholders",           "no placeholders"),
            ("{unknown}at the end", "at the end"),
            ("open {",              "open {"),
        ];
        for (text, expected) in cases {
            assert_eq!(fill_placeholders(text, &values), expected, "{text}");
        }
    }
}
