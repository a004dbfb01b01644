//! Titles of sessions.

use crate::json_text::split_within;

const MAX_TITLE_CHARS: usize = 60;

/// The first line of a text that is not blank, cut at a word.
pub fn title_of_text(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    // A line may be megabytes long; a title needs only its beginning.
    let (line, _) = split_within(line, 16 * MAX_TITLE_CHARS);
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= MAX_TITLE_CHARS {
        return Some(line);
    }
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    let at_word = cut.rsplit_once(' ').map(|(before, _)| before).filter(|before| before.chars().count() > 20);
    Some(format!("{}…", at_word.unwrap_or(&cut)))
}
