//! The last turn taken back, or its question asked once more.

use aside_core::block::Block;
use aside_core::message::Message;
use aside_tui::seam::{Command, Update};
use tokio::sync::mpsc::UnboundedReceiver;

use super::driver::{Done, Driver};
use super::says;
use crate::report::Report;

impl Driver {
    pub(super) fn undo(&mut self) -> Result<Done, Report> {
        self.taken_back = self.take_back()?;
        match &self.taken_back {
            Some(question) => {
                self.front.send(Update::TakenBack(question.clone()));
                Ok(Done::Silent)
            }
            None => Ok(Done::Said(says::line("the last turn is taken back"))),
        }
    }

    /// The last question once more; the answer before stays in its branch. What
    /// was taken back was the last question, and is not taken back again.
    pub(super) async fn retry(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<Done, Report> {
        if let Some(question) = self.taken_back.clone() {
            return self.say(&question, inbox).await;
        }
        let asked = self.branch().into_iter().rev().find(Message::is_question);
        let Some(asked) = asked else { return Err(Report::new("nothing was asked yet")) };
        let Some(text) = words(&asked) else { return Err(Report::new("the last question cannot be asked again")) };
        self.take_back()?;
        // If it cannot be asked now, it is still the last question.
        self.taken_back = Some(text.clone());
        self.say(&text, inbox).await
    }

    /// Takes the last turn back; it stays in the log. Its question comes back.
    fn take_back(&mut self) -> Result<Option<String>, Report> {
        self.hold();
        let history = &mut self.ready.session.history;
        let Some(asked) = history.undo() else { return Err(Report::new("there is nothing to take back")) };
        let question = history.get(asked).and_then(|entry| words(&entry.message));
        let head = history.head();
        if let Some(desk) = &mut self.desk {
            desk.go_to(head);
        }
        self.front.send(Update::Restored(self.branch()));
        Ok(question)
    }
}

/// What was written; files that were named in it are read anew.
fn words(asked: &Message) -> Option<String> {
    match asked.blocks.first() {
        Some(Block::Text(text)) => Some(text.text.clone()),
        Some(
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_),
        )
        | None => None,
    }
}
