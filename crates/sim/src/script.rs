//! What the simulator is told to do: a behaviour and its options, from the
//! model's name or from a line of the prompt.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::message::{Message, Role};

/// A line of the last user message that begins with this is for the simulator.
const LINE: &str = "sim:";

/// The most steps, thoughts or bytes that a script may ask for.
const MOST: u32 = 1 << 20;

/// The most tokens of one reply.
pub(crate) const MOST_TOKENS: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Behaviour {
    /// An answer without a thought.
    Plain,
    Think,
    /// Several thoughts, each with something said after it.
    Thoughts(u32),
    /// A call a step for some steps, then the answer.
    ToolLoop(u32),
    /// Several calls in one step, then the answer.
    Parallel(u32),
    /// A thought that is several summary items.
    Summaries(u32),
    /// A thought that only its payload is left of.
    Encrypted,
    Redacted,
    /// The thought stands in tags inside the answer.
    Tags,
    /// As if the template had written the opening tag.
    Preopened,
    /// A thought and nothing after it.
    ThinkingOnly,
    Empty,
    /// The same sentence again and again, until the output limit or until it is
    /// told to answer now.
    Loop,
    Slow,
    /// Nothing for a while in the middle of the stream.
    Stall(Duration),
    /// The connection breaks after so many bytes.
    Cut(u64),
    Status(u16),
    /// One frame in the middle is broken.
    Malformed,
    /// The user's own words.
    Echo,
    /// The complaint of one row of the error catalogue.
    Refuse(String),
    /// A good answer under a wrong content type.
    ContentType,
    /// Nothing at all for a while, not even a status.
    SlowHeaders(Duration),
}

/// What a name wants after it.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Nothing(fn() -> Behaviour),
    /// A number, or this one.
    Number(fn(u32) -> Behaviour, u32),
    Seconds(fn(Duration) -> Behaviour, f64),
    Word(fn(&str) -> Option<Behaviour>),
}

#[rustfmt::skip]
const NAMES: [(&str, Takes, &str); 22] = [
    ("plain",          Takes::Nothing(|| Behaviour::Plain),                        ""),
    ("think",          Takes::Nothing(|| Behaviour::Think),                        ""),
    ("thoughts",       Takes::Number(Behaviour::Thoughts, 2),                      " N"),
    ("tool-loop",      Takes::Number(Behaviour::ToolLoop, 2),                      " N"),
    ("parallel",       Takes::Number(Behaviour::Parallel, 2),                      " N"),
    ("summaries",      Takes::Number(Behaviour::Summaries, 2),                     " N"),
    ("encrypted",      Takes::Nothing(|| Behaviour::Encrypted),                    ""),
    ("redacted",       Takes::Nothing(|| Behaviour::Redacted),                     ""),
    ("tags",           Takes::Nothing(|| Behaviour::Tags),                         ""),
    ("preopened",      Takes::Nothing(|| Behaviour::Preopened),                    ""),
    ("reasoning-only", Takes::Nothing(|| Behaviour::ThinkingOnly),                 ""),
    ("empty",          Takes::Nothing(|| Behaviour::Empty),                        ""),
    ("loop",           Takes::Nothing(|| Behaviour::Loop),                         ""),
    ("slow",           Takes::Nothing(|| Behaviour::Slow),                         ""),
    ("stall",          Takes::Seconds(Behaviour::Stall, 5.0),                      " SECONDS"),
    ("cut",            Takes::Number(|bytes| Behaviour::Cut(bytes.into()), 400),   " BYTES"),
    ("status",         Takes::Word(status),                                        " CODE [times=1]"),
    ("malformed",      Takes::Nothing(|| Behaviour::Malformed),                    ""),
    ("echo",           Takes::Nothing(|| Behaviour::Echo),                         ""),
    ("refuse",         Takes::Word(|row| Some(Behaviour::Refuse(row.to_owned()))), " ROW [times=1]"),
    ("content-type",   Takes::Nothing(|| Behaviour::ContentType),                  ""),
    ("slow-headers",   Takes::Seconds(Behaviour::SlowHeaders, 5.0),                " SECONDS"),
];

