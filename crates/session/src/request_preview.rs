//! Builds the request for a conversation without sending it, for `encode` and
//! `explain`.

use std::sync::Arc;

use aside_core::conversation::Conversation;
use aside_core::message::Message;
use aside_core::parameters::Parameters;
use aside_core::rules;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{self, EstimateCounter, TokenCounter};
use aside_core::wire::{Encoded, Encoder, Request};

use crate::error::HintedError;
use crate::model_choice::NamedModels;
use crate::providers::{Provider, Providers, env_var};
use crate::settings::{LoadedSettings, Overrides, setting_error};
use crate::user_files::UserFolders;

/// A request that is shown instead of sent, with its conversation.
pub struct RequestPreview {
    pub conversation: Conversation,
    pub provider: Provider,
    pub settings: Settings,
    pub encoded: Encoded,
    pub counter: Arc<dyn TokenCounter>,
    /// The context window's limit, if known.
    pub limit: Option<u64>,
}

/// How to count tokens. Loading a vocabulary takes time, so `encode`, which shows
/// no counts, uses the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCounting {
    Estimate,
    Exact,
}

/// Which request to build.
pub struct PreviewOptions<'a> {
    /// As PROVIDER/MODEL; by default the one the conversation names.
    pub model: Option<&'a str>,
    /// The dialect, if it is not the provider's own.
    pub dialect: Option<&'a str>,
    pub overrides: &'a Overrides,
    pub counting: TokenCounting,
}

impl RequestPreview {
    /// `read` is called once the dialects are known to be valid.
    pub fn build(
        options: &PreviewOptions<'_>,
        folders: &UserFolders,
        read: impl FnOnce() -> Result<Conversation, HintedError>,
    ) -> Result<RequestPreview, HintedError> {
        let dialects = folders.dialects()?;
        let conversation = read()?;
        let loaded = options.overrides.load(folders)?;
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
        let provider = options.provider(&providers, conversation.model.as_deref(), &loaded)?;
        let settings = options.settings(loaded, &conversation, &provider)?;
        let branch = conversation.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let ask = &provider.dialect.rules(Some(&provider.model)).ask;
        let limit = tokens::context_limit(&settings, ask);
        let counter: Arc<dyn TokenCounter> = match options.counting {
            TokenCounting::Estimate => Arc::new(EstimateCounter),
            TokenCounting::Exact => aside_tokens::counter(ask.tokenizer),
        };
        let target = provider.origin();
        let mut parameters = Parameters::new();
        parameters.cache_hints = rules::cache_hints(&ask.cache, &messages, &conversation.tools);
        let request = Request::new(&dialects, &provider.dialect, &provider.model, &target, &settings)
            .with_messages(&messages)
            .with_tools(&conversation.tools)
            .with_parameters(&parameters);
        let encoded = Encoder::counting_with(Arc::clone(&counter)).encode(&request, &[]);
        Ok(RequestPreview { provider, settings, encoded, conversation, counter, limit })
    }
}

impl PreviewOptions<'_> {
    fn provider(
        &self,
        all: &Providers<'_>,
        session: Option<&str>,
        loaded: &LoadedSettings,
    ) -> Result<Provider, HintedError> {
        let named = NamedModels { flag: self.model, session, ..loaded.named_models() };
        let choice = named.first().ok_or_else(|| {
            HintedError::new("no model is named")
                .hint("use -m PROVIDER/MODEL, or name one in the header line of the conversation")
        })?;
        all.resolve(&choice.name, self.dialect)
    }

    /// Layers, from low to high: the model's defaults, config and profile, the
    /// session, the command line.
    fn settings(
        &self,
        loaded: LoadedSettings,
        conversation: &Conversation,
        to: &Provider,
    ) -> Result<Settings, HintedError> {
        let mut settings = loaded.settings;
        to.apply_defaults(&mut settings);
        for (key, value) in &conversation.settings {
            settings.set(Layer::Session, key, value).map_err(|error| setting_error(&error))?;
        }
        self.overrides.apply(&mut settings)?;
        Ok(settings)
    }
}
