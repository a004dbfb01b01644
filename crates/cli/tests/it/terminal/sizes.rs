//! Terminals of every size, and of sizes that change.

use std::time::{Duration, Instant};

use super::folder::Folder;
use super::{Kind, PATIENCE, Terminal, USUAL};

/// All rows; the last one, the status, without what a fresh start cannot
/// know: how fast it came. Beside that the title may find no room.
fn frame(terminal: &Terminal) -> Vec<String> {
    let mut rows = terminal.lines();
    let status = rows.pop().unwrap_or_default();
    let parts = status.split(" · ").filter(|part| !part.ends_with("tok/s") && !part.starts_with("sim: "));
    rows.push(parts.collect::<Vec<_>>().join(" · "));
    rows
}

#[test]
fn t13_a_storm_of_sizes_while_it_streams_leaves_the_frame_of_a_fresh_start() {
    let folder = Folder::new("storm");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi", "--set", "reasoning.display=full"]);
    terminal.enter("sim: thoughts 3 tokens=150 rate=150");
    terminal.see("Thinking");
    // A walk through all widths and heights, the smallest and the largest in it.
    for step in 0..100_u16 {
        let (columns, rows) = (20 + (step * 77) % 181, 5 + (step * 23) % 56);
        terminal.resize(columns, rows);
        if step % 4 == 0 {
            terminal.keys("");
        }
    }
    terminal.resize(20, 5);
    terminal.resize(200, 60);
    terminal.see("no model was asked");
    terminal.idle();
    for (columns, rows) in [(200, 60), (20, 5), (80, 24)] {
        terminal.resize(columns, rows);
        let mut fresh = Terminal::start(&folder, &["-c"], Kind { columns, rows, ..USUAL });
        fresh.see("❯ ask");
        // Either may still have a frame to draw.
        let both = Instant::now() + PATIENCE;
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
fn t13_the_smallest_terminal_can_be_written_and_read_in() {
    let folder = Folder::new("small");
    let mut terminal = Terminal::start(&folder, &["-m", "sim/kimi"], Kind { columns: 20, rows: 5, ..USUAL });
    terminal.see("❯ ");
    terminal.enter("hi");
    terminal.see("wrote");
    terminal.idle();
    for line in terminal.lines() {
        assert!(line.chars().count() <= 20, "{line}");
    }
}