const OPTIONS: &str = "seed= rate= chunk= tokens= times=";

fn status(word: &str) -> Option<Behaviour> {
    word.parse().ok().filter(|code| (400..600).contains(code)).map(Behaviour::Status)
}

/// How it is told to go about it; what is not said is left to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    pub seed: Option<u64>,
    /// Tokens a second; 0 is as fast as it goes.
    pub rate: Option<f64>,
    /// Bytes that go out together.
    pub chunk: Option<usize>,
    /// How many tokens the thought has, or the answer where there is none.
    pub tokens: Option<usize>,
    /// How often a fault happens before all is well.
    pub times: Option<u32>,
}

impl Options {
    /// What is said here, else what is said there.
    pub fn or(self, other: Options) -> Options {
        Options {
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
    /// None leaves it to the request: a short thought and an answer, or the
    /// call that the client asks for.
    pub behaviour: Option<Behaviour>,
    pub options: Options,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("unknown behaviour `{word}`; the simulator knows: {}; options: {OPTIONS}", names())]
    Unknown { word: String },
    #[error("`{name}` cannot take `{word}`; it is: {name}{takes}")]
    Argument { name: &'static str, word: String, takes: &'static str },
    #[error("`{word}` is not a value for `{key}`; options: {OPTIONS}")]
    Option { key: String, word: String },
}

/// Every behaviour with what it takes.
pub fn names() -> String {
    NAMES.iter().map(|(name, _, takes)| format!("{name}{takes}")).collect::<Vec<_>>().join(", ")
}

impl Script {
    /// A script of a request: a line of its last user message wins over the
    /// end of the model's name.
    pub fn of(suffix: Option<&str>, messages: &[Message]) -> Result<Script, ScriptError> {
        let named = suffix.map_or(Ok(Script::default()), |suffix| Script::parse(&suffix.replace([':', ','], " ")))?;
        let Some(line) = last_user_text(messages).and_then(|text| script_line(&text)) else { return Ok(named) };
        let told = Script::parse(&line)?;
        // A line with options only is about the behaviour that the name gives.
        match told.behaviour {
            Some(_) => Ok(told),
            None => Ok(Script { behaviour: named.behaviour, options: told.options.or(named.options) }),
        }
    }

    /// `NAME [ARG] [key=value…]`
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        let mut waiting: Option<&(&'static str, Takes, &'static str)> = None;
        for word in text.split_whitespace() {
            if let Some((key, value)) = word.split_once('=') {
                script.options.set(key, value)?;
            } else if let Some((name, takes, usage)) = waiting.take() {
                let wrong = || ScriptError::Argument { name, word: word.to_owned(), takes: usage };
                script.behaviour = Some(takes.read(word).ok_or_else(wrong)?);
            } else {
                let unknown = || ScriptError::Unknown { word: word.to_owned() };
                let known = NAMES.iter().find(|(name, ..)| *name == word).filter(|_| script.behaviour.is_none());
                let known = known.ok_or_else(unknown)?;
                script.behaviour = known.1.alone();
                waiting = (!matches!(known.1, Takes::Nothing(_))).then_some(known);
            }
        }
        match waiting {
            Some((name, Takes::Word(_), takes)) => Err(ScriptError::Argument { name, word: String::new(), takes }),
            _ => Ok(script),
        }
    }
}

impl Takes {
    /// What the name means with nothing after it.
    fn alone(self) -> Option<Behaviour> {
        match self {
            Takes::Nothing(behaviour) => Some(behaviour()),
            Takes::Number(behaviour, number) => Some(behaviour(number)),
            Takes::Seconds(behaviour, seconds) => Some(behaviour(Duration::from_secs_f64(seconds))),
            Takes::Word(_) => None,
        }
    }

    fn read(self, word: &str) -> Option<Behaviour> {
        match self {
            Takes::Nothing(_) => None,
            Takes::Number(behaviour, _) => word.parse().ok().filter(|n| *n <= MOST).map(behaviour),
            Takes::Seconds(behaviour, _) => {
                word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).map(behaviour)
            }
            Takes::Word(behaviour) => behaviour(word),
        }
    }
}

