//! The engine behind the screen: turns, and the commands between them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aside_core::compact::Occasion;
use aside_core::dialect::Dialects;
use aside_core::exchange::{ThinkingAs, write_markdown};
use aside_core::message::{Message, Role};
use aside_core::settings::{Display, Key, Layer};
use aside_core::turn::TurnEnd;
use aside_engine::room::Compacted;
use aside_engine::tools::Mode;
use aside_store::ledger::{By, LedgerQuery};
use aside_store::search::Query;
use aside_store::session::{Change, NewSession};
use aside_store::{MessageId, SessionId, SqliteStore, Store};
use aside_tui::seam::{Command, Lists, ProfileAct, Said, Status, Update};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::more::Place;
use super::screen::{OnScreen, ToScreen};
use super::{Arguments, Opening, says};
use crate::ask::record::{Recorder, Tape};
use crate::keep::{self, Desk, Keeper, Which};
use crate::providers::{Providers, environment};
use crate::report::Report;
use crate::run::{self, Ready, Trust, Wanted};
use crate::settings::{self, Overrides, ProfileName, refused};
use crate::{times, usage, user_files};

/// How many prompts of earlier sessions can be called back.
const MOST_PROMPTS: usize = 500;

/// How many files can be completed.
const MOST_FILES: usize = 2000;

pub(crate) struct Driver {
    pub(super) ready: Ready,
    pub(super) front: ToScreen,
    asker: OnScreen,
    pub(super) store: Option<Arc<SqliteStore>>,
    /// What `/record` writes to.
    pub(super) tape: Option<Tape>,
    /// What was listed last, to be gone to by its number.
    pub(super) listed: Vec<Place>,
    /// The session that goes on, until the first thing is said.
    known: Option<(SessionId, Vec<MessageId>)>,
    pub(super) desk: Option<Desk>,
    /// The question that was taken back last, until something else is asked.
    pub(super) taken_back: Option<Message>,
    /// The prompts of this run as they were typed, with the files they name.
    pub(super) typed: Vec<String>,
    title: Option<String>,
    profile: Option<String>,
    /// What came while a turn ran and can wait for its end.
    later: VecDeque<Command>,
}

/// What a command came to.
pub(super) enum Done {
    Said(Said),
    /// It shows by itself.
    Silent,
    Leave,
}

fn branch(ready: &Ready) -> Vec<Message> {
    ready.session.history.branch().into_iter().map(|(_, message)| message.clone()).collect()
}

impl Driver {
    pub(crate) async fn open(arguments: &Arguments, updates: Sender<Update>) -> anyhow::Result<(Driver, Opening)> {
        let which = match (&arguments.resume, arguments.last) {
            (Some(word), _) => Which::Named(word),
            (None, true) => Which::Last,
            (None, false) => Which::New,
        };
        // Who begins anew can do without a place to keep it, and is told.
        let (store, unsaved) = match (keep::store(), which) {
            (Ok(store), _) => (Some(store), None),
            (Err(report), Which::New) => (None, Some(report)),
            (Err(report), Which::Last | Which::Named(_)) => return Err(report.into()),
        };
        let mut resumed = match &store {
            Some(store) => keep::resume(store, which)?,
            None => None,
        };
        // The session gets it as it is: it may be large, and one copy is enough.
        let history = resumed.as_mut().map(|resumed| std::mem::take(&mut resumed.conversation.history));
        // The screen is not up yet: this is asked on the terminal as it is.
        let asker = crate::ask::asker::on_this_terminal(&CancellationToken::new());
        let wanted = Wanted {
            model: arguments.model.as_deref(),
            resumed: resumed.as_ref().map(|resumed| &resumed.conversation),
            tools: Some(Mode::Ask),
            trust: if arguments.trust { Trust::Given } else { Trust::Ask(asker.as_ref()) },
            // On the screen: it is about to cover what is told elsewhere.
            tell: &|line| drop(updates.send(Update::Said(says::line(line)))),
        };
        let mut ready = run::session(&wanted, &arguments.overrides).await?;
        let restored = match history {
            Some(history) => {
                ready.session.go_on_with(history);
                branch(&ready)
            }
            None => Vec::new(),
        };
        let loaded = arguments.overrides.load()?;
        let profile = loaded.profile.map(|(name, _)| name.to_string());
        let title = resumed.as_ref().and_then(|resumed| resumed.conversation.title.clone());
        let front = ToScreen {
            updates: updates.clone(),
            limit: None,
            wants_thinking: false,
            model: String::new(),
            said: Vec::new(),
        };
        let driver = Driver {
            ready,
            front,
            asker: OnScreen::new(updates),
            known: resumed.map(|resumed| (resumed.id, resumed.ids)),
            store,
            tape: None,
            listed: Vec::new(),
            desk: None,
            taken_back: None,
            typed: Vec::new(),
            title,
            profile,
            later: VecDeque::new(),
        };
        let lists = driver.lists()?;
        if let Some(report) = unsaved {
            driver.front.send(Update::Said(says::wrong(&report.about("this session is not saved"))));
        }
        let opening = Opening { status: driver.status(), lists, keys: loaded.keys, restored };
        Ok((driver, opening))
    }

