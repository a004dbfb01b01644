//! Completion of commands, arguments and file mentions.

use aside_core::settings::{self, SettingKey};

use aside_front::slash_commands::{COMMANDS, DEFAULT_EFFORT, argument_words};
use aside_front::{CompletionLists, OwnCommand, SessionCompletion};

/// Commands whose argument is chosen from a list, which opens without one.
const PICKERS: [&str; 4] = ["model", "effort", "resume", "theme"];

/// The effort that switches thinking off.
pub(crate) const NO_EFFORT: &str = "none";

/// More than there are models or sessions to choose from.
const MAX_OPTIONS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionPopup {
    /// Where the completed part begins, in bytes of the editor's text.
    pub from: usize,
    pub options: Vec<Completion>,
    pub selected: usize,
    /// The user moved the selection.
    pub is_moved: bool,
    /// The values of one of the commands that open a list.
    pub is_picker: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    pub doc: String,
    /// When a session was used last.
    pub when: String,
    /// The folder that a session began in, if it is not this project's.
    pub folder: Option<String>,
}

impl Completion {
    fn new(text: String, doc: String) -> Completion {
        Completion { text, doc, when: String::new(), folder: None }
    }
}

impl CompletionPopup {
    pub fn move_by(&mut self, by: isize) {
        self.is_moved = true;
        let count = self.options.len() as isize;
        if count > 0 {
            self.selected = (self.selected as isize + by).rem_euclid(count) as usize;
        }
    }

    /// Moves by a page, or to an end, and stops there.
    pub fn jump_by(&mut self, by: isize) {
        self.is_moved = true;
        self.selected = self.selected.saturating_add_signed(by).min(self.options.len().saturating_sub(1));
    }

    /// Selects this value. Returns false if it is not in the list.
    pub fn select(&mut self, text: &str) -> bool {
        let at = self.options.iter().position(|option| option.text == text);
        self.selected = at.unwrap_or(self.selected);
        at.is_some()
    }

    pub fn selected(&self) -> Option<&Completion> {
        self.options.get(self.selected)
    }
}

/// The completions for the text before the cursor; `None` if nothing matches or the word is already
/// complete. The list of a picker stays open without a match.
pub fn popup(text: &str, cursor: usize, lists: &CompletionLists) -> Option<CompletionPopup> {
    let head = text.get(..cursor)?;
    let (from, options) = match head.strip_prefix(['/', ':']) {
        Some(line) if !head.contains('\n') => match line.split_once(' ') {
            None => (1, commands(line, &lists.commands)),
            Some((name, typed)) => arguments(name, typed, head.len() - typed.len(), lists),
        },
        _ => mention(head, &lists.files)?,
    };
    let typed = head.get(from..)?;
    let is_picker = PICKERS.iter().any(|name| {
        head.strip_prefix(['/', ':']).and_then(|line| line.strip_prefix(name)).is_some_and(|rest| rest.starts_with(' '))
    });
    let stays_open = is_picker && !typed.trim().is_empty();
    let is_done = options.iter().any(|option| option.text.trim_end() == typed);
    let selected = match head.starts_with("/resume ") {
        // The newest session is nearest to the input.
        true => options.len().saturating_sub(1),
        false => 0,
    };
    let is_open = !is_done && (stays_open || !options.is_empty());
    is_open.then_some(CompletionPopup { from, options, selected, is_moved: false, is_picker })
}

fn commands(typed: &str, own: &[OwnCommand]) -> Vec<Completion> {
    let built_in = COMMANDS.iter().filter(|entry| entry.name.starts_with(typed)).map(|entry| {
        let space = if entry.arguments.is_empty() { "" } else { " " };
        Completion::new(format!("{}{space}", entry.name), entry.doc.to_owned())
    });
    let own = own.iter().filter(|command| command.name.starts_with(typed));
    built_in.chain(own.map(|own| Completion::new(format!("{} ", own.name), own.about.clone()))).collect()
}

