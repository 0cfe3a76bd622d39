//! Measures the deployed files: binaries and zips.

use std::path::Path;
use std::process::Command;

use crate::error::{BenchError, context};

/// Sizes in bytes.
pub(crate) struct Size {
    pub(crate) binary: u64,
    pub(crate) zip: u64,
}

/// Packs a binary as `bootstrap`, as a deployment does, and measures both files.
pub(crate) fn measure(binary: &Path, dir: &Path) -> Result<Size, BenchError> {
    let bootstrap = dir.join("bootstrap");
    std::fs::copy(binary, &bootstrap).map_err(context(binary))?;
    let zip = dir.join("bootstrap.zip");
    let mut command = Command::new("python3");
    command.current_dir(dir).args(["-m", "zipfile", "-c", "bootstrap.zip", "bootstrap"]);
    let packed = command.status().map_err(context("pack"))?;
    if !packed.success() {
        return Err(BenchError::new("python3 -m zipfile failed"));
    }
    let bytes = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.len()).map_err(context("measure"));
    Ok(Size { binary: bytes(&bootstrap)?, zip: bytes(&zip)? })
}
