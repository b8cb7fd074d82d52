//! Duplicates descriptors owned by other code.

use std::io;
use std::net::TcpStream;

/// Returns a separate descriptor for a socket that another part of the process owns. Data that is
/// read through one descriptor is no longer available through the other, and the connection ends
/// when both are closed. Fails if the number is not an open descriptor, and on systems where
/// sockets have no descriptors.
#[cfg(unix)]
pub fn duplicate_socket(descriptor: i32) -> io::Result<TcpStream> {
    use std::os::fd::{FromRawFd, OwnedFd};

    // SAFETY: the call takes only numbers, and returns an error if the descriptor is not open.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and no other code knows it.
    let owned = unsafe { OwnedFd::from_raw_fd(copy) };
    Ok(TcpStream::from(owned))
}

/// Fails, because sockets are not descriptors here.
#[cfg(not(unix))]
pub fn duplicate_socket(_descriptor: i32) -> io::Result<TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_duplicated_socket_refers_to_the_same_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut first, _) = listener.accept().unwrap();
        let mut second = duplicate_socket(first.as_raw_fd()).unwrap();
        client.write_all(b"ab").unwrap();
        let mut byte = [0];
        first.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"a");
        second.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"b");
        drop(first);
        second.write_all(b"c").unwrap();
        client.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"c");
        drop(second);
        assert_eq!(client.read(&mut byte).unwrap(), 0);
    }

    #[test]
    fn a_closed_descriptor_is_refused() {
        assert!(duplicate_socket(-1).is_err());
    }
}
