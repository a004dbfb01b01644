//! Places the functions that a start runs next to each other in the shipped program.
//!
//! The kernel maps a program's code in pieces of 64 KB. A start runs a sixth of this program's code; scattered over
//! the file, it maps three quarters of it. `scripts/speed functions` writes the list of these functions, as a linker
//! script that leaves everything else where it is. A name that no longer exists costs nothing.

use std::env;

const LINKER_SCRIPT: &str = "start_functions.ld";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={LINKER_SCRIPT}");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    // Only the `dist` profile is optimised for size. Other builds may be linked by programs that read no such scripts.
    let is_shipped = variable("OPT_LEVEL") == "s";
    if is_shipped && variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ARCH") == "x86_64" {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/{LINKER_SCRIPT}", variable("CARGO_MANIFEST_DIR"));
    }
}
