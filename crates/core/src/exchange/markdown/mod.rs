//! A conversation as Markdown: for people, and still readable by us.
//!
//! Structure is said in comments that no viewer shows (`<!-- aside:… -->`), so
//! the text itself is untouched but for lines that could be taken for ours;
//! those get a backslash, which viewers do not show either. Thoughts stand in
//! folded callouts with every line quoted, or between `<details>` tags in a
//! fence longer than any inside. Only the current branch is written.

mod read;
mod safe;
mod write;

pub use read::read_markdown;
pub use write::{ThinkingAs, left_out_of_markdown, write_markdown};

/// The first lines of every file we write.
pub(super) const OPENING: [&str; 2] = ["---", "aside: 1"];

/// What a callout begins with: the kind Obsidian folds.
const CALLOUT: &str = "> [!thinking]";
