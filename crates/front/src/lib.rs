//! What a front end receives and sends: [`Update`]s in, [`Command`]s out.
//!
//! Both are owned values, because they cross a thread or a socket. Their JSON is
//! `{"type": …, "value": …}` with names in camel case; blocks, messages and usage
//! have the names of [`aside_core::json`].

mod command;
pub mod command_result;
mod delta_joiner;
mod delta_text;
pub mod diff_lines;
mod output;
pub mod overwritten_lines;
mod question;
mod sent_report;
mod silence;
pub mod slash_commands;
mod status;
mod streamed_tokens;
pub mod thinking_title;
pub mod tool_call;
mod update;
mod update_detail;
pub mod wording;

pub use aside_core::event::BlockId;
pub use aside_core::permission_question::{PermissionAnswer, Tier};
pub use aside_core::terminal_text::{TerminalFilter, terminal_safe};
pub use aside_core::tool_mode::ToolMode;
pub use command::{
    Attachment, Command, MouseMode, ProfileAction, SENT_CALL_PREFIX, ShellOutput, TerminalAction, USER_CALL_PREFIX,
    UndoPart,
};
pub use delta_joiner::DeltaJoiner;
pub use delta_text::DeltaText;
pub use output::CommandOutput;
pub use question::{PendingQuestion, QuestionId};
pub use sent_report::{format_count, sent_report};
pub use silence::{LONG_SILENCE, SilenceTimer};
pub use status::{CompletionLists, CostSoFar, NextRequest, OwnCommand, ScreenSettings, SessionCompletion, Status};
pub use streamed_tokens::StreamedTokens;
pub use update::{DecisionRow, MessagePart, OpenedBlock, Sending, SteeringError, Update};
pub use update_detail::{DetailedOpening, UpdateDetail};
