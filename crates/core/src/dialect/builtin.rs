//! The files of `dialects/`, compiled in. A tidy test checks that none is
//! missing.

use super::DialectSource;

/// The file with the tag families.
pub(super) const TAGS: &str = "tags.toml";

/// The file that lists which model can read the thinking of which other model.
pub(super) const MATRIX: &str = "matrix.toml";

/// The file with the error messages of providers.
pub(super) const ERRORS: &str = "errors.toml";

/// The file with the values that stand for lost thinking.
pub(super) const SENTINELS: &str = "sentinels.toml";

macro_rules! files {
    ($($name:literal)*) => {
        &[$(DialectSource {
            path: concat!("dialects/", $name, ".toml"),
            text: include_str!(concat!("../../dialects/", $name, ".toml")),
        }),*]
    };
}

pub(super) const FILES: &[DialectSource<'static>] = files! {
    "tags" "matrix" "errors" "sentinels"
    "anthropic" "ark" "azure" "azure-anthropic" "azure-responses" "baseten" "bedrock" "bedrock-anthropic"
    "bedrock-chat" "bedrock-responses" "cerebras" "chutes" "cloudflare" "codex" "cohere" "copilot"
    "copilot-anthropic" "copilot-responses" "databricks" "deepinfra" "deepseek" "deepseek-anthropic"
    "deepseek-responses" "fireworks" "gemini" "gemini-openai" "generic" "groq" "huggingface"
    "inception" "kimi" "kimi-anthropic" "kimi-coding" "litellm" "llamacpp" "llamacpp-anthropic" "llamacpp-responses"
    "lmstudio" "lmstudio-anthropic" "lmstudio-responses" "meta" "minimax" "minimax-anthropic" "minimax-tags"
    "mistral" "nebius" "novita" "nvidia" "ollama" "ollama-anthropic" "ollama-cloud" "ollama-openai"
    "ollama-responses" "openai" "openai-chat" "opencode-zen" "openrouter" "openrouter-responses" "perplexity" "poe"
    "qianfan" "qwen" "qwen-anthropic" "qwen-plan" "qwen-responses" "sglang" "sglang-anthropic" "sglang-responses"
    "siliconflow" "snowflake" "stepfun" "tencent" "together" "venice" "vercel" "vertex" "vertex-anthropic" "vllm"
    "vllm-anthropic" "vllm-responses" "xai" "xai-responses" "xiaomi" "zai" "zai-anthropic" "zai-coding"
};
