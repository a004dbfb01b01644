//! Reads the body of a refusal.

use aside_core::event::ProviderError;
use aside_core::fold::Fold;
use aside_core::wire::{Decoder, error_words};

use crate::http::HttpRefusal;

/// Parses a refusal with the same decoder as any reply. The message is everything that the body says about
/// the cause, because gateways put the provider's own words into other members.
pub fn read_refusal(mut decoder: Decoder, refusal: &HttpRefusal) -> ProviderError {
    let mut fold = Fold::new();
    decoder.push(&refusal.body, &mut fold);
    let understood = decoder.finish(&mut fold).is_ok();
    let provider_error = fold.finish().end.error.filter(|_| understood).unwrap_or_default();
    let message = error_words(&String::from_utf8_lossy(&refusal.body));
    provider_error.with_message(message).with_words(None).with_status(refusal.status)
}
