//! Asks a provider for its list of models.

use std::time::Duration;

use aside_core::model_table::Price;
use aside_core::protocol::Protocol;
use aside_core::wire::{Destination, http_get};
use serde_json::Value;

use crate::http::{CallError, Http, Timeouts};

/// A list must arrive within this time.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A longer response is not a list of models.
const MAX_BYTES: usize = 16 << 20;
/// More pages are not a list of models.
const MAX_PAGES: usize = 20;
/// A longer name is not the name of a model.
const MAX_NAME: usize = 256;

/// A model of a list, with what the provider says about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedModel {
    pub name: String,
    pub context: Option<u64>,
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub price: Option<Price>,
    pub images: Option<bool>,
    pub thinks: Option<bool>,
    pub efforts: Option<Vec<String>>,
}

/// Why there is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelListError {
    #[error("{0} has no list of models")]
    NoList(Protocol),
    #[error("{}", refusal(.0))]
    Call(CallError),
    #[error("no list of models within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the list of models has more than {MAX_BYTES} bytes")]
    TooLong,
    #[error("the list of models has more than {MAX_PAGES} pages")]
    TooManyPages,
    #[error("the answer is not a list of models")]
    NotAList,
}

fn refusal(error: &CallError) -> String {
    match error {
        CallError::Refused(refusal) if matches!(refusal.status, 401 | 403) => {
            format!("{error}: the key is not accepted")
        }
        CallError::Refused(_) | CallError::Invalid(_) | CallError::Unreachable(_) => error.to_string(),
    }
}

/// Asks for the whole list, page by page.
pub async fn list_models(protocol: Protocol, to: &Destination<'_>) -> Result<Vec<ListedModel>, ModelListError> {
    let http = Http::new(Timeouts { connect: Duration::from_secs(10), idle: TIMEOUT, ..Timeouts::default() });
    let asked = async {
        let mut models = Vec::new();
        let mut page = None;
        for _ in 0..MAX_PAGES {
            let body = query(&http, protocol, to, page.as_deref()).await?;
            models.extend(read_list(&body).ok_or(ModelListError::NotAList)?);
            page = next_page(&body);
            if page.is_none() {
                return Ok(models);
            }
        }
        Err(ModelListError::TooManyPages)
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap_or(Err(ModelListError::Timeout))
}

/// Asks for one page.
pub(crate) async fn query(
    http: &Http,
    protocol: Protocol,
    to: &Destination<'_>,
    page: Option<&str>,
) -> Result<Value, ModelListError> {
    let path = list_path(protocol).ok_or(ModelListError::NoList(protocol))?;
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = page.map_or(path.to_owned(), |page| format!("{path}{joint}{page}"));
    let (url, headers) = http_get(&path, to);
    let mut answer = http.get(&url, &headers).await.map_err(ModelListError::Call)?;
    let mut body = Vec::new();
    while let Some(bytes) =
        answer.next_bytes(http).await.map_err(|failure| ModelListError::Call(CallError::Unreachable(failure)))?
    {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BYTES {
            return Err(ModelListError::TooLong);
        }
    }
    serde_json::from_slice(&body).map_err(|_| ModelListError::NotAList)
}

/// The path of the list, after the base URL.
fn list_path(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => Some("/models"),
        Protocol::Anthropic => Some("/v1/models?limit=1000"),
        Protocol::Gemini => Some("/v1beta/models?pageSize=1000"),
        Protocol::Ollama => Some("/api/tags"),
        Protocol::Cohere => Some("/v1/models?page_size=1000"),
        // Its list is on another host.
        Protocol::Bedrock => None,
    }
}

/// The query string for the next page.
fn next_page(body: &Value) -> Option<String> {
    let token = |name: &str| body.get(name)?.as_str().filter(|token| is_plain(token));
    if let Some(token) = token("nextPageToken") {
        return Some(format!("pageToken={token}"));
    }
    if let Some(token) = token("next_page_token") {
        return Some(format!("page_token={token}"));
    }
    match body.get("has_more") {
        Some(Value::Bool(true)) => token("last_id").map(|id| format!("after_id={id}")),
        _ => None,
    }
}

/// A token goes into a URL as it is.
fn is_plain(token: &str) -> bool {
    !token.is_empty()
        && token.len() <= MAX_NAME
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~=:".contains(&byte))
}

/// Reads `data[].id`, `models[].name`, or an array of either; anything else is not a list of models.
pub(crate) fn read_list(body: &Value) -> Option<Vec<ListedModel>> {
    let list = body.as_array().or_else(|| body.get("data")?.as_array()).or_else(|| body.get("models")?.as_array())?;
    Some(list.iter().filter_map(read_model).collect())
}

