//! The local stack's data directory, locked by one stack at a time.
//!
//! The directory holds `version` (the format), `lock` (held while a stack runs), `dynamodb.sqlite` and
//! `services.sqlite`.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// Version of the files' format. A stack with another version refuses the directory.
const FORMAT_VERSION: &str = "7";

/// The place of the stack's state.
#[derive(Debug, Clone)]
pub enum DataDir {
    /// A directory that is kept between runs. It is created when it does not exist.
    Persistent(PathBuf),
    /// A temporary directory, removed at the end.
    Ephemeral,
}

/// A data directory that is locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct OpenDir {
    path: PathBuf,
    lock: File,
    _temporary: Option<tempfile::TempDir>,
}

impl OpenDir {
    pub(crate) fn open(dir: &DataDir) -> Result<Self, OpenError> {
        let (path, temporary) = match dir {
            DataDir::Persistent(path) => (path.clone(), None),
            DataDir::Ephemeral => {
                let temporary = tempfile::Builder::new()
                    .prefix("partner-api-")
                    .tempdir()
                    .map_err(|error| OpenError::new(format!("cannot make a temporary directory: {error}")))?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let refused = |error: std::io::Error| {
            OpenError::new(format!("cannot write to the data directory {}: {error}", path.display()))
        };
        // Private to this user, since it holds secrets and mails.
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(refused)?;
        let lock = File::create(path.join("lock")).map_err(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::new(format!(
                    "the data directory {} is in use by another local stack",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(refused(error)),
        }
        check_version(&path)?;
        Ok(Self { path, lock, _temporary: temporary })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Unlocks the directory for another stack.
    pub(crate) fn release(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "cannot unlock the data directory before this process ends");
        }
    }
}

/// Stamps a new directory and refuses one of another format.
fn check_version(path: &Path) -> Result<(), OpenError> {
    let file = path.join("version");
    let refused = |error: std::io::Error| {
        OpenError::new(format!("cannot write to the data directory {}: {error}", path.display()))
    };
    match fs::read_to_string(&file) {
        Ok(version) if version.trim() == FORMAT_VERSION => Ok(()),
        Ok(version) => Err(OpenError::new(format!(
            "the data directory {} is of format version {}, this program reads version {FORMAT_VERSION}: \
             remove it or name another with --data-dir",
            path.display(),
            version.lines().next().unwrap_or_default().trim()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // The rename is atomic: a killed process leaves no partial file.
            let draft = path.join("version.new");
            fs::write(&draft, format!("{FORMAT_VERSION}\n")).and_then(|()| fs::rename(draft, file)).map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<OpenDir, OpenError> {
        OpenDir::open(&DataDir::Persistent(path.to_owned()))
    }

    #[test]
    fn two_stacks_do_not_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path()).unwrap();
        assert!(open(dir.path()).unwrap_err().to_string().contains("in use by another local stack"));
        first.release();
        open(dir.path()).unwrap();
    }

    #[test]
    fn a_directory_of_another_version_is_refused_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("version"), "1\n").unwrap();
        let message = open(dir.path()).unwrap_err().to_string();
        assert!(message.contains("format version 1") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn a_new_directory_is_private_to_its_user() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let _open = open(&path).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_path_that_is_a_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(open(file.path()).unwrap_err().to_string().starts_with("cannot write to the data directory"));
    }

    #[test]
    fn an_ephemeral_directory_goes_away() {
        let dir = OpenDir::open(&DataDir::Ephemeral).unwrap();
        let path = dir.file("x").parent().unwrap().to_owned();
        assert!(path.exists());
        drop(dir);
        assert!(!path.exists());
    }
}
