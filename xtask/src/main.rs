//! Development tasks: `cargo tidy` checks names, texts and documents.

mod tidy;

use std::process::ExitCode;

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a command-line tool prints its results")]
fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let problems = tidy::problems();
            for problem in &problems {
                eprintln!("tidy: {problem}");
            }
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            println!("usage: cargo tidy");
            ExitCode::from(2)
        }
    }
}
