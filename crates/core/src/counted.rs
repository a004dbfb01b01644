//! Numbers with their noun.

/// `1 line`, `2 lines`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
