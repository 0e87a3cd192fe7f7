//! The release's allocator: `dlmalloc` behind a lock that costs a launch little. musl's own gives every page back at once,
//! and its mutex, which `dlmalloc` would take by itself, takes longer than the allocation.
//!
//! A large block is a mapping of its own. `dlmalloc` would grow it beside itself and by a copy, and keep both: a message
//! of 100 MiB took two and a half times that. The kernel moves a mapping's pages, and what is not used of one takes none.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;

/// From here on a block is a mapping.
const LARGE: usize = 1024 * 1024;
/// Mappings are aligned to more.
const LEAST_PAGE: usize = 4096;

/// Memory from the kernel by `mmap`, kept for the next if it is not large.
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

/// Whether a block of this size and alignment is a mapping: told by the layout alone, which comes with every call.
const fn is_mapping(size: usize, align: usize) -> bool {
    size >= LARGE && align <= LEAST_PAGE
}

/// Zeros; null if there is no memory.
fn map(size: usize) -> *mut u8 {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel likes; nothing else is there.
    let mapping = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if mapping == libc::MAP_FAILED { ptr::null_mut() } else { mapping.cast() }
}

/// # Safety
/// `pointer` is from [`map`] or from here, with `old` bytes, and not used after a change that is not null.
unsafe fn remap(pointer: *mut u8, old: usize, size: usize) -> *mut u8 {
    // SAFETY: a whole mapping of ours, which nobody uses meanwhile.
    let mapping = unsafe { libc::mremap(pointer.cast(), old, size, libc::MREMAP_MAYMOVE) };
    if mapping == libc::MAP_FAILED { ptr::null_mut() } else { mapping.cast() }
}

/// # Safety
/// `pointer` is from [`map`] or [`remap`], with `size` bytes, and not used after.
unsafe fn unmap(pointer: *mut u8, size: usize) {
    // SAFETY: a whole mapping of ours. The kernel refuses only what is not one.
    unsafe { libc::munmap(pointer.cast(), size) };
}

// SAFETY: small blocks are from one allocator that is used by one at a time, large ones are mappings of their own, and the
// layout tells them apart; nothing here unwinds, and the lock allocates nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapping(layout.size(), layout.align()) {
            return map(layout.size());
        }
        let mut memory = self.locked();
        // SAFETY: the caller's layout has a size and a valid alignment.
        unsafe { memory.malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapping(layout.size(), layout.align()) {
            return map(layout.size());
        }
        let mut memory = self.locked();
        // SAFETY: as above.
        unsafe { memory.calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_mapping(layout.size(), layout.align()) {
            // SAFETY: the caller has the pointer from here, by this layout, so it is a mapping.
            return unsafe { unmap(pointer, layout.size()) };
        }
        let mut memory = self.locked();
        // SAFETY: the caller has the pointer from here, by this layout, so it is not.
        unsafe { memory.free(pointer, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let was = is_mapping(layout.size(), layout.align());
        let is = is_mapping(size, layout.align());
        if was && is {
            // SAFETY: the caller has the pointer from here, by this layout, so it is a mapping.
            return unsafe { remap(pointer, layout.size(), size) };
        }
        if was || is {
            // SAFETY: the new size is valid for the layout's alignment, as the caller promises.
            let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            // SAFETY: the layout has a size.
            let block = unsafe { self.alloc(new) };
            if !block.is_null() {
                // SAFETY: two blocks, each at least so long.
                unsafe { ptr::copy_nonoverlapping(pointer, block, layout.size().min(size)) };
                // SAFETY: the caller's block, which its caller no longer uses.
                unsafe { self.dealloc(pointer, layout) };
            }
            return block;
        }
        let mut memory = self.locked();
        // SAFETY: the caller has the pointer from here, by this layout, and the new size is valid for its alignment.
        unsafe { memory.realloc(pointer, layout.size(), layout.align(), size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    fn filled(pointer: *mut u8, size: usize) -> bool {
        // SAFETY: a block of the test's with so many bytes, all written.
        unsafe { std::slice::from_raw_parts(pointer, size) }.iter().all(|byte| *byte == 7)
    }

    #[test]
    fn a_block_keeps_its_content_from_small_to_large_and_back() {
        let memory = Allocator::new();
        let mut layout = Layout::from_size_align(1000, 16).unwrap();
        // SAFETY: a layout with a size.
        let mut block = unsafe { memory.alloc(layout) };
        // SAFETY: so long is the block.
        unsafe { block.write_bytes(7, 1000) };
        for size in [LARGE - 1, LARGE, 5 * LARGE, 5 * LARGE + 1, 3 * LARGE, LARGE / 2, 1000] {
            // SAFETY: the block and its layout.
            block = unsafe { memory.realloc(block, layout, size) };
            assert!(!block.is_null() && block.addr().is_multiple_of(16), "{size}");
            let kept = layout.size().min(size);
            assert!(filled(block, kept), "{size}");
            // SAFETY: so long is the block now.
            unsafe { block.write_bytes(7, size) };
            layout = Layout::from_size_align(size, 16).unwrap();
        }
        // SAFETY: the block and its layout.
        unsafe { memory.dealloc(block, layout) };
    }

    #[test]
    fn a_large_block_takes_what_was_written_to_it_and_gives_all_back() {
        const SIZE: usize = 256 * LARGE;
        let memory = Allocator::new();
        let before = resident();
        let layout = Layout::from_size_align(SIZE / 2, 1).unwrap();
        // SAFETY: a layout with a size.
        let block = unsafe { memory.alloc_zeroed(layout) };
        // SAFETY: half of the block.
        unsafe { block.write_bytes(7, SIZE / 4) };
        // SAFETY: the block and its layout.
        let block = unsafe { memory.realloc(block, layout, SIZE) };
        assert!(filled(block, SIZE / 4));
        let taken = resident().saturating_sub(before);
        assert!((SIZE / 4..SIZE / 2).contains(&taken), "{taken}");
        // SAFETY: the block and its layout.
        unsafe { memory.dealloc(block, Layout::from_size_align(SIZE, 1).unwrap()) };
        let left = resident().saturating_sub(before);
        assert!(left < SIZE / 8, "{left}");
    }

    #[test]
    fn what_wants_more_than_a_page_of_alignment_gets_it() {
        let memory = Allocator::new();
        let layout = Layout::from_size_align(2 * LARGE, 1 << 16).unwrap();
        // SAFETY: a layout with a size.
        let block = unsafe { memory.alloc(layout) };
        assert!(block.addr().is_multiple_of(1 << 16) && !block.is_null());
        // SAFETY: the block and its layout.
        unsafe { memory.dealloc(block, layout) };
    }
}
