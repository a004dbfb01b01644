//! The script of a reply: a behaviour and its options, taken from the model name or from
//! a line of the prompt.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use serde_json::{Map, Value};

/// A line of the last user message with this prefix is a script.
const SCRIPT_PREFIX: &str = "sim:";

/// The largest count of steps, thinking blocks or bytes that a script may request.
const MAX_COUNT: u32 = 1 << 20;

/// The largest number of tokens in one reply.
pub(crate) const MAX_TOKENS: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Behaviour {
    /// An answer without thinking.
    Plain,
    Think,
    /// Several thinking blocks with text between them.
    Thoughts(u32),
    /// One tool call per step for this many steps, then the answer.
    ToolLoop(u32),
    /// Several tool calls in one step, then the answer.
    Parallel(u32),
    /// Thinking made of several summary items.
    Summaries(u32),
    /// Encrypted thinking: only its payload is sent.
    Encrypted,
    Redacted,
    /// Thinking in tags inside the answer.
    Tags,
    /// The same without the opening tag, as if the chat template had written it.
    Preopened,
    /// Thinking without an answer.
    ThinkingOnly,
    Empty,
    /// The same sentence repeated until the output limit, or until the user says "answer
    /// now".
    Loop,
    Slow,
    /// A pause in the middle of the stream.
    Stall(Duration),
    /// The connection breaks after this many bytes.
    Cut(u64),
    Status(u16),
    /// One malformed frame in the middle of the stream.
    Malformed,
    /// Repeats the user's message.
    Echo,
    /// The refusal of one row in the error catalogue.
    Refuse(String),
    /// A valid answer with the wrong content type.
    ContentType,
    /// A delay before the status and headers.
    SlowHeaders(Duration),
    /// These tool calls, one per step, then the answer.
    Calls(Vec<ScriptedCall>),
    /// The model refuses to answer.
    Decline,
    /// Explains all behaviours.
    Help,
}

/// A tool call whose arguments the script names.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedCall {
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
}

impl Behaviour {
    /// Whether the reply contains readable thinking even if the request asks for none.
    pub(crate) fn forces_thinking(&self) -> bool {
        matches!(
            self,
            Behaviour::Think
                | Behaviour::Thoughts(_)
                | Behaviour::Summaries(_)
                | Behaviour::ThinkingOnly
                | Behaviour::Encrypted
                | Behaviour::Redacted
        )
    }
}

/// The argument that a behaviour takes.
#[derive(Debug, Clone, Copy)]
enum BehaviourArgument {
    None(fn() -> Behaviour),
    /// A number, with its default.
    Number(fn(u32) -> Behaviour, u32),
    Seconds(fn(Duration) -> Behaviour, f64),
    Word(fn(&str) -> Option<Behaviour>),
    /// The rest of the line.
    Rest(fn(&str) -> Option<Behaviour>),
}

/// A behaviour as a script names it.
#[derive(Debug, Clone, Copy)]
struct BehaviourEntry {
    name: &'static str,
    argument: BehaviourArgument,
    /// How the argument is written.
    usage: &'static str,
    about: &'static str,
}

const fn entry(
    name: &'static str,
    argument: BehaviourArgument,
    usage: &'static str,
    about: &'static str,
) -> BehaviourEntry {
    BehaviourEntry { name, argument, usage, about }
}

