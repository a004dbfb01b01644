//! What kind of terminal this is: how many colours, dark or light.

use std::time::Duration;

use crate::theme::{Depth, Ground, Theme};

/// How long to wait for a terminal that does not answer.
const PATIENCE: Duration = Duration::from_millis(150);

/// Asks the environment and, if it may answer, the terminal itself. To be
/// called before keys are read.
pub fn theme_of_terminal() -> Theme {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let depth = depth(&variable("NO_COLOR"), &variable("COLORTERM"), &variable("TERM"));
    let fallback = Theme { ground: ground_of_variable(&variable("COLORFGBG")), depth, ..Theme::default() };
    if variable("TERM") == "dumb" {
        return fallback;
    }
    match ask(PATIENCE).as_deref().and_then(background) {
        Some(rgb) => Theme::on(rgb, depth),
        None => fallback,
    }
}

fn depth(no_color: &str, colorterm: &str, term: &str) -> Depth {
    if !no_color.is_empty() || term == "dumb" {
        Depth::None
    } else if matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct") {
        Depth::True
    } else if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") {
        Depth::Indexed
    } else {
        Depth::Sixteen
    }
}

/// `15;0`: the colours of letters and ground, by number.
fn ground_of_variable(value: &str) -> Ground {
    match value.rsplit(';').next() {
        Some("7" | "9" | "10" | "11" | "12" | "13" | "14" | "15") => Ground::Light,
        _ => Ground::Dark,
    }
}

/// The background in an answer like `ESC ] 11 ; rgb:1e1e/1e1e/2e2e BEL`.
fn background(answer: &str) -> Option<(u8, u8, u8)> {
    let (_, colour) = answer.split_once("]11;rgb:")?;
    let mut parts = colour.split(|c: char| !c.is_ascii_hexdigit()).take(3).map(|part| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let most = 16u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        u8::try_from(value * 255 / most.max(1)).ok()
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// Asks for the background, then for the kind of terminal: every terminal
/// answers the second, so one that does not know the first is not waited for.
#[cfg(unix)]
fn ask(patience: Duration) -> Option<String> {
    use std::io::Write;

    let mut terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    let was_raw = crossterm::terminal::is_raw_mode_enabled().ok()?;
    if !was_raw {
        crossterm::terminal::enable_raw_mode().ok()?;
    }
    let asked = terminal.write_all(b"\x1b]11;?\x07\x1b[c").and_then(|()| terminal.flush());
    let answer = asked.ok().map(|()| listen(&mut terminal, patience));
    if !was_raw {
        crossterm::terminal::disable_raw_mode().ok()?;
    }
    answer
}

#[cfg(unix)]
fn listen(terminal: &mut std::fs::File, patience: Duration) -> String {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Read;
    use std::time::Instant;

    let until = Instant::now() + patience;
    let mut answer = String::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return answer };
        let ready = poll(&mut [PollFd::new(&*terminal, PollFlags::IN)], Some(&left));
        if !matches!(ready, Ok(1..)) {
            return answer;
        }
        let mut bytes = [0; 256];
        let Ok(count) = terminal.read(&mut bytes) else { return answer };
        answer.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or(&[])));
        // The answer to the second question ends in `c`, behind a `?`.
        let ended = answer.rsplit_once("\x1b[?").is_some_and(|(_, kind)| kind.contains('c'));
        if ended || count == 0 {
            return answer;
        }
    }
}

#[cfg(not(unix))]
fn ask(_patience: Duration) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_the_background_is_read_from_what_terminals_answer() {
        #[rustfmt::skip]
        let cases = [
            ("xterm",            "\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?64;1c", Some((30, 30, 46))),
            ("two digits, BEL",  "\x1b]11;rgb:ff/ff/fe\x07\x1b[?1;2c",          Some((255, 255, 254))),
            ("no answer to it",  "\x1b[?1;2c",                                  None),
            ("nothing",          "",                                            None),
            ("nonsense",         "\x1b]11;rgb:zz/1/2",                          None),
        ];
        for (name, answer, expected) in cases {
            assert_eq!(background(answer), expected, "{name}");
        }
    }

    #[test]
    fn t13_colours_follow_the_environment() {
        #[rustfmt::skip]
        let cases = [
            ("no colour wins", "1", "truecolor", "xterm-256color", Depth::None),
            ("truecolor",      "",  "truecolor", "xterm-256color", Depth::True),
            ("256",            "",  "",          "screen-256color", Depth::Indexed),
            ("plain",          "",  "",          "xterm",           Depth::Sixteen),
            ("dumb",           "",  "",          "dumb",            Depth::None),
        ];
        for (name, no_color, colorterm, term, expected) in cases {
            assert_eq!(depth(no_color, colorterm, term), expected, "{name}");
        }
        assert_eq!(ground_of_variable("0;15"), Ground::Light);
        assert_eq!(ground_of_variable("15;0"), Ground::Dark);
        assert_eq!(ground_of_variable(""), Ground::Dark);
    }
}
