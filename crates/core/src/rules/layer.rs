//! Where dialect data and settings meet: a dialect's defaults as a layer of the
//! settings, and the settings that change how an answer is read.

use serde_json::Value as Json;

use crate::dialect::{Carrier, Dialects, EchoField, FillEmpty, Rules};
use crate::protocol::Protocol;
use crate::settings::{Change, Key, TagsMode};
use crate::tags::Start;

/// What a dialect says about settings, for [`Layer::Dialect`].
///
/// [`Layer::Dialect`]: crate::settings::Layer::Dialect
pub fn defaults(rules: &Rules) -> Vec<Change> {
    let echo = &rules.echo;
    let beside = matches!(echo.carrier, Carrier::Field | Carrier::FieldsOpaque);
    let field = match &echo.field {
        EchoField::Named(name) if beside => Some(Json::from(name.as_str())),
        EchoField::Named(_) | EchoField::Same => None,
    };
    let filler = match (echo.fill_empty, echo.filler.as_str()) {
        (FillEmpty::WithToolCalls | FillEmpty::All, "") if beside => Some(Json::from("empty")),
        (FillEmpty::WithToolCalls | FillEmpty::All, " ") if beside => Some(Json::from("space")),
        // Another filler has no word among the settings.
        (FillEmpty::None | FillEmpty::WithToolCalls | FillEmpty::All, _) => None,
    };
    let said = [
        (Key::IncludeInContext, Some(Json::from(echo.include))),
        (Key::FieldName, field),
        (Key::SendEmpty, filler),
        (Key::ContextLimit, rules.ask.context_limit.map(Json::from)),
        (Key::RequestMaxTokens, rules.ask.max_tokens.default.map(Json::from)),
    ];
    // A value the registry does not know is no setting; the rules still hold it.
    said.into_iter().filter_map(|(key, value)| Change::accept(key.name(), &value?).ok()).collect()
}

/// The rules by which an answer is read, with the user's word on tags.
pub fn reading(dialects: &Dialects, rules: &Rules, tags: TagsMode) -> Rules {
    let mut rules = rules.clone();
    match tags {
        TagsMode::Auto => (),
        TagsMode::Off => rules.read.tags.pairs.clear(),
        TagsMode::Preopened => {
            rules.read.tags.start = Start::Prefilled;
            // Where no family is known, the one that everybody uses is meant.
            if rules.read.tags.pairs.is_empty() {
                let usual = dialects.generic(Protocol::OpenaiChat).map(|generic| generic.rules(None));
                rules.read.tags.pairs = usual.map(|usual| usual.read.tags.pairs.clone()).unwrap_or_default();
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(dialect: &str, model: &str) -> Vec<String> {
        let dialects = Dialects::builtin().unwrap();
        let rules = dialects.get(dialect).unwrap().rules(Some(model)).clone();
        let words = |change: &Change| format!("{}={}", change.key(), change.value().unwrap());
        defaults(&rules).iter().map(words).collect()
    }

    #[test]
    fn a_dialects_defaults_are_settings() {
        let deepseek = said("deepseek", "deepseek-v4-pro");
        assert_eq!(
            deepseek[..3],
            ["reasoning.includeInContext=true", "reasoning.fieldName=reasoning_content", "reasoning.sendEmpty=empty",]
        );
        assert_eq!(
            said("anthropic", "claude-sonnet-5"),
            ["reasoning.includeInContext=true", "context.limit=200000", "request.maxTokens=16000",]
        );
        assert_eq!(said("generic", "x"), ["reasoning.includeInContext=false"]);
    }

    #[test]
    fn d7_the_users_word_on_tags_counts() {
        let dialects = Dialects::builtin().unwrap();
        let rules = |id: &str| dialects.get(id).unwrap().rules(None).clone();
        let read = |id: &str, mode| {
            let tags = reading(&dialects, &rules(id), mode).read.tags;
            (tags.pairs.iter().map(|pair| pair.id.clone()).collect::<Vec<_>>(), tags.start)
        };
        assert_eq!(read("generic", TagsMode::Auto), (vec!["think".to_owned()], Start::Explicit));
        assert_eq!(read("generic", TagsMode::Off).0, Vec::<String>::new());
        assert_eq!(read("generic", TagsMode::Preopened), (vec!["think".to_owned()], Start::Prefilled));
        assert_eq!(read("mistral", TagsMode::Preopened), (vec!["think".to_owned()], Start::Prefilled));
    }
}
