//! A conversation as Markdown, for people to read and for us to read back.
//!
//! Comments that viewers do not show (`<!-- aside:… -->`) hold the structure,
//! so the text itself is unchanged, except that lines which look like structure
//! get a backslash, which viewers do not show either. Thinking is in folded
//! callouts with every line quoted, or between `<details>` tags in a fence
//! longer than any inside. Only the current branch is written.

mod escape;
mod read;
mod write;

pub use read::read_markdown;
pub use write::{ThinkingMarkup, left_out_of_markdown, write_markdown};

/// The first lines of every file we write.
pub(super) const OPENING: [&str; 2] = ["---", "aside: 1"];

/// The start of a callout, of a kind that Obsidian folds.
const CALLOUT: &str = "> [!thinking]";
