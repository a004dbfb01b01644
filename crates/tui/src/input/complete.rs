//! What could stand where something was begun.

use aside_core::settings::{self, Key};

use crate::commands::{COMMANDS, words_behind};
use crate::seam::{Lists, Named};

const MOST: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Popup {
    /// Where the completed part begins, in bytes of the editor's text.
    pub from: usize,
    pub options: Vec<Candidate>,
    pub picked: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub text: String,
    pub doc: String,
}

impl Popup {
    pub fn move_by(&mut self, by: isize) {
        let count = self.options.len() as isize;
        if count > 0 {
            self.picked = (self.picked as isize + by).rem_euclid(count) as usize;
        }
    }

    pub fn picked(&self) -> Option<&Candidate> {
        self.options.get(self.picked)
    }
}

/// What fits the text before the cursor. Nothing where nothing does, and
/// nothing where the word is complete already.
pub fn popup(text: &str, cursor: usize, lists: &Lists) -> Option<Popup> {
    let head = text.get(..cursor)?;
    let (from, options) = match head.strip_prefix(['/', ':']) {
        Some(line) if !head.contains('\n') => match line.split_once(' ') {
            None => (1, commands(line)),
            Some((name, typed)) => arguments(name, typed, head.len() - typed.len(), lists),
        },
        _ => mention(head, &lists.files)?,
    };
    let typed = head.get(from..)?;
    let is_done = options.iter().any(|option| option.text.trim_end() == typed);
    (!options.is_empty() && !is_done).then_some(Popup { from, options, picked: 0 })
}

fn commands(typed: &str) -> Vec<Candidate> {
    let fitting = COMMANDS.iter().filter(|entry| entry.name.starts_with(typed));
    fitting
        .map(|entry| {
            let space = if entry.takes.is_empty() { "" } else { " " };
            Candidate { text: format!("{}{space}", entry.name), doc: entry.doc.to_owned() }
        })
        .collect()
}

fn arguments(name: &str, typed: &str, at: usize, lists: &Lists) -> (usize, Vec<Candidate>) {
    let plain = |words: Vec<String>| -> Vec<Candidate> {
        words.into_iter().map(|text| Candidate { text, doc: String::new() }).collect()
    };
    match name {
        "set" => {
            // `key value` completes as `key=value` does.
            let joined = typed.replacen(' ', "=", 1);
            (at, settings::complete(&joined).into_iter().map(setting).collect())
        }
        "unset" => (at, settings::complete(typed).into_iter().map(setting).collect()),
        "model" => (at, plain(fitting(&lists.models, typed))),
        "resume" => (at, named(&lists.sessions, typed)),
        "tools" | "permissions" => match typed.split_once(' ') {
            Some((act, begun)) => {
                let names = if name == "tools" { &lists.tools } else { &lists.rules };
                let names = if words_behind(name).contains(&act) { fitting(names, begun) } else { Vec::new() };
                (at + typed.len() - begun.len(), plain(names))
            }
            None => (at, plain(starting(words_behind(name), typed))),
        },
        "profile" => match typed.split_once(' ') {
            Some((_, begun)) => (at + typed.len() - begun.len(), plain(fitting(&lists.profiles, begun))),
            None => (at, plain(starting(words_behind(name), typed))),
        },
        _ => (at, plain(starting(words_behind(name), typed))),
    }
}

fn setting(text: String) -> Candidate {
    let name = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
    let doc = name.parse::<Key>().map(|key| key.entry().doc.to_owned()).unwrap_or_default();
    Candidate { doc, text }
}

fn starting(words: &[&str], typed: &str) -> Vec<String> {
    words.iter().filter(|word| word.starts_with(typed)).map(|word| (*word).to_owned()).collect()
}

/// By their names, or by what they are about.
fn named(all: &[Named], typed: &str) -> Vec<Candidate> {
    let wanted = typed.to_lowercase();
    let fits = |one: &&Named| one.name.starts_with(typed) || one.about.to_lowercase().contains(&wanted);
    let candidate = |one: &Named| Candidate { text: one.name.clone(), doc: one.about.clone() };
    all.iter().filter(fits).take(MOST).map(candidate).collect()
}

/// Those that begin with it first, then those that have it somewhere.
fn fitting(words: &[String], typed: &str) -> Vec<String> {
    let wanted = typed.to_lowercase();
    let place = |word: &String| word.to_lowercase().find(&wanted);
    let mut found: Vec<(usize, &String)> = words.iter().filter_map(|word| Some((place(word)?, word))).collect();
    found.sort_by_key(|(at, word)| (*at != 0, word.len()));
    found.into_iter().take(MOST).map(|(_, word)| word.clone()).collect()
}

/// A file behind an `@` that begins a word.
fn mention(head: &str, files: &[String]) -> Option<(usize, Vec<Candidate>)> {
    let at = head.rfind('@')?;
    let typed = head.get(at + 1..)?;
    let begins_word = head.get(..at)?.chars().next_back().is_none_or(char::is_whitespace);
    if !begins_word || typed.contains(char::is_whitespace) {
        return None;
    }
    let options = fitting(files, typed).into_iter().map(|text| Candidate { text, doc: String::new() });
    Some((at + 1, options.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t10_what_was_begun_is_completed() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let lists = Lists {
            models: words(&["acme/small", "other/acme"]),
            profiles: words(&["work"]),
            files: words(&["src/lib.rs", "README.md"]),
            sessions: vec![Named { name: "k3f9".into(), about: "Parsing headers".into() }],
            tools: words(&["read", "shell"]),
            rules: words(&["shell:make"]),
        };
        #[rustfmt::skip]
        let cases: &[(&str, &[&str])] = &[
            ("/thi",                     &["thinking "]),
            (":thi",                     &["thinking "]),
            ("/un",                      &["undo", "unset "]),
            ("/set reasoning.eff",       &["reasoning.effort"]),
            ("/set reasoning.display=l", &["reasoning.display=live"]),
            ("/set reasoning.display l", &["reasoning.display=live"]),
            ("/model acme",              &["acme/small", "other/acme"]),
            ("/profile load w",          &["work"]),
            ("/thinking c",              &["collapsed"]),
            ("/resume head",             &["k3f9"]),
            ("/resume k3",               &["k3f9"]),
            ("/tools o",                 &["on", "off"]),
            ("/tools off sh",            &["shell"]),
            ("/permissions f",           &["forget"]),
            ("/permissions forget ",     &["shell:make"]),
            ("/record o",                &["off"]),
            ("look at @lib",             &["src/lib.rs"]),
            ("mail me@lib",              &[]),
            ("plain",                    &[]),
            ("/thinking full",           &[]),
        ];
        for (text, expected) in cases {
            let popup = popup(text, text.len(), &lists);
            let mut got: Vec<String> =
                popup.map(|popup| popup.options.into_iter().map(|one| one.text).collect()).unwrap_or_default();
            if text == &"/un" {
                got.sort();
            }
            assert_eq!(&got, expected, "{text}");
        }
    }
}
