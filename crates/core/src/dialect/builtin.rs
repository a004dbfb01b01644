//! The files of `dialects/`, compiled in. A tidy test checks that none is
//! missing.

use super::DialectSource;

/// The file with the tag families.
pub(super) const TAGS: &str = "tags.toml";

/// The file that lists which model can read the thinking of which other model.
pub(super) const MATRIX: &str = "matrix.toml";

/// The file with the error messages of providers.
pub(super) const ERRORS: &str = "errors.toml";

macro_rules! files {
    ($($name:literal)*) => {
        &[$(DialectSource {
            path: concat!("dialects/", $name, ".toml"),
            text: include_str!(concat!("../../dialects/", $name, ".toml")),
        }),*]
    };
}

pub(super) const FILES: &[DialectSource<'static>] = files! {
    "tags" "matrix" "errors"
    "anthropic" "ark" "azure" "azure-responses" "bedrock" "cerebras" "cohere" "copilot" "copilot-responses" "deepseek"
    "deepseek-anthropic" "deepseek-responses" "fireworks" "gemini" "gemini-openai" "generic" "groq" "kimi"
    "kimi-anthropic" "litellm" "llamacpp" "lmstudio" "lmstudio-responses" "minimax" "minimax-anthropic" "minimax-tags"
    "mistral" "ollama" "ollama-anthropic" "ollama-openai" "ollama-responses" "openai" "openai-chat" "openrouter"
    "openrouter-responses" "qianfan" "qwen" "sglang" "siliconflow" "stepfun" "together" "vllm" "vllm-responses" "xai"
    "xai-responses" "zai" "zai-anthropic"
};
