//! The history of sent prompts, for the arrow keys.

use std::collections::HashSet;

#[derive(Debug, Default)]
pub struct PromptHistory {
    sent: Vec<String>,
    /// The position while browsing.
    at: Option<usize>,
    /// The text that was in the editor before browsing.
    draft: String,
}

impl PromptHistory {
    pub fn new(sent: Vec<String>) -> PromptHistory {
        PromptHistory { sent, ..PromptHistory::default() }
    }

    /// Adds older prompts. The browsing position stays.
    pub fn prepend(&mut self, earlier: Vec<String>) {
        let mut seen: HashSet<String> = self.sent.iter().cloned().collect();
        let mut fresh: Vec<String> = earlier.into_iter().rev().filter(|text| seen.insert(text.clone())).collect();
        fresh.reverse();
        self.at = self.at.map(|at| at + fresh.len());
        fresh.append(&mut self.sent);
        self.sent = fresh;
    }

    /// A repeated prompt is kept once, at its latest position.
    pub fn push(&mut self, text: &str) {
        self.at = None;
        self.sent.retain(|sent| sent != text);
        self.sent.push(text.to_owned());
    }

    pub fn back(&mut self, written: &str) -> Option<&str> {
        let at = match self.at {
            None => self.sent.len().checked_sub(1)?,
            Some(at) => at.checked_sub(1)?,
        };
        if self.at.is_none() {
            self.draft = written.to_owned();
        }
        self.at = Some(at);
        self.sent.get(at).map(String::as_str)
    }

    pub fn forward(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        if at < self.sent.len() {
            self.at = Some(at);
            return self.sent.get(at).map(String::as_str);
        }
        self.at = None;
        Some(&self.draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t10_history_goes_back_and_returns_to_the_draft() {
        let mut history = PromptHistory::default();
        for text in ["one", "two", "two"] {
            history.push(text);
        }
        assert_eq!(history.back("dra"), Some("two"));
        assert_eq!(history.back("two"), Some("one"));
        assert_eq!(history.back("one"), None);
        assert_eq!(history.forward(), Some("two"));
        assert_eq!(history.forward(), Some("dra"));
        assert_eq!(history.forward(), None);
    }

    #[test]
    fn t10_prompts_of_earlier_sessions_come_first_without_duplicates() {
        let mut history = PromptHistory::default();
        history.push("mine");
        assert_eq!(history.back(""), Some("mine"));
        history.prepend(["old", "mine", "again", "old"].map(str::to_owned).to_vec());
        assert_eq!(history.back("mine"), Some("old"), "browsing continues from its position");
        assert_eq!(history.back("old"), Some("again"));
        assert_eq!(history.back("again"), None);
        history.push("again");
        assert_eq!(history.sent, ["old", "mine", "again"]);
    }
}
