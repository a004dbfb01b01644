//! Builds the timeline of a reply from the behaviour, the dialect and the seed.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use aside_core::block::Block;
use aside_core::dialect::{Dialect, ErrorRow, PrefixCheck, Rules};
use aside_core::event::Ending;
use aside_core::message::{Message, Role};
use aside_core::parameters::{ResponseFormat, ToolChoice};
use aside_core::protocol::Protocol;
use aside_core::rules::RequestedThinking;
use aside_core::wire::ClientRequest;
use serde_json::json;
use siphasher::sip::SipHasher13;

use crate::generated_text::{GeneratedText, SeededRng, TITLES, fixed_text};
use crate::reply_builder::ReplyBuilder;
use crate::script::{Behaviour, MAX_TOKENS, Script, ScriptedCall, last_user_text, last_user_turn, without_script};
use crate::seal::SealContext;
use crate::thinking_format::{ReplyFormat, RequestedFormat};
use crate::timeline::{TimelineStep, insert_midway};
use crate::{arguments, script, tools};

/// How many tokens a looping reply has without an explicit limit.
const LOOP_TOKENS: usize = 400;

/// The longest reply: the longest thinking plus room for an answer.
const MAX_REPLY_TOKENS: usize = MAX_TOKENS + 1000;

/// How much of the prompt the answer quotes.
const MAX_QUOTE_CHARS: usize = 60;

/// Everything that a reply depends on.
pub(crate) struct ReplyContext<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'a Rules,
    pub(crate) catalogue: &'a [ErrorRow],
    pub(crate) incoming: &'a ClientRequest,
    pub(crate) script: &'a Script,
    /// A hash of the API key, for dialects that bind seals to it.
    pub(crate) account: u64,
    /// What the request asks for.
    pub(crate) requested: RequestedFormat,
    pub(crate) input_tokens: u64,
}

/// The timeline of the reply to a request.
pub(crate) fn plan_reply(context: &ReplyContext<'_>) -> Vec<TimelineStep> {
    let mut timeline = context.build();
    match context.script.behaviour {
        Some(Behaviour::Stall(time)) => insert_midway(&mut timeline, TimelineStep::Pause(time)),
        Some(Behaviour::Malformed) => insert_midway(&mut timeline, TimelineStep::Malformed),
        _ => (),
    }
    timeline
}

