//! Builds the crate anew when a file of the page is added or removed: `include_dir!` sees changes of known files only.

fn main() {
    println!("cargo::rerun-if-changed=assets");
}
