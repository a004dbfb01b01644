//! Connects dialects and settings: a dialect's defaults as a layer of settings,
//! and the settings that change how a reply is read.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::dialect::{Carrier, Dialects, EchoField, FillEmpty, Rules};
use crate::protocol::Protocol;
use crate::settings::{SettingChange, SettingKey, TagsMode};
use crate::tags::TagStart;

/// The settings that a dialect implies, for [`Layer::Dialect`].
///
/// [`Layer::Dialect`]: crate::settings::Layer::Dialect
pub fn dialect_defaults(rules: &Rules) -> Vec<SettingChange> {
    let echo = &rules.echo;
    let is_field = matches!(echo.carrier, Carrier::Field | Carrier::FieldsOpaque);
    let field = match &echo.field {
        EchoField::Named(name) if is_field => Some(Json::from(name.as_str())),
        EchoField::Named(_) | EchoField::Same | EchoField::AsReceived => None,
    };
    let filler = match (echo.fill_empty, echo.filler.as_str()) {
        (FillEmpty::WithToolCalls | FillEmpty::All, "") if is_field => Some(Json::from("empty")),
        (FillEmpty::WithToolCalls | FillEmpty::All, " ") if is_field => Some(Json::from("space")),
        // Other fillers cannot be expressed as a setting.
        (FillEmpty::None | FillEmpty::WithToolCalls | FillEmpty::All, _) => None,
    };
    let values = [
        (SettingKey::IncludeInContext, Some(Json::from(echo.include))),
        (SettingKey::FieldName, field),
        (SettingKey::SendEmpty, filler),
        (SettingKey::ContextLimit, rules.ask.context_limit.map(Json::from)),
        (SettingKey::RequestMaxTokens, rules.ask.max_tokens.default.map(Json::from)),
    ];
    // A value that the registry rejects is not a setting; the rules still
    // contain it.
    values.into_iter().filter_map(|(key, value)| SettingChange::accept(key.name(), &value?).ok()).collect()
}

/// The rules for reading a reply, with the user's choice for tags applied.
pub fn rules_with_tags<'a>(dialects: &Dialects, rules: &'a Rules, tags: TagsMode) -> Cow<'a, Rules> {
    if tags == TagsMode::Auto {
        return Cow::Borrowed(rules);
    }
    let mut rules = rules.clone();
    match tags {
        TagsMode::Auto => (),
        TagsMode::Off => rules.read.tags.pairs.clear(),
        TagsMode::Preopened => {
            rules.read.tags.start = TagStart::Prefilled;
            // If the dialect has no tag family, use the most common one.
            if rules.read.tags.pairs.is_empty() {
                let usual = dialects.generic(Protocol::OpenaiChat).map(|generic| generic.rules(None));
                rules.read.tags.pairs = usual.map(|usual| usual.read.tags.pairs.clone()).unwrap_or_default();
            }
        }
    }
    Cow::Owned(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(dialect: &str, model: &str) -> Vec<String> {
        let dialects = Dialects::builtin().unwrap();
        let rules = dialects.get(dialect).unwrap().rules(Some(model)).clone();
        let words = |change: &SettingChange| format!("{}={}", change.key(), change.value().unwrap());
        dialect_defaults(&rules).iter().map(words).collect()
    }

    #[test]
    fn a_dialects_defaults_are_settings() {
        let deepseek = settings_of("deepseek", "deepseek-v4-pro");
        assert_eq!(
            deepseek[..3],
            ["reasoning.includeInContext=true", "reasoning.fieldName=reasoning_content", "reasoning.sendEmpty=empty",]
        );
        assert_eq!(
            settings_of("anthropic", "claude-sonnet-5"),
            ["reasoning.includeInContext=true", "context.limit=1000000", "request.maxTokens=16000",]
        );
        assert_eq!(settings_of("generic", "x"), ["reasoning.includeInContext=false"]);
    }

    #[test]
    fn d7_the_users_tag_setting_wins() {
        let dialects = Dialects::builtin().unwrap();
        let rules = |id: &str| dialects.get(id).unwrap().rules(None).clone();
        let read = |id: &str, mode| {
            let tags = rules_with_tags(&dialects, &rules(id), mode).into_owned().read.tags;
            (tags.pairs.iter().map(|pair| pair.id.clone()).collect::<Vec<_>>(), tags.start)
        };
        assert_eq!(read("generic", TagsMode::Auto), (vec!["think".to_owned()], TagStart::Explicit));
        assert_eq!(read("generic", TagsMode::Off).0, Vec::<String>::new());
        assert_eq!(read("generic", TagsMode::Preopened), (vec!["think".to_owned()], TagStart::Prefilled));
        assert_eq!(read("mistral", TagsMode::Preopened), (vec!["think".to_owned()], TagStart::Prefilled));
    }
}
