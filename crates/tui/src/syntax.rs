//! Code into tokens. Line by line, with the state kept between lines, so that
//! a line costs the same wherever it stands.
//!
//! Grammars are megabytes, and the first line of a language compiles its
//! patterns: whoever makes a [`Highlighter`] does so off the thread that
//! draws, and only when there is code to show.

use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet};
use unicode_segmentation::GraphemeCursor;

use crate::text::Token;
use crate::text::light::{Job, LONGEST_LINE, Lit, Outcome, Run};
use crate::text::wrap::TAB;

/// Where the lines so far left off.
#[derive(Clone)]
pub struct State {
    parse: ParseState,
    scopes: ScopeStack,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}

/// What a scope means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Is(Token),
    /// Plain, whatever stands around it.
    Nothing,
}

/// Scopes by their beginnings; the first that fits counts, so the longer ones
/// stand first.
#[rustfmt::skip]
const MEANINGS: &[(&str, Meaning)] = &[
    ("comment",                          Meaning::Is(Token::Comment)),
    ("constant",                         Meaning::Is(Token::Constant)),
    ("string",                           Meaning::Is(Token::Quoted)),
    ("keyword.operator.logical",         Meaning::Is(Token::Keyword)),
    ("keyword.operator.word",            Meaning::Is(Token::Keyword)),
    ("keyword.operator",                 Meaning::Nothing),
    ("keyword",                          Meaning::Is(Token::Keyword)),
    ("storage",                          Meaning::Is(Token::Keyword)),
    ("entity.name.tag",                  Meaning::Is(Token::Keyword)),
    ("entity.name.function",             Meaning::Is(Token::Function)),
    ("entity.name.section",              Meaning::Is(Token::Keyword)),
    ("entity.name",                      Meaning::Is(Token::Type)),
    ("entity.other",                     Meaning::Is(Token::Type)),
    ("support.function",                 Meaning::Is(Token::Function)),
    ("support.macro",                    Meaning::Is(Token::Function)),
    ("support.constant",                 Meaning::Is(Token::Constant)),
    ("support",                          Meaning::Is(Token::Type)),
    ("variable.function",                Meaning::Is(Token::Function)),
    ("variable.language",                Meaning::Is(Token::Keyword)),
    ("markup.inserted",                  Meaning::Is(Token::Added)),
    ("markup.deleted",                   Meaning::Is(Token::Removed)),
    ("markup.heading",                   Meaning::Is(Token::Keyword)),
    ("markup.raw",                       Meaning::Is(Token::Quoted)),
    ("meta.diff.header",                 Meaning::Is(Token::Comment)),
    ("meta.diff.range",                  Meaning::Is(Token::Type)),
    ("meta.interpolation",               Meaning::Nothing),
    ("meta.substitution",                Meaning::Nothing),
];

/// What models call languages, where the grammars call them otherwise.
#[rustfmt::skip]
const ALIASES: &[(&str, &str)] = &[
    ("c#", "cs"),
    ("c++", "cpp"),
    ("console", "sh"),
    ("csharp", "cs"),
    ("golang", "go"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("jsonl", "json"),
    ("python3", "py"),
    ("shell", "sh"),
    ("shell-session", "sh"),
    ("terminal", "sh"),
    ("zsh", "sh"),
];

pub struct Highlighter {
    set: SyntaxSet,
    meanings: Vec<(Scope, Meaning)>,
}

impl Default for Highlighter {
    fn default() -> Highlighter {
        Highlighter::new()
    }
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").field("syntaxes", &self.set.syntaxes().len()).finish_non_exhaustive()
    }
}

impl Highlighter {
    pub fn new() -> Highlighter {
        let meaning = |(name, meaning): &(&str, Meaning)| Some((Scope::new(name).ok()?, *meaning));
        let meanings = MEANINGS.iter().filter_map(meaning).collect();
        Highlighter { set: two_face::syntax::extra_newlines(), meanings }
    }

    pub fn work(&self, job: Job) -> Lit {
        Lit { ticket: job.ticket, outcome: self.lines(job).unwrap_or(Outcome::Plain) }
    }

