//! Carries out what the turn machine asks for: the one loop of every front end.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Reply, ToolCall, ToolResult};
use aside_core::compact::Occasion;
use aside_core::event::{Event, NoteCode, Opening, ProviderError, Side, Sink};
use aside_core::fold::Fold;
use aside_core::history::EntryId;
use aside_core::message::Message;
use aside_core::rules::{self, Cure, Haste};
use aside_core::tokens::Who;
use aside_core::turn::{Action, Input, Turn, TurnEnd};
use aside_core::wire::{Decoder, Encoded, Encoder, Filling, NotUnderstood, Request};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::announce::Announcing;
use crate::clock::now;
use crate::http::{Answer, CallError, Refusal};
use crate::redact::Redactor;
use crate::retry::{self, Retry};
use crate::room::Compacted;
use crate::session::Session;
use crate::tools::Asker;
use crate::update::{Front, Update};

/// How long stopped tools have to end by themselves.
const GRACE: Duration = Duration::from_secs(2);

/// How much of an answer that is none is quoted.
const QUOTE: usize = 300;

impl Session {
    /// Says something to the model and goes on until it has answered.
    pub async fn turn(
        &mut self,
        message: Message,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        if let Compacted::Failed(why) = self.compact(Occasion::Full, front, cancel).await {
            front.hear(Update::Noted(&format!("older turns could not be summed up: {why}")));
        }
        self.steps(message, front, asker, cancel).await
    }

    pub(crate) async fn steps(
        &mut self,
        message: Message,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        let dialects = Arc::clone(&self.dialects);
        let origin = self.endpoint.origin();
        let cures = self.cures.of(&origin).to_vec();
        let mut turn = Turn::new(origin.clone(), dialects.catalogue(), self.most_steps, cures);
        self.record(message, front);
        self.settle(front, cancel).await;
        let mut input = Input::Begin;
        loop {
            let mut next = None;
            for action in turn.handle(input) {
                match action {
                    Action::Record(message) => self.record(*message, front),
                    Action::Tell(told) => front.hear(Update::Told(&told)),
                    Action::Send { step, cures, haste } => {
                        let encoded = self.encode_in(haste, &cures);
                        let came = self.send(step, &encoded, front, cancel).await;
                        if let Input::Replied(reply) = &came {
                            let protocol = self.endpoint.dialect.protocol;
                            self.measure.answered(self.who(), encoded.tokens, protocol, &reply.usage);
                        }
                        next = Some(came);
                    }
                    Action::Run(at) => {
                        let calls = self.calls(&at);
                        next = Some(self.run_tools(&calls, front, asker, cancel).await);
                    }
                    Action::End(end) => {
                        if !matches!(end, TurnEnd::Failed(_)) {
                            for cure in turn.learned() {
                                self.cures.learn(&origin, cure.clone());
                            }
                        }
                        self.cures.end_turn();
                        front.hear(Update::Ended(&end));
                        front.rest();
                        return end;
                    }
                }
            }
            // The machine ends, sends or runs; were it to do neither, we stop.
            input = next.unwrap_or(Input::Cancelled { partial: None, ran: Vec::new() });
        }
    }

    fn record(&mut self, mut message: Message, front: &mut dyn Front) {
        message.at.get_or_insert_with(now);
        front.hear(Update::Recorded(&message));
        self.history.append(message);
    }

    /// Takes in tools that were on their way. Whoever stops a turn does not
    /// lose them.
    async fn settle(&mut self, front: &mut dyn Front, cancel: &CancellationToken) {
        let Some(mut coming) = self.coming.take() else { return };
        front.rest();
        let arrived = tokio::select! {
            biased;
            arrived = ticking(front, &mut coming.0) => arrived,
            () = cancel.cancelled() => {
                self.coming = Some(coming);
                return;
            }
        };
        for tool in arrived.tools {
            if let Err(taken) = self.tools.add(tool) {
                front.hear(Update::Noted(&taken.to_string()));
            }
        }
        for note in &arrived.notes {
            front.hear(Update::Noted(&self.redactor.clean(note)));
        }
    }

