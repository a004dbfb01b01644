//! Commands about what the model is given and what is found again: the window,
//! the tools, the permissions, recordings, and places in other sessions.

use std::path::Path;

use aside_core::message::{Message, Role};
use aside_engine::tools::{Ruled, Source, Switch};
use aside_store::search::Kind;
use aside_store::{MessageId, SessionId};
use aside_tui::seam::{Said, Sought, Update};

use super::driver::{Done, Driver};
use super::filling::{self, Window};
use super::says;
use crate::ask;
use crate::ask::record::Tape;
use crate::report::Report;
use crate::times;

/// Something that was listed, and can be gone to by its number.
pub(super) struct Place {
    pub(super) session: SessionId,
    pub(super) block: Option<Block>,
}

impl Place {
    pub(super) fn of_hit(hit: &aside_store::search::Hit) -> Place {
        let block = Block { message: hit.message, index: hit.block, kind: hit.kind };
        Place { session: hit.session.clone(), block: Some(block) }
    }
}

/// A block of a session, by the ids of the store.
#[derive(Clone, Copy)]
pub(super) struct Block {
    message: MessageId,
    index: usize,
    kind: Kind,
}

impl Block {
    /// What of its message is to be shown.
    fn sought(&self, message: &Message) -> Sought {
        let before = message.blocks.iter().take(self.index);
        let thoughts = before.filter(|block| matches!(block, aside_core::block::Block::Thinking(_))).count();
        if self.kind == Kind::Thinking { Sought::Thought(thoughts) } else { Sought::Said }
    }
}

impl Driver {
    /// None for a command that is none of these.
    pub(super) fn more(&mut self, name: &str, rest: &str) -> Option<Result<Done, Report>> {
        Some(match name {
            "context" => Ok(Done::Said(self.context())),
            "tools" => self.tools(rest),
            "permissions" => self.permissions(rest),
            "record" => self.record(rest),
            "open" => self.open_place(rest),
            _ => return None,
        })
    }

    fn context(&mut self) -> Said {
        let limit = self.ready.session.settings.context_limit();
        let (_, filling) = self.ready.session.filling();
        let counted = counted(&self.branch());
        Said::Markdown(filling::page(&filling, &Window { limit, counted }))
    }

    fn tools(&mut self, rest: &str) -> Result<Done, Report> {
        let (act, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let switch = match act {
            "" => return Ok(Done::Said(self.list_tools())),
            "on" => Switch::On,
            "off" => Switch::Off,
            other => {
                let hint = "/tools, /tools off, /tools on, or one of the two with a name";
                return Err(Report::new(format!("tools are on or off, not `{other}`")).hint(hint));
            }
        };
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        let tools = &mut self.ready.session.tools;
        let switched = tools.switch(name, switch);
        let switched = switched.map_err(|unknown| Report::new(unknown.to_string()).hint("/tools lists them"))?;
        let (on, all) = (tools.specs().len(), tools.list().count());
        let word = if switch == Switch::On { "on" } else { "off" };
        let what = name.map_or_else(|| "all tools".to_owned(), |name| format!("`{name}`"));
        let several = if name.is_some() && switched > 1 { format!(" ({switched} tools)") } else { String::new() };
        Ok(Done::Said(says::line(format!("{what}{several} {word}; the model has {on} of {all}"))))
    }

    fn list_tools(&self) -> Said {
        let session = &self.ready.session;
        let word = |switch| if switch == Switch::On { "on" } else { "off" };
        let mut rows: Vec<Vec<String>> = session
            .tools
            .list()
            .map(|tool| {
                let from = tool.server.map_or_else(|| "built in".to_owned(), |server| format!("server {server}"));
                vec![tool.name.to_owned(), from, word(tool.switch).to_owned()]
            })
            .collect();
        for server in &self.ready.server_names {
            let is_there = session.tools.list().any(|tool| tool.server == Some(server));
            let state = match (is_there, session.awaits_tools()) {
                (true, _) => continue,
                (false, true) => "starting",
                (false, false) => "gave no tools",
            };
            rows.push(vec!["(none)".to_owned(), format!("server {server}"), state.to_owned()]);
        }
        if rows.is_empty() {
            return says::line("the model has no tools");
        }
        let head = ["tool", "from", "state"].map(str::to_owned).to_vec();
        Said::Table { head, rows }
    }

    /// Tools and servers, for completion.
    pub(super) fn tool_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.ready.session.tools.list().map(|tool| tool.name.to_owned()).collect();
        names.extend(self.ready.server_names.iter().cloned());
        names
    }

