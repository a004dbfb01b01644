//! The helper as a separate program, for tests. `aside` is its own helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    aside_confine::supervisor::run_if_helper().unwrap_or(ExitCode::from(2))
}
