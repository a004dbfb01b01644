//! Finds the last answer, code block or thinking, and copies it.

use aside_front::{Command, TerminalAction};

use super::App;
use crate::transcript::item::TranscriptItem;
use crate::view::reader::ReaderView;

impl App {
    pub(super) fn last_item(&self, wanted: impl Fn(&TranscriptItem) -> bool) -> Option<usize> {
        self.transcript.items().iter().rposition(wanted)
    }

    pub(super) fn read_last(&mut self) {
        match self.transcript.last_read(|item| matches!(item, TranscriptItem::Thinking(_))) {
            Some(index) => self.reader = Some(ReaderView::thinking(index)),
            None => self.toast("there is no thought yet".to_owned()),
        }
    }

    pub(super) fn copy_last(&mut self, wanted: impl Fn(&TranscriptItem) -> bool, name: &str) -> Vec<Command> {
        let found =
            self.last_item(wanted).and_then(|index| self.transcript.items().get(index)).map(TranscriptItem::copy_text);
        self.copy_found(found, name)
    }

    /// Copies the last code block of the answers.
    pub(super) fn copy_code(&mut self) -> Vec<Command> {
        let answers = self.transcript.items().iter().rev().filter(|item| matches!(item, TranscriptItem::Text(_)));
        let found = answers.map(TranscriptItem::copy_text).find_map(|text| {
            let nodes = aside_markdown::parse(&text);
            aside_markdown::last_code(&nodes).map(str::to_owned)
        });
        self.copy_found(found, "code block")
    }

    fn copy_found(&mut self, found: Option<String>, name: &str) -> Vec<Command> {
        match found {
            Some(text) => {
                self.toast(format!("{name} copied"));
                vec![copy(text)]
            }
            None => {
                self.toast(format!("there is no {name} yet"));
                Vec::new()
            }
        }
    }
}

pub(super) fn copy(text: String) -> Command {
    Command::Terminal(TerminalAction::Copy(text))
}