    /// Answers that can be taken back, for completion.
    pub(super) fn forgettable(&self) -> Vec<String> {
        let list = self.ready.session.tools.permissions().list();
        list.into_iter().filter(|ruled| ruled.source != Source::Config).map(|ruled| ruled.rule).collect()
    }

    fn permissions(&mut self, rest: &str) -> Result<Done, Report> {
        let permissions = self.ready.session.tools.permissions();
        match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("", _) => Ok(Done::Said(list_permissions(&permissions.list()))),
            ("forget", rule) if !rule.trim().is_empty() => {
                let rule = rule.trim();
                let source = permissions
                    .forget(rule)
                    .map_err(|error| Report::new(error.to_string()).hint("/permissions lists them"))?;
                self.refresh_lists();
                Ok(Done::Said(says::line(format!("`{rule}` of {source} is forgotten; it is asked again"))))
            }
            _ => Err(Report::new(format!("cannot read `/permissions {rest}`")).hint("/permissions forget RULE")),
        }
    }

    fn record(&mut self, rest: &str) -> Result<Done, Report> {
        match (rest, &self.tape) {
            ("off", Some(tape)) => {
                let line = format!("the recording {} is complete", tape.name());
                self.tape = None;
                Ok(Done::Said(says::line(line)))
            }
            ("off", None) => Err(Report::new("nothing is being recorded").hint("/record FILE begins")),
            ("", Some(tape)) => {
                Ok(Done::Said(says::line(format!("recording to {}; /record off ends it", tape.name()))))
            }
            (name, _) => {
                let stamped = format!("aside-{}.jsonl", times::file_stamp());
                let name = if name.is_empty() { stamped.as_str() } else { name };
                let path = Path::new(name);
                let session = &self.ready.session;
                self.tape = Some(Tape::create(path, &ask::about(session), &session.redactor)?);
                let line = format!("recording to {name} from the next request on; /record off ends it");
                Ok(Done::Said(says::line(line)))
            }
        }
    }

    /// Goes on with what was listed under this number.
    pub(super) fn open_place(&mut self, rest: &str) -> Result<Done, Report> {
        let number = rest.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let place = number.and_then(|at| self.listed.get(at));
        let Some(Place { session, block }) = place else {
            let what = match self.listed.len() {
                0 => "nothing is listed yet".to_owned(),
                most => format!("`{rest}` is no number from 1 to {most}"),
            };
            return Err(Report::new(what).hint("/sessions or /search WORDS lists what can be opened"));
        };
        let (session, block) = (session.clone(), *block);
        let Some(store) = self.store.clone() else { return Err(Report::new("no session is saved")) };
        let ids = self.go_on_with(&store, session.as_str())?;
        let Some(block) = block else { return Ok(Done::Silent) };
        let branch = self.ready.session.history.branch();
        let at = branch.iter().position(|(entry, _)| ids.get(entry.0) == Some(&block.message));
        match at.and_then(|at| Some((at, branch.get(at)?.1))) {
            Some((message, said)) => {
                let part = block.sought(said);
                self.front.send(Update::GoTo { message, part });
                Ok(Done::Silent)
            }
            None => Ok(Done::Said(says::line("what was found is in a part that was taken back or summed up"))),
        }
    }
}

fn list_permissions(list: &[Ruled]) -> Said {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let mut rows: Vec<Vec<String>> =
        list.iter().map(|ruled| row([&ruled.rule, &ruled.verdict.to_string(), &ruled.source.to_string()])).collect();
    rows.push(row(["reading in this folder", "allow", "built in"]));
    rows.push(row(["writing and running in it", "ask", "built in"]));
    rows.push(row(["anything outside of it", "ask", "built in, always"]));
    let head = ["rule", "does", "from"].map(str::to_owned).to_vec();
    Said::Table { head, rows }
}

/// What the provider counted last: a request, and the answer to it.
fn counted(branch: &[Message]) -> Option<u64> {
    let usage = branch.iter().rev().find(|message| message.role == Role::Assistant)?.usage?;
    Some(usage.input?.saturating_add(usage.output.unwrap_or_default()))
}
