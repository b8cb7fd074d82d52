//! Sets the linker flags an addon needs.

fn main() {
    napi_build::setup();
}
