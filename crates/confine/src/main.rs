//! The helper as a program of its own, for the tests of other crates. `aside`
//! contains it: it starts itself again.

use std::process::ExitCode;

fn main() -> ExitCode {
    aside_confine::helper::run_if_asked().unwrap_or(ExitCode::from(2))
}
