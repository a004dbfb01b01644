//! The replies to commands on the screen: lines, tables and Markdown pages.

use aside_core::block::{Block, Text, Thinking, ThinkingContent};
use aside_core::message::Message;
use aside_core::rules::{Decision, EgressAction};
use aside_core::settings::{SettingKey, Settings};
use aside_front::{Command, CommandOutput, DecisionRow, SessionCompletion};
use aside_store::SessionId;
use aside_store::search::{HitCount, HitList, SearchHit, takes_star};
use aside_store::session::{BranchLength, SessionSummary};
use aside_store::usage::UsageRow;

use crate::error::HintedError;
use crate::settings::on_one_line;
use crate::stored_session::other_folder;
use crate::times;
use aside_core::counted::counted;

pub(super) fn line(text: impl Into<String>) -> CommandOutput {
    CommandOutput::Line(text.into())
}

pub(super) fn error(error: &HintedError) -> CommandOutput {
    CommandOutput::Error { what: error.to_string(), hint: error.hint_text().map(str::to_owned) }
}

/// The title for a command's reply, if the reply needs one.
pub(super) fn title(command: &Command) -> Option<String> {
    match command {
        Command::Other { name, rest } => Some(format!("/{name} {rest}").trim_end().to_owned()),
        Command::Query(None) => Some("/set".to_owned()),
        Command::Diff(None) => Some("/diff".to_owned()),
        Command::Diff(Some(file)) => Some(format!("/diff {file}")),
        // The reply is a self-explanatory line, or there is none.
        Command::Query(Some(_))
        | Command::Prompt(_)
        | Command::PromptWith { .. }
        | Command::Steer(_)
        | Command::TakeBack(_)
        | Command::RefreshBranch(_)
        | Command::Mode(_)
        | Command::Interrupt
        | Command::AnswerNow
        | Command::Answer { .. }
        | Command::Set { .. }
        | Command::Unset(_)
        | Command::View(_)
        | Command::Profile(_)
        | Command::Model(_)
        | Command::Effort(_)
        | Command::Compact
        | Command::Fork
        | Command::Undo
        | Command::UndoOnly { .. }
        | Command::Redo
        | Command::Retry
        | Command::Export(_)
        | Command::Own { .. }
        | Command::Shell { .. }
        | Command::Theme(_)
        | Command::Mouse(_)
        | Command::ListModels
        | Command::Terminal(_)
        | Command::Quit => None,
    }
}

/// Puts the command above a page; a line needs no title.
pub(super) fn titled(title: Option<String>, output: CommandOutput) -> CommandOutput {
    match (title, output) {
        (Some(command), page @ (CommandOutput::Table { .. } | CommandOutput::Markdown(_))) => {
            CommandOutput::Titled { command, page: Box::new(page) }
        }
        (_, output) => output,
    }
}

/// How much of a thinking block the decision table quotes.
const QUOTED_CHARS: usize = 40;

/// A small copy of a message for the decision table: its blocks with the first
/// words of thinking. The full message may have megabytes.
pub(crate) fn excerpt(message: &Message) -> Message {
    let block = |block: &Block| match block {
        Block::Thinking(thinking) => {
            let text = thinking.text().chars().take(QUOTED_CHARS).collect();
            Block::Thinking(Thinking::new(ThinkingContent::Open { text }, String::new()))
        }
        Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
            Block::Text(Text { text: String::new(), seal: None, native: None, extra: Default::default() })
        }
    };
    Message::new(message.role, message.blocks.iter().map(block).collect())
}

/// The word for what a request does with a block.
pub fn decision_action(action: EgressAction) -> &'static str {
    action.as_str()
}

