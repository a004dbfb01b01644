//! A conversation that goes on: history, settings, and where it is held.

use std::fmt;
use std::sync::Arc;

use aside_core::block::{Block, Text};
use aside_core::dialect::Dialects;
use aside_core::history::History;
use aside_core::message::{Message, Role};
use aside_core::rules::Cures;
use aside_core::settings::Settings;
use aside_core::wire::Encoder;
use futures_util::future::BoxFuture;

use crate::endpoint::Endpoint;
use crate::http::Http;
use crate::hurry::Hurry;
use crate::measure::Measure;
use crate::redact::Redactor;
use crate::tools::{Arrived, Toolbox};

/// How many steps a turn may take without being told to go on.
pub const MOST_STEPS: u32 = 100;

/// Everything a turn needs. Storage hears of it through the updates.
#[derive(Debug)]
pub struct Session {
    pub history: History,
    pub settings: Settings,
    pub endpoint: Endpoint,
    pub tools: Toolbox,
    pub most_steps: u32,
    /// What must not stand in an error or a notice.
    pub redactor: Redactor,
    /// Tools that are still on their way.
    pub(crate) coming: Option<Coming>,
    pub(crate) dialects: Arc<Dialects>,
    pub(crate) http: Http,
    pub(crate) encoder: Encoder,
    pub(crate) hurry: Hurry,
    /// What refusals taught, for each model that refused.
    pub(crate) cures: Cures,
    /// What the provider's counts taught about ours.
    pub(crate) measure: Measure,
}

impl Session {
    pub fn new(dialects: Arc<Dialects>, endpoint: Endpoint, settings: Settings, http: Http) -> Session {
        Session {
            history: History::new(),
            settings,
            endpoint,
            tools: Toolbox::empty(),
            most_steps: MOST_STEPS,
            redactor: Redactor::default(),
            coming: None,
            dialects,
            http,
            encoder: Encoder::default(),
            hurry: Hurry::default(),
            cures: Cures::default(),
            measure: Measure::default(),
        }
    }

    pub fn dialects(&self) -> Arc<Dialects> {
        Arc::clone(&self.dialects)
    }

    /// To ask for the answer while a turn runs.
    pub fn hurry(&self) -> Hurry {
        self.hurry.clone()
    }

    /// Another conversation. What was written of the one before is forgotten: its
    /// entries have the same numbers.
    pub fn go_on_with(&mut self, history: History) {
        self.history = history;
        self.encoder = Encoder::default();
        self.measure.forget_the_last();
    }

    /// The system prompt, before anything else is said.
    pub fn instruct(&mut self, prompt: String) {
        self.history.append(Message::new(Role::System, vec![text(prompt)]));
    }

    /// Tools that were announced and have not come yet.
    pub fn awaits_tools(&self) -> bool {
        self.coming.is_some()
    }

    /// More tools come. The first turn waits for them, so that a model is
    /// offered the same tools from its first request on.
    pub fn expect_tools(&mut self, tools: BoxFuture<'static, Arrived>) {
        self.coming = Some(Coming(tools));
    }
}

pub(crate) struct Coming(pub(crate) BoxFuture<'static, Arrived>);

impl fmt::Debug for Coming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coming")
    }
}

fn text(text: String) -> Block {
    Block::Text(Text { text, ..Text::default() })
}
