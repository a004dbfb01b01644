//! Store access and file listings on a thread of their own, so that they never hold up the
//! session's tools and connections.

use std::sync::Arc;

use aside_store::{SqliteStore, StoreError};

use crate::error::HintedError;
use crate::session_recorder::store_error;

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HintedError> + Send + 'static,
) -> Result<T, HintedError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(HintedError::new(error.to_string())),
    }
}

pub(super) async fn in_store<T: Send + 'static>(
    store: &Arc<SqliteStore>,
    work: impl FnOnce(&SqliteStore) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, HintedError> {
    let store = Arc::clone(store);
    blocking(move || work(&store).map_err(|error| store_error(&error))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_runs_on_another_thread_while_this_one_goes_on() {
        let runtime = crate::start::runtime().unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let here = std::thread::current().id();
        runtime.block_on(async {
            // The work waits for a task of this thread, so it would never end on this thread.
            let task = async { release.send(()).unwrap() };
            let work = blocking(move || {
                released.recv().unwrap();
                Ok(std::thread::current().id())
            });
            let (there, ()) = tokio::join!(work, task);
            assert_ne!(there, Ok(here));
        });
    }
}