impl ReplyContext<'_> {
    fn build(&self) -> Vec<TimelineStep> {
        let mut builder = self.builder();
        let ending = match self.behaviour() {
            Behaviour::Empty => Ending::Stop,
            Behaviour::ThinkingOnly => {
                self.think(&mut builder);
                Ending::Stop
            }
            Behaviour::Loop if self.must_answer_now() => self.conclude(&mut builder, ""),
            Behaviour::Loop => {
                let n = self.script.options.tokens.unwrap_or(LOOP_TOKENS);
                builder.add_thinking(GeneratedText::Repeated { n_tokens: n });
                Ending::Length
            }
            Behaviour::ToolLoop(steps) => self.tool_loop(&mut builder, steps, 1),
            Behaviour::Parallel(calls) => self.tool_loop(&mut builder, 1, calls),
            Behaviour::Thoughts(n) => self.several_thinking_blocks(&mut builder, n),
            Behaviour::Summaries(n) => self.summaries(&mut builder, n),
            Behaviour::Encrypted | Behaviour::Redacted => self.hidden(&mut builder),
            Behaviour::Tags => {
                let (open, close) = builder.tags();
                self.conclude_tagged(&mut builder, &open, &close)
            }
            Behaviour::Preopened => {
                let (_, close) = builder.tags();
                self.conclude_tagged(&mut builder, "", &close)
            }
            Behaviour::Echo => self.echo(&mut builder),
            Behaviour::Help => {
                builder.add_answer(fixed_text(&script::help()));
                Ending::Stop
            }
            Behaviour::Calls(calls) => self.scripted_calls(&mut builder, &calls),
            Behaviour::Decline => {
                self.think(&mut builder);
                builder.add_answer(fixed_text("I cannot help with that."));
                match self.dialect.protocol {
                    // A refusal is a kind of text there, which is not simulated.
                    Protocol::OpenaiResponses => Ending::ContentFilter,
                    Protocol::OpenaiChat
                    | Protocol::Anthropic
                    | Protocol::Gemini
                    | Protocol::Ollama
                    | Protocol::Bedrock
                    | Protocol::Cohere => Ending::Refusal,
                }
            }
            Behaviour::Plain => self.plain(&mut builder),
            // Faults in delivery, and faults that have already happened.
            Behaviour::Think
            | Behaviour::Slow
            | Behaviour::Stall(_)
            | Behaviour::Cut(_)
            | Behaviour::Status(_)
            | Behaviour::Malformed
            | Behaviour::Refuse(_)
            | Behaviour::ContentType
            | Behaviour::SlowHeaders(_) => {
                self.think(&mut builder);
                self.conclude(&mut builder, "")
            }
        };
        builder.finish(ending, self.input_tokens, self.rules.usage.included)
    }

    /// A loop ends when the request disables thinking or the user says "answer now".
    fn must_answer_now(&self) -> bool {
        let prompt = last_user_text(&self.incoming.messages).unwrap_or_default();
        !self.thinks() || without_script(&prompt).to_lowercase().contains("answer now")
    }

    /// Several thinking blocks with text between them.
    fn several_thinking_blocks(&self, builder: &mut ReplyBuilder<'_>, n: u32) -> Ending {
        for nth in 0..n {
            if builder.is_exhausted() {
                break;
            }
            self.think(builder);
            if nth + 1 < n {
                let remark = format!("{}\n\n", builder.rng.remark());
                builder.add_text(fixed_text(&remark));
            }
        }
        self.conclude(builder, "")
    }

    fn summaries(&self, builder: &mut ReplyBuilder<'_>, n: u32) -> Ending {
        let item = |rng: &mut SeededRng| {
            let (title, thinking) = (rng.pick(&TITLES), rng.thinking_text());
            fixed_text(&format!("**{title}**\n\n{thinking}"))
        };
        // Bounds the number of items.
        let items = (0..n.min(1000)).map(|_| item(&mut builder.rng)).collect();
        builder.add_thinking_items(items);
        self.conclude(builder, "")
    }

    fn hidden(&self, builder: &mut ReplyBuilder<'_>) -> Ending {
        if builder.add_hidden_thinking() {
            return self.conclude(builder, "");
        }
        self.think(builder);
        self.conclude(builder, " This dialect has no hidden thinking, so the thought can be read.")
    }

    fn echo(&self, builder: &mut ReplyBuilder<'_>) -> Ending {
        self.think(builder);
        let prompt = last_user_text(&self.incoming.messages).unwrap_or_default();
        builder.add_answer(fixed_text(&without_script(&prompt)));
        Ending::Stop
    }

    fn plain(&self, builder: &mut ReplyBuilder<'_>) -> Ending {
        match self.script.options.tokens {
            Some(n) => {
                let text = builder.rng.long_text(n);
                builder.add_answer(text);
                Ending::Stop
            }
            None => self.conclude(builder, ""),
        }
    }

    /// The scripted behaviour. Without a script: thinking and an answer, or the tool call
    /// that the request forces.
    fn behaviour(&self) -> Behaviour {
        match &self.script.behaviour {
            Some(behaviour) => behaviour.clone(),
            None if self.incoming.parameters.tool_choice.forces_a_call() => Behaviour::ToolLoop(1),
            None => Behaviour::Think,
        }
    }

    fn builder(&self) -> ReplyBuilder<'_> {
        let seed = self.script.options.seed.unwrap_or(0);
        let prompt = last_user_text(&self.incoming.messages).unwrap_or_default();
        let rng = SeededRng::new(seed, (&self.dialect.id, without_script(&prompt), self.incoming.messages.len()));
        let format = ReplyFormat::of(self.dialect, self.rules, self.catalogue, self.requested);
        let context = seal_context(self.dialect, self.rules, self.account, self.incoming, self.incoming.messages.len());
        // An explicit token count overrides the request's output limit.
        let limit = self.incoming.parameters.max_output_tokens.filter(|_| self.script.options.tokens.is_none());
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_REPLY_TOKENS);
        ReplyBuilder::new(format, context, rng, limit.min(MAX_REPLY_TOKENS))
    }

    fn thinks(&self) -> bool {
        self.requested.thinking != RequestedThinking::Off
    }

    fn think(&self, builder: &mut ReplyBuilder<'_>) {
        if self.thinks() {
            let text = match self.script.options.tokens {
                Some(n) => builder.rng.long_text(n),
                None => fixed_text(&builder.rng.thinking_text()),
            };
            builder.add_thinking(text);
        }
    }

    fn conclude(&self, builder: &mut ReplyBuilder<'_>, remark: &str) -> Ending {
        let answer = self.answer(builder, remark);
        builder.add_answer(fixed_text(&answer));
        Ending::Stop
    }

    /// An answer with tagged thinking, even in dialects that do not use tags.
    fn conclude_tagged(&self, builder: &mut ReplyBuilder<'_>, open: &str, close: &str) -> Ending {
        let thinking = match self.script.options.tokens {
            Some(n) => builder.rng.long_text(n),
            None => fixed_text(&builder.rng.thinking_text()),
        };
        let answer = self.answer(builder, "");
        let begin = if open.is_empty() { String::new() } else { format!("{open}\n") };
        let rest = format!("\n{close}\n\n{answer}");
        builder.add_answer(GeneratedText::Joined(vec![fixed_text(&begin), thinking, fixed_text(&rest)]));
        Ending::Stop
    }

    /// The next step of a tool loop, or its final answer.
    fn tool_loop(&self, builder: &mut ReplyBuilder<'_>, steps: u32, calls: u32) -> Ending {
        self.think(builder);
        let done = steps_taken(&self.incoming.messages);
        match tools::choose(&self.incoming.tools, &self.incoming.parameters.tool_choice) {
            Some(tool) if done < steps => {
                builder.add_calls(tool, calls);
                Ending::ToolCalls
            }
            Some(_) => self.conclude(builder, &format!(" Steps with tools in this turn: {done}.")),
            None => self.conclude(builder, " No tool was offered, so none was called."),
        }
    }

    /// The next call of the script, or the final answer.
    fn scripted_calls(&self, builder: &mut ReplyBuilder<'_>, calls: &[ScriptedCall]) -> Ending {
        self.think(builder);
        let done = steps_taken(&self.incoming.messages);
        let Some(call) = usize::try_from(done).ok().and_then(|done| calls.get(done)) else {
            return self.conclude(builder, &format!(" Steps with tools in this turn: {done}."));
        };
        let is_allowed = match &self.incoming.parameters.tool_choice {
            ToolChoice::Never => false,
            ToolChoice::Named(name) => *name == call.tool,
            ToolChoice::Allowed { names, .. } => names.contains(&call.tool),
            ToolChoice::Auto | ToolChoice::Required => true,
        };
        match self.incoming.tools.iter().find(|tool| tool.name == call.tool && is_allowed) {
            Some(tool) => {
                builder.add_calls_with(tool, [call.arguments.clone()]);
                Ending::ToolCalls
            }
            None => {
                self.conclude(builder, &format!(" The tool `{}` was not offered, so it was not called.", call.tool))
            }
        }
    }

    /// The answer says that it comes from a simulator, unless the request wants JSON.
    fn answer(&self, builder: &mut ReplyBuilder<'_>, remark: &str) -> String {
        match &self.incoming.parameters.response_format {
            ResponseFormat::Schema(schema) => return arguments::fitting_value(&schema.schema).to_string(),
            ResponseFormat::Json => return json!({ "answer": "simulated" }).to_string(),
            ResponseFormat::Text | _ => (),
        }
        let prompt = without_script(&last_user_text(&self.incoming.messages).unwrap_or_default());
        let mut excerpt: String = prompt.chars().take(MAX_QUOTE_CHARS).collect();
        if excerpt.len() < prompt.len() {
            excerpt.push('…');
        }
        let quote = if excerpt.is_empty() { String::new() } else { format!(" You wrote: \"{excerpt}\".") };
        let Dialect { id, protocol, .. } = self.dialect;
        let opener = builder.rng.remark();
        format!(
            "{opener} This is the aside simulator, imitating `{id}` over {protocol}; no model was called (模拟 🎭).{quote}{remark}"
        )
    }
}