impl Options {
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
            "tokens" => self.tokens = Some(read(value).filter(|n| *n <= MOST_TOKENS).ok_or_else(wrong)?),
            "times" => self.times = Some(read(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// Where the turn begins that is to be answered, and what its user said. What
/// clients say beside the results of tools is part of the turn, unless it is
/// for us.
pub(crate) fn last_question(messages: &[Message]) -> Option<(usize, String)> {
    let begins = |at: usize, text: &str| {
        let before = at.checked_sub(1).and_then(|at| messages.get(at));
        before.is_none_or(|before| before.role != Role::Tool) || script_line(text).is_some()
    };
    let questions = || {
        let users = messages.iter().enumerate().rev().filter(|(_, message)| message.role == Role::User);
        users.map(|(at, message)| (at, text_of(message)))
    };
    questions().find(|(at, text)| begins(*at, text)).or_else(|| questions().next_back())
}

pub(crate) fn last_user_text(messages: &[Message]) -> Option<String> {
    last_question(messages).map(|(_, text)| text)
}

fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The last line that is for us; clients put things before and behind it.
fn script_line(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| line.trim().strip_prefix(LINE).map(str::to_owned))
}

/// A text without the lines that are for us.
pub(crate) fn without_script(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().starts_with(LINE)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use aside_core::block::Text;

    use super::*;

    fn user(text: &str) -> Vec<Message> {
        vec![Message::new(Role::User, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])]
    }

    #[test]
    fn x2_names_arguments_and_options_are_read() {
        #[rustfmt::skip]
        let cases = [
            ("plain",               Some(Behaviour::Plain),                            Options::default()),
            ("thoughts 3",          Some(Behaviour::Thoughts(3)),                      Options::default()),
            ("tool-loop",           Some(Behaviour::ToolLoop(2)),                      Options::default()),
            ("stall 0.5",           Some(Behaviour::Stall(Duration::from_millis(500))), Options::default()),
            ("cut 12",              Some(Behaviour::Cut(12)),                          Options::default()),
            ("status 429 times=1",  Some(Behaviour::Status(429)),                      Options { times: Some(1), ..Options::default() }),
            ("refuse passed_back",  Some(Behaviour::Refuse("passed_back".into())),     Options::default()),
            ("seed=7 rate=2.5",     None,                                              Options { seed: Some(7), rate: Some(2.5), ..Options::default() }),
            ("",                    None,                                              Options::default()),
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
        ];
        for (text, message) in cases {
            let error = Script::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn x2_a_line_of_the_prompt_wins_over_the_name() {
        #[rustfmt::skip]
        let cases = [
            ("neither",          None,                 "hello",                              None,                          None),
            ("the name",         Some("tool-loop:3"),  "hello",                              Some(Behaviour::ToolLoop(3)),  None),
            ("the line",         Some("tool-loop"),    "hello\n  sim: cut 9 seed=1 \nthere", Some(Behaviour::Cut(9)),       Some(1)),
            ("options alone",    Some("tool-loop"),    "sim: seed=4",                        Some(Behaviour::ToolLoop(2)),  Some(4)),
            ("the last line",    None,                 "sim: plain\nsim: echo",              Some(Behaviour::Echo),         None),
            ("inside a word",    None,                 "a sim: plain",                       None,                          None),
        ];
        for (name, suffix, text, behaviour, seed) in cases {
            let script = Script::of(suffix, &user(text)).expect(name);
            assert_eq!((script.behaviour, script.options.seed), (behaviour, seed), "{name}");
        }
        let mut later = user("go\nsim: tool-loop 3");
        later.push(Message::new(Role::Assistant, Vec::new()));
        later.push(Message::new(Role::Tool, Vec::new()));
        later.extend(user("a reminder that the client puts beside the results"));
        assert_eq!(last_question(&later).map(|(at, _)| at), Some(0));
        assert_eq!(Script::of(None, &later).expect("known").behaviour, Some(Behaviour::ToolLoop(3)));
        later.extend(user("sim: plain"));
        assert_eq!(Script::of(None, &later).expect("known").behaviour, Some(Behaviour::Plain));
        assert_eq!(without_script("a\nsim: plain\nb"), "a\nb");
    }
}