/// The decisions about thinking blocks, fillers, and blocks left out.
pub(crate) fn decision_rows(messages: &[Message], decisions: &[Decision]) -> Vec<DecisionRow> {
    let is_shown = |decision: &&Decision| {
        let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
        decision.block.is_none()
            || decision.action == EgressAction::Dropped
            || matches!(block, Some(Block::Thinking(_)))
    };
    let row = |decision: &Decision| {
        let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
        let what = match block {
            Some(Block::Thinking(thinking)) => {
                let words: String = thinking.text().chars().take(QUOTED_CHARS).collect();
                format!("message {}: thinking \"{}\"", decision.message, words.replace('\n', " "))
            }
            Some(_) => format!("message {}", decision.message),
            None => format!("message {}: no thinking", decision.message),
        };
        let Decision { message, block, .. } = *decision;
        DecisionRow {
            message,
            block,
            what,
            action: decision_action(decision.action).to_owned(),
            why: decision.reason.rule(),
        }
    };
    decisions.iter().filter(is_shown).map(row).collect()
}

/// A setting with its value and layer; all settings without a key.
pub(super) fn settings(settings: &Settings, key: Option<&str>) -> Result<CommandOutput, HintedError> {
    let keys: Vec<SettingKey> = match key {
        Some(name) => vec![name.parse::<SettingKey>().map_err(|error| crate::settings::setting_error(&error))?],
        None => SettingKey::ALL.to_vec(),
    };
    let row = |key: &SettingKey| {
        let (value, layer) = match settings.get(*key) {
            Some((value, layer)) => (on_one_line(value), layer.as_str().to_owned()),
            None => ("not set".to_owned(), String::new()),
        };
        vec![key.name().to_owned(), value, layer]
    };
    let head = ["setting", "value", "from"].map(str::to_owned).to_vec();
    Ok(CommandOutput::Table { head, rows: keys.iter().map(row).collect() })
}

/// A list of sessions with their numbers of prompts; those of another project than `root` with their folder.
pub(super) fn sessions(
    sessions: &[SessionSummary],
    lengths: &[BranchLength],
    root: &str,
    current: Option<&SessionId>,
) -> CommandOutput {
    if sessions.is_empty() {
        return line("there is no session yet");
    }
    let item = |(at, (session, length)): (usize, (&SessionSummary, &BranchLength))| {
        let title = escape_markdown(session.title.as_deref().unwrap_or("without a title"));
        let model = session.model.as_deref().map(|model| format!(" · {}", escape_markdown(model))).unwrap_or_default();
        let SessionSummary { id, changed, .. } = session;
        let changed = escape_markdown(&times::local(*changed));
        let prompts = counted(length.n_prompts, "prompt");
        let folder = other_folder(session, root).map(|folder| format!(" · in {}", escape_markdown(folder)));
        let mark = if current == Some(id) { "**current** · " } else { "" };
        format!("{}. **{title}**\n   {mark}{changed} · {prompts}{model} · {id}{}\n", at + 1, folder.unwrap_or_default())
    };
    let items: String = sessions.iter().zip(lengths).enumerate().map(item).collect();
    // Above the list: the end of a long one is below the screen.
    CommandOutput::Markdown(format!("/resume NUMBER continues one\n\n{items}"))
}

/// A session as a completion entry, with its folder if it belongs to another project than
/// `root`.
pub(super) fn completion_entry(session: SessionSummary, root: &str) -> SessionCompletion {
    let folder = other_folder(&session, root).map(str::to_owned);
    let (name, when) = (session.id.to_string(), times::local(session.changed));
    SessionCompletion { name, about: session.title.unwrap_or_default(), when, folder }
}

/// Escapes text so that Markdown shows it literally.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => out.push(' '),
            _ => {
                if letter.is_ascii_punctuation() {
                    out.push('\\');
                }
                out.push(letter);
            }
        }
    }
    out
}

/// Why a search may have found nothing, and what to try instead. `aside search` says the same.
pub fn nothing_found(words: &str) -> String {
    const RULE: &str = "nothing was found; only whole words match, and accents count";
    let longest =
        words.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).max_by_key(|word| word.len());
    let may_be_longer = |word: &&str| word.chars().count() > 2 && !words.contains('*') && takes_star(word);
    match longest.filter(may_be_longer) {
        Some(word) => format!("{RULE}; {word}* also finds longer words that start with it"),
        None => RULE.to_owned(),
    }
}

