//! A session: history, settings, endpoint and tools.

use std::fmt;
use std::sync::Arc;

use aside_core::block::{Block, Text};
use aside_core::dialect::Dialects;
use aside_core::history::History;
use aside_core::message::{Message, Role};
use aside_core::model_table::Price;
use aside_core::parameters::Parameters;
use aside_core::rules::{LearnedRepairs, LeftOut};
use aside_core::settings::Settings;
use aside_core::wire::Encoder;
use futures_util::future::BoxFuture;

use crate::answer_now::AnswerNowSignal;
use crate::endpoint::Endpoint;
use crate::exact_tokens::Vocabularies;
use crate::http::Http;
use crate::redact::Redactor;
use crate::steering::SteeringQueue;
use crate::token_calibration::SessionCalibration;
use crate::tools::{LoadedTools, Toolbox};
use crate::totals::SessionTotals;

/// How many steps a turn may take before the user is asked.
pub const MAX_STEPS: u32 = 100;

/// Everything that a turn needs. The updates carry what is stored.
#[derive(Debug)]
pub struct Session {
    pub history: History,
    pub settings: Settings,
    /// What every request of this session asks for, besides its settings.
    pub parameters: Parameters,
    /// The same for the request that is being sent, with its cache points.
    pub(crate) request_parameters: Parameters,
    pub endpoint: Endpoint,
    pub tools: Toolbox,
    pub max_steps: u32,
    /// A turn sends no more requests once it has cost this much, in US dollars.
    pub max_cost: Option<f64>,
    /// The price of the model; none if unknown.
    pub price: Option<Price>,
    /// What the requests have used and cost so far.
    pub totals: SessionTotals,
    /// Removes keys from errors and notices.
    pub redactor: Redactor,
    /// The repairs that providers accepted. They can be stored and given to the next session.
    pub learned_repairs: LearnedRepairs,
    /// Counts tokens exactly where the estimate is not enough. Without it, the estimate is always used.
    pub vocabularies: Option<Arc<dyn Vocabularies>>,
    /// Tools that are still loading.
    pub(crate) expected_tools: Option<ExpectedTools>,
    pub(crate) dialects: Arc<Dialects>,
    pub(crate) http: Http,
    pub(crate) encoder: Encoder,
    pub(crate) answer_now: AnswerNowSignal,
    pub(crate) steering: SteeringQueue,
    /// Corrects our token counts by the provider's.
    pub(crate) calibration: SessionCalibration,
    /// One of each kind that the user was told is not sent.
    pub(crate) reported_losses: Vec<LeftOut>,
}

impl Session {
    pub fn new(dialects: Arc<Dialects>, endpoint: Endpoint, settings: Settings, http: Http) -> Session {
        Session {
            history: History::new(),
            settings,
            parameters: Parameters::new(),
            request_parameters: Parameters::new(),
            endpoint,
            tools: Toolbox::empty(),
            max_steps: MAX_STEPS,
            max_cost: None,
            price: None,
            totals: SessionTotals::default(),
            redactor: Redactor::default(),
            learned_repairs: LearnedRepairs::new(),
            vocabularies: None,
            expected_tools: None,
            dialects,
            http,
            encoder: Encoder::default(),
            answer_now: AnswerNowSignal::default(),
            steering: SteeringQueue::default(),
            calibration: SessionCalibration::default(),
            reported_losses: Vec::new(),
        }
    }

    pub fn dialects(&self) -> Arc<Dialects> {
        Arc::clone(&self.dialects)
    }

    /// A handle to request the answer during a turn.
    pub fn answer_now_signal(&self) -> AnswerNowSignal {
        self.answer_now.clone()
    }

    /// A handle to send the model a message during a turn.
    pub fn steering_queue(&self) -> SteeringQueue {
        self.steering.clone()
    }

    /// Switches to another conversation. The encoder's cache is dropped, because entry ids restart with each
    /// history.
    pub fn replace_history(&mut self, history: History) {
        self.history = history;
        self.encoder = Encoder::default();
        self.calibration.forget_last_request();
    }

    /// Appends a system prompt; call it before the first turn.
    pub fn add_system_prompt(&mut self, prompt: String) {
        self.history.append(Message::new(Role::System, vec![text(prompt)]));
    }

    /// Whether expected tools are still loading.
    pub fn awaits_tools(&self) -> bool {
        self.expected_tools.is_some()
    }

    /// Announces tools that are still loading. The first turn waits for them, so that the model is offered
    /// the same tools in every request.
    pub fn expect_tools(&mut self, tools: BoxFuture<'static, LoadedTools>) {
        self.expected_tools = Some(ExpectedTools(tools));
    }
}

pub(crate) struct ExpectedTools(pub(crate) BoxFuture<'static, LoadedTools>);

impl fmt::Debug for ExpectedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coming")
    }
}

fn text(text: String) -> Block {
    Block::Text(Text { text, ..Text::default() })
}
