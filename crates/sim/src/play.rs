//! What is answered to a request: behaviour, dialect and seed into beats.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use aside_core::block::Block;
use aside_core::dialect::{Dialect, ErrorRow, PrefixCheck, Rules};
use aside_core::event::Ending;
use aside_core::message::{Message, Role};
use aside_core::wire::{Incoming, ToolChoice};
use siphasher::sip::SipHasher13;

use crate::beats::{Beat, midway};
use crate::script::{Behaviour, MOST_TOKENS, Script, last_question, last_user_text, without_script};
use crate::seal::Place;
use crate::shape::Manner;
use crate::teller::Teller;
use crate::tools;
use crate::words::{Dice, TITLES, Words, tokens};

/// How long a model that is stuck goes on when nobody limits it.
const STUCK: usize = 400;

/// The most tokens that are told, with room for an answer behind the longest
/// thought.
const MOST_TOLD: usize = MOST_TOKENS + 1000;

/// How much of a question is quoted.
const QUOTE: usize = 60;

/// Everything that a reply depends on.
pub(crate) struct Scene<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'a Rules,
    pub(crate) catalogue: &'a [ErrorRow],
    pub(crate) incoming: &'a Incoming,
    pub(crate) script: &'a Script,
    /// Of the key, where seals are bound to it.
    pub(crate) account: u64,
    /// The request does not switch thinking off.
    pub(crate) thinks: bool,
    pub(crate) input_tokens: u64,
}

/// The reply to a request, as it is going to be told.
pub(crate) fn play(scene: &Scene<'_>) -> Vec<Beat> {
    let mut beats = scene.tell();
    match scene.script.behaviour {
        Some(Behaviour::Stall(time)) => midway(&mut beats, Beat::Pause(time)),
        Some(Behaviour::Malformed) => midway(&mut beats, Beat::Garbled),
        _ => (),
    }
    beats
}

