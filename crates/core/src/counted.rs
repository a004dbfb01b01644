//! Numbers with their noun or unit.

/// `1 line`, `2 lines`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A size on disk for people: `812 bytes`, `3.4 MB`.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => counted(bytes, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_largest_unit_that_fits() {
        #[rustfmt::skip]
        let cases = [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_000, "1.0 kB"), (3_440_000, "3.4 MB"), (12_300_000_000, "12.3 GB")];
        for (bytes, expected) in cases {
            assert_eq!(bytes_text(bytes), expected);
        }
    }
}
