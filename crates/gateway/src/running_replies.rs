//! The replies that are on their way. A gateway that ends cuts them off, and still remembers what came.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the end of a gateway waits for replies that were cut off.
const END_TIME: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct RunningReplies {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

impl RunningReplies {
    /// Runs what reads a reply and remembers it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(work));
    }

    /// Cancelled when replies must end, complete or not.
    pub(crate) fn cut_off(&self) -> &CancellationToken {
        &self.cut_off
    }

    /// Cuts the replies off, and waits until they are remembered.
    pub(crate) async fn end(&self) {
        self.cut_off.cancel();
        self.tasks.close();
        // A client that does not read its reply must not hold up the end.
        let _timed_out = tokio::time::timeout(END_TIME, self.tasks.wait()).await;
    }
}
