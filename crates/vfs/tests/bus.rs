//! Truncates a mapped file. The process survives, and every invented byte is detected. Each test is
//! a separate process, so a signal does not end other tests.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use tidemark_vfs::{RealVfs, Vfs, faults, is_faulted};

const CHILD: &str = "TIDEMARK_BUS_CHILD";
const PAGE: usize = 4_096;
const PAGES: usize = 16;
const FILL: u8 = 0xa5;
const PREVIOUS_HANDLER_EXIT: i32 = 42;

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

fn run_as_child(test: &str) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads", "1"]).env(CHILD, "1");
    command.status().unwrap()
}

fn write(directory: &std::path::Path, name: &str) {
    std::fs::write(directory.join(name), vec![FILL; PAGE * PAGES]).unwrap();
}

#[test]
fn truncation_of_a_mapped_file_is_detected() {
    if !is_child() {
        assert!(run_as_child("truncation_of_a_mapped_file_is_detected").success());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new(directory.path()).unwrap();
    write(directory.path(), "neighbour");
    let neighbour = vfs.map("neighbour", (PAGE * PAGES) as u64).unwrap();
    let mut noticed = 0;
    for round in 0..400 {
        let name = format!("f{round}");
        write(directory.path(), &name);
        let map = vfs.map(&name, (PAGE * PAGES) as u64).unwrap();
        let is_cut = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let last = is_cut.load(Ordering::Acquire);
                        let wrong = map.iter().filter(|byte| **byte != FILL).count();
                        let is_noticed = wrong == 0 || is_faulted(&map.slice(PAGE));
                        // During the truncation, a kernel with large folios may show zeros in a
                        // page that it has not yet removed. The same bytes fault afterwards.
                        assert!(is_noticed || !last, "round {round}");
                        if last {
                            break;
                        }
                    }
                });
            }
            let file = OpenOptions::new().write(true).open(directory.path().join(&name)).unwrap();
            file.set_len(((round % PAGES) * PAGE) as u64).unwrap();
            is_cut.store(true, Ordering::Release);
        });
        assert!(is_faulted(&map), "round {round}");
        noticed += 1;
    }
    assert!(faults() >= noticed);
    assert!(!is_faulted(&neighbour));
    assert!(neighbour.iter().all(|byte| *byte == FILL));
    // A new map may reuse an old address.
    assert!(!is_faulted(&vfs.map("neighbour", (PAGE * PAGES) as u64).unwrap()));
}

extern "C" fn previous_handler(_: libc::c_int) {
    // SAFETY: ends the process immediately, which is allowed in a handler.
    unsafe { libc::_exit(PREVIOUS_HANDLER_EXIT) };
}

/// Reads a foreign map whose file was truncated while mapped.
fn touch_a_foreign_map() {
    let directory = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new(directory.path()).unwrap();
    write(directory.path(), "ours");
    let ours = vfs.map("ours", (PAGE * PAGES) as u64).unwrap();
    assert_eq!(ours[0], FILL);
    write(directory.path(), "foreign");
    let file = File::options().read(true).write(true).open(directory.path().join("foreign"));
    let file = file.unwrap();
    // SAFETY: the test cuts the file on purpose and expects the signal.
    let foreign = unsafe { memmap2::Mmap::map(&file).unwrap() };
    file.write_all_at(&[FILL], 0).unwrap();
    file.set_len(0).unwrap();
    std::hint::black_box(foreign[PAGE]);
}

#[test]
fn faults_at_other_addresses_reach_the_previous_handler() {
    if !is_child() {
        let status = run_as_child("faults_at_other_addresses_reach_the_previous_handler");
        assert_eq!(status.code(), Some(PREVIOUS_HANDLER_EXIT));
        return;
    }
    // SAFETY: a zeroed action with a handler of the plain signature.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = previous_handler as *const () as usize;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
    touch_a_foreign_map();
}

#[test]
fn without_a_previous_handler_the_signal_ends_the_process() {
    if !is_child() {
        let status = run_as_child("without_a_previous_handler_the_signal_ends_the_process");
        assert_eq!(status.signal(), Some(libc::SIGBUS));
        return;
    }
    touch_a_foreign_map();
}
