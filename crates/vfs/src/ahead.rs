//! Read-ahead of mapped files.

/// Size of a request in bytes. Per request, the system reads no more than the disk's read-ahead
/// size, and that size is at least this large.
#[cfg(any(unix, test))]
const REQUEST_BYTES: usize = 128 << 10;

/// Requests exactly these bytes of a mapped file. Without this call, the first access also reads
/// the surrounding bytes up to the disk's read-ahead size, including other columns. Does not wait.
/// Has no effect on memory that is not a mapped file.
#[cfg(unix)]
pub fn read_ahead(bytes: &[u8]) {
    // SAFETY: the call takes a number, and returns -1 if the number is unknown.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page) = usize::try_from(page) else { return };
    for request in bytes.chunks(REQUEST_BYTES) {
        let before = request.as_ptr().addr() % page.max(1);
        let first = request.as_ptr().wrapping_sub(before).cast_mut();
        // SAFETY: the advice changes no byte and removes no page, and the range is within the slice
        // or starts at the beginning of its page: if nothing is mapped there, the call fails.
        let _ = unsafe { libc::madvise(first.cast(), request.len() + before, libc::MADV_WILLNEED) };
    }
}

/// Does nothing on systems where files are read on access.
#[cfg(not(unix))]
pub fn read_ahead(_bytes: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_ahead_accepts_any_memory_range() {
        let bytes = vec![7_u8; 3 * REQUEST_BYTES + 5];
        for range in [0..0, 0..1, 1..2, 5_000..bytes.len(), bytes.len()..bytes.len()] {
            read_ahead(&bytes[range]);
        }
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
}
