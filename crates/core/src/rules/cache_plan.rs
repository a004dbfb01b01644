//! Where to mark a request, so that the provider reads from its cache what the
//! last request wrote.

use crate::block::Block;
use crate::conversation::ToolSpec;
use crate::dialect::CacheRules;
use crate::message::{Message, Role};
use crate::parameters::{CacheHint, CachePosition};

/// The points to mark: after the tools, after the system prompt, and after the
/// newest messages of the user. The last request ended at the one before the
/// newest, so this request reads what that one wrote. Thinking is never marked.
pub fn cache_hints(rules: &CacheRules, messages: &[&Message], tools: &[ToolSpec]) -> Vec<CacheHint> {
    let has_system = messages.iter().any(|message| message.role == Role::System && last_markable(message).is_some());
    let fixed = [(CachePosition::Tools, !tools.is_empty()), (CachePosition::System, has_system)];
    let fixed = fixed.into_iter().filter(|(_, is_there)| *is_there).map(|(position, _)| position);
    // A request ends before the reply to it.
    let is_end = |at: usize| messages.get(at + 1).is_none_or(|next| next.role == Role::Assistant);
    let newest = messages.iter().enumerate().rev().filter_map(|(at, message)| match message.role {
        Role::User | Role::Tool if is_end(at) => {
            Some(CachePosition::Block { message: at, block: last_markable(message)? })
        }
        Role::User | Role::Tool | Role::System | Role::Assistant => None,
    });
    // With few markers the newest messages count more: what comes before them is
    // stored together with them.
    let newest: Vec<CachePosition> = newest.take(2.min(rules.markers)).collect();
    let mut points: Vec<CachePosition> = fixed.take(rules.markers.saturating_sub(newest.len())).collect();
    points.extend(newest.into_iter().rev());
    points.into_iter().map(CacheHint::new).collect()
}

fn last_markable(message: &Message) -> Option<usize> {
    message.blocks.iter().rposition(|block| match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolResult(_) | Block::Media(_) => true,
        Block::Thinking(_) | Block::ToolCall(_) | Block::Unmodelled(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Text, ToolResult};

    fn text(role: Role, text: &str) -> Message {
        Message::new(role, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])
    }

    fn result() -> Message {
        let (id, name, content) = ("c1".to_owned(), "get".to_owned(), "1".to_owned());
        let result = ToolResult { id, name, content, media: Vec::new(), is_error: false };
        Message::new(Role::Tool, vec![Block::ToolResult(result)])
    }

    fn points(markers: usize, messages: &[Message], tools: &[ToolSpec]) -> Vec<CachePosition> {
        let rules = CacheRules { markers, key: String::new() };
        let messages: Vec<&Message> = messages.iter().collect();
        cache_hints(&rules, &messages, tools).iter().map(|hint| hint.after).collect()
    }

    #[test]
    fn e16_each_request_marks_the_end_of_the_last_one_and_its_own() {
        let tools = [ToolSpec::new("get", "", "{}".to_owned())];
        let at = |message| CachePosition::Block { message, block: 0 };
        let (system, user, answer) = (text(Role::System, "s"), text(Role::User, "u"), text(Role::Assistant, "a"));
        let first = vec![system, user.clone()];
        assert_eq!(points(4, &first, &tools), [CachePosition::Tools, CachePosition::System, at(1)]);
        let second: Vec<Message> = first.into_iter().chain([answer.clone(), result(), result()]).collect();
        assert_eq!(points(4, &second, &tools), [CachePosition::Tools, CachePosition::System, at(1), at(4)]);
        let third: Vec<Message> = second.into_iter().chain([answer, user]).collect();
        assert_eq!(points(4, &third, &tools), [CachePosition::Tools, CachePosition::System, at(4), at(6)]);
        assert_eq!(points(2, &third, &tools), [at(4), at(6)]);
        assert_eq!(points(1, &third, &tools), [at(6)]);
        assert_eq!(points(0, &third, &tools), []);
    }

    #[test]
    fn e16_neither_thinking_nor_empty_text_is_marked() {
        let mut message = text(Role::User, "u");
        message.blocks.push(Block::Text(Text { text: " ".into(), ..Text::default() }));
        assert_eq!(points(4, &[message], &[]), [CachePosition::Block { message: 0, block: 0 }]);
        assert_eq!(points(4, &[text(Role::Assistant, "a")], &[]), []);
    }
}
