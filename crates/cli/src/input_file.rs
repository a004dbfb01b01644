//! Reads a whole file, or standard input, in bounded memory.

use std::fs::{self, File};
use std::io::{self, Read};

use aside_session::HintedError;
use aside_session::program_sessions::MAX_SESSION_BYTES;

/// Reads a text.
pub(crate) fn read_text(name: &str) -> Result<String, HintedError> {
    String::from_utf8(read_bytes(name)?).map_err(|error| cannot_read(name, &error))
}

/// Reads at most [`MAX_SESSION_BYTES`]; `-` is standard input.
pub(crate) fn read_bytes(name: &str) -> Result<Vec<u8>, HintedError> {
    if name == "-" {
        return read_at_most(name, io::stdin().lock(), MAX_SESSION_BYTES);
    }
    // Opening a named pipe waits for a writer, so what it is must be known before.
    let metadata = fs::metadata(name).map_err(|error| cannot_read(name, &error))?;
    if metadata.is_dir() {
        return Err(cannot_read(name, &"it is a folder"));
    }
    if !metadata.is_file() && !is_given_pipe(name) {
        let error = cannot_read(name, &"it is not a regular file");
        return Err(error.hint("to read a pipe or a device, redirect it to standard input and give - as the file"));
    }
    if usize::try_from(metadata.len()).is_ok_and(|length| length <= MAX_SESSION_BYTES) {
        let file = File::open(name).map_err(|error| cannot_read(name, &error))?;
        return read_at_most(name, file, MAX_SESSION_BYTES);
    }
    Err(too_large(name, MAX_SESSION_BYTES))
}

/// Whether the shell opened it for this command: `<(command)` or `/dev/stdin`.
fn is_given_pipe(name: &str) -> bool {
    name == "/dev/stdin" || ["/dev/fd/", "/proc/self/fd/"].iter().any(|folder| name.starts_with(folder))
}

fn read_at_most(name: &str, input: impl Read, most: usize) -> Result<Vec<u8>, HintedError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    input.take(limit).read_to_end(&mut bytes).map_err(|error| cannot_read(name, &error))?;
    if bytes.len() > most {
        return Err(too_large(name, most));
    }
    Ok(bytes)
}

fn cannot_read(name: &str, why: &dyn std::fmt::Display) -> HintedError {
    HintedError::new(format!("cannot read {name}: {why}"))
}

fn too_large(name: &str, most: usize) -> HintedError {
    cannot_read(name, &format_args!("it is larger than {} MiB", most >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_of_unknown_length_is_read_up_to_the_limit() {
        assert_eq!(read_at_most("-", io::repeat(b'x').take(2 << 20), 2 << 20).unwrap().len(), 2 << 20);
        let error = read_at_most("-", io::repeat(b'x'), 2 << 20).unwrap_err();
        assert_eq!(error.to_string(), "cannot read -: it is larger than 2 MiB");
    }
}
