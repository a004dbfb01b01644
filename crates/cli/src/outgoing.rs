//! A conversation on its way out: which model, which dialect, which settings.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use aside_core::block::Origin;
use aside_core::conversation::Conversation;
use aside_core::dialect::{Dialect, Dialects};
use aside_core::message::Message;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{self, Counter, Letters};
use aside_core::wire::{Encoded, Encoder, Request};

use crate::report::Report;
use crate::settings::{Loaded, Overrides, refused};
use crate::user_files;

/// What `encode` and `explain` are told the same way.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The model, as PROVIDER/MODEL; else the one the conversation names
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// The dialect, where it is not the provider's own
    #[arg(long, value_name = "D")]
    dialect: Option<String>,

    #[command(flatten)]
    overrides: Overrides,

    /// A conversation as JSON lines; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

/// A request ready to be shown, with the conversation it was made of.
pub(crate) struct Outgoing {
    pub(crate) conversation: Conversation,
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    pub(crate) settings: Settings,
    pub(crate) encoded: Encoded,
    pub(crate) counter: Arc<dyn Counter>,
    /// Tokens one request may have, where that is known.
    pub(crate) limit: Option<u64>,
}

/// How well the tokens are to be known. A vocabulary takes time to load; who
/// shows no tokens does not wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    Roughly,
    InTheVocabulary,
}

impl Source {
    pub(crate) fn build(&self, counting: Counting) -> anyhow::Result<Outgoing> {
        let dialects = user_files::dialects()?;
        let conversation = self.read()?;
        let loaded = self.overrides.load()?;
        let configured = loaded.model.as_ref().map(|(model, _)| model.clone());
        let (dialect, model) = self.target(&dialects, conversation.model.clone().or(configured))?;
        let settings = self.settings(loaded, &conversation)?;
        let branch = conversation.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let endpoint = dialect.base_url.clone();
        let target = Origin { endpoint, provider: Some(dialect.id.clone()), ..Origin::default() };
        let ask = &dialect.rules(Some(&model)).ask;
        let limit = tokens::context_limit(&settings, ask);
        let counter: Arc<dyn Counter> = match counting {
            Counting::Roughly => Arc::new(Letters),
            Counting::InTheVocabulary => aside_tokens::counter(ask.tokenizer),
        };
        let request = Request {
            dialects: &dialects,
            dialect: &dialect,
            model: &model,
            target: &target,
            messages: &messages,
            tools: &conversation.tools,
            settings: &settings,
            repairs: &[],
        };
        let encoded = Encoder::counting_with(Arc::clone(&counter)).encode(&request, &[]);
        Ok(Outgoing { dialect, model, settings, encoded, conversation, counter, limit })
    }

    fn read(&self) -> anyhow::Result<Conversation> {
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

    /// The dialect and the name the provider knows the model by.
    fn target(&self, dialects: &Dialects, default: Option<String>) -> anyhow::Result<(Dialect, String)> {
        let name = self.model.clone().or(default).ok_or_else(|| {
            Report::new("no model is named")
                .hint("say -m PROVIDER/MODEL, or name one in the header line of the conversation")
        })?;
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) if dialects.get(provider).is_some() => (Some(provider), model),
            _ => (None, name.as_str()),
        };
        let id = self.dialect.as_deref().or(provider).ok_or_else(|| {
            let known: Vec<&str> = dialects.iter().map(|dialect| dialect.id.as_str()).collect();
            Report::new(format!("`{name}` names no provider"))
                .hint(format!("say -m PROVIDER/MODEL or --dialect D, with one of: {}", known.join(", ")))
        })?;
        let dialect = dialects
            .get(id)
            .ok_or_else(|| Report::new(format!("unknown dialect `{id}`")).hint("aside models lists them"))?;
        Ok((dialect.clone(), model.to_owned()))
    }

    /// Config and profile, then the session's own, then the command line's.
    fn settings(&self, loaded: Loaded, conversation: &Conversation) -> Result<Settings, Report> {
        let mut settings = loaded.settings;
        for (key, value) in &conversation.settings {
            settings.set(Layer::Session, key, value).map_err(|error| refused(&error))?;
        }
        self.overrides.apply(&mut settings)?;
        Ok(settings)
    }
}
