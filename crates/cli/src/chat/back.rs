//! The last turn taken back, or its question asked once more.

use aside_core::block::Block;
use aside_core::mention::{literal, unescaped};
use aside_core::message::{Message, Role};
use aside_tui::seam::{Command, Update};
use tokio::sync::mpsc::UnboundedReceiver;

use super::driver::{Done, Driver};
use super::says;
use crate::report::Report;

impl Driver {
    pub(super) fn undo(&mut self) -> Result<Done, Report> {
        self.taken_back = self.take_back()?;
        match self.taken_back.as_ref().and_then(words).map(|words| self.retyped(words)) {
            Some(question) => {
                self.front.send(Update::TakenBack(question));
                Ok(Done::Silent)
            }
            None => Ok(Done::Said(says::line("the last turn is taken back"))),
        }
    }

    /// A prompt that was sent, as it was typed. One that was not typed here may
    /// be anybody's words: it names no files.
    fn retyped(&self, sent: &str) -> String {
        let typed = self.typed.iter().rev().find(|typed| unescaped(typed) == sent);
        typed.cloned().unwrap_or_else(|| literal(sent).into_owned())
    }

    /// The last question once more; the answer before stays in its branch. What
    /// was taken back was the last question, and is not taken back again.
    pub(super) async fn retry(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<Done, Report> {
        let asked = match self.taken_back.take() {
            Some(asked) => asked,
            None => {
                let asked = self.branch().into_iter().rev().find(Message::is_question);
                let Some(asked) = asked else { return Err(Report::new("nothing was asked yet")) };
                self.take_back()?;
                asked
            }
        };
        // The files it named go with it as they were; nothing is read anew.
        self.say_message(Message::new(Role::User, asked.blocks), inbox).await
    }

    /// Takes the last turn back; it stays in the log. Its question comes back.
    fn take_back(&mut self) -> Result<Option<Message>, Report> {
        self.hold();
        let history = &mut self.ready.session.history;
        let Some(asked) = history.undo() else { return Err(Report::new("there is nothing to take back")) };
        let question = history.get(asked).map(|entry| entry.message.clone());
        let head = history.head();
        if let Some(desk) = &mut self.desk {
            desk.go_to(head);
        }
        self.front.send(Update::Restored(self.branch()));
        Ok(question)
    }
}

/// What was written.
fn words(asked: &Message) -> Option<&str> {
    match asked.blocks.first() {
        Some(Block::Text(text)) => Some(&text.text),
        Some(
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_),
        )
        | None => None,
    }
}
