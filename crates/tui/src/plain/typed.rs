//! What is typed: prompts, commands and answers to questions.

use super::{Input, Plain, Turn, Typist, words};
use crate::app::{explained, next_view};
use crate::commands::{self, COMMANDS, Local, Parsed};
use aside_core::mention::literal;
use aside_core::question::Layout;

use crate::seam::{Command, Permit, Question, Said, TerminalAct};

impl Plain {
    /// A line was entered.
    pub fn line(&mut self, text: &str) -> Vec<Command> {
        if self.input == Input::Left {
            return Vec::new();
        }
        self.input = Input::Open;
        match self.typist {
            Typist::Person => self.speech.entered(),
            Typist::Pipe if text.trim().is_empty() => return Vec::new(),
            Typist::Pipe => self.speech.line(&format!("You: {text}")),
        }
        match self.questions.front().cloned() {
            Some(question) => self.answer(&question, text),
            None => self.obey(text),
        }
    }

    /// Text that is not one line: what an editor was left with.
    pub fn write(&mut self, text: &str) -> Vec<Command> {
        if text.trim().is_empty() {
            self.speech.line("Nothing was written.");
            return Vec::new();
        }
        self.speech.line(&format!("You: {}", text.trim_end()));
        self.say(text.trim_end().to_owned())
    }

    /// Something outside the session went wrong.
    pub fn wrong(&mut self, what: &str) {
        self.said(&Said::Wrong { what: what.to_owned(), hint: None });
    }

    /// No line comes any more: Ctrl+D, or the end of the file.
    pub fn end_of_input(&mut self) -> Vec<Command> {
        if self.typist == Typist::Person {
            self.speech.start_line();
        }
        self.input = Input::Ended;
        let refused = self.questions.drain(..).map(|question| answer(&question, Permit::No(None)));
        let mut commands: Vec<Command> = refused.collect();
        if self.is_idle() {
            commands.extend(self.leave());
        } else if self.typist == Typist::Person {
            self.speech.line("Leaving when the answer is done. Ctrl+C stops it.");
        }
        commands
    }

    /// Ctrl+C.
    pub fn interrupt(&mut self) -> Vec<Command> {
        if self.typist == Typist::Person {
            // The terminal shows what was pressed.
            self.speech.disturbed();
        }
        match (self.turn, self.input, self.typist) {
            (_, Input::Left, _) => Vec::new(),
            (Turn::Running, _, _) => {
                self.turn = Turn::Stopping;
                if self.typist == Typist::Pipe {
                    // Nobody is there to go on with the next line.
                    self.input = Input::Ended;
                }
                vec![Command::Interrupt]
            }
            (Turn::Idle | Turn::Stopping, Input::Open, Typist::Person) => {
                self.input = Input::Warned;
                self.speech.line("Once more leaves, as Ctrl+D does.");
                Vec::new()
            }
            (Turn::Idle | Turn::Stopping, Input::Open | Input::Warned | Input::Ended, _) => {
                self.troubles.interrupted = true;
                self.leave()
            }
        }
    }

    /// Asks the engine to end; whatever runs is stopped and kept.
    pub(super) fn leave(&mut self) -> Vec<Command> {
        self.queue.clear();
        self.input = Input::Left;
        vec![Command::Quit]
    }

