//! The commands `/context`, `/tools`, `/permissions`, `/record` and `/open`.

use aside_core::block::Block;
use aside_core::history::EntryId;
use aside_core::message::Message;
use aside_core::tool_mode::ToolMode;
use aside_engine::tools::{ListedRule, RuleSource, Switch, ToolEffect, ToolInfo};
use aside_front::{CommandOutput, MessagePart, Update};
use aside_store::search::HitKind;
use aside_store::{MessageId, SessionId};

use super::context_bars::{self, WindowUse};
use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::recording::Recording;
use crate::times;

/// A listed session or search hit that `/open NUMBER` can open.
pub(super) struct ListedItem {
    pub(super) session: SessionId,
    pub(super) block: Option<FoundBlock>,
}

impl ListedItem {
    pub(super) fn from_hit(hit: &aside_store::search::SearchHit) -> ListedItem {
        let block = FoundBlock { message: hit.message, index: hit.block, kind: hit.kind };
        ListedItem { session: hit.session.clone(), block: Some(block) }
    }
}

/// A block that a search found, by its ids in the store.
#[derive(Clone, Copy)]
pub(super) struct FoundBlock {
    message: MessageId,
    index: usize,
    kind: HitKind,
}

impl FoundBlock {
    /// Which part of the message to scroll to.
    fn scroll_target(&self, message: &Message) -> MessagePart {
        let before = message.blocks.iter().take(self.index);
        let thinking_before = before.filter(|block| matches!(block, Block::Thinking(_))).count();
        if self.kind == HitKind::Thinking { MessagePart::Thinking(thinking_before) } else { MessagePart::Start }
    }
}

impl Driver {
    /// Runs one of the commands of this module; none for any other name.
    pub(super) async fn run_context_command(
        &mut self,
        name: &str,
        rest: &str,
    ) -> Option<Result<CommandOutcome, HintedError>> {
        Some(match name {
            "context" => Ok(CommandOutcome::Reply(self.context().await)),
            "tools" => self.tools(rest),
            "permissions" => self.permissions(rest).await,
            "record" => self.record(rest),
            "open" => self.open_listed(rest).await,
            _ => return None,
        })
    }

    async fn context(&mut self) -> CommandOutput {
        let limit = self.active.session.settings.context_limit();
        let filling = match self.active.session.exact_token_breakdown().await {
            Some(exact) => exact,
            None => self.active.session.token_breakdown().1,
        };
        let counted = self.active.session.last_counted_tokens();
        CommandOutput::Markdown(context_bars::context_page(&filling, &WindowUse { limit, counted }))
    }

    fn tools(&mut self, rest: &str) -> Result<CommandOutcome, HintedError> {
        let (act, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let switch = match act {
            "" => return Ok(CommandOutcome::Reply(self.list_tools())),
            "on" => Switch::On,
            "off" => Switch::Off,
            other => {
                let hint = "/tools, /tools off, /tools on, or one of the two with a name";
                return Err(HintedError::new(format!("tools are on or off, not `{other}`")).hint(hint));
            }
        };
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        let tools = &mut self.active.session.tools;
        let switched = tools.switch(name, switch);
        let switched = switched.map_err(|unknown| HintedError::new(unknown.to_string()).hint("/tools lists them"))?;
        let (on, all) = (tools.specs().len(), tools.list().count());
        let word = if switch == Switch::On { "on" } else { "off" };
        let what = name.map_or_else(|| "all tools".to_owned(), |name| format!("`{name}`"));
        self.send_changed_status();
        let several = if name.is_some() && switched > 1 { format!(" ({switched} tools)") } else { String::new() };
        Ok(CommandOutcome::Reply(replies::line(format!("{what}{several} {word}; the model has {on} of {all}"))))
    }

    fn list_tools(&self) -> CommandOutput {
        let session = &self.active.session;
        let is_read_only = self.active.tool_mode() == Some(ToolMode::ReadOnly);
        let word = |tool: &ToolInfo<'_>| match (tool.switch, tool.effect) {
            (Switch::Off, _) => "off",
            (Switch::On, ToolEffect::Changes) if is_read_only => "off: read-only",
            (Switch::On, ToolEffect::Changes | ToolEffect::Reads) => "on",
        };
        let mut rows: Vec<Vec<String>> = session
            .tools
            .list()
            .map(|tool| {
                let from = tool.server.map_or_else(|| "built in".to_owned(), |server| format!("server {server}"));
                vec![tool.name.to_owned(), from, word(&tool).to_owned()]
            })
            .collect();
        for server in &self.active.server_names {
            let is_there = session.tools.list().any(|tool| tool.server == Some(server));
            let state = match (is_there, session.awaits_tools()) {
                (true, _) => continue,
                (false, true) => "starting",
                (false, false) => "gave no tools",
            };
            rows.push(vec!["(none)".to_owned(), format!("server {server}"), state.to_owned()]);
        }
        if rows.is_empty() {
            return replies::line("the model has no tools");
        }
        let head = ["tool", "from", "state"].map(str::to_owned).to_vec();
        CommandOutput::Table { head, rows }
    }

