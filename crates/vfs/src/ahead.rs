//! Bytes of mapped files, asked for before they are touched.

/// Bytes of one request: a system reads no more for one than its disk's read-ahead, which is this
/// at least.
const REQUEST_BYTES: usize = 128 << 10;

/// Asks for these bytes of a mapped file, and for none beside them; without that the first touch
/// reads as much around it as the disk's read-ahead says, other columns included. Does not wait.
/// Nothing happens with memory that is no mapped file.
#[cfg(unix)]
pub fn read_ahead(bytes: &[u8]) {
    // SAFETY: the call takes a number, and answers -1 where it knows none.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page) = usize::try_from(page) else { return };
    for request in bytes.chunks(REQUEST_BYTES) {
        let before = request.as_ptr().addr() % page.max(1);
        let first = request.as_ptr().wrapping_sub(before).cast_mut();
        // SAFETY: the advice changes no byte and takes no page away, and the range is one of the
        // slice, or its pages' beginning: where nothing is mapped the call fails.
        let _ = unsafe { libc::madvise(first.cast(), request.len() + before, libc::MADV_WILLNEED) };
    }
}

/// The same where files are read as they are touched.
#[cfg(not(unix))]
pub fn read_ahead(_bytes: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_memory_may_be_asked_for() {
        let bytes = vec![7_u8; 3 * REQUEST_BYTES + 5];
        for range in [0..0, 0..1, 1..2, 5_000..bytes.len(), bytes.len()..bytes.len()] {
            read_ahead(&bytes[range]);
        }
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
}