    fn lines(&self, job: Job) -> Option<Outcome> {
        let mut state = match job.state {
            Some(state) => state,
            None => Box::new(State { parse: ParseState::new(self.syntax(&job.language)?), scopes: ScopeStack::new() }),
        };
        let mut lines = Vec::with_capacity(job.lines.len());
        for line in &job.lines {
            lines.push(self.line(line, &mut state)?);
        }
        // A line that grows is looked at from where it began each time.
        let peek = match job.peek {
            Some(line) => Some(self.line(&line, &mut state.clone())?),
            None => None,
        };
        Some(Outcome::Lines { lines, peek, state })
    }

    /// The language as models write it behind a fence, or the end of a path.
    fn syntax(&self, info: &str) -> Option<&SyntaxReference> {
        let name = info.split([' ', ',', '{', ';', ':']).find(|word| !word.is_empty())?.to_lowercase();
        let name = name.trim_start_matches('.');
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        let syntax = self.set.find_syntax_by_token(name)?;
        (syntax.name != "Plain Text").then_some(syntax)
    }

    /// Nothing if the grammar could not make sense of it.
    fn line(&self, line: &str, state: &mut State) -> Option<Vec<Run>> {
        if line.len() > LONGEST_LINE {
            return Some(Vec::new());
        }
        let ended = format!("{line}\n");
        let ops = state.parse.parse_line(&ended, &self.set).ok()?;
        let mut runs = Runs { line, runs: Vec::new(), at: 0, shown: 0 };
        for (at, op) in ops {
            runs.up_to(at, self.token(&state.scopes));
            self.apply(&op, &mut state.scopes)?;
        }
        runs.up_to(line.len(), self.token(&state.scopes));
        Some(runs.runs)
    }

    fn apply(&self, op: &ScopeStackOp, scopes: &mut ScopeStack) -> Option<()> {
        scopes.apply(op).ok()
    }

    /// What the innermost scope that means something means.
    fn token(&self, scopes: &ScopeStack) -> Option<Token> {
        let means = |scope: &Scope| self.meanings.iter().find(|(start, _)| start.is_prefix_of(*scope));
        match scopes.as_slice().iter().rev().find_map(means) {
            Some((_, Meaning::Is(token))) => Some(*token),
            Some((_, Meaning::Nothing)) | None => None,
        }
    }
}

/// Runs of a line as it is shown.
struct Runs<'a> {
    line: &'a str,
    runs: Vec<Run>,
    /// How much of the line is in them.
    at: usize,
    /// The same with tabs as spaces.
    shown: usize,
}