fn read_model(model: &Value) -> Option<ListedModel> {
    let text = |name: &str| model.get(name)?.as_str();
    let name = text("id").or_else(|| text("name"))?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
        return None;
    }
    let number =
        |paths: &[&str]| paths.iter().find_map(|path| model.pointer(path)?.as_u64().filter(|count| *count > 0));
    let flag = |paths: &[&str]| paths.iter().find_map(|path| model.pointer(path)?.as_bool());
    let words =
        |path: &str| Some(model.pointer(path)?.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let has = |path: &str, word: &str| words(path).map(|words| words.contains(&word));
    let efforts = ["/reasoning/supported_efforts", "/capabilities/supports/reasoning_effort"];
    Some(ListedModel {
        name: name.to_owned(),
        context: number(&[
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/max_model_len",
            "/capabilities/limits/max_context_window_tokens",
            "/inputTokenLimit",
        ]),
        input: number(&["/max_input_tokens", "/capabilities/limits/max_prompt_tokens"]),
        output: number(&[
            "/top_provider/max_completion_tokens",
            "/max_completion_tokens",
            "/outputTokenLimit",
            "/capabilities/limits/max_output_tokens",
            "/max_tokens",
        ]),
        price: model.get("pricing").and_then(read_price),
        images: has("/architecture/input_modalities", "image")
            .or_else(|| flag(&["/capabilities/vision", "/capabilities/supports/vision"]))
            .or_else(|| has("/tags", "vision")),
        thinks: flag(&["/thinking"])
            .or_else(|| has("/supported_parameters", "reasoning"))
            .or_else(|| has("/tags", "reasoning")),
        efforts: efforts
            .iter()
            .find_map(|path| words(path))
            .map(|words| words.into_iter().filter(|word| *word != "none").map(str::to_owned).collect()),
    })
}

/// A price in quotes is for a token, a number for a million tokens.
fn read_price(pricing: &Value) -> Option<Price> {
    let amount = |names: &[&str]| {
        let value = names.iter().find_map(|name| pricing.get(name))?;
        let price = match value {
            Value::String(text) => text.parse::<f64>().ok()? * 1e6,
            Value::Number(number) => number.as_f64()?,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        // Gateways report -1 for a price that depends on the route. Rounding removes the error of the multiplication.
        (price.is_finite() && price >= 0.0).then(|| (price * 1e6).round() / 1e6)
    };
    Some(Price {
        input: amount(&["prompt", "input"])?,
        output: amount(&["completion", "output"])?,
        cache_read: amount(&["input_cache_read", "cached_input"]),
        cache_write: amount(&["input_cache_write"]),
        tiers: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(body: &Value) -> ListedModel {
        read_list(body).expect("a list").remove(0)
    }

    #[test]
    fn lists_of_every_shape_are_read_with_what_they_say() {
        let named = |name: &str| ListedModel { name: name.to_owned(), ..ListedModel::default() };
        let price = |input, output| Price { input, output, cache_read: None, cache_write: None, tiers: Vec::new() };
        #[rustfmt::skip]
        let cases = [
            ("plain",     json!({"data":[{"id":"gpt-5","object":"model"}]}), named("gpt-5")),
            ("tags",      json!({"models":[{"name":"qwen3:8b"}]}),            named("qwen3:8b")),
            ("array",     json!([{"id":"a/b","context_length":8192,"pricing":{"input":0.9,"output":1.2}}]),
                ListedModel { context: Some(8192), price: Some(price(0.9, 1.2)), ..named("a/b") }),
            ("limits",    json!({"data":[{"id":"claude","max_input_tokens":1_000_000,"max_tokens":128_000}],"has_more":false}),
                ListedModel { input: Some(1_000_000), output: Some(128_000), ..named("claude") }),
            ("prefixed",  json!({"models":[{"name":"models/gemini","inputTokenLimit":1_048_576,"outputTokenLimit":65_536,"thinking":true}]}),
                ListedModel { context: Some(1_048_576), output: Some(65_536), thinks: Some(true), ..named("gemini") }),
            ("gateway",   json!({"data":[{"id":"x/y","context_length":200_000,"architecture":{"input_modalities":["text","image"]},
                    "pricing":{"prompt":"0.00000125","completion":"0.00001","input_cache_read":"0.000000125"},
                    "supported_parameters":["reasoning"],"reasoning":{"supported_efforts":["none","low","high"]}}]}),
                ListedModel {
                    context: Some(200_000), images: Some(true), thinks: Some(true),
                    efforts: Some(vec!["low".to_owned(), "high".to_owned()]),
                    price: Some(Price { cache_read: Some(0.125), ..price(1.25, 10.0) }), ..named("x/y")
                }),
            ("no price",  json!({"data":[{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}}]}), named("auto")),
        ];
        for (name, body, expected) in cases {
            assert_eq!(one(&body), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_a_list_is_refused_and_hostile_names_are_left_out() {
        assert_eq!(read_list(&json!({"error": "no"})), None);
        assert_eq!(read_list(&json!("x")), None);
        let hostile = json!({"data":[{"id":""},{"id":"a\u{1b}[2J"},{"id":"x".repeat(300)},{"object":"model"},7]});
        assert_eq!(read_list(&hostile), Some(Vec::new()));
    }

    #[test]
    fn pages_follow_each_other_and_a_token_cannot_change_the_url() {
        #[rustfmt::skip]
        let cases = [
            (json!({"nextPageToken":"abc"}),                   Some("pageToken=abc")),
            (json!({"has_more":true,"last_id":"claude-1"}),    Some("after_id=claude-1")),
            (json!({"has_more":false,"last_id":"claude-1"}),   None),
            (json!({"nextPageToken":"a&key=b"}),               None),
            (json!({"data":[]}),                               None),
        ];
        for (body, expected) in cases {
            assert_eq!(next_page(&body).as_deref(), expected, "{body}");
        }
    }
}
