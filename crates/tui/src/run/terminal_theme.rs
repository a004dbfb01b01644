//! Detects the terminal's colour depth, and whether its background is dark or light.

use std::time::Duration;

use crate::theme::{ColourDepth, ColourScheme, Theme};

/// How long to wait for a terminal that does not answer.
const TIMEOUT: Duration = Duration::from_millis(150);

/// Checks the environment and, where possible, queries the terminal. Call it before keys are read.
pub fn detect_theme() -> Theme {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let depth = depth(&variable("NO_COLOR"), &variable("COLORTERM"), &variable("TERM"));
    let fallback = Theme { scheme: scheme_from_variable(&variable("COLORFGBG")), depth, ..Theme::default() };
    if variable("TERM") == "dumb" {
        return fallback;
    }
    match query_terminal(TIMEOUT).as_deref().and_then(parse_background) {
        Some(rgb) => Theme::for_background(rgb, depth),
        None => fallback,
    }
}

fn depth(no_color: &str, colorterm: &str, term: &str) -> ColourDepth {
    if !no_color.is_empty() || term == "dumb" {
        ColourDepth::None
    } else if matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct") {
        ColourDepth::True
    } else if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") {
        ColourDepth::Indexed
    } else {
        ColourDepth::Sixteen
    }
}

/// Parses `COLORFGBG`, such as `15;0`: foreground and background by number.
fn scheme_from_variable(value: &str) -> ColourScheme {
    match value.rsplit(';').next() {
        Some("7" | "9" | "10" | "11" | "12" | "13" | "14" | "15") => ColourScheme::Light,
        _ => ColourScheme::Dark,
    }
}

/// Parses the background from an answer like `ESC ] 11 ; rgb:1e1e/1e1e/2e2e BEL`.
fn parse_background(answer: &str) -> Option<(u8, u8, u8)> {
    let (_, colour) = answer.split_once("]11;rgb:")?;
    let mut parts = colour.split(|c: char| !c.is_ascii_hexdigit()).take(3).map(|part| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let most = 16u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        u8::try_from(value * 255 / most.max(1)).ok()
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// Queries the background colour, then the terminal type. Every terminal answers the second query,
/// so an unsupported first one costs no waiting.
#[cfg(unix)]
fn query_terminal(timeout: Duration) -> Option<String> {
    use std::io::Write;

    let mut terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    let was_raw = crossterm::terminal::is_raw_mode_enabled().ok()?;
    if !was_raw {
        crossterm::terminal::enable_raw_mode().ok()?;
    }
    let written = terminal.write_all(b"\x1b]11;?\x07\x1b[c").and_then(|()| terminal.flush());
    let answer = written.ok().map(|()| read_reply(&mut terminal, timeout));
    if !was_raw {
        crossterm::terminal::disable_raw_mode().ok()?;
    }
    answer
}

#[cfg(unix)]
fn read_reply(terminal: &mut std::fs::File, timeout: Duration) -> String {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Read;
    use std::time::Instant;

    let until = Instant::now() + timeout;
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
        // The answer to the second query ends in `c`, after a `?`.
        let ended = answer.rsplit_once("\x1b[?").is_some_and(|(_, kind)| kind.contains('c'));
        if ended || count == 0 {
            return answer;
        }
    }
}

#[cfg(not(unix))]
fn query_terminal(_patience: Duration) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_the_background_is_parsed_from_the_terminals_answer() {
        #[rustfmt::skip]
        let cases = [
            ("xterm",            "\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?64;1c", Some((30, 30, 46))),
            ("two digits, BEL",  "\x1b]11;rgb:ff/ff/fe\x07\x1b[?1;2c",          Some((255, 255, 254))),
            ("no answer to it",  "\x1b[?1;2c",                                  None),
            ("nothing",          "",                                            None),
            ("nonsense",         "\x1b]11;rgb:zz/1/2",                          None),
        ];
        for (name, answer, expected) in cases {
            assert_eq!(parse_background(answer), expected, "{name}");
        }
    }

    #[test]
    fn t13_colours_follow_the_environment() {
        #[rustfmt::skip]
        let cases = [
            ("no colour wins", "1", "truecolor", "xterm-256color", ColourDepth::None),
            ("truecolor",      "",  "truecolor", "xterm-256color", ColourDepth::True),
            ("256",            "",  "",          "screen-256color", ColourDepth::Indexed),
            ("plain",          "",  "",          "xterm",           ColourDepth::Sixteen),
            ("dumb",           "",  "",          "dumb",            ColourDepth::None),
        ];
        for (name, no_color, colorterm, term, expected) in cases {
            assert_eq!(depth(no_color, colorterm, term), expected, "{name}");
        }
        assert_eq!(scheme_from_variable("0;15"), ColourScheme::Light);
        assert_eq!(scheme_from_variable("15;0"), ColourScheme::Dark);
        assert_eq!(scheme_from_variable(""), ColourScheme::Dark);
    }
}
