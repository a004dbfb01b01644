//! An allocator that counts calls and the bytes in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

pub struct AllocCounter;

/// What happened during a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Heap {
    /// Allocations and reallocations.
    pub calls: usize,
    /// The bytes of all allocations, freed or not. A reallocation counts by how much it grew.
    pub bytes: usize,
    /// The most bytes in use at once, above those in use at the start.
    pub peak: usize,
}

/// Runs a function and measures its heap use.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Heap) {
    let (calls, bytes, live) = (CALLS.load(Relaxed), BYTES.load(Relaxed), LIVE.load(Relaxed));
    PEAK.store(live, Relaxed);
    let result = work();
    let heap = Heap {
        calls: CALLS.load(Relaxed) - calls,
        bytes: BYTES.load(Relaxed) - bytes,
        peak: PEAK.load(Relaxed).saturating_sub(live),
    };
    (result, heap)
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
// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for AllocCounter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        grew(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrank(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // One block that changes its size, as heap profilers count it.
        BYTES.fetch_add(size.saturating_sub(layout.size()), Relaxed);
        shrank(layout.size());
        grew(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
