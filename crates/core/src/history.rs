//! The history of a conversation: an append-only log whose entries refer to
//! their parents. A fork, an undo or a retry only moves the head; the abandoned
//! branch is kept.

use std::sync::Arc;

use crate::message::{Message, Role};
use crate::turn::TurnEnd;

/// A position in the log. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub usize);

/// One message in the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Its external name, if it has one.
    pub name: Option<String>,
    /// The message before it on its branch. None for the first one.
    pub parent: Option<EntryId>,
    /// Shared, so that work on another thread needs no copy.
    pub message: Arc<Message>,
}

/// All messages of a conversation, and the branch that is current.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<HistoryEntry>,
    head: Option<EntryId>,
    version: u64,
}

/// Compares messages and head, not the version.
impl PartialEq for History {
    fn eq(&self, other: &History) -> bool {
        (&self.entries, self.head) == (&other.entries, other.head)
    }
}

/// An id that belongs to another history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no entry {0} in this history of {1}")]
pub struct NoSuchEntry(usize, usize);

impl History {
    /// A history without messages.
    pub fn new() -> History {
        History::default()
    }

    /// Appends to the current branch.
    pub fn append(&mut self, message: impl Into<Arc<Message>>) -> EntryId {
        let parent = self.head;
        self.insert(None, parent, message)
    }

    /// Appends below any entry, with an external name for the message, and moves the head to the new one.
    pub fn append_named(
        &mut self,
        name: Option<String>,
        parent: Option<EntryId>,
        message: Message,
    ) -> Result<EntryId, NoSuchEntry> {
        self.check(parent)?;
        Ok(self.insert(name, parent, message))
    }

    pub(crate) fn insert(
        &mut self,
        name: Option<String>,
        parent: Option<EntryId>,
        message: impl Into<Arc<Message>>,
    ) -> EntryId {
        let id = EntryId(self.entries.len());
        self.entries.push(HistoryEntry { name, parent, message: message.into() });
        self.head = Some(id);
        self.version += 1;
        id
    }

    /// Continues from an earlier entry. Later entries stay in the log.
    pub fn fork(&mut self, at: Option<EntryId>) -> Result<(), NoSuchEntry> {
        self.check(at)?;
        if self.head != at {
            self.head = at;
            self.version += 1;
        }
        Ok(())
    }

    /// Moves the head before the last user message of the branch. Returns the
    /// undone message, if any.
    pub fn undo(&mut self) -> Option<EntryId> {
        let last = self.last_user()?;
        self.head = self.entries.get(last.0).and_then(|entry| entry.parent);
        self.version += 1;
        Some(last)
    }

    /// Moves the head to the last user message, to have it answered again.
    pub fn retry(&mut self) -> Option<EntryId> {
        let last = self.last_user()?;
        self.head = Some(last);
        self.version += 1;
        Some(last)
    }

    /// Notes with the last message of the branch how its turn ended.
    pub fn end_turn(&mut self, end: &TurnEnd) {
        let last = self.head.and_then(|EntryId(at)| self.entries.get_mut(at));
        if let Some(last) = last.filter(|_| end.is_kept()) {
            Arc::make_mut(&mut last.message).set_turn_end(end);
            self.version += 1;
        }
    }

    /// The last message of the current branch. None if it is empty.
    pub fn head(&self) -> Option<EntryId> {
        self.head
    }

    /// The entry with this id, on any branch.
    pub fn get(&self, id: EntryId) -> Option<&HistoryEntry> {
        self.entries.get(id.0)
    }

    /// All messages of all branches, in the order they were added.
    pub fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    /// The current branch, oldest first.
    pub fn branch(&self) -> Vec<(EntryId, &Message)> {
        self.branch_entries().into_iter().map(|(id, entry)| (id, entry.message.as_ref())).collect()
    }

    /// The messages of the current branch, shared instead of copied.
    pub fn shared_branch(&self) -> Vec<Arc<Message>> {
        self.branch_entries().into_iter().map(|(_, entry)| Arc::clone(&entry.message)).collect()
    }

    fn branch_entries(&self) -> Vec<(EntryId, &HistoryEntry)> {
        let mut branch = Vec::new();
        let mut next = self.head;
        while let Some(id) = next {
            let Some(entry) = self.entries.get(id.0) else { break };
            branch.push((id, entry));
            next = entry.parent;
        }
        branch.reverse();
        branch
    }

