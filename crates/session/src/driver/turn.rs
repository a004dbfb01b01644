//! Sends prompts, and runs a turn while commands arrive.

use aside_core::mention::escape_mentions;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::attachments::AttachedPrompt;
use aside_front::{Attachment, Command, Update};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::next_request::LastCount;
use super::steering::Steering;
use super::waiting_commands::{take_back, take_message};
use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::git_branch;
use crate::prompt_attachments::{attach, attach_named};
use crate::recording::RecordingFront;
use crate::session_recorder::StoringFront;

impl Driver {
    pub(super) async fn send_prompt(
        &mut self,
        text: &str,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let attached = match attach(text, None, &self.active.folder) {
            Ok(attached) => attached,
            Err(error) => {
                let (what, hint) = (error.to_string(), error.hint_text().map(str::to_owned));
                self.front.send(Update::NotSent { text: text.to_owned(), what, hint });
                return Ok(CommandOutcome::Silent);
            }
        };
        self.send_attached(text.to_owned(), attached, inbox).await
    }

    /// Sends a prompt whose attachments the front end names.
    pub(super) async fn send_prompt_with(
        &mut self,
        text: String,
        attachments: &[Attachment],
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        match attach_named(&text, attachments, &self.active.folder) {
            Ok(attached) => self.send_attached(escape_mentions(&text).into_owned(), attached, inbox).await,
            Err(error) => {
                let (what, hint) = (error.to_string(), error.hint_text().map(str::to_owned));
                self.front.send(Update::NotSent { text, what, hint });
                Ok(CommandOutcome::Silent)
            }
        }
    }

    /// `typed` is the prompt as the user would type it again.
    pub(super) async fn send_attached(
        &mut self,
        typed: String,
        attached: AttachedPrompt,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        self.undone_prompt = None;
        self.typed_prompts.push(typed);
        for description in attached.descriptions {
            self.front.send(Update::CommandOutput(replies::line(description)));
        }
        self.send_message(Message::new(Role::User, attached.blocks), inbox).await
    }

    pub(super) async fn send_message(
        &mut self,
        message: Message,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        self.active.change_recorder.stop();
        self.open_recorder(&message);
        let done = self.turn(message, inbox).await;
        if let Err(error) = self.stored_repairs.save(&self.active.session) {
            let line = format!("what this endpoint needs is not remembered: {error}");
            self.front.send(Update::CommandOutput(replies::line(&line)));
        }
        self.last_count = LastCount::Holds;
        self.send_status();
        self.refresh_lists().await;
        Ok(done)
    }

    pub(super) async fn turn(&mut self, message: Message, inbox: &mut UnboundedReceiver<Command>) -> CommandOutcome {
        let cancel = CancellationToken::new();
        let settings = &self.active.session.settings;
        self.front.limit = settings.context_limit();
        let (enabled, by) = settings.enabled();
        self.front.wants_thinking = enabled && (by.is_set_by_user() || settings.max_thinking_tokens().is_some());
        self.front.sent_messages =
            self.active.session.history.branch().iter().map(|(_, message)| replies::excerpt(message)).collect();
        self.front.model = Some(self.active.model.clone());
        let answer_now = self.active.session.answer_now_signal();
        let mut status = self.status();
        let tool_mode = self.active.session.tools.permissions().tool_mode().clone();
        let mut steering = Steering::new(self.active.session.steering_queue());
        let mut recorder = RecordingFront::new(&mut self.front, self.recording.as_mut());
        let mut front = StoringFront::new(&mut recorder, self.recorder.as_mut());
        let mut turn = std::pin::pin!(self.active.session.turn(message, &mut front, &self.asker, &cancel));
        let mut quits = false;
        let end: TurnEnd = loop {
            tokio::select! {
                end = &mut turn => break end,
                command = inbox.recv(), if !quits => match command {
                    Some(Command::Interrupt) => {
                        cancel.cancel();
                        for text in take_back(&mut self.deferred) {
                            self.asker.send(Update::NotSteered { text, error: None });
                        }
                    }
                    Some(Command::AnswerNow) => answer_now.request(),
                    Some(Command::Answer { id, answer: permit }) => self.asker.answer(id, permit),
                    Some(Command::Mode(mode)) => {
                        tool_mode.set(mode);
                        status.mode = status.mode.map(|_| mode);
                        self.asker.send(Update::Status(Box::new(status.clone())));
                    }
                    Some(Command::Steer(text)) => match steering.add(&text, &self.active.folder) {
                        Ok(descriptions) => {
                            self.typed_prompts.push(text);
                            for description in descriptions {
                                self.asker.send(Update::CommandOutput(replies::line(description)));
                            }
                        }
                        Err(error) => self.asker.send(Update::NotSteered { text, error: Some(error) }),
                    },
                    Some(Command::RefreshBranch(shown)) => {
                        let branch = git_branch::branch(&self.active.folder);
                        if branch != shown {
                            status.branch = branch;
                            self.asker.send(Update::Status(Box::new(status.clone())));
                        }
                    }
                    Some(Command::TakeBack(text)) => {
                        let is_waiting = steering.take_back(&text) || take_message(&mut self.deferred, &text);
                        self.asker.answer_take_back(text, is_waiting);
                    }
                    Some(Command::Quit) | None => {
                        quits = true;
                        cancel.cancel();
                    }
                    Some(other) => {
                        // The turn may end with the session.
                        if let Command::View(view) = other {
                            self.view_preference.choose(view);
                        }
                        self.asker.announce_deferred(&other);
                        self.deferred.push_back(other);
                    }
                },
            }
        };
        for text in steering.take_unsent() {
            if end.leaves_room_for_more() && !quits {
                // It came too late for this turn, so it starts the next one.
                self.deferred.push_back(Command::Steer(text));
            } else {
                self.asker.send(Update::NotSteered { text, error: None });
            }
        }
        if quits { CommandOutcome::Quit } else { CommandOutcome::Silent }
    }
}
