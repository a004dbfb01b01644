//! The `/help` page: keys and commands.

use aside_front::slash_commands::COMMANDS;

use crate::bindings::{ACTIONS, Bindings};

/// The `/help` page, generated from the tables.
pub fn help(bindings: &Bindings) -> String {
    // Two columns only: a third would leave no room for text on a narrow screen.
    let mut out = String::from("**Keys**\n\n| key | does (name in `[keys]`) |\n|---|---|\n");
    for entry in ACTIONS {
        let keys = bindings.keys_text(entry.action);
        let keys = if keys.is_empty() { "none" } else { keys.as_str() };
        out.push_str(&format!("| {keys} | {} ({}) |\n", entry.doc, entry.name));
    }
    for (key, does) in KEYS {
        out.push_str(&format!("| {key} | {does} |\n"));
    }
    out.push_str("\n**Commands**\n\n| command | does |\n|---|---|\n");
    for entry in COMMANDS {
        let arguments = entry.arguments.replace('|', "\\|");
        let name = format!("/{} {arguments}", entry.name);
        out.push_str(&format!("| {} | {} |\n", name.trim_end(), entry.doc));
    }
    out
}

/// Keys and mouse actions that cannot be rebound.
pub const KEYS: &[(&str, &str)] = &[
    ("Up, Down", "what was sent before, in other sessions too; what is queued comes back first"),
    ("in the reader", "/ searches, n and N go on, o lists the titles, ← and → other thoughts, y copies, q leaves"),
    ("Alt+Enter in an empty line", "while it thinks: stop thinking and answer now"),
    ("mouse wheel", "scroll"),
    ("click on a header", "open or fold the block; long output opens in two steps"),
    ("Shift and drag", "select text, as the terminal does; /mouse off does without Shift"),
    ("@", "name a file"),
];
