//! A file that records the used permissions.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::permission::Permission;

pub(super) struct Recording {
    file: File,
    /// The lines that this process has written.
    written: Mutex<HashSet<String>>,
}

impl Recording {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, written: Mutex::default() })
    }

    /// Appends a line unless this process has written it. One write in append mode keeps lines of several processes
    /// apart.
    pub(super) fn add(&self, name: &str, permission: &Permission) {
        let line = format!("{name} {} {}\n", permission.action, permission.resource);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&line) {
            return;
        }
        if let Err(error) = (&self.file).write_all(line.as_bytes()) {
            tracing::warn!(%error, "cannot record a used permission");
        }
        written.insert(line);
    }
}
