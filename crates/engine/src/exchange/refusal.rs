//! Reads the body of a refusal.

use std::time::Duration;

use aside_core::event::ProviderError;
use aside_core::fold::Fold;
use aside_core::wire::{Decoder, error_words};

use serde_json::Value;

use crate::http::HttpRefusal;

/// How deeply a pause may be nested in a body.
const MAX_DEPTH: usize = 6;

/// Parses a refusal with the same decoder as any reply. The message is everything that the body says about
/// the cause, because gateways put the provider's own words into other members.
pub fn read_refusal(mut decoder: Decoder, refusal: &HttpRefusal) -> ProviderError {
    let mut fold = Fold::new();
    decoder.push(&refusal.body, &mut fold);
    let understood = decoder.finish(&mut fold).is_ok();
    let provider_error = fold.finish().end.error.filter(|_| understood).unwrap_or_default();
    let message = error_words(&String::from_utf8_lossy(&refusal.body));
    provider_error.with_message(message).with_words(None).with_status(refusal.status)
}

/// The pause that a body asks for, as the `retryDelay` of `google.rpc.RetryInfo`: `"34.07s"`.
pub(crate) fn pause_in_body(body: &[u8]) -> Option<Duration> {
    pause_in(&serde_json::from_slice(body).ok()?, MAX_DEPTH)
}

fn pause_in(value: &Value, depth: usize) -> Option<Duration> {
    let below = depth.checked_sub(1)?;
    match value {
        Value::Object(members) => members
            .get("retryDelay")
            .and_then(|delay| delay.as_str()?.strip_suffix('s')?.parse().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .or_else(|| members.values().find_map(|member| pause_in(member, below))),
        Value::Array(items) => items.iter().find_map(|item| pause_in(item, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_in_the_body_is_found_in_the_details_of_an_error() {
        #[rustfmt::skip]
        let cases = [
            ("details",    r#"{"error":{"details":[{"@type":"a"},{"@type":"b","retryDelay":"34.5s"}]}}"#, Some(34_500)),
            ("a list",     r#"[{"error":{"details":[{"retryDelay":"7s"}]}}]"#,                           Some(7_000)),
            ("no pause",   r#"{"error":{"message":"retryDelay"}}"#,                                      None),
            ("no number",  r#"{"error":{"details":[{"retryDelay":"soon"}]}}"#,                           None),
            ("negative",   r#"{"error":{"details":[{"retryDelay":"-1s"}]}}"#,                            None),
            ("a number",   r#"{"retryDelay":5}"#,                                                        None),
            ("not JSON",   "busy",                                                                       None),
        ];
        for (name, body, expected) in cases {
            assert_eq!(pause_in_body(body.as_bytes()), expected.map(Duration::from_millis), "{name}");
        }
    }
}