impl Runs<'_> {
    fn up_to(&mut self, to: usize, token: Option<Token>) {
        let to = self.boundary(to.min(self.line.len()));
        if to <= self.at {
            return;
        }
        let piece = self.line.get(self.at..to).unwrap_or("");
        self.shown += piece.len() + piece.matches('\t').count() * (TAB.len() - 1);
        self.at = to;
        let to = u16::try_from(self.shown).unwrap_or(u16::MAX);
        match self.runs.last_mut() {
            Some(last) if last.token == token => last.to = to,
            Some(_) | None => self.runs.push(Run { to, token }),
        }
    }

    /// A letter of several code points is of one colour.
    fn boundary(&self, at: usize) -> usize {
        if self.line.is_ascii() {
            return at;
        }
        let is_boundary = |at: &usize| {
            let mut cursor = GraphemeCursor::new(*at, self.line.len(), true);
            self.line.is_char_boundary(*at) && cursor.is_boundary(self.line, 0).unwrap_or(true)
        };
        (at..=self.line.len()).find(is_boundary).unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::text::light::Ticket;

    fn job(language: &str, lines: &[&str]) -> Job {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Job { ticket: Ticket(1), language: language.to_owned(), state: None, lines, peek: None }
    }

    fn runs(outcome: Outcome) -> Vec<Vec<Run>> {
        match outcome {
            Outcome::Lines { lines, .. } => lines,
            Outcome::Plain => Vec::new(),
        }
    }

    fn check(highlighter: &Highlighter, language: &str, lines: &[&str], expect: Expect) {
        let mut out = String::new();
        for (line, runs) in lines.iter().zip(runs(highlighter.work(job(language, lines)).outcome)) {
            let shown = line.replace('\t', TAB);
            let mut from = 0;
            for run in runs {
                let name = run.token.map_or_else(|| "-".to_owned(), |token| format!("{token:?}"));
                out.push_str(&format!("{:?} {name}\n", shown.get(from..usize::from(run.to)).unwrap()));
                from = usize::from(run.to);
            }
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn t8_code_is_told_apart_by_what_it_is() {
        let highlighter = Highlighter::new();
        check(
            &highlighter,
            "rust",
            &["fn a() { // why", "\tlet x = \"é\u{301}\";", "}"],
            expect![[r#"
                "fn" Keyword
                " " -
                "a" Function
                "() { " -
                "// why" Comment
                "    " -
                "let" Keyword
                " x = " -
                "\"é\u{301}\"" Quoted
                ";" -
                "}" -
            "#]],
        );
        check(
            &highlighter,
            "python title=\"x\"",
            &["'''a", "b''' if x and 1: f(y)"],
            expect![[r#"
            "'''a" Comment
            "b'''" Comment
            " " -
            "if" Keyword
            " x " -
            "and" Keyword
            " " -
            "1" Constant
            ": " -
            "f" Function
            "(y)" -
        "#]],
        );
        check(
            &highlighter,
            "diff",
            &["-a", "+b"],
            expect![[r#"
            "-a" Removed
            "+b" Added
        "#]],
        );
        for unknown in ["", "nolanguage", "text", "txt"] {
            assert!(matches!(highlighter.work(job(unknown, &["a"])).outcome, Outcome::Plain), "{unknown}");
        }
        for (alias, _) in ALIASES {
            assert!(highlighter.syntax(alias).is_some(), "{alias}");
        }
    }

    #[test]
    fn t8_a_line_is_the_same_in_pieces_and_a_growing_one_changes_nothing() {
        let highlighter = Highlighter::new();
        let lines = ["/* a", "b */ fn x() {", "let s = \"open", "closed\";", "}"];
        let whole = runs(highlighter.work(job("rs", &lines)).outcome);
        let (mut state, mut pieces) = (None, Vec::new());
        for (index, line) in lines.iter().enumerate() {
            let peek = lines.get(index + 1).map(|next| next.get(..next.len() / 2).unwrap().to_owned());
            match highlighter.work(Job { state, peek, ..job("rs", &[line]) }).outcome {
                Outcome::Lines { lines, state: next, .. } => {
                    pieces.extend(lines);
                    state = Some(next);
                }
                Outcome::Plain => panic!("{line} is plain"),
            }
        }
        assert_eq!(pieces, whole);
    }

    #[test]
    fn t8_a_very_long_line_is_plain_and_what_follows_is_not() {
        let highlighter = Highlighter::new();
        let long = "let x = 1; ".repeat(200);
        let lines = runs(highlighter.work(job("rs", &["fn a() {", &long, "fn b() {"])).outcome);
        assert!(lines[1].is_empty() && lines[2] == lines[0], "{lines:?}");
    }

    /// Grammars that their pattern engine cannot run would end the thread.
    #[test]
    fn t9_no_grammar_panics_on_anything() {
        let highlighter = Highlighter::new();
        // All of them take half a minute without optimisation; these are what models write.
        let names = ["sh", "cpp", "html", "js", "md", "py", "rs", "sql", "ts", "yaml"];
        let lines = [
            "",
            "{",
            "\"",
            "'''",
            "<a b=\"c\">",
            "# x",
            "// y",
            "$(",
            "é漢\u{301}👩‍💻",
            "\\",
            "----",
            "a = [1, 2]; fn f(x): ->",
        ];
        for name in names {
            let Outcome::Lines { lines: runs, .. } = highlighter.work(job(name, &lines)).outcome else {
                panic!("{name} is not known");
            };
            for (line, runs) in lines.iter().zip(runs) {
                assert_eq!(runs.last().map_or(0, |run| usize::from(run.to)), line.len(), "{name}: {line}");
            }
        }
    }
}
