//! Tool calls, questions and tables as text lines.

use aside_core::block::{Arguments, Block, ToolCall, ToolResult};
use aside_core::message::Message;
use aside_core::permission_question::{QuestionKind, QuestionLayout, escape_unsafe, render};
use aside_core::repetition::Repetition;

use crate::transcript::tool::subject;
use aside_front::PendingQuestion;
use aside_front::diff_lines::{changed, has_diff};
use aside_front::tool_call::CallState;
use aside_front::wording::indented;

pub(super) fn call(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        Arguments::Json(text) | Arguments::Broken(text) => text,
    };
    format!("Tool: {} {}", one_line(&call.name), one_line(&escape_unsafe(&subject(arguments)))).trim_end().to_owned()
}

/// The notice about repetitive thinking, with the user's options.
pub(super) fn loop_notice(finding: &Repetition) -> String {
    format!("Note: {finding}. /answer asks for the answer now, Ctrl+C stops.")
}

/// Model text must not look like one of our lines.
pub(super) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A line of a command's output. Indented, so that it does not look like one of ours.
pub(super) fn output_line(line: &str) -> String {
    format!("  {}", one_line(line))
}

pub(super) fn result(result: &ToolResult) -> String {
    let text = result.described();
    let text = text.trim();
    if result.is_error {
        return failure(result, text);
    }
    match text.lines().count() {
        0 => "Tool done: nothing came back".to_owned(),
        _ if has_diff(text) => {
            let (added, removed) = changed(text);
            format!("Tool done: {added} lines added, {removed} removed")
        }
        1 => format!("Tool done: {}", one_line(text)),
        lines => format!("Tool done: {lines} lines"),
    }
}

/// A call that did not do what it should, and why.
pub(super) fn failure(result: &ToolResult, why: &str) -> String {
    let why = indented(why);
    match CallState::of_result(true, &result.content) {
        CallState::Stopped => format!("Tool stopped: {why}"),
        CallState::Denied | CallState::NotRun => format!("Tool not run: {why}"),
        CallState::Failed
        | CallState::Streaming
        | CallState::Waiting
        | CallState::Asked
        | CallState::Running
        | CallState::Done => format!("Tool failed: {why}"),
    }
}

pub(super) fn question(question: &PendingQuestion, layout: QuestionLayout) -> Vec<String> {
    const PREFIX: &str = "Question: ";
    let rendered = render(&question.about, QuestionLayout { before_head: PREFIX.len(), ..layout });
    let mut lines: Vec<String> = rendered.lines().collect();
    if let Some(head) = lines.first_mut() {
        head.insert_str(0, PREFIX);
    }
    lines.extend(rendered.covers);
    lines.push(answers(question));
    lines
}

pub(super) fn answers(question: &PendingQuestion) -> String {
    match question.about.kind {
        QuestionKind::Undo => return "Answer y: yes, the files too. n: no, only the conversation.".to_owned(),
        QuestionKind::Trust => return "Answer y: yes, from now on. n: no.".to_owned(),
        QuestionKind::Permission => (),
    }
    let longer = match question.about.rememberable_scope() {
        Some(_) => "s: yes for this session. p: for this project. ",
        None => "",
    };
    format!("Answer y: yes, once. {longer}n: no. n and a message: no, and the message goes to the model.")
}

/// The text of a message, without thinking and tool calls.
pub(super) fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