impl Scene<'_> {
    fn tell(&self) -> Vec<Beat> {
        let mut teller = self.teller();
        let ending = match self.behaviour() {
            Behaviour::Empty => Ending::Stop,
            Behaviour::ThinkingOnly => {
                self.think(&mut teller);
                Ending::Stop
            }
            Behaviour::Loop if self.is_to_answer_now() => self.conclude(&mut teller, ""),
            Behaviour::Loop => {
                let n = self.script.options.tokens.unwrap_or(STUCK);
                teller.think(Words::Refrain { n_tokens: n });
                Ending::Length
            }
            Behaviour::ToolLoop(steps) => self.loops(&mut teller, steps, 1),
            Behaviour::Parallel(calls) => self.loops(&mut teller, 1, calls),
            Behaviour::Thoughts(n) => self.several(&mut teller, n),
            Behaviour::Summaries(n) => self.summaries(&mut teller, n),
            Behaviour::Encrypted | Behaviour::Redacted => self.hidden(&mut teller),
            Behaviour::Tags => {
                let (open, close) = teller.tags();
                self.conclude_tagged(&mut teller, &open, &close)
            }
            Behaviour::Preopened => {
                let (_, close) = teller.tags();
                self.conclude_tagged(&mut teller, "", &close)
            }
            Behaviour::Echo => self.repeat(&mut teller),
            Behaviour::Plain => self.plain(&mut teller),
            // Faults of the way, and faults that are over.
            Behaviour::Think
            | Behaviour::Slow
            | Behaviour::Stall(_)
            | Behaviour::Cut(_)
            | Behaviour::Status(_)
            | Behaviour::Malformed
            | Behaviour::Refuse(_)
            | Behaviour::ContentType
            | Behaviour::SlowHeaders(_) => {
                self.think(&mut teller);
                self.conclude(&mut teller, "")
            }
        };
        teller.finish(ending, self.input_tokens, self.rules.usage.included)
    }

    /// What ends a loop: thinking is switched off, or the user has had enough.
    /// Some protocols join that word to the question with the script in it.
    fn is_to_answer_now(&self) -> bool {
        let said = last_user_text(&self.incoming.messages).unwrap_or_default();
        !self.thinks || without_script(&said).to_lowercase().contains("answer now")
    }

    /// Thoughts with something said between them.
    fn several(&self, teller: &mut Teller<'_>, n: u32) -> Ending {
        for nth in 0..n {
            if teller.is_spent() {
                break;
            }
            self.think(teller);
            if nth + 1 < n {
                let remark = format!("{}\n\n", teller.dice.remark());
                teller.say(tokens(&remark));
            }
        }
        self.conclude(teller, "")
    }

    fn summaries(&self, teller: &mut Teller<'_>, n: u32) -> Ending {
        let item = |dice: &mut Dice| {
            let (title, thought) = (dice.pick(&TITLES), dice.thought());
            tokens(&format!("**{title}**\n\n{thought}"))
        };
        // More than anybody reads is more than is told.
        let items = (0..n.min(1000)).map(|_| item(&mut teller.dice)).collect();
        teller.think_items(items);
        self.conclude(teller, "")
    }

    fn hidden(&self, teller: &mut Teller<'_>) -> Ending {
        if teller.think_hidden() {
            return self.conclude(teller, "");
        }
        self.think(teller);
        self.conclude(teller, " This dialect has no hidden thinking, so the thought can be read.")
    }

    fn repeat(&self, teller: &mut Teller<'_>) -> Ending {
        self.think(teller);
        let said = last_user_text(&self.incoming.messages).unwrap_or_default();
        teller.answer(tokens(&without_script(&said)));
        Ending::Stop
    }

    fn plain(&self, teller: &mut Teller<'_>) -> Ending {
        match self.script.options.tokens {
            Some(n) => {
                let words = teller.dice.long(n);
                teller.answer(words);
                Ending::Stop
            }
            None => self.conclude(teller, ""),
        }
    }

    /// What is played where nobody said: a thought and an answer, or the call
    /// that the request forces.
    fn behaviour(&self) -> Behaviour {
        match (&self.script.behaviour, &self.incoming.choice) {
            (Some(behaviour), _) => behaviour.clone(),
            (None, ToolChoice::Any | ToolChoice::Named(_)) => Behaviour::ToolLoop(1),
            (None, ToolChoice::Free | ToolChoice::Never) => Behaviour::Think,
        }
    }

    fn teller(&self) -> Teller<'_> {
        let seed = self.script.options.seed.unwrap_or(0);
        let said = last_user_text(&self.incoming.messages).unwrap_or_default();
        let dice = Dice::new(seed, (&self.dialect.id, without_script(&said), self.incoming.messages.len()));
        let manner = Manner::of(self.dialect, self.rules, self.catalogue);
        let place = place(self.dialect, self.rules, self.account, self.incoming, self.incoming.messages.len());
        // A script that says how long it is to be is not cut short.
        let limit = self.incoming.max_tokens.filter(|_| self.script.options.tokens.is_none());
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST_TOLD);
        Teller::new(manner, place, dice, limit.min(MOST_TOLD))
    }

    fn think(&self, teller: &mut Teller<'_>) {
        let explicit = matches!(
            self.script.behaviour,
            Some(
                Behaviour::Think
                    | Behaviour::Thoughts(_)
                    | Behaviour::ThinkingOnly
                    | Behaviour::Encrypted
                    | Behaviour::Redacted
            )
        );
        if self.thinks || explicit {
            let words = match self.script.options.tokens {
                Some(n) => teller.dice.long(n),
                None => tokens(&teller.dice.thought()),
            };
            teller.think(words);
        }
    }

    fn conclude(&self, teller: &mut Teller<'_>, remark: &str) -> Ending {
        let answer = self.answer(teller, remark);
        teller.answer(tokens(&answer));
        Ending::Stop
    }

    /// The thought inside the answer, whatever the dialect usually does.
    fn conclude_tagged(&self, teller: &mut Teller<'_>, open: &str, close: &str) -> Ending {
        let thought = match self.script.options.tokens {
            Some(n) => teller.dice.long(n),
            None => tokens(&teller.dice.thought()),
        };
        let answer = self.answer(teller, "");
        let begin = if open.is_empty() { String::new() } else { format!("{open}\n") };
        let rest = format!("\n{close}\n\n{answer}");
        teller.answer(Words::Joined(vec![tokens(&begin), thought, tokens(&rest)]));
        Ending::Stop
    }

    /// Another step of a tool loop, or its end.
    fn loops(&self, teller: &mut Teller<'_>, steps: u32, calls: u32) -> Ending {
        self.think(teller);
        let done = steps_taken(&self.incoming.messages);
        match tools::choose(&self.incoming.tools, &self.incoming.choice) {
            Some(tool) if done < steps => {
                teller.call(tool, calls);
                Ending::ToolCalls
            }
            Some(_) => self.conclude(teller, &format!(" Steps with tools in this turn: {done}.")),
            None => self.conclude(teller, " No tool was offered, so none was called."),
        }
    }

    /// It never passes for a model.
    fn answer(&self, teller: &mut Teller<'_>, remark: &str) -> String {
        let said = without_script(&last_user_text(&self.incoming.messages).unwrap_or_default());
        let mut quoted: String = said.chars().take(QUOTE).collect();
        if quoted.len() < said.len() {
            quoted.push('…');
        }
        let heard = if quoted.is_empty() { String::new() } else { format!(" You wrote: \"{quoted}\".") };
        let Dialect { id, protocol, .. } = self.dialect;
        let opening = teller.dice.remark();
        format!(
            "{opening} This is the aside simulator playing `{id}` over {protocol}: no model was asked (模拟 🎭).{heard}{remark}"
        )
    }
}

