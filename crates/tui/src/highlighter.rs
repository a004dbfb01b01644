//! Highlights code line by line. The parser state is kept between lines, so that the cost of a line
//! does not depend on its position.
//!
//! Grammars take megabytes, and the first line of a language compiles its patterns. So create a
//! [`Highlighter`] outside the drawing thread, and only when there is code to show.

use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet};
use unicode_segmentation::GraphemeCursor;

use crate::text::SyntaxToken;
use crate::text::highlight_jobs::{HighlightJob, HighlightOutcome, HighlightResult, MAX_LINE_BYTES, TokenRun};
use crate::text::wrap::TAB;

/// The parser state after the last line.
#[derive(Clone)]
pub struct SyntaxState {
    parse: ParseState,
    scopes: ScopeStack,
}

impl std::fmt::Debug for SyntaxState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}

/// How a scope is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScopeMeaning {
    Token(SyntaxToken),
    /// Plain, regardless of the surrounding scopes.
    Plain,
}

/// Scopes by prefix. The first match wins, so longer prefixes come first.
#[rustfmt::skip]
const SCOPE_MEANINGS: &[(&str, ScopeMeaning)] = &[
    ("comment",                          ScopeMeaning::Token(SyntaxToken::Comment)),
    ("constant",                         ScopeMeaning::Token(SyntaxToken::Constant)),
    ("string",                           ScopeMeaning::Token(SyntaxToken::Quoted)),
    ("keyword.operator.logical",         ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("keyword.operator.word",            ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("keyword.operator",                 ScopeMeaning::Plain),
    ("keyword",                          ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("storage",                          ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("entity.name.tag",                  ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("entity.name.function",             ScopeMeaning::Token(SyntaxToken::Function)),
    ("entity.name.section",              ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("entity.name",                      ScopeMeaning::Token(SyntaxToken::Type)),
    ("entity.other",                     ScopeMeaning::Token(SyntaxToken::Type)),
    ("support.function",                 ScopeMeaning::Token(SyntaxToken::Function)),
    ("support.macro",                    ScopeMeaning::Token(SyntaxToken::Function)),
    ("support.constant",                 ScopeMeaning::Token(SyntaxToken::Constant)),
    ("support",                          ScopeMeaning::Token(SyntaxToken::Type)),
    ("variable.function",                ScopeMeaning::Token(SyntaxToken::Function)),
    ("variable.language",                ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("markup.inserted",                  ScopeMeaning::Token(SyntaxToken::Added)),
    ("markup.deleted",                   ScopeMeaning::Token(SyntaxToken::Removed)),
    ("markup.heading",                   ScopeMeaning::Token(SyntaxToken::Keyword)),
    ("markup.raw",                       ScopeMeaning::Token(SyntaxToken::Quoted)),
    ("meta.diff.header",                 ScopeMeaning::Token(SyntaxToken::Comment)),
    ("meta.diff.range",                  ScopeMeaning::Token(SyntaxToken::Type)),
    ("meta.interpolation",               ScopeMeaning::Plain),
    ("meta.substitution",                ScopeMeaning::Plain),
];

/// Language names used by models that the grammars do not know.
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
    meanings: Vec<(Scope, ScopeMeaning)>,
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
        let meaning = |(name, meaning): &(&str, ScopeMeaning)| Some((Scope::new(name).ok()?, *meaning));
        let meanings = SCOPE_MEANINGS.iter().filter_map(meaning).collect();
        Highlighter { set: two_face::syntax::extra_newlines(), meanings }
    }

    pub fn highlight(&self, job: HighlightJob) -> HighlightResult {
        HighlightResult { id: job.id, outcome: self.lines(job).unwrap_or(HighlightOutcome::Plain) }
    }

    fn lines(&self, job: HighlightJob) -> Option<HighlightOutcome> {
        let mut state = match job.state {
            Some(state) => state,
            None => {
                Box::new(SyntaxState { parse: ParseState::new(self.syntax(&job.language)?), scopes: ScopeStack::new() })
            }
        };
        let mut lines = Vec::with_capacity(job.lines.len());
        for line in &job.lines {
            lines.push(self.line(line, &mut state)?);
        }
        // The growing line is parsed again from its start each time.
        let growing = match job.growing {
            Some(line) => Some(self.line(&line, &mut state.clone())?),
            None => None,
        };
        Some(HighlightOutcome::Lines { lines, growing, state })
    }

    /// Finds the grammar by the info string of a fence, or by a file extension.
    fn syntax(&self, info: &str) -> Option<&SyntaxReference> {
        let name = info.split([' ', ',', '{', ';', ':']).find(|word| !word.is_empty())?.to_lowercase();
        let name = name.trim_start_matches('.');
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        let syntax = self.set.find_syntax_by_token(name)?;
        (syntax.name != "Plain Text").then_some(syntax)
    }

    /// `None` if the grammar fails on the line.
    fn line(&self, line: &str, state: &mut SyntaxState) -> Option<Vec<TokenRun>> {
        if line.len() > MAX_LINE_BYTES {
            return Some(Vec::new());
        }
        let ended = format!("{line}\n");
        let ops = state.parse.parse_line(&ended, &self.set).ok()?;
        let mut runs = RunBuilder { line, runs: Vec::new(), at: 0, shown: 0 };
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

    /// The token of the innermost scope that has a meaning.
    fn token(&self, scopes: &ScopeStack) -> Option<SyntaxToken> {
        let means = |scope: &Scope| self.meanings.iter().find(|(start, _)| start.is_prefix_of(*scope));
        match scopes.as_slice().iter().rev().find_map(means) {
            Some((_, ScopeMeaning::Token(token))) => Some(*token),
            Some((_, ScopeMeaning::Plain)) | None => None,
        }
    }
}

/// Builds the token runs of a line as it is displayed.
struct RunBuilder<'a> {
    line: &'a str,
    runs: Vec<TokenRun>,
    /// How many bytes of the line are covered.
    at: usize,
    /// The same, with tabs expanded to spaces.
    shown: usize,
}

impl RunBuilder<'_> {
    fn up_to(&mut self, to: usize, token: Option<SyntaxToken>) {
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
            Some(_) | None => self.runs.push(TokenRun { to, token }),
        }
    }

    /// Moves to a grapheme boundary, so that a character has one colour.
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
    use crate::text::highlight_jobs::HighlightId;

    fn job(language: &str, lines: &[&str]) -> HighlightJob {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        HighlightJob { id: HighlightId(1), language: language.to_owned(), state: None, lines, growing: None }
    }

    fn runs(outcome: HighlightOutcome) -> Vec<Vec<TokenRun>> {
        match outcome {
            HighlightOutcome::Lines { lines, .. } => lines,
            HighlightOutcome::Plain => Vec::new(),
        }
    }

    fn check(highlighter: &Highlighter, language: &str, lines: &[&str], expect: Expect) {
        let mut out = String::new();
        for (line, runs) in lines.iter().zip(runs(highlighter.highlight(job(language, lines)).outcome)) {
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
    fn t8_code_is_split_into_tokens() {
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
            assert!(
                matches!(highlighter.highlight(job(unknown, &["a"])).outcome, HighlightOutcome::Plain),
                "{unknown}"
            );
        }
        for (alias, _) in ALIASES {
            assert!(highlighter.syntax(alias).is_some(), "{alias}");
        }
    }

    #[test]
    fn t8_chunks_and_a_growing_line_do_not_change_the_highlighting() {
        let highlighter = Highlighter::new();
        let lines = ["/* a", "b */ fn x() {", "let s = \"open", "closed\";", "}"];
        let whole = runs(highlighter.highlight(job("rs", &lines)).outcome);
        let (mut state, mut pieces) = (None, Vec::new());
        for (index, line) in lines.iter().enumerate() {
            let growing = lines.get(index + 1).map(|next| next.get(..next.len() / 2).unwrap().to_owned());
            match highlighter.highlight(HighlightJob { state, growing, ..job("rs", &[line]) }).outcome {
                HighlightOutcome::Lines { lines, state: next, .. } => {
                    pieces.extend(lines);
                    state = Some(next);
                }
                HighlightOutcome::Plain => panic!("{line} is plain"),
            }
        }
        assert_eq!(pieces, whole);
    }

    #[test]
    fn t8_a_very_long_line_is_plain_and_the_next_one_is_highlighted() {
        let highlighter = Highlighter::new();
        let long = "let x = 1; ".repeat(200);
        let lines = runs(highlighter.highlight(job("rs", &["fn a() {", &long, "fn b() {"])).outcome);
        assert!(lines[1].is_empty() && lines[2] == lines[0], "{lines:?}");
    }

    /// A grammar that the regex engine cannot run would kill the thread.
    #[test]
    fn t9_no_grammar_panics() {
        let highlighter = Highlighter::new();
        // All grammars together take half a minute in a debug build; these are the ones that models
        // use.
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
            let HighlightOutcome::Lines { lines: runs, .. } = highlighter.highlight(job(name, &lines)).outcome else {
                panic!("{name} is not known");
            };
            for (line, runs) in lines.iter().zip(runs) {
                assert_eq!(runs.last().map_or(0, |run| usize::from(run.to)), line.len(), "{name}: {line}");
            }
        }
    }
}
