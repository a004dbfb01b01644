//! What commands of the screen answer with, in words and tables.

use aside_core::block::{Block, Content, Text, Thinking};
use aside_core::message::Message;
use aside_core::rules::{Action, Decision};
use aside_core::settings::{Key, Settings};
use aside_store::ledger::LedgerLine;
use aside_store::search::{Found, Hit};
use aside_store::session::Summary;
use aside_tui::seam::{Command, DecisionRow, Named, Said};

use crate::report::Report;
use crate::{config, times};

pub(crate) fn line(text: impl Into<String>) -> Said {
    Said::Line(text.into())
}

pub(crate) fn wrong(report: &Report) -> Said {
    Said::Wrong { what: report.to_string(), hint: report.remedy().map(str::to_owned) }
}

/// The command whose answer may be a page that does not say what it is.
pub(crate) fn title(command: &Command) -> Option<String> {
    match command {
        Command::Other { name, rest } => Some(format!("/{name} {rest}").trim_end().to_owned()),
        Command::Query(None) => Some("/set".to_owned()),
        // One line says all, or it shows by itself.
        Command::Query(Some(_))
        | Command::Say(_)
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
        | Command::Retry
        | Command::Export(_)
        | Command::Terminal(_)
        | Command::Quit => None,
    }
}

/// A page says which command it answers; a line says what it is itself.
pub(crate) fn titled(title: Option<String>, said: Said) -> Said {
    match (title, said) {
        (Some(command), page @ (Said::Table { .. } | Said::Markdown(_))) => {
            Said::Titled { command, page: Box::new(page) }
        }
        (_, said) => said,
    }
}

/// As much of a thought as the decision table quotes.
const QUOTED: usize = 40;

/// A message as the decision table needs it: which blocks there are, and the
/// first words of thoughts. The rest may be megabytes.
pub(crate) fn gist(message: &Message) -> Message {
    let block = |block: &Block| match block {
        Block::Thinking(thinking) => {
            let text = thinking.text().chars().take(QUOTED).collect();
            Block::Thinking(Thinking {
                content: Content::Open { text },
                source: String::new(),
                id: None,
                items: Vec::new(),
                span: None,
                native: None,
            })
        }
        Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
            Block::Text(Text { text: String::new(), seal: None, native: None })
        }
    };
    Message::new(message.role, message.blocks.iter().map(block).collect())
}

/// What became of each thought, and of what was left out.
pub(crate) fn thoughts(said: &[Message], decisions: &[Decision]) -> Vec<DecisionRow> {
    let is_shown = |decision: &&Decision| {
        let block = decision.block.and_then(|block| said.get(decision.message)?.blocks.get(block));
        decision.block.is_none() || decision.action == Action::Dropped || matches!(block, Some(Block::Thinking(_)))
    };
    let row = |decision: &Decision| {
        let block = decision.block.and_then(|block| said.get(decision.message)?.blocks.get(block));
        let what = match block {
            Some(Block::Thinking(thinking)) => {
                let words: String = thinking.text().chars().take(QUOTED).collect();
                format!("message {}: thinking \"{}\"", decision.message, words.replace('\n', " "))
            }
            Some(_) => format!("message {}", decision.message),
            None => format!("message {}: no thinking", decision.message),
        };
        DecisionRow { what, action: crate::explain::action(decision.action).to_owned(), why: decision.why.rule() }
    };
    decisions.iter().filter(is_shown).map(row).collect()
}

/// A setting with its value and who said so; all of them without a key.
pub(crate) fn settings(settings: &Settings, key: Option<&str>) -> Result<Said, Report> {
    let keys: Vec<Key> = match key {
        Some(name) => vec![name.parse::<Key>().map_err(|error| crate::settings::refused(&error))?],
        None => Key::ALL.to_vec(),
    };
    let row = |key: &Key| {
        let (value, layer) = match settings.get(*key) {
            Some((value, layer)) => (config::on_one_line(value), layer.as_str().to_owned()),
            None => ("not set".to_owned(), String::new()),
        };
        vec![key.name().to_owned(), value, layer]
    };
    let head = ["setting", "value", "from"].map(str::to_owned).to_vec();
    Ok(Said::Table { head, rows: keys.iter().map(row).collect() })
}

pub(crate) fn sessions(sessions: &[Summary]) -> Said {
    if sessions.is_empty() {
        return line("there is no session yet");
    }
    let item = |(at, session): (usize, &Summary)| {
        let title = literal(session.title.as_deref().unwrap_or("without a title"));
        let model = session.model.as_deref().map(|model| format!(" · {}", literal(model))).unwrap_or_default();
        let Summary { id, changed, n_messages, .. } = session;
        let changed = literal(&times::local(*changed));
        let messages = if *n_messages == 1 { "1 message".to_owned() } else { format!("{n_messages} messages") };
        format!("{}. **{title}**\n   {changed} · {messages}{model} · {id}\n", at + 1)
    };
    let items: String = sessions.iter().enumerate().map(item).collect();
    Said::Markdown(format!("{items}\n/resume NUMBER goes on with one\n"))
}

/// A session for completion.
pub(crate) fn named(session: Summary) -> Named {
    Named { name: session.id.to_string(), about: session.title.unwrap_or_default() }
}

