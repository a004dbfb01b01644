//! The helper that commands run below, for the tests of this crate. `aside` is
//! its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    aside_confine::helper::run_if_asked().unwrap_or(ExitCode::from(2))
}
