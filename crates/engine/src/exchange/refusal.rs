//! Reads the body of a refusal.

use aside_core::event::ProviderError;
use aside_core::fold::Fold;
use aside_core::wire::{Decoder, plain_error};

use crate::http::HttpRefusal;

/// How much of an unparseable error body is quoted.
const MAX_QUOTED_CHARS: usize = 1000;

/// Parses a refusal with the same decoder as any reply.
pub(super) fn parse_refusal(mut decoder: Decoder, refusal: &HttpRefusal) -> ProviderError {
    let mut fold = Fold::new();
    decoder.push(&refusal.body, &mut fold);
    let understood = decoder.finish(&mut fold).is_ok();
    let provider_error = fold.finish().end.error.filter(|_| understood);
    let error = provider_error.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&refusal.body);
        let message = match text.trim() {
            "" => "the provider refused and gave no reason".to_owned(),
            text => plain_error(text).chars().take(MAX_QUOTED_CHARS).collect(),
        };
        ProviderError { message, code: None, status: None }
    });
    ProviderError { status: Some(refusal.status), ..error }
}
