//! The models that clients may ask for, in the format of each protocol.

use axum::body::Body;
use serde_json::{Value, json};

use crate::codex_catalogue::catalogue;
use crate::config::{CLAUDE_PREFIX, ListedModel};
use crate::error_response::{ErrorKind, GatewayError, GatewayResponse, value_response};
use crate::gateway::RequestContext;
use crate::route::ListShape;

/// A date for models whose date is unknown.
const DATE: &str = "2025-01-01T00:00:00Z";
const CREATED: u64 = 1_735_689_600;

impl RequestContext {
    pub(crate) async fn model_list(&self, shape: ListShape) -> GatewayResponse {
        let models = self.config.listed().await;
        let allowed = models.iter().filter(|model| self.caller.may_use(&model.id, &model.id));
        let mut names: Vec<ListedModel> = allowed.cloned().collect();
        if shape == ListShape::Anthropic {
            // Some clients show only names with `claude` in them.
            let others: Vec<ListedModel> = names.iter().filter(|model| !model.id.contains("claude")).cloned().collect();
            names.extend(
                others.into_iter().map(|model| ListedModel { id: format!("{CLAUDE_PREFIX}{}", model.id), ..model }),
            );
        }
        value_response(200, &list(shape, &names))
    }

    pub(crate) async fn model_page(&self, shape: ListShape, name: &str) -> Result<GatewayResponse, GatewayError> {
        // It is served if it can be used, whether it is listed or not.
        self.targets(name).await?;
        let known = self.config.listed().await.iter().find(|model| model.id == name).cloned();
        let known = known.unwrap_or_else(|| ListedModel::named(name, "aside"));
        Ok(value_response(200, &model(shape, &known)))
    }

    pub(crate) async fn ollama_model(&self, body: Body) -> Result<GatewayResponse, GatewayError> {
        let body = self.read(body).await?;
        let value: Value =
            serde_json::from_str(&body.text).map_err(|_| GatewayError::bad_request("the body is not JSON"))?;
        let name = value.get("model").or_else(|| value.get("name")).and_then(Value::as_str);
        let missing = || GatewayError::new(ErrorKind::BadRequest, "no model is named; see /api/tags");
        self.model_page(ListShape::Ollama, name.ok_or_else(missing)?).await
    }
}

fn list(shape: ListShape, models: &[ListedModel]) -> Value {
    let rows: Vec<Value> = models.iter().map(|entry| model(shape, entry)).collect();
    match shape {
        ListShape::Openai => json!({ "object": "list", "data": rows }),
        ListShape::Anthropic => json!({
            "data": rows,
            "has_more": false,
            "first_id": models.first().map(|model| &model.id),
            "last_id": models.last().map(|model| &model.id),
        }),
        ListShape::Gemini | ListShape::Ollama => json!({ "models": rows }),
        ListShape::Codex => catalogue(models),
    }
}

fn model(shape: ListShape, entry: &ListedModel) -> Value {
    let ListedModel { id, owner, context, output, .. } = entry;
    match shape {
        ListShape::Openai | ListShape::Codex => {
            let mut row = json!({ "id": id, "object": "model", "created": CREATED, "owned_by": owner });
            if let (Value::Object(row), Some(context)) = (&mut row, context) {
                row.insert("context_length".to_owned(), json!(context));
            }
            row
        }
        ListShape::Anthropic => json!({
            "type": "model",
            "id": id,
            "display_name": id.strip_prefix(CLAUDE_PREFIX).unwrap_or(id),
            "created_at": DATE,
            "max_input_tokens": context,
            "max_tokens": output,
        }),
        ListShape::Gemini => json!({
            "name": format!("models/{id}"),
            "version": "1",
            "displayName": id,
            "inputTokenLimit": context.unwrap_or(128_000),
            "outputTokenLimit": output.unwrap_or(8192),
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }),
        ListShape::Ollama => json!({
            "name": id,
            "model": id,
            "modified_at": DATE,
            "size": 0,
            "digest": "",
            "details": { "parent_model": "", "format": "remote", "family": owner, "families": [owner],
                "parameter_size": "", "quantization_level": "" },
            "model_info": { "general.architecture": "remote", "remote.context_length": context },
            "capabilities": ["completion", "tools", "thinking"],
        }),
    }
}
