//! Storing a long reply, and giving the memory that it takes back to the system.

use aside_core::message::Message;

use crate::stored::StoredBlock;

/// A reply with more text than this is long.
const LONG_REPLY: usize = 256 * 1024;

pub(super) fn is_long(message: &Message) -> bool {
    message.blocks.iter().map(|block| StoredBlock::of(block).text.len()).sum::<usize>() > LONG_REPLY
}

/// Runs work on a thread of its own. Indexing takes several times the size of the text, in small allocations. The
/// allocator keeps the last freed ones for their thread, and what lies between them stays with the process until that
/// thread ends.
pub(super) fn on_short_thread<T: Send>(work: &(impl Fn() -> T + Sync)) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("indexer".to_owned()).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread can be started.
            Err(_) => work(),
        }
    })
}
