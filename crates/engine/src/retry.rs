//! When to retry a request. Once the user has seen part of a reply, it is never retried.

use std::time::Duration;

use crate::http::HttpRefusal;
use aside_core::connection_failure::ConnectionFailure;

/// How often a request is sent at most.
const MAX_ATTEMPTS: u32 = 4;
const INITIAL_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// If the provider asks for a longer pause, the user should decide.
pub(crate) const MAX_REQUESTED_PAUSE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    After(Duration),
}

/// After a refusal: overload and server errors are retried, invalid requests are not.
pub(crate) fn after_refusal(refusal: &HttpRefusal, attempt: u32) -> Retry {
    let is_transient = matches!(refusal.status, 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529);
    match refusal.should_retry {
        Some(false) => Retry::Never,
        _ if attempt >= MAX_ATTEMPTS => Retry::Never,
        Some(true) => pause(refusal.retry_after, attempt),
        None if is_transient => pause(refusal.retry_after, attempt),
        None => Retry::Never,
    }
}

/// After a connection error before the first byte.
pub(crate) fn after_connection_failure(failure: ConnectionFailure, attempt: u32) -> Retry {
    if failure.is_transient() && attempt < MAX_ATTEMPTS { pause(None, attempt) } else { Retry::Never }
}

fn pause(requested: Option<Duration>, attempt: u32) -> Retry {
    match requested {
        Some(requested) if requested > MAX_REQUESTED_PAUSE => Retry::Never,
        Some(requested) => Retry::After(requested),
        None => {
            let full = INITIAL_PAUSE.saturating_mul(1 << (attempt - 1).min(8)).min(MAX_PAUSE);
            // Jitter, so that clients that failed together do not retry together.
            Retry::After(full.mul_f64(0.75 + fastrand::f64() / 2.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16) -> HttpRefusal {
        HttpRefusal { status, retry_after: None, should_retry: None, body: Vec::new(), content_type: None }
    }

    #[test]
    fn transient_errors_are_retried_and_invalid_requests_are_not() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(matches!(after_refusal(&refusal(status), 1), Retry::After(_)), "{status}");
            assert_eq!(after_refusal(&refusal(status), MAX_ATTEMPTS), Retry::Never, "{status}: bounded");
        }
        for status in [400, 401, 402, 403, 404, 413, 422, 501] {
            assert_eq!(after_refusal(&refusal(status), 1), Retry::Never, "{status}");
        }
    }

    #[test]
    fn the_provider_decides_when_to_retry() {
        let requested = |seconds| HttpRefusal { retry_after: Some(Duration::from_secs(seconds)), ..refusal(429) };
        assert_eq!(after_refusal(&requested(7), 1), Retry::After(Duration::from_secs(7)));
        assert_eq!(after_refusal(&requested(3600), 1), Retry::Never, "an hour is for the user to decide");
        assert_eq!(after_refusal(&HttpRefusal { should_retry: Some(false), ..refusal(529) }, 1), Retry::Never);
        assert!(matches!(after_refusal(&HttpRefusal { should_retry: Some(true), ..refusal(400) }, 1), Retry::After(_)));
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for attempt in 1..MAX_ATTEMPTS {
            let Retry::After(pause) = after_refusal(&refusal(503), attempt) else { panic!() };
            let full = INITIAL_PAUSE * (1 << (attempt - 1));
            assert!(pause >= full.mul_f64(0.75) && pause <= full.mul_f64(1.25), "{attempt}: {pause:?}");
        }
    }
}
