//! What each known client needs to use the gateway.

/// The clients that `aside serve setup` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SetupClient {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Openai,
    Anthropic,
    Langchain,
    Ollama,
    Aider,
    Llm,
}

/// Variables or files, ready to be pasted.
pub(crate) fn text(client: SetupClient, url: &str, model: &str) -> String {
    let key = "any";
    match client {
        SetupClient::Claude => format!(
            "# Claude Code. The key is a key of the gateway, or any text if it has none.\n\
             export ANTHROPIC_BASE_URL={url}\n\
             export ANTHROPIC_AUTH_TOKEN=\"${{ASIDE_SERVE_KEY:-{key}}}\"\n\
             export ANTHROPIC_MODEL={model}\n\
             export ANTHROPIC_DEFAULT_OPUS_MODEL={model}\n\
             export ANTHROPIC_DEFAULT_SONNET_MODEL={model}\n\
             export ANTHROPIC_DEFAULT_HAIKU_MODEL={model}\n\
             claude\n"
        ),
        SetupClient::Codex => format!(
            "# Codex: ~/.codex/config.toml\n\
             model = \"{model}\"\n\
             model_provider = \"aside\"\n\n\
             [model_providers.aside]\n\
             name = \"aside\"\n\
             base_url = \"{url}/v1\"\n\
             wire_api = \"responses\"\n\
             env_key = \"ASIDE_SERVE_KEY\"      # export ASIDE_SERVE_KEY=…, any text if the gateway has no keys\n\n\
             # To choose among all models, also add this line above [model_providers.aside], and make the file with\n\
             # curl -s -H \"Authorization: Bearer $ASIDE_SERVE_KEY\" '{url}/v1/models?client_version=1' > ~/.codex/aside-models.json\n\
             # model_catalog_json = \"aside-models.json\"\n"
        ),
        SetupClient::Gemini => format!(
            "# gemini-cli\n\
             export GOOGLE_GEMINI_BASE_URL={url}\n\
             export GEMINI_API_KEY=\"${{ASIDE_SERVE_KEY:-{key}}}\"\n\
             gemini -m {model}\n"
        ),
        SetupClient::Opencode => format!(
            "# OpenCode: opencode.json\n\
             {{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"aside/{model}\",\n  \"provider\": {{ \"aside\": {{\n    \
             \"npm\": \"@ai-sdk/openai-compatible\",\n    \"options\": {{ \"baseURL\": \"{url}/v1\", \"apiKey\": \"{{env:ASIDE_SERVE_KEY}}\" }},\n    \
             \"models\": {{ \"{model}\": {{ \"reasoning\": true, \"tool_call\": true }} }}\n  }} }}\n}}\n"
        ),
        SetupClient::Openai => format!(
            "# OpenAI SDKs, and programs that use them\n\
             export OPENAI_BASE_URL={url}/v1\n\
             export OPENAI_API_KEY=\"${{ASIDE_SERVE_KEY:-{key}}}\"\n\
             # model: {model}\n"
        ),
        SetupClient::Anthropic => format!(
            "# Anthropic SDKs, and programs that use them\n\
             export ANTHROPIC_BASE_URL={url}\n\
             export ANTHROPIC_API_KEY=\"${{ASIDE_SERVE_KEY:-{key}}}\"\n\
             # model: {model}\n"
        ),
        SetupClient::Langchain => format!(
            "# LangChain (Python)\n\
             import os\n\
             from langchain_openai import ChatOpenAI\n\
             model = ChatOpenAI(base_url=\"{url}/v1\", api_key=os.environ.get(\"ASIDE_SERVE_KEY\", \"{key}\"), model=\"{model}\")\n"
        ),
        SetupClient::Ollama => format!(
            "# Clients of Ollama\n\
             export OLLAMA_HOST={url}\n\
             # model: {model}\n"
        ),
        SetupClient::Aider => format!(
            "# aider\n\
             export OPENAI_API_BASE={url}/v1\n\
             export OPENAI_API_KEY=\"${{ASIDE_SERVE_KEY:-{key}}}\"\n\
             aider --model openai/{model}\n"
        ),
        SetupClient::Llm => format!(
            "# llm: extra-openai-models.yaml in `dirname \"$(llm logs path)\"`; llm keys set aside\n\
             - model_id: aside\n  model_name: {model}\n  api_base: {url}/v1\n  api_key_name: aside\n  supports_tools: true\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn g12_every_client_is_pointed_at_the_gateway() {
        for client in SetupClient::value_variants() {
            let text = text(*client, "http://127.0.0.1:4140", "sim/kimi");
            assert!(text.contains("http://127.0.0.1:4140") && text.contains("sim/kimi"), "{client:?}: {text}");
        }
    }
}
