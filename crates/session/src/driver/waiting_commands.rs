//! Commands that arrived while something else ran, and wait for its end.

use std::collections::VecDeque;

use aside_front::{Command, ShellOutput};

/// Takes out what would run a command line or send a prompt: a user who stops what runs does not want that to begin
/// instead. Returns it as it was typed. Changes of settings and the like still wait.
pub(super) fn take_back(waiting: &mut VecDeque<Command>) -> Vec<String> {
    let mut taken = Vec::new();
    waiting.retain(|command| match typed(command) {
        Some(text) => {
            taken.push(text);
            false
        }
        None => true,
    });
    taken
}

/// Takes out the last message for a turn, if it is this one.
pub(super) fn take_message(waiting: &mut VecDeque<Command>, text: &str) -> bool {
    let last = waiting.iter().rposition(|command| matches!(command, Command::Steer(_)));
    let Some(at) = last.filter(|at| waiting.get(*at).is_some_and(|command| is_message(command, text))) else {
        return false;
    };
    waiting.remove(at).is_some()
}

fn is_message(command: &Command, text: &str) -> bool {
    matches!(command, Command::Steer(message) if message == text)
}

fn typed(command: &Command) -> Option<String> {
    if let Command::Shell { command, output } = command {
        let mark = match output {
            ShellOutput::User => "!",
            ShellOutput::Model => "!!",
        };
        return Some(format!("{mark}{command}"));
    }
    let Command::Own { name, arguments } = command else { return None };
    Some(format!("/{name} {arguments}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t20_only_the_last_waiting_message_is_taken_out() {
        let steer = |text: &str| Command::Steer(text.to_owned());
        let mut waiting = VecDeque::from([steer("one"), steer("two"), Command::Compact]);
        assert!(!take_message(&mut waiting, "one"));
        assert!(take_message(&mut waiting, "two"));
        assert!(!take_message(&mut waiting, "two"));
        assert_eq!(waiting, [steer("one"), Command::Compact]);
    }

    #[test]
    fn t16_stopping_takes_back_what_would_run_next_but_no_settings() {
        let shell = |command: &str, output| Command::Shell { command: command.to_owned(), output };
        let own = |arguments: &str| Command::Own { name: "review".to_owned(), arguments: arguments.to_owned() };
        let mut waiting = VecDeque::from([
            shell("make", ShellOutput::User),
            Command::Effort(Some("high".to_owned())),
            shell("git status", ShellOutput::Model),
            own("main.rs"),
            own(""),
        ]);
        assert_eq!(take_back(&mut waiting), ["!make", "!!git status", "/review main.rs", "/review"]);
        assert_eq!(waiting, [Command::Effort(Some("high".to_owned()))]);
    }
}
