//! Files named in a prompt: `@path`, `@"path with spaces"`, and `@@word` for a
//! plain `@word`.
//!
//! Only what a person typed can name a file. Text that came another way (a
//! paste, a pipe) is made [`literal`] first, so that a line of it cannot send
//! a file to a provider.

use std::borrow::Cow;

/// `@name` in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention<'a> {
    pub name: &'a str,
    /// A name in quotes is a path, whatever it looks like.
    pub is_quoted: bool,
}

impl Mention<'_> {
    /// Whether it must be a path, even if no such file is there: it is quoted,
    /// or has a slash or an ending.
    pub fn is_path(&self) -> bool {
        let has_ending = self.name.split('.').skip(1).any(|ending| ending.starts_with(char::is_alphabetic));
        self.is_quoted || self.name.contains('/') || has_ending
    }
}

/// A run of `@` at the beginning of a word, with something behind it.
struct Run<'a> {
    at: usize,
    count: usize,
    rest: &'a str,
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
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
        is_word.then(|| Run { at, count: from.len() - rest.len(), rest })
    })
}

/// Every `@name` of a prompt, in order.
pub fn mentions(prompt: &str) -> Vec<Mention<'_>> {
    let single = runs(prompt).filter(|run| run.count == 1);
    let mentions = single.map(|run| match run.rest.strip_prefix('"') {
        Some(quoted) => Mention { name: quoted.split_once('"').map_or(quoted, |(name, _)| name), is_quoted: true },
        None => {
            let word = run.rest.split(char::is_whitespace).next().unwrap_or("");
            // Another one begins behind a comma.
            Mention { name: word.split(",@").next().unwrap_or(word), is_quoted: false }
        }
    });
    mentions.filter(|mention| !mention.name.is_empty()).collect()
}

/// The same words with no file named in them: `@name` becomes `@@name`.
pub fn literal(text: &str) -> Cow<'_, str> {
    edit(text, |out, run| {
        out.push('@');
        out.push_str(run);
    })
}

/// The same for text that stands behind other text, which decides whether a
/// word begins there.
pub fn literal_behind(before: Option<char>, text: &str) -> String {
    let Some(before) = before else { return literal(text).into_owned() };
    let whole = literal(&format!("{before}{text}")).into_owned();
    whole.strip_prefix(before).map(str::to_owned).unwrap_or(whole)
}

/// The prompt as it is sent: `@@name` becomes `@name`.
pub fn unescaped(prompt: &str) -> Cow<'_, str> {
    edit(prompt, |out, run| out.push_str(run.strip_prefix("@@").map_or(run, |_| run.get(1..).unwrap_or(""))))
}

/// Writes every run of `@` anew.
fn edit(text: &str, write: impl Fn(&mut String, &str)) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for Run { at, count, .. } in runs(text) {
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
    fn a_doubled_sign_is_a_plain_one() {
        assert_eq!(unescaped("use @@app.route and a@@b"), "use @app.route and a@@b");
        assert_eq!(literal("@x\n@@y @ (@z"), "@@x\n@@@y @ (@@z");
        assert_eq!(unescaped("@@ -1 +1 @@"), "@@ -1 +1 @@");
        assert_eq!(literal_behind(Some('a'), "@b @c"), "@b @@c");
        assert_eq!(literal_behind(Some(' '), "@b"), "@@b");
    }

    proptest! {
        #[test]
        fn literal_text_names_no_file_and_is_sent_as_it_was(text in "[@a./\" \n(,]{0,30}") {
            let literal = literal(&text);
            prop_assert_eq!(mentions(&literal), vec![]);
            prop_assert_eq!(unescaped(&literal), text.as_str());
        }
    }
}
