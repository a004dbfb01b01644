//! What a notice tells the user to do.

use aside_core::compaction::CompactionTrigger;
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::event::{ContextOverflow, ProviderError};
use aside_core::turn::TurnEnd;
use aside_front::wording::{HintStyle, compacted, turn_end};

fn hint(end: &TurnEnd, style: HintStyle) -> String {
    turn_end(end, style).and_then(|notice| notice.hint).unwrap_or_default()
}

#[test]
fn t18_a_failure_that_asking_again_does_not_cure_is_not_retried_first() {
    let end = |failure| TurnEnd::Unreachable(ConnectionError::new(failure, "it failed"));
    assert_eq!(
        hint(&end(ConnectionFailure::UnknownAuthority), HintStyle::SlashCommands),
        "if you trust this server, add its certificate authority to the system's or name its PEM file in SSL_CERT_FILE; \
         then leave and continue with aside -c"
    );
    #[rustfmt::skip]
    let cases = [
        (ConnectionFailure::InvalidRequest,   false),
        (ConnectionFailure::UnknownAuthority, false),
        (ConnectionFailure::SelfSigned,       false),
        (ConnectionFailure::Dns,              true),
        (ConnectionFailure::Refused,          true),
        (ConnectionFailure::Tls,              true),
        (ConnectionFailure::Closed,           true),
    ];
    for (failure, asks_again) in cases {
        let hint = hint(&end(failure), HintStyle::SlashCommands);
        assert_eq!(hint.starts_with("/retry asks again; if that persists, "), asks_again, "{failure:?}: {hint}");
        assert!(hint.matches("if ").count() < 2 || asks_again, "{failure:?}: {hint}");
    }
}

#[test]
fn t18_an_account_without_credit_gets_the_same_hint_whatever_the_status() {
    let quota = ProviderError::new("You exceeded your current quota").with_status(429);
    let limit = TurnEnd::Failed(quota.clone());
    let no_credit = TurnEnd::Failed(quota.with_lacks_credit(true));
    let by_status = TurnEnd::Failed(ProviderError::new("Insufficient Balance").with_status(402));
    for style in [HintStyle::CommandLine, HintStyle::SlashCommands, HintStyle::Menus] {
        assert_eq!(hint(&no_credit, style), hint(&by_status, style));
        assert_ne!(hint(&limit, style), hint(&by_status, style));
    }
}

#[test]
fn t18_after_the_engine_has_compacted_the_hint_names_what_still_helps() {
    let failed = |overflow| TurnEnd::Failed(ProviderError::new("prompt is too long").with_overflow(overflow));
    let too_long = failed(ContextOverflow::Final);
    assert_eq!(
        hint(&too_long, HintStyle::SlashCommands),
        "the message does not fit: /undo takes it back, /model switches to a model with a larger window, /new begins a \
         new session"
    );
    assert!(!hint(&too_long, HintStyle::Menus).contains("/compact"));
    let not_summarised = failed(ContextOverflow::CompactionFailed);
    assert_eq!(
        hint(&not_summarised, HintStyle::SlashCommands),
        "the conversation is too long for this model: /compact tries again to summarise older turns, /model switches to a \
         model with a larger window"
    );
    assert!(hint(&not_summarised, HintStyle::Menus).contains("/compact"));
    assert_eq!(hint(&not_summarised, HintStyle::CommandLine), hint(&too_long, HintStyle::CommandLine));
    // These words were not recognised, so nothing was compacted.
    let by_status = TurnEnd::Failed(ProviderError::new("payload").with_status(413));
    assert!(hint(&by_status, HintStyle::SlashCommands).contains("/compact"));
}

#[test]
fn t18_a_compaction_says_why_unless_the_user_asked_for_it() {
    #[rustfmt::skip]
    let cases = [
        (CompactionTrigger::Manual,  "replaced 2 older messages with a summary"),
        (CompactionTrigger::Full,    "the context window is nearly full: replaced 2 older messages with a summary"),
        (CompactionTrigger::TooLong, "the conversation was too long for the model: replaced 2 older messages with a summary"),
    ];
    for (trigger, expected) in cases {
        assert_eq!(compacted(2, trigger), expected);
    }
}