/// How many times the model has spoken since the turn began.
fn steps_taken(messages: &[Message]) -> u32 {
    let begins = last_question(messages).map_or(0, |(at, _)| at);
    let since = messages.iter().skip(begins).filter(|message| message.role == Role::Assistant);
    u32::try_from(since.count()).unwrap_or(u32::MAX)
}

/// Where the seals of a message stand: before which words, under whose key.
pub(crate) fn place<'a>(
    dialect: &'a Dialect,
    rules: &Rules,
    account: u64,
    incoming: &Incoming,
    message: usize,
) -> Place<'a> {
    let prefix = match rules.bind.prefix {
        PrefixCheck::None | PrefixCheck::Record => 0,
        PrefixCheck::Error | PrefixCheck::DropBlock => prefix(incoming, message),
    };
    let account = if rules.bind.account { account } else { 0 };
    Place { dialect: &dialect.id, account, prefix, index: 0 }
}

/// A hash of everything before a message but the thinking.
fn prefix(incoming: &Incoming, message: usize) -> u64 {
    let mut hasher = SipHasher13::new();
    for tool in &incoming.tools {
        (&tool.name, &tool.description, tools::canonical(&tool.parameters)).hash(&mut hasher);
    }
    for block in incoming.messages.iter().take(message).flat_map(|message| &message.blocks) {
        match block {
            Block::Text(text) => text.text.hash(&mut hasher),
            Block::ToolCall(call) => (call.id.as_str(), &call.name).hash(&mut hasher),
            Block::ToolResult(result) => (&result.id, &result.content).hash(&mut hasher),
            Block::Image(image) => image.data.hash(&mut hasher),
            Block::Unmodelled(unmodelled) => unmodelled.native.json.hash(&mut hasher),
            Block::Thinking(_) => (),
        }
    }
    hasher.finish()
}

/// How long to wait before each token.
pub(crate) fn pace(script: &Script) -> Duration {
    const SLOW: f64 = 4.0;
    let rate = match script.behaviour {
        Some(Behaviour::Slow) => script.options.rate.filter(|rate| (0.1..SLOW).contains(rate)).unwrap_or(SLOW),
        _ => script.options.rate.unwrap_or(0.0),
    };
    if rate > 0.0 { Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX) } else { Duration::ZERO }
}
