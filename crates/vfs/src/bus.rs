//! Pages of a mapped file that can no longer be read because the file was truncated or the disk
//! failed.
//!
//! The kernel sends SIGBUS to a thread that accesses such a page; without a handler, this ends the
//! process. This handler looks the address up among the ranges that [`RealVfs`](crate::RealVfs) has
//! mapped, counts the fault, and maps zeros in place of the remaining file. The thread continues,
//! and a reader of the bytes checks [`is_faulted`] before it relies on them. All other addresses
//! are left to the previous handler.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use arrow_buffer::Buffer;
#[cfg(not(target_vendor = "apple"))]
use libc::__errno_location as errno_location;
#[cfg(target_vendor = "apple")]
use libc::__error as errno_location;
use libc::{c_int, c_void, sigaction, siginfo_t};
use parking_lot::Mutex;

/// Number of faults since the process started.
static FAULTS: AtomicU64 = AtomicU64::new(0);
/// First block of ranges. Blocks are never freed, so the handler may walk them.
static RANGES: Block = Block::new();
/// Unused ranges.
static FREE: Mutex<Vec<&'static Range>> = Mutex::new(Vec::new());
/// Previous handler of the signal; set before ours is installed.
static PREVIOUS: OnceLock<sigaction> = OnceLock::new();

const BLOCK_RANGES: usize = 512;

/// A mapped range; unused while `start` is 0.
#[derive(Debug)]
struct Range {
    start: AtomicUsize,
    len: AtomicUsize,
    faults: AtomicU64,
}

struct Block {
    ranges: [Range; BLOCK_RANGES],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Self {
        let ranges = [const {
            Range {
                start: AtomicUsize::new(0),
                len: AtomicUsize::new(0),
                faults: AtomicU64::new(0),
            }
        }; BLOCK_RANGES];
        Self { ranges, next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Self> {
        // SAFETY: the pointer is null or comes from `Box::leak` in `free_range`, published with
        // release ordering; blocks are never freed or moved.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

/// Returns the range that contains an address. Takes no lock and allocates nothing, because the
/// handler calls it.
fn range_of(address: usize) -> Option<&'static Range> {
    let mut block = Some(&RANGES);
    while let Some(some) = block {
        let found = some.ranges.iter().find(|range| {
            let start = range.start.load(Ordering::Acquire);
            start != 0 && address >= start && address - start < range.len.load(Ordering::Acquire)
        });
        if found.is_some() {
            return found;
        }
        block = some.next();
    }
    None
}

/// A range that is watched until this value is dropped, which must happen before the range is
/// unmapped.
#[derive(Debug)]
pub(crate) struct Watched(&'static Range);

impl Watched {
    /// Watches a mapped range that starts at a page boundary.
    pub(crate) fn new(start: usize, len: usize) -> Self {
        install();
        let range = free_range();
        range.faults.store(0, Ordering::Relaxed);
        range.len.store(len, Ordering::Relaxed);
        // The start is stored last, because from then on the handler treats the range as ours.
        range.start.store(start, Ordering::Release);
        Self(range)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        FREE.lock().push(self.0);
    }
}

fn free_range() -> &'static Range {
    static IS_FIRST_USED: AtomicUsize = AtomicUsize::new(0);
    let mut free = FREE.lock();
    if IS_FIRST_USED.swap(1, Ordering::Relaxed) == 0 {
        free.extend(RANGES.ranges.iter());
    }
    if let Some(range) = free.pop() {
        return range;
    }
    let block: &'static Block = Box::leak(Box::new(Block::new()));
    let mut last = &RANGES;
    while let Some(next) = last.next() {
        last = next;
    }
    // Blocks are appended only here, under the lock of `FREE`.
    last.next.store(ptr::from_ref(block).cast_mut(), Ordering::Release);
    free.extend(block.ranges[1..].iter());
    &block.ranges[0]
}

/// Number of failed reads of mapped pages since the process started. As long as the number does not
/// change, all maps contain the bytes of their files.
pub fn faults() -> u64 {
    FAULTS.load(Ordering::SeqCst)
}

/// Whether some bytes in the map of this buffer differ from the file. Call this after using the
/// bytes.
pub fn is_faulted(buffer: &Buffer) -> bool {
    let range = || range_of(buffer.as_ptr() as usize);
    faults() > 0 && range().is_some_and(|range| range.faults.load(Ordering::SeqCst) > 0)
}

fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    PREVIOUS.get_or_init(|| {
        let mut previous = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: both pointers are null or valid; a zeroed `sigaction` is the default action.
        unsafe {
            sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr());
            previous.assume_init()
        }
    });
    INSTALLED.get_or_init(|| {
        // SAFETY: a zeroed `sigaction` is valid; its fields are set to a function of the signature
        // that SA_SIGINFO requires, and to an empty mask. `PREVIOUS` is already set.
        unsafe {
            let mut ours = MaybeUninit::<sigaction>::zeroed().assume_init();
            ours.sa_sigaction = on_fault as *const () as usize;
            // Uses the thread's alternative stack, if it has one, because the fault may occur deep
            // in a query.
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut ours.sa_mask);
            sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut());
        }
    });
}

/// The signal handler. It uses only atomics and one system call, and no memory owned by other code.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some(range) = range_of(address)
        && cover(range, address)
    {
        return;
    }
    pass_on(signal, info, context);
}

/// Maps zeros over the unreadable range, from the page that contains the address to the end of the
/// range.
fn cover(range: &Range, address: usize) -> bool {
    // SAFETY: `sysconf` and the location of `errno` have no preconditions, and both are allowed
    // in a handler.
    let (page, errno) = unsafe { (libc::sysconf(libc::_SC_PAGESIZE) as usize, errno_location()) };
    // SAFETY: the location is this thread's own.
    let retained = unsafe { *errno };
    let from = address & !(page - 1);
    let end = range.start.load(Ordering::Acquire) + range.len.load(Ordering::Acquire);
    // The fault is counted first, so that any thread that reads a zero also sees the new count.
    range.faults.fetch_add(1, Ordering::SeqCst);
    FAULTS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the pages are in one of our maps, which the faulting thread keeps alive (it holds the
    // buffer), so replacing them affects no other memory; they stay readable throughout.
    let mapped = unsafe {
        libc::mmap(
            from as *mut c_void,
            end - from,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    // SAFETY: as above.
    unsafe { *errno = retained };
    mapped != libc::MAP_FAILED
}

/// Passes the signal on to the previous action or handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    let Some(previous) = PREVIOUS.get() else { return };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: installs the previous action; the fault then recurs immediately.
            unsafe { sigaction(signal, previous, ptr::null_mut()) };
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO, the handler is a function of this type by the kernel's
            // contract.
            let handler: WithInfo = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO, the handler is a function that takes the signal's number.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
