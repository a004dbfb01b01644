//! An allocator that counts: how often, and how much is alive at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

pub struct Meter;

/// What happened between two looks.
#[derive(Debug, Clone, Copy)]
pub struct Heap {
    /// Allocations and growths.
    pub calls: usize,
    /// Most bytes alive at once, above what was alive at the start.
    pub peak: usize,
}

/// Runs something and tells what it did to the heap.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Heap) {
    let (calls, live) = (CALLS.load(Relaxed), LIVE.load(Relaxed));
    PEAK.store(live, Relaxed);
    let result = work();
    (result, Heap { calls: CALLS.load(Relaxed) - calls, peak: PEAK.load(Relaxed).saturating_sub(live) })
}

fn grew(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

fn shrank(bytes: usize) {
    LIVE.fetch_sub(bytes, Relaxed);
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call goes to the system's")]
// SAFETY: every request is handed to the system allocator unchanged.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrank(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // One block that changes its size, as heap profilers count it.
        shrank(layout.size());
        grew(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
