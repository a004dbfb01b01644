//! The titles of thinking: lines that are entirely bold, in summaries and elsewhere.

use aside_core::block::SummaryItem;

/// A longer line cannot be a title.
const MAX_LINE: usize = 200;

/// Reads the title of thinking while it streams.
#[derive(Debug, Clone, Default)]
pub struct TitleReader {
    title: Option<String>,
    first: Option<String>,
    /// The title belongs to the previous item; this item has none yet.
    is_stale: bool,
    line: String,
}

impl TitleReader {
    pub fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece.trim_end_matches('\n'));
            if let Some(title) = title_line(&self.line) {
                self.title = Some(title.to_owned());
                self.first.get_or_insert_with(|| title.to_owned());
                self.is_stale = false;
            }
            // Text came first, so this item has no title.
            let is_words = !self.line.trim_start().is_empty() && !self.line.trim_start().starts_with('*');
            if self.is_stale && (is_words || piece.ends_with('\n') && !self.line.trim().is_empty()) {
                self.title = None;
                self.is_stale = false;
            }
            if piece.ends_with('\n') {
                self.line.clear();
            } else if self.line.len() > MAX_LINE {
                // Drops the start of the line, but keeps it from looking like a title.
                self.line = "-".repeat(MAX_LINE / 2);
            }
        }
    }

    /// A summary item begins.
    pub fn item(&mut self) {
        self.is_stale = true;
    }

    /// The title of what is being thought now.
    pub fn current(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The first title in the text.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }
}

/// The first title in a whole text.
pub fn first_title(text: &str) -> Option<&str> {
    text.lines().find_map(title_line)
}

/// The title, if the line is nothing but a title.
fn title_line(line: &str) -> Option<&str> {
    let item = SummaryItem::parse(line);
    item.title.filter(|_| item.content.is_empty() && line.trim_end().ends_with("**"))
}

/// The first line with text, without Markdown markers.
pub fn first_words(text: &str) -> String {
    let bare = |line: &str| {
        let line = line.trim_start_matches(['#', '>', '-', '+', ' ', '\t']);
        line.chars().filter(|c| !matches!(c, '*' | '`')).collect::<String>().trim().to_owned()
    };
    text.lines().map(bare).find(|line| !line.is_empty()).unwrap_or_default()
}
