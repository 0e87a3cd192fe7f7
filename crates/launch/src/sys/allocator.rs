//! The release's allocator: `dlmalloc` behind a lock that costs a launch little. musl's own gives every page back at once,
//! and its mutex, which `dlmalloc` would take by itself, takes longer than the allocation.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;

/// Memory from the kernel by `mmap`, kept for the next.
pub struct Allocator(Mutex<Dlmalloc>);

impl Allocator {
    /// One that has no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Dlmalloc::new()))
    }

    fn locked(&self) -> MutexGuard<'_, Dlmalloc> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Allocator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Allocator")
    }
}

impl Default for Allocator {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: one allocator that is used by one at a time; nothing here unwinds, and the lock allocates nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut memory = self.locked();
        // SAFETY: the caller's layout has a size and a valid alignment.
        unsafe { memory.malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mut memory = self.locked();
        // SAFETY: as above.
        unsafe { memory.calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut memory = self.locked();
        // SAFETY: the caller has the pointer from here, by this layout.
        unsafe { memory.free(pointer, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let mut memory = self.locked();
        // SAFETY: the caller has the pointer from here, by this layout, and the new size is valid for its alignment.
        unsafe { memory.realloc(pointer, layout.size(), layout.align(), size) }
    }
}