    /// The request that the history comes to now.
    pub fn encode(&mut self, cures: &[Cure]) -> Encoded {
        self.encode_in(Haste::None, cures)
    }

    /// The same, with what it is made of and what is held back from it.
    pub fn filling(&mut self) -> (Encoded, Filling) {
        self.request(Haste::None, &[], |encoder, request, entries| {
            let encoded = encoder.encode(request, entries);
            let filling = encoder.filling(request, &encoded);
            (encoded, filling)
        })
    }

    /// Whose count of a request it is.
    pub(crate) fn who(&self) -> Who {
        let (dialect, model) = (self.endpoint.dialect.id.clone(), self.endpoint.model.clone());
        Who { dialect, model, counter: self.encoder.counter_name().to_owned() }
    }

    fn encode_in(&mut self, haste: Haste, cures: &[Cure]) -> Encoded {
        self.request(haste, cures, Encoder::encode)
    }

    fn request<T>(
        &mut self,
        haste: Haste,
        cures: &[Cure],
        make: impl FnOnce(&mut Encoder, &Request<'_>, &[EntryId]) -> T,
    ) -> T {
        let (mut settings, mut cures) = (Cow::Borrowed(&self.settings), Cow::Borrowed(cures));
        if haste == Haste::AnswerNow {
            let rules = self.endpoint.dialect.rules(Some(&self.endpoint.model));
            rules::hasten(&rules.ask, settings.to_mut(), cures.to_mut());
        }
        let branch = self.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let entries: Vec<_> = branch.iter().map(|(id, _)| *id).collect();
        let target = self.endpoint.origin();
        let request = Request {
            dialects: &self.dialects,
            dialect: &self.endpoint.dialect,
            model: &self.endpoint.model,
            target: &target,
            messages: &messages,
            tools: self.tools.specs(),
            settings: &settings,
            repairs: &cures,
        };
        make(&mut self.encoder, &request, &entries)
    }

    async fn send(&mut self, step: u32, encoded: &Encoded, front: &mut dyn Front, cancel: &CancellationToken) -> Input {
        self.hurry.forget();
        let call = self.endpoint.call(encoded);
        front.hear(Update::Sending { step, model: &self.endpoint.model, encoded, body: &call.body });
        front.rest();
        let mut attempt = 1;
        loop {
            let answer = tokio::select! {
                () = cancel.cancelled() => return stopped(None),
                () = self.hurry.wanted() => return Input::AnswerNow { partial: None },
                answer = ticking(front, self.http.post(&call)) => answer,
            };
            let (retry, why, otherwise) = match answer {
                Ok(answer) => return self.listen(answer, front, cancel).await,
                Err(error) => self.weigh(error, attempt),
            };
            let Retry::After(after) = retry else { return otherwise };
            front.hear(Update::Retrying { after, attempt, why: &why });
            front.rest();
            tokio::select! {
                () = cancel.cancelled() => return stopped(None),
                () = self.hurry.wanted() => return Input::AnswerNow { partial: None },
                () = ticking(front, tokio::time::sleep(after)) => attempt += 1,
            }
        }
    }

    /// Whether to send again, why, and what it comes to if not.
    fn weigh(&self, error: CallError, attempt: u32) -> (Retry, String, Input) {
        match error {
            CallError::Refused(refusal) => {
                let error = self.understand(&refusal);
                let about_thinking = rules::classify(self.dialects.catalogue(), error.status, &error.message).is_some();
                // What can be repaired is not worth a second try as it is.
                let retry = if about_thinking { Retry::Never } else { retry::refused(&refusal, attempt) };
                (retry, format!("{} ({})", error.message, refusal.status), Input::Refused(error))
            }
            CallError::Unreachable { what, passes } => {
                let what = self.redactor.clean(&what).into_owned();
                (retry::unreachable(passes, attempt), what.clone(), broke(Reply::default(), what))
            }
            error @ (CallError::BadUrl(_) | CallError::BadHeader(_) | CallError::NoClient(_)) => {
                let what = self.redactor.clean(&error.to_string()).into_owned();
                (Retry::Never, String::new(), broke(Reply::default(), what))
            }
        }
    }

    /// A refusal in the provider's words, read as any of its answers is.
    fn understand(&self, refusal: &Refusal) -> ProviderError {
        let mut fold = Fold::new();
        let mut decoder = self.decoder();
        decoder.push(&refusal.body, &mut fold);
        let understood = decoder.finish(&mut fold).is_ok();
        let said = fold.finish().end.error.filter(|_| understood);
        let mut error = said.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&refusal.body);
            let message = match text.trim() {
                "" => "the provider refused and gave no reason".to_owned(),
                text => text.chars().take(QUOTE).collect(),
            };
            ProviderError { message, code: None, status: None }
        });
        error.status = Some(refusal.status);
        self.redactor.error(error)
    }

    fn decoder(&self) -> Decoder {
        let dialect = &self.endpoint.dialect;
        let rules = rules::reading(&self.dialects, dialect.rules(Some(&self.endpoint.model)), self.settings.tags());
        Decoder::bounded(dialect.protocol, &rules, self.settings.max_reply_bytes())
    }

    async fn listen(&self, mut answer: Answer, front: &mut dyn Front, cancel: &CancellationToken) -> Input {
        let mut decoder = self.decoder();
        let mut fold = Fold::new();
        let mut saying = Saying::default();
        let stop = loop {
            let bytes = tokio::select! {
                // Dropping the answer closes the socket, and the provider stops.
                () = cancel.cancelled() => break Stop::Cancelled,
                () = self.hurry.wanted(), if saying == Saying::Thoughts => break Stop::Hurried,
                bytes = ticking(front, answer.bytes(&self.http)) => bytes,
            };
            match bytes {
                Ok(Some(bytes)) => {
                    front.hear(Update::Received(&bytes));
                    fold.set_now(now());
                    decoder.push(
                        &bytes,
                        &mut Tee { fold: &mut fold, front, saying: &mut saying, redactor: &self.redactor, stop: None },
                    );
                    front.rest();
                    if decoder.is_full() {
                        break Stop::Oversized;
                    }
                }
                Ok(None) => break Stop::Whole,
                Err(error) => break Stop::Broke(error.to_string()),
            }
        };
        fold.set_now(now());
        let read = decoder.finish(&mut Tee {
            fold: &mut fold,
            front,
            saying: &mut saying,
            redactor: &self.redactor,
            stop: Some(&stop),
        });
        front.rest();
        let reply = fold.finish();
        match (stop, read) {
            (Stop::Cancelled, _) => stopped(Some(reply)),
            (Stop::Hurried, _) => Input::AnswerNow { partial: Some(reply) },
            (Stop::Broke(failure), _) => broke(reply, failure),
            (Stop::Oversized | Stop::Whole, _) if reply.notes.iter().any(|note| note.code == NoteCode::Oversized) => {
                let most = self.settings.max_reply_bytes().unwrap_or_default();
                Input::Oversized { partial: reply, most }
            }
            (Stop::Oversized | Stop::Whole, Ok(())) => Input::Replied(reply),
            (Stop::Oversized | Stop::Whole, Err(error)) => broke(reply, self.not_ours(&answer, &error)),
        }
    }

    fn not_ours(&self, answer: &Answer, error: &NotUnderstood) -> String {
        let kind = answer.content_type().unwrap_or("no content type");
        format!("what {} answers is not understood ({kind}): {error}; check its base_url", self.endpoint.base_url)
    }

    /// The calls at these places in the message recorded last.
    fn calls(&self, at: &[usize]) -> Vec<&ToolCall> {
        let last = self.history.head().and_then(|head| self.history.get(head));
        let blocks = last.map_or(&[][..], |entry| entry.message.blocks.as_slice());
        let call = |at: &usize| match blocks.get(*at) {
            Some(Block::ToolCall(call)) => Some(call),
            _ => None,
        };
        at.iter().filter_map(call).collect()
    }

    async fn run_tools(
        &self,
        calls: &[&ToolCall],
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> Input {
        for call in calls {
            front.hear(Update::ToolStarted(call));
        }
        front.rest();
        let (announcing, mut asked) = Announcing::new(asker);
        let run = async |call| (call, self.tools.run(call, &announcing, cancel).await);
        let mut running: FuturesUnordered<_> = calls.iter().copied().map(run).collect();
        let mut results: Vec<ToolResult> = Vec::new();
        let mut deadline = None;
        loop {
            let ended = tokio::select! {
                biased;
                Some(announced) = asked.recv() => {
                    announced.tell(front);
                    continue;
                }
                ended = ticking(front, running.next()) => ended,
                () = cancel.cancelled(), if deadline.is_none() => {
                    deadline = Some(tokio::time::Instant::now() + GRACE);
                    continue;
                }
                () = until(deadline) => None,
            };
            // The answer to a question comes before what it led to.
            while let Ok(announced) = asked.try_recv() {
                announced.tell(front);
            }
            let Some((call, result)) = ended else { break };
            front.hear(Update::ToolEnded { call, result: &result });
            front.rest();
            results.push(result);
        }
        if cancel.is_cancelled() { Input::Cancelled { partial: None, ran: results } } else { Input::Ran(results) }
    }
}

