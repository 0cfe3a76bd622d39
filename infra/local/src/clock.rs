//! Stack time: the machine's clock plus an offset that only grows, and that outlives the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use runtime::{Clock, SystemClock};

/// Most milliseconds ahead: a hundred years, well inside of what every format can say.
const MAX_OFFSET_MS: i64 = 100 * 366 * 86_400_000;
/// The offset is a number of this width and a line feed, so that it is replaced in place by one write.
const FILE_WIDTH: usize = 20;
const FILE_NAME: &str = "clock";

/// The clock of everything in the stack.
#[derive(Debug, Default)]
pub struct StackClock {
    offset_ms: AtomicI64,
    file: Mutex<Option<File>>,
}

/// The clock cannot go where it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The offset cannot be kept.
    #[error("the clock's offset cannot be kept: {0}")]
    Keep(#[from] io::Error),
    /// The offset in the data directory is no number.
    #[error("{0} does not hold a number of milliseconds")]
    Malformed(PathBuf),
    /// Further ahead than a hundred years.
    #[error("the clock cannot be more than a hundred years ahead")]
    TooFar,
}

impl StackClock {
    /// A clock as far ahead as the directory says; not ahead when it says nothing.
    pub fn load(dir: Option<&Path>) -> Result<Self, ClockError> {
        let Some(path) = dir.map(|dir| dir.join(FILE_NAME)) else { return Ok(Self::default()) };
        let offset_ms = match std::fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                // A file may set the clock back: what is written by it is old once the file is gone.
                Ok(offset_ms) if (-MAX_OFFSET_MS..=MAX_OFFSET_MS).contains(&offset_ms) => offset_ms,
                _ => return Err(ClockError::Malformed(path)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            // The directory itself may be no directory: opening it says so in a better line.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { offset_ms: AtomicI64::new(offset_ms), file: Mutex::new(None) })
    }

    /// Keeps the offset in the directory from now on. The directory has to be ours by now.
    pub fn keep_in(&self, dir: &Path) -> Result<(), ClockError> {
        let path = dir.join(FILE_NAME);
        if !path.exists() {
            // Whole or not at all, whenever the process is killed.
            let draft = path.with_extension("new");
            std::fs::write(&draft, format!("{:FILE_WIDTH$}\n", self.offset_ms()))?;
            std::fs::rename(draft, &path)?;
        }
        let file = File::options().write(true).open(path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.write(self.offset_ms())
    }

    /// How far ahead of the machine's clock this is.
    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    /// The machine's time.
    pub fn real_now(&self) -> DateTime<Utc> {
        SystemClock.now()
    }

    /// Whether the clock can be so far ahead.
    pub fn can_be_ahead(offset_ms: i64) -> Result<(), ClockError> {
        if offset_ms > MAX_OFFSET_MS { Err(ClockError::TooFar) } else { Ok(()) }
    }

    /// Moves the clock forward. Kept before it takes effect: after a crash no stored time lies in the future. Never back.
    pub fn set_offset_ms(&self, offset_ms: i64) -> Result<(), ClockError> {
        Self::can_be_ahead(offset_ms)?;
        if offset_ms > self.offset_ms() {
            self.write(offset_ms)?;
            self.offset_ms.fetch_max(offset_ms, Ordering::AcqRel);
        }
        Ok(())
    }

    fn write(&self, offset_ms: i64) -> Result<(), ClockError> {
        if let Some(file) = &*self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            file.write_all_at(format!("{offset_ms:FILE_WIDTH$}\n").as_bytes(), 0)?;
        }
        Ok(())
    }
}

impl Clock for StackClock {
    fn now(&self) -> DateTime<Utc> {
        self.real_now() + TimeDelta::milliseconds(self.offset_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_outlives_the_process_and_never_shrinks() {
        let dir = tempfile::tempdir().unwrap();
        let clock = StackClock::load(Some(dir.path())).unwrap();
        clock.keep_in(dir.path()).unwrap();
        clock.set_offset_ms(123_456_789_012).unwrap();
        clock.set_offset_ms(7).unwrap();
        assert_eq!(StackClock::load(Some(dir.path())).unwrap().offset_ms(), 123_456_789_012);
    }

    #[test]
    fn a_file_may_set_the_clock_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), "          -864000000\n").unwrap();
        let clock = StackClock::load(Some(dir.path())).unwrap();
        clock.keep_in(dir.path()).unwrap();
        clock.set_offset_ms(-1_000).unwrap();
        assert_eq!(StackClock::load(Some(dir.path())).unwrap().offset_ms(), -1_000);
    }

    #[test]
    fn stack_time_is_real_time_plus_the_offset() {
        let clock = StackClock::default();
        clock.set_offset_ms(86_400_000).unwrap();
        let ahead = clock.now() - clock.real_now();
        assert!((ahead - TimeDelta::days(1)).num_milliseconds().abs() < 1_000, "{ahead}");
    }

    #[test]
    fn a_damaged_offset_and_a_far_future_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for damaged in ["soon", "", "9223372036854775807", "-9223372036854775808"] {
            std::fs::write(dir.path().join(FILE_NAME), damaged).unwrap();
            assert!(matches!(StackClock::load(Some(dir.path())), Err(ClockError::Malformed(_))), "{damaged}");
        }
        assert!(matches!(StackClock::default().set_offset_ms(i64::MAX), Err(ClockError::TooFar)));
    }
}
