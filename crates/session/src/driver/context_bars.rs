//! `/context`: shows what fills the context window, as bars that need no colour
//! and fit into forty columns.

use aside_core::tokens::{TokenCount, format_usage};
use aside_core::wire::TokenBreakdown;

use aside_core::counted::counted;

/// The width of the window's bar, and of the longest part's bar.
const WINDOW_CELLS: u64 = 28;
const PART_CELLS: u64 = 15;

/// The context window's limit and its last known use.
pub(super) struct WindowUse {
    pub(super) limit: Option<u64>,
    /// The provider's own token count of the last request and its answer.
    pub(super) counted: Option<u64>,
}

pub(super) fn context_page(filling: &TokenBreakdown, window: &WindowUse) -> String {
    let total = filling.total();
    let mut lines = vec![format_usage(TokenCount::Estimated(total), window.limit)];
    match window.limit.filter(|limit| *limit > 0) {
        Some(limit) => {
            let cells = bar(total, limit, WINDOW_CELLS);
            let free = "░".repeat((WINDOW_CELLS - cells.chars().count().min(WINDOW_CELLS as usize) as u64) as usize);
            lines.push(format!("{cells}{free} {}%", percent(total, limit)));
        }
        None => lines.push("context limit unknown: /set context.limit=N".to_owned()),
    }
    lines.push(String::new());
    let TokenBreakdown { system, tools, prompts, answers, thinking, results, rest, withheld } = *filling;
    let parts = [
        ("system", system),
        ("tools", tools),
        ("prompts", prompts),
        ("answers", answers),
        ("thinking", thinking),
        ("tool results", results),
        ("the rest", rest),
    ];
    let most = parts.iter().map(|(_, tokens)| *tokens).max().unwrap_or(0);
    lines.extend(parts.iter().map(|(name, tokens)| row(name, *tokens, &bar(*tokens, most, PART_CELLS))));
    lines.push(String::new());
    if withheld.thinking_blocks > 0 {
        let thoughts = &counted(withheld.thinking_blocks, "thought");
        lines.push(row("held back", withheld.thinking, thoughts));
    }
    if withheld.other > 0 {
        lines.push(row("held back", withheld.other, "other blocks"));
    }
    if withheld.thinking_blocks == 0 && withheld.other == 0 {
        lines.push("nothing is held back".to_owned());
    }
    if let Some(counted) = window.counted {
        lines.push(format!("the provider counted {}", format_usage(TokenCount::Exact(counted), None)));
    }
    let why = if withheld.thinking_blocks > 0 { "\n/sent says why a thought is held back\n" } else { "" };
    format!("```\n{}\n```\n{why}", lines.join("\n"))
}

fn row(name: &str, tokens: u64, rest: &str) -> String {
    let figure = format_usage(TokenCount::Estimated(tokens), None);
    format!("{name:<12} {figure:>6} {rest}").trim_end().to_owned()
}

/// A bar with at least half a cell for anything above zero.
fn bar(part: u64, whole: u64, cells: u64) -> String {
    let halves = (part.saturating_mul(cells * 2) + whole / 2).checked_div(whole).unwrap_or(0).min(cells * 2);
    let halves = halves.max(u64::from(part > 0));
    let half = if halves % 2 == 1 { "▌" } else { "" };
    format!("{}{half}", "█".repeat((halves / 2) as usize))
}

fn percent(part: u64, whole: u64) -> String {
    match (part.saturating_mul(100) + whole / 2) / whole {
        0 if part > 0 => "<1".to_owned(),
        percent => percent.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aside_core::wire::WithheldTokens;

    fn filling() -> TokenBreakdown {
        let withheld = WithheldTokens { thinking_blocks: 3, thinking: 5_100, other: 0 };
        TokenBreakdown {
            system: 1_200,
            tools: 2_100,
            prompts: 300,
            answers: 4_000,
            thinking: 2_000,
            results: 2_600,
            rest: 100,
            withheld,
        }
    }

    #[test]
    fn c2_the_window_in_forty_columns_without_colour() {
        let page = context_page(&filling(), &WindowUse { limit: Some(200_000), counted: Some(12_100) });
        let expected = [
            "```",
            "~12.3k/200k",
            "█▌░░░░░░░░░░░░░░░░░░░░░░░░░░ 6%",
            "",
            "system        ~1.2k ████▌",
            "tools         ~2.1k ████████",
            "prompts        ~300 █",
            "answers         ~4k ███████████████",
            "thinking        ~2k ███████▌",
            "tool results  ~2.6k ██████████",
            "the rest       ~100 ▌",
            "",
            "held back     ~5.1k 3 thoughts",
            "the provider counted 12.1k",
            "```",
            "",
            "/sent says why a thought is held back",
            "",
        ];
        assert_eq!(page, expected.join("\n"));
        let widest = page.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(38), "two columns go to the margin of the code: {widest:?}");
    }

    #[test]
    fn c2_what_is_not_known_is_not_invented() {
        let page = context_page(&TokenBreakdown::default(), &WindowUse { limit: None, counted: None });
        let expected = [
            "```",
            "~0",
            "context limit unknown: /set context.limit=N",
            "",
            "system           ~0",
            "tools            ~0",
            "prompts          ~0",
            "answers          ~0",
            "thinking         ~0",
            "tool results     ~0",
            "the rest         ~0",
            "",
            "nothing is held back",
            "```",
            "",
        ];
        assert_eq!(page, expected.join("\n"));
    }
}