/// Text that is no Markdown, whatever is in it.
fn literal(text: &str) -> String {
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

pub(crate) fn found(found: &Found) -> Said {
    if found.hits.is_empty() {
        return line("nothing was found");
    }
    let item = |(at, hit): (usize, &Hit)| {
        let title = literal(hit.title.as_deref().unwrap_or("without a title"));
        let when = hit.at.map(|at| format!(" · {}", literal(&times::local(at)))).unwrap_or_default();
        format!("{}. {}\n   {} in {title}{when}\n", at + 1, marked(hit), hit.kind.as_str())
    };
    let items: String = found.hits.iter().enumerate().map(item).collect();
    Said::Markdown(format!("{items}\n/open NUMBER goes there\n"))
}

/// The snippet with what was looked for in bold.
fn marked(hit: &Hit) -> String {
    let mut out = String::new();
    let mut from = 0;
    for mark in &hit.marks {
        out.push_str(&literal(hit.snippet.get(from..mark.start).unwrap_or_default()));
        out.push_str(&format!("**{}**", literal(hit.snippet.get(mark.clone()).unwrap_or_default())));
        from = mark.end;
    }
    out.push_str(&literal(hit.snippet.get(from..).unwrap_or_default()));
    out
}

pub(crate) fn usage(lines: &[LedgerLine]) -> Said {
    if lines.is_empty() {
        return line("nothing was used yet");
    }
    let row = |line: &LedgerLine| {
        let figure = |tokens| crate::usage::figure(tokens);
        vec![
            crate::usage::name(&line.group),
            line.n_replies.to_string(),
            figure(line.input),
            figure(line.thinking),
            figure(line.answer),
            crate::usage::cost(line.cost),
        ]
    };
    let head = ["model", "replies", "input", "thinking", "answer", "cost"].map(str::to_owned).to_vec();
    Said::Table { head, rows: lines.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aside_core::block::Time;
    use aside_core::message::Role;
    use aside_store::search::{Count, Kind, Order};
    use aside_store::{MessageId, SessionId};

    fn markdown(said: Said) -> String {
        let Said::Markdown(text) = said else { panic!("{said:?}") };
        text
    }

    #[test]
    fn sessions_are_numbered_and_their_titles_are_no_markdown() {
        let session = |title: Option<&str>, n_messages| Summary {
            id: SessionId::new("k3f9"),
            title: title.map(str::to_owned),
            model: Some("acme/deep".to_owned()),
            n_messages,
            created: Time(0),
            changed: Time(0),
        };
        let shown = markdown(sessions(&[session(Some("a *b* `c`"), 1), session(None, 4)]));
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown[0], r"1. **a \*b\* \`c\`**");
        assert!(shown[1].ends_with(r"· 1 message · acme\/deep · k3f9"), "{}", shown[1]);
        assert_eq!(shown[2], "2. **without a title**");
        assert!(shown[3].contains("· 4 messages ·"), "{}", shown[3]);
        assert_eq!(sessions(&[]), Said::Line("there is no session yet".to_owned()));
    }

    #[test]
    fn a_page_names_the_command_it_answers_and_a_line_does_not() {
        let other = |name: &str, rest: &str| Command::Other { name: name.to_owned(), rest: rest.to_owned() };
        let page = || Said::Markdown("a page".to_owned());
        let under = |command: &str| Said::Titled { command: command.to_owned(), page: Box::new(page()) };
        #[rustfmt::skip]
        let cases = [
            (other("usage", ""),          page(),        under("/usage")),
            (other("search", "a walrus"), page(),        under("/search a walrus")),
            (Command::Query(None),        page(),        under("/set")),
            (other("usage", ""),          line("none"),  line("none")),
            (Command::Undo,               page(),        page()),
        ];
        for (command, said, expected) in cases {
            assert_eq!(titled(title(&command), said), expected, "{command:?}");
        }
    }

    #[test]
    fn hits_are_numbered_and_what_was_looked_for_stands_out() {
        let hit = Hit {
            session: SessionId::new("k3f9"),
            title: Some("Parsing".to_owned()),
            message: MessageId(7),
            block: 0,
            kind: Kind::Thinking,
            model: None,
            at: None,
            snippet: "the **race** is here".to_owned(),
            marks: vec![6..10, 16..20],
            place: None,
        };
        let shown = markdown(found(&Found { hits: vec![hit], order: Order::BestFirst, count: Count::Exactly(1) }));
        let expected = "1. the \\*\\***race**\\*\\* is **here**\n   thinking in Parsing\n\n/open NUMBER goes there\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_gist_has_every_block_in_its_place_and_no_more_words_than_are_quoted() {
        let thinking = |text: String| {
            let content = Content::Open { text };
            let source = String::new();
            Block::Thinking(Thinking { content, source, id: None, items: Vec::new(), span: None, native: None })
        };
        let text = |text: &str| Block::Text(Text { text: text.to_owned(), seal: None, native: None });
        let long = Message::new(Role::Assistant, vec![thinking("漢".repeat(1_000)), text("an answer")]);
        let gist = gist(&long);
        assert_eq!(gist, Message::new(Role::Assistant, vec![thinking("漢".repeat(QUOTED)), text("")]));
    }
}
