//! Removes keys from errors, notices, logs and recordings, because providers and servers repeat keys in their
//! errors. Blocks are not redacted: the model's output stays as received.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use aside_core::event::{Note, ProviderError, ReplyEnd};
use bytes::Bytes;
use memchr::memmem::{self, Finder};

use crate::api_key::{ApiKey, Secret};

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
    /// Searchers for `values`, made for the first stream.
    finders: Arc<OnceLock<Finders>>,
}

type Finders = Arc<[Finder<'static>]>;

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor of {} values", self.values().len())
    }
}

impl Redactor {
    pub fn new(values: impl IntoIterator<Item = String>) -> Redactor {
        Redactor { values: longest_first(values).into(), ..Redactor::default() }
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
                Redactor { keys, ..self.clone() }
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
        let (current, finders) = (self.current_keys().collect(), self.finders());
        RedactedStream { redactor: self.clone(), current, finders, held: Vec::new() }
    }

    fn current_keys(&self) -> impl Iterator<Item = Secret> {
        self.keys.iter().map(ApiKey::current)
    }

    fn finders(&self) -> Finders {
        match self.keys.is_empty() {
            true => Arc::clone(self.finders.get_or_init(|| finders(&self.values))),
            false => finders(&self.values()),
        }
    }
}

fn finders(values: &[String]) -> Finders {
    values.iter().map(|value| Finder::new(value.as_bytes()).into_owned()).collect()
}

/// The values that are long enough to be recognised.
fn longest_first(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let long = values.into_iter().map(|value| value.trim().to_owned()).filter(|value| value.len() >= MIN_SECRET_LEN);
    let mut values: Vec<String> = long.collect();
    values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    values.dedup();
    values
}

/// Holds back a possible beginning of a key until more bytes arrive.
#[derive(Debug, Clone)]
pub struct RedactedStream {
    redactor: Redactor,
    /// The keys that may change, when `finders` were made.
    current: Vec<Secret>,
    /// Longest first.
    finders: Finders,
    held: Vec<u8>,
}

impl RedactedStream {
    /// Returns all bytes that can be written already. Bytes without a key are not copied.
    pub fn pass(&mut self, bytes: Bytes) -> Bytes {
        self.follow_keys();
        if !self.held.is_empty() || self.finders.iter().any(|finder| finder.find(&bytes).is_some()) {
            return self.push(&bytes).into();
        }
        let open = bytes.len() - self.partial_match_len(&bytes);
        self.held.extend_from_slice(bytes.get(open..).unwrap_or_default());
        bytes.slice(..open)
    }

    /// The same for borrowed bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.follow_keys();
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(bytes);
        let mut cleaned = self.clean_bytes(whole);
        self.held = cleaned.split_off(cleaned.len() - self.partial_match_len(&cleaned));
        cleaned
    }

    /// The same for bytes that nothing follows.
    pub fn whole(&mut self, bytes: Bytes) -> Bytes {
        let passed = self.pass(bytes);
        let rest = self.finish();
        if rest.is_empty() { passed } else { [&passed[..], &rest].concat().into() }
    }

    /// Returns the bytes held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// A key may have been renewed since the last bytes.
    fn follow_keys(&mut self) {
        if !self.redactor.current_keys().eq(self.current.iter().cloned()) {
            *self = RedactedStream { held: std::mem::take(&mut self.held), ..self.redactor.stream() };
        }
    }

    fn clean_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.finders.iter().fold(bytes, |bytes, finder| {
            if finder.find(&bytes).is_none() {
                return bytes;
            }
            let mut cleaned = Vec::with_capacity(bytes.len());
            let mut rest = bytes.as_slice();
            while let Some((before, after)) = split_at(rest, finder) {
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
        let of = |finder: &Finder<'static>| {
            let key = finder.needle();
            let from = bytes.len().saturating_sub(key.len().saturating_sub(1));
            let end = bytes.get(from..).unwrap_or_default();
            let mut beginnings = memchr::memchr_iter(key.first().copied()?, end);
            let at = beginnings.find(|at| end.get(*at..).is_some_and(|open| key.starts_with(open)))?;
            Some(end.len() - at)
        };
        self.finders.iter().filter_map(of).max().unwrap_or(0)
    }
}

fn split_at<'a>(bytes: &'a [u8], value: &Finder<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let at = value.find(bytes)?;
    Some((bytes.get(..at)?, bytes.get(at + value.needle().len()..)?))
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
    fn bytes_without_a_key_pass_uncopied_up_to_a_possible_beginning() {
        let mut stream = Redactor::new([KEY.to_owned(), "zz-0123456789abcdef-zz".to_owned()]).stream();
        let bytes = Bytes::from_static(b"data: sk-0123 z\n\n");
        let passed = stream.pass(bytes.clone());
        assert_eq!((passed.as_ptr(), passed.len()), (bytes.as_ptr(), bytes.len()));
        assert_eq!(stream.pass(Bytes::from_static(b"tail sk-s")), "tail sk-");
        assert_eq!(stream.pass(Bytes::from_static(b"k-0123456789abcdef z")), "*** ");
        assert_eq!(stream.pass(Bytes::new()), "");
        assert_eq!(stream.finish(), b"z");
        assert_eq!(stream.whole(Bytes::from_static(b"a sk-0123456789abcdef sk-")), "a *** sk-");
    }

    #[tokio::test]
    async fn a_stream_replaces_a_key_that_is_renewed_while_it_runs() {
        let renewed = "renewed-0123456789abcdef";
        let key = ApiKey::renewable(KEY, None, Box::new(move || Ok(renewed.to_owned())));
        let mut stream = Redactor::default().with_key(Some(&key)).stream();
        assert_eq!(stream.push(KEY.as_bytes()), b"***");
        let first = key.current();
        assert_eq!(key.renewed_after(&first).await.expect("a key").expose(), renewed);
        assert_eq!(stream.push(format!("{renewed} {KEY}.").as_bytes()), b"*** ***.");
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
            let mut stream = redactor.stream();
            let mut passed = stream.pass(Bytes::copy_from_slice(first)).to_vec();
            passed.extend(stream.pass(Bytes::copy_from_slice(second)));
            passed.extend(stream.finish());
            assert_eq!(String::from_utf8(passed).unwrap(), "data: *** and ****** sk-0123 end sk-01", "{at}");
        }
    }
}
