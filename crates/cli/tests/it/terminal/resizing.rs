//! Terminals of every size, and resizing.

use std::time::{Duration, Instant};

use super::test_folders::TestFolders;
use super::{DEFAULT_OPTIONS, TIMEOUT, Terminal, TerminalOptions};

/// All rows. The status, in the last row, is compared without the speed, which a
/// fresh start cannot know, and the title, for which the speed may leave no room.
fn frame(terminal: &Terminal) -> Vec<String> {
    let mut rows = terminal.lines();
    let status = rows.pop().unwrap_or_default();
    let parts = status.split(" · ").filter(|part| !part.ends_with("tok/s") && !part.starts_with("sim: "));
    rows.push(parts.collect::<Vec<_>>().join(" · "));
    rows
}

#[test]
fn t13_many_resizes_during_a_reply_end_in_the_frame_of_a_fresh_start() {
    let folder = TestFolders::new("storm");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi", "--set", "reasoning.display=full"]);
    terminal.enter("sim: thoughts 3 tokens=150 rate=150");
    terminal.see("Thinking");
    // All kinds of widths and heights; the smallest and largest follow below.
    for step in 0..100_u16 {
        let (columns, rows) = (20 + (step * 77) % 181, 5 + (step * 23) % 56);
        terminal.resize(columns, rows);
        if step % 4 == 0 {
            terminal.keys("");
        }
    }
    terminal.resize(20, 5);
    terminal.resize(200, 60);
    terminal.see("no model was called");
    terminal.idle();
    for (columns, rows) in [(200, 60), (20, 5), (80, 24)] {
        terminal.resize(columns, rows);
        let options = TerminalOptions { columns, rows, ..DEFAULT_OPTIONS };
        let mut fresh = Terminal::start(&folder, &["-c", "--fork", "--set", "reasoning.display=full"], options);
        fresh.see("❯ ask");
        // Either terminal may still have a frame to draw.
        let both = Instant::now() + TIMEOUT;
        while frame(&terminal) != frame(&fresh) && Instant::now() < both {
            terminal.pump(b"", Duration::from_millis(50));
            fresh.pump(b"", Duration::from_millis(50));
        }
        assert_eq!(frame(&terminal), frame(&fresh), "{columns}x{rows}\n{}", terminal.picture());
        for (row, (after, fresh)) in (0..rows - 1).map(|row| (row, (terminal.styles(row), fresh.styles(row)))) {
            assert_eq!(after, fresh, "{columns}x{rows}, row {row}\n{}", terminal.picture());
        }
    }
}

#[test]
fn t13_the_smallest_terminal_is_usable() {
    let folder = TestFolders::new("small");
    let mut terminal =
        Terminal::start(&folder, &["-m", "sim/kimi"], TerminalOptions { columns: 20, rows: 5, ..DEFAULT_OPTIONS });
    terminal.see("❯ ");
    terminal.enter("hi");
    terminal.see("wrote");
    terminal.idle();
    for line in terminal.lines() {
        assert!(line.chars().count() <= 20, "{line}");
    }
}