fn arguments(name: &str, typed: &str, at: usize, lists: &CompletionLists) -> (usize, Vec<Completion>) {
    let plain = |words: Vec<String>| -> Vec<Completion> {
        words.into_iter().map(|text| Completion::new(text, String::new())).collect()
    };
    match name {
        "set" => {
            // `key value` completes like `key=value`.
            let joined = typed.replacen(' ', "=", 1);
            (at, settings::complete(&joined).into_iter().map(setting).collect())
        }
        "unset" => (at, settings::complete(typed).into_iter().map(setting).collect()),
        "model" => {
            let about = |name: &String| if lists.models_without_key.contains(name) { "no key" } else { "" };
            let models = matching_models(&lists.models, typed).into_iter();
            (at, models.map(|name| Completion::new(name.clone(), about(&name).to_owned())).collect())
        }
        "effort" => (at, efforts(&lists.efforts, typed)),
        "resume" => (at, matching_sessions(&lists.sessions, typed)),
        "tools" | "permissions" => match typed.split_once(' ') {
            Some((act, begun)) => {
                let names = if name == "tools" { &lists.tools } else { &lists.rules };
                let names = if argument_words(name).contains(&act) { matching(names, begun) } else { Vec::new() };
                (at + typed.len() - begun.len(), plain(names))
            }
            None => (at, plain(with_prefix(argument_words(name), typed))),
        },
        "profile" => match typed.split_once(' ') {
            Some((_, begun)) => (at + typed.len() - begun.len(), plain(matching(&lists.profiles, begun))),
            None => (at, plain(with_prefix(argument_words(name), typed))),
        },
        _ => (at, plain(with_prefix(argument_words(name), typed))),
    }
}

/// The levels of the model, and how to leave them; nothing if the model has no levels.
fn efforts(levels: &[String], typed: &str) -> Vec<Completion> {
    if levels.is_empty() {
        return Vec::new();
    }
    let others = [(DEFAULT_EFFORT, "what the settings and the model say"), (NO_EFFORT, "no thinking")];
    let levels = levels.iter().map(|level| (level.as_str(), ""));
    let levels = levels.filter(|(level, _)| others.iter().all(|(other, _)| level != other));
    let all = others.into_iter().chain(levels).filter(|(word, _)| word.starts_with(typed));
    all.map(|(word, doc)| Completion::new(word.to_owned(), doc.to_owned())).collect()
}

fn setting(text: String) -> Completion {
    let name = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
    let doc = name.parse::<SettingKey>().map(|key| key.info().doc.to_owned()).unwrap_or_default();
    Completion::new(text, doc)
}

fn with_prefix(words: &[&str], typed: &str) -> Vec<String> {
    words.iter().filter(|word| word.starts_with(typed)).map(|word| (*word).to_owned()).collect()
}

/// Matches sessions by id, description or folder.
fn matching_sessions(all: &[SessionCompletion], typed: &str) -> Vec<Completion> {
    let wanted = typed.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    let fits = |one: &&SessionCompletion| {
        one.name.starts_with(typed) || has(&one.about) || one.folder.as_deref().is_some_and(has)
    };
    let candidate = |one: &SessionCompletion| Completion {
        when: one.when.clone(),
        folder: one.folder.clone(),
        ..Completion::new(one.name.clone(), one.about.clone())
    };
    let mut found: Vec<Completion> = all.iter().filter(fits).take(MAX_OPTIONS).map(candidate).collect();
    found.reverse();
    found
}

/// How well a model fits what is typed, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ModelFit {
    /// It is the model's name.
    Name,
    /// The provider or the name begins with it.
    Beginning,
    Inside,
}

