//! Nothing to do. Cargo builds the dependencies of build scripts only for packages that have one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
