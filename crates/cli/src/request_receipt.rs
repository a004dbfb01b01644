//! `aside explain --request ID`: what a running gateway did to a request.

use std::fmt::Write as _;
use std::io::Write as _;

use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_engine::Http;
use aside_engine::http::ForwardedRequest;
use aside_session::providers::env_var;
use aside_session::{HintedError, Overrides, UserFolders};
use serde_json::Value;

use crate::{ExitStatus, output};

/// A longer answer is not a receipt.
const MAX_BYTES: usize = 16 << 20;

/// Which request, and how to reach the gateway.
#[derive(Debug, clap::Args)]
pub(crate) struct ReceiptArguments {
    /// Show what a running gateway did to a request: the id in its header aside-request
    #[arg(long = "request", value_name = "ID", conflicts_with = "file")]
    id: Option<String>,

    /// The gateway's URL, if it is not the one in the config
    #[arg(long, value_name = "URL", requires = "id")]
    url: Option<String>,

    /// The variable that holds the key for the gateway
    #[arg(long, value_name = "VAR", default_value = "ASIDE_SERVE_KEY")]
    key_env: String,
}

impl ReceiptArguments {
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

pub(crate) fn run(arguments: &ReceiptArguments, id: &str, json: bool) -> anyhow::Result<ExitStatus> {
    let url = match &arguments.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", Overrides::default().load(&UserFolders::from_environment())?.serve.listen),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let receipt = runtime.block_on(fetch(&url, id, env_var(&arguments.key_env)))?;
    let mut out = output::stdout();
    match json {
        true => writeln!(out, "{}", safe_json::to_string(&receipt))?,
        false => write!(out, "{}", as_text(&receipt))?,
    }
    Ok(ExitStatus::Done)
}

async fn fetch(base: &str, id: &str, key: Option<String>) -> Result<Value, HintedError> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_id {
        return Err(HintedError::new(format!("`{id}` is not the id of a request")).hint("it looks like req_…"));
    }
    let http = Http::default();
    let headers: Vec<(String, String)> =
        key.into_iter().map(|key| ("authorization".to_owned(), format!("Bearer {key}"))).collect();
    let url = format!("{base}/aside/requests/{id}");
    let request = ForwardedRequest { method: "GET", url: &url, headers: &headers, body: Default::default() };
    let unreachable =
        |what: String| HintedError::new(what).hint("is `aside serve` running? --url names another address");
    let mut reply = http.forward(request).await.map_err(|error| unreachable(error.to_string()))?;
    let mut body = Vec::new();
    while let Some(bytes) = reply.next_bytes(&http).await.map_err(|error| unreachable(error.to_string()))? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BYTES {
            return Err(HintedError::new("the answer is too long for a receipt"));
        }
    }
    match reply.status() {
        200 => serde_json::from_slice(&body).map_err(|_| unreachable(format!("{base} is not a gateway of aside"))),
        401 => Err(HintedError::new("the gateway needs a key")
            .hint("set ASIDE_SERVE_KEY, or name its variable with --key-env")),
        404 => Err(HintedError::new(format!("the gateway has no request `{id}` of this key"))
            .hint("receipts are kept for seven days")),
        status => Err(unreachable(format!("the gateway answered with status {status}"))),
    }
}

/// The receipt in a few lines, then one for each decision.
fn as_text(receipt: &Value) -> String {
    let text = |path: &str| match receipt.pointer(path) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => "–".to_owned(),
        Some(other) => other.to_string(),
    };
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ok = writeln!(out, "{}", terminal_safe_line(&text));
    };
    line(format!("{} {} {}", text("/id"), text("/at"), text("/status")));
    line(format!("client    {} {} ({})", text("/client/name"), text("/client/version"), text("/client/protocol")));
    line(format!("model     {} → {} ({})", text("/model/asked"), text("/model/resolved"), text("/model/dialect")));
    line(format!("thinking  {}", text("/repaired")));
    line(format!("store     {}", text("/store")));
    line(format!("time      {} ms, first byte after {} ms", text("/timing/totalMs"), text("/timing/firstByteMs")));
    let rows = |path: &str| receipt.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let member = |row: &Value, name: &str| match row.get(name) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    for row in rows("/decisions") {
        let evidence = member(&row, "evidence");
        let evidence = if evidence.is_empty() { String::new() } else { format!(" by {evidence}") };
        line(format!(
            "message {} {}: {}{evidence}, {}",
            member(&row, "message"),
            member(&row, "kind"),
            member(&row, "action"),
            member(&row, "rule")
        ));
    }
    for row in rows("/judge/before") {
        line(format!(
            "the client broke {} at {}: {}",
            member(&row, "rule"),
            member(&row, "path"),
            member(&row, "message")
        ));
    }
    for (name, path) in [("client sent", "/request/client"), ("provider got", "/request/sent")] {
        if let Some(body) = receipt.pointer(path).and_then(Value::as_str) {
            line(format!("{name}: {body}"));
        }
    }
    for row in rows("/leftOut") {
        line(format!("left out {}: {}", member(&row, "path"), member(&row, "why")));
    }
    for row in rows("/upstream") {
        let rule = member(&row, "rule");
        let rule = if rule.is_empty() { String::new() } else { format!(", repaired: {rule}") };
        line(format!("provider answered {} after {} ms{rule}", member(&row, "status"), member(&row, "ms")));
    }
    out
}