#[rustfmt::skip]
const BEHAVIOURS: [BehaviourEntry; 25] = [
    entry("plain",          BehaviourArgument::None(|| Behaviour::Plain),                        "",                  "an answer without thinking"),
    entry("think",          BehaviourArgument::None(|| Behaviour::Think),                        "",                  "thinking, then an answer"),
    entry("thoughts",       BehaviourArgument::Number(Behaviour::Thoughts, 2),                   " N",                "several thinking blocks with text between them"),
    entry("tool-loop",      BehaviourArgument::Number(Behaviour::ToolLoop, 2),                   " N",                "a tool call in each of N steps, then an answer"),
    entry("parallel",       BehaviourArgument::Number(Behaviour::Parallel, 2),                   " N",                "N tool calls in one step, then an answer"),
    entry("summaries",      BehaviourArgument::Number(Behaviour::Summaries, 2),                  " N",                "thinking made of N summaries with titles"),
    entry("encrypted",      BehaviourArgument::None(|| Behaviour::Encrypted),                    "",                  "thinking that only the provider can read"),
    entry("redacted",       BehaviourArgument::None(|| Behaviour::Redacted),                     "",                  "the same"),
    entry("tags",           BehaviourArgument::None(|| Behaviour::Tags),                         "",                  "thinking in tags inside the answer"),
    entry("preopened",      BehaviourArgument::None(|| Behaviour::Preopened),                    "",                  "the same without the opening tag"),
    entry("reasoning-only", BehaviourArgument::None(|| Behaviour::ThinkingOnly),                 "",                  "thinking without an answer"),
    entry("empty",          BehaviourArgument::None(|| Behaviour::Empty),                        "",                  "a reply without any content"),
    entry("loop",           BehaviourArgument::None(|| Behaviour::Loop),                         "",                  "thinking that repeats the same sentence"),
    entry("slow",           BehaviourArgument::None(|| Behaviour::Slow),                         "",                  "a few tokens per second"),
    entry("stall",          BehaviourArgument::Seconds(Behaviour::Stall, 5.0),                   " SECONDS",          "a pause in the middle of the stream"),
    entry("cut",            BehaviourArgument::Number(|bytes| Behaviour::Cut(bytes.into()), 400), " BYTES",           "the connection breaks after this many bytes"),
    entry("status",         BehaviourArgument::Word(parse_status),                               " CODE [times=1]",   "an HTTP error, such as 429"),
    entry("malformed",      BehaviourArgument::None(|| Behaviour::Malformed),                    "",                  "one broken frame in the middle of the stream"),
    entry("echo",           BehaviourArgument::None(|| Behaviour::Echo),                         "",                  "repeats the prompt"),
    entry("refuse",         BehaviourArgument::Word(|row| Some(Behaviour::Refuse(row.to_owned()))), " ROW [times=1]", "an error from dialects/errors.toml, by its id"),
    entry("content-type",   BehaviourArgument::None(|| Behaviour::ContentType),                  "",                  "an answer with the wrong content type"),
    entry("slow-headers",   BehaviourArgument::Seconds(Behaviour::SlowHeaders, 5.0),             " SECONDS",          "a pause before the first byte"),
    entry("call",           BehaviourArgument::Rest(parse_call),                                 " TOOL {ARGUMENTS}", "this tool call; several such lines are the steps of one turn"),
    entry("decline",        BehaviourArgument::None(|| Behaviour::Decline),                      "",                  "the model refuses to answer"),
    entry("help",           BehaviourArgument::None(|| Behaviour::Help),                         "",                  "explains the behaviours"),
];

const OPTION_NAMES: &str = "seed= rate= chunk= tokens= times=";

fn parse_status(word: &str) -> Option<Behaviour> {
    word.parse().ok().filter(|code| (400..600).contains(code)).map(Behaviour::Status)
}

/// What else is allowed on the line of a call.
const BESIDES_A_CALL: &str = "; nothing follows the arguments, and options come before: seed=1 call TOOL {ARGUMENTS}";

/// `TOOL {ARGUMENTS}`
fn parse_call(rest: &str) -> Option<Behaviour> {
    let (tool, arguments) = rest.split_once(char::is_whitespace)?;
    let arguments: Map<String, Value> = serde_json::from_str(arguments.trim()).ok()?;
    let arguments = Value::Object(arguments).to_string();
    Some(Behaviour::Calls(vec![ScriptedCall { tool: tool.to_owned(), arguments }]))
}

/// Options of a script. The server's defaults apply where one is not set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScriptOptions {
    pub seed: Option<u64>,
    /// Tokens per second; 0 means no limit.
    pub rate: Option<f64>,
    /// Bytes per chunk.
    pub chunk: Option<usize>,
    /// Tokens in the thinking, or in the answer if there is no thinking.
    pub tokens: Option<usize>,
    /// How often a fault happens before requests succeed.
    pub times: Option<u32>,
}