    fn obey(&mut self, text: &str) -> Vec<Command> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        match commands::parse(text) {
            Parsed::Text => self.say(text.to_owned()),
            Parsed::Local(local) => self.local(local),
            Parsed::Engine(Command::Quit) => self.leave(),
            Parsed::Engine(Command::Terminal(TerminalAct::Edit(_))) if self.typist == Typist::Pipe => {
                self.not_here("an editor needs a terminal")
            }
            Parsed::Engine(Command::Terminal(TerminalAct::Edit(text))) => {
                vec![Command::Terminal(TerminalAct::Edit(text))]
            }
            Parsed::Engine(Command::Terminal(_)) => self.not_here("the mouse is the terminal's own"),
            Parsed::Engine(command) => self.send(command),
            Parsed::Wrong { what, hint } => {
                self.said(&Said::Wrong { what, hint });
                Vec::new()
            }
        }
    }

    fn say(&mut self, text: String) -> Vec<Command> {
        if self.is_idle() {
            return self.begin(text);
        }
        if self.typist == Typist::Person {
            self.speech.line("Queued. It is sent when the answer is done.");
        }
        self.queue.push_back(text);
        Vec::new()
    }

    pub(super) fn begin(&mut self, text: String) -> Vec<Command> {
        self.turn = Turn::Running;
        // A script's lines are not typed by a person, and name no files.
        let text = match self.typist {
            Typist::Person => text,
            Typist::Pipe => literal(&text).into_owned(),
        };
        self.send(Command::Say(text))
    }

    fn send(&mut self, command: Command) -> Vec<Command> {
        self.waiting += 1;
        vec![command]
    }

    fn local(&mut self, local: Local) -> Vec<Command> {
        match local {
            Local::Help => {
                let takes = |takes: &str| if takes.is_empty() { String::new() } else { format!(" {takes}") };
                for entry in COMMANDS {
                    self.speech.line(&format!("/{}{}: {}", entry.name, takes(entry.takes), entry.doc));
                }
                self.speech.line("Ctrl+C: stop the answer, or leave. Ctrl+D: leave.");
            }
            Local::NextView => return self.set_view(next_view(self.status.view)),
            Local::View(view) => return self.set_view(view),
            Local::Reader => match self.thought.clone() {
                Some((text, _)) if !text.trim().is_empty() => {
                    self.speech.say(super::Voice::Thinking, &text);
                    self.speech.end();
                }
                Some(_) => self.speech.line("The last thought is hidden by the provider."),
                None => self.speech.line("There is no thought yet."),
            },
            Local::Sent => explained(self.sending.as_ref()).iter().for_each(|said| self.said(said)),
            // It comes in the middle of a turn, as a stop does.
            Local::AnswerNow if self.turn == Turn::Running => return vec![Command::AnswerNow],
            Local::AnswerNow => self.speech.line("Nothing is being thought."),
            Local::CopyAnswer | Local::CopyThinking => return self.not_here("what is said can be copied as it is"),
            Local::Theme(_) => return self.not_here("there are no colours"),
        }
        Vec::new()
    }

    fn not_here(&mut self, why: &str) -> Vec<Command> {
        self.speech.line(&format!("Not in plain mode: {why}."));
        Vec::new()
    }

    fn set_view(&mut self, view: aside_core::settings::Display) -> Vec<Command> {
        self.status.view = view;
        self.speech.line(&format!("Thinking: {view}"));
        self.send(Command::View(view))
    }

    pub(super) fn asked(&mut self, question: Question) -> Vec<Command> {
        // Nobody is left who could answer.
        if matches!(self.input, Input::Ended | Input::Left) {
            let asked = words::question(&question, self.layout);
            asked.iter().take(1).for_each(|line| self.speech.line(line));
            self.speech.line("Denied: there is nobody to ask.");
            return vec![answer(&question, Permit::No(None))];
        }
        if self.questions.is_empty() {
            self.put(&question);
        }
        self.questions.push_back(question);
        Vec::new()
    }

    /// Puts the question to whoever reads.
    fn put(&mut self, question: &Question) {
        words::question(question, self.layout).iter().for_each(|line| self.speech.line(line));
        if self.typist == Typist::Pipe {
            self.speech.line("Allow?");
        }
    }

    /// The answer came before the question could be read.
    pub fn too_early(&mut self) {
        self.speech.entered();
        self.speech.line("That came too soon after the question. Read it, then answer.");
    }

    fn answer(&mut self, question: &Question, text: &str) -> Vec<Command> {
        if text.trim().eq_ignore_ascii_case("v") {
            let whole = Layout { rows: None, ..self.layout };
            words::question(question, whole).iter().for_each(|line| self.speech.line(line));
            return Vec::new();
        }
        let permit = permit(text, question.about.offered_cover().is_some());
        let (permit, rest) = match (permit, self.typist) {
            (Some(permit), _) => (permit, None),
            (None, Typist::Person) => {
                self.speech.line(&words::answers(question));
                return Vec::new();
            }
            // A line of a script that is no answer is a prompt; the tool is
            // not run on the strength of it.
            (None, Typist::Pipe) => (Permit::No(None), Some(text)),
        };
        if matches!(permit, Permit::No(_)) {
            self.speech.line("Denied.");
        }
        self.questions.pop_front();
        let mut commands = vec![answer(question, permit)];
        if let Some(next) = self.questions.front() {
            let next = next.clone();
            self.put(&next);
        }
        if let Some(rest) = rest {
            commands.extend(self.obey(rest));
        }
        commands
    }
}

fn answer(question: &Question, permit: Permit) -> Command {
    Command::Answer { id: question.id, permit }
}

/// Only these words are answers; a line meant for something else is none.
fn permit(text: &str, covers: bool) -> Option<Permit> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word.to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Permit::Once),
        "s" | "session" if covers && rest.is_empty() => Some(Permit::Session),
        "p" | "project" if covers && rest.is_empty() => Some(Permit::Project),
        "n" | "no" => Some(Permit::No((!rest.is_empty()).then(|| rest.to_owned()))),
        _ => None,
    }
}
