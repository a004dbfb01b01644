//! The `/help` page: keys and commands.

use aside_front::OwnCommand;
use aside_front::slash_commands::COMMANDS;

use crate::bindings::{ACTIONS, Bindings};
use crate::transcript::escape_markdown;

/// The `/help` page, generated from the tables.
pub fn help(bindings: &Bindings, own: &[OwnCommand]) -> String {
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
    for command in own {
        // A name has no letters that mean something in Markdown; a description may.
        let about = escape_markdown(&command.about);
        out.push_str(&format!("| /{} | {about} (yours) |\n", command.name));
    }
    out.push_str("\nOf your own are the files `commands/NAME.md` in the config folder: `/NAME` sends their text.\n");
    out
}

/// Keys and mouse actions that cannot be rebound.
pub const KEYS: &[(&str, &str)] = &[
    ("Up, Down", "what was sent before, in other sessions too; what still waits comes back first"),
    ("Ctrl+Y", "insert again what Ctrl+W, Ctrl+U, Ctrl+K or Alt+D deleted"),
    ("Ctrl+_ or Ctrl+/", "undo in the input; Alt+/ does it again"),
    ("!command", "run a command line yourself, unconfined; the model does not see it"),
    ("!!command", "the same, and send its output to the model"),
    ("in the reader", "/ searches, n and N go on, o lists the titles, ← and → other thoughts, y copies, q leaves"),
    ("Alt+Enter in an empty line", "while it thinks: stop thinking and answer now"),
    ("mouse wheel", "scroll"),
    ("click on a header", "open or fold the block; long output opens in two steps"),
    ("Shift and drag", "select text, as the terminal does; /mouse off does without Shift"),
    ("@", "name a file"),
];
