//! The counting allocator: allocations are charged to the query the thread is working for.

use std::alloc::{GlobalAlloc, Layout};

use tidemark_types::account::note_allocation;

/// An allocator that counts bytes per thread.
#[derive(Debug)]
pub struct CountingAllocator<A>(pub A);

/// Returns to the system the memory that this thread has freed and mimalloc still retains. The
/// duration depends on the thread's pages: a few milliseconds for gigabytes.
pub fn release_memory() {
    // SAFETY: it takes no pointers and may be called by any thread at any time, even if another
    // allocator is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Keeps mimalloc's main heap usable after the thread that loaded this library ends. Each thread
/// must call this function before it first uses the library. Other threads are not affected.
///
/// mimalloc assigns its main heap to the loading thread and recognises that thread by its ID. When
/// the thread ends, a destructor clears the heap. A later thread with the same ID would receive the
/// cleared heap and crash. This happens in practice, because Node.js workers load the addon and
/// end. Without the destructor, the later thread continues with the intact heap.
#[cfg(unix)]
pub fn retain_main_heap() {
    unsafe extern "C" {
        /// The key whose destructor clears a thread's heap.
        static _mi_heap_default_key: libc::pthread_key_t;
        /// The loading thread's part of the main heap. Only its address is used.
        static theap_main: u8;
    }
    // SAFETY: mimalloc defines both symbols, and writes the key while the library is loaded. The
    // calls access only the value of this thread; for an invalid key they change nothing.
    unsafe {
        let key = _mi_heap_default_key;
        if std::ptr::eq(libc::pthread_getspecific(key).cast(), &raw const theap_main) {
            libc::pthread_setspecific(key, std::ptr::null());
        }
    }
}

/// Other platforms are not known to need this.
#[cfg(not(unix))]
pub fn retain_main_heap() {}

/// Converts a size to a signed difference. No layout is larger than `isize::MAX`.
fn signed(bytes: usize) -> i64 {
    bytes as i64
}

// SAFETY: every call is passed unchanged to the inner allocator, whose guarantees apply. Counting
// neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are those that the inner call requires.
        let memory = unsafe { self.0.alloc(layout) };
        if !memory.is_null() {
            note_allocation(signed(layout.size()));
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note_allocation(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if !memory.is_null() {
            note_allocation(signed(layout.size()));
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { self.0.realloc(memory, layout, new_size) };
        if !moved.is_null() {
            note_allocation(signed(new_size) - signed(layout.size()));
        }
        moved
    }
}
