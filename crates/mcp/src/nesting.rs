//! How deep the JSON of a message is nested. rmcp ignores a message that is nested deeper than its parser allows, and
//! a call whose result is ignored would wait for ever.

/// The deepest nesting that the parser of JSON accepts.
pub(crate) const MAX_NESTING: usize = 127;

/// Follows the nesting of messages, one per line, whose bytes arrive in pieces.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    depth: usize,
    at: LinePart,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LinePart {
    #[default]
    Start,
    Json,
    String,
    Escape,
    /// A line that does not begin like a message.
    Other,
}

impl Nesting {
    /// Whether these bytes go deeper than allowed.
    pub(crate) fn is_exceeded_by(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| {
            self.take(*byte);
            self.depth > MAX_NESTING
        })
    }

    fn take(&mut self, byte: u8) {
        self.at = match (self.at, byte) {
            (_, b'\n') => {
                self.depth = 0;
                LinePart::Start
            }
            (LinePart::Start, b' ' | b'\t' | b'\r') => LinePart::Start,
            (LinePart::Start | LinePart::Json, b'{') => {
                self.depth += 1;
                LinePart::Json
            }
            (LinePart::Json, b'[') => {
                self.depth += 1;
                LinePart::Json
            }
            (LinePart::Json, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                LinePart::Json
            }
            (LinePart::Json, b'"') => LinePart::String,
            (LinePart::String, b'"') => LinePart::Json,
            (LinePart::String, b'\\') => LinePart::Escape,
            (LinePart::String | LinePart::Escape, _) => LinePart::String,
            (LinePart::Json, _) => LinePart::Json,
            (LinePart::Start | LinePart::Other, _) => LinePart::Other,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l4_nesting_counts_as_the_parser_counts() {
        let nested = |depth: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        #[rustfmt::skip]
        let cases = [
            ("allowed",          nested(MAX_NESTING),                                false),
            ("one too many",     nested(MAX_NESTING + 1),                            true),
            ("objects",          r#"{"a":"#.repeat(MAX_NESTING + 1),                 true),
            ("many lines",       format!("{}\n", nested(100)).repeat(3),             false),
            ("a text",           format!(r#"{{"a":"\"{}"}}"#, "[".repeat(300)),      false),
            ("after a text",     format!(r#"{{"a":"\\",{}"#, "[".repeat(300)),       true),
            ("side by side",     format!(r#"{{"a":[{}1]}}"#, "[],".repeat(300)),     false),
            ("not a message",    "[".repeat(300),                                    false),
            ("not ended before", format!("{{{{\n{}", "[".repeat(300)),               false),
        ];
        for (name, text, expected) in cases {
            assert_eq!(Nesting::default().is_exceeded_by(text.as_bytes()), expected, "{name}");
            let mut nesting = Nesting::default();
            let in_pieces = text.as_bytes().chunks(3).any(|piece| nesting.is_exceeded_by(piece));
            assert_eq!(in_pieces, expected, "{name}: in pieces");
        }
        let parses = |depth: usize| serde_json::from_str::<serde_json::Value>(&nested(depth)).is_ok();
        assert_eq!((parses(MAX_NESTING), parses(MAX_NESTING + 1)), (true, false));
    }
}
