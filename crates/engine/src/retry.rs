//! Sending again, while nothing has been shown.

use std::time::Duration;

use crate::http::Refusal;

/// The most times a request is sent.
const MOST_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A provider that wants a longer pause than this wants the user to know.
const LONGEST_WISH: Duration = Duration::from_secs(120);

/// Whether to send again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    After(Duration),
}

/// For a provider that answered: busy and broken pass, a wrong request does not.
pub(crate) fn refused(refusal: &Refusal, attempt: u32) -> Retry {
    let passes = matches!(refusal.status, 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529);
    match refusal.should_retry {
        Some(false) => Retry::Never,
        _ if attempt >= MOST_ATTEMPTS => Retry::Never,
        Some(true) => pause(refusal.retry_after, attempt),
        None if passes => pause(refusal.retry_after, attempt),
        None => Retry::Never,
    }
}

/// For a connection that broke before it said anything.
pub(crate) fn unreachable(passes: bool, attempt: u32) -> Retry {
    if passes && attempt < MOST_ATTEMPTS { pause(None, attempt) } else { Retry::Never }
}

fn pause(wish: Option<Duration>, attempt: u32) -> Retry {
    match wish {
        Some(wish) if wish > LONGEST_WISH => Retry::Never,
        Some(wish) => Retry::After(wish),
        None => {
            let full = FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(8)).min(LONGEST_PAUSE);
            // Clients that failed together must not come back together.
            Retry::After(full.mul_f64(0.75 + fastrand::f64() / 2.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16) -> Refusal {
        Refusal { status, retry_after: None, should_retry: None, body: Vec::new(), content_type: None }
    }

    #[test]
    fn what_passes_is_sent_again_and_what_is_wrong_is_not() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(matches!(refused(&refusal(status), 1), Retry::After(_)), "{status}");
            assert_eq!(refused(&refusal(status), MOST_ATTEMPTS), Retry::Never, "{status}: bounded");
        }
        for status in [400, 401, 402, 403, 404, 413, 422, 501] {
            assert_eq!(refused(&refusal(status), 1), Retry::Never, "{status}");
        }
    }

    #[test]
    fn the_provider_has_the_last_word_on_when() {
        let wish = |seconds| Refusal { retry_after: Some(Duration::from_secs(seconds)), ..refusal(429) };
        assert_eq!(refused(&wish(7), 1), Retry::After(Duration::from_secs(7)));
        assert_eq!(refused(&wish(3600), 1), Retry::Never, "an hour is for the user to decide");
        assert_eq!(refused(&Refusal { should_retry: Some(false), ..refusal(529) }, 1), Retry::Never);
        assert!(matches!(refused(&Refusal { should_retry: Some(true), ..refusal(400) }, 1), Retry::After(_)));
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for attempt in 1..MOST_ATTEMPTS {
            let Retry::After(pause) = refused(&refusal(503), attempt) else { panic!() };
            let full = FIRST_PAUSE * (1 << (attempt - 1));
            assert!(pause >= full.mul_f64(0.75) && pause <= full.mul_f64(1.25), "{attempt}: {pause:?}");
        }
    }
}
