//! Sets the addon's linker flags. If the linker supports it, identical functions are folded,
//! because the query engine's generic code is instantiated many times. The stripped addon is 59.4
//! MiB with folding and about 7 MiB larger without. Folded functions share an address. That is
//! harmless, because their code is identical and Rust does not guarantee distinct addresses.

use std::process::Command;

/// If set, the addon keeps its function names, for `perf`.
const SYMBOLS: &str = "TIDEMARK_SYMBOLS";

fn main() {
    napi_build::setup();
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let is_native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    // Cargo sets this if another linker was chosen. Zig's linker, for example, rejects `--icf`.
    let has_linker = std::env::var_os("RUSTC_LINKER").is_some();
    if is_linux && is_native && !has_linker && gold_answers() {
        println!("cargo:rustc-cdylib-link-arg=-fuse-ld=gold");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf-iterations=8");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-O2");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--gc-sections");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
        println!("cargo:rerun-if-env-changed={SYMBOLS}");
        if std::env::var_os(SYMBOLS).is_none() {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-all");
        }
    }
}

fn gold_answers() -> bool {
    Command::new("ld.gold").arg("--version").output().is_ok_and(|output| output.status.success())
}
