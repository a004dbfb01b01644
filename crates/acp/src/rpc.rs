//! JSON-RPC 2.0, one message per line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id of a request: a number or a string, as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

/// A message from the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to a request of ours; an error is `Err`.
    Response {
        id: RequestId,
        result: Result<Value, Value>,
    },
}

/// An error as it is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// The line is not JSON.
    pub fn parse(message: impl Into<String>) -> RpcError {
        RpcError::new(-32700, message)
    }

    /// It is not a message, or does not fit the state of the session.
    pub fn invalid_request(message: impl Into<String>) -> RpcError {
        RpcError::new(-32600, message)
    }

    pub(crate) fn method_not_found(method: &str) -> RpcError {
        RpcError::new(-32601, format!("unknown method `{method}`"))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> RpcError {
        RpcError::new(-32602, message)
    }

    /// The provider or the session failed.
    pub fn internal(message: impl Into<String>) -> RpcError {
        RpcError::new(-32603, message)
    }

    pub(crate) fn no_such_session(id: &str) -> RpcError {
        RpcError::new(-32002, format!("no open session `{id}`; open it with session/new or session/load"))
    }

    /// Another process has the session open.
    pub fn open_elsewhere() -> RpcError {
        let message = "this session is open in another aside; close it there and load it again";
        RpcError { data: Some(serde_json::json!({"reason": "open_elsewhere"})), ..RpcError::new(-32001, message) }
    }

    #[must_use]
    pub(crate) fn with_data(self, data: Value) -> RpcError {
        RpcError { data: Some(data), ..self }
    }
}

/// Reads a line. An error has the id of the message if it could be read.
pub fn parse(line: &str) -> Result<Incoming, (Option<RequestId>, RpcError)> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        id: Value,
        method: Option<String>,
        #[serde(default)]
        params: Value,
        result: Option<Value>,
        error: Option<Value>,
    }
    let value: Value =
        serde_json::from_str(line).map_err(|error| (None, RpcError::parse(format!("not a line of JSON: {error}"))))?;
    let id_of = |value: &Value| RequestId::deserialize(value).ok();
    let id = value.get("id").and_then(id_of);
    let message = Message::deserialize(&value)
        .map_err(|error| (id.clone(), RpcError::invalid_request(format!("not a JSON-RPC message: {error}"))))?;
    match (message.method, id_of(&message.id), message.result, message.error) {
        (Some(method), Some(id), ..) => Ok(Incoming::Request { id, method, params: message.params }),
        (Some(method), None, ..) if message.id.is_null() => {
            Ok(Incoming::Notification { method, params: message.params })
        }
        (None, Some(id), _, Some(error)) => Ok(Incoming::Response { id, result: Err(error) }),
        (None, Some(id), result, None) => Ok(Incoming::Response { id, result: Ok(result.unwrap_or_default()) }),
        _ => Err((id, RpcError::invalid_request("a message has a method, or the id of a request that it answers"))),
    }
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<P>,
}

fn line(message: &impl Serialize) -> String {
    // Our own types have text keys and finite numbers, so this cannot fail.
    serde_json::to_string(message).unwrap_or_default()
}

pub(crate) fn notification(method: &str, params: impl Serialize) -> String {
    line(&Outgoing { jsonrpc: "2.0", id: None, method: Some(method), params: Some(params), result: None })
}

pub(crate) fn request(id: &RequestId, method: &str, params: impl Serialize) -> String {
    line(&Outgoing { jsonrpc: "2.0", id: Some(id), method: Some(method), params: Some(params), result: None })
}

pub(crate) fn response(id: &RequestId, result: impl Serialize) -> String {
    line(&Outgoing { jsonrpc: "2.0", id: Some(id), method: None, params: None, result: Some(result) })
}

/// The answer to a message that failed. Without an id, the message could not be read.
pub fn error_response(id: Option<&RequestId>, error: &RpcError) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        jsonrpc: &'static str,
        id: Option<&'a RequestId>,
        error: &'a RpcError,
    }
    line(&Failed { jsonrpc: "2.0", id, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a1_lines_are_requests_notifications_and_responses() {
        let id = RequestId::Number(4);
        let (method, params) = ("m".to_owned(), json!({"a": 1}));
        #[rustfmt::skip]
        let cases = [
            (r#"{"jsonrpc":"2.0","id":4,"method":"m","params":{"a":1}}"#, Incoming::Request { id: id.clone(), method: method.clone(), params: params.clone() }),
            (r#"{"jsonrpc":"2.0","id":"x","method":"m"}"#,                Incoming::Request { id: RequestId::Text("x".into()), method: method.clone(), params: Value::Null }),
            (r#"{"jsonrpc":"2.0","method":"m","params":{"a":1}}"#,        Incoming::Notification { method: method.clone(), params }),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,               Incoming::Notification { method, params: Value::Null }),
            (r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,                   Incoming::Response { id: id.clone(), result: Ok(json!({})) }),
            (r#"{"jsonrpc":"2.0","id":4,"result":null}"#,                 Incoming::Response { id: id.clone(), result: Ok(Value::Null) }),
            (r#"{"jsonrpc":"2.0","id":4,"error":{"code":1}}"#,            Incoming::Response { id, result: Err(json!({"code": 1})) }),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a1_a_line_that_is_no_message_is_an_error_with_its_id() {
        #[rustfmt::skip]
        let cases = [
            ("{",                            None,                       -32700),
            ("[]",                           None,                       -32600),
            (r#"{"id":3,"method":7}"#,       Some(RequestId::Number(3)), -32600),
            (r#"{"id":[1],"method":"m"}"#,   None,                       -32600),
            (r#"{"jsonrpc":"2.0"}"#,         None,                       -32600),
        ];
        for (line, id, code) in cases {
            let (read, error) = parse(line).expect_err(line);
            assert_eq!((read, error.code), (id, code), "{line}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep).expect_err("too deep").1.code, -32700);
    }
}
