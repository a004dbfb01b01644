//! Removes keys from errors, notices, logs and recordings, because providers and servers repeat keys in their
//! errors. Blocks are not redacted: the model's output stays as received.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aside_core::event::{Note, ProviderError, ReplyEnd};
use memchr::memmem;

use crate::api_key::ApiKey;

/// Shorter values could match ordinary text.
const MIN_SECRET_LEN: usize = 16;
const REPLACEMENT: &str = "***";

/// Replaces known keys with `***`.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, in case one value contains another.
    values: Arc<[String]>,
    /// Keys that may change.
    keys: Vec<ApiKey>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor of {} values", self.values().len())
    }
}

impl Redactor {
    pub fn new(values: impl IntoIterator<Item = String>) -> Redactor {
        Redactor { values: longest_first(values).into(), keys: Vec::new() }
    }

    /// A redactor with additional values.
    pub fn with(&self, more: impl IntoIterator<Item = String>) -> Redactor {
        Redactor { keys: self.keys.clone(), ..Redactor::new(self.values.iter().cloned().chain(more)) }
    }

    /// A redactor that also replaces a key, whatever it will be.
    pub fn with_key(&self, key: Option<&ApiKey>) -> Redactor {
        match key {
            Some(key) if key.is_renewable() => {
                let keys = self.keys.iter().chain([key]).cloned().collect();
                Redactor { values: Arc::clone(&self.values), keys }
            }
            Some(key) => self.with([key.current().expose().to_owned()]),
            None => self.clone(),
        }
    }

    /// All values as they are now, longest first.
    fn values(&self) -> Cow<'_, [String]> {
        if self.keys.is_empty() {
            return Cow::Borrowed(&self.values);
        }
        let secrets = self.keys.iter().flat_map(ApiKey::secrets);
        let now = secrets.map(|secret| secret.expose().to_owned());
        Cow::Owned(longest_first(self.values.iter().cloned().chain(now)))
    }

    /// A redactor with the values of both.
    pub fn and(&self, other: &Redactor) -> Redactor {
        let mut both = self.with(other.values.iter().cloned());
        both.keys.extend(other.keys.iter().cloned());
        both
    }

    /// Replaces all keys in a text. A text without keys is not copied.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut cleaned = Cow::Borrowed(text);
        for value in self.values().iter() {
            if memmem::find(cleaned.as_bytes(), value.as_bytes()).is_some() {
                cleaned = Cow::Owned(cleaned.replace(value.as_str(), REPLACEMENT));
            }
        }
        cleaned
    }

    pub(crate) fn error(&self, error: ProviderError) -> ProviderError {
        let message = self.clean(&error.message).into_owned();
        let code = error.code.as_deref().map(|code| self.clean(code).into_owned());
        let words = error.words.as_deref().map(|words| self.clean(words).into_owned());
        error.with_message(message).with_words(words).with_code(code)
    }

    pub(crate) fn end(&self, end: &ReplyEnd) -> ReplyEnd {
        ReplyEnd { error: end.error.clone().map(|error| self.error(error)), ..end.clone() }
    }

    pub(crate) fn note(&self, note: &Note) -> Note {
        let mut cleaned = note.clone();
        cleaned.message = self.clean(&note.message).into_owned();
        cleaned
    }

    /// A redactor for bytes that arrive in chunks.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream { redactor: self.clone(), held: Vec::new() }
    }

    fn clean_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.values().iter().fold(bytes, |bytes, value| {
            let value = value.as_bytes();
            if memmem::find(&bytes, value).is_none() {
                return bytes;
            }
            let mut cleaned = Vec::with_capacity(bytes.len());
            let mut rest = bytes.as_slice();
            while let Some((before, after)) = split_at(rest, value) {
                cleaned.extend_from_slice(before);
                cleaned.extend_from_slice(REPLACEMENT.as_bytes());
                rest = after;
            }
            cleaned.extend_from_slice(rest);
            cleaned
        })
    }

    /// How many bytes at the end may be the beginning of a key.
    fn partial_match_len(&self, bytes: &[u8]) -> usize {
        let values = self.values();
        let longest = values.first().map_or(0, |value| value.len() - 1).min(bytes.len());
        let is_open = |length: &usize| {
            let end = bytes.len().checked_sub(*length).and_then(|from| bytes.get(from..)).unwrap_or_default();
            values.iter().any(|value| value.as_bytes().starts_with(end))
        };
        (1..=longest).rev().find(is_open).unwrap_or(0)
    }
}

/// The values that are long enough to be recognised.
fn longest_first(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let long = values.into_iter().map(|value| value.trim().to_owned()).filter(|value| value.len() >= MIN_SECRET_LEN);
    let mut values: Vec<String> = long.collect();
    values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    values.dedup();
    values
}

fn split_at<'a>(bytes: &'a [u8], value: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memmem::find(bytes, value)?;
    Some((bytes.get(..at)?, bytes.get(at + value.len()..)?))
}

/// Holds back a possible beginning of a key until more bytes arrive.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl RedactedStream {
    /// Returns all bytes that can be written already.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.redactor.values().is_empty() {
            return bytes.to_vec();
        }
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(bytes);
        let mut cleaned = self.redactor.clean_bytes(whole);
        self.held = cleaned.split_off(cleaned.len() - self.redactor.partial_match_len(&cleaned));
        cleaned
    }

    /// Returns the bytes held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    #[test]
    fn keys_are_replaced_and_short_values_are_not() {
        let redactor = Redactor::new([KEY.to_owned(), "short".to_owned(), format!("{KEY}-longer")]);
        let cleaned =
            redactor.clean("Incorrect API key provided: sk-0123456789abcdef. short sk-0123456789abcdef-longer");
        assert_eq!(cleaned, "Incorrect API key provided: ***. short ***");
        assert!(matches!(redactor.clean("nothing here"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("sk-"));
    }

    #[test]
    fn a_key_cut_anywhere_is_replaced_in_a_stream() {
        let redactor = Redactor::new([KEY.to_owned()]);
        let text = format!("data: {KEY} and {KEY}{KEY} sk-0123 end sk-01");
        for at in 0..text.len() {
            let mut stream = redactor.stream();
            let (first, second) = text.as_bytes().split_at(at);
            let mut written = stream.push(first);
            written.extend(stream.push(second));
            written.extend(stream.finish());
            assert_eq!(String::from_utf8(written).unwrap(), "data: *** and ****** sk-0123 end sk-01", "{at}");
        }
    }
}
