//! Finds the dialect for the model name of a request: `[sim/]DIALECT[/MODEL][:SCRIPT]`, or
//! a real name such as `claude-sonnet-5`.

use aside_core::dialect::{Dialect, Dialects};
use aside_core::protocol::Protocol;

use crate::script::Script;

/// A parsed model name: the dialect, the model within it, and the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolvedModel<'d, 'n> {
    pub(crate) dialect: &'d Dialect,
    pub(crate) model: &'n str,
    pub(crate) suffix: Option<&'n str>,
}

/// Why no dialect fits a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnknownModel<'a> {
    NoSuchModel,
    /// The name is a dialect that speaks another protocol.
    OtherProtocol(&'a Dialect),
}

/// The dialect that answers to a name on the path of a protocol.
pub(crate) fn resolve<'d, 'n>(
    dialects: &'d Dialects,
    protocol: Protocol,
    name: &'n str,
) -> Result<ResolvedModel<'d, 'n>, UnknownModel<'d>> {
    let name = name.strip_prefix("sim/").unwrap_or(name);
    let (name, suffix) = split_script(dialects, name);
    let found = |dialect, model| Ok(ResolvedModel { dialect, model, suffix });
    let (id, model) = name.split_once('/').unwrap_or((name, name));
    if let Some(named) = dialects.get(id) {
        return match related(dialects, named, protocol) {
            Some(dialect) => found(dialect, model),
            None => Err(UnknownModel::OtherProtocol(named)),
        };
    }
    // Resellers put the maker before the name.
    let plain = name.rsplit('/').next().unwrap_or(name);
    let made = dialects.made_by(protocol, name).or_else(|| dialects.made_by(protocol, plain));
    if let Some(dialect) = made {
        return found(dialect, plain);
    }
    match (protocol, dialects.generic(protocol)) {
        // They serve the models of others, under names of their own.
        (Protocol::Bedrock | Protocol::Ollama, Some(dialect)) => found(dialect, name),
        _ => Err(UnknownModel::NoSuchModel),
    }
}

/// The dialect of the same provider that speaks this protocol: itself, or a sibling such
/// as `openai-chat` for `openai`.
fn related<'a>(dialects: &'a Dialects, named: &'a Dialect, protocol: Protocol) -> Option<&'a Dialect> {
    if named.protocol == protocol {
        return Some(named);
    }
    let family = |dialect: &'a Dialect| dialect.id.split('-').next().unwrap_or_default();
    let siblings = dialects.iter().filter(|dialect| dialect.protocol == protocol && family(dialect) == family(named));
    siblings.min_by_key(|dialect| dialect.id.len())
}

/// Splits a name at the colon before its script. Real names contain colons too, so what
/// follows one counts as a script only if it is one, or if a dialect's id precedes it.
fn split_script<'a>(dialects: &Dialects, name: &'a str) -> (&'a str, Option<&'a str>) {
    if let Some((head, script)) = name.split_once(':')
        && dialects.get(head).is_some()
    {
        return (head, Some(script));
    }
    let splits = name.match_indices(':').filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..)?)));
    let is_script = |script: &str| !script.is_empty() && Script::from_suffix(script).is_ok();
    splits.into_iter().find(|(_, script)| is_script(script)).map_or((name, None), |(name, script)| (name, Some(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_real_model_names_find_their_dialect() {
        let dialects = Dialects::builtin().expect("they are valid");
        #[rustfmt::skip]
        let cases = [
            (Protocol::Anthropic,       "claude-sonnet-5",                                 Some(("anthropic", "claude-sonnet-5", None))),
            (Protocol::Anthropic,       "claude-sonnet-5:tool-loop 3",                     Some(("anthropic", "claude-sonnet-5", Some("tool-loop 3")))),
            (Protocol::OpenaiResponses, "gpt-5.6",                                         Some(("openai", "gpt-5.6", None))),
            (Protocol::OpenaiChat,      "gpt-5.6",                                         Some(("openai-chat", "gpt-5.6", None))),
            (Protocol::OpenaiChat,      "openai/gpt-5.6",                                  Some(("openai-chat", "gpt-5.6", None))),
            (Protocol::Bedrock,         "us.anthropic.claude-sonnet-5-20260201-v1:0",      Some(("bedrock", "us.anthropic.claude-sonnet-5-20260201-v1:0", None))),
            (Protocol::Bedrock,         "anthropic.claude-sonnet-5-v1:0:thoughts 2",       Some(("bedrock", "anthropic.claude-sonnet-5-v1:0", Some("thoughts 2")))),
            (Protocol::Ollama,          "qwen3:8b",                                        Some(("ollama", "qwen3:8b", None))),
            (Protocol::Ollama,          "ollama:tool-loop",                                Some(("ollama", "ollama", Some("tool-loop")))),
            (Protocol::Gemini,          "gemini-3-pro-preview",                            Some(("gemini", "gemini-3-pro-preview", None))),
            (Protocol::OpenaiChat,      "sim/deepseek/deepseek-v4-pro:dance",              Some(("deepseek", "deepseek-v4-pro:dance", None))),
            (Protocol::OpenaiChat,      "deepseek:dance",                                  Some(("deepseek", "deepseek", Some("dance")))),
            (Protocol::Anthropic,       "deepseek",                                        Some(("deepseek-anthropic", "deepseek", None))),
            (Protocol::OpenaiChat,      "gpt-9",                                           None),
            (Protocol::OpenaiChat,      "anthropic",                                       None),
        ];
        for (protocol, name, expected) in cases {
            let found = resolve(&dialects, protocol, name).ok();
            assert_eq!(found.map(|found| (found.dialect.id.as_str(), found.model, found.suffix)), expected, "{name}");
        }
    }
}
