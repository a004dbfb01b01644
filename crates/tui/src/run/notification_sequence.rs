//! What calls the user, as bytes for the terminal.

use aside_core::settings::Notify;

use crate::app::Notification;

/// What stands between the program and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Multiplexer {
    None,
    /// Passes on only what is marked for the terminal around it, and rings the bell itself.
    Tmux,
}

impl Multiplexer {
    pub(super) fn of_environment() -> Multiplexer {
        match std::env::var_os("TMUX").is_some_and(|socket| !socket.is_empty()) {
            true => Multiplexer::Tmux,
            false => Multiplexer::None,
        }
    }
}

/// The text has no control characters.
pub(super) fn notification_sequence(
    Notification { how, text }: &Notification,
    multiplexer: Multiplexer,
) -> Option<String> {
    // A semicolon would begin another field.
    let text = text.replace(';', ",");
    let sequence = match how {
        Notify::Off => return None,
        Notify::Bell => return Some("\x07".to_owned()),
        Notify::Osc9 => format!("\x1b]9;{text}\x07"),
        Notify::Osc777 => format!("\x1b]777;notify;aside;{text}\x07"),
    };
    Some(match multiplexer {
        Multiplexer::None => sequence,
        Multiplexer::Tmux => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t22_a_notification_passes_through_tmux() {
        #[rustfmt::skip]
        let cases = [
            (Notify::Off,    Multiplexer::Tmux, None),
            (Notify::Bell,   Multiplexer::None, Some("\x07")),
            (Notify::Bell,   Multiplexer::Tmux, Some("\x07")),
            (Notify::Osc9,   Multiplexer::None, Some("\x1b]9;done, at last\x07")),
            (Notify::Osc9,   Multiplexer::Tmux, Some("\x1bPtmux;\x1b\x1b]9;done, at last\x07\x1b\\")),
            (Notify::Osc777, Multiplexer::None, Some("\x1b]777;notify;aside;done, at last\x07")),
            (Notify::Osc777, Multiplexer::Tmux, Some("\x1bPtmux;\x1b\x1b]777;notify;aside;done, at last\x07\x1b\\")),
        ];
        for (how, multiplexer, expected) in cases {
            let notification = Notification { how, text: "done; at last".to_owned() };
            let sequence = notification_sequence(&notification, multiplexer);
            assert_eq!(sequence.as_deref(), expected, "{how:?} {multiplexer:?}");
        }
    }
}
