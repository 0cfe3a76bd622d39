//! An empty build script: Cargo builds `[build-dependencies]` only for packages that have one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
