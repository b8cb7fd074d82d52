//! Windows.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, GetDiskFreeSpaceExW, GetDriveTypeW, GetFileInformationByHandle,
    GetVolumePathNameW,
};

use super::FileVersion;
use crate::Space;
use crate::machine::FileSystem;

/// `GetDriveTypeW` returns this number for a drive on another machine.
const DRIVE_REMOTE: u32 = 4;
/// Maximum length of a path in UTF-16 units.
const MAX_PATH_UNITS: usize = 32_768;
/// Length of a unit of file times.
const FILE_TIME_NS: i128 = 100;
/// File times count from the year 1601. This is 1970 as a file time.
const UNIX_EPOCH: i128 = 116_444_736_000_000_000;

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(crate) fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match file.seek_write(&data[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => done += count,
        }
    }
    Ok(())
}

/// Allocates disk space for the first `len` bytes, and extends the file if it is shorter. NTFS
/// allocates the space when a file is extended.
pub(crate) fn allocate(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() < len { file.set_len(len) } else { Ok(()) }
}

/// Windows cannot drop the cached pages of one file.
pub(crate) fn drop_cached(_file: &File) {}

/// Windows cannot sync a directory. NTFS writes names to its journal in order.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    std::fs::metadata(path).map(|_| ())
}

/// Returns a path as a null-terminated UTF-16 string.
fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}

/// Converts the result of a Windows function.
fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn space(root: &Path) -> io::Result<Space> {
    let root = wide(root);
    let mut space = Space { free: 0, total: 0 };
    // SAFETY: the path is null-terminated, and the pointers are null or valid during the call.
    succeeded(unsafe {
        GetDiskFreeSpaceExW(
            root.as_ptr(),
            &raw mut space.free,
            &raw mut space.total,
            std::ptr::null_mut(),
        )
    })?;
    Ok(space)
}

pub(crate) fn file_system(root: &Path) -> io::Result<FileSystem> {
    let root = wide(root);
    let mut volume = vec![0_u16; MAX_PATH_UNITS];
    // SAFETY: the path is null-terminated, and the buffer has the length that is passed.
    succeeded(unsafe {
        GetVolumePathNameW(root.as_ptr(), volume.as_mut_ptr(), MAX_PATH_UNITS as u32)
    })?;
    // SAFETY: the call above has written a null-terminated path.
    let is_remote = unsafe { GetDriveTypeW(volume.as_ptr()) } == DRIVE_REMOTE;
    Ok(if is_remote { FileSystem::Network("SMB") } else { FileSystem::Local })
}

/// Windows limits open files only by memory.
pub(crate) fn open_files() -> u64 {
    u64::MAX
}

impl FileVersion {
    /// Returns the version of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut found = MaybeUninit::<BY_HANDLE_FILE_INFORMATION>::zeroed();
        // SAFETY: the handle is open, and the pointer is valid during the call.
        succeeded(unsafe { GetFileInformationByHandle(file.as_raw_handle(), found.as_mut_ptr()) })?;
        // SAFETY: the structure consists of numbers, for which zeros are valid.
        let found = unsafe { found.assume_init() };
        let join = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
        let changed = found.ftLastWriteTime;
        let changed = i128::from(join(changed.dwHighDateTime, changed.dwLowDateTime));
        Ok(Self {
            device: found.dwVolumeSerialNumber.into(),
            number: join(found.nFileIndexHigh, found.nFileIndexLow),
            bytes: join(found.nFileSizeHigh, found.nFileSizeLow),
            changed_ns: (changed - UNIX_EPOCH) * FILE_TIME_NS,
        })
    }

    /// Returns the version of the file at a path.
    pub fn at(path: &Path) -> io::Result<Self> {
        Self::of(&File::open(path)?)
    }
}