/// The models that have all words that are typed. Among those that fit equally well the order of the list stays, because
/// those that can be used come first in it.
fn matching_models(models: &[String], typed: &str) -> Vec<String> {
    let wanted = typed.trim().to_lowercase();
    let is_of_it =
        |model: &String| model.to_lowercase().split_once('/').is_some_and(|(provider, _)| provider == wanted);
    let is_provider = models.iter().any(is_of_it);
    let fit = |model: &String| {
        let model = model.to_lowercase();
        let is_start = |(at, _): (usize, &str)| at == 0 || model.as_bytes().get(at - 1) == Some(&b'/');
        if !is_provider && model.split_once('/').is_some_and(|(_, name)| name == wanted) {
            Some(ModelFit::Name)
        } else if model.match_indices(&wanted).any(is_start) {
            Some(ModelFit::Beginning)
        } else {
            wanted.split_whitespace().all(|word| model.contains(word)).then_some(ModelFit::Inside)
        }
    };
    let mut found: Vec<(ModelFit, &String)> = models.iter().filter_map(|model| Some((fit(model)?, model))).collect();
    found.sort_by_key(|(fit, _)| *fit);
    found.into_iter().take(MAX_OPTIONS).map(|(_, model)| model.clone()).collect()
}

/// Prefix matches first, then matches inside the word.
fn matching(words: &[String], typed: &str) -> Vec<String> {
    let wanted = typed.to_lowercase();
    let position = |word: &String| word.to_lowercase().find(&wanted);
    let mut found: Vec<(usize, &String)> = words.iter().filter_map(|word| Some((position(word)?, word))).collect();
    // Without a filter, the order of the list says which ones are most useful.
    if !wanted.is_empty() {
        found.sort_by_key(|(at, word)| (*at != 0, word.len()));
    }
    found.into_iter().take(MAX_OPTIONS).map(|(_, word)| word.clone()).collect()
}

/// A file path after an `@` that begins a word.
fn mention(head: &str, files: &[String]) -> Option<(usize, Vec<Completion>)> {
    let at = head.rfind('@')?;
    let typed = head.get(at + 1..)?;
    let begins_word = head.get(..at)?.chars().next_back().is_none_or(char::is_whitespace);
    if !begins_word || typed.contains(char::is_whitespace) {
        return None;
    }
    let options = matching(files, typed).into_iter().map(|text| Completion::new(text, String::new()));
    Some((at + 1, options.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t19_a_filter_keeps_the_models_that_can_be_used_first() {
        let models = ["acme/deep", "sim/wide-deep", "sim/deep", "deep/one", "sim/other"].map(str::to_owned);
        assert_eq!(matching_models(&models, "Deep"), ["acme/deep", "sim/deep", "deep/one", "sim/wide-deep"]);
        assert_eq!(matching_models(&models, ""), models);
        assert!(matching_models(&models, "none").is_empty());
        assert_eq!(matching_models(&models, "deep sim"), ["sim/wide-deep", "sim/deep"], "words in any order");
        let versions = ["acme/deep-2.1", "acme/deep-2", "beta/deep-2"].map(str::to_owned);
        assert_eq!(
            matching_models(&versions, "deep-2"),
            ["acme/deep-2", "beta/deep-2", "acme/deep-2.1"],
            "the name first"
        );
    }

    #[test]
    fn t10_partial_input_is_completed() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let lists = CompletionLists {
            models: words(&["acme/small", "other/acme"]),
            models_without_key: Vec::new(),
            profiles: words(&["work"]),
            files: words(&["src/lib.rs", "README.md"]),
            sessions: vec![SessionCompletion {
                name: "k3f9".into(),
                about: "Parsing headers".into(),
                ..SessionCompletion::default()
            }],
            tools: words(&["read", "shell"]),
            rules: words(&["shell:make"]),
            efforts: words(&["low", "high"]),
            commands: vec![OwnCommand { name: "review".into(), about: "Review a file".into() }],
        };
        #[rustfmt::skip]
        let cases: &[(&str, &[&str])] = &[
            ("/thi",                     &["thinking "]),
            (":thi",                     &["thinking "]),
            ("/rev",                     &["review "]),
            ("/un",                      &["undo ", "unset "]),
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
            ("/effort ",                 &["default", "none", "low", "high"]),
            ("/effort m",                &[]),
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
