//! Reads provider errors, in all the shapes that providers use.

use serde_json::Value;

use super::Understood;
use super::error_words::words_of;
use crate::event::ProviderError;
use crate::json_text::Raw;

/// Stores the error of a frame, if it has one. A frame that is neither known nor
/// an error was not understood.
pub(super) fn keep_error(kept: &mut Option<ProviderError>, body: Raw<'_>, known: bool) -> Understood {
    let error = read_error(body);
    let understood = Understood::from(known || error.is_some());
    *kept = error.or(kept.take());
    understood
}

/// Reads an error object that is not wrapped in `{"error": …}`.
pub(super) fn read_bare_error(error: Raw<'_>) -> Option<ProviderError> {
    let value: Value = serde_json::from_str(error.get()).ok()?;
    from_value(&serde_json::json!({ "error": value }))
}

/// The error in a body or an event, if there is one.
pub(super) fn read_error(body: Raw<'_>) -> Option<ProviderError> {
    let value: Value = serde_json::from_str(body.get()).ok()?;
    from_value(&value)
}

fn from_value(body: &Value) -> Option<ProviderError> {
    if let Value::String(message) = body {
        return Some(ProviderError::new(message.clone()).with_words(words_of(body)));
    }
    let error = body.get("error").filter(|error| !error.is_null());
    let first = |list: &str| body.get(list).and_then(|list| list.get(0));
    let message = error
        .and_then(|error| text(error.get("message")).or_else(|| text(Some(error))))
        .or_else(|| first("errors").and_then(|error| text(error.get("message")).or_else(|| text(Some(error)))))
        .or_else(|| text(body.get("detail")))
        .or_else(|| first("detail").and_then(|detail| text(detail.get("msg"))))
        .or_else(|| text(body.get("message")))
        .or_else(|| text(body.get("Message")));
    // An error without a readable message is still an error.
    let message = match (message, error) {
        (Some(message), _) => message,
        (None, Some(error)) => error.to_string(),
        (None, None) => return None,
    };
    let code = error.and_then(|error| error.get("code").or_else(|| error.get("type"))).or_else(|| body.get("code"));
    let code = match code {
        Some(Value::String(code)) if !code.is_empty() => Some(code.clone()),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => error.and_then(|error| text(error.get("type"))),
    };
    let status = [
        error.and_then(|error| error.get("status_code")),
        body.get("status_code"),
        error.and_then(|error| error.get("code")),
    ]
    .into_iter()
    .flatten()
    .find_map(Value::as_u64)
    .and_then(|status| u16::try_from(status).ok())
    .filter(|status| (100..600).contains(status));
    Some(ProviderError::new(message).with_words(words_of(body)).with_code(code).with_status(status))
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_an_error_body_is_read() {
        #[rustfmt::skip]
        let cases = [
            ("wrapped",       r#"{"error":{"message":"m","type":"t","code":null}}"#,       ("m", Some("t"), None)),
            ("number code",   r#"{"error":{"message":"m","code":429}}"#,                   ("m", Some("429"), Some(429))),
            ("string code",   r#"{"error":{"message":"m","code":"1214"}}"#,                ("m", Some("1214"), None)),
            ("status beside", r#"{"status_code":400,"error":{"message":"m","code":"c"}}"#, ("m", Some("c"), Some(400))),
            ("error string",  r#"{"error":"m"}"#,                                          ("m", None, None)),
            ("code beside",   r#"{"code":"c","error":"m"}"#,                               ("m", Some("c"), None)),
            ("errors list",   r#"{"errors":[{"message":"m"}],"success":false}"#,           ("m", None, None)),
            ("detail",        r#"{"detail":"m"}"#,                                         ("m", None, None)),
            ("detail list",   r#"{"detail":[{"type":"t","msg":"m"}]}"#,                    ("m", None, None)),
            ("message",       r#"{"message":"m"}"#,                                        ("m", None, None)),
            ("Message",       r#"{"Message":"m"}"#,                                        ("m", None, None)),
            ("bare string",   r#""m""#,                                                    ("m", None, None)),
            ("unreadable",    r#"{"error":{"x":1}}"#,                                      (r#"{"x":1}"#, None, None)),
        ];
        for (name, body, (message, code, status)) in cases {
            let raw = Raw::of(body).expect("valid JSON");
            let error = read_error(raw).expect(name);
            assert_eq!(
                (error.message.as_str(), error.code.as_deref(), error.status),
                (message, code, status),
                "{name}"
            );
        }
        for fine in [r#"{"choices":[]}"#, r#"{"error":null}"#, r#"{"message":{"content":"x"}}"#] {
            let raw = Raw::of(fine).expect("valid JSON");
            assert_eq!(read_error(raw), None, "{fine}");
        }
    }
}