pub(super) fn search_hits(found: &HitList, words: &str) -> CommandOutput {
    if found.hits.is_empty() {
        return line(nothing_found(words));
    }
    let item = |(at, hit): (usize, &SearchHit)| {
        let title = escape_markdown(hit.title.as_deref().unwrap_or("without a title"));
        let when = hit.at.map(|at| format!(" · {}", escape_markdown(&times::local(at)))).unwrap_or_default();
        let gone = if hit.is_current { "" } else { " (*undone or summarised*)" };
        format!("{}. {}\n   {}{gone} in {title}{when}\n", at + 1, highlight_matches(hit), hit.kind.as_str())
    };
    let items: String = found.hits.iter().enumerate().map(item).collect();
    // Above the list: the end of a long one is below the screen.
    CommandOutput::Markdown(format!("{}, /open NUMBER goes there\n\n{items}", hit_count(found)))
}

/// The number of hits that are listed, and of all.
fn hit_count(found: &HitList) -> String {
    let shown = found.hits.len();
    match found.count {
        HitCount::Exactly(count) if count == shown => counted(count as u64, "hit"),
        HitCount::Exactly(count) => format!("{shown} of {count} hits"),
        HitCount::AtLeast(count) => format!("{shown} of more than {count} hits"),
    }
}

/// The snippet with its matches in bold.
fn highlight_matches(hit: &SearchHit) -> String {
    let mut out = String::new();
    let mut from = 0;
    for mark in &hit.marks {
        out.push_str(&escape_markdown(hit.snippet.get(from..mark.start).unwrap_or_default()));
        out.push_str(&format!("**{}**", escape_markdown(hit.snippet.get(mark.clone()).unwrap_or_default())));
        from = mark.end;
    }
    out.push_str(&escape_markdown(hit.snippet.get(from..).unwrap_or_default()));
    out
}