    /// Names of tools and servers, for completion.
    pub(super) fn tool_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.active.session.tools.list().map(|tool| tool.name.to_owned()).collect();
        names.extend(self.active.server_names.iter().cloned());
        names
    }

    /// Remembered permissions that the user can revoke, for completion.
    pub(super) fn forgettable_rules(&self) -> Vec<String> {
        let list = self.active.session.tools.permissions().list();
        list.into_iter().filter(|ruled| ruled.source != RuleSource::Config).map(|ruled| ruled.rule).collect()
    }

    async fn permissions(&mut self, rest: &str) -> Result<CommandOutcome, HintedError> {
        let permissions = self.active.session.tools.permissions();
        match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("", _) => Ok(CommandOutcome::Reply(list_permissions(&permissions.list()))),
            ("forget", rule) if !rule.trim().is_empty() => {
                let rule = rule.trim();
                let source = permissions
                    .forget(rule)
                    .map_err(|error| HintedError::new(error.to_string()).hint("/permissions lists them"))?;
                self.refresh_lists().await;
                Ok(CommandOutcome::Reply(replies::line(format!(
                    "`{rule}` of {source} is forgotten; it is asked again"
                ))))
            }
            _ => Err(HintedError::new(format!("cannot read `/permissions {rest}`")).hint("/permissions forget RULE")),
        }
    }

    fn record(&mut self, rest: &str) -> Result<CommandOutcome, HintedError> {
        match (rest, &self.recording) {
            ("off", Some(recording)) => {
                let line = format!("the recording {} is complete", recording.name());
                self.recording = None;
                Ok(CommandOutcome::Reply(replies::line(line)))
            }
            ("off", None) => Err(HintedError::new("nothing is being recorded").hint("/record FILE begins")),
            ("", Some(recording)) => Ok(CommandOutcome::Reply(replies::line(format!(
                "recording to {}; /record off ends it",
                recording.name()
            )))),
            (name, _) => {
                let stamped = format!("aside-{}.jsonl", times::file_stamp());
                let name = if name.is_empty() { stamped.as_str() } else { name };
                let path = self.active.folder.join(name);
                self.recording = Some(Recording::create(&path, name, &self.active.session)?);
                let line = format!("recording to {name} from the next request on; /record off ends it");
                Ok(CommandOutcome::Reply(replies::line(line)))
            }
        }
    }

    /// Opens the item that was listed under this number.
    pub(super) async fn open_listed(&mut self, rest: &str) -> Result<CommandOutcome, HintedError> {
        let number = rest.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let place = number.and_then(|at| self.listed.get(at));
        let Some(ListedItem { session, block }) = place else {
            let what = match self.listed.len() {
                0 => "nothing is listed yet".to_owned(),
                most => format!("`{rest}` is not a number from 1 to {most}"),
            };
            return Err(HintedError::new(what).hint("/sessions or /search WORDS lists what can be opened"));
        };
        let (session, block) = (session.clone(), *block);
        let Some(store) = self.store.clone() else { return Err(HintedError::new("no session is saved")) };
        let ids = self.load_session(&store, session.as_str()).await?;
        let Some(block) = block else { return Ok(CommandOutcome::Silent) };
        let branch = self.active.session.history.branch();
        let at = branch.iter().position(|(entry, _)| ids.get(entry.0) == Some(&block.message));
        match at.and_then(|at| Some((at, branch.get(at)?.1))) {
            Some((index, message)) => {
                let part = block.scroll_target(message);
                self.front.send(Update::GoTo { message: index, part });
                Ok(CommandOutcome::Silent)
            }
            None => Ok(CommandOutcome::Reply(self.left_block(&ids, block))),
        }
    }

    /// A found block that is no longer part of the conversation, as a page.
    fn left_block(&self, ids: &[MessageId], found: FoundBlock) -> CommandOutput {
        const WHY: &str = "the match is in a part that was undone or summarised";
        let entry = ids.iter().position(|id| *id == found.message).map(EntryId);
        let entry = entry.and_then(|entry| self.active.session.history.get(entry));
        let text = entry.and_then(|entry| entry.message.blocks.get(found.index)).and_then(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(thinking) => Some(thinking.text()),
            Block::ToolResult(result) => Some(result.content.as_str()),
            Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => None,
        });
        match text {
            Some(text) => CommandOutput::Markdown(format!("*{WHY}*\n\n{text}")),
            None => replies::line(WHY),
        }
    }
}

fn list_permissions(list: &[ListedRule]) -> CommandOutput {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let mut rows: Vec<Vec<String>> =
        list.iter().map(|ruled| row([&ruled.rule, &ruled.verdict.to_string(), &ruled.source.to_string()])).collect();
    rows.push(row(["reading in this folder", "allow", "built in"]));
    rows.push(row(["writing and running in it", "ask", "built in"]));
    rows.push(row(["anything outside of it", "ask", "built in, always"]));
    let head = ["rule", "does", "from"].map(str::to_owned).to_vec();
    CommandOutput::Table { head, rows }
}
