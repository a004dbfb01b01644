//! Builds the request for a conversation without sending it, for `encode` and
//! `explain`.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use aside_core::conversation::Conversation;
use aside_core::message::Message;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{self, EstimateCounter, TokenCounter};
use aside_core::wire::{Encoded, Encoder, Request};

use crate::model_choice::NamedModels;
use crate::providers::{Provider, Providers, env_var};
use crate::report::Report;
use crate::session_recorder::{self, SessionChoice};
use crate::settings::{LoadedSettings, Overrides, setting_error};
use crate::user_files;

/// The arguments that `encode` and `explain` share.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArguments {
    /// The model, as PROVIDER/MODEL; by default the one the conversation names
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// The dialect, if it is not the provider's own
    #[arg(long, value_name = "D")]
    dialect: Option<String>,

    #[command(flatten)]
    overrides: Overrides,

    /// A saved session: its id, title, or the beginning of either
    #[arg(short, long, value_name = "ID", conflicts_with = "file")]
    resume: Option<String>,

    /// A conversation as JSON lines; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

/// A request that is shown instead of sent, with its conversation.
pub(crate) struct RequestPreview {
    pub(crate) conversation: Conversation,
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) encoded: Encoded,
    pub(crate) counter: Arc<dyn TokenCounter>,
    /// The context window's limit, if known.
    pub(crate) limit: Option<u64>,
}

/// How to count tokens. Loading a vocabulary takes time, so `encode`, which shows
/// no counts, uses the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCounting {
    Estimate,
    Exact,
}

impl RequestArguments {
    pub(crate) fn build(&self, counting: TokenCounting) -> anyhow::Result<RequestPreview> {
        let dialects = user_files::dialects()?;
        let conversation = self.read()?;
        let loaded = self.overrides.load()?;
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
        let provider = self.provider(&providers, conversation.model.as_deref(), &loaded)?;
        let settings = self.settings(loaded, &conversation, &provider)?;
        let branch = conversation.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let ask = &provider.dialect.rules(Some(&provider.model)).ask;
        let limit = tokens::context_limit(&settings, ask);
        let counter: Arc<dyn TokenCounter> = match counting {
            TokenCounting::Estimate => Arc::new(EstimateCounter),
            TokenCounting::Exact => aside_tokens::counter(ask.tokenizer),
        };
        let request = Request {
            dialects: &dialects,
            dialect: &provider.dialect,
            model: &provider.model,
            target: &provider.origin(),
            messages: &messages,
            tools: &conversation.tools,
            settings: &settings,
            repairs: &[],
        };
        let encoded = Encoder::counting_with(Arc::clone(&counter)).encode(&request, &[]);
        Ok(RequestPreview { provider, settings, encoded, conversation, counter, limit })
    }

    fn read(&self) -> anyhow::Result<Conversation> {
        if let Some(word) = &self.resume {
            let resumed = session_recorder::resume(&*session_recorder::open_store()?, SessionChoice::Named(word))?;
            return Ok(resumed.map(|resumed| resumed.conversation).unwrap_or_default());
        }
        let mut text = String::new();
        let read = match self.file.as_str() {
            "-" => std::io::stdin().read_to_string(&mut text).map(drop),
            path => fs::read_to_string(path).map(|content| text = content),
        };
        read.map_err(|error| Report::new(format!("cannot read {}: {error}", self.file)))?;
        let conversation = Conversation::parse(&text).map_err(|error| {
            Report::new(format!("{}: {error}", self.file))
                .hint("one JSON object a line; assistant lines are what `aside decode --dialect D` prints")
        })?;
        Ok(conversation)
    }

    fn provider(
        &self,
        all: &Providers<'_>,
        session: Option<&str>,
        loaded: &LoadedSettings,
    ) -> Result<Provider, Report> {
        let named = NamedModels { flag: self.model.as_deref(), session, ..loaded.named_models() };
        let choice = named.first().ok_or_else(|| {
            Report::new("no model is named")
                .hint("use -m PROVIDER/MODEL, or name one in the header line of the conversation")
        })?;
        all.resolve(&choice.name, self.dialect.as_deref())
    }

    /// Layers, from low to high: the model's defaults, config and profile, the
    /// session, the command line.
    fn settings(&self, loaded: LoadedSettings, conversation: &Conversation, to: &Provider) -> Result<Settings, Report> {
        let mut settings = loaded.settings;
        to.apply_defaults(&mut settings);
        for (key, value) in &conversation.settings {
            settings.set(Layer::Session, key, value).map_err(|error| setting_error(&error))?;
        }
        self.overrides.apply(&mut settings)?;
        Ok(settings)
    }
}