pub(super) fn usage(lines: &[UsageRow]) -> CommandOutput {
    if lines.is_empty() {
        return line("no usage recorded yet");
    }
    let row = |line: &UsageRow| {
        let figure = |tokens| crate::usage::token_count(tokens);
        vec![
            crate::usage::group_name(&line.group),
            line.n_replies.to_string(),
            figure(line.input),
            figure(line.thinking),
            figure(line.answer),
            crate::usage::cost_text(line.cost),
        ]
    };
    let head = ["model", "replies", "input", "thinking", "answer", "cost"].map(str::to_owned).to_vec();
    CommandOutput::Table { head, rows: lines.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aside_core::block::Time;
    use aside_core::message::Role;
    use aside_store::search::{HitKind, HitOrder};
    use aside_store::session::SessionFolder;
    use aside_store::{MessageId, SessionId};

    fn markdown(output: CommandOutput) -> String {
        let CommandOutput::Markdown(text) = output else { panic!("{output:?}") };
        text
    }

    #[test]
    fn sessions_are_numbered_and_their_titles_are_escaped() {
        let session = |title: Option<&str>, folder: Option<(&str, &str)>| SessionSummary {
            id: SessionId::new("k3f9"),
            title: title.map(str::to_owned),
            model: Some("acme/deep".to_owned()),
            folder: folder.map(|(path, root)| SessionFolder { path: path.to_owned(), root: root.to_owned() }),
            created: Time(0),
            changed: Time(0),
        };
        let shown = markdown(sessions(
            &[session(Some("a *b* `c`"), Some(("/p/sub", "/p"))), session(None, Some(("/q", "/q")))],
            &[1, 4].map(|n_prompts| BranchLength { n_messages: 9, n_prompts }),
            "/p",
            None,
        ));
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown[0], "/resume NUMBER continues one");
        assert_eq!(shown[2], r"1. **a \*b\* \`c\`**");
        assert!(shown[3].ends_with(r"· 1 prompt · acme\/deep · k3f9"), "{}", shown[3]);
        assert_eq!(shown[4], "2. **without a title**");
        assert!(shown[5].contains("· 4 prompts ·"), "{}", shown[5]);
        assert!(shown[5].ends_with(r"k3f9 · in \/q"), "{}", shown[5]);
        assert_eq!(sessions(&[], &[], "/p", None), CommandOutput::Line("there is no session yet".to_owned()));
    }

    #[test]
    fn the_session_that_is_shown_is_marked_in_the_list() {
        let session = |id: &str| SessionSummary {
            id: SessionId::new(id),
            title: None,
            model: None,
            folder: None,
            created: Time(0),
            changed: Time(0),
        };
        let lengths = [1, 1].map(|n_prompts| BranchLength { n_messages: 2, n_prompts });
        let shown = markdown(sessions(&[session("a1"), session("b2")], &lengths, "/p", Some(&SessionId::new("b2"))));
        let marked: Vec<&str> = shown.lines().filter(|line| line.contains("**current**")).collect();
        assert!(matches!(marked.as_slice(), [line] if line.ends_with(" b2")), "{shown}");
    }

    #[test]
    fn a_page_names_the_command_it_answers_and_a_line_does_not() {
        let other = |name: &str, rest: &str| Command::Other { name: name.to_owned(), rest: rest.to_owned() };
        let page = || CommandOutput::Markdown("a page".to_owned());
        let under = |command: &str| CommandOutput::Titled { command: command.to_owned(), page: Box::new(page()) };
        #[rustfmt::skip]
        let cases = [
            (other("usage", ""),          page(),        under("/usage")),
            (other("search", "a walrus"), page(),        under("/search a walrus")),
            (Command::Query(None),        page(),        under("/set")),
            (other("usage", ""),          line("none"),  line("none")),
            (Command::Undo,               page(),        page()),
        ];
        for (command, output, expected) in cases {
            assert_eq!(titled(title(&command), output), expected, "{command:?}");
        }
    }

    #[test]
    fn hits_are_numbered_and_matches_are_bold() {
        let hit = SearchHit {
            session: SessionId::new("k3f9"),
            title: Some("Parsing".to_owned()),
            message: MessageId(7),
            block: 0,
            kind: HitKind::Thinking,
            model: None,
            at: None,
            snippet: "the **race** is here".to_owned(),
            marks: vec![6..10, 16..20],
            is_current: true,
            match_range: None,
        };
        let undone = SearchHit { is_current: false, ..hit.clone() };
        let found = |hits: Vec<SearchHit>, count| HitList { hits, order: HitOrder::BestFirst, count };
        let shown = markdown(search_hits(&found(vec![hit, undone], HitCount::Exactly(30)), "race"));
        let expected = "2 of 30 hits, /open NUMBER goes there\n\n\
                        1. the \\*\\***race**\\*\\* is **here**\n   thinking in Parsing\n\
                        2. the \\*\\***race**\\*\\* is **here**\n   thinking (*undone or summarised*) in Parsing\n";
        assert_eq!(shown, expected);
        #[rustfmt::skip]
        let cases = [
            ("unit", "nothing was found; only whole words match, and accents count; unit* also finds longer words that start with it"),
            ("a configuration", "nothing was found; only whole words match, and accents count; configuration* also finds longer words that start with it"),
            ("uni*", "nothing was found; only whole words match, and accents count"),
            ("東京都", "nothing was found; only whole words match, and accents count"),
        ];
        for (words, line) in cases {
            let shown = search_hits(&found(Vec::new(), HitCount::Exactly(0)), words);
            assert_eq!(shown, CommandOutput::Line(line.to_owned()), "{words}");
        }
    }

    #[test]
    fn a_gist_has_every_block_in_its_place_and_no_more_words_than_are_quoted() {
        let thinking = |text: String| {
            let content = ThinkingContent::Open { text };
            let source = String::new();
            Block::Thinking(Thinking::new(content, source))
        };
        let text = |text: &str| {
            Block::Text(Text { text: text.to_owned(), seal: None, native: None, extra: Default::default() })
        };
        let long = Message::new(Role::Assistant, vec![thinking("漢".repeat(1_000)), text("an answer")]);
        let gist = excerpt(&long);
        assert_eq!(gist, Message::new(Role::Assistant, vec![thinking("漢".repeat(QUOTED_CHARS)), text("")]));
    }
}
