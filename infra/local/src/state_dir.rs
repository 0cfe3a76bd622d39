//! The stack's own small files in the data directory: the demo's keys, the signing key, the ports, the mode.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The data directory. An ephemeral run has none and stores nothing.
#[derive(Debug, Clone)]
pub struct StateDir(Option<PathBuf>);

impl StateDir {
    /// Creates the handle. `None` is an ephemeral run.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    /// Returns the directory's path.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Reads a file. Returns `None` when it does not exist.
    pub fn read(&self, name: &str) -> io::Result<Option<String>> {
        let Some(dir) = &self.0 else { return Ok(None) };
        match fs::read_to_string(dir.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The data directory is a file: opening it reports that with a better message.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file atomically. Only this user may read it, since some files hold secrets.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let Some(dir) = &self.0 else { return Ok(()) };
        let draft = dir.join(format!("{name}.new"));
        fs::write(&draft, "")?;
        fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
        fs::write(&draft, text)?;
        fs::rename(draft, dir.join(name))
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) {
        if let Some(dir) = &self.0 {
            // The file may not exist.
            let _ = fs::remove_file(dir.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(Some(dir.path().to_owned()));
        assert_eq!(state.read("demo.json").unwrap(), None);
        state.write("demo.json", "{}").unwrap();
        assert_eq!(state.read("demo.json").unwrap().as_deref(), Some("{}"));
        let mode = fs::metadata(dir.path().join("demo.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let state = StateDir::new(None);
        state.write("x", "y").unwrap();
        assert_eq!(state.read("x").unwrap(), None);
    }
}