/// Waits for something while the front end's clock goes on.
async fn ticking<T>(front: &mut dyn Front, work: impl Future<Output = T>) -> T {
    let Some(beat) = front.beat() else { return work.await };
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(beat) => front.tick(),
        }
    }
}

/// Never, without a deadline.
async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

enum Stop {
    Whole,
    Cancelled,
    /// The user wants the answer, and what comes is thinking.
    Hurried,
    /// More came than one reply may take.
    Oversized,
    Broke(String),
}

fn stopped(partial: Option<Reply>) -> Input {
    Input::Cancelled { partial, ran: Vec::new() }
}

fn broke(partial: Reply, failure: String) -> Input {
    Input::Broke { partial, failure }
}

/// What the provider is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Saying {
    /// Or nothing yet.
    #[default]
    Thoughts,
    /// The answer, or a call.
    More,
}

impl Saying {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { opening: Opening::Thinking { .. }, .. } | Event::Refiled { to: Side::Thinking, .. } => {
                *self = Saying::Thoughts;
            }
            Event::Opened { opening: Opening::Text | Opening::ToolCall { .. }, .. }
            | Event::Refiled { to: Side::Text, .. } => *self = Saying::More,
            Event::Opened { opening: Opening::Unmodelled, .. }
            | Event::Started { .. }
            | Event::Identified { .. }
            | Event::Item { .. }
            | Event::Grew { .. }
            | Event::Sealed { .. }
            | Event::Restated { .. }
            | Event::Kept { .. }
            | Event::Seen { .. }
            | Event::Closed { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}

/// The fold first, so that a front end sees what each event made of the reply.
struct Tee<'a> {
    fold: &'a mut Fold,
    front: &'a mut dyn Front,
    saying: &'a mut Saying,
    /// Providers echo keys in their errors.
    redactor: &'a Redactor,
    /// Why nothing more comes, once that is known.
    stop: Option<&'a Stop>,
}

impl Sink for Tee<'_> {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Ended(end) = event {
            self.pass_on(Event::Ended(&self.redactor.end(end)));
        } else if let Event::Noted(note) = event {
            self.pass_on(Event::Noted(&self.redactor.note(note)));
        } else {
            self.pass_on(event);
        }
    }
}

impl Tee<'_> {
    fn pass_on(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.saying.hear(event);
        // Who stopped it knows that it stopped.
        let is_known = matches!(event, Event::Noted(note) if note.code == NoteCode::CutOff);
        if is_known && matches!(self.stop, Some(Stop::Cancelled | Stop::Hurried)) {
            return;
        }
        self.front.hear(Update::Event { event, fold: self.fold });
    }
}