impl ScriptOptions {
    /// These options, with `other` for those that are not set.
    pub fn or(self, other: ScriptOptions) -> ScriptOptions {
        ScriptOptions {
            seed: self.seed.or(other.seed),
            rate: self.rate.or(other.rate),
            chunk: self.chunk.or(other.chunk),
            tokens: self.tokens.or(other.tokens),
            times: self.times.or(other.times),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    /// None: a short thinking block and an answer, or the tool call that the request
    /// forces.
    pub behaviour: Option<Behaviour>,
    pub options: ScriptOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error(
        "unknown behaviour `{word}`; the simulator knows: {}; options: {OPTION_NAMES}; the line `sim: help` explains them",
        behaviour_names()
    )]
    Unknown { word: String },
    #[error("`{name}` cannot take `{word}`; it is: {name}{usage}{besides}")]
    Argument { name: &'static str, word: String, usage: &'static str, besides: &'static str },
    #[error("`{word}` is not a value for `{key}`; options: {OPTION_NAMES}")]
    Option { key: String, word: String },
    #[error("in the line `{line}` of the prompt: {problem}")]
    InLine { line: String, problem: Box<ScriptError> },
}

/// How much of a wrong line is quoted, in characters.
const MAX_QUOTED_LINE: usize = 80;

impl ScriptError {
    fn in_line(self, line: &str) -> ScriptError {
        let mut quoted: String = line.chars().take(MAX_QUOTED_LINE).collect();
        if quoted.len() < line.len() {
            quoted.push('…');
        }
        ScriptError::InLine { line: quoted, problem: Box::new(self) }
    }
}

/// The names of all behaviours with their arguments.
pub fn behaviour_names() -> String {
    BEHAVIOURS.iter().map(|entry| format!("{}{}", entry.name, entry.usage)).collect::<Vec<_>>().join(", ")
}

/// What each behaviour does, as Markdown.
pub(crate) fn help() -> String {
    let mut out = "A line `sim: BEHAVIOUR` in the prompt chooses what the simulator does:\n\n".to_owned();
    for entry in BEHAVIOURS {
        out.push_str(&format!("- `{}{}`: {}\n", entry.name, entry.usage, entry.about));
    }
    out.push_str(&format!(
        "\nOptions on the same line, before the arguments of `call`: `{OPTION_NAMES}`. For example `sim: think tokens=500 \
         rate=20` thinks for 500 tokens, 20 of them per second.\n"
    ));
    out
}

impl Script {
    /// The script of a request. A line in its last user message overrides the suffix of
    /// the model name. Several lines with calls are the steps of one turn.
    pub fn for_request(suffix: Option<&str>, messages: &[Message]) -> Result<Script, ScriptError> {
        let from_name = suffix.map_or(Ok(Script::default()), Script::from_suffix)?;
        let text = last_user_text(messages).unwrap_or_default();
        let Some(line) = script_lines(&text).next_back() else { return Ok(from_name) };
        let mut from_line = Script::from_line(line)?;
        if let Some(Behaviour::Calls(calls)) = &mut from_line.behaviour {
            *calls = script_lines(&text).map(Script::from_line).try_fold(Vec::new(), |mut all, script| {
                if let Some(Behaviour::Calls(calls)) = script?.behaviour {
                    all.extend(calls);
                }
                Ok(all)
            })?;
        }
        // A line with options only modifies the behaviour from the model name.
        match from_line.behaviour {
            Some(_) => Ok(from_line),
            None => Ok(Script { behaviour: from_name.behaviour, options: from_line.options.or(from_name.options) }),
        }
    }

    /// The script in a model name, where colons and commas may separate its words.
    pub(crate) fn from_suffix(suffix: &str) -> Result<Script, ScriptError> {
        Script::parse(&suffix.replace([':', ','], " "))
    }

    /// A line of the prompt, with its prefix.
    fn from_line(line: &str) -> Result<Script, ScriptError> {
        let script = line.strip_prefix(SCRIPT_PREFIX).unwrap_or(line);
        Script::parse(script).map_err(|problem| problem.in_line(line))
    }

    /// `NAME [ARG] [key=value…]`
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        let mut awaiting_argument: Option<&BehaviourEntry> = None;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after.trim_start();
            if let Some((key, value)) = word.split_once('=') {
                script.options.set(key, value)?;
            } else if let Some(entry) = awaiting_argument.take() {
                script.behaviour = Some(entry.with_argument(word)?);
            } else {
                let unknown = || ScriptError::Unknown { word: word.to_owned() };
                let known = BEHAVIOURS.iter().find(|entry| entry.name == word).filter(|_| script.behaviour.is_none());
                let known = known.ok_or_else(unknown)?;
                script.behaviour = known.argument.without_argument();
                match known.argument {
                    BehaviourArgument::None(_) => (),
                    BehaviourArgument::Number(..) | BehaviourArgument::Seconds(..) | BehaviourArgument::Word(_) => {
                        awaiting_argument = Some(known);
                    }
                    BehaviourArgument::Rest(_) => {
                        script.behaviour = Some(known.with_argument(rest)?);
                        rest = "";
                    }
                }
            }
        }
        match awaiting_argument {
            Some(entry) if matches!(entry.argument, BehaviourArgument::Word(_)) => Err(entry.wrong_argument("")),
            _ => Ok(script),
        }
    }
}