    /// Changes with every modification, for use as a cache key.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn last_user(&self) -> Option<EntryId> {
        self.branch().into_iter().rev().find(|(_, message)| message.begins_turn()).map(|(id, _)| id)
    }

    fn check(&self, id: Option<EntryId>) -> Result<(), NoSuchEntry> {
        match id {
            Some(EntryId(at)) if at >= self.entries.len() => Err(NoSuchEntry(at, self.entries.len())),
            _ => Ok(()),
        }
    }
}

/// Whether a message belongs to finished work or to the open tool loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStatus {
    /// Before the last user message, or in a turn that was answered.
    Past,
    /// A step of the turn whose tool results are sent next.
    OpenLoop,
}

/// A branch divided into user turns. A turn is a user message and every step up
/// to the next one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Turns {
    /// The turn of each message, starting at 0. Messages before the first user
    /// message belong to turn 0.
    pub turn_of: Vec<usize>,
    /// The status of each message.
    pub status_of: Vec<TurnStatus>,
}

impl Turns {
    /// Divides a branch, given oldest first.
    pub fn of(messages: &[&Message]) -> Turns {
        let mut turn_of = Vec::with_capacity(messages.len());
        let mut turn = 0;
        let mut last_user = None;
        for (at, message) in messages.iter().enumerate() {
            if message.role == Role::User {
                turn += usize::from(last_user.is_some());
                last_user = Some(at);
            }
            turn_of.push(turn);
        }
        // The loop is open if the last message is a tool result.
        let open = messages.last().is_some_and(|message| message.role == Role::Tool);
        let status_of =
            (0..messages.len())
                .map(|at| {
                    if open && last_user.is_none_or(|user| at > user) { TurnStatus::OpenLoop } else { TurnStatus::Past }
                })
                .collect();
        Turns { turn_of, status_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, Text};

    fn say(role: Role, text: &str) -> Message {
        Message::new(role, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])
    }

    fn texts(history: &History) -> String {
        let text = |message: &Message| match message.blocks.first() {
            Some(Block::Text(text)) => text.text.clone(),
            _ => String::new(),
        };
        history.branch().iter().map(|(_, message)| text(message)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn h5_forks_undo_and_retry_lose_nothing() {
        let mut history = History::new();
        let first = history.append(say(Role::User, "q1"));
        history.append(say(Role::Assistant, "a1"));
        history.append(say(Role::User, "q2"));
        history.append(say(Role::Assistant, "a2"));
        assert_eq!(texts(&history), "q1 a1 q2 a2");
        history.retry();
        history.append(say(Role::Assistant, "a2'"));
        assert_eq!(texts(&history), "q1 a1 q2 a2'");
        history.undo();
        assert_eq!(texts(&history), "q1 a1");
        history.fork(Some(first)).expect("it is there");
        history.append(say(Role::Assistant, "a1'"));
        assert_eq!(texts(&history), "q1 a1'");
        assert_eq!(history.entries().len(), 6, "every branch is still there");
        assert!(history.fork(Some(EntryId(6))).is_err());
    }

    #[test]
    fn every_change_has_its_own_version() {
        let mut history = History::new();
        let before = history.version();
        history.append(say(Role::User, "q"));
        assert_ne!(history.version(), before);
        let before = history.version();
        history.fork(history.head()).expect("it is there");
        assert_eq!(history.version(), before, "going where we are changes nothing");
    }

    #[test]
    fn tool_results_start_no_turn_and_keep_the_loop_open() {
        use Role::{Assistant, System, Tool, User};
        #[rustfmt::skip]
        let cases: &[(&str, &[Role], &[usize], &str)] = &[
            ("one answer",   &[User, Assistant],                                    &[0, 0],             ".."),
            ("open loop",    &[User, Assistant, Tool],                              &[0, 0, 0],          ".oo"),
            ("closed loop",  &[User, Assistant, Tool, Assistant],                   &[0, 0, 0, 0],       "...."),
            ("second turn",  &[System, User, Assistant, User, Assistant, Tool],     &[0, 0, 0, 1, 1, 1], "....oo"),
            ("next question", &[User, Assistant, Tool, User],                       &[0, 0, 0, 1],       "...."),
        ];
        for (name, roles, turns, places) in cases {
            let messages: Vec<Message> = roles.iter().map(|role| say(*role, "x")).collect();
            let messages: Vec<&Message> = messages.iter().collect();
            let got = Turns::of(&messages);
            let drawn: String =
                got.status_of.iter().map(|place| if *place == TurnStatus::OpenLoop { 'o' } else { '.' }).collect();
            assert_eq!((got.turn_of.as_slice(), drawn.as_str()), (*turns, *places), "{name}");
        }
    }
}