    /// The session that can be gone on with comes back, if there is one.
    pub(crate) async fn close(self) -> Option<SessionId> {
        let kept = match (&self.desk, self.known) {
            (Some(desk), _) => desk.kept().cloned(),
            (None, known) => known.map(|(id, _)| id),
        };
        let is_empty = self.ready.session.history.branch().is_empty();
        drop(self.desk);
        self.ready.close().await;
        kept.filter(|_| !is_empty)
    }

    /// Until the screen is gone.
    pub(crate) async fn run(&mut self, inbox: &mut UnboundedReceiver<Command>) {
        self.recall();
        loop {
            let command = match self.later.pop_front() {
                Some(command) => Some(command),
                None => inbox.recv().await,
            };
            let Some(command) = command else { return };
            // These come in the middle of a turn, or too late for it.
            let is_aside = matches!(command, Command::Interrupt | Command::AnswerNow | Command::Answer { .. });
            // A profile is another word to complete.
            let changes_lists = matches!(command, Command::Profile(_));
            let begins_a_turn = matches!(command, Command::Say(_));
            let title = says::title(&command);
            match self.obey(command, inbox).await {
                Ok(Done::Silent) => (),
                Ok(Done::Said(said)) => self.front.send(Update::Said(says::titled(title, said))),
                Ok(Done::Leave) => return,
                // Whoever waits for an answer waits no longer.
                Err(report) if begins_a_turn => {
                    self.front.send(Update::TurnEnded(TurnEnd::Unreachable(report.to_string())));
                }
                Err(report) => self.front.send(Update::Said(says::wrong(&report))),
            }
            if !is_aside {
                self.front.send(Update::Ready);
            }
            if changes_lists {
                self.refresh_lists();
            }
        }
    }

    /// What was sent in earlier sessions. The first frame does not wait for it.
    fn recall(&self) {
        let earlier = self.store.as_ref().map(|store| store.prompts(MOST_PROMPTS));
        if let Some(Ok(mut earlier)) = earlier {
            earlier.reverse();
            self.front.send(Update::Earlier(earlier));
        }
    }

    pub(super) async fn say(&mut self, text: &str, inbox: &mut UnboundedReceiver<Command>) -> Result<Done, Report> {
        let attached = match run::attach(text, None) {
            Ok(attached) => attached,
            Err(report) => {
                let (what, hint) = (report.to_string(), report.remedy().map(str::to_owned));
                self.front.send(Update::NotSent { text: text.to_owned(), what, hint });
                return Ok(Done::Silent);
            }
        };
        self.taken_back = None;
        self.typed.push(text.to_owned());
        for named in attached.named {
            self.front.send(Update::Said(says::line(named)));
        }
        self.say_message(Message::new(Role::User, attached.blocks), inbox).await
    }