impl BehaviourEntry {
    fn with_argument(&self, word: &str) -> Result<Behaviour, ScriptError> {
        self.argument.parse(word).ok_or_else(|| self.wrong_argument(word))
    }

    fn wrong_argument(&self, word: &str) -> ScriptError {
        let besides = if matches!(self.argument, BehaviourArgument::Rest(_)) { BESIDES_A_CALL } else { "" };
        ScriptError::Argument { name: self.name, word: word.to_owned(), usage: self.usage, besides }
    }
}

impl BehaviourArgument {
    /// The behaviour when no argument follows its name.
    fn without_argument(self) -> Option<Behaviour> {
        match self {
            BehaviourArgument::None(behaviour) => Some(behaviour()),
            BehaviourArgument::Number(behaviour, number) => Some(behaviour(number)),
            BehaviourArgument::Seconds(behaviour, seconds) => Some(behaviour(Duration::from_secs_f64(seconds))),
            BehaviourArgument::Word(_) | BehaviourArgument::Rest(_) => None,
        }
    }

    fn parse(self, word: &str) -> Option<Behaviour> {
        match self {
            BehaviourArgument::None(_) => None,
            BehaviourArgument::Number(behaviour, _) => word.parse().ok().filter(|n| *n <= MAX_COUNT).map(behaviour),
            BehaviourArgument::Seconds(behaviour, _) => {
                word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).map(behaviour)
            }
            BehaviourArgument::Word(behaviour) | BehaviourArgument::Rest(behaviour) => behaviour(word),
        }
    }
}

impl ScriptOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), ScriptError> {
        let wrong = || ScriptError::Option { key: key.to_owned(), word: value.to_owned() };
        fn read<T: std::str::FromStr>(value: &str) -> Option<T> {
            value.parse().ok()
        }
        match key {
            "seed" => self.seed = Some(read(value).ok_or_else(wrong)?),
            "rate" => {
                self.rate = Some(read(value).filter(|rate: &f64| rate.is_finite() && *rate >= 0.0).ok_or_else(wrong)?)
            }
            "chunk" => self.chunk = Some(read(value).ok_or_else(wrong)?),
            "tokens" => self.tokens = Some(read(value).filter(|n| *n <= MAX_TOKENS).ok_or_else(wrong)?),
            "times" => self.times = Some(read(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// The index of the user message that started the current turn, and the text of the prompt
/// in it. User text that a client adds after tool results belongs to the turn, unless it
/// contains a script.
pub(crate) fn last_user_turn(messages: &[Message]) -> Option<(usize, String)> {
    let begins = |at: usize, text: &str| {
        let before = at.checked_sub(1).and_then(|at| messages.get(at));
        before.is_none_or(|before| before.role != Role::Tool) || script_lines(text).next().is_some()
    };
    let questions = || {
        let users = messages.iter().enumerate().rev().filter(|(_, message)| message.role == Role::User);
        users.map(|(at, message)| (at, newest_prompt(message)))
    };
    questions().find(|(at, text)| begins(*at, text)).or_else(|| questions().next_back())
}

pub(crate) fn last_user_text(messages: &[Message]) -> Option<String> {
    last_user_turn(messages).map(|(_, text)| text)
}

/// The last text of a message, without what a client adds before and after it. Where roles
/// must alternate, a prompt that was not answered is in the same message as the next one,
/// and its script must not count again.
fn newest_prompt(message: &Message) -> String {
    let texts: Vec<&str> = message.blocks.iter().filter_map(text_of).collect();
    match texts.iter().rfind(|text| !is_added_by_client(text)) {
        Some(prompt) => (*prompt).to_owned(),
        None => texts.join("\n"),
    }
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    }
}

/// Reminders and attached files are in tags: `<file path="a">…</file>`.
fn is_added_by_client(text: &str) -> bool {
    text.trim().is_empty() || (text.trim_start().starts_with('<') && text.trim_end().ends_with('>'))
}

/// The script lines with their prefix. The last one counts. Clients add text before and
/// after them.
fn script_lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.starts_with(SCRIPT_PREFIX))
}

/// The text without its script lines.
pub(crate) fn without_script(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().starts_with(SCRIPT_PREFIX)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use aside_core::block::Text;

    use super::*;

    fn user(text: &str) -> Vec<Message> {
        vec![Message::new(Role::User, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])]
    }

