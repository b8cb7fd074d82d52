//! A page of a mapped file that cannot be read any more: the file was cut, or the disk failed.
//!
//! The kernel sends SIGBUS to the thread that touches such a page, which ends the process. Here
//! the handler looks the address up among the ranges that [`RealVfs`](crate::RealVfs) has mapped,
//! counts the fault, and puts zeros where the rest of the file was; the thread goes on, and
//! a reader of the bytes asks [`is_faulted`] before it relies on them. Any other address is
//! the business of the handler that was there before.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use arrow_buffer::Buffer;
use libc::{c_int, c_void, sigaction, siginfo_t};
use parking_lot::Mutex;

/// Faults since the process began.
static FAULTS: AtomicU64 = AtomicU64::new(0);
/// The first of the blocks of ranges. Blocks are never freed, so the handler may walk them.
static RANGES: Block = Block::new();
/// Unused ranges.
static FREE: Mutex<Vec<&'static Range>> = Mutex::new(Vec::new());
/// What handled the signal before; set before the handler is installed.
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

/// The range that holds an address. Takes no lock and allocates nothing: the handler calls it.
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

/// A range that is watched until this is dropped, which must be before the range is unmapped.
#[derive(Debug)]
pub(crate) struct Watched(&'static Range);

impl Watched {
    /// Watches a mapped range, page-aligned at its start.
    pub(crate) fn new(start: usize, len: usize) -> Self {
        install();
        let range = free_range();
        range.faults.store(0, Ordering::Relaxed);
        range.len.store(len, Ordering::Relaxed);
        // Last: from here on the handler takes the range for ours.
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
    // Only here, under the lock of `FREE`, are blocks appended.
    last.next.store(ptr::from_ref(block).cast_mut(), Ordering::Release);
    free.extend(block.ranges[1..].iter());
    &block.ranges[0]
}

/// How many times a mapped page could not be read, since the process began. While it is
/// still, no byte of any map was made up.
pub fn faults() -> u64 {
    FAULTS.load(Ordering::SeqCst)
}

/// Whether some bytes of the map that this buffer is in are not those of the file. Asked after
/// the bytes were used.
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
        // SAFETY: a zeroed `sigaction` is valid; its fields are set to a function of the
        // signature that SA_SIGINFO asks for, and to an empty mask. `PREVIOUS` is set already.
        unsafe {
            let mut ours = MaybeUninit::<sigaction>::zeroed().assume_init();
            ours.sa_sigaction = on_fault as *const () as usize;
            // On the alternative stack where a thread has one: the fault may be deep in a query.
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut ours.sa_mask);
            sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut());
        }
    });
}

/// The handler. Only atomics, one system call, and no memory of another owner.
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

/// Puts zeros where the range cannot be read, from the address's page to its end.
fn cover(range: &Range, address: usize) -> bool {
    // SAFETY: `sysconf` and the location of `errno` have no preconditions, and both are allowed
    // in a handler.
    let (page, errno) =
        unsafe { (libc::sysconf(libc::_SC_PAGESIZE) as usize, libc::__errno_location()) };
    // SAFETY: the location is this thread's own.
    let kept = unsafe { *errno };
    let from = address & !(page - 1);
    let end = range.start.load(Ordering::Acquire) + range.len.load(Ordering::Acquire);
    // Counted first: who sees a zero also sees the count.
    range.faults.fetch_add(1, Ordering::SeqCst);
    FAULTS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the pages lie in a map of ours that the faulting thread keeps alive (it holds the
    // buffer), so replacing them touches no other memory; they stay readable throughout.
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
    unsafe { *errno = kept };
    mapped != libc::MAP_FAILED
}

/// Does what would have happened without this handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    let Some(previous) = PREVIOUS.get() else { return };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: installs the action that was there before; the fault comes again at once.
            unsafe { sigaction(signal, previous, ptr::null_mut()) };
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO the kernel's contract is that this is such a function.
            let handler: WithInfo = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO it is a function of the signal's number.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
