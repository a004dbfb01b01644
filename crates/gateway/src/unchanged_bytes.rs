//! Passes the bytes of a provider on to a client of the same protocol.

use aside_core::protocol::Protocol;
use aside_engine::redact::RedactedStream;
use bytes::Bytes;

use crate::relay::terminal_frame;
use crate::response_state::ResponseIdFinder;

/// The bytes of a provider on their way to a client of the same protocol, without our keys. The last frame is held
/// back until the reply is remembered.
pub(crate) struct UnchangedBytes {
    protocol: Protocol,
    keys: RedactedStream,
    pub(crate) response_id: ResponseIdFinder,
    unsent: Vec<u8>,
    /// Where the newest chunk begins in `unsent`.
    newest: usize,
    /// What may be the last frame.
    held: Vec<u8>,
    /// The reply has ended; what follows must not take the last frame along.
    is_at_end: bool,
}

impl UnchangedBytes {
    pub(crate) fn new(protocol: Protocol, keys: RedactedStream) -> UnchangedBytes {
        let response_id = ResponseIdFinder::new(protocol);
        UnchangedBytes {
            protocol,
            keys,
            response_id,
            unsent: Vec::new(),
            newest: 0,
            held: Vec::new(),
            is_at_end: false,
        }
    }

    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.response_id.push(&bytes);
        let bytes = self.keys.pass(bytes);
        if self.is_at_end {
            self.held.extend_from_slice(&bytes);
            return;
        }
        self.unsent.append(&mut self.held);
        self.newest = self.unsent.len();
        let at = terminal_frame(self.protocol, &bytes).unwrap_or(bytes.len());
        let (now, later) = bytes.split_at_checked(at).unwrap_or((&bytes, &[]));
        self.unsent.extend_from_slice(now);
        self.held.extend_from_slice(later);
    }

    /// The newest chunk has the end of the reply. A last frame in two chunks is only known by its second half.
    pub(crate) fn end_is_read(&mut self) {
        self.is_at_end = true;
        if self.held.is_empty() {
            self.held = self.unsent.split_off(self.newest.min(self.unsent.len()));
        }
    }

    pub(crate) fn take_unsent(&mut self) -> Vec<u8> {
        self.newest = 0;
        std::mem::take(&mut self.unsent)
    }

    /// Lets the last frame go.
    pub(crate) fn release(&mut self) {
        self.unsent.append(&mut self.held);
        self.unsent.append(&mut self.keys.finish());
    }

    /// Forgets what has come, for the reply to another request.
    pub(crate) fn start_over(&mut self) {
        self.keys.finish();
        *self = UnchangedBytes::new(self.protocol, self.keys.clone());
    }
}

#[cfg(test)]
mod tests {
    use aside_engine::Redactor;

    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    /// What the client gets before the reply is remembered, and after it.
    fn sent(chunks: &[&'static str], end_in: usize) -> (String, String) {
        let mut bytes = UnchangedBytes::new(Protocol::OpenaiChat, Redactor::new([KEY.to_owned()]).stream());
        let mut before = Vec::new();
        for (nth, chunk) in chunks.iter().enumerate() {
            bytes.add(Bytes::from_static(chunk.as_bytes()));
            if nth == end_in {
                bytes.end_is_read();
            }
            before.append(&mut bytes.take_unsent());
        }
        bytes.release();
        (String::from_utf8(before).unwrap(), String::from_utf8(bytes.take_unsent()).unwrap())
    }

    #[test]
    fn g7_the_last_frame_waits_until_the_reply_is_remembered() {
        #[rustfmt::skip]
        let cases: [(&str, &[&'static str], usize, &str, &str); 6] = [
            ("in one chunk",       &["data: 1\n\ndata: [DONE]\n\n"],                  0, "data: 1\n\n",                  "data: [DONE]\n\n"),
            ("marker in two",      &["data: 1\n\ndata: [DO", "NE]\n\n"],              1, "data: 1\n\ndata: [DO",         "NE]\n\n"),
            ("end of it later",    &["data: 1\n\ndata: [DONE]", "\n\n"],              1, "data: 1\n\ndata: [DONE]",      "\n\n"),
            ("more after it",      &["data: [DONE]\n\n", ": bye\n\n", ": bye\n\n"], 0, "",                              "data: [DONE]\n\n: bye\n\n: bye\n\n"),
            ("said in the answer", &["x data: [DONE]", " y", "data: [DONE]\n\n"],       2, "x data: [DONE] y",              "data: [DONE]\n\n"),
            ("no end",             &["data: 1\n\n", "data: 2\n\n"],                   9, "data: 1\n\ndata: 2\n\n",        ""),
        ];
        for (name, chunks, end_in, before, after) in cases {
            assert_eq!(sent(chunks, end_in), (before.to_owned(), after.to_owned()), "{name}");
        }
    }

    #[test]
    fn g8_a_key_in_two_chunks_does_not_reach_the_client() {
        let (before, after) = sent(&["data: sk-01234567", "89abcdef.\n\ndata: sk-0"], 9);
        assert_eq!((before.as_str(), after.as_str()), ("data: ***.\n\ndata: ", "sk-0"));
    }
}