    fn call(tool: &str, arguments: &str) -> ScriptedCall {
        ScriptedCall { tool: tool.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn x2_names_arguments_and_options_are_read() {
        #[rustfmt::skip]
        let cases = [
            ("plain",               Some(Behaviour::Plain),                            ScriptOptions::default()),
            ("thoughts 3",          Some(Behaviour::Thoughts(3)),                      ScriptOptions::default()),
            ("tool-loop",           Some(Behaviour::ToolLoop(2)),                      ScriptOptions::default()),
            ("stall 0.5",           Some(Behaviour::Stall(Duration::from_millis(500))), ScriptOptions::default()),
            ("cut 12",              Some(Behaviour::Cut(12)),                          ScriptOptions::default()),
            ("status 429 times=1",  Some(Behaviour::Status(429)),                      ScriptOptions { times: Some(1), ..ScriptOptions::default() }),
            ("call write {\"path\": \"a b\"}", Some(Behaviour::Calls(vec![call("write", r#"{"path":"a b"}"#)])), ScriptOptions::default()),
            ("rate=9 call list {}", Some(Behaviour::Calls(vec![call("list", "{}")])),  ScriptOptions { rate: Some(9.0), ..ScriptOptions::default() }),
            ("refuse passed_back",  Some(Behaviour::Refuse("passed_back".into())),     ScriptOptions::default()),
            ("seed=7 rate=2.5",     None,                                              ScriptOptions { seed: Some(7), rate: Some(2.5), ..ScriptOptions::default() }),
            ("",                    None,                                              ScriptOptions::default()),
        ];
        for (text, behaviour, options) in cases {
            assert_eq!(Script::parse(text), Ok(Script { behaviour, options }), "{text}");
        }
    }

    #[test]
    fn x2_a_wrong_word_is_answered_with_the_right_ones() {
        #[rustfmt::skip]
        let cases = [
            ("dance",          "unknown behaviour `dance`; the simulator knows: plain, think, thoughts N, tool-loop N,"),
            ("plain plain",    "unknown behaviour `plain`"),
            ("thoughts many",  "`thoughts` cannot take `many`; it is: thoughts N"),
            ("status",         "`status` cannot take ``; it is: status CODE [times=1]"),
            ("status 200",     "`status` cannot take `200`"),
            ("thoughts 4000000000", "`thoughts` cannot take `4000000000`"),
            ("think tokens=99999999", "`99999999` is not a value for `tokens`"),
            ("stall -1",       "`stall` cannot take `-1`"),
            ("think seed=x",   "`x` is not a value for `seed`; options: seed= rate="),
            ("think colour=x", "`x` is not a value for `colour`"),
            ("call",           "`call` cannot take ``; it is: call TOOL {ARGUMENTS}"),
            ("call list {} rate=9", "`call` cannot take `list {} rate=9`; it is: call TOOL {ARGUMENTS}; nothing follows the arguments, and options come before: seed=1 call TOOL {ARGUMENTS}"),
            ("call write",     "`call` cannot take `write`"),
            ("call write [1]", "`call` cannot take `write [1]`"),
            ("call write {",   "`call` cannot take `write {`"),
        ];
        for (text, message) in cases {
            let error = Script::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn x2_an_error_names_the_line_and_the_way_to_the_list() {
        let refused = |text: &str| Script::for_request(None, &user(text)).expect_err(text).to_string();
        let error = refused("why?\n  sim: dance 3 \nplease");
        assert!(error.starts_with("in the line `sim: dance 3` of the prompt: unknown behaviour `dance`; "), "{error}");
        assert!(error.ends_with("; the line `sim: help` explains them"), "{error}");
        let error = refused("sim: call write {\nsim: call list {}");
        assert!(error.starts_with("in the line `sim: call write {` of the prompt: `call` cannot take"), "{error}");
        let error = refused(&format!("sim: {}", "x".repeat(200)));
        assert!(error.starts_with(&format!("in the line `sim: {}…` of", "x".repeat(MAX_QUOTED_LINE - 5))), "{error}");
    }

    #[test]
    fn x2_the_help_explains_every_behaviour() {
        for entry in BEHAVIOURS {
            assert!(help().contains(&format!("- `{}{}`: {}", entry.name, entry.usage, entry.about)), "{}", entry.name);
        }
    }

    #[test]
    fn x2_only_the_newest_prompt_of_a_message_counts() {
        let reminder = "<system-reminder>\nsim: decline\n</system-reminder>";
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], Option<Behaviour>)] = &[
            ("a wrong line before it",   &["sim: dance", "hello"],                  None),
            ("a fault before it",        &["sim: status 500", "hello"],             None),
            ("a script before it",       &["sim: dance", "sim: echo"],              Some(Behaviour::Echo)),
            ("a reminder after it",      &[reminder, "go\nsim: plain", reminder],   Some(Behaviour::Plain)),
            ("a file after it",          &["sim: plain", "<file path=\"a\">\nsim: x\n</file>"], Some(Behaviour::Plain)),
            ("everything in tags",       &["<task>\nsim: echo\n</task>", "<mode>code</mode>"],   Some(Behaviour::Echo)),
        ];
        for (name, texts, behaviour) in cases {
            let mut messages = user("");
            messages[0].blocks = texts.iter().flat_map(|text| user(text).remove(0).blocks).collect();
            assert_eq!(
                Script::for_request(None, &messages).map(|script| script.behaviour),
                Ok(behaviour.clone()),
                "{name}"
            );
        }
    }

    #[test]
    fn x2_a_line_of_the_prompt_overrides_the_model_name() {
        #[rustfmt::skip]
        let cases = [
            ("neither",          None,                 "hello",                              None,                          None),
            ("the name",         Some("tool-loop:3"),  "hello",                              Some(Behaviour::ToolLoop(3)),  None),
            ("the line",         Some("tool-loop"),    "hello\n  sim: cut 9 seed=1 \nthere", Some(Behaviour::Cut(9)),       Some(1)),
            ("options alone",    Some("tool-loop"),    "sim: seed=4",                        Some(Behaviour::ToolLoop(2)),  Some(4)),
            ("the last line",    None,                 "sim: plain\nsim: echo",              Some(Behaviour::Echo),         None),
            ("inside a word",    None,                 "a sim: plain",                       None,                          None),
            ("calls in order",   None,                 "sim: plain\nsim: call a {}\nand\nsim: call b {}", Some(Behaviour::Calls(vec![call("a", "{}"), call("b", "{}")])), None),
        ];
        for (name, suffix, text, behaviour, seed) in cases {
            let script = Script::for_request(suffix, &user(text)).expect(name);
            assert_eq!((script.behaviour, script.options.seed), (behaviour, seed), "{name}");
        }
        let mut later = user("go\nsim: tool-loop 3");
        later.push(Message::new(Role::Assistant, Vec::new()));
        later.push(Message::new(Role::Tool, Vec::new()));
        later.extend(user("a reminder that the client adds after the results"));
        assert_eq!(last_user_turn(&later).map(|(at, _)| at), Some(0));
        assert_eq!(Script::for_request(None, &later).expect("known").behaviour, Some(Behaviour::ToolLoop(3)));
        later.extend(user("sim: plain"));
        assert_eq!(Script::for_request(None, &later).expect("known").behaviour, Some(Behaviour::Plain));
        assert_eq!(without_script("a\nsim: plain\nb"), "a\nb");
    }
}
