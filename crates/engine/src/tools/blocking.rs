//! Runs blocking file work outside the async threads.

use std::fs::File;
use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

/// Runs the work on a blocking thread. It must stop when the call is cancelled or this future is
/// dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let stop = cancel.child_token();
    let _stop_when_dropped = stop.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(done) => done,
        Err(error) => Err(format!("the tool crashed: {error}")),
    }
}

pub(crate) const STOPPED: &str = "stopped by the user before it was done";

/// A file whose reads fail once the call is cancelled.
pub(crate) struct CancellableFile<'a> {
    pub(crate) file: File,
    pub(crate) stop: &'a CancellationToken,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other(STOPPED));
        }
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l4_a_file_ends_in_an_error_once_it_is_cancelled() {
        let stop = CancellationToken::new();
        let mut file = CancellableFile { file: File::open("/dev/zero").unwrap(), stop: &stop };
        assert_eq!(file.read(&mut [1; 4]).unwrap(), 4);
        stop.cancel();
        assert_eq!(file.read(&mut [1; 4]).unwrap_err().to_string(), STOPPED);
    }
}
