//! Files mentioned in a prompt: `@path`, `@"path with spaces"`, and `@@word`
//! for a literal `@word`.
//!
//! Only typed text can mention a file. Text from other sources (a paste, a
//! pipe) goes through [`escape_mentions`] first, so that it cannot send a file
//! to a provider.

use std::borrow::Cow;

/// `@name` in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention<'a> {
    /// Without the `@` and the quotes.
    pub name: &'a str,
    /// A quoted name is always a path.
    pub is_quoted: bool,
}

impl Mention<'_> {
    /// Whether this must be a path, even if the file does not exist: it is
    /// quoted, or contains a slash or a file extension.
    pub fn is_path(&self) -> bool {
        let has_ending = self.name.split('.').skip(1).any(|ending| ending.starts_with(char::is_alphabetic));
        self.is_quoted || self.name.contains('/') || has_ending
    }
}

/// A run of `@` at the start of a word, followed by text.
struct AtSignRun<'a> {
    at: usize,
    count: usize,
    rest: &'a str,
}

fn runs(text: &str) -> impl Iterator<Item = AtSignRun<'_>> {
    let mut before: Option<char> = None;
    text.char_indices().filter_map(move |(at, c)| {
        let begins = before.is_none_or(|before| before.is_whitespace() || matches!(before, '(' | '[' | ','));
        before = Some(c);
        if c != '@' || !begins {
            return None;
        }
        let from = text.get(at..)?;
        let rest = from.trim_start_matches('@');
        let is_word = rest.chars().next().is_some_and(|next| !next.is_whitespace());
        is_word.then(|| AtSignRun { at, count: from.len() - rest.len(), rest })
    })
}

/// Every `@name` of a prompt, in order.
pub fn mentions(prompt: &str) -> Vec<Mention<'_>> {
    let single = runs(prompt).filter(|run| run.count == 1);
    let mentions = single.map(|run| match run.rest.strip_prefix('"') {
        Some(quoted) => Mention { name: quoted.split_once('"').map_or(quoted, |(name, _)| name), is_quoted: true },
        None => {
            let word = run.rest.split(char::is_whitespace).next().unwrap_or("");
            // Another mention may follow a comma.
            Mention { name: word.split(",@").next().unwrap_or(word), is_quoted: false }
        }
    });
    mentions.filter(|mention| !mention.name.is_empty()).collect()
}

/// Escapes all mentions: `@name` becomes `@@name`.
pub fn escape_mentions(text: &str) -> Cow<'_, str> {
    edit(text, |out, run| {
        out.push('@');
        out.push_str(run);
    })
}

/// The same for text that follows other text. The character before decides
/// whether a word starts there.
pub fn escape_mentions_after(before: Option<char>, text: &str) -> String {
    let Some(before) = before else { return escape_mentions(text).into_owned() };
    let whole = escape_mentions(&format!("{before}{text}")).into_owned();
    whole.strip_prefix(before).map(str::to_owned).unwrap_or(whole)
}

/// The prompt as it is sent: `@@name` becomes `@name`.
pub fn unescape_mentions(prompt: &str) -> Cow<'_, str> {
    edit(prompt, |out, run| out.push_str(run.strip_prefix("@@").map_or(run, |_| run.get(1..).unwrap_or(""))))
}

/// Rewrites every run of `@`.
fn edit(text: &str, write: impl Fn(&mut String, &str)) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for AtSignRun { at, count, .. } in runs(text) {
        out.push_str(text.get(copied..at).unwrap_or(""));
        write(&mut out, text.get(at..at + count).unwrap_or(""));
        copied = at + count;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or(""));
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn l5_a_mention_begins_a_word_and_may_be_quoted() {
        #[rustfmt::skip]
        let cases: &[(&str, &[(&str, bool)])] = &[
            ("see @src/a.rs now",     &[("src/a.rs", true)]),
            ("(@a.rs) [@b.rs],@c.rs", &[("a.rs)", true), ("b.rs]", true), ("c.rs", true)]),
            ("@\"two words\" ok",     &[("two words", true)]),
            ("ask @alice",            &[("alice", false)]),
            ("@alice.",               &[("alice.", false)]),
            ("version @v1.2",         &[("v1.2", false)]),
            ("@@src/a.rs",            &[]),
            ("@@ -1,3 +1,4 @@",       &[]),
            ("me@example.com",        &[]),
            ("@ alone, @",            &[]),
            ("@\"\"",                 &[]),
        ];
        for (prompt, expected) in cases {
            let found: Vec<(&str, bool)> = mentions(prompt).iter().map(|one| (one.name, one.is_path())).collect();
            assert_eq!(found, *expected, "{prompt}");
        }
    }

    #[test]
    fn a_doubled_at_sign_is_literal() {
        assert_eq!(unescape_mentions("use @@app.route and a@@b"), "use @app.route and a@@b");
        assert_eq!(escape_mentions("@x\n@@y @ (@z"), "@@x\n@@@y @ (@@z");
        assert_eq!(unescape_mentions("@@ -1 +1 @@"), "@@ -1 +1 @@");
        assert_eq!(escape_mentions_after(Some('a'), "@b @c"), "@b @@c");
        assert_eq!(escape_mentions_after(Some(' '), "@b"), "@@b");
    }

    proptest! {
        #[test]
        fn escaped_text_mentions_no_file_and_is_sent_unchanged(text in "[@a./\" \n(,]{0,30}") {
            let escaped = escape_mentions(&text);
            prop_assert_eq!(mentions(&escaped), vec![]);
            prop_assert_eq!(unescape_mentions(&escaped), text.as_str());
        }
    }
}
