//! `/undo` and `/retry`.

use aside_core::block::Block;
use aside_core::mention::{escape_mentions, unescape_mentions};
use aside_core::message::{Message, Role};
use aside_front::{Command, Update};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;

impl Driver {
    pub(super) fn undo(&mut self) -> Result<CommandOutcome, HintedError> {
        self.undone_prompt = self.undo_last_turn()?;
        match self.undone_prompt.as_ref().and_then(prompt_text).map(|words| self.as_typed(words)) {
            Some(question) => {
                self.front.send(Update::Undone(question));
                Ok(CommandOutcome::Silent)
            }
            None => Ok(CommandOutcome::Reply(replies::line("the last turn is undone"))),
        }
    }

    /// The prompt as the user typed it. The text of a prompt that was not typed in
    /// this run is untrusted, so its `@path` mentions are escaped.
    fn as_typed(&self, sent: &str) -> String {
        let typed = self.typed_prompts.iter().rev().find(|typed| unescape_mentions(typed) == sent);
        typed.cloned().unwrap_or_else(|| escape_mentions(sent).into_owned())
    }

    /// Sends the last prompt again; the previous answer stays in its branch. A
    /// prompt that `/undo` removed is sent without another undo.
    pub(super) async fn retry(
        &mut self,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let prompt = match self.undone_prompt.take() {
            Some(prompt) => prompt,
            None => {
                let prompt = self.branch().into_iter().rev().find(|message| message.begins_turn());
                let Some(prompt) = prompt else { return Err(HintedError::new("nothing was asked yet")) };
                self.undo_last_turn()?;
                Message::clone(&prompt)
            }
        };
        // Attached files are sent as they were; they are not read again.
        self.send_message(Message::new(Role::User, prompt.blocks), inbox).await
    }

    /// Undoes the last turn, which stays in the log. Returns its prompt.
    fn undo_last_turn(&mut self) -> Result<Option<Message>, HintedError> {
        self.open_resumed_recorder();
        let history = &mut self.active.session.history;
        let Some(prompt) = history.undo() else { return Err(HintedError::new("there is nothing to undo")) };
        let question = history.get(prompt).map(|entry| Message::clone(&entry.message));
        let head = history.head();
        if let Some(recorder) = &mut self.recorder {
            recorder.move_head(head);
        }
        self.front.send(Update::Restored(self.branch()));
        Ok(question)
    }
}

/// The text of a prompt.
fn prompt_text(prompt: &Message) -> Option<&str> {
    match prompt.blocks.first() {
        Some(Block::Text(text)) => Some(&text.text),
        Some(
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_),
        )
        | None => None,
    }
}
