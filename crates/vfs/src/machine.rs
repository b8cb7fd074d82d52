//! Machine limits: type of file system, open files, maps.

use std::io;

use crate::RealVfs;
use crate::system::platform;

/// File system under a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// A disk of this machine, as far as can be detected.
    Local,
    /// A file system on another machine, whose syncs do not provide the same guarantees.
    Network(&'static str),
    /// A layer between this process and a disk.
    Layered(&'static str),
}

/// Process limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of open files.
    pub open_files: u64,
    /// Maximum number of maps.
    pub maps: u64,
}

/// File systems by the magic number of the Linux kernel.
#[cfg(any(target_os = "linux", test))]
const KINDS: &[(u64, FileSystem)] = &[
    (0x6969, FileSystem::Network("NFS")),
    (0x517b, FileSystem::Network("SMB")),
    (0xff53_4d42, FileSystem::Network("CIFS")),
    (0xfe53_4d42, FileSystem::Network("SMB2")),
    (0x00c3_6400, FileSystem::Network("Ceph")),
    (0x5346_414f, FileSystem::Network("AFS")),
    (0x6b41_4653, FileSystem::Network("AFS")),
    (0x0bd0_0bd0, FileSystem::Network("Lustre")),
    (0x4750_4653, FileSystem::Network("GPFS")),
    (0x0102_1997, FileSystem::Layered("9p")),
    (0x6573_5546, FileSystem::Layered("FUSE")),
    (0x794c_7630, FileSystem::Layered("overlayfs")),
];

/// Returns the file system with this magic number.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn by_number(number: u64) -> FileSystem {
    let known = KINDS.iter().find(|(known, _)| *known == number & 0xffff_ffff);
    known.map_or(FileSystem::Local, |(_, kind)| *kind)
}

impl RealVfs {
    /// Type of the root's file system.
    pub fn file_system(&self) -> io::Result<FileSystem> {
        platform::file_system(self.root())
    }
}

/// Limits of this process, after raising the soft limit on open files as far as possible.
pub fn limits() -> Limits {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let maps = text.trim().parse().unwrap_or(u64::MAX);
    Limits { open_files: platform::open_files(), maps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognized_by_magic_number() {
        assert_eq!(by_number(0x6969), FileSystem::Network("NFS"));
        assert_eq!(by_number(0xffff_ffff_ff53_4d42), FileSystem::Network("CIFS"));
        assert_eq!(by_number(0x794c_7630), FileSystem::Layered("overlayfs"));
        assert_eq!(by_number(0xef53), FileSystem::Local);
    }

    #[test]
    fn machine_limits_are_nonzero() {
        let limits = limits();
        assert!(limits.open_files > 0 && limits.maps > 0);
    }
}
