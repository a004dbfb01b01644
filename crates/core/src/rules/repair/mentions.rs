//! The keys that an error message names.

/// A word of a message that may be a key or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention<'m> {
    /// The names of the path, without indices.
    pub(super) names: Vec<&'m str>,
    /// The indices after the first names: `messages[3].content[0]` has two.
    pub(super) indices: Vec<usize>,
    /// Quotes, a path, or a word such as "parameter" mark it as a key. Without
    /// them, `reasoning` is just a word.
    pub(super) marked: bool,
    /// It is in quotes.
    pub(super) quoted: bool,
}

/// How much of a message is searched.
const MAX_MENTIONS: usize = 2000;

/// Words that mark the word after them as a key.
const BEFORE: [&str; 13] = [
    "parameter",
    "parameters",
    "param",
    "params",
    "argument",
    "arguments",
    "supplied",
    "field",
    "fields",
    "property",
    "properties",
    "key",
    "s",
];
/// Words that mark the word before them as a key.
const AFTER: [&str; 7] = ["parameter", "parameters", "field", "property", "argument", "param", "option"];

/// Words that mark the word after them as the name of something that the request refers to.
const NAMED: [&str; 4] = ["model", "tool", "function", "deployment"];

/// All words of a message, in order.
pub(super) fn mentions(message: &str) -> Vec<Mention<'_>> {
    let spans: Vec<(usize, usize)> = spans(message).take(MAX_MENTIONS).collect();
    let word = |at: usize| spans.get(at).and_then(|(start, end)| message.get(*start..*end)).unwrap_or_default();
    let is_one_of = |words: &[&str], at: Option<usize>| {
        at.is_some_and(|at| words.iter().any(|known| word(at).eq_ignore_ascii_case(known)))
    };
    let mention = |(at, (start, end)): (usize, &(usize, usize))| {
        let text = message.get(*start..*end).unwrap_or_default();
        let (names, indices) = split_path(text);
        let before = message.get(..*start).and_then(|before| before.chars().next_back());
        let after = message.get(*end..).and_then(|after| after.chars().next());
        let before_space = message.get(..*start).and_then(|before| before.trim_end().chars().next_back());
        let after_space = message.get(*end..).and_then(|after| after.trim_start().chars().next());
        let is_quote = |c: Option<char>| c.is_some_and(|c| matches!(c, '\'' | '"' | '`' | '\u{2018}' | '\u{201c}'));
        let quoted = is_quote(before) || is_quote(after);
        // A Latin word in Chinese text is a name.
        let is_in_other_script = |c: Option<char>| c.is_some_and(|c| c.is_alphabetic() && !c.is_ascii());
        let is_key = quoted
            || is_in_other_script(before_space)
            || is_in_other_script(after_space)
            || after == Some(':')
            || names.len() > 1
            || is_one_of(&BEFORE, at.checked_sub(1))
            || is_one_of(&AFTER, Some(at + 1));
        let marked = is_key && (names.len() > 1 || !is_one_of(&NAMED, at.checked_sub(1)));
        Mention { names, indices, marked, quoted }
    };
    spans.iter().enumerate().map(mention).collect()
}

/// Runs of name characters, with the dots and brackets of paths, and with the hyphens of
/// compounds: the `thinking` of `some-model-thinking` is not a key.
fn spans(message: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + message.get(at..)?.find(is_name)?;
        let mut end = start;
        while let Some(rest) = message.get(end..).filter(|rest| !rest.is_empty()) {
            let name = rest.len() - rest.trim_start_matches(is_name).len();
            let index = rest.strip_prefix('[').and_then(|rest| rest.find(']').map(|close| (rest, close)));
            if name > 0 {
                end += name;
            } else if (rest.starts_with('.') || (rest.starts_with('-') && end > start))
                && rest.chars().nth(1).is_some_and(is_name)
            {
                end += 1;
            } else if let Some((rest, close)) = index
                && rest.get(..close).is_some_and(|index| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
            {
                end += close + 2;
            } else {
                break;
            }
        }
        at = end;
        Some((start, end))
    })
}

fn split_path(text: &str) -> (Vec<&str>, Vec<usize>) {
    let parts = text.split(['.', '[', ']']).filter(|part| !part.is_empty());
    let (mut names, mut indices) = (Vec::new(), Vec::new());
    for part in parts {
        match part.parse::<usize>() {
            Ok(index) => indices.push(index),
            Err(_) => names.push(part),
        }
    }
    (names, indices)
}

/// The words of a name: `reasoning_effort`, `reasoningEffort` and
/// `reasoning.effort` are all "reasoning effort".
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut begins = true;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        begins = false;
        was_lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Whether a message contains a phrase, as whole words in any spelling.
pub(super) fn contains_phrase(message: &[String], phrase: &[String]) -> bool {
    !phrase.is_empty() && message.windows(phrase.len()).any(|window| window == phrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_mention() {
        let found = mentions("messages[3].reasoning_content: no. 'input[7].id' and body.messages.1.x, see a.");
        let named: Vec<String> = found.iter().map(|mention| mention.names.join("/")).collect();
        assert_eq!(named, ["messages/reasoning_content", "no", "input/id", "and", "body/messages/x", "see", "a"]);
        let indices: Vec<&[usize]> = found.iter().map(|mention| mention.indices.as_slice()).collect();
        assert_eq!(indices, [&[3][..], &[], &[7], &[], &[1], &[], &[]]);
    }

    #[test]
    fn a_plain_word_is_a_key_only_where_it_is_marked() {
        #[rustfmt::skip]
        let cases = [
            ("Reasoning is mandatory",                     false),
            ("Unknown parameter: 'reasoning'.",            true),
            ("argument supplied: reasoning (id 1)",        true),
            ("Unsupported parameter(s): reasoning",        true),
            ("the reasoning field is illegal",             true),
            ("messages[3].reasoning: not supported",       true),
            ("with reasoning models",                      false),
            ("该模型不支持reasoning参数",                    true),
            ("The model 'some-model-reasoning' is gone",   false),
            ("attempted to call tool 'reasoning'",         false),
        ];
        for (message, expected) in cases {
            let is_key = |mention: &Mention<'_>| {
                mention.marked && mention.names.last().is_some_and(|name| name.eq_ignore_ascii_case("reasoning"))
            };
            assert_eq!(mentions(message).iter().any(is_key), expected, "{message}");
        }
    }

    #[test]
    fn names_are_compared_by_their_words() {
        for name in ["reasoning_effort", "reasoningEffort", "reasoning.effort", "Reasoning effort", "ReasoningEffort"] {
            assert_eq!(words(name), ["reasoning", "effort"], "{name}");
        }
    }
}