/// The number of assistant messages since the turn began.
fn steps_taken(messages: &[Message]) -> u32 {
    let turn_start = last_user_turn(messages).map_or(0, |(at, _)| at);
    let since = messages.iter().skip(turn_start).filter(|message| message.role == Role::Assistant);
    u32::try_from(since.count()).unwrap_or(u32::MAX)
}

/// The context that the seals of a message are bound to.
pub(crate) fn seal_context<'a>(
    dialect: &'a Dialect,
    rules: &Rules,
    account: u64,
    incoming: &ClientRequest,
    message: usize,
) -> SealContext<'a> {
    let prefix = match rules.bind.prefix {
        PrefixCheck::None | PrefixCheck::Record => 0,
        PrefixCheck::Error | PrefixCheck::DropBlock => prefix_hash(incoming, message),
    };
    let account = if rules.bind.account { account } else { 0 };
    SealContext { dialect: &dialect.id, account, prefix, index: 0 }
}

/// A hash of everything before the message except thinking.
fn prefix_hash(incoming: &ClientRequest, message: usize) -> u64 {
    let mut hasher = SipHasher13::new();
    for tool in &incoming.tools {
        (&tool.name, &tool.description, tools::canonical(&tool.parameters)).hash(&mut hasher);
    }
    for block in incoming.messages.iter().take(message).flat_map(|message| &message.blocks) {
        match block {
            Block::Text(text) => text.text.hash(&mut hasher),
            Block::ToolCall(call) => (call.id.as_str(), &call.name).hash(&mut hasher),
            Block::ToolResult(result) => (&result.id, &result.content).hash(&mut hasher),
            Block::Media(media) => (&media.media_type, media.data()).hash(&mut hasher),
            Block::Unmodelled(unmodelled) => unmodelled.native.json.hash(&mut hasher),
            Block::Thinking(_) => (),
        }
    }
    hasher.finish()
}

/// The delay before each token.
pub(crate) fn token_delay(script: &Script) -> Duration {
    const SLOW: f64 = 4.0;
    let rate = match script.behaviour {
        Some(Behaviour::Slow) => script.options.rate.filter(|rate| (0.1..SLOW).contains(rate)).unwrap_or(SLOW),
        _ => script.options.rate.unwrap_or(0.0),
    };
    if rate > 0.0 { Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX) } else { Duration::ZERO }
}
