//! A file of the permissions that were used.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::need::Need;

pub(super) struct Recording {
    file: File,
    /// What this process has written.
    written: Mutex<HashSet<String>>,
}

impl Recording {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, written: Mutex::default() })
    }

    /// Adds a line, if it is new. It is one write to a file that is open for appending: lines of several processes do not mix.
    pub(super) fn add(&self, function: &str, need: &Need) {
        let line = format!("{function} {} {}\n", need.action, need.resource);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&line) {
            return;
        }
        if let Err(error) = (&self.file).write_all(line.as_bytes()) {
            tracing::warn!(%error, "a permission that was used is not recorded");
        }
        written.insert(line);
    }
}
