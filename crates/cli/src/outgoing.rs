//! A conversation on its way out: which model, which dialect, which settings.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use aside_core::conversation::Conversation;
use aside_core::message::Message;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{self, Counter, Letters};
use aside_core::wire::{Encoded, Encoder, Request};

use crate::choice::Named;
use crate::keep::{self, Which};
use crate::providers::{Provider, Providers, environment};
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

    /// A session that is kept, by id, title, or the beginning of either
    #[arg(short, long, value_name = "ID", conflicts_with = "file")]
    resume: Option<String>,

    /// A conversation as JSON lines; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

/// A request ready to be shown, with the conversation it was made of.
pub(crate) struct Outgoing {
    pub(crate) conversation: Conversation,
    pub(crate) provider: Provider,
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
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
        let provider = self.provider(&providers, conversation.model.as_deref(), &loaded)?;
        let settings = self.settings(loaded, &conversation, &provider)?;
        let branch = conversation.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let ask = &provider.dialect.rules(Some(&provider.model)).ask;
        let limit = tokens::context_limit(&settings, ask);
        let counter: Arc<dyn Counter> = match counting {
            Counting::Roughly => Arc::new(Letters),
            Counting::InTheVocabulary => aside_tokens::counter(ask.tokenizer),
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
        Ok(Outgoing { provider, settings, encoded, conversation, counter, limit })
    }

    fn read(&self) -> anyhow::Result<Conversation> {
        if let Some(word) = &self.resume {
            let resumed = keep::resume(&*keep::store()?, Which::Named(word))?;
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

    fn provider(&self, all: &Providers<'_>, session: Option<&str>, loaded: &Loaded) -> Result<Provider, Report> {
        let named = Named { flag: self.model.as_deref(), session, ..loaded.named() };
        let choice = named.first().ok_or_else(|| {
            Report::new("no model is named")
                .hint("say -m PROVIDER/MODEL, or name one in the header line of the conversation")
        })?;
        all.resolve(&choice.name, self.dialect.as_deref())
    }

    /// The model's own, then config and profile, then the session's, then the
    /// command line's.
    fn settings(&self, loaded: Loaded, conversation: &Conversation, to: &Provider) -> Result<Settings, Report> {
        let mut settings = loaded.settings;
        to.lay_defaults(&mut settings);
        for (key, value) in &conversation.settings {
            settings.set(Layer::Session, key, value).map_err(|error| refused(&error))?;
        }
        self.overrides.apply(&mut settings)?;
        Ok(settings)
    }
}
