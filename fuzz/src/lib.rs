//! Properties that must hold for any bytes. The fuzzer looks for input that breaks
//! them, and the tests replay its findings.

#[path = "../../crates/core/tests/it/fuzz_checks.rs"]
mod fuzz_checks;
#[path = "../../crates/core/tests/it/support.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod support;
#[path = "../../crates/tui/tests/it/draws.rs"]
mod draws;

/// Runs the check of one target.
pub fn check(target: &str, data: &[u8]) {
    match target {
        "screen" => draws::check(data),
        target => fuzz_checks::check(target, data),
    }
}