    pub(super) async fn say_message(
        &mut self,
        message: Message,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<Done, Report> {
        self.open_desk(&message);
        let done = self.turn(message, inbox).await;
        self.refresh_lists();
        Ok(done)
    }

    async fn turn(&mut self, message: Message, inbox: &mut UnboundedReceiver<Command>) -> Done {
        let cancel = CancellationToken::new();
        let settings = &self.ready.session.settings;
        self.front.limit = settings.context_limit();
        let (enabled, by) = settings.enabled();
        self.front.wants_thinking = enabled && (by.is_of_the_user() || settings.max_thinking_tokens().is_some());
        self.front.said = self.ready.session.history.branch().iter().map(|(_, said)| says::gist(said)).collect();
        self.front.model.clone_from(&self.ready.model);
        let hurry = self.ready.session.hurry();
        let mut recorder = Recorder::new(&mut self.front, self.tape.as_mut());
        let mut keeper = Keeper::new(&mut recorder, self.desk.as_mut());
        let mut turn = std::pin::pin!(self.ready.session.turn(message, &mut keeper, &self.asker, &cancel));
        let mut leaves = false;
        let _end: TurnEnd = loop {
            tokio::select! {
                end = &mut turn => break end,
                command = inbox.recv(), if !leaves => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::AnswerNow) => hurry.answer_now(),
                    Some(Command::Answer { id, permit }) => self.asker.answer(id, permit),
                    Some(Command::Quit) | None => {
                        leaves = true;
                        cancel.cancel();
                    }
                    Some(other) => {
                        self.asker.waits(&other);
                        self.later.push_back(other);
                    }
                },
            }
        };
        if leaves { Done::Leave } else { Done::Silent }
    }

    /// Files, sessions, tools and answers may have come since.
    pub(super) fn refresh_lists(&self) {
        if let Ok(lists) = self.lists() {
            self.front.send(Update::Lists(Box::new(lists)));
        }
    }

    pub(super) fn branch(&self) -> Vec<Message> {
        branch(&self.ready)
    }

    /// Begins to keep the session, once there is something to keep.
    fn open_desk(&mut self, first: &Message) {
        let mut new = keep::new_session(self.ready.model.clone(), &self.ready.session.settings, first);
        // A title may have been given before anything was said.
        new.title = self.title.take().or(new.title);
        self.title.clone_from(&new.title);
        self.open_desk_with(new);
    }

    /// A session that goes on is held from the first change to it, so that what
    /// is taken back, summed up or set is so on disk too.
    pub(super) fn hold(&mut self) {
        if self.known.is_some() {
            self.open_desk_with(NewSession::default());
        }
    }

    fn open_desk_with(&mut self, new: NewSession) {
        let Some(store) = self.store.clone().filter(|_| self.desk.is_none()) else { return };
        let session = &self.ready.session;
        match Desk::open(store, self.known.take(), new, &session.history, session.endpoint.origin()) {
            Ok(desk) => self.desk = Some(desk),
            Err(error) => {
                self.store = None;
                let what = format!("this session is not saved: {error}");
                self.front.send(Update::Said(Said::Wrong { what, hint: None }));
            }
        }
        self.front.send(Update::Status(Box::new(self.status())));
    }

    fn status(&self) -> Status {
        let settings = &self.ready.session.settings;
        Status {
            model: self.ready.model.clone(),
            profile: self.profile.clone(),
            title: self.title.clone(),
            limit: settings.context_limit(),
            effort: settings.effort().filter(|_| settings.enabled().0).map(|effort| effort.to_string()),
            view: settings.display(),
            tier: self.ready.tier(),
        }
    }

    fn lists(&self) -> Result<Lists, Report> {
        let dialects = self.dialects();
        let simulated = dialects.iter().map(|dialect| format!("sim/{}", dialect.id));
        let known = dialects
            .iter()
            .filter_map(|dialect| dialect.access.default_model.as_ref().map(|model| format!("{}/{model}", dialect.id)));
        let profiles = match user_files::config_folder() {
            Some(folder) => settings::profile_names(&folder)?.iter().map(ProfileName::to_string).collect(),
            None => Vec::new(),
        };
        let sessions = match &self.store {
            Some(store) => store.sessions(100).map_err(|error| keep::trouble(&error))?,
            None => Vec::new(),
        };
        Ok(Lists {
            models: self.ready.own_models().chain(known).chain(simulated).collect(),
            profiles,
            files: run::files_here(MOST_FILES),
            sessions: sessions.into_iter().map(says::named).collect(),
            tools: self.tool_names(),
            rules: self.forgettable(),
        })
    }

    fn dialects(&self) -> Arc<Dialects> {
        self.ready.session.dialects()
    }

    async fn obey(&mut self, command: Command, inbox: &mut UnboundedReceiver<Command>) -> Result<Done, Report> {
        let said = |said: Said| Ok(Done::Said(said));
        match command {
            Command::Say(text) => self.say(&text, inbox).await,
            Command::Retry => self.retry(inbox).await,
            Command::Set { key, value } => {
                self.set(&key, &value)?;
                said(says::settings(&self.ready.session.settings, Some(&key))?)
            }
            Command::Unset(key) => {
                let settings = &mut self.ready.session.settings;
                settings.unset(Layer::Session, &key).map_err(|error| refused(&error))?;
                self.settings_changed();
                said(says::settings(&self.ready.session.settings, Some(&key))?)
            }
            Command::Query(key) => said(says::settings(&self.ready.session.settings, key.as_deref())?),
            Command::View(view) => self.view(view),
            Command::Effort(Some(level)) => {
                self.set(Key::Effort.name(), &level)?;
                said(says::line(format!("effort: {level}")))
            }
            Command::Effort(None) => said(says::settings(&self.ready.session.settings, Some(Key::Effort.name()))?),
            Command::Model(Some(name)) => self.switch_model(&name).await,
            Command::Model(None) => said(says::line(format!("model: {}", self.ready.model))),
            Command::Profile(act) => self.profile(act),
            Command::Compact => self.compact(inbox).await,
            Command::Undo => self.undo(),
            Command::Fork => self.fork(),
            Command::Export(file) => self.export(file.as_deref()),
            Command::Other { name, rest } => self.other(&name, &rest).await,
            Command::Quit => Ok(Done::Leave),
            // Nothing runs, so nothing is stopped and nobody waits.
            Command::Interrupt | Command::AnswerNow | Command::Answer { .. } | Command::Terminal(_) => Ok(Done::Silent),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Report> {
        self.ready.session.settings.set(Layer::Session, key, value).map_err(|error| refused(&error))?;
        self.settings_changed();
        Ok(())
    }

    fn settings_changed(&mut self) {
        self.hold();
        let settings = &self.ready.session.settings;
        let said = settings.layer(Layer::Session).map(|(key, value)| (key.name().to_owned(), value.to_string()));
        let said = said.collect();
        if let Some(desk) = &mut self.desk {
            desk.change(&Change::Settings(said));
        }
        self.front.send(Update::Status(Box::new(self.status())));
    }

    /// How thinking looks is a preference: it goes into the config too.
    fn view(&mut self, view: Display) -> Result<Done, Report> {
        self.ready.session.settings.show(Layer::Session, view);
        self.front.send(Update::Status(Box::new(self.status())));
        if let Some(folder) = user_files::config_folder() {
            settings::keep_view(&folder, view)?;
        }
        Ok(Done::Silent)
    }

    async fn switch_model(&mut self, name: &str) -> Result<Done, Report> {
        self.ready.switch(name).await?;
        if let Some(desk) = &mut self.desk {
            desk.made_by(self.ready.session.endpoint.origin(), self.ready.model.clone());
        }
        self.front.send(Update::Status(Box::new(self.status())));
        Ok(Done::Said(says::line(format!("model: {}", self.ready.model))))
    }

    fn profile(&mut self, act: ProfileAct) -> Result<Done, Report> {
        let folder = settings::folder()?;
        match act {
            ProfileAct::List => {
                let names: Vec<String> = settings::profile_names(&folder)?.iter().map(ProfileName::to_string).collect();
                let names = if names.is_empty() { "there are none yet".to_owned() } else { names.join(", ") };
                Ok(Done::Said(says::line(format!("profiles: {names}"))))
            }
            ProfileAct::Load(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                let contents = settings::existing_profile(&folder, &name)?.contents()?;
                self.ready.session.settings.load_profile(contents.changes);
                self.profile = Some(name.to_string());
                self.settings_changed();
                Ok(Done::Said(says::line(format!("profile: {name}"))))
            }
            ProfileAct::Save(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                crate::profile::write(&name, Some(&self.ready.model), &self.ready.session.settings)?;
                Ok(Done::Said(says::line(format!("saved as {name}"))))
            }
            ProfileAct::Delete(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                if crate::profile::remove(&name)? {
                    self.profile = None;
                }
                Ok(Done::Said(says::line(format!("deleted {name}"))))
            }
        }
    }

    async fn compact(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<Done, Report> {
        self.hold();
        let mut keeper = Keeper::new(&mut self.front, self.desk.as_mut());
        let cancel = CancellationToken::new();
        let mut work = std::pin::pin!(self.ready.session.compact(Occasion::ByHand, &mut keeper, &cancel));
        let mut leaves = false;
        let compacted = loop {
            tokio::select! {
                compacted = &mut work => break compacted,
                command = inbox.recv(), if !leaves => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::Quit) | None => {
                        leaves = true;
                        cancel.cancel();
                    }
                    Some(other) => self.later.push_back(other),
                },
            }
        };
        if leaves {
            return Ok(Done::Leave);
        }
        match compacted {
            Compacted::Done(_) => Ok(Done::Silent),
            Compacted::Nothing(why) => Ok(Done::Said(says::line(why.to_string()))),
            Compacted::Failed(why) => Err(Report::new(format!("older turns could not be summed up: {why}"))),
        }
    }

    /// The same conversation in a session of its own.
    fn fork(&mut self) -> Result<Done, Report> {
        let Some(store) = self.store.clone() else { return Err(Report::new("this session is not saved")) };
        let conversation = self.ready.conversation(self.title.clone());
        let id = store.import(&conversation, Some(keep::now())).map_err(|error| keep::trouble(&error))?;
        self.go_on_with(&store, id.as_str())?;
        Ok(Done::Said(says::line(format!("going on in a copy: {id}"))))
    }

    /// The ids of its entries come back.
    pub(super) fn go_on_with(&mut self, store: &SqliteStore, word: &str) -> Result<Vec<MessageId>, Report> {
        let Some(resumed) = keep::resume(store, Which::Named(word))? else { return Ok(Vec::new()) };
        (self.desk, self.taken_back) = (None, None);
        self.title = resumed.conversation.title.clone();
        self.known = Some((resumed.id, resumed.ids.clone()));
        self.ready.session.go_on_with(resumed.conversation.history);
        self.front.send(Update::Restored(self.branch()));
        self.front.send(Update::Status(Box::new(self.status())));
        Ok(resumed.ids)
    }

    fn export(&self, file: Option<&str>) -> Result<Done, Report> {
        let text = write_markdown(&self.ready.conversation(self.title.clone()), ThinkingAs::Callout);
        let name = file.map_or_else(|| format!("aside-{}.md", times::file_stamp()), str::to_owned);
        let path = std::path::Path::new(&name);
        crate::atomic::write(path, &text).map_err(|error| Report::new(format!("cannot write {name}: {error}")))?;
        Ok(Done::Said(says::line(format!("written to {name}"))))
    }

    async fn other(&mut self, name: &str, rest: &str) -> Result<Done, Report> {
        if let Some(done) = self.more(name, rest) {
            return done;
        }
        let Some(store) = self.store.clone() else { return Err(Report::new("no session is saved")) };
        let trouble = |error| keep::trouble(&error);
        match name {
            "sessions" | "resume" if rest.is_empty() || name == "sessions" => {
                let sessions = store.sessions(20).map_err(trouble)?;
                self.listed = sessions.iter().map(|one| Place { session: one.id.clone(), block: None }).collect();
                Ok(Done::Said(says::sessions(&sessions)))
            }
            // No id is as short as a number of the list.
            "resume" if rest.parse::<usize>().is_ok_and(|number| number <= self.listed.len()) => self.open_place(rest),
            "resume" => {
                self.go_on_with(&store, rest)?;
                Ok(Done::Silent)
            }
            "new" => {
                (self.desk, self.taken_back) = (None, None);
                (self.known, self.title) = (None, None);
                self.front.send(Update::Restored(Vec::new()));
                let tell = |line: &str| self.front.send(Update::Said(says::line(line)));
                run::begin_anew(&mut self.ready, &tell).await?;
                self.front.send(Update::Status(Box::new(self.status())));
                Ok(Done::Silent)
            }
            "title" if rest.is_empty() => Err(Report::new("a title has words").hint("/title TEXT")),
            "title" => {
                self.title = Some(rest.to_owned());
                self.hold();
                if let Some(desk) = &mut self.desk {
                    desk.change(&Change::Title(rest.to_owned()));
                }
                self.front.send(Update::Status(Box::new(self.status())));
                Ok(Done::Silent)
            }
            "search" if rest.is_empty() => Err(Report::new("there is nothing to look for").hint("/search WORDS")),
            "search" => {
                let found = store.search(&Query::new(rest)).map_err(trouble)?;
                self.listed = found.hits.iter().map(Place::of_hit).collect();
                Ok(Done::Said(says::found(&found)))
            }
            "usage" => self.usage(&store),
            other => Err(Report::new(format!("unknown command `{other}`")).hint("/help lists them")),
        }
    }

    fn usage(&self, store: &SqliteStore) -> Result<Done, Report> {
        let loaded = Overrides::default().load()?;
        let dialects = self.dialects();
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
        let query = LedgerQuery {
            by: By::Model,
            session: None,
            since: None,
            terms: &|origin| usage::terms(&providers, &dialects, origin),
            minutes_ahead: times::minutes_ahead(),
        };
        Ok(Done::Said(says::usage(&store.ledger(&query).map_err(|error| keep::trouble(&error))?)))
    }
}
