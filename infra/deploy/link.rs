//! How the functions' executables are linked: the build script of each, or its part.

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by the environment")]
pub(crate) fn main() {
    println!("cargo::rerun-if-env-changed=PROFILE");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    // An executable at a fixed address has no pointers to adjust when it starts. In a position-independent one the linker does
    // that for every entry of every constant table, and each page it touches is a page fault.
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
