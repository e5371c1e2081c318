//! Counts what is allocated, in bytes asked for: the same yardstick for each contestant, free of what the
//! allocator or the system add.
#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; every call goes straight to mimalloc")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use mimalloc::MiMalloc;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static COUNTS: AtomicBool = AtomicBool::new(true);

/// The bytes allocated at this moment.
pub fn allocated() -> usize {
    ALLOCATED.load(Relaxed)
}

/// The most bytes that were ever allocated at once since the last [`reset_peak`].
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

pub fn reset_peak() {
    PEAK.store(allocated(), Relaxed);
}

/// Stops counting for good: threads that allocate at once would wait for each other's counts.
pub fn stop_counting() {
    COUNTS.store(false, Relaxed);
}

fn grown(bytes: usize) {
    if !COUNTS.load(Relaxed) {
        return;
    }
    let allocated = ALLOCATED.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(allocated, Relaxed);
}

fn shrunk(bytes: usize) {
    if COUNTS.load(Relaxed) {
        ALLOCATED.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: each method passes its arguments on unchanged; counting touches no memory but two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrunk(layout.size());
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it moves, a block may exist twice; the allocator hides whether it did, so count it once.
        if size > layout.size() {
            grown(size - layout.size());
        } else {
            shrunk(layout.size() - size);
        }
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}
