//! Runs the command lines that the user types after `!`.

use aside_core::block::{Arguments, Block, CallId, Text, ToolCall, ToolResult};
use aside_core::message::{Message, Role};
use aside_engine::tools::NewestOutput;
use aside_front::{Command, SENT_CALL_PREFIX, ShellOutput, USER_CALL_PREFIX, Update};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::interruptible::{AfterWork, interruptible};
use super::{CommandOutcome, Driver};
use crate::error::HintedError;

/// The name under which front ends show it.
const TOOL: &str = "shell";

impl Driver {
    /// Runs a command line and shows its output like that of a tool. It is neither stored nor sent, unless the user
    /// wants the model to see it: then it is the next message.
    pub(super) async fn run_user_command(
        &mut self,
        command: &str,
        output: ShellOutput,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let Some(work) = self.active.work.clone() else {
            return Err(HintedError::new("this session runs no commands"));
        };
        self.n_user_commands += 1;
        let prefix = match output {
            ShellOutput::User => USER_CALL_PREFIX,
            ShellOutput::Model => SENT_CALL_PREFIX,
        };
        let id = format!("{prefix}{}", self.n_user_commands);
        let arguments = Arguments::Json(json!({ "command": command }).to_string());
        let call = ToolCall::new(CallId::Given(id.clone()), TOOL, arguments);
        self.front.send(Update::ToolStarted(Box::new(call)));
        let cancel = CancellationToken::new();
        let updates = self.front.updates();
        let on_output = |NewestOutput { tail, n_lines }| {
            drop(updates.send(Update::ToolOutput { call: id.clone(), tail, n_lines }));
        };
        let run = work.run_user_command(command, on_output, &cancel);
        let (outcome, after) = interruptible(run, &cancel, inbox, &mut self.deferred, &self.asker).await;
        let (content, is_error) = match outcome {
            Ok(content) => (content, false),
            Err(content) => (content, true),
        };
        let result =
            ToolResult { id: id.clone(), name: TOOL.to_owned(), content: content.clone(), media: Vec::new(), is_error };
        self.front.send(Update::ToolEnded(Box::new(result)));
        if after == AfterWork::Quit {
            return Ok(CommandOutcome::Quit);
        }
        // The command may have changed the branch.
        self.send_status();
        if output == ShellOutput::User || cancel.is_cancelled() {
            return Ok(CommandOutcome::Silent);
        }
        // The command comes first, because the first line may become the title of the session.
        let text = format!("$ {command}\n{}\n\nI ran this command.", content.trim_end());
        let block = Block::Text(Text { text, ..Text::default() });
        self.undone_prompt = None;
        self.send_message(Message::new(Role::User, vec![block]), inbox).await
    }
}
